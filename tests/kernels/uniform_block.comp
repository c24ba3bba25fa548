#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) uniform X { float x; };
layout(set = 0, binding = 1) buffer Y { float y[]; };

void main()
{
    y[0] = x;
}
