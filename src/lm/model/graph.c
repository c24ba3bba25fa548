#include "lm/model/graph.h"

/* Arrays of a step of some thirty layers: growing towards that costs as much as making them. */
#define EXPECTED 1536

void graph_begin(struct lm_graph *g, struct strm *s)
{
    *g = (struct lm_graph){ .s = s };
    g->err = VEC_RESERVE(&g->made, EXPECTED);
}

enum err graph_end(struct lm_graph *g)
{
    for (size_t i = 0; i < g->made.n; i++)
        arr_unref(&g->made.v[i]);
    VEC_FINI(&g->made);
    VEC_FINI(&g->moves);
    return g->err;
}

struct arr *graph_own(struct lm_graph *g, struct arr *a, enum err err)
{
    if (!err && (err = VEC_PUSH(&g->made, a)) == ERR_OK)
        return a;
    if (!g->err)
        g->err = err;
    arr_unref(&a);
    return NULL;
}

void graph_keep(struct lm_graph *g, struct arr **out, struct arr *a)
{
    if (g->err)
        return;
    arr_ref(a);
    arr_unref(out);
    *out = a;
}

struct arr *graph_moves(struct lm_graph *g, struct arr *a, int axis)
{
    if (!g->err)
        g->err = VEC_PUSH(&g->moves, (struct program_move){ a, axis });
    return a;
}

/* The body of a formula: nothing after a failure, else the call, which writes &out. */
#define MAKE(g, call)                                                                              \
    struct arr *out = NULL;                                                                        \
    if ((g)->err)                                                                                  \
        return NULL;                                                                               \
    enum err err_ = (call);                                                                        \
    return graph_own(g, out, err_)

struct arr *g_unary(struct lm_graph *g, enum op_id op, struct arr *a)
{
    MAKE(g, ops_unary(&out, op, a, g->s));
}

struct arr *g_binary(struct lm_graph *g, enum op_id op, struct arr *a, struct arr *b)
{
    MAKE(g, ops_binary(&out, op, a, b, g->s));
}

static struct arr *number_like(struct lm_graph *g, struct arr *a, double value)
{
    MAKE(g, arr_new_number(&out, value, (enum dtype)a->dtype));
}

struct arr *g_scale(struct lm_graph *g, struct arr *a, double factor)
{
    return g_binary(g, OP_MULTIPLY, a, number_like(g, a, factor));
}

struct arr *g_astype(struct lm_graph *g, struct arr *a, enum dtype t)
{
    MAKE(g, ops_astype(&out, a, t, g->s));
}

struct arr *g_silu(struct lm_graph *g, struct arr *a)
{
    return g_binary(g, OP_MULTIPLY, a, g_unary(g, OP_SIGMOID, a));
}

struct arr *g_matmul(struct lm_graph *g, struct arr *a, struct arr *b)
{
    MAKE(g, ops_matmul(&out, a, b, g->s));
}

struct arr *g_rms_norm(struct lm_graph *g, struct arr *x, struct arr *weight, float eps)
{
    MAKE(g, ops_rms_norm(&out, x, weight, eps, g->s));
}

struct arr *g_rope(struct lm_graph *g, struct arr *x, const struct ops_rope *r)
{
    MAKE(g, ops_rope(&out, x, r, g->s));
}

struct arr *g_sdpa(struct lm_graph *g, const struct ops_sdpa *a)
{
    MAKE(g, ops_sdpa(&out, a, g->s));
}

struct arr *g_reshape(struct lm_graph *g, struct arr *a, const int32_t *shape, size_t n)
{
    MAKE(g, ops_reshape(&out, a, (struct ints){ shape, n }, g->s));
}

struct arr *g_transpose(struct lm_graph *g, struct arr *a, const int32_t *axes, size_t n)
{
    MAKE(g, ops_transpose(&out, a, (struct ints){ axes, n }, g->s));
}

struct arr *g_expand_dims(struct lm_graph *g, struct arr *a, int axis)
{
    MAKE(g, ops_expand_dims(&out, a, (struct ints){ &(int32_t){ axis }, 1 }, g->s));
}

struct arr *g_squeeze(struct lm_graph *g, struct arr *a, int axis)
{
    MAKE(g, ops_squeeze(&out, a, (struct ints){ &(int32_t){ axis }, 1 }, g->s));
}

/* A region that is all of a but on one axis. */
struct region {
    int32_t start[SHP_MAX], stop[SHP_MAX], step[SHP_MAX];
};

static struct ops_slice along(struct region *r, const struct arr *a, int axis, int start, int stop)
{
    size_t n = a->ndim;

    for (size_t i = 0; i < n; i++) {
        r->start[i] = 0;
        r->stop[i] = a->shape[i];
        r->step[i] = 1;
    }
    axis = axis < 0 ? axis + a->ndim : axis;
    r->start[axis] = start;
    r->stop[axis] = stop;
    return (struct ops_slice){ { r->start, n }, { r->stop, n }, { r->step, n } };
}

struct arr *g_slice(struct lm_graph *g, struct arr *a, int axis, int start, int stop)
{
    struct region r;

    if (g->err)
        return NULL;
    struct ops_slice v = along(&r, a, axis, start, stop);
    MAKE(g, ops_slice(&out, a, &v, g->s));
}

struct arr *g_slice_update(struct lm_graph *g, struct arr *a, struct arr *update, int axis,
                           int start)
{
    struct region r;

    if (g->err)
        return NULL;
    int stop = start + update->shape[axis < 0 ? axis + a->ndim : axis];
    struct ops_slice_update u = { .update = update,
                                  .region = along(&r, a, axis, start, stop),
                                  .kind = UPDATE_NONE };
    MAKE(g, ops_slice_update(&out, a, &u, g->s));
}

struct arr *g_take(struct lm_graph *g, struct arr *a, struct arr *indices, int axis)
{
    MAKE(g, ops_take(&out, a, indices, axis, g->s));
}

struct arr *g_concatenate(struct lm_graph *g, struct arr *a, struct arr *b, int axis)
{
    MAKE(g, ops_concatenate(&out, (struct arrs){ (struct arr *[]){ a, b }, 2 }, axis, g->s));
}

struct arr *g_zeros(struct lm_graph *g, const int32_t *shape, size_t n, enum dtype t)
{
    MAKE(g, ops_fill(&out, (struct ints){ shape, n }, 0, t, g->s));
}

struct arr *g_softmax(struct lm_graph *g, struct arr *a, bool precise)
{
    MAKE(g, ops_softmax(&out, a, (struct ints){ &(int32_t){ -1 }, 1 }, precise, g->s));
}

struct arr *g_sum(struct lm_graph *g, struct arr *a, int axis, bool keepdims)
{
    MAKE(g, ops_reduce(&out, REDUCE_SUM, a,
                       &(struct ops_axes){ { &(int32_t){ axis }, 1 }, keepdims }, g->s));
}

struct arr *g_argmax(struct lm_graph *g, struct arr *a)
{
    MAKE(g,
         ops_arg_reduce(&out, true, a, &(struct ops_axes){ { &(int32_t){ -1 }, 1 }, false }, g->s));
}
