/* Additions of mlx-vulkan, not in mlx-c and not included by mlx.h. Conventions: see mlx.h.
 *
 * Programs that must build against mlx-c as well do without this header. */
#ifndef MLX_EXT_H
#define MLX_EXT_H

#include <stdbool.h>
#include <stdint.h>

#include "mlx/c/array.h"
#include "mlx/c/closure.h"
#include "mlx/c/export.h"
#include "mlx/c/map.h"
#include "mlx/c/optional.h"
#include "mlx/c/stream.h"
#include "mlx/c/string.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Text of the last failure on the calling thread, "" if there was none. Unlike the text that the
 * error handler gets, it has no place of origin at its end. Borrowed: valid until the next failure
 * on this thread. */
const char *mlx_last_error(void);

/* Value of a counter, by its name in lower case, such as "dispatches" or "pipeline_builds".
 * Counters run from the start of the process. 2 if there is none of that name. Thread-safety: safe.
 */
int mlx_stats_get(uint64_t *value, const char *name);

/* Value of a setting, by the name of its environment variable, such as "MLX_VK_ENABLE_COOPMAT": a
 * number as decimal text, or the text itself, "" where it is unset. `mlx gates` lists them. 2 if
 * there is none of that name. */
int mlx_setting_get(mlx_string *value, const char *name);

/* Changes a setting for the process, as if the variable had held value at the start; value may be
 * NULL, which restores the default. An error if value does not fit, and the setting is as before;
 * 2 if there is none of that name. Settings that are read when a device is opened take effect only
 * before that. Thread-safety: safe. */
int mlx_setting_set(const char *name, const char *value);

/* An npz archive: a zip file of npy files, stored or deflated, whose checksums are compared. The
 * archive is unpacked at once; arrays are named after the members, without ".npy". */
int mlx_load_npz(mlx_map_string_to_array *res, const char *file, const mlx_stream s);

/* Writes an npz archive, deflated if compressed. See io.h for what saving does. */
int mlx_save_npz(const char *file, const mlx_map_string_to_array param, bool compressed);

/* ---- functions of MLX that mlx-c lacks ---- */

/* The determinants of square matrices, the last two axes; of float32, float64 and what becomes
 * float32, up to 3 x 3 also of half types. On CPU streams only, as linalg.h. */
int mlx_linalg_det(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Their signs (-1, 0 or 1), and the logarithms of their absolute values. */
int mlx_linalg_slogdet(mlx_array *res_0, mlx_array *res_1, const mlx_array a, const mlx_stream s);

/* mlx_qqmm of that matrix of x and that matrix of w for each pair of indices, as mlx_gather_qmm. */
int mlx_gather_qqmm(mlx_array *res, const mlx_array x, const mlx_array w, const mlx_array w_scales,
                    const mlx_array lhs_indices, const mlx_array rhs_indices,
                    mlx_optional_int group_size, mlx_optional_int bits, const char *mode,
                    const mlx_array global_scale_x, const mlx_array global_scale_w,
                    bool sorted_indices, const mlx_stream s);

/* a itself. */
int mlx_positive(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Rounded towards zero; complex64 is an error. */
int mlx_trunc(mlx_array *res, const mlx_array a, const mlx_stream s);

/* True where one of both is true. */
int mlx_logical_xor(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Differences of neighbours along an axis, n times over. */
int mlx_diff(mlx_array *res, const mlx_array a, int n, int axis, const mlx_stream s);

/* The sums of conj(a) * b along an axis, the other ones broadcast. */
int mlx_vecdot(mlx_array *res, const mlx_array a, const mlx_array b, int axis, const mlx_stream s);

/* The elements in reverse order along all axes, or those listed. */
int mlx_flip(mlx_array *res, const mlx_array a, const mlx_stream s);
int mlx_flip_axis(mlx_array *res, const mlx_array a, int axis, const mlx_stream s);
int mlx_flip_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                  const mlx_stream s);

/* The parts of a along its first axis, or one that is named, which they lack. */
int mlx_unstack(mlx_vector_array *res, const mlx_array a, const mlx_stream s);
int mlx_unstack_axis(mlx_vector_array *res, const mlx_array a, int axis, const mlx_stream s);

/* How many elements are not zero, as int32. */
int mlx_count_nonzero(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_count_nonzero_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims,
                           const mlx_stream s);
int mlx_count_nonzero_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                           bool keepdims, const mlx_stream s);

/* Where values belong in a sorted vector, as uint32: in front of elements that are equal (side
 * "left") or behind them ("right"). NaN comes last. */
int mlx_searchsorted(mlx_array *res, const mlx_array sorted_sequence, const mlx_array values,
                     const char *side, const mlx_stream s);

/* ---- with more parameters than in mlx-c ---- */

/* num numbers from start on; stop is the last of them, or without endpoint what would follow. */
int mlx_linspace_endpoint(mlx_array *res, double start, double stop, int num, bool endpoint,
                          mlx_dtype dtype, const mlx_stream s);

/* Zeros and ones in the shape of a, of another dtype. */
int mlx_zeros_like_dtype(mlx_array *res, const mlx_array a, mlx_dtype dtype, const mlx_stream s);
int mlx_ones_like_dtype(mlx_array *res, const mlx_array a, mlx_dtype dtype, const mlx_stream s);

/* Running sums and products of a cast to dtype. */
int mlx_cumsum_dtype(mlx_array *res, const mlx_array a, int axis, bool reverse, bool inclusive,
                     mlx_dtype dtype, const mlx_stream s);
int mlx_cumprod_dtype(mlx_array *res, const mlx_array a, int axis, bool reverse, bool inclusive,
                      mlx_dtype dtype, const mlx_stream s);

/* mlx_atleast_*d of each array of a list. */
int mlx_atleast_1d_list(mlx_vector_array *res, const mlx_vector_array arrays, const mlx_stream s);
int mlx_atleast_2d_list(mlx_vector_array *res, const mlx_vector_array arrays, const mlx_stream s);
int mlx_atleast_3d_list(mlx_vector_array *res, const mlx_vector_array arrays, const mlx_stream s);

/* mlx_random_bernoulli in the shape of p. */
int mlx_random_bernoulli_like(mlx_array *res, const mlx_array p, const mlx_array key,
                              const mlx_stream s);

/* The order in which mlx_einsum multiplies: positions of the operands of each step in the list of
 * those that are left, whose product joins the list at its end, and how many each step takes; and a
 * text about its cost. */
int mlx_einsum_path(mlx_vector_int *positions, mlx_vector_int *counts, mlx_string *info,
                    const char *subscripts, const mlx_vector_array operands);

/* mlx_function_exporter_new with a text that is kept in the file, for whoever reads it; may be
 * NULL. */
mlx_function_exporter mlx_function_exporter_new_metadata(const char *file, const mlx_closure fun,
                                                         bool shapeless, const char *metadata);

#ifdef __cplusplus
}
#endif

#endif
