#version 460
#extension GL_EXT_scalar_block_layout : require
/* Sizes that are not those of dense arrays. */
layout(local_size_x = 4, local_size_y = 2, local_size_z = 3) in;
struct Part {
    vec3 v;
    float w[3];
};
layout(set = 0, binding = 0, std430) buffer A { mat3 m; Part part[2]; };
layout(set = 0, binding = 1, std430) buffer B { uint n; vec4 rest[]; };
layout(constant_id = 7) const int seven = 7;
layout(constant_id = 3) const bool yes = true;
layout(push_constant) uniform Push { layout(offset = 16) mat2 m2; };
shared float part_sum[256];

void main()
{
    part_sum[gl_LocalInvocationIndex] = m[0][0] + part[1].w[2];
    barrier();
    rest[0] = vec4(part_sum[0], float(n), yes ? float(seven) : 0.0, m2[1][1]);
}
