/* Instructions of elementwise programs as code of a module that is being written. */
#pragma once

#include "backend/vulkan/jit/elementwise_words.h"

struct elem_code {
    struct spv *m;
    const struct elem_program *f;
    const struct elem_call *calls; /* of elem_resolve */
    struct words *words;           /* its zero is set if elem_needs_zero */
};

/* True if some instruction needs a zero that the driver cannot know. */
bool elem_needs_zero(const struct elem_program *f);
/* Instruction i of the program: the id of its result, rounded where somebody computes with it.
 * values: ids by value number. */
uint32_t elem_instruction(const struct elem_code *c, int i, const uint32_t *values);
/* What follows on the function of instruction i, whose result is v. */
uint32_t elem_settle(const struct elem_code *c, int i, uint32_t v);
