/* Fourier transforms. */
#include "api/handle.h"

static_assert(FFT_NORM_BACKWARD == (int)MLX_FFT_NORM_BACKWARD, "norms differ");
static_assert(FFT_NORM_ORTHO == (int)MLX_FFT_NORM_ORTHO, "norms differ");
static_assert(FFT_NORM_FORWARD == (int)MLX_FFT_NORM_FORWARD, "norms differ");

static int transform(struct call c, mlx_array *res, const mlx_array a, const struct ops_fft *v)
{
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = ops_fft(&c.out, x, v, c.strm);
    return CALL_END_ARR(&c, res);
}

/* Along one axis, which n and axis are of. */
#define ONE(name, is_inverse, is_real)                                                             \
    int mlx_fft_##name(mlx_array *res, const mlx_array a, int n, int axis, mlx_fft_norm norm,      \
                       const mlx_stream s)                                                         \
    {                                                                                              \
        struct ops_fft v = { .n = { &n, 1 },                                                       \
                             .axes = { &axis, 1 },                                                 \
                             .inverse = is_inverse,                                                \
                             .real = is_real,                                                      \
                             .norm = (enum ops_fft_norm)norm };                                    \
        return transform(CALL_OP(res, s), res, a, &v);                                             \
    }

/* Along several. */
#define LIST(name, is_inverse, is_real)                                                            \
    int mlx_fft_##name(mlx_array *res, const mlx_array a, const int *n, size_t n_num,              \
                       const int *axes, size_t axes_num, mlx_fft_norm norm, const mlx_stream s)    \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct ops_fft v = { .n = call_ints(&c, n, n_num, "n"),                                    \
                             .axes = call_ints(&c, axes, axes_num, "axes"),                        \
                             .inverse = is_inverse,                                                \
                             .real = is_real,                                                      \
                             .norm = (enum ops_fft_norm)norm };                                    \
        return transform(c, res, a, &v);                                                           \
    }

#define KIND(prefix, is_inverse, is_real)                                                          \
    ONE(prefix##fft, is_inverse, is_real)                                                          \
    LIST(prefix##fft2, is_inverse, is_real)                                                        \
    LIST(prefix##fftn, is_inverse, is_real)
KIND(, false, false)
KIND(i, true, false)
KIND(r, false, true)
KIND(ir, true, true)

#define SHIFT(name, is_inverse)                                                                    \
    int mlx_fft_##name(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,        \
                       const mlx_stream s)                                                         \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        struct ints list = call_ints(&c, axes, axes_num, "axes");                                  \
        if (call_ok(&c))                                                                           \
            c.err = ops_fftshift(&c.out, x, list, is_inverse, c.strm);                             \
        return CALL_END_ARR(&c, res);                                                              \
    }
SHIFT(fftshift, false)
SHIFT(ifftshift, true)

#define FREQ(name, is_real)                                                                        \
    int mlx_fft_##name(mlx_array *res, int n, double d, const mlx_stream s)                        \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        if (call_ok(&c))                                                                           \
            c.err = ops_fftfreq(&c.out, n, d, is_real, c.strm);                                    \
        return CALL_END_ARR(&c, res);                                                              \
    }
FREQ(fftfreq, false)
FREQ(rfftfreq, true)

static const int *optional(const mlx_optional_int *v)
{
    return v->has_value ? &v->value : NULL;
}

int mlx_fft_stft(mlx_array *res, const mlx_array x, int n_fft, mlx_optional_int hop_length,
                 mlx_optional_int win_length, const mlx_array window, bool center,
                 const char *pad_mode, mlx_fft_norm norm, const bool *onesided, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *a = call_arr(&c, x, "x");
    struct ops_stft v = { .n_fft = &n_fft,
                          .hop = optional(&hop_length),
                          .win = optional(&win_length),
                          .window = call_arr_opt(&c, window),
                          .center = center,
                          .pad_mode = call_ptr(&c, pad_mode, "pad_mode"),
                          .norm = (enum ops_fft_norm)norm,
                          .onesided = onesided };

    if (call_ok(&c))
        c.err = ops_stft(&c.out, a, &v, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_fft_istft(mlx_array *res, const mlx_array stft_matrix, mlx_optional_int n_fft,
                  mlx_optional_int hop_length, mlx_optional_int win_length, const mlx_array window,
                  bool center, mlx_fft_norm norm, const bool *onesided, mlx_optional_int length,
                  const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *a = call_arr(&c, stft_matrix, "stft_matrix");
    struct ops_stft v = { .n_fft = optional(&n_fft),
                          .hop = optional(&hop_length),
                          .win = optional(&win_length),
                          .window = call_arr_opt(&c, window),
                          .center = center,
                          .norm = (enum ops_fft_norm)norm,
                          .onesided = onesided,
                          .length = optional(&length) };

    if (call_ok(&c))
        c.err = ops_istft(&c.out, a, &v, c.strm);
    return CALL_END_ARR(&c, res);
}
