/* Packing numbers into few bits, and products with packed matrices. */
#include "ops/build.h"

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

static enum err parse_mode(struct quant_params *p, const struct ops_quant *q, const char *op)
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

static enum err check_sizes(const struct quant_params *p, const char *op)
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

static enum err check_global_scale(const struct arr *g, const struct quant_params *p,
                                   const char *op)
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

enum err ops_quantize(struct ops_quantized *out, struct arr *w, const struct ops_quant *q,
                      struct arr *global_scale, struct strm *s)
{
    struct quantize_params p = { 0 };
    struct arr *in[2] = { w, global_scale };
    struct out_desc d[3];
    enum err err;

    TRY(parse_mode(&p.q, q, "quantize"));
    TRY(check_quantize(w, &p.q));
    TRY(check_global_scale(global_scale, &p.q, "quantize"));
    TRY(check_sizes(&p.q, "quantize"));
    bool is_affine = p.q.mode == QUANT_AFFINE;
    int last = w->ndim - 1;
    for (int i = 0; i < 3; i++) {
        arr_shape(&d[i].shape, w);
        d[i].shape.d[last] = w->shape[last] / p.q.group_size;
        d[i].dtype = is_affine ? dtype_of(w) : DT_UINT8;
    }
    d[0].shape.d[last] = (int32_t)((int64_t)w->shape[last] * p.q.bits / 32);
    d[0].dtype = DT_UINT32;
    out->n = is_affine ? 3 : 2;
    err = node_new(out->v, &(struct node_params){ .op = OP_QUANTIZE,
                                                  .strm = s,
                                                  .in = in,
                                                  .n_in = global_scale ? 2 : 1,
                                                  .params = &p,
                                                  .out = d,
                                                  .n_out = out->n });
out:
    return err;
}

/* ---- dequantize ---- */

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

enum err ops_dequantize(struct arr **out, const struct ops_packed *w,
                        const struct ops_dequantize *how, struct strm *s)
{
    struct quantize_params p = { .dequantize = 1 };
    struct out_desc d = { 0 };
    struct arr *in[4], *x = NULL, *scales = NULL, *biases = NULL;
    size_t n = 0;
    enum dtype type;
    enum err err;

    TRY(parse_mode(&p.q, &w->q, "dequantize"));
    if (how->dtype && !dt_is_float(*how->dtype))
        TRY(err_set(ERR_ARG,
                    "[dequantize] Only real floating types are supported but output dtype == %s.",
                    dt_name(*how->dtype)));
    TRY(check_scales(&type, w, &p.q, "dequantize"));
    TRY(check_dequantize(w, &p.q));
    TRY(check_global_scale(how->global_scale, &p.q, "dequantize"));
    TRY(check_sizes(&p.q, "dequantize"));
    in[n++] = w->w;
    in[n++] = w->scales;
    if (how->global_scale)
        in[n++] = how->global_scale;
    if (w->biases) { /* computed in the dtype of scales and biases, then cast */
        TRY(ops_astype(&scales, w->scales, type, s));
        TRY(ops_astype(&biases, w->biases, type, s));
        in[1] = scales;
        in[n++] = biases;
        d.dtype = type;
    }
    if (how->dtype)
        type = *how->dtype;
    if (!w->biases)
        d.dtype = type;
    p.dtype = (int32_t)d.dtype;
    arr_shape(&d.shape, w->w);
    d.shape.d[d.shape.ndim - 1] = (int32_t)row_length(w->w, &p.q);
    TRY(arr_new_op(&x, .op = OP_QUANTIZE, .strm = s, .in = in, .n_in = n, .params = &p, .out = &d));
    TRY(ops_astype(out, x, type, s));
out:
    arr_unref(&x);
    arr_unref(&scales);
    arr_unref(&biases);
    return err;
}

/* ---- products ---- */

/* What both kinds of products share: operands of the common dtype, and the size of the result. */
struct product {
    struct quantized_matmul_params p;
    struct arr *in[6]; /* owned */
    size_t n_in;
    enum dtype dtype;
    int32_t outer;
};

static void product_fini(struct product *m)
{
    arr_unref_all(m->in, ARRAY_LEN(m->in));
}

static enum err check_packed(const struct ops_packed *w, const struct quant_params *p,
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

static enum err check_inner(struct product *m, const struct arr *x, const struct arr *w,
                            const char *op)
{
    int32_t length = (int32_t)row_length(w, &m->p.q), rows = w->shape[w->ndim - 2];
    int32_t inner = m->p.transpose ? length : rows;
    int32_t have = x->ndim ? x->shape[x->ndim - 1] : 1;
    struct shp shape;

    m->outer = m->p.transpose ? rows : length;
    if (x->ndim && have == inner)
        return ERR_OK;
    arr_shape(&shape, w);
    return err_set(ERR_ARG,
                   "[%s] Last dimension of first input with shape (..., %d) does not match the "
                   "expanded quantized matrix (%d, %d) computed from shape %s with group_size=%d, "
                   "bits=%d and transpose=%s",
                   op, have, inner, m->outer, shp_text(&shape), m->p.q.group_size, m->p.q.bits,
                   m->p.transpose ? "true" : "false");
}

static enum err product_init(struct product *m, struct arr *x, const struct ops_packed *w,
                             const char *op, struct strm *s)
{
    bool is_affine;
    enum dtype type;
    enum err err;

    TRY(parse_mode(&m->p.q, &w->q, op));
    TRY(check_scales(&type, w, &m->p.q, op));
    TRY(check_sizes(&m->p.q, op));
    TRY(check_packed(w, &m->p.q, op));
    TRY(check_inner(m, x, w->w, op));
    is_affine = m->p.q.mode == QUANT_AFFINE;
    m->dtype = is_affine ? dt_promote(dtype_of(x), type) : dtype_of(x);
    if (!dt_is_float(m->dtype))
        TRY(err_set(ERR_ARG, "[%s] Only real floating types are supported but x.dtype() == %s.", op,
                    dt_name(dtype_of(x))));
    TRY(ops_astype(&m->in[0], x, m->dtype, s));
    m->in[1] = arr_ref(w->w);
    m->n_in = 3;
    if (!is_affine) {
        m->in[2] = arr_ref(w->scales);
        goto out;
    }
    TRY(ops_astype(&m->in[2], w->scales, m->dtype, s));
    TRY(ops_astype(&m->in[3], w->biases, m->dtype, s));
    m->n_in = 4;
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
        STEP(m->in[i], ops_stretch(&next, m->in[i], &shape, s));
    }
out:
    return err;
}

static enum err product_node(struct arr **out, struct product *m, enum op_id op,
                             const struct out_desc *d, struct strm *s)
{
    return arr_new_op(out, .op = (uint16_t)op, .strm = s, .given = m->in, .n_in = m->n_in,
                      .params = &m->p, .out = d);
}

enum err ops_quantized_matmul(struct arr **out, struct arr *x, const struct ops_packed *w,
                              bool transpose, struct strm *s)
{
    struct product m = { .p.transpose = transpose };
    struct out_desc d;
    enum err err;

    TRY(product_init(&m, x, w, "quantized_matmul", s));
    if (x->ndim > 2 && w->w->ndim > 2)
        TRY(broadcast_batches(&m, s));
    arr_shape(&d.shape, m.in[0]);
    d.shape.d[d.shape.ndim - 1] = m.outer;
    d.dtype = m.dtype;
    TRY(product_node(out, &m, OP_QUANTIZED_MATMUL, &d, s));
out:
    product_fini(&m);
    return err;
}

enum err ops_gather_qmm(struct arr **out, struct arr *x, const struct ops_packed *w,
                        const struct ops_gather_qmm *g, struct strm *s)
{
    struct product m = { .p = { .transpose = g->transpose,
                                .left_sorted = g->sorted && !g->rhs_indices,
                                .right_sorted = g->sorted && !g->lhs_indices } };
    struct arr *numbers[2] = { NULL, NULL };
    struct out_desc d;
    enum err err;

    if (!g->lhs_indices && !g->rhs_indices)
        return ops_quantized_matmul(out, x, w, g->transpose, s);
    TRY(product_init(&m, x, w, "gather_qmm", s));
    TRY(ops_matrix_numbers(&numbers[0], g->lhs_indices, x, "gather_qmm", s));
    TRY(ops_matrix_numbers(&numbers[1], g->rhs_indices, w->w, "gather_qmm", s));
    TRY(ops_align(m.in + m.n_in, numbers, DT_UINT32, &d.shape, s));
    m.n_in += 2;
    if (d.shape.ndim + 2 > SHP_MAX)
        TRY(err_set(ERR_ARG, "[gather_qmm] Arrays have at most %d dimensions.", SHP_MAX));
    if (d.shape.ndim && shp_size(&d.shape) && !(x->size && w->w->size))
        TRY(err_set(ERR_ARG, "[gather_qmm] Indices into an empty array."));
    d.shape.d[d.shape.ndim++] = x->shape[x->ndim - 2];
    d.shape.d[d.shape.ndim++] = m.outer;
    d.dtype = m.dtype;
    TRY(product_node(out, &m, OP_GATHER_QMM, &d, s));
out:
    product_fini(&m);
    arr_unref_all(numbers, 2);
    return err;
}
