/* What the rules of ops (the columns of ops.def) are called with. */
#pragma once

#include "graph/array.h"
#include "graph/op.h"

/* Split has the most, one more than it has cuts, but for ops that hand inputs over: these have no
 * more outputs than inputs. */
#define OP_MAX_OUT (SHP_MAX + 1)

/* From parameters and inputs to what the outputs will be. A rule writes out and, where it is not 1,
 * n_out, and fails where parameters and inputs do not make a node. It may read what op_infer has
 * made sure of: as many inputs as the row of ops.def allows, and parameters that
 * op_params_check accepts. */
struct infer_call {
    enum op_id op;
    const void *params;
    struct arr *const *in;
    size_t n_in;
    const struct op_state *state; /* of the node; NULL for most ops */
    size_t n_out;
    struct out_desc *out; /* room for MAX(OP_MAX_OUT, n_in) */
};

/* ---- transforms ----
 *
 * A rule gets an application of its op and makes what it needs of constructors. Arrays that it is
 * given are borrowed; results, NULL before the call, are new references, or stay NULL for zeros,
 * which transforms do not carry around. After a failure there are no results. strm is where new
 * nodes run. */

struct vjp_call;
struct jvp_call;
struct vmap_call;

/* Rules that follow from what an op is made of (ops_parts), for rules that have nothing better. */
struct by_parts {
    enum err (*vjp)(struct vjp_call *c);
    enum err (*jvp)(struct jvp_call *c);
    enum err (*vmap)(struct vmap_call *c);
};

struct op_apply {
    enum op_id op;
    const void *params;
    struct op_state *state;
    struct arr *const *in;
    size_t n_in, n_out;
    struct strm *strm;
    const struct by_parts *by_parts;
};

/* From the cotangents of the outputs to those of some inputs. A cotangent has shape and dtype of
 * its array. */
struct vjp_call {
    struct op_apply f;
    struct arr *const *out;   /* what the op gave, one for each output */
    struct arr *const *cotan; /* likewise; NULL: zero, but not all of them */
    const int *wanted;        /* numbers of inputs */
    size_t n_wanted;
    struct arr **result; /* one for each that is wanted */
};

/* From the tangents of the inputs to those of the outputs. */
struct jvp_call {
    struct op_apply f;
    struct arr *const *out;
    struct arr *const *tan; /* one for each input; NULL: zero, but not all of them */
    struct arr **result;    /* one for each output */
};

/* The op over a batch: some inputs have one axis more. */
#define VMAP_NONE (-1)
struct vmap_call {
    struct op_apply f;
    const int *axis;     /* of each input, which axis is the batch's; VMAP_NONE: it has none */
    struct arr **result; /* one for each output */
    int *out_axis;       /* likewise: where the batch is in the result, or VMAP_NONE */
};

/* ---- */

/* The op's rule. For what may be wrong in any way, such as a node that a file describes; params are
 * as long as op_params_size says. */
MUST_CHECK enum err op_infer(struct infer_call *c);
