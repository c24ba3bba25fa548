/* What a node owns besides the bytes of its parameters: a function of the caller, a kernel of one's
 * own, whatever needs a destructor. Counted; nodes share it. */
#pragma once

#include "base/mem.h"

struct op_state;

struct op_state_class {
    /* After the last reference is gone. */
    void (*destroy)(struct op_state *s);
    /* States that compute the same are equal and have equal hashes; both are of this class. A class
     * whose states are never alike compares addresses. */
    uint64_t (*hash)(const struct op_state *s);
    bool (*equal)(const struct op_state *a, const struct op_state *b);
    /* Writes at most n bytes, for graphs that are printed. */
    void (*print)(const struct op_state *s, char *buf, size_t n);
};

/* The beginning of a state; made with one reference. */
struct op_state {
    refcount rc;
    const struct op_state_class *class;
};

static inline struct op_state *op_state_ref(struct op_state *s)
{
    if (s)
        ref_inc(&s->rc);
    return s;
}

static inline void op_state_unref(struct op_state **ps)
{
    struct op_state *s = *ps;

    *ps = NULL;
    if (s && ref_dec(&s->rc))
        s->class->destroy(s);
}

/* Either may be NULL. */
static inline bool op_state_equal(const struct op_state *a, const struct op_state *b)
{
    return a == b || (a && b && a->class == b->class && a->class->equal(a, b));
}
