#include "backend/vulkan/jit/elementwise_code.h"

/* A cast to a floating type in which the driver may find a constant: the zero that completes a
 * complex number, or a comparison of something with itself. */
static bool may_be_constant(const struct elem_program *f, int i)
{
    const struct elem_program_ins *ins = &f->ins[i];
    enum dtype from = ins->op == OP_ASTYPE ? elem_program_dtype(f, ins->arg[0]) : DT_COMPLEX64;

    return dt_is_inexact((enum dtype)ins->dtype) &&
           (ins->dtype == DT_COMPLEX64 ? from != DT_COMPLEX64 : !dt_is_inexact(from));
}

bool elem_needs_zero(const struct elem_program *f)
{
    bool needs = false;

    for (int i = 0; i < f->n_ins; i++)
        needs |= may_be_constant(f, i);
    return needs;
}

/* Mesa's llvmpipe takes x * 0 for 0 and x / 0 for anything where it knows the zero, whatever x is.
 * It cannot know the bits after a zero that is unknown to it has met them. */
static uint32_t hide_constant(const struct elem_code *c, uint32_t v, uint32_t type, bool is_complex)
{
    uint32_t bits = c->words->t_u32, zero = c->words->zero;

    if (is_complex) {
        bits = spv_type_vector(c->m, bits, 2);
        zero = spv_op(c->m, SpvOpCompositeConstruct, bits, zero, zero);
    }
    v = spv_op(c->m, SpvOpBitcast, bits, v);
    return spv_op(c->m, SpvOpBitcast, type, spv_op(c->m, SpvOpBitwiseXor, bits, v, zero));
}

static uint32_t result_type(const struct elem_code *c, int i)
{
    return work_spv_type(c->m, (enum work_type)work_type((enum dtype)c->f->ins[i].dtype));
}

uint32_t elem_settle(const struct elem_code *c, int i, uint32_t v)
{
    enum dtype t = (enum dtype)c->f->ins[i].dtype;

    if (may_be_constant(c->f, i))
        v = hide_constant(c, v, result_type(c, i), t == DT_COMPLEX64);
    return c->calls[i].must_round ? words_round(c->words, v, t) : v;
}

uint32_t elem_instruction(const struct elem_code *c, int i, const uint32_t *values)
{
    const struct elem_program_ins *ins = &c->f->ins[i];
    uint32_t operands[5] = { 0 };

    for (int a = 0; a < ins->n_args; a++)
        operands[1 + a] = values[ins->arg[a]];
    if (c->calls[i].fn < 0)
        return elem_settle(c, i, operands[1]);
    operands[0] = spv_lib_id(c->m, c->calls[i].fn);
    return elem_settle(
        c, i, spv_emit(c->m, SpvOpFunctionCall, result_type(c, i), operands, 1 + ins->n_args));
}
