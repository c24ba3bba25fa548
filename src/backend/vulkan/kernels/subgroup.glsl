// Reductions over a subgroup and over a one-dimensional workgroup, for any subgroup size.
//
// SG_REDUCE(name, type, fn) makes `type name(type v)`: fn over the subgroup, in every invocation.
// WG_REDUCE(name, type, fn) also makes `type name_wg(type v)`: fn over the workgroup, in every
// invocation. fn(a, b) is a function or macro, associative and commutative. All invocations of the
// workgroup must call, in uniform control flow. The order of combination is fixed for a given
// subgroup size, so results repeat from run to run.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require

// 1024 invocations in subgroups of four, the smallest size seen (128-bit SIMD on llvmpipe).
#define WG_MAX_SUBGROUPS 256

// 64-bit shuffles need a feature that is not part of the floor, so they go in halves.
uint sg_xor(uint v, uint mask) { return subgroupShuffleXor(v, mask); }
int sg_xor(int v, uint mask) { return subgroupShuffleXor(v, mask); }
float sg_xor(float v, uint mask) { return subgroupShuffleXor(v, mask); }
bool sg_xor(bool v, uint mask) { return subgroupShuffleXor(uint(v), mask) != 0u; }
vec2 sg_xor(vec2 v, uint mask) { return subgroupShuffleXor(v, mask); }
uvec2 sg_xor(uvec2 v, uint mask) { return subgroupShuffleXor(v, mask); }
vec4 sg_xor(vec4 v, uint mask) { return subgroupShuffleXor(v, mask); }
uint64_t sg_xor(uint64_t v, uint mask)
{
    return packUint2x32(subgroupShuffleXor(unpackUint2x32(v), mask));
}
int64_t sg_xor(int64_t v, uint mask)
{
    return int64_t(packUint2x32(subgroupShuffleXor(unpackUint2x32(uint64_t(v)), mask)));
}

#define SG_REDUCE(name, type, fn)                                                                  \
    type name(type v)                                                                              \
    {                                                                                              \
        for (uint mask = 1u; mask < gl_SubgroupSize; mask <<= 1)                                   \
            v = fn(v, sg_xor(v, mask));                                                            \
        return v;                                                                                  \
    }

// Every subgroup leaves its part in shared memory; every invocation then combines the parts, which
// saves the broadcast of a result and is cheap because there are few parts.
#define WG_REDUCE(name, type, fn)                                                                  \
    SG_REDUCE(name, type, fn)                                                                      \
    shared type name##_parts[WG_MAX_SUBGROUPS];                                                    \
    type name##_wg(type v)                                                                         \
    {                                                                                              \
        v = name(v);                                                                               \
        if (gl_NumSubgroups == 1u)                                                                 \
            return v;                                                                              \
        barrier(); /* the previous call's parts have been read */                                  \
        if (gl_SubgroupInvocationID == 0u)                                                         \
            name##_parts[gl_SubgroupID] = v;                                                       \
        barrier();                                                                                 \
        type r = name##_parts[0];                                                                  \
        for (uint i = 1u; i < gl_NumSubgroups; i++)                                                \
            r = fn(r, name##_parts[i]);                                                            \
        return r;                                                                                  \
    }
