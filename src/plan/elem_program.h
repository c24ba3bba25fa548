/* Elementwise programs: what a chain of unary, binary and ternary ops computes for one element.
 *
 * Values are numbered: the inputs first, then the result of each instruction. Every instruction
 * rounds its result to its own dtype, so that a program of many gives the same bits as many
 * programs of one. A lone op is a program of one instruction; a copy is a program of none. */
#pragma once

#include "base/common.h"
#include "graph/dtype.h"
#include "graph/op.h"

#define ELEM_PROGRAM_MAX_IN 12
#define ELEM_PROGRAM_MAX_INS 32
#define ELEM_PROGRAM_MAX_OUT 4

struct elem_program_ins {
    uint16_t op;   /* enum op_id: unary, binary, ternary, AsType; Arange in programs of one */
    uint8_t dtype; /* of the result */
    uint8_t n_args;
    uint8_t arg[4]; /* value numbers; the fourth is always 0 */
};

struct elem_program {
    uint8_t n_in, n_ins, n_out;
    uint8_t in_dtype[ELEM_PROGRAM_MAX_IN];
    uint8_t out[ELEM_PROGRAM_MAX_OUT]; /* value numbers */
    struct elem_program_ins ins[ELEM_PROGRAM_MAX_INS];
};

/* dtype of a value number. */
static inline enum dtype elem_program_dtype(const struct elem_program *f, int value)
{
    return (enum dtype)(value < f->n_in ? f->in_dtype[value] : f->ins[value - f->n_in].dtype);
}

/* Hash and equality over the used part only. */
uint64_t elem_program_hash(const struct elem_program *f);
bool elem_program_equal(const struct elem_program *a, const struct elem_program *b);
