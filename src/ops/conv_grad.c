/* Gradients of convolutions, which are convolutions: padding below 0 is nothing special there. */
#include "ops/build.h"
#include "ops/conv.h"
#include "ops/rules.h"

/* Swaps, within each group, the channels along axis `grouped` with what is along axis `with`. */
static enum err swap_in_groups(struct arr **x, int groups, int grouped, int with, struct strm *s)
{
    int32_t split[] = { groups, (*x)->shape[grouped] / groups };
    enum err err;

    STEP(*x, ops_unflatten(&next, *x, grouped, (struct ints){ split, 2 }, s));
    STEP(*x, ops_swapaxes(&next, *x, grouped + 1, with + (with > grouped), s));
    STEP(*x, ops_flatten(&next, *x, grouped, grouped + 1, s));
out:
    return err;
}

static enum err padding(int32_t *out, int64_t v)
{
    if (v < INT32_MIN || v > INT32_MAX)
        return err_set(ERR_OVERFLOW, "[conv] Padding %lld of a gradient does not fit.",
                       (long long)v);
    *out = (int32_t)v;
    return ERR_OK;
}

/* What one spatial axis reaches over: the input, the output and the weights, each dilated. */
struct reach {
    int64_t in, out, kernel;
};

static struct reach reach_of(const struct vjp_call *c, int i)
{
    const struct conv_params *p = c->f.params;

    return (struct reach){
        .in = conv_dilated(c->f.in[0]->shape[i + 1], p->d[i].input_dilation),
        .out = conv_dilated(c->cotan[0]->shape[i + 1], p->d[i].stride),
        .kernel = conv_dilated(c->f.in[1]->shape[i + 1], p->d[i].kernel_dilation),
    };
}

/* The cotangent with gaps for the stride, convolved with the weights from behind. */
static enum err input_gradient(struct arr **out, const struct vjp_call *c)
{
    const struct conv_params *from = c->f.params;
    struct conv_params p = { .groups = from->groups, .flip = !from->flip, .n = from->n };
    struct arr *w = NULL;
    enum err err = ERR_OK;

    for (int i = 0; i < p.n; i++) {
        struct reach r = reach_of(c, i);
        int64_t lo = from->d[i].pad_lo;
        p.d[i].stride = from->d[i].input_dilation;
        p.d[i].kernel_dilation = from->d[i].kernel_dilation;
        p.d[i].input_dilation = from->d[i].stride;
        TRY(padding(&p.d[i].pad_lo, r.kernel - 1 - lo));
        TRY(padding(&p.d[i].pad_hi, r.in - r.out + lo));
    }
    TRY(ops_unary(&w, OP_CONJUGATE, c->f.in[1], c->f.strm));
    TRY(swap_in_groups(&w, p.groups, 0, w->ndim - 1, c->f.strm));
    err = ops_make(out, OP_CONVOLUTION, &p, (struct arrs){ (struct arr *[]){ c->cotan[0], w }, 2 },
                   c->f.strm);
out:
    arr_unref(&w);
    return err;
}

/* Spatial axes from the last element to the first. */
static enum err reversed(struct arr **out, struct arr *a, struct strm *s)
{
    int32_t start[CONV_AXES + 2], stop[CONV_AXES + 2], step[CONV_AXES + 2];
    size_t n = a->ndim;

    for (size_t i = 0; i < n; i++) {
        bool is_spatial = i > 0 && i + 1 < n;
        start[i] = is_spatial ? a->shape[i] - 1 : 0;
        stop[i] = is_spatial ? -a->shape[i] - 1 : a->shape[i];
        step[i] = is_spatial ? -1 : 1;
    }
    return ops_slice(out, a, &(struct ops_slice){ { start, n }, { stop, n }, { step, n } }, s);
}

/* The input convolved with the cotangent, the batch as channels of both. */
static enum err weight_gradient(struct arr **out, const struct vjp_call *c)
{
    const struct conv_params *from = c->f.params;
    struct conv_params p = { .groups = from->groups, .n = from->n };
    struct arr *x = NULL, *w = NULL, *g = NULL;
    struct strm *s = c->f.strm;
    int last = c->f.in[0]->ndim - 1;
    enum err err = ERR_OK;

    for (int i = 0; i < p.n; i++) {
        struct reach r = reach_of(c, i);
        p.d[i].stride = from->d[i].kernel_dilation;
        p.d[i].kernel_dilation = from->d[i].stride;
        p.d[i].input_dilation = from->d[i].input_dilation;
        p.d[i].pad_lo = from->d[i].pad_lo;
        TRY(padding(&p.d[i].pad_hi, r.kernel - 1 - r.in - from->d[i].pad_lo + r.out));
    }
    TRY(ops_unary(&x, OP_CONJUGATE, c->f.in[0], s));
    TRY(swap_in_groups(&x, p.groups, last, 0, s));
    TRY(ops_swapaxes(&w, c->cotan[0], 0, last, s));
    TRY(ops_make(&g, OP_CONVOLUTION, &p, (struct arrs){ (struct arr *[]){ x, w }, 2 }, s));
    STEP(g, ops_swapaxes(&next, g, 0, last, s));
    err = from->flip ? reversed(out, g, s) : ops_same(out, g);
out:
    arr_unref(&x);
    arr_unref(&w);
    arr_unref(&g);
    return err;
}

enum err op_vjp_conv(struct vjp_call *c)
{
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++)
        TRY(c->wanted[done] ? weight_gradient(&c->result[done], c)
                            : input_gradient(&c->result[done], c));
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

/* Linear in each. */
enum err op_jvp_conv(struct jvp_call *c)
{
    struct arr *part[2] = { NULL, NULL };
    enum err err = ERR_OK;

    for (int i = 0; i < 2; i++) {
        struct arr *in[2] = { c->f.in[0], c->f.in[1] };
        in[i] = c->tan[i];
        if (in[i])
            TRY(ops_make(&part[i], c->f.op, c->f.params, (struct arrs){ in, 2 }, c->f.strm));
    }
    err = op_sum_of_two(&c->result[0], part, c->f.strm);
out:
    arr_unref_all(part, 2);
    return err;
}
