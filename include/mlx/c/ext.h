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
#include "mlx/c/fft.h"
#include "mlx/c/io_types.h"
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

/* What kind of failure that was: what a binding raises as different exceptions. */
typedef enum mlx_error_kind_ {
    MLX_ERROR_NONE = 0,
    MLX_ERROR_ARGUMENT = 1,    /* an argument is not valid */
    MLX_ERROR_RANGE = 2,       /* an index or an axis is out of range */
    MLX_ERROR_OVERFLOW = 3,    /* a size does not fit its type */
    MLX_ERROR_RUNTIME = 4,     /* failed while running */
    MLX_ERROR_UNSUPPORTED = 5, /* no implementation for this op, dtype and device */
    MLX_ERROR_NO_MEMORY = 6,   /* host or device memory exhausted */
    MLX_ERROR_DEVICE = 7,      /* device lost or driver failure */
} mlx_error_kind;
mlx_error_kind mlx_last_error_kind(void);

/* How floating point numbers are written in texts of arrays: with so many digits behind the point,
 * at most 512, or, with -1, the default, in the shortest form of six digits. Thread-safety: safe.
 */
int mlx_get_print_precision(int *digits);
int mlx_set_print_precision(int digits);

/* Value of a counter, by its name in lower case, such as "dispatches" or "pipeline_builds".
 * Counters run from the start of the process. 2 if there is none of that name. Thread-safety: safe.
 */
int mlx_stats_get(uint64_t *value, const char *name);
/* The names of all counters. */
int mlx_stats_names(mlx_vector_string *names);

/* Value of a setting, by the name of its environment variable, such as "MLX_VK_ENABLE_COOPMAT": a
 * number as decimal text, or the text itself, "" where it is unset. `mlx gates` lists them. 2 if
 * there is none of that name. */
int mlx_setting_get(mlx_string *value, const char *name);

/* Changes a setting for the process, as if the variable had held value at the start; value may be
 * NULL, which restores the default. An error if value does not fit, and the setting is as before;
 * 2 if there is none of that name. Settings that are read when a device is opened take effect only
 * before that. Thread-safety: safe. */
int mlx_setting_set(const char *name, const char *value);
/* The names of all settings. */
int mlx_setting_names(mlx_vector_string *names);

/* An npz archive: a zip file of npy files, stored or deflated, whose checksums are compared. The
 * archive is unpacked at once; arrays are named after the members, without ".npy". */
int mlx_load_npz(mlx_map_string_to_array *res, const char *file, const mlx_stream s);

/* Writes an npz archive, deflated if compressed. See io.h for what saving does. */
int mlx_save_npz(const char *file, const mlx_map_string_to_array param, bool compressed);

/* The keys of all metadata of a GGUF file, in the order of the file. */
int mlx_io_gguf_get_metadata_keys(mlx_vector_string *keys, mlx_io_gguf io);

/* ---- handles without allocation, for bindings ---- */

/* Room for what an array handle refers to, within an object of the caller; zero is without array. A
 * handle on it is live: as a result it is written in place, as an argument it must hold an array.
 * Such handles are not freed; mlx_array_place_clear drops the array. */
typedef struct mlx_array_place_ {
    void *array;
} mlx_array_place;

/* The handle on a place, valid while the place is where it is. */
static inline mlx_array mlx_array_at(mlx_array_place *place)
{
    mlx_array res;

    res.ctx = place;
    return res;
}

/* Drops the array, if there is one. */
void mlx_array_place_clear(mlx_array_place *place);

/* Makes *arr name a new array without dimensions of this dtype that holds val, converted. Integers
 * above 2^53 need mlx_array_set_data. On failure *arr is as before. */
int mlx_array_set_number(mlx_array *arr, double val, mlx_dtype dtype);

/* ---- exported functions, for bindings ---- */

/* An exporter whose function sees named arguments, and which writes a text of the caller's into the
 * file. */
mlx_function_exporter mlx_function_exporter_new_kwargs(const char *file,
                                                       const mlx_closure_kwargs fun, bool shapeless,
                                                       const char *metadata);
/* What an export tells in the place of writing: the inputs, those with names, the outputs, the
 * arrays that the function reads besides, and then every node behind what it reads. Handles and
 * texts are borrowed for the call. */
typedef enum mlx_export_kind_ {
    MLX_EXPORT_INPUTS,    /* inputs */
    MLX_EXPORT_KEYWORDS,  /* inputs; names: theirs */
    MLX_EXPORT_OUTPUTS,   /* inputs: what the function gives */
    MLX_EXPORT_CONSTANTS, /* inputs */
    MLX_EXPORT_PRIMITIVE, /* name, inputs, outputs, and its state as arguments */
} mlx_export_kind;

typedef enum mlx_export_argument_kind_ {
    MLX_EXPORT_BOOL,
    MLX_EXPORT_INT,
    MLX_EXPORT_FLOAT,
    MLX_EXPORT_DTYPE,
    MLX_EXPORT_TEXT,
    MLX_EXPORT_INTS,
} mlx_export_argument_kind;

typedef struct mlx_export_argument_ {
    mlx_export_argument_kind kind;
    int64_t number; /* of a bool, an int, a dtype */
    double real;
    const char *text;
    const int64_t *ints;
    size_t ints_num;
} mlx_export_argument;

typedef struct mlx_export_event_ {
    mlx_export_kind kind;
    const char *name;
    mlx_vector_array inputs, outputs;
    const char *const *names;
    const mlx_export_argument *arguments;
    size_t arguments_num;
} mlx_export_event;

/* An exporter that calls listener, which gives 0 or ends the export, instead of writing. */
mlx_function_exporter mlx_function_exporter_new_listener(
    int (*listener)(void *payload, const mlx_export_event *event), void *payload,
    const mlx_closure_kwargs fun, bool shapeless);

/* The exporter writes no more. */
int mlx_function_exporter_close(mlx_function_exporter xfunc);

/* The text that a file holds besides its functions, "" without. */
int mlx_imported_function_metadata(mlx_string *res, mlx_imported_function xfunc);

/* ---- compiled functions, for bindings ---- */

/* A number that the function keeps with what it is traced to, if it sets one before it returns; a
 * call of the compiled function restores that of the graph it used. So a binding finds what it
 * needs for the results. Of the calling thread; 0 in the beginning. */
void mlx_compile_set_note(uint64_t note);
uint64_t mlx_compile_get_note(void);

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

/* The different elements of the flattened array in order, the least `size` of them, behind them
 * fill_value, or the first one if that is empty. Then, if wanted, where each of them stands first,
 * the number of each element of a among them, the last one at most, in the shape of a (both
 * uint32), and how often they occur (int32, 0 for what was filled in). NaN differs from NaN. Does
 * not evaluate a. */
int mlx_unique(mlx_vector_array *res, const mlx_array a, int size, bool return_index,
               bool return_inverse, bool return_counts, const mlx_array fill_value,
               const mlx_stream s);

/* logsumexp(logits) - logits[targets] over the last axis, which targets, integers in the shape of
 * the other axes, are positions in. Computed in float32 and more precise floats, given as float32.
 */
int mlx_fast_cross_entropy(mlx_array *res, const mlx_array logits, const mlx_array targets,
                           const mlx_stream s);

/* The gated delta rule: a memory M of shape [values, keys] for each head, which is at each step
 * M * gamma, and then what v lacks to M k, times beta, is added at k; the result is M q. q and k
 * have the shape [batch, steps, heads, keys], v [batch, steps, heads, values], gamma and beta
 * [batch, steps, heads]; heads of v may share those of q and k. initial_state, [batch, heads,
 * values, keys], and mask, [batch, steps], may be empty: the memory before, zeros by default, and
 * which steps count; others give 0. res: the results, like v, and the memory, in float32 at least.
 */
int mlx_fast_gated_delta_update(mlx_vector_array *res, const mlx_array q, const mlx_array k,
                                const mlx_array v, const mlx_array gamma, const mlx_array beta,
                                const mlx_array initial_state, const mlx_array mask,
                                const mlx_stream s);

/* The bytes of the buffers that hold these arrays, each counted once and as large as it was
 * allocated, which may be larger than the arrays. An array that has not been evaluated is an error.
 */
int mlx_get_array_buffer_size(size_t *res, const mlx_vector_array arrays);

/* Fourier transforms of pieces along the last axis of x, which becomes two: frequencies and pieces.
 * A piece is n_fft numbers times the window, hop_length (n_fft / 4) behind the one before. window:
 * a vector, which is put in the middle of n_fft zeros; empty: win_length (n_fft) ones. center: what
 * mlx_pad with pad_mode makes of x is transformed, n_fft / 2 more at both ends. onesided: only the
 * frequencies that real numbers need; by default unless x is complex. */
int mlx_fft_stft(mlx_array *res, const mlx_array x, int n_fft, mlx_optional_int hop_length,
                 mlx_optional_int win_length, const mlx_array window, bool center,
                 const char *pad_mode, mlx_fft_norm norm, const bool *onesided, const mlx_stream s);
/* What undoes that: the sum of all pieces times the window over the sum of its squares. By default
 * n_fft is what the frequencies are of, onesided true, and length, of the last axis of the result,
 * what there is; what lacks is 0. */
int mlx_fft_istft(mlx_array *res, const mlx_array stft_matrix, mlx_optional_int n_fft,
                  mlx_optional_int hop_length, mlx_optional_int win_length, const mlx_array window,
                  bool center, mlx_fft_norm norm, const bool *onesided, mlx_optional_int length,
                  const mlx_stream s);

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

/* mlx_gather_qmm with a global scale, float32, for each matrix of w, which it was packed with by
 * mlx_quantize in mode "nvfp4"; may be empty. */
int mlx_gather_qmm_global_scale(mlx_array *res, const mlx_array x, const mlx_array w,
                                const mlx_array scales, const mlx_array biases,
                                const mlx_array lhs_indices, const mlx_array rhs_indices,
                                bool transpose, mlx_optional_int group_size, mlx_optional_int bits,
                                const char *mode, const mlx_array global_scale, bool sorted_indices,
                                const mlx_stream s);

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

/* ---- kernels of callers: SPIR-V, or GLSL ----
 *
 * A kernel is a module of SPIR-V with a compute entry point, or the body of one in GLSL. A call of
 * it is an op like every other: lazy, on a stream of a GPU, which fails on a CPU. Inputs are only
 * read; outputs are new arrays, unset unless there is an init value.
 *
 * A module finds its arrays as storage buffers of set 0: binding i is array i, inputs first, then
 * outputs. One that declares no storage buffer is given the arrays' device addresses, 8 bytes each
 * in the same order, in front of its push constants. What it says about itself (bindings and their
 * sizes, push constants, workgroups, capabilities) is compared with the call and the device; what
 * does not fit is an error that names it. Up to 32 arrays, 128 bytes of push constants with
 * addresses, 32 specialization constants, all of 32 bits. */

typedef struct mlx_fast_vulkan_kernel_config_ {
    void *ctx;
} mlx_fast_vulkan_kernel_config;

mlx_fast_vulkan_kernel_config mlx_fast_vulkan_kernel_config_new(void);
void mlx_fast_vulkan_kernel_config_free(mlx_fast_vulkan_kernel_config cls);
int mlx_fast_vulkan_kernel_config_add_output_arg(mlx_fast_vulkan_kernel_config cls,
                                                 const int *shape, size_t size, mlx_dtype dtype);
/* In threads. Workgroups run as a whole: beyond a grid that is no multiple of their size a module's
 * threads run nevertheless; those of GLSL do not. */
int mlx_fast_vulkan_kernel_config_set_grid(mlx_fast_vulkan_kernel_config cls, int grid1, int grid2,
                                           int grid3);
/* In workgroups, instead. */
int mlx_fast_vulkan_kernel_config_set_groups(mlx_fast_vulkan_kernel_config cls, int groups1,
                                             int groups2, int groups3);
/* Threads of a workgroup; 0, which is the default, is the module's own number, and 1 in GLSL. A
 * module takes another one if its size is made of specialization constants. */
int mlx_fast_vulkan_kernel_config_set_thread_group(mlx_fast_vulkan_kernel_config cls, int thread1,
                                                   int thread2, int thread3);
/* All elements of all outputs, before the kernel runs. */
int mlx_fast_vulkan_kernel_config_set_init_value(mlx_fast_vulkan_kernel_config cls, float value);
/* The text that GLSL becomes goes to standard output. */
int mlx_fast_vulkan_kernel_config_set_verbose(mlx_fast_vulkan_kernel_config cls, bool verbose);
/* All of the module's push constants, behind addresses if it has them; not in GLSL. */
int mlx_fast_vulkan_kernel_config_set_push_constants(mlx_fast_vulkan_kernel_config cls,
                                                     const void *data, size_t size);
/* The 32 bits of one; the others have the module's values. Not in GLSL. */
int mlx_fast_vulkan_kernel_config_set_specialization(mlx_fast_vulkan_kernel_config cls,
                                                     uint32_t constant_id, uint32_t bits);
/* Macros of GLSL: the type that has the elements of that dtype, a number, true or false. */
int mlx_fast_vulkan_kernel_config_add_template_arg_dtype(mlx_fast_vulkan_kernel_config cls,
                                                         const char *name, mlx_dtype dtype);
int mlx_fast_vulkan_kernel_config_add_template_arg_int(mlx_fast_vulkan_kernel_config cls,
                                                       const char *name, int value);
int mlx_fast_vulkan_kernel_config_add_template_arg_bool(mlx_fast_vulkan_kernel_config cls,
                                                        const char *name, bool value);

typedef struct mlx_fast_vulkan_kernel_ {
    void *ctx;
} mlx_fast_vulkan_kernel;

/* Of size bytes of SPIR-V, which are copied. Inputs that are not row-major are copied if
 * ensure_row_contiguous, else given as they lie. name is for statistics and traces. */
mlx_fast_vulkan_kernel mlx_fast_vulkan_kernel_new_spirv(const char *name, const void *spirv,
                                                        size_t size, bool ensure_row_contiguous);
mlx_fast_vulkan_kernel mlx_fast_vulkan_kernel_new_file(const char *name, const char *file,
                                                       bool ensure_row_contiguous);
/* Of GLSL: source is the body of a function that runs for each thread, header what stands before
 * it. Arrays are known by their names and subscripts, as arrays of float16_t, float, int8_t, ...;
 * bool is uint8_t, bfloat16 uint16_t with its bits, complex64 vec2. atomic_outputs makes outputs
 * coherent. Calls compile it, once for each set of dtypes, templates and workgroup size, with
 * libshaderc where that can be opened; without, they fail. */
mlx_fast_vulkan_kernel mlx_fast_vulkan_kernel_new(const char *name,
                                                  const mlx_vector_string input_names,
                                                  const mlx_vector_string output_names,
                                                  const char *source, const char *header,
                                                  bool ensure_row_contiguous, bool atomic_outputs);
void mlx_fast_vulkan_kernel_free(mlx_fast_vulkan_kernel cls);
int mlx_fast_vulkan_kernel_apply(mlx_vector_array *outputs, mlx_fast_vulkan_kernel cls,
                                 const mlx_vector_array inputs,
                                 const mlx_fast_vulkan_kernel_config config,
                                 const mlx_stream stream);

#ifdef __cplusplus
}
#endif

#endif
