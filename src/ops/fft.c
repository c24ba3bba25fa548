/* Fourier transforms. */
#include <math.h>

#include "ops/build.h"
#include "ops/rules.h"

/* ---- what the results are ---- */

enum err op_infer_fft(struct infer_call *c)
{
    const struct fft_params *p = c->params;
    const struct arr *a = c->in[0];
    bool is_back = p->real && p->inverse, is_seen[SHP_MAX] = { false };

    FITS(a->dtype == (p->real && !p->inverse ? DT_FLOAT32 : DT_COMPLEX64));
    FITS(p->n >= 1 && p->n <= a->ndim);
    for (int i = 0; i < p->n; i++) {
        FITS(infer_has_axis(a, p->axis[i]) && !is_seen[p->axis[i]] && a->shape[p->axis[i]] > 0);
        is_seen[p->axis[i]] = true;
    }
    infer_like(c, a);
    c->out[0].dtype = is_back ? DT_FLOAT32 : DT_COMPLEX64;
    int32_t *size = &c->out[0].shape.d[p->axis[p->n - 1]];
    int64_t full = 2 * ((int64_t)*size - 1) + p->odd;
    FITS(is_back ? full >= 1 && full <= INT32_MAX : !p->odd);
    if (p->real)
        *size = is_back ? (int32_t)full : *size / 2 + 1;
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

static enum err params_init(struct fft_params *p, const struct arr *a, const struct ops_fft *v)
{
    bool is_bad = false;

    *p = (struct fft_params){ .inverse = v->inverse, .real = v->real };
    for (size_t i = 0; i < v->axes.n; i++) {
        int64_t axis = v->axes.v[i] < 0 ? (int64_t)v->axes.v[i] + a->ndim : v->axes.v[i];
        for (int k = 0; k < p->n; k++)
            if (p->axis[k] == axis)
                return err_set(ERR_ARG, "[fftn] Duplicated axis received %s", ints_text(v->axes));
        is_bad |= axis < 0 || axis >= a->ndim;
        if (p->n < SHP_MAX) /* more of them are bad, or twice the same */
            p->axis[p->n++] = (int32_t)axis;
    }
    if (is_bad)
        return err_set(ERR_RANGE, "[fftn] Invalid axis received for array with %d dimensions.",
                       a->ndim);
    for (size_t i = 0; i < v->n.n; i++)
        if (v->n.v[i] <= 0)
            return err_set(ERR_ARG, "[fftn] Invalid FFT output size requested %s", ints_text(v->n));
    p->odd = v->real && v->inverse && v->n.v[v->n.n - 1] % 2;
    return ERR_OK;
}

static enum err check(const struct arr *a, const struct ops_fft *v)
{
    if (a->ndim < 1)
        return err_set(ERR_ARG, "[fftn] Requires array with at least one dimension.");
    if (v->n.n != v->axes.n)
        return err_set(ERR_ARG, "[fftn] Shape and axes have different sizes.");
    if (v->norm != FFT_NORM_BACKWARD && v->norm != FFT_NORM_ORTHO && v->norm != FFT_NORM_FORWARD)
        return err_set(ERR_ARG, "[fftn] Invalid FFT normalization mode.");
    return ERR_OK;
}

/* ---- the input: cut, then filled up with zeros ---- */

static enum err fit(struct arr **out, struct arr *a, const struct shp *shape, struct strm *s)
{
    int32_t start[SHP_MAX] = { 0 }, step[SHP_MAX], stop[SHP_MAX];
    struct arr *x = arr_ref(a), *zeros = NULL;
    size_t n = a->ndim;
    bool is_cut = false, is_filled = false;
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++) {
        step[i] = 1;
        stop[i] = MIN(shape->d[i], a->shape[i]);
        is_cut |= shape->d[i] < a->shape[i];
        is_filled |= shape->d[i] > a->shape[i];
    }
    struct ops_slice kept = { { start, n }, { stop, n }, { step, n } };
    if (is_cut)
        STEP(x, ops_slice(&next, x, &kept, s));
    if (is_filled) {
        struct ops_slice_update u = { .update = x, .region = kept, .kind = UPDATE_NONE };
        TRY(ops_fill(&zeros, shp_ints(shape), 0, dtype_of(a), s));
        STEP(x, ops_slice_update(&next, zeros, &u, s));
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    arr_unref(&zeros);
    return err;
}

static double scale_of(const struct ops_fft *v)
{
    double n = 1;

    for (size_t i = 0; i < v->n.n; i++)
        n *= v->n.v[i];
    if (v->norm == FFT_NORM_ORTHO)
        n = sqrt(n);
    if (v->norm == FFT_NORM_BACKWARD)
        return 1;
    return v->inverse ? n : 1 / n;
}

static enum err scaled(struct arr **x, double by, struct strm *s)
{
    struct arr *number = NULL;
    enum err err;

    TRY(arr_new_number(&number, by, dtype_of(*x)));
    STEP(*x, ops_binary(&next, OP_MULTIPLY, *x, number, s));
out:
    arr_unref(&number);
    return err;
}

enum err ops_fft(struct arr **out, struct arr *a, const struct ops_fft *v, struct strm *s)
{
    struct arr *x = NULL;
    struct fft_params p;
    struct shp shape;
    enum err err;

    TRY(check(a, v));
    if (!v->axes.n)
        return ops_same(out, a);
    TRY(params_init(&p, a, v));
    arr_shape(&shape, a);
    for (int i = 0; i < p.n; i++)
        shape.d[p.axis[i]] = v->n.v[i];
    if (v->real && v->inverse)
        shape.d[p.axis[p.n - 1]] = v->n.v[v->n.n - 1] / 2 + 1;
    TRY(fit(&x, a, &shape, s));
    STEP(x, ops_astype(&next, x, v->real && !v->inverse ? DT_FLOAT32 : DT_COMPLEX64, s));
    STEP(x, ops_make_one(&next, OP_FFT, &p, x, s));
    if (scale_of(v) != 1)
        TRY(scaled(&x, scale_of(v), s));
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

/* ---- frequencies ---- */

enum err ops_fftshift(struct arr **out, struct arr *a, struct ints axes, bool inverse,
                      struct strm *s)
{
    struct arr *x = arr_ref(a);
    enum err err = ERR_OK;

    for (size_t i = 0; i < axes.n; i++) {
        int64_t axis = axes.v[i] < 0 ? (int64_t)axes.v[i] + a->ndim : axes.v[i];
        if (axis < 0 || axis >= a->ndim)
            TRY(err_set(ERR_RANGE, "[%s] Invalid axis %d for array with %d dimensions.",
                        inverse ? "ifftshift" : "fftshift", axes.v[i], a->ndim));
    }
    for (size_t i = 0; i < axes.n; i++) {
        int32_t half = a->shape[axes.v[i] < 0 ? axes.v[i] + a->ndim : axes.v[i]] / 2;
        int32_t by = inverse ? -half : half;
        STEP(x, ops_roll(&next, x, (struct ints){ &by, 1 }, (struct ints){ &axes.v[i], 1 }, s));
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

static enum err range(struct arr **out, double start, double stop, struct strm *s)
{
    return ops_arange(out, &(struct arange_params){ .start = start, .stop = stop, .step = 1 },
                      DT_FLOAT32, s);
}

enum err ops_fftfreq(struct arr **out, int n, double d, bool real, struct strm *s)
{
    const char *name = real ? "rfftfreq" : "fftfreq";
    struct arr *part[2] = { NULL }, *x = NULL;
    enum err err = ERR_OK;

    if (n <= 0)
        TRY(err_set(ERR_ARG, "[%s] `n` must be greater than 0.", name));
    if (d == 0)
        TRY(err_set(ERR_ARG, "[%s] `d` must be non-zero.", name));
    double half = n / 2;
    if (real) {
        TRY(range(&x, 0, half + 1, s));
    } else {
        TRY(range(&part[0], 0, n - half, s));
        TRY(range(&part[1], -half, 0, s));
        TRY(ops_concatenate(&x, (struct arrs){ part, 2 }, 0, s));
    }
    TRY(scaled(&x, 1 / (n * d), s));
    arr_move(out, &x);
out:
    arr_unref_all(part, 2);
    arr_unref(&x);
    return err;
}
