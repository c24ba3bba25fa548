/* Decoders of GGUF's quantized blocks, one per row of codec.def. Private to codec*.c. */
#pragma once

#include "base/common.h"

void decode_q4_0_w(void *dst, const void *src, size_t n);
void decode_q4_0_s(void *dst, const void *src, size_t n);
void decode_q4_0_b(void *dst, const void *src, size_t n);
void decode_q4_1_w(void *dst, const void *src, size_t n);
void decode_q4_1_s(void *dst, const void *src, size_t n);
void decode_q4_1_b(void *dst, const void *src, size_t n);
void decode_q8_0_w(void *dst, const void *src, size_t n);
void decode_q8_0_s(void *dst, const void *src, size_t n);
void decode_q8_0_b(void *dst, const void *src, size_t n);

void decode_q5_0(void *dst, const void *src, size_t n);
void decode_q5_1(void *dst, const void *src, size_t n);
void decode_iq4_nl(void *dst, const void *src, size_t n);
void decode_mxfp4(void *dst, const void *src, size_t n);
void decode_q2_k(void *dst, const void *src, size_t n);
void decode_q3_k(void *dst, const void *src, size_t n);
void decode_q4_k(void *dst, const void *src, size_t n);
void decode_q5_k(void *dst, const void *src, size_t n);
void decode_q6_k(void *dst, const void *src, size_t n);
void decode_q8_k(void *dst, const void *src, size_t n);
void decode_iq4_xs(void *dst, const void *src, size_t n);
