#version 450
/* y = a * scale + b + bias: what existing shaders look like. */
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const float bias = 0.0;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
    float scale;
    uint n;
};

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        y[i] = a[i] * scale + b[i] + bias;
}
