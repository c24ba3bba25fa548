/* Between memory and the values of an elementwise kernel: elements are loaded and stored as 32-bit
 * words, several at a time, and unpacked into the working types of their dtypes. */
#pragma once

#include "backend/vulkan/jit/elementwise_fn.h"

struct words {
    struct spv *m;
    uint32_t align; /* of every address, in bytes */
    bool native_half;
    uint32_t t_u32, t_u64;
    uint32_t zero; /* one that the driver cannot know; native_half only */
};

/* bytes: 1, 2 or a multiple of 4; smaller ones leave zeros above them. In accesses as wide as the
 * alignment allows. addr is the id of a 64-bit integer. */
void words_load(struct words *w, uint32_t *words, uint32_t addr, uint32_t bytes);
void words_store(struct words *w, const uint32_t *words, uint32_t addr, uint32_t bytes);
/* The value of element `lane` of those in words. */
uint32_t words_value(struct words *w, const uint32_t *words, uint32_t lane, enum dtype t);
/* The words of n values, which are rounded to the dtype. */
void words_pack(struct words *w, uint32_t *words, const uint32_t *values, uint32_t n, enum dtype t);

/* A value as a store and a load would leave it, for dtypes smaller than a word. */
uint32_t words_round(struct words *w, uint32_t value, enum dtype t);
