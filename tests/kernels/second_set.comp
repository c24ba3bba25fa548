#version 450
layout(local_size_x = 1) in;
layout(set = 1, binding = 0) buffer Y { float y[]; };

void main()
{
    y[0] = 1.0;
}
