/* Functions of arrays, as transformations take and make them: a caller's callback, or one made of
 * other functions. Counted; results are new references. */
#pragma once

#include "graph/array.h"
#include "io/io.h"
#include "ops/ops.h"

/* What a function gives: owned references, where NULL stands for zeros if the comment says so. */
struct outs {
    struct arr **v;
    size_t n;
};

/* n times NULL; o holds nothing before. */
MUST_CHECK enum err outs_init(struct outs *o, size_t n);
/* New references to what is in a. */
MUST_CHECK enum err outs_copy(struct outs *o, struct arrs a);
void outs_fini(struct outs *o);
static inline struct arrs outs_arrs(const struct outs *o)
{
    return (struct arrs){ o->v, o->n };
}

/* The beginning of every function; made with one reference. */
struct counted {
    refcount rc;
    void (*destroy)(void *self);
};

static inline void *counted_ref(void *self)
{
    if (self)
        ref_inc(&((struct counted *)self)->rc);
    return self;
}

static inline void counted_unref(void *self)
{
    if (self && ref_dec(&((struct counted *)self)->rc))
        ((struct counted *)self)->destroy(self);
}

/* In all of these out-parameters hold nothing before, and nothing after a failure. */
struct fun {
    struct counted counted;
    enum err (*call)(struct fun *f, struct arrs in, struct outs *out);
};

/* With named arguments, sorted by name. */
struct fun_named {
    struct counted counted;
    enum err (*call)(struct fun_named *f, struct arrs in, const struct io_arrays *named,
                     struct outs *out);
};

struct fun_grad {
    struct counted counted;
    enum err (*call)(struct fun_grad *f, struct arrs in, struct outs *values, struct outs *grads);
};

/* Rules of a custom function. Gradients of all primals; */
struct fun_vjp {
    struct counted counted;
    enum err (*call)(struct fun_vjp *f, struct arrs primals, struct arrs cotans, struct arrs outs,
                     struct outs *grads);
};
/* tangents of all outputs from those of some primals, which argnums name; */
struct fun_jvp {
    struct counted counted;
    enum err (*call)(struct fun_jvp *f, struct arrs primals, struct arrs tangents,
                     struct ints argnums, struct outs *out);
};
/* outputs over a batch: an axis, or -1 without one, of each input and of each output. *out_axes is
 * from mem_alloc, one for each output. */
struct fun_vmap {
    struct counted counted;
    enum err (*call)(struct fun_vmap *f, struct arrs in, struct ints axes, struct outs *out,
                     int32_t **out_axes);
};
