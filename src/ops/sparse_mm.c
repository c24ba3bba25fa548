/* Matrix products of which only parts count: blocks by masks, segments of k. */
#include "ops/build.h"
#include "ops/rules.h"

static int32_t dim_from_end(const struct arr *a, int i)
{
    return a->shape[a->ndim - i];
}

static int32_t tiles(int32_t n, int32_t block)
{
    return n / block + (n % block != 0);
}

/* ---- what the results are ---- */

/* Of the matrix's batch, an element for each block; bool, or of dtype t. */
static bool is_mask(const struct arr *mask, const struct arr *matrix, int32_t block)
{
    int n = matrix->ndim;

    return (mask->dtype == DT_BOOL || mask->dtype == matrix->dtype) && mask->ndim == n &&
           shp_same_dims(mask->shape, matrix->shape, n - 2) &&
           dim_from_end(mask, 2) == tiles(dim_from_end(matrix, 2), block) &&
           dim_from_end(mask, 1) == tiles(dim_from_end(matrix, 1), block);
}

enum err op_infer_block_masked_mm(struct infer_call *c)
{
    int32_t block = ((const struct block_masked_mm_params *)c->params)->block;
    const struct arr *a = c->in[0], *b = c->in[1];
    struct arr out = { .ndim = a->ndim, .dtype = a->dtype };
    int32_t shape[SHP_MAX];

    FITS(block == 32 || block == 64);
    FITS(dt_is_float(dtype_of(a)) && a->dtype == b->dtype && a->ndim >= 2 && a->ndim == b->ndim);
    FITS(dim_from_end(a, 1) == dim_from_end(b, 2));
    FITS(shp_same_dims(a->shape, b->shape, a->ndim - 2));
    infer_like(c, a);
    c->out[0].shape.d[a->ndim - 1] = dim_from_end(b, 1);
    memcpy(shape, c->out[0].shape.d, sizeof shape);
    out.shape = shape;
    FITS(c->n_in == 4 || is_mask(c->in[2], &out, block));
    FITS(c->n_in == 3 ||
         (is_mask(c->in[c->n_in - 2], a, block) && is_mask(c->in[c->n_in - 1], b, block)));
    return ERR_OK;
}

enum err op_infer_segmented_mm(struct infer_call *c)
{
    const struct arr *a = c->in[0], *b = c->in[1], *segments = c->in[2];
    struct shp *shape = &c->out[0].shape;

    FITS(dt_is_float(dtype_of(a)) && a->dtype == b->dtype && a->ndim == 2 && b->ndim == 2);
    FITS(a->shape[1] == b->shape[0] && segments->dtype == DT_UINT32 && segments->ndim > 0);
    FITS(dim_from_end(segments, 1) == 2);
    if (segments->ndim + 1 > SHP_MAX)
        return err_set(ERR_ARG, "[segmented_mm] Arrays have at most %d dimensions.", SHP_MAX);
    infer_like(c, segments);
    c->out[0].dtype = dtype_of(a);
    shape->d[shape->ndim - 1] = a->shape[0];
    shape->d[shape->ndim++] = b->shape[1];
    return ERR_OK;
}

/* ---- segments ---- */

static enum err check_segmented(struct arr *a, struct arr *b, struct arr *segments)
{
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    struct shp sa, sb;

    if (a->ndim != 2 || b->ndim != 2)
        return err_set(ERR_ARG, "[segmented_mm] Batched matmul not supported");
    arr_shape(&sa, a);
    arr_shape(&sb, b);
    if (sa.d[1] != sb.d[0])
        return err_set(ERR_ARG,
                       "[segmented_mm] Last dimension of first input with shape %s must match "
                       "second to last dimension of second input with shape %s.",
                       shp_text(&sa), shp_text(&sb));
    arr_shape(&sa, segments);
    if (segments->ndim < 1 || dim_from_end(segments, 1) != 2)
        return err_set(ERR_ARG,
                       "[segmented_mm] The segments should have shape (..., 2) but %s was "
                       "provided.",
                       shp_text(&sa));
    if (!dt_is_float(t))
        return err_set(ERR_ARG,
                       "[segmented_mm] Only real floating point types are supported but %s and %s "
                       "were provided which results in %s, which is not a real floating point "
                       "type.",
                       dt_name(dtype_of(a)), dt_name(dtype_of(b)), dt_name(t));
    if (!dt_is_integer(dtype_of(segments)))
        return err_set(ERR_ARG, "[segmented_mm] Got segments with invalid dtype. Segments must be "
                                "integral.");
    return ERR_OK;
}

enum err ops_segmented_mm(struct arr **out, struct arr *a, struct arr *b, struct arr *segments,
                          struct strm *s)
{
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    struct arr *in[3] = { NULL, NULL, NULL };
    enum err err;

    TRY(check_segmented(a, b, segments));
    TRY(ops_astype(&in[0], a, t, s));
    TRY(ops_astype(&in[1], b, t, s));
    TRY(ops_astype(&in[2], segments, DT_UINT32, s));
    err = ops_make(out, OP_SEGMENTED_MM, NULL, (struct arrs){ in, 3 }, s);
out:
    arr_unref_all(in, 3);
    return err;
}

/* ---- masks ---- */

/* The operands as matrices of one batch, then the masks. */
struct masked {
    const struct ops_masked_mm *v;
    enum dtype dtype;
    bool a_is_vector, b_is_vector;
    int32_t m, n, k;
    struct shp batch;
    struct arr *in[5];
    size_t n_in;
    struct strm *strm;
};

static enum err check_masked(const struct ops_masked_mm *v)
{
    struct arr *a = v->a, *b = v->b;
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    struct shp sa, sb;

    if (v->block != 32 && v->block != 64)
        return err_set(ERR_ARG,
                       "[block_masked_mm] Only block_sizes 32, 64 are supported.Got block size "
                       "%d.",
                       v->block);
    if (a->ndim == 0 || b->ndim == 0)
        return err_set(ERR_ARG, "[block_masked_mm] Got 0 dimension input. Inputs must have at "
                                "least one dimension.");
    arr_shape(&sa, a);
    arr_shape(&sb, b);
    if (a->ndim == 1) /* as MLX shows a row and a column */
        sa = (struct shp){ 2, { 1, a->shape[0] } };
    if (b->ndim == 1)
        sb = (struct shp){ 2, { b->shape[0], 1 } };
    if (sa.d[sa.ndim - 1] != sb.d[sb.ndim - 2])
        return err_set(ERR_ARG,
                       "[block_masked_mm] Last dimension of first input with shape %s must match "
                       "second to last dimension of second input with shape %s.",
                       shp_text(&sa), shp_text(&sb));
    if (!dt_is_float(t))
        return err_set(ERR_ARG,
                       "[block_masked_mm] Only real floating point types are supported but %s and "
                       "%s were provided which results in %s, which is not a real floating point "
                       "type.",
                       dt_name(dtype_of(a)), dt_name(dtype_of(b)), dt_name(t));
    return ERR_OK;
}

/* a as matrices of the batch with these last dimensions. axes: new ones of size 1. */
static enum err add_input(struct masked *m, struct arr *a, enum dtype t, struct ints axes,
                          const int32_t dims[2])
{
    struct shp to = m->batch;
    struct arr *x = NULL;
    enum err err;

    to.d[to.ndim++] = dims[0];
    to.d[to.ndim++] = dims[1];
    TRY(ops_expand_dims(&x, a, axes, m->strm));
    STEP(x, ops_astype(&next, x, t, m->strm));
    STEP(x, ops_broadcast_to(&next, x, shp_ints(&to), m->strm));
    arr_move(&m->in[m->n_in++], &x);
out:
    arr_unref(&x);
    return err;
}

#define NEW_AXES(...)                                                                              \
    ((struct ints){ (int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ }) / 4 })

static enum err add_operands(struct masked *m)
{
    struct shp a, b;
    enum err err;

    arr_shape(&a, m->v->a);
    arr_shape(&b, m->v->b);
    m->m = m->a_is_vector ? 1 : a.d[a.ndim - 2];
    m->k = a.d[a.ndim - 1];
    m->n = m->b_is_vector ? 1 : b.d[b.ndim - 1];
    a.ndim -= m->a_is_vector ? 1 : 2;
    b.ndim -= m->b_is_vector ? 1 : 2;
    TRY(shp_broadcast(&m->batch, &a, &b, "broadcast_shapes"));
    TRY(add_input(m, m->v->a, m->dtype, (struct ints){ (int32_t[]){ 0 }, m->a_is_vector },
                  (int32_t[]){ m->m, m->k }));
    err = add_input(m, m->v->b, m->dtype, (struct ints){ (int32_t[]){ 1 }, m->b_is_vector },
                    (int32_t[]){ m->k, m->n });
out:
    return err;
}

/* Masks are bool where all that go together are, else numbers of the product's dtype. */
static enum err add_masks(struct masked *m)
{
    const struct ops_masked_mm *v = m->v;
    int32_t tm = tiles(m->m, v->block), tn = tiles(m->n, v->block), tk = tiles(m->k, v->block);
    enum dtype t = m->dtype;
    struct arr *one = NULL, *lhs = v->lhs, *rhs = v->rhs;
    enum err err = ERR_OK;

    if (v->out) {
        struct ints axes = m->a_is_vector && m->b_is_vector ? NEW_AXES(-2, -1)
                           : m->a_is_vector                 ? NEW_AXES(-2)
                           : m->b_is_vector                 ? NEW_AXES(-1)
                                                            : (struct ints){ NULL, 0 };
        TRY(add_input(m, v->out, v->out->dtype == DT_BOOL ? DT_BOOL : t, axes,
                      (int32_t[]){ tm, tn }));
    }
    if (!lhs && !rhs)
        goto out;
    TRY(arr_new_data(&one, &(uint8_t){ 1 }, &(struct shp){ 1, { 1 } }, DT_BOOL));
    lhs = lhs ? lhs : one;
    rhs = rhs ? rhs : one;
    t = lhs->dtype == DT_BOOL && rhs->dtype == DT_BOOL ? DT_BOOL : t;
    TRY(add_input(m, lhs, t, (struct ints){ (int32_t[]){ -2 }, m->a_is_vector },
                  (int32_t[]){ tm, tk }));
    err = add_input(m, rhs, t, (struct ints){ (int32_t[]){ -1 }, m->b_is_vector },
                    (int32_t[]){ tk, tn });
out:
    arr_unref(&one);
    return err;
}

enum err ops_block_masked_mm(struct arr **out, const struct ops_masked_mm *v, struct strm *s)
{
    struct block_masked_mm_params p = { v->block };
    struct masked m = { .v = v,
                        .dtype = dt_promote(dtype_of(v->a), dtype_of(v->b)),
                        .a_is_vector = v->a->ndim == 1,
                        .b_is_vector = v->b->ndim == 1,
                        .strm = s };
    struct arr *x = NULL;
    int32_t axes[2];
    size_t n = 0;
    enum err err;

    if (!v->out && !v->lhs && !v->rhs)
        return ops_matmul(out, v->a, v->b, s);
    TRY(check_masked(v));
    TRY(add_operands(&m));
    TRY(add_masks(&m));
    TRY(ops_make(&x, OP_BLOCK_MASKED_MM, &p, (struct arrs){ m.in, m.n_in }, s));
    if (m.a_is_vector)
        axes[n++] = -2;
    if (m.b_is_vector)
        axes[n++] = -1;
    err = ops_squeeze(out, x, (struct ints){ axes, n }, s);
out:
    arr_unref(&x);
    arr_unref_all(m.in, m.n_in);
    return err;
}

/* ---- gradients of products with masks ---- */

enum { A, B, OUT, LHS, RHS, ROLES };

/* The inputs of a node by their roles; NULL where there is none. */
struct roles {
    struct arr *in[ROLES];
    struct arr *turned[ROLES]; /* transposed, owned */
    struct arr *cotan;
    int32_t block;
    struct strm *strm;
};

static int role_of(size_t n_in, int input)
{
    return n_in == 4 && input >= OUT ? input + 1 : input;
}

static enum err turn(struct arr **out, struct roles *r, int role)
{
    enum err err = ERR_OK;

    if (r->in[role] && !r->turned[role])
        err = ops_swapaxes(&r->turned[role], r->in[role], -1, -2, r->strm);
    *out = r->turned[role];
    return err;
}

/* What the operand's cotangent is, in front of its mask if that is wanted itself. */
static enum err of_operand(struct arr **out, struct roles *r, int role, bool is_masked)
{
    struct ops_masked_mm v = { .block = r->block };
    int mask = role == A ? LHS : RHS;
    enum err err;

    v.out = is_masked ? r->in[mask] : NULL;
    if (role == A) {
        v.a = r->cotan;
        v.lhs = r->in[OUT];
        TRY(turn(&v.b, r, B));
        TRY(turn(&v.rhs, r, RHS));
    } else {
        TRY(turn(&v.a, r, A));
        TRY(turn(&v.lhs, r, LHS));
        v.b = r->cotan;
        v.rhs = r->in[OUT];
    }
    err = ops_block_masked_mm(out, &v, r->strm);
out:
    return err;
}

/* The sums over the blocks of x * y. */
static enum err block_sums(struct arr **out, struct arr *x, struct arr *y, const struct roles *r)
{
    int32_t block = r->block, n = x->ndim, tm = tiles(x->shape[n - 2], block),
            tn = tiles(x->shape[n - 1], block);
    struct ops_pad pad = { .axes = NEW_AXES(-2, -1),
                           .low = NEW_AXES(0, 0),
                           .high =
                               NEW_AXES(tm * block - x->shape[n - 2], tn * block - x->shape[n - 1]),
                           .mode = "constant" };
    struct arr *v = NULL, *zero = NULL;
    enum err err;

    TRY(ops_binary(&v, OP_MULTIPLY, x, y, r->strm));
    TRY(arr_new_number(&zero, 0, dtype_of(v)));
    pad.value = zero;
    STEP(v, ops_pad(&next, v, &pad, r->strm));
    STEP(v, ops_unflatten(&next, v, -1, NEW_AXES(tn, block), r->strm));
    STEP(v, ops_unflatten(&next, v, -3, NEW_AXES(tm, block), r->strm));
    err = ops_reduce(out, REDUCE_SUM, v, &(struct ops_axes){ NEW_AXES(-3, -1), false }, r->strm);
out:
    arr_unref(&v);
    arr_unref(&zero);
    return err;
}

static enum err of_mask(struct arr **out, struct roles *r, int role)
{
    struct ops_masked_mm v = {
        r->in[A], r->in[B], r->block, NULL, r->in[LHS], r->in[RHS],
    };
    struct arr *x = NULL;
    enum err err;

    if (r->in[role]->dtype == DT_BOOL)
        return err_set(ERR_ARG, "[BlockMaskedMM] Cannot calculate VJP with respect to boolean "
                                "masks. Use stop_gradient on masks to stop gradients from being "
                                "computed.");
    if (role == OUT)
        TRY(ops_block_masked_mm(&x, &v, r->strm));
    else
        TRY(of_operand(&x, r, role == LHS ? A : B, false));
    err = block_sums(out, x, role == OUT ? r->cotan : r->in[role == LHS ? A : B], r);
out:
    arr_unref(&x);
    return err;
}

enum err op_vjp_block_masked_mm(struct vjp_call *c)
{
    const struct block_masked_mm_params *p = c->f.params;
    struct roles r = { .cotan = c->cotan[0], .block = p->block, .strm = c->f.strm };
    size_t done = 0;
    enum err err = ERR_OK;

    for (size_t i = 0; i < c->f.n_in; i++)
        r.in[role_of(c->f.n_in, (int)i)] = c->f.in[i];
    for (; done < c->n_wanted; done++) {
        int role = role_of(c->f.n_in, c->wanted[done]);
        if (role <= B)
            TRY(of_operand(&c->result[done], &r, role, true));
        else
            TRY(of_mask(&c->result[done], &r, role));
    }
out:
    arr_unref_all(r.turned, ROLES);
    if (err)
        arr_unref_all(c->result, done);
    return err;
}
