#include "plan/elem_program.h"

#include <string.h>

#include "base/hash.h"

uint64_t elem_program_hash(const struct elem_program *f)
{
    uint64_t h =
        hash_mix(HASH_SEED, (uint64_t)f->n_in | (uint64_t)f->n_ins << 8 | (uint64_t)f->n_out << 16);

    h = hash_bytes(h, f->in_dtype, f->n_in);
    h = hash_bytes(h, f->out, f->n_out);
    return hash_bytes(h, f->ins, f->n_ins * sizeof f->ins[0]);
}

bool elem_program_equal(const struct elem_program *a, const struct elem_program *b)
{
    return a->n_in == b->n_in && a->n_ins == b->n_ins && a->n_out == b->n_out &&
           memcmp(a->in_dtype, b->in_dtype, a->n_in) == 0 &&
           memcmp(a->out, b->out, a->n_out) == 0 &&
           memcmp(a->ins, b->ins, a->n_ins * sizeof a->ins[0]) == 0;
}
