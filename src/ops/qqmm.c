/* Products of two quantized matrices: what x is packed to and what it stands for then, times w. */
#include "ops/build.h"
#include "ops/quant.h"
#include "ops/rules.h"

/* Largest 8-bit float times largest 4-bit float: what a matrix with a global scale is scaled to. */
#define GLOBAL_RANGE 2688.0

/* The inputs of a node by name; NULL where there is none. */
struct parts {
    struct arr *x, *w, *scales, *global_x, *global_w, *lhs, *rhs;
};

static struct parts parts_of(struct arr *const *in, const struct qqmm_params *p, bool is_gather)
{
    struct parts v = { in[0], in[1] };
    size_t n = 2;

    if (p->has_scales)
        v.scales = in[n++];
    if (p->has_global) {
        v.global_x = in[n++];
        v.global_w = in[n++];
    }
    if (is_gather) {
        v.lhs = in[n++];
        v.rhs = in[n];
    }
    return v;
}

static bool is_short_float(const struct arr *a)
{
    return dt_is_float(dtype_of(a)) && a->dtype != DT_FLOAT64;
}

/* ---- what is refused, in MLX's words ---- */

static enum err check_operand(const struct arr *a, const char *which, const char *op)
{
    if (is_short_float(a))
        return ERR_OK;
    return err_set(ERR_ARG,
                   "[%s] Only real floating types except float64 are supported but %s argument "
                   "dtype == %s.",
                   op, which, dt_name(dtype_of(a)));
}

static enum err check_parts(int32_t *outer, const struct parts *v, const struct quant_params *q,
                            const char *op)
{
    struct ops_packed w = { v->w, v->scales, NULL, { 0 } };
    struct shp sx, sw;
    enum err err;

    if (q->mode == QUANT_AFFINE)
        TRY(err_set(ERR_ARG, "[%s] Not available for quantization mode 'affine'.", op));
    TRY(quant_check_sizes(q, op));
    TRY(check_operand(v->x, "first", op));
    TRY(quant_check_global_scale(v->global_x, q, op));
    TRY(quant_check_global_scale(v->global_w, q, op));
    if (!v->global_x != !v->global_w)
        TRY(err_set(ERR_ARG,
                    "[%s] For nvfp4 mode, either both global_scale_x and global_scale_w must be "
                    "provided, or neither.",
                    op));
    arr_shape(&sx, v->x);
    arr_shape(&sw, v->w);
    if (sx.ndim < 1 || sw.ndim < 2)
        TRY(err_set(ERR_ARG, "[%s] Matrices are needed.", op));
    if (v->scales) {
        if (v->scales->dtype != DT_UINT8)
            TRY(err_set(ERR_ARG, "[%s] Scale type must be uint8 but received type %s.", op,
                        dt_name(dtype_of(v->scales))));
        TRY(quant_check_packed(&w, q, op));
        TRY(quant_check_inner(outer, v->x, v->w, &(struct quantized_matmul_params){ *q, 1 }, op));
    } else if (dtype_of(v->w) == DT_UINT32) {
        TRY(err_set(ERR_ARG, "[%s] Scales must be provided if second argument is quantized.", op));
    } else {
        TRY(check_operand(v->w, "second", op));
        if (sx.d[sx.ndim - 1] != sw.d[sw.ndim - 1])
            TRY(err_set(ERR_ARG,
                        "[%s] Last dimension of first input with shape %s must match last "
                        "dimension of second input with shape %s.",
                        op, shp_text(&sx), shp_text(&sw)));
        *outer = sw.d[sw.ndim - 2];
    }
    if (sx.d[sx.ndim - 1] % q->group_size)
        TRY(err_set(ERR_ARG,
                    "[%s] The last dimension of shape %s is no multiple of the group size %d.", op,
                    shp_text(&sx), q->group_size));
    err = ERR_OK;
out:
    return err;
}

enum err op_infer_qqmm(struct infer_call *c)
{
    const struct qqmm_params *p = c->params;
    bool is_gather = c->op == OP_GATHER_QQMM;
    struct parts v;
    struct shp *shape = &c->out[0].shape;
    int32_t outer;
    enum err err;

    FITS(c->n_in == (size_t)(2 + p->has_scales + 2 * p->has_global + 2 * is_gather));
    v = parts_of(c->in, p, is_gather);
    TRY(check_parts(&outer, &v, &p->q, is_gather ? "gather_qqmm" : "qqmm"));
    FITS(v.x->ndim >= 2);
    infer_like(c, v.x);
    if (is_gather) {
        FITS(v.lhs->dtype == DT_UINT32 && v.rhs->dtype == DT_UINT32);
        FITS(arr_same_shape(v.lhs, v.rhs));
        if (v.lhs->ndim + 2 > SHP_MAX)
            return err_set(ERR_ARG, "[gather_qqmm] Arrays have at most %d dimensions.", SHP_MAX);
        if (v.lhs->size && !(v.x->size && v.w->size))
            return err_set(ERR_ARG, "[gather_qqmm] Indices into an empty array.");
        infer_like(c, v.lhs);
        shape->d[shape->ndim++] = v.x->shape[v.x->ndim - 2];
        shape->ndim++;
    } else {
        FITS(v.x->ndim == 2 && v.w->ndim == 2);
    }
    shape->d[shape->ndim - 1] = outer;
    /* Without its global scales a product is too large for halves. */
    c->out[0].dtype = p->has_global ? DT_FLOAT32 : dtype_of(v.x);
out:
    return err;
}

/* ---- constructors ---- */

/* By what the global scales leave to be multiplied, back to x's dtype. */
static enum err global_factor(struct arr **out, struct arr *gx, struct arr *gw, struct strm *s)
{
    struct arr *x = NULL, *c = NULL;
    enum err err;

    TRY(arr_new_number(&c, 1 / (GLOBAL_RANGE * GLOBAL_RANGE), DT_FLOAT32));
    TRY(ops_binary(&x, OP_MULTIPLY, gx, gw, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, c, s));
    TRY(ops_reshape(out, x, (struct ints){ NULL, 0 }, s));
out:
    arr_unref(&x);
    arr_unref(&c);
    return err;
}

static enum err make(struct arr **out, const struct parts *v, const struct qqmm_params *p,
                     struct strm *s)
{
    struct arr *list[] = { v->x, v->w, v->scales, v->global_x, v->global_w, v->lhs, v->rhs };
    struct arr *in[ARRAY_LEN(list)], *x = NULL, *factor = NULL;
    size_t n = 0;
    enum err err;

    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        if (list[i])
            in[n++] = list[i];
    TRY(ops_make(&x, v->lhs ? OP_GATHER_QQMM : OP_QQMM, p, (struct arrs){ in, n }, s));
    if (p->has_global) {
        TRY(global_factor(&factor, v->global_x, v->global_w, s));
        STEP(x, ops_binary(&next, OP_MULTIPLY, x, factor, s));
    }
    err = ops_astype(out, x, dtype_of(v->x), s);
out:
    arr_unref(&x);
    arr_unref(&factor);
    return err;
}

static enum err params_of(struct qqmm_params *p, const struct ops_qqmm *v, const char *op)
{
    p->has_scales = v->scales != NULL;
    p->has_global = v->global_x || v->global_w;
    return quant_parse_mode(&p->q, &v->q, op);
}

enum err ops_qqmm(struct arr **out, const struct ops_qqmm *v, struct strm *s)
{
    struct parts in = { NULL, v->w, v->scales, v->global_x, v->global_w };
    struct qqmm_params p = { 0 };
    struct arr *x = arr_ref(v->x);
    int32_t outer;
    enum err err;

    TRY(params_of(&p, v, "qqmm"));
    if (v->x->ndim == 1)
        STEP(x, ops_expand_dims(&next, x, (struct ints){ (int32_t[]){ 0 }, 1 }, s));
    else if (v->w->ndim == 2 && v->x->ndim > 2)
        STEP(x, ops_flatten(&next, x, 0, -2, s));
    if (x->ndim > 2 || v->w->ndim > 2)
        TRY(err_set(ERR_ARG,
                    "[qqmm] Only 2D inputs are supported but x.ndim() == %d and w.ndim() == %d.",
                    x->ndim, v->w->ndim));
    in.x = x;
    TRY(check_parts(&outer, &in, &p.q, "qqmm"));
    STEP(x, make(&next, &in, &p, s));
    if (v->x->ndim == 1)
        STEP(x, ops_squeeze(&next, x, (struct ints){ (int32_t[]){ 0 }, 1 }, s));
    else if (v->x->ndim > 2)
        STEP(x, ops_unflatten(&next, x, 0, (struct ints){ v->x->shape, v->x->ndim - 1u }, s));
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

enum err ops_gather_qqmm(struct arr **out, const struct ops_qqmm *v, struct arr *lhs_indices,
                         struct arr *rhs_indices, struct strm *s)
{
    struct parts in = { v->x, v->w, v->scales, v->global_x, v->global_w };
    struct arr *numbers[2] = { NULL, NULL }, *both[2] = { NULL, NULL };
    struct qqmm_params p = { 0 };
    int32_t outer;
    enum err err;

    TRY(params_of(&p, v, "gather_qqmm"));
    TRY(check_parts(&outer, &in, &p.q, "gather_qqmm"));
    TRY(ops_matrix_numbers(&numbers[0], lhs_indices, v->x, "gather_qqmm", s));
    TRY(ops_matrix_numbers(&numbers[1], rhs_indices, v->w, "gather_qqmm", s));
    TRY(ops_align(both, numbers, DT_UINT32, s));
    in.lhs = both[0];
    in.rhs = both[1];
    err = make(out, &in, &p, s);
out:
    arr_unref_all(numbers, 2);
    arr_unref_all(both, 2);
    return err;
}

/* ---- gradient: as of a product of what is not packed, with its operands packed again ---- */

/* left @ right^T, both transposed first where asked for; scaled as the product of the node is. */
static enum err product(struct arr **out, const struct vjp_call *c, bool of_w, struct arr *global)
{
    const struct qqmm_params *p = c->f.params;
    struct parts in = parts_of(c->f.in, p, false);
    struct ops_qqmm v = { .q = { &p->q.group_size, &p->q.bits, quant_mode_words.word[p->q.mode] },
                          .global_x = global,
                          .global_w = of_w ? in.global_x : in.global_w };
    struct arr *left = NULL, *right = NULL, *factor = NULL, *x = NULL;
    struct strm *s = c->f.strm;
    enum err err;

    TRY(ops_astype(&left, c->cotan[0], dtype_of(in.x), s));
    if (of_w)
        STEP(left, ops_swapaxes(&next, left, -1, -2, s));
    TRY(ops_swapaxes(&right, of_w ? in.x : in.w, -1, -2, s));
    v.x = left;
    v.w = right;
    TRY(ops_qqmm(&x, &v, s));
    if (p->has_global) {
        TRY(global_factor(&factor, in.global_x, in.global_w, s));
        STEP(x, ops_binary(&next, OP_DIVIDE, x, factor, s));
    }
    err = ops_astype(out, x, dtype_of(of_w ? in.w : in.x), s);
out:
    arr_unref(&left);
    arr_unref(&right);
    arr_unref(&factor);
    arr_unref(&x);
    return err;
}

enum err op_vjp_qqmm(struct vjp_call *c)
{
    const struct qqmm_params *p = c->f.params;
    struct arr *global = NULL;
    size_t done = 0;
    enum err err = ERR_OK;

    if (p->has_scales)
        return op_no_rule(OP_QQMM, "gradient");
    if (p->has_global) {
        TRY(ops_unary(&global, OP_ABS, c->cotan[0], c->f.strm));
        STEP(global, ops_reduce(&next, REDUCE_MAX, global, &(struct ops_axes){ INTS_ALL, false },
                                c->f.strm));
    }
    for (; done < c->n_wanted; done++)
        if (c->wanted[done] < 2)
            TRY(product(&c->result[done], c, c->wanted[done] == 1, global));
out:
    arr_unref(&global);
    if (err)
        arr_unref_all(c->result, done);
    return err;
}
