/* Fourier transforms. Conventions: see mlx.h.
 *
 * Every transform computes in float32 and gives complex64, or float32 where it is real. n: sizes of
 * the transformed axes, to which the input is cut or filled up with zeros; more than 0. Negative
 * axes count from the end; an axis occurs once. Any size is transformed on every device; sizes
 * whose prime factors are small are the fastest. */
#ifndef MLX_FFT_H
#define MLX_FFT_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which way the result is scaled by 1 / (product of n): the inverse (backward), the forward
 * transform, or both by the root of it (ortho). */
typedef enum mlx_fft_norm_ {
    MLX_FFT_NORM_BACKWARD = 0,
    MLX_FFT_NORM_ORTHO = 1,
    MLX_FFT_NORM_FORWARD = 2
} mlx_fft_norm;

/* ---- complex to complex ---- */

int mlx_fft_fft(mlx_array *res, const mlx_array a, int n, int axis, mlx_fft_norm norm,
                const mlx_stream s);
int mlx_fft_fft2(mlx_array *res, const mlx_array a, const int *n, size_t n_num, const int *axes,
                 size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
/* Without axes the result is a. */
int mlx_fft_fftn(mlx_array *res, const mlx_array a, const int *n, size_t n_num, const int *axes,
                 size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
int mlx_fft_ifft(mlx_array *res, const mlx_array a, int n, int axis, mlx_fft_norm norm,
                 const mlx_stream s);
int mlx_fft_ifft2(mlx_array *res, const mlx_array a, const int *n, size_t n_num, const int *axes,
                  size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
int mlx_fft_ifftn(mlx_array *res, const mlx_array a, const int *n, size_t n_num, const int *axes,
                  size_t axes_num, mlx_fft_norm norm, const mlx_stream s);

/* ---- real to complex: of the last of the axes the first n / 2 + 1 frequencies, of which the
 * others are the conjugates ---- */

int mlx_fft_rfft(mlx_array *res, const mlx_array a, int n, int axis, mlx_fft_norm norm,
                 const mlx_stream s);
int mlx_fft_rfft2(mlx_array *res, const mlx_array a, const int *n, size_t n_num, const int *axes,
                  size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
int mlx_fft_rfftn(mlx_array *res, const mlx_array a, const int *n, size_t n_num, const int *axes,
                  size_t axes_num, mlx_fft_norm norm, const mlx_stream s);

/* ---- and back: n is the size of the result, of which n / 2 + 1 frequencies are read. The
 * imaginary parts of frequency 0 and, if n is even, n / 2 count as zero ---- */

int mlx_fft_irfft(mlx_array *res, const mlx_array a, int n, int axis, mlx_fft_norm norm,
                  const mlx_stream s);
int mlx_fft_irfft2(mlx_array *res, const mlx_array a, const int *n, size_t n_num, const int *axes,
                   size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
int mlx_fft_irfftn(mlx_array *res, const mlx_array a, const int *n, size_t n_num, const int *axes,
                   size_t axes_num, mlx_fft_norm norm, const mlx_stream s);

/* ---- frequencies ---- */

/* The frequencies of fft, and of rfft, for n samples at a distance of d: float32. */
int mlx_fft_fftfreq(mlx_array *res, int n, double d, const mlx_stream s);
int mlx_fft_rfftfreq(mlx_array *res, int n, double d, const mlx_stream s);

/* Moves frequency 0 to the middle of axes; ifftshift moves it back. */
int mlx_fft_fftshift(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                     const mlx_stream s);
int mlx_fft_ifftshift(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                      const mlx_stream s);

#ifdef __cplusplus
}
#endif

#endif
