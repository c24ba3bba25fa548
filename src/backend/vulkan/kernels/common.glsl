// First include of every kernel: extensions, argument blocks, buffers by device address.
//
// A kernel declares its block with ARGS(struct) and reads it as `p`. Buffers are typed views of an
// address: U32Buf(p.out_addr).v[i] for i below 2^31 (SPIR-V reads an index as signed 32-bit), and
// AT(U32Buf, p.out_addr, 4, i) with element size and 64-bit index for anything larger.
// Specialization constants 0-2 are the workgroup size.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int32 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

#include "args.h"

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;

#define ARGS(type)                                                                                 \
    layout(push_constant, scalar) uniform Push                                                     \
    {                                                                                              \
        type p;                                                                                    \
    }

// BUF(Name, type, alignment) declares a typed view of memory. An alignment larger than the type's
// promises that addresses have it and lets the driver use wide loads.
#define BUF(Name, type, alignment)                                                                 \
    layout(buffer_reference, scalar, buffer_reference_align = alignment) buffer Name               \
    {                                                                                              \
        type v[];                                                                                  \
    }

// False for an address that the dispatch does not have. Such a one leads to zeros (vk_enc_absent), so
// that a driver may load from it before it knows the answer.
bool is_given(const uint64_t address)
{
    return (uint(address) & 1u) == 0u;
}

#define AT(Name, address, bytes, index)                                                           \
    Name((address) + uint64_t(int64_t(index) * int64_t(bytes))).v[0]

BUF(U8Buf, uint8_t, 1);
BUF(U16Buf, uint16_t, 2);
BUF(U32Buf, uint, 4);
BUF(I32Buf, int, 4);
BUF(F32Buf, float, 4);
BUF(U64Buf, uint64_t, 8);
BUF(U128Buf, uvec4, 16);

// Index of this invocation and number of invocations over a grid whose x and y (and z) only exist
// because one dimension of a grid is limited to 65535 workgroups.
uint64_t grid_index()
{
    uint64_t group = uint64_t(gl_WorkGroupID.x) +
                     uint64_t(gl_NumWorkGroups.x) * (uint64_t(gl_WorkGroupID.y) +
                     uint64_t(gl_NumWorkGroups.y) * uint64_t(gl_WorkGroupID.z));
    return group * uint64_t(gl_WorkGroupSize.x) + uint64_t(gl_LocalInvocationID.x);
}
