/* Building graphs in expressions.
 *
 * A graph owns the arrays that its functions return, and remembers the first failure: after one,
 * every function returns NULL without doing anything, and graph_end reports it. So a model reads as
 * its formulas. Arguments are borrowed. Thread-safety: caller's own. */
#pragma once

#include "base/mem.h"
#include "eval/program.h"
#include "graph/array.h"
#include "ops/ops.h"

struct lm_moves {
    struct program_move *v;
    size_t n, cap;
};

struct lm_graph {
    struct strm *s;
    enum err err;
    VEC(struct arr *) made;
    struct lm_moves moves; /* for whoever makes a program of the graph */
};

void graph_begin(struct lm_graph *g, struct strm *s);
/* Drops what was made and returns the first failure. */
MUST_CHECK enum err graph_end(struct lm_graph *g);
/* Takes over a reference with the outcome of the call that made it. */
struct arr *graph_own(struct lm_graph *g, struct arr *a, enum err err);
/* A reference of the caller's own in *out, whose old one is dropped. */
void graph_keep(struct lm_graph *g, struct arr **out, struct arr *a);

/* Notes that a, which it returns, stands at a position of the text. */
struct arr *graph_moves(struct lm_graph *g, struct arr *a, int axis);

/* ---- formulas ---- */

struct arr *g_unary(struct lm_graph *g, enum op_id op, struct arr *a);
struct arr *g_binary(struct lm_graph *g, enum op_id op, struct arr *a, struct arr *b);
/* With a number of a's dtype. */
struct arr *g_scale(struct lm_graph *g, struct arr *a, double factor);
struct arr *g_astype(struct lm_graph *g, struct arr *a, enum dtype t);
struct arr *g_silu(struct lm_graph *g, struct arr *a);
struct arr *g_matmul(struct lm_graph *g, struct arr *a, struct arr *b);
struct arr *g_rms_norm(struct lm_graph *g, struct arr *x, struct arr *weight, float eps);
struct arr *g_rope(struct lm_graph *g, struct arr *x, const struct ops_rope *r);
struct arr *g_sdpa(struct lm_graph *g, const struct ops_sdpa *a);
/* Shapes of up to four dimensions; -1 is worked out. */
struct arr *g_reshape(struct lm_graph *g, struct arr *a, const int32_t *shape, size_t n);
struct arr *g_transpose(struct lm_graph *g, struct arr *a, const int32_t *axes, size_t n);
struct arr *g_expand_dims(struct lm_graph *g, struct arr *a, int axis);
struct arr *g_squeeze(struct lm_graph *g, struct arr *a, int axis);
/* a[..., start:stop, ...] along one axis; negative positions count from the end. */
struct arr *g_slice(struct lm_graph *g, struct arr *a, int axis, int start, int stop);
/* a with [..., start:start + update's size, ...] along one axis replaced. */
struct arr *g_slice_update(struct lm_graph *g, struct arr *a, struct arr *update, int axis,
                           int start);
struct arr *g_take(struct lm_graph *g, struct arr *a, struct arr *indices, int axis);
struct arr *g_concatenate(struct lm_graph *g, struct arr *a, struct arr *b, int axis);
struct arr *g_zeros(struct lm_graph *g, const int32_t *shape, size_t n, enum dtype t);
struct arr *g_softmax(struct lm_graph *g, struct arr *a, bool precise);
struct arr *g_sum(struct lm_graph *g, struct arr *a, int axis, bool keepdims);
/* Over the last axis, which goes. */
struct arr *g_argmax(struct lm_graph *g, struct arr *a);

#define SHAPE(...) (const int32_t[]){ __VA_ARGS__ }, ARRAY_LEN(((const int32_t[]){ __VA_ARGS__ }))
