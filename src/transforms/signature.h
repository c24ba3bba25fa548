/* What functions in files are found by: the inputs that they were traced on. */
#pragma once

#include "base/text.h"
#include "transforms/fun.h"

/* All inputs; the last n_names have names, which are sorted. Borrowed. */
struct signature {
    const struct out_desc *in;
    size_t n;
    const char *const *names;
    size_t n_names;
};

/* What a function is called with: no names is NULL. */
struct call_inputs {
    struct arrs in;
    const struct io_arrays *named;
};

static inline size_t call_named(const struct call_inputs *c)
{
    return c->named ? c->named->list.n : 0;
}

/* The i-th of all. */
static inline struct arr *call_input(const struct call_inputs *c, size_t i)
{
    return i < c->in.n ? c->in.v[i] : c->named->list.v[i - c->in.n].arr;
}

/* Whether the call gives all names, and as many inputs, in the order of their names behind those
 * without; what has a name in the call may lack one in the signature. Shapeless: but for the sizes
 * of dimensions. */
bool signature_fits(const struct signature *s, const struct call_inputs *c, bool shapeless);

/* Lines that say what a function takes, what a call gives it. */
MUST_CHECK enum err signature_print(struct text *t, const struct signature *s, size_t number);
MUST_CHECK enum err call_print(struct text *t, const struct call_inputs *c);
