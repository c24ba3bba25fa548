/* Gradients of products with packed matrices: of x, and in affine mode of scales and biases. */
#include "ops/build.h"
#include "ops/rules.h"

enum { X, W, SCALES, BIASES };

/* The node with other inputs in the place of some. */
static enum err with(struct arr **out, const struct op_apply *f, int place, struct arr *a,
                     struct arr *biases)
{
    struct arr *in[4];

    memcpy(in, f->in, f->n_in * sizeof in[0]);
    in[place] = a;
    if (biases)
        in[BIASES] = biases;
    return ops_make(out, f->op, f->params, (struct arrs){ in, f->n_in }, f->strm);
}

/* x's cotangent: the product with the other transpose of the matrix. */
static enum err x_cotangent(struct arr **out, const struct vjp_call *c)
{
    struct quantized_matmul_params p = *(const struct quantized_matmul_params *)c->f.params;
    struct op_apply f = c->f;

    p.transpose = !p.transpose;
    f.params = &p;
    return with(out, &f, X, c->cotan[0], NULL);
}

/* The packed numbers as they are, without scale and bias. */
static enum err codes(struct arr **out, const struct vjp_call *c)
{
    const struct quantized_matmul_params *p = c->f.params;
    struct quantize_params how = { .q = p->q, .dequantize = 1 };
    struct arr *scales = c->f.in[SCALES], *in[3] = { c->f.in[W], NULL, NULL };
    enum err err;

    how.dtype = scales->dtype;
    TRY(ops_fill_like(&in[1], scales, 1, dtype_of(scales), c->f.strm));
    TRY(ops_fill_like(&in[2], scales, 0, dtype_of(scales), c->f.strm));
    err = ops_make(out, OP_QUANTIZE, &how, (struct arrs){ in, 3 }, c->f.strm);
out:
    arr_unref_all(in + 1, 2);
    return err;
}

/* The cotangent of the unpacked matrix: products of rows of x and of the cotangent, where a matrix
 * without batch takes all rows. */
static enum err matrix_cotangent(struct arr **out, const struct vjp_call *c)
{
    const struct quantized_matmul_params *p = c->f.params;
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

/* Sums over the groups that share a scale: of the matrix's cotangent, times the codes for scales.
 */
static enum err scale_cotangent(struct arr **out, const struct vjp_call *c, bool is_scale)
{
    const struct quantized_matmul_params *p = c->f.params;
    static const int32_t last = -1;
    struct arr *d = NULL, *q = NULL;
    enum err err;

    TRY(matrix_cotangent(&d, c));
    if (is_scale) {
        TRY(codes(&q, c));
        STEP(d, ops_binary(&next, OP_MULTIPLY, d, q, c->f.strm));
    }
    STEP(d, ops_unflatten(&next, d, -1, (struct ints){ (int32_t[]){ -1, p->q.group_size }, 2 },
                          c->f.strm));
    err = ops_reduce(out, REDUCE_SUM, d, &(struct ops_axes){ { &last, 1 }, false }, c->f.strm);
out:
    arr_unref(&d);
    arr_unref(&q);
    return err;
}

enum err op_vjp_quantized_matmul(struct vjp_call *c)
{
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++) {
        int i = c->wanted[done];
        if (i == X)
            TRY(x_cotangent(&c->result[done], c));
        else if (i == W || c->f.n_in <= BIASES)
            TRY(op_no_rule(c->f.op, "vjp"));
        else
            TRY(scale_cotangent(&c->result[done], c, i == SCALES));
    }
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

/* The product is linear in x, and in scales and biases. */
enum err op_jvp_quantized_matmul(struct jvp_call *c)
{
    struct arr *part[2] = { NULL, NULL }, *scales = NULL, *biases = NULL;
    bool has_scales = c->f.n_in > BIASES && (c->tan[SCALES] || c->tan[BIASES]);
    enum err err = ERR_OK;

    if (c->tan[W] || (c->f.n_in <= BIASES && c->tan[SCALES]))
        return op_no_rule(c->f.op, "jvp");
    if (c->tan[X])
        TRY(with(&part[0], &c->f, X, c->tan[X], NULL));
    if (has_scales) {
        struct arr *like = c->f.in[SCALES];
        if (!c->tan[SCALES])
            TRY(ops_fill_like(&scales, like, 0, dtype_of(like), c->f.strm));
        if (!c->tan[BIASES])
            TRY(ops_fill_like(&biases, like, 0, dtype_of(like), c->f.strm));
        TRY(with(&part[1], &c->f, SCALES, scales ? scales : c->tan[SCALES],
                 biases ? biases : c->tan[BIASES]));
    }
    err = op_sum_of_two(&c->result[0], part, c->f.strm);
out:
    arr_unref_all(part, 2);
    arr_unref(&scales);
    arr_unref(&biases);
    return err;
}
