#version 450
/* Adds to what is there: how often each value comes. */
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uint y[8]; };

void main()
{
    if (gl_GlobalInvocationID.x < x.length())
        atomicAdd(y[x[gl_GlobalInvocationID.x] & 7], 1);
}
