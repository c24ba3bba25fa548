/* Operations on arrays, by family. Conventions: see mlx.h.
 *
 * Every op adds a node to the graph and returns; shapes and dtypes are checked now, values are
 * computed when somebody needs them. s is the stream the op will run on, empty means the default.
 *
 * Inputs of different shapes broadcast: shapes are aligned at their last dimension, and dimensions
 * of size 1 or missing ones stretch. Inputs of different dtypes are promoted to the smallest dtype
 * that holds both kinds. Axes may be negative and then count from the end; an axis out of range is
 * an error. Pointers to lists may be NULL if their count is 0. */
#ifndef MLX_OPS_H
#define MLX_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx/c/array.h"
#include "mlx/c/optional.h"
#include "mlx/c/stream.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one input, element by element ----
 * The result has the shape of a. Ops of real analysis (exp, sin, sqrt, ...) turn integers and bool
 * into float32; outside of the domain the result is NaN. */

/* Absolute value; for complex64 the modulus, as float32. */
int mlx_abs(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Inverse cosine, sine and tangent, in radians. */
int mlx_arccos(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_arcsin(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_arctan(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Inverse hyperbolic cosine, sine and tangent. */
int mlx_arccosh(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_arcsinh(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_arctanh(mlx_array *res, const mlx_array a, const mlx_stream s);

/* All bits inverted; a must be an integer or bool (for which it is the logical not). */
int mlx_bitwise_invert(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Rounded up, rounded down. Integers are unchanged; complex64 is an error. */
int mlx_ceil(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_floor(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Complex conjugate. Other dtypes are unchanged. */
int mlx_conjugate(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Cosine, sine and tangent of radians. */
int mlx_cos(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_sin(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_tan(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Hyperbolic cosine, sine and tangent. */
int mlx_cosh(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_sinh(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_tanh(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Radians to degrees, degrees to radians. */
int mlx_degrees(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_radians(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Error function and its inverse. */
int mlx_erf(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_erfinv(mlx_array *res, const mlx_array a, const mlx_stream s);

/* e to the power of a, and the same minus 1, exact near 0. */
int mlx_exp(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_expm1(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Real and imaginary part; of complex64 as float32. */
int mlx_real(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_imag(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Tests for special values; the result is bool. The two infinities count as infinite in isinf. */
int mlx_isfinite(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_isinf(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_isnan(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_isneginf(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_isposinf(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Natural logarithm; to base 10, to base 2; of 1 + a, exact near 0. */
int mlx_log(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_log10(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_log2(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_log1p(mlx_array *res, const mlx_array a, const mlx_stream s);

/* True where a is zero; the result is bool. */
int mlx_logical_not(mlx_array *res, const mlx_array a, const mlx_stream s);

/* NaN becomes nan, infinities become posinf and neginf, or the largest finite value of either sign
 * where these are absent. */
int mlx_nan_to_num(mlx_array *res, const mlx_array a, float nan, mlx_optional_float posinf,
                   mlx_optional_float neginf, const mlx_stream s);

/* Sign changed. bool is an error. */
int mlx_negative(mlx_array *res, const mlx_array a, const mlx_stream s);

/* 1 / a. */
int mlx_reciprocal(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Rounded to decimals decimal places, halves to even; decimals may be negative. */
int mlx_round(mlx_array *res, const mlx_array a, int decimals, const mlx_stream s);

/* 1 / sqrt(a), sqrt(a), a * a. */
int mlx_rsqrt(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_sqrt(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_square(mlx_array *res, const mlx_array a, const mlx_stream s);

/* 1 / (1 + exp(-a)). */
int mlx_sigmoid(mlx_array *res, const mlx_array a, const mlx_stream s);

/* -1, 0 or 1 by the sign of a; for complex64 a / |a|. */
int mlx_sign(mlx_array *res, const mlx_array a, const mlx_stream s);

/* The values of a, through which no gradient flows. */
int mlx_stop_gradient(mlx_array *res, const mlx_array a, const mlx_stream s);

/* The arrays of inputs, computed after those of dependencies. */
int mlx_depends(mlx_vector_array *res, const mlx_vector_array inputs,
                const mlx_vector_array dependencies);

/* ---- two inputs, element by element ---- */

/* Sum, difference, product. */
int mlx_add(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_subtract(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_multiply(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Quotient; integers give float32. */
int mlx_divide(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Quotient rounded towards minus infinity; that of integers is an integer, rounded towards zero. */
int mlx_floor_divide(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Rest of the rounded quotient, with the sign of b. */
int mlx_remainder(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* A list of two arrays: floor_divide and remainder. */
int mlx_divmod(mlx_vector_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* a to the power of b; integers stay integers. */
int mlx_power(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* The larger and the smaller of both. NaN if one of them is NaN. */
int mlx_maximum(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_minimum(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Angle of the point (b, a) in radians, in [-pi, pi]. */
int mlx_arctan2(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* log(exp(a) + exp(b)) without overflow. */
int mlx_logaddexp(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Comparisons; the result is bool. NaN is unequal to everything; complex64 compares by real part,
 * then by imaginary part. */
int mlx_equal(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_not_equal(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_greater(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_greater_equal(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_less(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_less_equal(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Zero is false, all else is true; the result is bool. */
int mlx_logical_and(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_logical_or(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Bit by bit, for integers and bool. */
int mlx_bitwise_and(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_bitwise_or(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_bitwise_xor(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* a shifted by b bits, for integers; to the right, signed types keep their sign. */
int mlx_left_shift(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_right_shift(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Whether |a - b| <= atol + rtol * |b|, element by element, as bool. Infinities are close to
 * themselves, NaN to NaN if equal_nan. */
int mlx_isclose(mlx_array *res, const mlx_array a, const mlx_array b, double rtol, double atol,
                bool equal_nan, const mlx_stream s);

/* Whether all elements are close: one bool. */
int mlx_allclose(mlx_array *res, const mlx_array a, const mlx_array b, double rtol, double atol,
                 bool equal_nan, const mlx_stream s);

/* Whether shapes and all elements are equal: one bool. NaN equals NaN if equal_nan. Arrays that
 * differ in shape are unequal, not an error. */
int mlx_array_equal(mlx_array *res, const mlx_array a, const mlx_array b, bool equal_nan,
                    const mlx_stream s);

/* ---- three inputs, element by element ---- */

/* a, but at least a_min and at most a_max. One of them may be empty, not both. */
int mlx_clip(mlx_array *res, const mlx_array a, const mlx_array a_min, const mlx_array a_max,
             const mlx_stream s);

/* x where condition is true (not zero), else y. */
int mlx_where(mlx_array *res, const mlx_array condition, const mlx_array x, const mlx_array y,
              const mlx_stream s);

/* ---- dtypes ---- */

/* The values converted to dtype. From floating point to integers the fraction is cut off; values
 * that do not fit give unspecified integers. To bool: whether not zero. */
int mlx_astype(mlx_array *res, const mlx_array a, mlx_dtype dtype, const mlx_stream s);

/* The bytes of a read as dtype. If the sizes differ, the last dimension changes in proportion, and
 * must be divisible. */
int mlx_view(mlx_array *res, const mlx_array a, mlx_dtype dtype, const mlx_stream s);

/* ---- new arrays ---- */

/* vals, converted to dtype and broadcast to shape. */
int mlx_full(mlx_array *res, const int *shape, size_t shape_num, const mlx_array vals,
             mlx_dtype dtype, const mlx_stream s);

/* The same with the shape of a. */
int mlx_full_like(mlx_array *res, const mlx_array a, const mlx_array vals, mlx_dtype dtype,
                  const mlx_stream s);

/* Zeros or ones of a shape and dtype. */
int mlx_zeros(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
              const mlx_stream s);
int mlx_ones(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
             const mlx_stream s);

/* Zeros or ones of the shape and dtype of a. */
int mlx_zeros_like(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_ones_like(mlx_array *res, const mlx_array a, const mlx_stream s);

/* start, start + step, ... up to but without stop. step may be negative, not 0. */
int mlx_arange(mlx_array *res, double start, double stop, double step, mlx_dtype dtype,
               const mlx_stream s);

/* num values at equal distances, from start to stop, both included. */
int mlx_linspace(mlx_array *res, double start, double stop, int num, mlx_dtype dtype,
                 const mlx_stream s);

/* n rows, m columns: ones on diagonal k (0 is the main one, positive above), zeros elsewhere. */
int mlx_eye(mlx_array *res, int n, int m, int k, mlx_dtype dtype, const mlx_stream s);

/* eye with m = n and k = 0. */
int mlx_identity(mlx_array *res, int n, mlx_dtype dtype, const mlx_stream s);

/* n rows, m columns: ones on and below diagonal k, zeros above. */
int mlx_tri(mlx_array *res, int n, int m, int k, mlx_dtype type, const mlx_stream s);

/* x with zeros above (tril) or below (triu) diagonal k; x has at least two dimensions. */
int mlx_tril(mlx_array *res, const mlx_array x, int k, const mlx_stream s);
int mlx_triu(mlx_array *res, const mlx_array x, int k, const mlx_stream s);

/* A vector becomes diagonal k of a matrix of zeros; a matrix gives its diagonal k. */
int mlx_diag(mlx_array *res, const mlx_array a, int k, const mlx_stream s);

/* Diagonal `offset` (positive: above the main one) of the matrices that two axes make, as the last
 * axis. */
int mlx_diagonal(mlx_array *res, const mlx_array a, int offset, int axis1, int axis2,
                 const mlx_stream s);

/* Its sum, of elements cast to dtype. */
int mlx_trace(mlx_array *res, const mlx_array a, int offset, int axis1, int axis2, mlx_dtype dtype,
              const mlx_stream s);

/* Windows of M points, float32; none for M < 1. */
int mlx_bartlett(mlx_array *res, int M, const mlx_stream s);
int mlx_blackman(mlx_array *res, int M, const mlx_stream s);
int mlx_hamming(mlx_array *res, int M, const mlx_stream s);
int mlx_hanning(mlx_array *res, int M, const mlx_stream s);

/* The vectors of a list as coordinates of a grid: result i varies along axis i only, with indexing
 * "xy" the first two the other way round, with "ij" as they are. sparse: the other axes have
 * size 1. */
int mlx_meshgrid(mlx_vector_array *res, const mlx_vector_array arrays, bool sparse,
                 const char *indexing, const mlx_stream s);

/* ---- reductions ----
 * Over all elements, over one axis, or over the axes listed (none listed: the array itself). With
 * keepdims the reduced dimensions stay with size 1. */

/* Sum. bool and integers below 32 bits give int32, or uint32 if unsigned; all other dtypes stay. */
int mlx_sum(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_sum_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_sum_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);

/* Product, with dtypes as for the sum. */
int mlx_prod(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_prod_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_prod_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                  bool keepdims, const mlx_stream s);

/* Smallest and largest element; NaN if there is one. An error if nothing is left to compare. */
int mlx_min(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_min_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_min_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);
int mlx_max(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_max_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_max_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);

/* Whether all, or any, elements are true (not zero); the result is bool. */
int mlx_all(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_all_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_all_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);
int mlx_any(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_any_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_any_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);

/* Arithmetic mean; integers give float32. */
int mlx_mean(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_mean_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_mean_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                  bool keepdims, const mlx_stream s);

/* Variance and standard deviation: squared distances from the mean, divided by the count less ddof.
 * Integers give float32. */
int mlx_var(mlx_array *res, const mlx_array a, bool keepdims, int ddof, const mlx_stream s);
int mlx_var_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, int ddof,
                 const mlx_stream s);
int mlx_var_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
                 int ddof, const mlx_stream s);
int mlx_std(mlx_array *res, const mlx_array a, bool keepdims, int ddof, const mlx_stream s);
int mlx_std_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, int ddof,
                 const mlx_stream s);
int mlx_std_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
                 int ddof, const mlx_stream s);

/* log(sum(exp(a))) without overflow; integers give float32. */
int mlx_logsumexp(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_logsumexp_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims,
                       const mlx_stream s);
int mlx_logsumexp_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                       bool keepdims, const mlx_stream s);

/* Index of the smallest or largest element, as uint32; the first one if there are several. Without
 * an axis, the index into the flattened array. */
int mlx_argmin(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_argmin_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_argmax(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_argmax_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);

/* exp(a) / sum(exp(a)) without overflow, over all elements, one axis or the axes listed; the shape
 * stays. With precise, 16-bit types are computed in float32 throughout. */
int mlx_softmax(mlx_array *res, const mlx_array a, bool precise, const mlx_stream s);
int mlx_softmax_axis(mlx_array *res, const mlx_array a, int axis, bool precise, const mlx_stream s);
int mlx_softmax_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                     bool precise, const mlx_stream s);

/* ---- sorting and scans along an axis ---- */

/* The element in the middle, or the mean of the two there; over the axes listed. NaN if there is
 * one. Integers give float32. */
int mlx_median(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
               const mlx_stream s);

/* Ascending, NaN last, equal elements in their order; the positions of the sorted elements as
 * uint32. Without an axis the array is flattened. */
int mlx_sort_axis(mlx_array *res, const mlx_array a, int axis, const mlx_stream s);
int mlx_sort(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_argsort_axis(mlx_array *res, const mlx_array a, int axis, const mlx_stream s);
int mlx_argsort(mlx_array *res, const mlx_array a, const mlx_stream s);

/* The element at position kth is the one that sorting would put there; none before it is larger,
 * none behind it is smaller. kth may be negative. */
int mlx_partition_axis(mlx_array *res, const mlx_array a, int kth, int axis, const mlx_stream s);
int mlx_partition(mlx_array *res, const mlx_array a, int kth, const mlx_stream s);
int mlx_argpartition_axis(mlx_array *res, const mlx_array a, int kth, int axis, const mlx_stream s);
int mlx_argpartition(mlx_array *res, const mlx_array a, int kth, const mlx_stream s);

/* The k largest elements, in no particular order. */
int mlx_topk_axis(mlx_array *res, const mlx_array a, int k, int axis, const mlx_stream s);
int mlx_topk(mlx_array *res, const mlx_array a, int k, const mlx_stream s);

/* Running maximum, minimum, product, sum, and log of the sum of exponentials. reverse starts at the
 * end; inclusive counts an element to its own result. */
int mlx_cummax(mlx_array *res, const mlx_array a, int axis, bool reverse, bool inclusive,
               const mlx_stream s);
int mlx_cummin(mlx_array *res, const mlx_array a, int axis, bool reverse, bool inclusive,
               const mlx_stream s);
int mlx_cumprod(mlx_array *res, const mlx_array a, int axis, bool reverse, bool inclusive,
                const mlx_stream s);
int mlx_cumsum(mlx_array *res, const mlx_array a, int axis, bool reverse, bool inclusive,
               const mlx_stream s);
int mlx_logcumsumexp(mlx_array *res, const mlx_array a, int axis, bool reverse, bool inclusive,
                     const mlx_stream s);

/* Elements of a at the positions that indices give along the axis; the other dimensions broadcast.
 */
int mlx_take_along_axis(mlx_array *res, const mlx_array a, const mlx_array indices, int axis,
                        const mlx_stream s);

/* Slices of a, which have slice_sizes[i] elements along dimension i, at the positions that index
 * arrays give: one for each of axes, of integers, broadcast to one shape. Along the other
 * dimensions slices begin at 0. The result has the shape of the indices, then that of a slice.
 * Negative indices count from the end; those beyond an end give that end. */
int mlx_gather(mlx_array *res, const mlx_array a, const mlx_vector_array indices, const int *axes,
               size_t axes_num, const int *slice_sizes, size_t slice_sizes_num, const mlx_stream s);
int mlx_gather_single(mlx_array *res, const mlx_array a, const mlx_array indices, int axis,
                      const int *slice_sizes, size_t slice_sizes_num, const mlx_stream s);

/* a with slices at such positions replaced by updates, which have the shape of the indices, then
 * that of a slice, and are cast to the dtype of a. What lies beyond an end is left out; of updates
 * of one place the last one stays. Where nothing else needs a its memory is reused. */
int mlx_scatter(mlx_array *res, const mlx_array a, const mlx_vector_array indices,
                const mlx_array updates, const int *axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_single(mlx_array *res, const mlx_array a, const mlx_array indices,
                       const mlx_array updates, int axis, const mlx_stream s);

/* The same, but elements become the sum, the product, the larger or the smaller one of old and new;
 * NaN beats numbers. Sums and products of halves are rounded once. The result is the same every
 * time. */
int mlx_scatter_add(mlx_array *res, const mlx_array a, const mlx_vector_array indices,
                    const mlx_array updates, const int *axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_add_single(mlx_array *res, const mlx_array a, const mlx_array indices,
                           const mlx_array updates, int axis, const mlx_stream s);
int mlx_scatter_prod(mlx_array *res, const mlx_array a, const mlx_vector_array indices,
                     const mlx_array updates, const int *axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_prod_single(mlx_array *res, const mlx_array a, const mlx_array indices,
                            const mlx_array updates, int axis, const mlx_stream s);
int mlx_scatter_max(mlx_array *res, const mlx_array a, const mlx_vector_array indices,
                    const mlx_array updates, const int *axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_max_single(mlx_array *res, const mlx_array a, const mlx_array indices,
                           const mlx_array updates, int axis, const mlx_stream s);
int mlx_scatter_min(mlx_array *res, const mlx_array a, const mlx_vector_array indices,
                    const mlx_array updates, const int *axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_min_single(mlx_array *res, const mlx_array a, const mlx_array indices,
                           const mlx_array updates, int axis, const mlx_stream s);

/* a with the elements at the positions that indices give along the axis replaced by values, or with
 * values added to them; the other dimensions broadcast. */
int mlx_put_along_axis(mlx_array *res, const mlx_array a, const mlx_array indices,
                       const mlx_array values, int axis, const mlx_stream s);
int mlx_scatter_add_axis(mlx_array *res, const mlx_array a, const mlx_array indices,
                         const mlx_array values, int axis, const mlx_stream s);

/* a with the places where mask is true replaced by those of src, one after the other. The mask has
 * the shape of the first dimensions of a; src has the others behind one for the places, or
 * broadcasts to that. Too few of src are an error of evaluation on the CPU; on a GPU what is left
 * stays. */
int mlx_masked_scatter(mlx_array *res, const mlx_array a, const mlx_array mask, const mlx_array src,
                       const mlx_stream s);

/* ---- matrix products ---- */

/* Matrix product of the last two dimensions; the dimensions before broadcast. A one-dimensional a
 * is a row, a one-dimensional b is a column, and that dimension is dropped from the result.
 * Integers and bool are an error. */
int mlx_matmul(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* alpha * (a x b) + beta * c, where c broadcasts to the product. */
int mlx_addmm(mlx_array *res, const mlx_array c, const mlx_array a, const mlx_array b, float alpha,
              float beta, const mlx_stream s);

/* For each pair of indices, which broadcast against each other, the product of that matrix of a and
 * that matrix of b; matrices are numbered over all dimensions but the last two. Empty indices are
 * all matrices in order, and without any this is mlx_matmul. sorted_indices promises that the given
 * ones ascend. Only real floating point types. */
int mlx_gather_mm(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_array lhs_indices,
                  const mlx_array rhs_indices, bool sorted_indices, const mlx_stream s);

/* Sum of products over the last axis of both: shape(a) without its last, then shape(b) without its
 * last. */
int mlx_inner(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Sum of products over pairs of axes, one of a and one of b each, of equal sizes: the other axes of
 * a, then the other axes of b. With one number, over the last axis of them in a and as many first
 * ones in b. Integers and bool are an error. */
int mlx_tensordot(mlx_array *res, const mlx_array a, const mlx_array b, const int *axes_a,
                  size_t axes_a_num, const int *axes_b, size_t axes_b_num, const mlx_stream s);
int mlx_tensordot_axis(mlx_array *res, const mlx_array a, const mlx_array b, int axis,
                       const mlx_stream s);

/* All products of the elements of a (rows) and b (columns), both flattened. */
int mlx_outer(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Each element of a times all of b, in blocks of b's shape. */
int mlx_kron(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Sums of products of arrays whose axes have letters: "ij,jk->ik". What the result does not name is
 * summed over; without an arrow it has the letters that occur once, in order. "..." stands for axes
 * that broadcast. */
int mlx_einsum(mlx_array *res, const char *subscripts, const mlx_vector_array operands,
               const mlx_stream s);

/* ---- convolutions ---- */

/* Convolutions, channels last: input [n, spatial..., channels], weight [channels out, spatial...,
 * channels / groups], result [n, spatial..., channels out]. Zeros stand where the weights reach
 * outside of the input. groups > 1, of one or two spatial axes only: channels are cut into as many
 * parts, and each part of the output reads its own. Inputs are floats. */
int mlx_conv1d(mlx_array *res, const mlx_array input, const mlx_array weight, int stride,
               int padding, int dilation, int groups, const mlx_stream s);
int mlx_conv2d(mlx_array *res, const mlx_array input, const mlx_array weight, int stride_0,
               int stride_1, int padding_0, int padding_1, int dilation_0, int dilation_1,
               int groups, const mlx_stream s);
int mlx_conv3d(mlx_array *res, const mlx_array input, const mlx_array weight, int stride_0,
               int stride_1, int stride_2, int padding_0, int padding_1, int padding_2,
               int dilation_0, int dilation_1, int dilation_2, int groups, const mlx_stream s);

/* Any of these: a number for each spatial axis, or one for all, or none for the default (strides
 * and dilations of 1, padding of 0). Padding below 0 cuts off; input_dilation puts zeros between
 * the elements of the input; flip takes the weights from the last to the first. */
int mlx_conv_general(mlx_array *res, const mlx_array input, const mlx_array weight,
                     const int *stride, size_t stride_num, const int *padding_lo,
                     size_t padding_lo_num, const int *padding_hi, size_t padding_hi_num,
                     const int *kernel_dilation, size_t kernel_dilation_num,
                     const int *input_dilation, size_t input_dilation_num, int groups, bool flip,
                     const mlx_stream s);

/* Transposed convolutions: from the shape that such a convolution has as result to that of its
 * input, with output_padding more elements at the end. */
int mlx_conv_transpose1d(mlx_array *res, const mlx_array input, const mlx_array weight, int stride,
                         int padding, int dilation, int output_padding, int groups,
                         const mlx_stream s);
int mlx_conv_transpose2d(mlx_array *res, const mlx_array input, const mlx_array weight,
                         int stride_0, int stride_1, int padding_0, int padding_1, int dilation_0,
                         int dilation_1, int output_padding_0, int output_padding_1, int groups,
                         const mlx_stream s);
int mlx_conv_transpose3d(mlx_array *res, const mlx_array input, const mlx_array weight,
                         int stride_0, int stride_1, int stride_2, int padding_0, int padding_1,
                         int padding_2, int dilation_0, int dilation_1, int dilation_2,
                         int output_padding_0, int output_padding_1, int output_padding_2,
                         int groups, const mlx_stream s);

/* ---- products of which only parts count ---- */

/* a x b in blocks of block_size (32 or 64) rows and columns: of the result, of a and of b only
 * those count whose mask is true, or they are multiplied by it. Masks may be empty: all blocks
 * count. They have an element for each block, the last ones being smaller, and broadcast over the
 * batch. What a mask leaves out, by false or by 0, is not read. */
int mlx_block_masked_mm(mlx_array *res, const mlx_array a, const mlx_array b, int block_size,
                        const mlx_array mask_out, const mlx_array mask_lhs,
                        const mlx_array mask_rhs, const mlx_stream s);

/* For each pair (first, end) of segments, which has the shape [..., 2] and integers, the product of
 * the columns of a and the rows of b from first up to end, which is 0 where there are none. What
 * lies behind the last column counts for nothing. */
int mlx_segmented_mm(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_array segments,
                     const mlx_stream s);

/* ---- Hadamard transform ---- */

/* The last axis, which has m * 2^k elements with m one of 1, 12, 20 and 28 and k up to 26, times
 * the Hadamard matrix of that size; then times scale, by default one over the root of the size.
 * What is no floating type becomes float32. */
int mlx_hadamard_transform(mlx_array *res, const mlx_array a, mlx_optional_float scale,
                           const mlx_stream s);

/* ---- quantized matrices ----
 * The last dimension is packed: group_size neighbouring numbers share a scale, each is kept in a
 * few bits, and all of a row are one little-endian bit stream of uint32 words.
 *
 * Modes:
 * - affine: scale * q + bias; 1, 2, 3, 4 (default), 5, 6 or 8 bits, groups of 32, 64 (default), 128
 * - mxfp4, mxfp8: 4- and 8-bit floats in groups of 32 with a power of two as scale (uint8)
 * - nvfp4: 4-bit floats in groups of 16 with an 8-bit float as scale (uint8)
 *
 * Biases are given in affine mode and empty in the others; global_scale (float32, may be empty) is
 * for nvfp4. */

/* A list of the packed words, the scales and, in affine mode, the biases. */
int mlx_quantize(mlx_vector_array *res, const mlx_array w, mlx_optional_int group_size,
                 mlx_optional_int bits, const char *mode, const mlx_array global_scale,
                 const mlx_stream s);
/* The numbers again. dtype: by default that of the scales, or bfloat16. */
int mlx_dequantize(mlx_array *res, const mlx_array w, const mlx_array scales,
                   const mlx_array biases, mlx_optional_int group_size, mlx_optional_int bits,
                   const char *mode, const mlx_array global_scale, mlx_optional_dtype dtype,
                   const mlx_stream s);
/* Floats of 8 bits, 4 of exponent and 3 of mantissa, as uint8: rounded to the nearest, ties to
 * even; what lies beyond 448, and NaN, become 448 with its sign. And back, to a floating type; the
 * codes 127 and 255 are NaN. */
int mlx_to_fp8(mlx_array *res, const mlx_array x, const mlx_stream s);
int mlx_from_fp8(mlx_array *res, const mlx_array x, mlx_dtype dtype, const mlx_stream s);

/* Matrix product of x with a quantized matrix, or with transpose: with the transposed one. */
int mlx_quantized_matmul(mlx_array *res, const mlx_array x, const mlx_array w,
                         const mlx_array scales, const mlx_array biases, bool transpose,
                         mlx_optional_int group_size, mlx_optional_int bits, const char *mode,
                         const mlx_stream s);
/* x times the transpose of w, both quantized: x first, along its last axis; w if w_scales is empty.
 * Not for mode affine. global_scale_x and _w (the largest magnitudes) for nvfp4, both or none. Sums
 * are float32. Gradients, of a w that is not packed, quantize their operands again. */
int mlx_qqmm(mlx_array *res, const mlx_array x, const mlx_array w, const mlx_array w_scales,
             mlx_optional_int group_size, mlx_optional_int bits, const char *mode,
             const mlx_array global_scale_x, const mlx_array global_scale_w, const mlx_stream s);

/* For each pair of indices, which broadcast against each other, the product of that matrix of x and
 * that matrix of w; matrices are numbered over all dimensions but the last two. Empty indices are
 * all matrices in order. sorted_indices promises that the given ones ascend. */
int mlx_gather_qmm(mlx_array *res, const mlx_array x, const mlx_array w, const mlx_array scales,
                   const mlx_array biases, const mlx_array lhs_indices, const mlx_array rhs_indices,
                   bool transpose, mlx_optional_int group_size, mlx_optional_int bits,
                   const char *mode, bool sorted_indices, const mlx_stream s);

/* ---- other views of the same elements ----
 * These copy nothing where the strides can express the result. */

/* The elements in row-major order in another shape; one dimension may be -1, and follows from the
 * rest. */
int mlx_reshape(mlx_array *res, const mlx_array a, const int *shape, size_t shape_num,
                const mlx_stream s);

/* Dimensions start_axis to end_axis, both included, merged into one. */
int mlx_flatten(mlx_array *res, const mlx_array a, int start_axis, int end_axis,
                const mlx_stream s);

/* One dimension split into shape, in which one entry may be -1. */
int mlx_unflatten(mlx_array *res, const mlx_array a, int axis, const int *shape, size_t shape_num,
                  const mlx_stream s);

/* The dimensions in reverse order, or in the order listed. */
int mlx_transpose(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_transpose_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                       const mlx_stream s);

/* One dimension moved to another place, the rest in order. */
int mlx_moveaxis(mlx_array *res, const mlx_array a, int source, int destination,
                 const mlx_stream s);

/* Two dimensions exchanged. */
int mlx_swapaxes(mlx_array *res, const mlx_array a, int axis1, int axis2, const mlx_stream s);

/* a stretched to shape. */
int mlx_broadcast_to(mlx_array *res, const mlx_array a, const int *shape, size_t shape_num,
                     const mlx_stream s);

/* All arrays of a list stretched to their common shape. */
int mlx_broadcast_arrays(mlx_vector_array *res, const mlx_vector_array inputs, const mlx_stream s);

/* New dimensions of size 1 at these places of the result. */
int mlx_expand_dims(mlx_array *res, const mlx_array a, int axis, const mlx_stream s);
int mlx_expand_dims_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                         const mlx_stream s);

/* Without all dimensions of size 1, or without those named, which must have size 1. */
int mlx_squeeze(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_squeeze_axis(mlx_array *res, const mlx_array a, int axis, const mlx_stream s);
int mlx_squeeze_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                     const mlx_stream s);

/* Dimensions of size 1 added until there are at least 1, 2 or 3. */
int mlx_atleast_1d(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_atleast_2d(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_atleast_3d(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Elements start, start + strides, ... up to but without stop, per dimension: the three lists have
 * one entry for each. Negative positions count from the end, positions outside are cut off;
 * negative strides go backwards. */
int mlx_slice(mlx_array *res, const mlx_array a, const int *start, size_t start_num,
              const int *stop, size_t stop_num, const int *strides, size_t strides_num,
              const mlx_stream s);

/* A slice of shape slice_size (one entry per dimension) that starts where start says when the
 * result is computed: an array of integers of 0 or 1 dimensions, one for each of axes; other axes
 * start at 0. Negative positions count from the end. A start from which the slice would reach
 * outside is moved to the nearest one that fits. */
int mlx_slice_dynamic(mlx_array *res, const mlx_array a, const mlx_array start, const int *axes,
                      size_t axes_num, const int *slice_size, size_t slice_size_num,
                      const mlx_stream s);

/* src with the elements of a slice (start, stop and strides as in mlx_slice) replaced by those of
 * update, which is cast to the dtype of src and broadcasts to the slice. Where nothing else needs
 * src its memory is reused, so that mlx_slice_update(&cache, cache, ...) moves the update only. */
int mlx_slice_update(mlx_array *res, const mlx_array src, const mlx_array update, const int *start,
                     size_t start_num, const int *stop, size_t stop_num, const int *strides,
                     size_t strides_num, const mlx_stream s);

/* The same, but elements become the sum, the product, the larger or the smaller one of old and new;
 * NaN beats numbers. */
int mlx_slice_update_add(mlx_array *res, const mlx_array src, const mlx_array update,
                         const int *start, size_t start_num, const int *stop, size_t stop_num,
                         const int *strides, size_t strides_num, const mlx_stream s);
int mlx_slice_update_prod(mlx_array *res, const mlx_array src, const mlx_array update,
                          const int *start, size_t start_num, const int *stop, size_t stop_num,
                          const int *strides, size_t strides_num, const mlx_stream s);
int mlx_slice_update_max(mlx_array *res, const mlx_array src, const mlx_array update,
                         const int *start, size_t start_num, const int *stop, size_t stop_num,
                         const int *strides, size_t strides_num, const mlx_stream s);
int mlx_slice_update_min(mlx_array *res, const mlx_array src, const mlx_array update,
                         const int *start, size_t start_num, const int *stop, size_t stop_num,
                         const int *strides, size_t strides_num, const mlx_stream s);

/* src with a slice of the shape of update replaced, which starts as in mlx_slice_dynamic. If update
 * has fewer dimensions than src, it repeats over the leading ones that are not among axes. */
int mlx_slice_update_dynamic(mlx_array *res, const mlx_array src, const mlx_array update,
                             const mlx_array start, const int *axes, size_t axes_num,
                             const mlx_stream s);

/* A list of num_splits equal parts along an axis, whose size must be divisible. */
int mlx_split(mlx_vector_array *res, const mlx_array a, int num_splits, int axis,
              const mlx_stream s);

/* A list of the parts between the indices: [0, i0), [i0, i1), ..., [in, end). */
int mlx_split_sections(mlx_vector_array *res, const mlx_array a, const int *indices,
                       size_t indices_num, int axis, const mlx_stream s);

/* shape and strides (in elements) laid over the row-major elements of a, from element offset on.
 * The caller answers for staying inside of a. */
int mlx_as_strided(mlx_array *res, const mlx_array a, const int *shape, size_t shape_num,
                   const int64_t *strides, size_t strides_num, size_t offset, const mlx_stream s);

/* ---- copies and rearrangement ---- */

/* A new array with the same values. */
int mlx_copy(mlx_array *res, const mlx_array a, const mlx_stream s);

/* The same values, row-major without gaps; column-major is left alone if allow_col_major. */
int mlx_contiguous(mlx_array *res, const mlx_array a, bool allow_col_major, const mlx_stream s);

/* The arrays of a list one after the other, flattened first or along an axis; then all other
 * dimensions must agree. */
int mlx_concatenate(mlx_array *res, const mlx_vector_array arrays, const mlx_stream s);
int mlx_concatenate_axis(mlx_array *res, const mlx_vector_array arrays, int axis,
                         const mlx_stream s);

/* Arrays of the same shape side by side along a new axis (0 if not named). */
int mlx_stack(mlx_array *res, const mlx_vector_array arrays, const mlx_stream s);
int mlx_stack_axis(mlx_array *res, const mlx_vector_array arrays, int axis, const mlx_stream s);

/* Elements moved on by so many places; what leaves at one end comes in at the other. Of the
 * flattened array, and along one axis, by the sum of all shifts; or along axes[i] by shift[i]. */
int mlx_roll(mlx_array *res, const mlx_array a, const int *shift, size_t shift_num,
             const mlx_stream s);
int mlx_roll_axis(mlx_array *res, const mlx_array a, const int *shift, size_t shift_num, int axis,
                  const mlx_stream s);
int mlx_roll_axes(mlx_array *res, const mlx_array a, const int *shift, size_t shift_num,
                  const int *axes, size_t axes_num, const mlx_stream s);

/* low_pad_size[i] elements before and high_pad_size[i] elements after along axes[i]. mode
 * "constant" fills with pad_value, "edge" repeats the outermost element, "reflect" and
 * "symmetric" mirror the array without and with it. */
int mlx_pad(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
            const int *low_pad_size, size_t low_pad_size_num, const int *high_pad_size,
            size_t high_pad_size_num, const mlx_array pad_value, const char *mode,
            const mlx_stream s);

/* pad_width elements before and after along every axis. */
int mlx_pad_symmetric(mlx_array *res, const mlx_array a, int pad_width, const mlx_array pad_value,
                      const char *mode, const mlx_stream s);

/* Elements of the flattened a, or slices of a along an axis, at the positions in indices, which is
 * an array of integers of any shape; negative ones count from the end. Positions out of range give
 * unspecified values. */
int mlx_take(mlx_array *res, const mlx_array a, const mlx_array indices, const mlx_stream s);
int mlx_take_axis(mlx_array *res, const mlx_array a, const mlx_array indices, int axis,
                  const mlx_stream s);

/* Every element of the flattened arr, or every slice along an axis, repeats times in a row. */
int mlx_repeat(mlx_array *res, const mlx_array arr, int repeats, const mlx_stream s);
int mlx_repeat_axis(mlx_array *res, const mlx_array arr, int repeats, int axis, const mlx_stream s);

/* arr laid out reps[i] times along dimension i. */
int mlx_tile(mlx_array *res, const mlx_array arr, const int *reps, size_t reps_num,
             const mlx_stream s);

/* Product of the sizes of the axes listed, or one over it if inverted, as an array of dtype without
 * dimensions. */
int mlx_number_of_elements(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                           bool inverted, mlx_dtype dtype, const mlx_stream s);

#ifdef __cplusplus
}
#endif

#endif
