/* Packing numbers into few bits, and products with packed matrices. */
#include "ops/quant.h"
#include "ops/rules.h"

#include <stdio.h>

/* ---- modes ---- */

static const struct {
    int32_t group_size, bits;
} modes[] = {
    [QUANT_AFFINE] = { 64, 4 },
    [QUANT_MXFP4] = { 32, 4 },
    [QUANT_MXFP8] = { 32, 8 },
    [QUANT_NVFP4] = { 16, 4 },
};

enum err quant_parse_mode(struct quant_params *p, const struct ops_quant *q, const char *op)
{
    for (int i = 0; i < quant_mode_words.n; i++) {
        if (strcmp(quant_mode_words.word[i], q->mode) != 0)
            continue;
        p->mode = i;
        p->group_size = q->group_size ? *q->group_size : modes[i].group_size;
        p->bits = q->bits ? *q->bits : modes[i].bits;
        return ERR_OK;
    }
    return err_set(ERR_ARG, "[%s] Invalid quantization mode '%s'.", op, q->mode);
}

enum err quant_check_sizes(const struct quant_params *p, const char *op)
{
    int32_t group = modes[p->mode].group_size, bits = modes[p->mode].bits;

    if (p->mode == QUANT_AFFINE) {
        if (p->group_size != 32 && p->group_size != 64 && p->group_size != 128)
            return err_set(ERR_ARG,
                           "[%s] The requested group size %d is not supported. The supported group "
                           "sizes are 32, 64, and 128.",
                           op, p->group_size);
        if (p->bits < 1 || p->bits > 8 || p->bits == 7)
            return err_set(ERR_ARG,
                           "[%s] The requested number of bits %d is not supported. The supported "
                           "bits are 1, 2, 3, 4, 5, 6 and 8.",
                           op, p->bits);
        return ERR_OK;
    }
    if (p->group_size != group)
        return err_set(ERR_ARG, "[%s] %s quantization requires group size %d but got %d.", op,
                       quant_mode_words.word[p->mode], group, p->group_size);
    if (p->bits != bits)
        return err_set(ERR_ARG, "[%s] %s quantization requires bits to be %d but got %d.", op,
                       quant_mode_words.word[p->mode], bits, p->bits);
    return ERR_OK;
}

enum err quant_check_global_scale(const struct arr *g, const struct quant_params *p, const char *op)
{
    struct shp shape;

    if (!g)
        return ERR_OK;
    if (p->mode != QUANT_NVFP4)
        return err_set(ERR_ARG,
                       "[%s] Global scale is only supported for 'nvfp4' quantization mode.", op);
    arr_shape(&shape, g);
    if (g->size != 1)
        return err_set(ERR_ARG, "[%s] Global scale must be a scalar but got shape %s.", op,
                       shp_text(&shape));
    if (dtype_of(g) != DT_FLOAT32)
        return err_set(ERR_ARG, "[%s] Global scale must have dtype float32 but got %s.", op,
                       dt_name(dtype_of(g)));
    return ERR_OK;
}

/* Scales and biases suit the mode. *type: what they promote to. */
static enum err check_scales(enum dtype *type, const struct ops_packed *w,
                             const struct quant_params *p, const char *op)
{
    *type = DT_BFLOAT16;
    if (p->mode != QUANT_AFFINE) {
        if (dtype_of(w->scales) != DT_UINT8)
            return err_set(ERR_ARG, "[%s] Scale type must be uint8 but received type %s.", op,
                           dt_name(dtype_of(w->scales)));
        if (w->biases)
            return err_set(ERR_ARG, "[%s] Biases must be null for quantization mode '%s'.", op,
                           quant_mode_words.word[p->mode]);
        return ERR_OK;
    }
    if (!w->biases)
        return err_set(ERR_ARG, "[%s] Biases must be provided for affine quantization.", op);
    *type = dt_promote(dtype_of(w->scales), dtype_of(w->biases));
    if (!dt_is_float(*type))
        return err_set(ERR_ARG,
                       "[%s] Only real floating types are supported but scales.dtype() == %s and "
                       "biases.dtype() == %s.",
                       op, dt_name(dtype_of(w->scales)), dt_name(dtype_of(w->biases)));
    return ERR_OK;
}

static bool same_but_last(const struct arr *a, const struct arr *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (a->ndim - 1u) * sizeof a->shape[0]) == 0;
}

/* Numbers in a row of packed words; -1 if they are no whole number, or too many. */
static int64_t row_length(const struct arr *w, const struct quant_params *p)
{
    int64_t bits = (int64_t)w->shape[w->ndim - 1] * 32;

    return bits % p->bits || bits / p->bits > INT32_MAX ? -1 : bits / p->bits;
}

/* ---- quantize ---- */

static enum err check_quantize(const struct arr *w, const struct quant_params *p)
{
    struct shp shape;

    arr_shape(&shape, w);
    if (!dt_is_float(dtype_of(w)))
        return err_set(ERR_ARG,
                       "[quantize] Only real floating types can be quantized but w has type %s.",
                       dt_name(dtype_of(w)));
    if (w->ndim < 2)
        return err_set(ERR_ARG,
                       "[quantize] The matrix to be quantized must have at least 2 dimension but "
                       "it has only %d.",
                       w->ndim);
    if (p->group_size <= 0 || w->shape[w->ndim - 1] % p->group_size)
        return err_set(ERR_ARG,
                       "[quantize] The last dimension of the matrix needs to be divisible by the "
                       "quantization group size %d. However the provided  matrix has shape %s",
                       p->group_size, shp_text(&shape));
    return ERR_OK;
}

static enum err infer_quantize(struct infer_call *c, const struct quantize_params *p)
{
    const struct arr *w = c->in[0];
    bool is_affine = p->q.mode == QUANT_AFFINE;
    int last = w->ndim - 1;
    enum err err;

    FITS(c->n_in <= 2);
    TRY(check_quantize(w, &p->q));
    TRY(quant_check_global_scale(c->n_in > 1 ? c->in[1] : NULL, &p->q, "quantize"));
    TRY(quant_check_sizes(&p->q, "quantize"));
    c->n_out = is_affine ? 3 : 2;
    for (size_t i = 0; i < c->n_out; i++) {
        arr_shape(&c->out[i].shape, w);
        c->out[i].shape.d[last] = w->shape[last] / p->q.group_size;
        c->out[i].dtype = is_affine ? dtype_of(w) : DT_UINT8;
    }
    c->out[0].shape.d[last] = (int32_t)((int64_t)w->shape[last] * p->q.bits / 32);
    c->out[0].dtype = DT_UINT32;
out:
    return err;
}

enum err ops_quantize(struct ops_quantized *out, struct arr *w, const struct ops_quant *q,
                      struct arr *global_scale, struct strm *s)
{
    struct quantize_params p = { 0 };
    struct arr *in[2] = { w, global_scale };
    enum err err;

    TRY(quant_parse_mode(&p.q, q, "quantize"));
    out->n = p.q.mode == QUANT_AFFINE ? 3 : 2;
    err = ops_make(out->v, OP_QUANTIZE, &p, (struct arrs){ in, global_scale ? 2 : 1 }, s);
out:
    return err;
}

/* ---- dequantize ---- */

/* A packed matrix among the inputs of a node. */
static struct ops_packed packed_of(struct arr *const *in, const struct quant_params *p)
{
    return (struct ops_packed){ in[0], in[1], p->mode == QUANT_AFFINE ? in[2] : NULL, { 0 } };
}

static enum err check_dequantize(const struct ops_packed *w, const struct quant_params *p)
{
    const char *what = p->mode == QUANT_AFFINE ? "scales and biases does" : "scales does";
    struct shp shape, scales;

    if (p->bits <= 0)
        return err_set(ERR_ARG, "[dequantize] Invalid value for bits: %d", p->bits);
    if (p->group_size <= 0)
        return err_set(ERR_ARG, "[dequantize] Invalid value for group_size: %d", p->group_size);
    if (dtype_of(w->w) != DT_UINT32)
        return err_set(ERR_ARG, "[dequantize] The matrix should be given as a uint32");
    if (w->w->ndim < 2)
        return err_set(ERR_ARG,
                       "[dequantize] The matrix to be dequantized must have at least 2 dimension "
                       "but it has only %d.",
                       w->w->ndim);
    if (!same_but_last(w->w, w->scales) || (w->biases && !arr_same_shape(w->scales, w->biases)))
        return err_set(ERR_ARG, "[dequantize] Shape of %s not match the matrix", what);
    arr_shape(&shape, w->w);
    arr_shape(&scales, w->scales);
    if (row_length(w->w, p) != (int64_t)scales.d[scales.ndim - 1] * p->group_size)
        return err_set(ERR_ARG,
                       "[dequantize] Shape of %s not match the matrix given the quantization "
                       "parameters. Provided matrix of shape %s and scales of shape %s with "
                       "group_size=%d and bits=%d.",
                       what, shp_text(&shape), shp_text(&scales), p->group_size, p->bits);
    return ERR_OK;
}

static enum err infer_dequantize(struct infer_call *c, const struct quantize_params *p)
{
    bool is_affine = p->q.mode == QUANT_AFFINE;
    struct ops_packed w;
    enum err err;

    FITS(is_affine ? c->n_in == 3 : c->n_in >= 2);
    FITS(dt_is_float((enum dtype)p->dtype));
    w = packed_of(c->in, &p->q);
    FITS(w.scales->dtype == (is_affine ? p->dtype : DT_UINT8));
    FITS(!w.biases || w.biases->dtype == w.scales->dtype);
    TRY(check_dequantize(&w, &p->q));
    TRY(quant_check_global_scale(c->n_in > 2 && !is_affine ? c->in[2] : NULL, &p->q, "dequantize"));
    TRY(quant_check_sizes(&p->q, "dequantize"));
    infer_like(c, w.w);
    c->out[0].dtype = (enum dtype)p->dtype;
    c->out[0].shape.d[w.w->ndim - 1] = (int32_t)row_length(w.w, &p->q);
out:
    return err;
}

enum err op_infer_quantize(struct infer_call *c)
{
    const struct quantize_params *p = c->params;

    return p->dequantize ? infer_dequantize(c, p) : infer_quantize(c, p);
}

enum err ops_dequantize(struct arr **out, const struct ops_packed *w,
                        const struct ops_dequantize *how, struct strm *s)
{
    struct quantize_params p = { .dequantize = 1 };
    struct arr *in[3], *x = NULL, *scales = NULL, *biases = NULL;
    size_t n = 2;
    enum dtype type, to;
    enum err err;

    TRY(quant_parse_mode(&p.q, &w->q, "dequantize"));
    if (how->dtype && !dt_is_float(*how->dtype))
        TRY(err_set(ERR_ARG,
                    "[dequantize] Only real floating types are supported but output dtype == %s.",
                    dt_name(*how->dtype)));
    TRY(check_scales(&type, w, &p.q, "dequantize"));
    if (w->biases && how->global_scale)
        TRY(quant_check_global_scale(how->global_scale, &p.q, "dequantize"));
    to = how->dtype ? *how->dtype : type;
    in[0] = w->w;
    in[1] = w->scales;
    if (how->global_scale)
        in[n++] = how->global_scale;
    p.dtype = (int32_t)to;
    if (w->biases) { /* computed in the dtype of scales and biases, then cast */
        TRY(ops_astype(&scales, w->scales, type, s));
        TRY(ops_astype(&biases, w->biases, type, s));
        in[1] = scales;
        in[n++] = biases;
        p.dtype = (int32_t)type;
    }
    TRY(ops_make(&x, OP_QUANTIZE, &p, (struct arrs){ in, n }, s));
    TRY(ops_astype(out, x, to, s));
out:
    arr_unref(&x);
    arr_unref(&scales);
    arr_unref(&biases);
    return err;
}

/* ---- products ---- */

enum err quant_check_packed(const struct ops_packed *w, const struct quant_params *p,
                            const char *op)
{
    struct shp sw, ss, sb;

    arr_shape(&sw, w->w);
    arr_shape(&ss, w->scales);
    if (dtype_of(w->w) != DT_UINT32)
        return err_set(ERR_ARG, "[%s] The weight matrix should be uint32 but received %s", op,
                       dt_name(dtype_of(w->w)));
    if (w->biases && !arr_same_shape(w->scales, w->biases)) {
        arr_shape(&sb, w->biases);
        return err_set(ERR_ARG,
                       "[%s] Scales and biases should have the same shape. Received scales with "
                       "shape %s and biases with %s",
                       op, shp_text(&ss), shp_text(&sb));
    }
    if (w->w->ndim < 2 || !same_but_last(w->w, w->scales))
        return err_set(ERR_ARG,
                       "[%s] Weight and scales should have the same batch shape. Received weight "
                       "with shape %s, scales with %s.",
                       op, shp_text(&sw), shp_text(&ss));
    if (row_length(w->w, p) != (int64_t)ss.d[ss.ndim - 1] * p->group_size)
        return err_set(ERR_ARG,
                       "[%s] The shapes of the weight and scales are incompatible based on bits "
                       "and group_size. w.shape() == %s and scales.shape() == %s with "
                       "group_size=%d and bits=%d",
                       op, shp_text(&sw), shp_text(&ss), p->group_size, p->bits);
    return ERR_OK;
}

/* What x times the matrix has in its last dimension. */
enum err quant_check_inner(int32_t *outer, const struct arr *x, const struct arr *w,
                           const struct quantized_matmul_params *p, const char *op)
{
    int32_t length = (int32_t)row_length(w, &p->q), rows = w->shape[w->ndim - 2];
    int32_t inner = p->transpose ? length : rows;
    int32_t have = x->ndim ? x->shape[x->ndim - 1] : 1;
    struct shp shape;

    *outer = p->transpose ? rows : length;
    if (x->ndim && have == inner)
        return ERR_OK;
    arr_shape(&shape, w);
    return err_set(ERR_ARG,
                   "[%s] Last dimension of first input with shape (..., %d) does not match the "
                   "expanded quantized matrix (%d, %d) computed from shape %s with group_size=%d, "
                   "bits=%d and transpose=%s",
                   op, have, inner, *outer, shp_text(&shape), p->q.group_size, p->q.bits,
                   p->transpose ? "true" : "false");
}

static enum err infer_product(struct infer_call *c, int32_t *outer, const char *op)
{
    const struct quantized_matmul_params *p = c->params;
    struct ops_packed w = packed_of(c->in + 1, &p->q);
    const struct arr *x = c->in[0];
    enum err err;

    TRY(quant_check_sizes(&p->q, op));
    TRY(quant_check_packed(&w, &p->q, op));
    TRY(quant_check_inner(outer, x, w.w, p, op));
    FITS(dt_is_float(dtype_of(x)));
    FITS(w.scales->dtype == (w.biases ? x->dtype : DT_UINT8));
    FITS(!w.biases || w.biases->dtype == x->dtype);
out:
    return err;
}

enum err op_infer_quantized_matmul(struct infer_call *c)
{
    const struct quantized_matmul_params *p = c->params;
    const struct arr *x = c->in[0], *w = c->in[1];
    int32_t outer;
    enum err err;

    FITS(c->n_in == (p->q.mode == QUANT_AFFINE ? 4 : 3));
    TRY(infer_product(c, &outer, "quantized_matmul"));
    FITS(w->ndim == 2 || x->ndim <= 2 ||
         (x->ndim == w->ndim && shp_same_dims(x->shape, w->shape, x->ndim - 2)));
    infer_like(c, x);
    c->out[0].shape.d[x->ndim - 1] = outer;
out:
    return err;
}

enum err op_infer_gather_qmm(struct infer_call *c)
{
    const struct quantized_matmul_params *p = c->params;
    const struct arr *x = c->in[0], *left = c->in[c->n_in - 2], *right = c->in[c->n_in - 1];
    struct shp *shape = &c->out[0].shape;
    int32_t outer;
    enum err err;

    FITS(c->n_in == (p->q.mode == QUANT_AFFINE ? 6 : 5));
    TRY(infer_product(c, &outer, "gather_qmm"));
    FITS(x->ndim >= 2 && left->dtype == DT_UINT32 && right->dtype == DT_UINT32);
    FITS(arr_same_shape(left, right));
    if (left->ndim + 2 > SHP_MAX)
        return err_set(ERR_ARG, "[gather_qmm] Arrays have at most %d dimensions.", SHP_MAX);
    if (left->ndim && left->size && !(x->size && c->in[1]->size))
        return err_set(ERR_ARG, "[gather_qmm] Indices into an empty array.");
    infer_like(c, left);
    c->out[0].dtype = dtype_of(x);
    shape->d[shape->ndim++] = x->shape[x->ndim - 2];
    shape->d[shape->ndim++] = outer;
out:
    return err;
}

/* What both kinds of products share: operands of the common dtype. */
struct product {
    struct quantized_matmul_params p;
    struct arr *in[6]; /* owned */
    size_t n_in;
};

static void product_fini(struct product *m)
{
    arr_unref_all(m->in, ARRAY_LEN(m->in));
}

static enum err product_init(struct product *m, struct arr *x, const struct ops_packed *w,
                             const char *op, struct strm *s)
{
    enum dtype type, t;
    enum err err;

    TRY(quant_parse_mode(&m->p.q, &w->q, op));
    TRY(check_scales(&type, w, &m->p.q, op));
    t = w->biases ? dt_promote(dtype_of(x), type) : dtype_of(x);
    if (!dt_is_float(t))
        TRY(err_set(ERR_ARG, "[%s] Only real floating types are supported but x.dtype() == %s.", op,
                    dt_name(dtype_of(x))));
    TRY(ops_astype(&m->in[0], x, t, s));
    m->in[1] = arr_ref(w->w);
    TRY(ops_astype(&m->in[2], w->scales, w->biases ? t : dtype_of(w->scales), s));
    m->n_in = 3;
    if (w->biases)
        TRY(ops_astype(&m->in[m->n_in++], w->biases, t, s));
out:
    return err;
}

/* Stretches everything before the last two dimensions to one shape. */
static enum err broadcast_batches(struct product *m, struct strm *s)
{
    struct shp batch = { 0 }, shape;
    enum err err = ERR_OK;

    for (size_t i = 0; i < m->n_in; i++) {
        arr_shape(&shape, m->in[i]);
        shape.ndim -= 2;
        TRY(shp_broadcast(&batch, &batch, &shape, "broadcast_shapes"));
    }
    for (size_t i = 0; i < m->n_in; i++) {
        shape = batch;
        shape.ndim += 2;
        for (int d = 1; d <= 2; d++)
            shape.d[shape.ndim - d] = m->in[i]->shape[m->in[i]->ndim - d];
        STEP(m->in[i],
             ops_stretch_with(
                 &next, m->in[i],
                 &(struct ops_stretch){ .shape = shape, .with = { m->in, m->n_in }, .own = 2 }, s));
    }
out:
    return err;
}

/* Batches of a matrix whose parts do not belong together are left as they are, an error. */
static bool has_batches(const struct arr *x, const struct ops_packed *w)
{
    return x->ndim > 2 && w->w->ndim > 2 && same_but_last(w->w, w->scales) &&
           (!w->biases || arr_same_shape(w->scales, w->biases));
}

enum err ops_quantized_matmul(struct arr **out, struct arr *x, const struct ops_packed *w,
                              bool transpose, struct strm *s)
{
    struct product m = { .p.transpose = transpose };
    enum err err;

    TRY(product_init(&m, x, w, "quantized_matmul", s));
    if (has_batches(x, w))
        TRY(broadcast_batches(&m, s));
    TRY(ops_make_of(out, OP_QUANTIZED_MATMUL, &m.p, (struct given){ m.in, m.n_in }, s));
out:
    product_fini(&m);
    return err;
}

static enum err gather_products(struct arr **out, struct arr *x, const struct ops_packed *w,
                                const struct ops_gather_qmm *g, struct strm *s)
{
    struct product m = { .p = { .transpose = g->transpose,
                                .left_sorted = g->sorted && !g->rhs_indices,
                                .right_sorted = g->sorted && !g->lhs_indices } };
    struct arr *numbers[2] = { NULL, NULL };
    enum err err;

    if (!g->lhs_indices && !g->rhs_indices)
        return ops_quantized_matmul(out, x, w, g->transpose, s);
    TRY(product_init(&m, x, w, "gather_qmm", s));
    TRY(ops_matrix_numbers(&numbers[0], g->lhs_indices, x, "gather_qmm", s));
    TRY(ops_matrix_numbers(&numbers[1], g->rhs_indices, w->w, "gather_qmm", s));
    TRY(ops_align(m.in + m.n_in, numbers, DT_UINT32, s));
    m.n_in += 2;
    TRY(ops_make_of(out, OP_GATHER_QMM, &m.p, (struct given){ m.in, m.n_in }, s));
out:
    product_fini(&m);
    arr_unref_all(numbers, 2);
    return err;
}

/* ---- matrices with a scale each ---- */

static enum err check_matrix_scales(const struct ops_packed *w, const struct ops_gather_qmm *g)
{
    const struct arr *scale = g->global_scale;
    struct quant_params q;
    struct shp shape, batch;
    enum err err;

    TRY(quant_parse_mode(&q, &w->q, "gather_qmm"));
    arr_shape(&shape, scale);
    arr_shape(&batch, w->w);
    batch.ndim = batch.ndim > 2 ? batch.ndim - 2 : 0;
    if (q.mode != QUANT_NVFP4)
        err = err_set(ERR_ARG, "[gather_qmm] A global scale is for the mode nvfp4 alone.");
    else if (!g->lhs_indices && !g->rhs_indices)
        err = err_set(ERR_ARG, "[gather_qmm] A global scale needs indices.");
    else if (!shp_equal(&shape, &batch))
        err = err_set(ERR_ARG,
                      "[gather_qmm] A global scale is one number for each matrix, of shape %s, not "
                      "%s.",
                      shp_text(&batch), shp_text(&shape));
    else if (dtype_of(scale) != DT_FLOAT32)
        err = err_set(ERR_ARG, "[gather_qmm] A global scale must be float32, not %s.",
                      dt_name(dtype_of(scale)));
out:
    return err;
}

/* A global scale is how large the matrix was, which packing made as large as a scale times a number
 * of nvfp4 can be: products without it exceed 16-bit floats. */
static enum err gather_scaled(struct arr **out, struct arr *x, const struct ops_packed *w,
                              const struct ops_gather_qmm *g, struct strm *s)
{
    const struct ints last = { (int32_t[]){ -2, -1 }, 2 };
    struct arr *wide = NULL, *y = NULL, *by = NULL, *most = NULL;
    enum err err;

    TRY(check_matrix_scales(w, g));
    TRY(ops_astype(&wide, x, dt_promote(dtype_of(x), DT_FLOAT32), s));
    TRY(gather_products(&y, wide, w, g, s));
    TRY(ops_matrix_numbers(&by, g->rhs_indices, w->w, "gather_qmm", s));
    STEP(by, ops_take_flat(&next, g->global_scale, by, s));
    TRY(arr_new_number(&most, 448.0 * 6.0, DT_FLOAT32));
    STEP(by, ops_binary(&next, OP_DIVIDE, by, most, s));
    STEP(by, ops_expand_dims(&next, by, last, s));
    STEP(y, ops_binary(&next, OP_MULTIPLY, y, by, s));
    err = ops_astype(out, y, dtype_of(x), s);
out:
    arr_unref(&wide);
    arr_unref(&y);
    arr_unref(&by);
    arr_unref(&most);
    return err;
}

enum err ops_gather_qmm(struct arr **out, struct arr *x, const struct ops_packed *w,
                        const struct ops_gather_qmm *g, struct strm *s)
{
    return (g->global_scale ? gather_scaled : gather_products)(out, x, w, g, s);
}
