/* Gradients and batches of Fourier transforms. */
#include "ops/build.h"
#include "ops/rules.h"

/* ---- gradients ---- */

/* Along the last axis of a half spectrum like `like`: value[1] for frequencies that stand for their
 * conjugates, too, value[0] for the others, which are 0 and, of an even size, the last. */
static enum err weights(struct arr **out, const struct op_apply *f, const struct arr *like,
                        const double value[2])
{
    const struct fft_params *p = f->params;
    int32_t axis = p->axis[p->n - 1], n = like->shape[axis], shape[SHP_MAX];
    int32_t size = p->inverse ? 2 * (n - 1) + p->odd : f->in[0]->shape[axis];
    int32_t at = 0, inner = (size - 1) / 2;
    float _Complex v[2] = { (float)value[0], (float)value[1] };
    struct arr *part[3] = { NULL }, *number[2] = { NULL }, *x = NULL;
    enum err err = ERR_OK;

    for (int i = 0; i < like->ndim; i++)
        shape[i] = 1;
    for (int i = 0; i < 2; i++)
        TRY(arr_new_scalar(&number[i], &v[i], DT_COMPLEX64));
    for (int count[] = { 1, inner, n - 1 - inner }, i = 0; i < 3; i++) {
        shape[axis] = count[i];
        if (count[i])
            TRY(ops_full(&part[at++], (struct ints){ shape, like->ndim }, number[i == 1],
                         DT_COMPLEX64, f->strm));
    }
    TRY(ops_concatenate(&x, (struct arrs){ part, (size_t)at }, axis, f->strm));
    arr_move(out, &x);
out:
    arr_unref_all(part, ARRAY_LEN(part));
    arr_unref_all(number, 2);
    arr_unref(&x);
    return err;
}

/* The transform the other way round. */
static enum err transposed(struct arr **out, const struct op_apply *f, struct arr *y)
{
    const struct fft_params *p = f->params;
    struct fft_params back;

    op_own_params(&back, f);
    back.inverse = !p->inverse;
    back.odd = p->real && !p->inverse && f->in[0]->shape[p->axis[p->n - 1]] % 2;
    return ops_make_one(out, OP_FFT, &back, y, f->strm);
}

/* The forward transform is a matrix F, the inverse F^H / n: the transposed conjugate of one is the
 * other one times n, or divided by it. */
static double factor_of(const struct op_apply *f, const struct arr *out)
{
    const struct fft_params *p = f->params;
    const struct arr *full = p->inverse ? out : f->in[0];
    double n = 1;

    for (int i = 0; i < p->n; i++)
        n *= full->shape[p->axis[i]];
    return p->inverse ? 1 / n : n;
}

/* x * w, where w is there, times the number where that is not 1. */
static enum err times(struct arr **x, struct arr *w, double number, struct strm *s)
{
    struct arr *by = NULL;
    enum err err = ERR_OK;

    if (w)
        STEP(*x, ops_binary(&next, OP_MULTIPLY, *x, w, s));
    if (number != 1) {
        TRY(arr_new_number(&by, number, dtype_of(*x)));
        STEP(*x, ops_binary(&next, OP_MULTIPLY, *x, by, s));
    }
out:
    arr_unref(&by);
    return err;
}

/* Of a half spectrum what is not there is used, too: its conjugates. */
enum err op_vjp_fft(struct vjp_call *c)
{
    const struct fft_params *p = c->f.params;
    double factor = factor_of(&c->f, c->out[0]);
    struct arr *x = arr_ref(c->cotan[0]), *w = NULL;
    struct strm *s = c->f.strm;
    enum err err = ERR_OK;

    if (p->real && p->inverse)
        TRY(weights(&w, &c->f, c->f.in[0], (double[]){ factor, 2 * factor }));
    else if (p->real)
        TRY(weights(&w, &c->f, c->out[0], (double[]){ 1, 0.5 }));
    if (p->real && !p->inverse)
        TRY(times(&x, w, 1, s));
    STEP(x, transposed(&next, &c->f, x));
    if (p->real && p->inverse)
        TRY(times(&x, w, 1, s));
    else
        TRY(times(&x, NULL, factor, s));
    arr_move(&c->result[0], &x);
out:
    arr_unref(&w);
    arr_unref(&x);
    return err;
}

/* ---- batches ---- */

enum err op_vmap_fft(struct vmap_call *c)
{
    struct fft_params p;

    op_own_params(&p, &c->f);
    for (int i = 0; i < p.n; i++)
        p.axis[i] += p.axis[i] >= c->axis[0];
    c->out_axis[0] = c->axis[0];
    return ops_make_one(c->result, OP_FFT, &p, c->f.in[0], c->f.strm);
}
