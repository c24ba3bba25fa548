#version 460
#extension GL_EXT_buffer_reference : require
/* y = 2 x, by addresses in push constants. */
layout(local_size_x = 64) in;
layout(buffer_reference, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(push_constant) uniform Push {
    Floats x, y;
    uint n;
};

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        y.v[i] = 2.0 * x.v[i];
}
