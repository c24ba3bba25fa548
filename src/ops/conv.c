/* Convolutions, channels last. */
#include "ops/conv.h"
#include "ops/build.h"
#include "ops/rules.h"

/* ---- what the results are ---- */

int64_t conv_dilated(int64_t n, int64_t dilation)
{
    return 1 + dilation * (n - 1);
}

static int64_t size_along(const struct arr *x, const struct arr *w, const struct conv_params *p,
                          int i)
{
    int64_t in = conv_dilated(x->shape[i + 1], p->d[i].input_dilation);
    int64_t kernel = conv_dilated(w->shape[i + 1], p->d[i].kernel_dilation);

    /* Towards zero, as MLX: what lacks less than a stride is one element. */
    return (in + p->d[i].pad_lo + p->d[i].pad_hi - kernel) / p->d[i].stride + 1;
}

enum err op_infer_conv(struct infer_call *c)
{
    const struct conv_params *p = c->params;
    const struct arr *x = c->in[0], *w = c->in[1];
    struct out_desc *out = &c->out[0];

    FITS(x->dtype == w->dtype && dt_is_inexact(dtype_of(x)));
    FITS(p->n >= 1 && p->n <= CONV_AXES && x->ndim == p->n + 2 && w->ndim == x->ndim);
    FITS(p->groups >= 1 && w->shape[0] % p->groups == 0);
    FITS((int64_t)w->shape[p->n + 1] * p->groups == x->shape[p->n + 1]);
    infer_like(c, x);
    out->shape.d[p->n + 1] = w->shape[0];
    for (int i = 0; i < p->n; i++) {
        FITS(p->d[i].stride >= 1 && p->d[i].kernel_dilation >= 1 && p->d[i].input_dilation >= 1);
        int64_t size = size_along(x, w, p, i);
        FITS(size >= 0 && size <= INT32_MAX);
        out->shape.d[i + 1] = (int32_t)size;
    }
    return ERR_OK;
}

/* ---- arguments ---- */

/* Numbers as MLX prints them in errors. */
static struct shp numbers(struct ints v)
{
    struct shp s = { .ndim = (int)MIN(v.n, SHP_MAX) };

    for (int i = 0; i < s.ndim; i++)
        s.d[i] = v.v[i];
    return s;
}
#define ints_text(v) shp_text(&(struct shp[]){ numbers(v) }[0])
#define arr_text(a) ints_text(shape_of(a))

static enum err check_ranks(const struct ops_conv *v)
{
    int n = v->x->ndim - 2;

    if (v->groups != 1 && n != 1 && n != 2)
        return err_set(ERR_ARG, "[conv] Can only handle groups != 1 in 1D or 2D convolutions.");
    if (n < 1 || n > CONV_AXES)
        return err_set(ERR_ARG,
                       "[conv] Only works for inputs with 1-3 spatial dimensions. The inputs must "
                       "be in the format [N, ..., C_in], got %s.",
                       arr_text(v->x));
    if (!dt_is_float(dtype_of(v->x)))
        return err_set(ERR_ARG,
                       "[conv] Invalid input array with type %s. Convolution currently only "
                       "supports floating point types.",
                       dt_name(dtype_of(v->x)));
    if (v->w->ndim != n + 2)
        return err_set(ERR_ARG,
                       "[conv] Invalid weight array with %d dimensions for %dD convolution. "
                       "Expected an array with %d dimensions following the format [C_out, ..., "
                       "C_in].",
                       v->w->ndim, n, n + 2);
    return ERR_OK;
}

static enum err check_channels(const struct ops_conv *v)
{
    int last = v->x->ndim - 1;
    int64_t groups = v->groups, have = v->x->shape[last], want = groups * v->w->shape[last];

    if (groups == 0 || have % groups != 0)
        return err_set(ERR_ARG,
                       "[conv] The input channels must be divisible by the number of groups. Got "
                       "input with shape %s and %d groups.",
                       arr_text(v->x), v->groups);
    if (groups > 1 && v->w->shape[0] % groups != 0)
        return err_set(ERR_ARG,
                       "[conv] If groups > 1, the output channels must be divisible by the number "
                       "of groups. Got %d output channels and %d groups.",
                       v->w->shape[0], v->groups);
    if (have != want && groups == 1)
        return err_set(ERR_ARG,
                       "[conv] Expect the input channels in the input and weight array to match "
                       "but got shapes - input: %s and weight: %s.",
                       arr_text(v->x), arr_text(v->w));
    if (have != want || groups < 1)
        return err_set(ERR_ARG,
                       "[conv] Given groups=%d and weights of shape %s, expected to have %lld "
                       "input channels but got %lld input channels instead.",
                       v->groups, arr_text(v->w), (long long)want, (long long)have);
    return ERR_OK;
}

/* A list that is absent, or one number for all axes, or has one for each. */
static bool spread(int32_t *out, struct ints v, int n, int32_t standard)
{
    if (v.n > 1 && v.n != (size_t)n)
        return false;
    for (int i = 0; i < n; i++)
        out[i] = !v.n ? standard : v.v[v.n > 1 ? i : 0];
    return true;
}

static enum err unfit_list(const char *what, struct ints v, int n)
{
    return err_set(ERR_ARG, "[conv] Invalid %s %s for %dD convolution.", what, ints_text(v), n);
}

static enum err params_init(struct conv_params *p, const struct ops_conv *v)
{
    int n = v->x->ndim - 2;
    int32_t stride[CONV_AXES], lo[CONV_AXES], hi[CONV_AXES], kernel[CONV_AXES], input[CONV_AXES];

    *p = (struct conv_params){ .groups = v->groups, .flip = v->flip, .n = n };
    if (!spread(stride, v->stride, n, 1))
        return unfit_list("strides", v->stride, n);
    if (!spread(lo, v->pad_lo, n, 0) || !spread(hi, v->pad_hi, n, 0))
        return err_set(ERR_ARG, "[conv] Invalid padding %s | %s for %dD convolution.",
                       ints_text(v->pad_lo), ints_text(v->pad_hi), n);
    if (!spread(kernel, v->kernel_dilation, n, 1))
        return unfit_list("kernel dilation", v->kernel_dilation, n);
    if (!spread(input, v->input_dilation, n, 1))
        return unfit_list("input dilation", v->input_dilation, n);
    for (int i = 0; i < n; i++) {
        p->d[i].stride = stride[i];
        p->d[i].pad_lo = lo[i];
        p->d[i].pad_hi = hi[i];
        p->d[i].kernel_dilation = kernel[i];
        p->d[i].input_dilation = input[i];
    }
    return ERR_OK;
}

static enum err check_sizes(const struct ops_conv *v, const struct conv_params *p,
                            const struct arr *x)
{
    enum err err = ERR_OK;

    for (int i = 0; i < p->n; i++) {
        int32_t size;
        if (p->d[i].kernel_dilation <= 0)
            return err_set(ERR_ARG,
                           "[conv] Kernel dilation sizes must be positive. Got kernel dilation %s.",
                           ints_text(v->kernel_dilation));
        if (p->d[i].input_dilation <= 0)
            return err_set(ERR_ARG,
                           "[conv] Input dilation sizes must be positive. Got input dilation %s.",
                           ints_text(v->input_dilation));
        if (p->d[i].stride <= 0)
            return err_set(ERR_ARG, "[conv] Stride sizes must be positive. Got strides %s.",
                           ints_text(v->stride));
        if (size_along(x, v->w, p, i) <= 0)
            return err_set(ERR_ARG,
                           "[conv] Spatial dimensions of input after padding cannot be smaller "
                           "than weight spatial dimensions. Got error at axis %d for input with "
                           "shape %s, padding low %s, padding high %s, and weight of shape %s.",
                           i + 1, arr_text(v->x), ints_text(v->pad_lo), ints_text(v->pad_hi),
                           arr_text(v->w));
        TRY(ops_dim(&size, size_along(x, v->w, p, i), "conv"));
    }
out:
    return err;
}

/* Padding below 0 takes elements of the input away, before it is dilated. */
static enum err crop(struct arr **out, struct conv_params *p, const struct ops_conv *v,
                     struct strm *s)
{
    int32_t start[CONV_AXES + 2] = { 0 }, stop[CONV_AXES + 2], step[CONV_AXES + 2];
    size_t n = v->x->ndim;
    bool is_whole = true;

    for (size_t i = 0; i < n; i++) {
        stop[i] = v->x->shape[i];
        step[i] = 1;
    }
    for (int i = 0; i < p->n; i++) {
        int64_t lo = -(int64_t)p->d[i].pad_lo, hi = -(int64_t)p->d[i].pad_hi, size = stop[i + 1];
        is_whole &= lo <= 0 && hi <= 0;
        start[i + 1] = (int32_t)MIN(MAX(lo, 0), size);
        stop[i + 1] = (int32_t)MAX(size - MAX(hi, 0), 0);
        p->d[i].pad_lo = MAX(p->d[i].pad_lo, 0);
        p->d[i].pad_hi = MAX(p->d[i].pad_hi, 0);
    }
    if (is_whole)
        return ops_same(out, v->x);
    return ops_slice(out, v->x, &(struct ops_slice){ { start, n }, { stop, n }, { step, n } }, s);
}

/* ---- nodes ---- */

/* Every position of the result reads its own one of x, all channels of it. */
static bool is_product(const struct conv_params *p, const struct arr *x, const struct arr *w)
{
    int64_t rows = x->shape[0];

    for (int i = 0; i < p->n; i++) {
        rows = MIN(rows * x->shape[i + 1], (int64_t)INT32_MAX + 1);
        if (w->shape[i + 1] != 1 || p->d[i].stride != 1 || p->d[i].pad_lo || p->d[i].pad_hi ||
            p->d[i].input_dilation != 1)
            return false;
    }
    return p->groups == 1 && rows <= INT32_MAX;
}

static enum err product(struct arr **out, struct arr *x, struct arr *w, struct strm *s)
{
    struct arr *m = NULL;
    enum err err;

    TRY(ops_flatten(&m, w, 1, -1, s));
    STEP(m, ops_swapaxes(&next, m, 0, 1, s));
    TRY(ops_matmul(out, x, m, s));
out:
    arr_unref(&m);
    return err;
}

enum err ops_conv(struct arr **out, const struct ops_conv *v, struct strm *s)
{
    enum dtype t = dt_promote(dtype_of(v->x), dtype_of(v->w));
    struct arr *in[2] = { NULL, NULL };
    struct conv_params p;
    enum err err;

    TRY(check_ranks(v));
    TRY(check_channels(v));
    TRY(params_init(&p, v));
    TRY(crop(&in[0], &p, v, s));
    TRY(check_sizes(v, &p, in[0]));
    STEP(in[0], ops_astype(&next, in[0], t, s));
    TRY(ops_astype(&in[1], v->w, t, s));
    if (is_product(&p, in[0], in[1]))
        TRY(product(out, in[0], in[1], s));
    else
        TRY(ops_make(out, OP_CONVOLUTION, &p, (struct arrs){ in, 2 }, s));
out:
    arr_unref_all(in, 2);
    return err;
}

enum err ops_conv_transpose(struct arr **out, const struct ops_conv_transpose *v, struct strm *s)
{
    int32_t lo[CONV_AXES] = { 0 }, hi[CONV_AXES] = { 0 };
    size_t n = v->stride.n;
    struct ops_conv c = { .x = v->x,
                          .w = v->w,
                          .pad_lo = { lo, n },
                          .pad_hi = { hi, n },
                          .kernel_dilation = v->dilation,
                          .input_dilation = v->stride,
                          .groups = v->groups,
                          .flip = true };
    enum err err;

    TRY(check_ranks(&c));
    /* Of what does not fit, ops_conv says so. */
    for (size_t i = 0; i < n && (int)n == v->x->ndim - 2; i++) {
        int64_t low = conv_dilated(v->w->shape[i + 1], v->dilation.v[i]) - 1 - v->padding.v[i];
        int64_t high = low + v->output_padding.v[i];
        if (low < INT32_MIN || high < INT32_MIN)
            return err_set(ERR_OVERFLOW, "[conv] Padding %lld does not fit.",
                           (long long)MIN(low, high));
        TRY(ops_dim(&lo[i], low, "conv"));
        TRY(ops_dim(&hi[i], high, "conv"));
    }
    TRY(ops_conv(out, &c, s));
out:
    return err;
}
