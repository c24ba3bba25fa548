/* Fourier transforms of pieces, and back. */
#include "ops/build.h"

/* The numbers of a transform. */
struct pieces {
    int32_t n, hop, count; /* how long they are, from one to the next, how many */
    struct arr *window;    /* n numbers */
    struct arr *at;        /* positions in the signal: count rows of n */
    enum ops_fft_norm norm;
    bool onesided;
    const char *op;
    struct strm *strm;
};

static void pieces_fini(struct pieces *p)
{
    arr_unref(&p->window);
    arr_unref(&p->at);
}

static int64_t pieces_span(const struct pieces *p)
{
    return p->n + (int64_t)(p->count - 1) * p->hop;
}

/* ---- windows ---- */

static enum err pad_last(struct arr **out, struct arr *a, const int32_t width[2], const char *mode,
                         struct strm *s)
{
    struct arr *zero = NULL;
    struct ops_pad p = { .axes = { (int32_t[]){ -1 }, 1 },
                         .low = { &width[0], 1 },
                         .high = { &width[1], 1 },
                         .mode = mode };
    enum err err;

    TRY(arr_new_number(&zero, 0, dtype_of(a)));
    p.value = zero;
    err = ops_pad(out, a, &p, s);
out:
    arr_unref(&zero);
    return err;
}

/* In the middle of n places. */
static enum err make_window(struct pieces *p, const struct ops_stft *v)
{
    int32_t size = v->win ? *v->win : p->n, low;
    struct arr *w = NULL;
    enum err err = ERR_OK;

    if (v->window)
        w = arr_ref(v->window);
    else
        TRY(ops_fill(&w, (struct ints){ &size, 1 }, 1, DT_FLOAT32, p->strm));
    if (w->ndim != 1)
        TRY(err_set(ERR_ARG, "[%s] The window must have one dimension, not %d.", p->op, w->ndim));
    if (w->shape[0] > p->n)
        TRY(err_set(ERR_ARG, "[%s] A window of %d is longer than n_fft, which is %d.", p->op,
                    w->shape[0], p->n));
    low = (p->n - w->shape[0]) / 2;
    err =
        pad_last(&p->window, w, (int32_t[]){ low, p->n - w->shape[0] - low }, "constant", p->strm);
out:
    arr_unref(&w);
    return err;
}

static enum err pieces_init(struct pieces *p, const struct ops_stft *v)
{
    p->hop = v->hop ? *v->hop : p->n / 4;
    p->norm = v->norm;
    if (p->n <= 0)
        return err_set(ERR_ARG, "[%s] n_fft must be positive, not %d.", p->op, p->n);
    if (p->hop <= 0)
        return err_set(ERR_ARG, "[%s] hop_length must be positive, not %d.", p->op, p->hop);
    return make_window(p, v);
}

/* Row i: i * hop and what follows. */
static enum err make_positions(struct pieces *p)
{
    struct arr *begin = NULL, *i = NULL;
    struct arange_params rows = { 0, (double)p->count * p->hop, p->hop };
    enum err err;

    TRY(ops_arange(&begin, &rows, DT_INT32, p->strm));
    STEP(begin, ops_reshape(&next, begin, (struct ints){ (int32_t[]){ p->count, 1 }, 2 }, p->strm));
    TRY(ops_arange(&i, &(struct arange_params){ 0, p->n, 1 }, DT_INT32, p->strm));
    err = ops_binary(&p->at, OP_ADD, begin, i, p->strm);
out:
    arr_unref(&begin);
    arr_unref(&i);
    return err;
}

static struct ops_fft transform_of(const struct pieces *p, bool inverse)
{
    static const int32_t last = -1;

    return (struct ops_fft){ .n = { &p->n, 1 },
                             .axes = { &last, 1 },
                             .inverse = inverse,
                             .real = p->onesided,
                             .norm = p->norm };
}

/* ---- forth ---- */

enum err ops_stft(struct arr **out, struct arr *a, const struct ops_stft *v, struct strm *s)
{
    struct pieces p = { .n = *v->n_fft, .op = "stft", .strm = s };
    struct arr *x = NULL;
    enum err err;

    if (!a->ndim)
        return err_set(ERR_ARG, "[stft] A number has no axis to transform.");
    TRY(pieces_init(&p, v));
    p.onesided = v->onesided ? *v->onesided : a->dtype != DT_COMPLEX64;
    x = arr_ref(a);
    if (!a->shape[a->ndim - 1])
        TRY(err_set(ERR_ARG, "[stft] The last axis is empty."));
    if (v->center)
        STEP(x, pad_last(&next, x, (int32_t[]){ p.n / 2, p.n / 2 }, v->pad_mode, s));
    int32_t size = x->shape[x->ndim - 1];
    if (size < p.n)
        TRY(err_set(ERR_ARG, "[stft] The input is shorter than n_fft: %d instead of %d.", size,
                    p.n));
    p.count = (size - p.n) / p.hop + 1;
    TRY(make_positions(&p));
    STEP(x, ops_take(&next, x, p.at, -1, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, p.window, s));
    struct ops_fft fft = transform_of(&p, false);
    STEP(x, ops_fft(&next, x, &fft, s));
    err = ops_swapaxes(out, x, -1, -2, s);
out:
    pieces_fini(&p);
    arr_unref(&x);
    return err;
}

/* ---- back ---- */

/* The sum of pieces, the last two axes of x, each at its place. */
static enum err overlap(struct arr **out, struct arr *x, const struct pieces *p)
{
    struct arr *rows = NULL, *at = NULL, *sum = NULL;
    struct shp shape, rest;
    int n = x->ndim - 1;
    enum err err;

    arr_shape(&shape, x);
    shape.ndim = n;
    TRY(ops_dim(&shape.d[n - 1], pieces_span(p), p->op));
    TRY(ops_fill(&sum, shp_ints(&shape), 0, dtype_of(x), p->strm));
    TRY(ops_flatten(&rows, x, -2, -1, p->strm));
    rest = (struct shp){ .ndim = n };
    for (int i = 0; i < n; i++)
        rest.d[i] = 1;
    rest.d[n - 1] = rows->shape[n - 1];
    TRY(ops_reshape(&at, p->at, shp_ints(&rest), p->strm));
    err = ops_scatter_axis(out, sum, &(struct ops_scatter_axis){ at, rows, n - 1, UPDATE_SUM },
                           p->strm);
out:
    arr_unref(&rows);
    arr_unref(&at);
    arr_unref(&sum);
    return err;
}

/* x over the sum of the squares of the windows, or over next to nothing. */
static enum err normalised(struct arr **out, struct arr *x, const struct pieces *p)
{
    const struct shp all = { .ndim = 2, .d = { p->count, p->n } };
    struct arr *sum = NULL, *least = NULL;
    enum err err;

    TRY(ops_unary(&sum, OP_SQUARE, p->window, p->strm));
    STEP(sum, ops_broadcast_to(&next, sum, shp_ints(&all), p->strm));
    STEP(sum, overlap(&next, sum, p));
    TRY(arr_new_number(&least, 1e-8, DT_FLOAT32));
    STEP(least, ops_astype(&next, least, dtype_of(sum), p->strm));
    STEP(sum, ops_binary(&next, OP_MAXIMUM, sum, least, p->strm));
    err = ops_binary(out, OP_DIVIDE, x, sum, p->strm);
out:
    arr_unref(&sum);
    arr_unref(&least);
    return err;
}

/* Without what centering added in front, and as long as wanted: filled up with zeros, or without
 * what it added at the end. */
static enum err cut(struct arr **out, struct arr *x, const struct ops_stft *v,
                    const struct pieces *p)
{
    int32_t added = v->center ? p->n / 2 : 0, size = x->shape[x->ndim - 1];
    int32_t length = v->length ? *v->length : size - 2 * added;
    struct arr *part = NULL;
    enum err err;

    length = length > 0 ? length : 0;
    int32_t have = length < size - added ? length : size - added;
    TRY(ops_slice_axis(&part, x, x->ndim - 1, (int32_t[]){ added, added + have }, p->strm));
    err = have < length ? pad_last(out, part, (int32_t[]){ 0, length - have }, "constant", p->strm)
                        : ops_same(out, part);
out:
    arr_unref(&part);
    return err;
}

static enum err check_spectra(const struct arr *a)
{
    if (a->ndim < 2)
        return err_set(ERR_ARG, "[istft] Frequencies and pieces are two dimensions, not %d.",
                       a->ndim);
    return ERR_OK;
}

enum err ops_istft(struct arr **out, struct arr *a, const struct ops_stft *v, struct strm *s)
{
    struct pieces p = { .op = "istft", .strm = s };
    struct arr *x = NULL;
    enum err err;

    TRY(check_spectra(a));
    int32_t rows = a->shape[a->ndim - 2];
    p.onesided = !v->onesided || *v->onesided;
    TRY(ops_dim(&p.n, (int64_t)rows * (p.onesided ? 2 : 1), "istft"));
    p.n = v->n_fft ? *v->n_fft : p.n - (p.onesided ? 2 : 0);
    p.count = a->shape[a->ndim - 1];
    TRY(pieces_init(&p, v));
    if (!rows || !p.count)
        TRY(err_set(ERR_ARG, "[istft] There are no frequencies, or no pieces."));
    TRY(make_positions(&p));
    TRY(ops_swapaxes(&x, a, -1, -2, s));
    struct ops_fft fft = transform_of(&p, true);
    STEP(x, ops_fft(&next, x, &fft, s));
    if (x->dtype == DT_COMPLEX64)
        STEP(x, ops_unary(&next, OP_REAL, x, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, p.window, s));
    STEP(x, overlap(&next, x, &p));
    STEP(x, normalised(&next, x, &p));
    err = cut(out, x, v, &p);
out:
    pieces_fini(&p);
    arr_unref(&x);
    return err;
}
