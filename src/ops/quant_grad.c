/* Gradients of products with packed matrices, of x and in affine mode of scales and biases, and of
 * packing and unpacking. */
#include "ops/build.h"
#include "ops/gather_grad.h"
#include "ops/rules.h"

/* ---- packed matrices ---- */

/* The words and scales among the inputs of a node. */
struct packed {
    struct arr *w, *scales;
    const struct quant_params *q;
};

/* The packed numbers as they are, without scale and bias. */
static enum err codes(struct arr **out, const struct packed *m, struct strm *s)
{
    struct quantize_params how = { .q = *m->q, .dequantize = 1, .dtype = m->scales->dtype };
    struct arr *in[3] = { m->w, NULL, NULL };
    enum err err;

    TRY(ops_fill_like(&in[1], m->scales, 1, dtype_of(m->scales), s));
    TRY(ops_fill_like(&in[2], m->scales, 0, dtype_of(m->scales), s));
    err = ops_make(out, OP_QUANTIZE, &how, (struct arrs){ in, 3 }, s);
out:
    arr_unref_all(in + 1, 2);
    return err;
}

/* Rows of numbers as rows of groups. */
static enum err groups(struct arr **out, struct arr *a, const struct quant_params *q,
                       struct strm *s)
{
    int32_t shape[2] = { a->shape[a->ndim - 1] / q->group_size, q->group_size };

    return ops_unflatten(out, a, -1, (struct ints){ shape, 2 }, s);
}

static enum err sum_of_groups(struct arr **out, struct arr *a, bool keepdims, struct strm *s)
{
    static const int32_t last = -1;

    return ops_reduce(out, REDUCE_SUM, a, &(struct ops_axes){ { &last, 1 }, keepdims }, s);
}

/* Sums over the groups that share a scale: of the unpacked matrix's cotangent, times the codes for
 * scales. */
static enum err scale_cotangent(struct arr **out, const struct packed *m, struct arr *cotan,
                                bool is_scale, struct strm *s)
{
    struct arr *x = arr_ref(cotan), *q = NULL;
    enum err err = ERR_OK;

    if (is_scale) {
        TRY(codes(&q, m, s));
        STEP(x, ops_binary(&next, OP_MULTIPLY, x, q, s));
    }
    STEP(x, groups(&next, x, m->q, s));
    err = sum_of_groups(out, x, false, s);
out:
    arr_unref(&x);
    arr_unref(&q);
    return err;
}

/* ---- products: QuantizedMatmul and GatherQMM, which has numbers of matrices behind ---- */

enum { X, W, SCALES, BIASES, MOST = 6 };

static const struct quantized_matmul_params *params_of(const struct op_apply *f)
{
    return f->params;
}

static bool is_affine(const struct op_apply *f)
{
    return params_of(f)->q.mode == QUANT_AFFINE;
}

/* The node with other inputs in the place of some. */
static enum err with(struct arr **out, const struct op_apply *f, int place, struct arr *a,
                     struct arr *biases)
{
    struct arr *in[MOST];

    memcpy(in, f->in, f->n_in * sizeof in[0]);
    in[place] = a;
    if (biases)
        in[BIASES] = biases;
    return ops_make(out, f->op, f->params, (struct arrs){ in, f->n_in }, f->strm);
}

/* x's cotangent: the product with the other transpose of the matrix. */
static enum err x_cotangent(struct arr **out, const struct vjp_call *c)
{
    struct quantized_matmul_params p = *params_of(&c->f);
    struct op_apply f = c->f;

    p.transpose = !p.transpose;
    f.params = &p;
    return with(out, &f, X, c->cotan[0], NULL);
}

/* The cotangent of the unpacked matrix: products of rows of x and of the cotangent, where a matrix
 * without batch takes all rows. */
static enum err matrix_cotangent(struct arr **out, const struct vjp_call *c)
{
    const struct quantized_matmul_params *p = params_of(&c->f);
    bool is_batch = c->f.in[W]->ndim > 2;
    struct arr *m[2] = { arr_ref(p->transpose ? c->cotan[0] : c->f.in[X]),
                         arr_ref(p->transpose ? c->f.in[X] : c->cotan[0]) };
    enum err err = ERR_OK;

    for (int i = 0; i < 2; i++)
        if (m[i]->ndim == 1)
            STEP(m[i],
                 ops_expand_dims(&next, m[i], (struct ints){ (int32_t[]){ 0 }, 1 }, c->f.strm));
        else if (!is_batch)
            STEP(m[i], ops_flatten(&next, m[i], 0, -2, c->f.strm));
    STEP(m[0], ops_swapaxes(&next, m[0], -1, -2, c->f.strm));
    TRY(ops_matmul(out, m[0], m[1], c->f.strm));
out:
    arr_unref_all(m, 2);
    return err;
}

static enum err cotangent_of_scales(struct arr **out, const struct vjp_call *c, bool is_scale)
{
    struct packed m = { c->f.in[W], c->f.in[SCALES], &params_of(&c->f)->q };
    struct arr *d = NULL;
    enum err err;

    TRY(matrix_cotangent(&d, c));
    err = scale_cotangent(out, &m, d, is_scale, c->f.strm);
out:
    arr_unref(&d);
    return err;
}

static enum err input_cotangent(struct arr **out, const struct vjp_call *c, int i)
{
    const char *op = op_name(c->f.op);

    if (i == X)
        return x_cotangent(out, c);
    if (i == W)
        return err_set(ERR_RUNTIME, "[%s::vjp] no gradient wrt the quantized weights.", op);
    if (!is_affine(&c->f))
        return err_set(ERR_ARG, "[%s::vjp] no gradient wrt scales in %s quantization.", op,
                       quant_mode_words.word[params_of(&c->f)->q.mode]);
    return cotangent_of_scales(out, c, i == SCALES);
}

enum err op_vjp_quantized_matmul(struct vjp_call *c)
{
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++)
        TRY(input_cotangent(&c->result[done], c, c->wanted[done]));
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

/* ---- GatherQMM ---- */

static struct chosen chosen_of(const struct vjp_call *c)
{
    return (struct chosen){ c->f.in[X], c->cotan[0], c->f.in[c->f.n_in - 2], c->f.in[c->f.n_in - 1],
                            c->f.strm };
}

static enum err chosen_x(struct arr **out, const struct vjp_call *c)
{
    struct quantized_matmul_params p = *params_of(&c->f);
    struct chosen m = chosen_of(c);
    struct arr *in[MOST], *t = NULL, *numbers = NULL, *x = NULL;
    enum err err;

    p.transpose = !p.transpose;
    p.left_sorted = false;
    TRY(chosen_results(&t, &numbers, &m));
    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    in[X] = t;
    in[c->f.n_in - 2] = numbers;
    TRY(ops_make(&x, OP_GATHER_QMM, &p, (struct arrs){ in, c->f.n_in }, c->f.strm));
    TRY(chosen_sum(out, x, &m));
out:
    arr_unref(&t);
    arr_unref(&numbers);
    arr_unref(&x);
    return err;
}

static enum err chosen_scales(struct arr **out, const struct vjp_call *c, bool is_scale)
{
    struct packed w = { c->f.in[W], c->f.in[SCALES], &params_of(&c->f)->q };
    struct chosen m = chosen_of(c);
    struct arr *d = NULL;
    struct shp shape;
    int32_t n;
    enum err err;

    TRY(chosen_count(&n, c->f.in[W]));
    TRY(chosen_factor(&d, n, &m));
    if (params_of(&c->f)->transpose)
        STEP(d, ops_swapaxes(&next, d, -1, -2, c->f.strm));
    arr_shape(&shape, c->f.in[W]);
    shape.d[shape.ndim - 1] = d->shape[2];
    STEP(d, ops_reshape(&next, d, shp_ints(&shape), c->f.strm));
    err = scale_cotangent(out, &w, d, is_scale, c->f.strm);
out:
    arr_unref(&d);
    return err;
}

enum err op_vjp_gather_qmm(struct vjp_call *c)
{
    const char *op = op_name(c->f.op);
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++) {
        int i = c->wanted[done];
        if (i == X)
            TRY(chosen_x(&c->result[done], c));
        else if (i >= (int)c->f.n_in - 2)
            TRY(err_set(ERR_RUNTIME, "[%s::vjp] cannot compute the gradient wrt the indices.", op));
        else if (i != W && is_affine(&c->f))
            TRY(chosen_scales(&c->result[done], c, i == SCALES));
        else
            TRY(input_cotangent(&c->result[done], c, i)); /* an error */
    }
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

/* ---- tangents of both ---- */

/* The product is linear in x, and in scales and biases. */
enum err op_jvp_quantized_matmul(struct jvp_call *c)
{
    struct arr *part[2] = { NULL, NULL }, *scales = NULL, *biases = NULL;
    bool has_biases = is_affine(&c->f);
    enum err err = ERR_OK;

    if (c->tan[W] || (!has_biases && c->tan[SCALES]))
        return err_set(ERR_RUNTIME, "[%s::jvp] No JVP wrt the quantized matrix.", op_name(c->f.op));
    if (c->tan[X])
        TRY(with(&part[0], &c->f, X, c->tan[X], NULL));
    if (has_biases && (c->tan[SCALES] || c->tan[BIASES])) {
        TRY(op_or_zeros(&scales, c->tan[SCALES], c->f.in[SCALES], c->f.strm));
        TRY(op_or_zeros(&biases, c->tan[BIASES], c->f.in[BIASES], c->f.strm));
        TRY(with(&part[1], &c->f, SCALES, scales, biases));
    }
    err = op_sum_of_two(&c->result[0], part, c->f.strm);
out:
    arr_unref_all(part, 2);
    arr_unref(&scales);
    arr_unref(&biases);
    return err;
}

/* ---- packing ----
 *
 * Of a group, the element of the largest magnitude is the bias, and the scale is that over a whole
 * number. Equal ones share what comes back. The words and all of the other modes do not change. */

struct edges {
    struct arr *is_edge; /* by group */
    struct arr *share;   /* of each of the edges; 0 for a group of zeros */
    struct arr *ratio;   /* scale by bias */
};

static void edges_fini(struct edges *e)
{
    arr_unref(&e->is_edge);
    arr_unref(&e->share);
    arr_unref(&e->ratio);
}

/* The bias as it was before it was rounded. */
static enum err edge_of(struct arr **out, struct arr *grouped, struct arr *biases, struct strm *s)
{
    static const int32_t last = -1;
    struct ops_axes axes = { { &last, 1 }, true };
    struct arr *low = NULL, *high = NULL, *x = NULL;
    enum err err;

    TRY(ops_reduce(&low, REDUCE_MIN, grouped, &axes, s));
    TRY(ops_reduce(&high, REDUCE_MAX, grouped, &axes, s));
    TRY(arr_new_number(&x, 0, dtype_of(biases)));
    STEP(x, ops_binary(&next, OP_LESS, biases, x, s));
    err = ops_where(out, x, low, high, s);
out:
    arr_unref(&low);
    arr_unref(&high);
    arr_unref(&x);
    return err;
}

/* Scales and biases as columns. */
static enum err column(struct arr **out, struct arr *a, struct strm *s)
{
    static const int32_t last = -1;

    return ops_expand_dims(out, a, (struct ints){ &last, 1 }, s);
}

/* Scale by bias where there is one: one over the whole number. */
static enum err ratio_of(struct arr **out, struct arr *scales, struct arr *biases, struct strm *s)
{
    struct arr *one = NULL, *x = NULL;
    enum err err;

    TRY(arr_new_number(&one, 1, dtype_of(biases)));
    TRY(ops_where(&x, biases, biases, one, s));
    STEP(x, ops_binary(&next, OP_DIVIDE, scales, x, s));
    err = ops_stop_gradient(out, x, s);
out:
    arr_unref(&one);
    arr_unref(&x);
    return err;
}

static enum err edges_init(struct edges *e, const struct op_apply *f, struct arr *const *out)
{
    const struct quantize_params *p = f->params;
    struct arr *w = NULL, *scales = NULL, *biases = NULL, *x = NULL;
    enum err err;

    TRY(groups(&w, f->in[0], &p->q, f->strm));
    TRY(column(&scales, out[1], f->strm));
    TRY(column(&biases, out[2], f->strm));
    TRY(ratio_of(&e->ratio, scales, biases, f->strm));
    TRY(edge_of(&x, w, biases, f->strm));
    TRY(ops_binary(&e->is_edge, OP_EQUAL, w, x, f->strm));
    STEP(x, sum_of_groups(&next, e->is_edge, true, f->strm));
    STEP(biases, ops_astype(&next, biases, DT_BOOL, f->strm));
    STEP(x, ops_binary(&next, OP_DIVIDE, biases, x, f->strm));
    err = ops_astype(&e->share, x, dtype_of(w), f->strm);
out:
    arr_unref(&w);
    arr_unref(&scales);
    arr_unref(&biases);
    arr_unref(&x);
    return err;
}

/* (scales' cotangent * ratio + biases' cotangent) * share, for the edges. */
static enum err vjp_pack(struct vjp_call *c)
{
    struct edges e = { NULL };
    struct arr *part[2] = { NULL, NULL }, *x = NULL;
    enum err err;

    if (c->f.n_out < 3 || !(c->cotan[1] || c->cotan[2]))
        return ERR_OK;
    TRY(edges_init(&e, &c->f, c->out));
    if (c->cotan[1]) {
        TRY(column(&part[0], c->cotan[1], c->f.strm));
        STEP(part[0], ops_binary(&next, OP_MULTIPLY, part[0], e.ratio, c->f.strm));
    }
    if (c->cotan[2])
        TRY(column(&part[1], c->cotan[2], c->f.strm));
    TRY(op_sum_of_two(&x, part, c->f.strm));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, e.share, c->f.strm));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, e.is_edge, c->f.strm));
    err = ops_flatten(&c->result[0], x, -2, -1, c->f.strm);
out:
    edges_fini(&e);
    arr_unref_all(part, 2);
    arr_unref(&x);
    return err;
}

static enum err jvp_pack(struct jvp_call *c)
{
    static const int32_t last = -1;
    const struct quantize_params *p = c->f.params;
    struct edges e = { NULL };
    struct arr *x = NULL, *y = NULL;
    enum err err;

    if (c->f.n_out < 3)
        return ERR_OK;
    TRY(edges_init(&e, &c->f, c->out));
    TRY(groups(&x, c->tan[0], &p->q, c->f.strm));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, e.is_edge, c->f.strm));
    STEP(x, sum_of_groups(&next, x, true, c->f.strm));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, e.share, c->f.strm));
    TRY(ops_binary(&y, OP_MULTIPLY, x, e.ratio, c->f.strm));
    STEP(x, ops_squeeze(&next, x, (struct ints){ &last, 1 }, c->f.strm));
    STEP(y, ops_squeeze(&next, y, (struct ints){ &last, 1 }, c->f.strm));
    arr_move(&c->result[1], &y);
    arr_move(&c->result[2], &x);
out:
    edges_fini(&e);
    arr_unref(&x);
    arr_unref(&y);
    return err;
}

/* ---- unpacking: linear in scales and biases, or in the global scale of other modes ---- */

enum { OF_W, OF_SCALES, OF_BIASES, GLOBAL = OF_BIASES };

static bool unpacks_affine(const struct op_apply *f)
{
    return ((const struct quantize_params *)f->params)->q.mode == QUANT_AFFINE;
}

/* The node with other inputs. */
static enum err unpack(struct arr **out, const struct op_apply *f, struct arr *scales,
                       struct arr *third)
{
    return ops_make(out, f->op, f->params,
                    (struct arrs){ (struct arr *[]){ f->in[OF_W], scales, third }, 3 }, f->strm);
}

/* The sum of the cotangent times what a global scale of 1 gives. */
static enum err global_cotangent(struct arr **out, const struct vjp_call *c)
{
    struct arr *global = c->f.in[GLOBAL], *x = NULL;
    enum err err;

    TRY(ops_fill_like(&x, global, 1, dtype_of(global), c->f.strm));
    STEP(x, unpack(&next, &c->f, c->f.in[OF_SCALES], x));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, c->cotan[0], c->f.strm));
    STEP(x, ops_astype(&next, x, dtype_of(global), c->f.strm));
    STEP(x, ops_reduce(&next, REDUCE_SUM, x, &(struct ops_axes){ INTS_ALL, false }, c->f.strm));
    err = ops_reshape(out, x, shape_of(global), c->f.strm);
out:
    arr_unref(&x);
    return err;
}

static enum err vjp_unpack(struct vjp_call *c)
{
    const struct quantize_params *p = c->f.params;
    struct packed m = { c->f.in[OF_W], c->f.in[OF_SCALES], &p->q };
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++) {
        int i = c->wanted[done];
        if (i != OF_W && unpacks_affine(&c->f))
            TRY(scale_cotangent(&c->result[done], &m, c->cotan[0], i == OF_SCALES, c->f.strm));
        else if (i == GLOBAL)
            TRY(global_cotangent(&c->result[done], c));
    }
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

static enum err jvp_unpack(struct jvp_call *c)
{
    struct arr *scales = NULL, *biases = NULL;
    enum err err = ERR_OK;

    if (!unpacks_affine(&c->f))
        return c->f.n_in > GLOBAL && c->tan[GLOBAL]
                   ? unpack(&c->result[0], &c->f, c->f.in[OF_SCALES], c->tan[GLOBAL])
                   : ERR_OK;
    if (!c->tan[OF_SCALES] && !c->tan[OF_BIASES])
        return ERR_OK;
    TRY(op_or_zeros(&scales, c->tan[OF_SCALES], c->f.in[OF_SCALES], c->f.strm));
    TRY(op_or_zeros(&biases, c->tan[OF_BIASES], c->f.in[OF_BIASES], c->f.strm));
    err = unpack(&c->result[0], &c->f, scales, biases);
out:
    arr_unref(&scales);
    arr_unref(&biases);
    return err;
}

static bool unpacks(const struct op_apply *f)
{
    return ((const struct quantize_params *)f->params)->dequantize;
}

enum err op_vjp_quantize(struct vjp_call *c)
{
    return unpacks(&c->f) ? vjp_unpack(c) : vjp_pack(c);
}

enum err op_jvp_quantize(struct jvp_call *c)
{
    return unpacks(&c->f) ? jvp_unpack(c) : jvp_pack(c);
}
