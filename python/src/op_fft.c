/* Functions by hand: Fourier transforms. Most have a, sizes, axes, norm, stream. */
#include "args.h"
#include "hand.h"

typedef int (*axis_fn)(mlx_array *, const mlx_array, int, int, mlx_fft_norm, const mlx_stream);
typedef int (*axes_fn)(mlx_array *, const mlx_array, const int *, size_t, const int *, size_t,
                       mlx_fft_norm, const mlx_stream);
typedef int (*shift_fn)(mlx_array *, const mlx_array, const int *, size_t, const mlx_stream);

enum { AXES_MAX = 64 };

static bool norm_from(const struct frame *f, int i, mlx_fft_norm *norm)
{
    static const char *const names[] = { "backward", "ortho", "forward" };

    for (int k = 0; k < 3; k++)
        if (strcmp(f->v[i].text, names[k]) == 0) {
            *norm = (mlx_fft_norm)k;
            return true;
        }
    PyErr_Format(PyExc_ValueError,
                 "[%s] Invalid norm. Expected one of {'backward', 'ortho', 'forward'}.",
                 f->sig->name);
    return false;
}

/* How long an axis of the result is by itself: inverse real transforms give twice as many. The
 * library refuses axes that are not there. */
static int own_size(mlx_array a, int axis, bool doubled)
{
    int ndim = (int)mlx_array_ndim(a), n = 1;

    if (axis >= -ndim && axis < ndim)
        n = mlx_array_shape(a)[axis < 0 ? axis + ndim : axis];
    return doubled ? 2 * (n - 1) : n;
}

static PyObject *along_axis(struct frame *f, axis_fn call, bool doubled)
{
    mlx_array a = f->v[0].array;
    int axis = f->v[2].i;
    mlx_fft_norm norm;

    if (!norm_from(f, 3, &norm))
        return NULL;
    int n = f->given[1] ? f->v[1].i : own_size(a, axis, doubled);
    FRAME_RETURN(f, call(&f->out, a, n, axis, norm, f->v[4].stream));
}

/* The axes given, or all. */
static bool axes_from(struct frame *f, struct int_list *axes, int *all)
{
    size_t ndim = mlx_array_ndim(f->v[0].array);

    *axes = f->v[2].ints;
    if (f->given[2] && axes->n <= AXES_MAX)
        return true;
    if (axes->n > AXES_MAX || ndim > AXES_MAX)
        PyErr_Format(PyExc_ValueError, "[%s] Too many axes.", f->sig->name);
    else if (f->given[1])
        PyErr_Format(PyExc_ValueError, "[%s] `axes` should not be `None` if `s` is not `None`.",
                     f->sig->name);
    else if (ndim == 0)
        PyErr_Format(PyExc_ValueError, "[%s] Requires array with at least one dimension.",
                     f->sig->name);
    for (size_t i = 0; i < ndim && !PyErr_Occurred(); i++)
        all[i] = (int)i;
    *axes = (struct int_list){ all, ndim };
    return !PyErr_Occurred();
}

static PyObject *along_axes(struct frame *f, axes_fn call, bool doubled)
{
    mlx_array a = f->v[0].array;
    struct int_list axes, n = f->v[1].ints;
    int all[AXES_MAX], own[AXES_MAX];
    mlx_fft_norm norm;

    if (!norm_from(f, 3, &norm) || !axes_from(f, &axes, all))
        return NULL;
    if (!f->given[1]) {
        for (size_t i = 0; i < axes.n; i++)
            own[i] = own_size(a, axes.v[i], doubled && i + 1 == axes.n);
        n = (struct int_list){ own, axes.n };
    }
    FRAME_RETURN(f, call(&f->out, a, n.v, n.n, axes.v, axes.n, norm, f->v[4].stream));
}

/* Along the axes given, or all. */
static PyObject *shift(struct frame *f, shift_fn call)
{
    mlx_array a = f->v[0].array;
    struct int_list axes = f->v[1].ints;
    int all[AXES_MAX];

    if (!f->given[1]) {
        axes = (struct int_list){ all, mlx_array_ndim(a) };
        for (size_t i = 0; i < axes.n && i < AXES_MAX; i++)
            all[i] = (int)i;
    }
    FRAME_RETURN(f, call(&f->out, a, axes.v, axes.n, f->v[2].stream));
}

PyObject *hand_fft_fft(struct frame *f)
{
    return along_axis(f, mlx_fft_fft, false);
}

PyObject *hand_fft_fftn(struct frame *f)
{
    return along_axes(f, mlx_fft_fftn, false);
}

PyObject *hand_fft_ifft(struct frame *f)
{
    return along_axis(f, mlx_fft_ifft, false);
}

PyObject *hand_fft_ifftn(struct frame *f)
{
    return along_axes(f, mlx_fft_ifftn, false);
}

PyObject *hand_fft_rfft(struct frame *f)
{
    return along_axis(f, mlx_fft_rfft, false);
}

PyObject *hand_fft_rfftn(struct frame *f)
{
    return along_axes(f, mlx_fft_rfftn, false);
}

PyObject *hand_fft_irfft(struct frame *f)
{
    return along_axis(f, mlx_fft_irfft, true);
}

PyObject *hand_fft_irfftn(struct frame *f)
{
    return along_axes(f, mlx_fft_irfftn, true);
}

PyObject *hand_fft_fftshift(struct frame *f)
{
    return shift(f, mlx_fft_fftshift);
}

PyObject *hand_fft_ifftshift(struct frame *f)
{
    return shift(f, mlx_fft_ifftshift);
}

/* ---- of pieces ---- */

static mlx_optional_int int_of(const struct frame *f, int i)
{
    return (mlx_optional_int){ .value = f->v[i].i, .has_value = f->given[i] };
}

PyObject *hand_fft_stft(struct frame *f)
{
    const bool *onesided = f->given[8] ? &f->v[8].b : NULL;
    mlx_fft_norm norm;

    if (!norm_from(f, 7, &norm))
        return NULL;
    FRAME_RETURN(f, mlx_fft_stft(&f->out, f->v[0].array, f->v[1].i, int_of(f, 2), int_of(f, 3),
                                 f->v[4].array, f->v[5].b, f->v[6].text, norm, onesided,
                                 f->v[9].stream));
}

PyObject *hand_fft_istft(struct frame *f)
{
    const bool *onesided = f->given[7] ? &f->v[7].b : NULL;
    mlx_fft_norm norm;

    if (!norm_from(f, 6, &norm))
        return NULL;
    FRAME_RETURN(f, mlx_fft_istft(&f->out, f->v[0].array, int_of(f, 1), int_of(f, 2), int_of(f, 3),
                                  f->v[4].array, f->v[5].b, norm, onesided, int_of(f, 8),
                                  f->v[9].stream));
}
