/* Argument blocks of the GLSL kernels, read by the C compiler and by glslc.
 *
 * A block holds device addresses first (64 bit), then 64-bit and 32-bit fields, without padding, so
 * that C and GLSL's scalar layout agree. Up to 128 bytes travel as push constants; a larger block
 * goes through vk_enc_args, and its address is pushed. An address points at the first logical element
 * of its operand: a view's offset is already in it. */
#ifdef VULKAN /* predefined by GLSL compilers */
#define A_ADDR uint64_t
#define A_U64 uint64_t
#define A_I64 int64_t
#define A_U32 uint
#define A_I32 int
#define A_F32 float
#else
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define A_ADDR uint64_t
#define A_U64 uint64_t
#define A_I64 int64_t
#define A_U32 uint32_t
#define A_I32 int32_t
#define A_F32 float
#endif

/* A loop nest of up to 32 dimensions for one operand: what index.glsl walks. dim[ndim - 1] is the
 * innermost one; strides are in elements. Lives in memory (vk_enc_args), not in push constants. */
#define WALK_MAX 32
struct walk_args {
    A_I64 stride[WALK_MAX];
    A_U32 dim[WALK_MAX];
    A_U32 ndim;
    A_U32 reserved;
};

/* out[i] = (in ? in[i] : i) * mul + add for i < n. */
struct probe_args {
    A_ADDR in_addr, out_addr;
    A_U32 n, mul, add, reserved;
};

#ifndef VULKAN
static_assert(sizeof(struct walk_args) == 8 * WALK_MAX + 4 * WALK_MAX + 8, "padding");
static_assert(sizeof(struct probe_args) == 32, "padding");
#endif
