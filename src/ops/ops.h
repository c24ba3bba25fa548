/* Constructors of graph nodes: shapes and dtypes are checked and inferred here, casts and
 * broadcasts are inserted, nothing is computed.
 *
 * Every function borrows its inputs and writes one new reference to *out, last thing before
 * success; after a failure *out is as before. Where an op has nothing to do (a cast to the same
 * dtype, a reshape to the same shape) the result is a new reference to the input. s is never NULL.
 * Rules and errors are MLX's. Thread-safety: safe. */
#pragma once

#include "graph/array.h"
#include "graph/op.h"

/* A borrowed list of ints: axes, a shape, positions. */
struct ints {
    const int32_t *v;
    size_t n;
};
/* Instead of a list of axes: all of them, in order. */
#define INTS_ALL ((struct ints){ NULL, SIZE_MAX })

/* A borrowed list of arrays. */
struct arrs {
    struct arr *const *v;
    size_t n;
};

/* Axes of a reduction and what becomes of them. */
struct ops_axes {
    struct ints axes; /* negative ones count from the end */
    bool keepdims;    /* they stay, with size 1 */
};

/* ---- elementwise ---- */

/* One node of a unary op (AsType, which has its own function, is not among them), with the casts
 * that the op's rule asks for. */
MUST_CHECK enum err ops_unary(struct arr **out, enum op_id op, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_astype(struct arr **out, struct arr *a, enum dtype t, struct strm *s);
/* 8-bit floats (4 bits of exponent, 3 of mantissa) as uint8, and back to a floating type. */
MUST_CHECK enum err ops_to_fp8(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_from_fp8(struct arr **out, struct arr *a, enum dtype t, struct strm *s);
/* The bytes read as another dtype; the last dimension changes in proportion. */
MUST_CHECK enum err ops_view(struct arr **out, struct arr *a, enum dtype t, struct strm *s);
MUST_CHECK enum err ops_round(struct arr **out, struct arr *a, int decimals, struct strm *s);
MUST_CHECK enum err ops_degrees(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_radians(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_reciprocal(struct arr **out, struct arr *a, struct strm *s);

/* One node of a binary op: promotion, casts, broadcasting. */
MUST_CHECK enum err ops_binary(struct arr **out, enum op_id op, struct arr *a, struct arr *b,
                               struct strm *s);
/* Integers divide as C does, towards zero; floats give floor(a / b). */
MUST_CHECK enum err ops_floor_divide(struct arr **out, struct arr *a, struct arr *b,
                                     struct strm *s);
/* outs: quotient and remainder. */
MUST_CHECK enum err ops_divmod(struct arr *outs[2], struct arr *a, struct arr *b, struct strm *s);

MUST_CHECK enum err ops_where(struct arr **out, struct arr *cond, struct arr *a, struct arr *b,
                              struct strm *s);
/* Either bound may be NULL, not both. */
MUST_CHECK enum err ops_clip(struct arr **out, struct arr *a, struct arr *low, struct arr *high,
                             struct strm *s);
/* posinf and neginf NULL mean the largest finite value of either sign. */
struct ops_nan_to_num {
    float nan;
    const float *posinf, *neginf;
};
MUST_CHECK enum err ops_nan_to_num(struct arr **out, struct arr *a, const struct ops_nan_to_num *v,
                                   struct strm *s);

MUST_CHECK enum err ops_isnan(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_isinf(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_isfinite(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_isposinf(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_isneginf(struct arr **out, struct arr *a, struct strm *s);

struct ops_close {
    double rtol, atol;
    bool equal_nan;
};
MUST_CHECK enum err ops_isclose(struct arr **out, struct arr *a, struct arr *b,
                                const struct ops_close *c, struct strm *s);
MUST_CHECK enum err ops_allclose(struct arr **out, struct arr *a, struct arr *b,
                                 const struct ops_close *c, struct strm *s);
MUST_CHECK enum err ops_array_equal(struct arr **out, struct arr *a, struct arr *b, bool equal_nan,
                                    struct strm *s);

/* ---- creation ---- */

/* vals cast to t and broadcast to shape. */
MUST_CHECK enum err ops_full(struct arr **out, struct ints shape, struct arr *vals, enum dtype t,
                             struct strm *s);
/* The shape is the broadcast of a's and vals'. */
MUST_CHECK enum err ops_full_like(struct arr **out, struct arr *a, struct arr *vals, enum dtype t,
                                  struct strm *s);
/* full and full_like with one number, such as 0 or 1. */
MUST_CHECK enum err ops_fill(struct arr **out, struct ints shape, double value, enum dtype t,
                             struct strm *s);
MUST_CHECK enum err ops_fill_like(struct arr **out, struct arr *a, double value, enum dtype t,
                                  struct strm *s);
/* The dtype is t, whatever range has. */
MUST_CHECK enum err ops_arange(struct arr **out, const struct arange_params *range, enum dtype t,
                               struct strm *s);

struct ops_linspace {
    double start, stop;
    int num;
    bool is_open; /* stop is not among them */
};
MUST_CHECK enum err ops_linspace(struct arr **out, const struct ops_linspace *l, enum dtype t,
                                 struct strm *s);

struct ops_diagonal { /* rows, columns, which diagonal (positive: above the main one) */
    int n, m, k;
};
MUST_CHECK enum err ops_eye(struct arr **out, const struct ops_diagonal *d, enum dtype t,
                            struct strm *s);
MUST_CHECK enum err ops_tri(struct arr **out, const struct ops_diagonal *d, enum dtype t,
                            struct strm *s);
MUST_CHECK enum err ops_tril(struct arr **out, struct arr *a, int k, struct strm *s);
MUST_CHECK enum err ops_triu(struct arr **out, struct arr *a, int k, struct strm *s);
/* Product of the sizes of axes, or one over it; a leaf but in graphs that are recorded for other
 * sizes, too. */
struct ops_elements {
    struct ints axes;
    bool inverted;
    enum dtype dtype;
};
MUST_CHECK enum err ops_number_of_elements(struct arr **out, struct arr *a,
                                           const struct ops_elements *e, struct strm *s);

/* Two axes of an array and which diagonal of theirs (positive: above the main one). */
struct ops_plane {
    int offset, axis1, axis2;
};
/* The diagonal becomes the last axis. */
MUST_CHECK enum err ops_diagonal(struct arr **out, struct arr *a, const struct ops_plane *p,
                                 struct strm *s);
/* Its sum, of elements cast to t. */
MUST_CHECK enum err ops_trace(struct arr **out, struct arr *a, const struct ops_plane *p,
                              enum dtype t, struct strm *s);
/* A vector becomes diagonal k of a matrix of zeros, a matrix gives its diagonal k. */
MUST_CHECK enum err ops_diag(struct arr **out, struct arr *a, int k, struct strm *s);

enum ops_window { WINDOW_BARTLETT, WINDOW_BLACKMAN, WINDOW_HAMMING, WINDOW_HANNING };
MUST_CHECK enum err ops_window(struct arr **out, enum ops_window kind, int size, struct strm *s);

/* ---- views ---- */

MUST_CHECK enum err ops_reshape(struct arr **out, struct arr *a, struct ints shape, struct strm *s);
MUST_CHECK enum err ops_flatten(struct arr **out, struct arr *a, int start, int end,
                                struct strm *s);
MUST_CHECK enum err ops_unflatten(struct arr **out, struct arr *a, int axis, struct ints shape,
                                  struct strm *s);
MUST_CHECK enum err ops_expand_dims(struct arr **out, struct arr *a, struct ints axes,
                                    struct strm *s);
/* INTS_ALL: every dimension of size 1. */
MUST_CHECK enum err ops_squeeze(struct arr **out, struct arr *a, struct ints axes, struct strm *s);
/* INTS_ALL: reversed. */
MUST_CHECK enum err ops_transpose(struct arr **out, struct arr *a, struct ints axes,
                                  struct strm *s);
MUST_CHECK enum err ops_moveaxis(struct arr **out, struct arr *a, int source, int destination,
                                 struct strm *s);
MUST_CHECK enum err ops_swapaxes(struct arr **out, struct arr *a, int axis1, int axis2,
                                 struct strm *s);
MUST_CHECK enum err ops_broadcast_to(struct arr **out, struct arr *a, struct ints shape,
                                     struct strm *s);
/* outs: one for each, all of the common shape. */
MUST_CHECK enum err ops_broadcast_arrays(struct arr **outs, struct arrs in, struct strm *s);

struct ops_as_strided {
    struct ints shape;
    const int64_t *strides; /* as many as shape has entries */
    size_t n_strides;
    size_t offset;
};
MUST_CHECK enum err ops_as_strided(struct arr **out, struct arr *a, const struct ops_as_strided *v,
                                   struct strm *s);
/* Reshapes to at least n dimensions, 1 to 3. */
MUST_CHECK enum err ops_atleast_nd(struct arr **out, struct arr *a, int n, struct strm *s);

/* Start, stop and step of dimension i, of size n, from a caller's numbers to those of a node; gives
 * the number of elements. */
int32_t ops_slice_clamp(struct slice_params *p, int i, int32_t n);
struct ops_slice { /* one entry per dimension each */
    struct ints start, stop, step;
};
MUST_CHECK enum err ops_slice(struct arr **out, struct arr *a, const struct ops_slice *v,
                              struct strm *s);
/* src with the region replaced by, or combined with, the update, which is cast and broadcast. */
struct ops_slice_update {
    struct arr *update;
    struct ops_slice region;
    enum update_kind kind;
};
MUST_CHECK enum err ops_slice_update(struct arr **out, struct arr *src,
                                     const struct ops_slice_update *u, struct strm *s);

/* Where a slice starts: an array of integers, one for each axis; the others start at 0. */
struct ops_start {
    struct arr *at;
    struct ints axes;
};
/* size: of the slice, one entry per dimension. */
MUST_CHECK enum err ops_slice_dynamic(struct arr **out, struct arr *a,
                                      const struct ops_start *start, struct ints size,
                                      struct strm *s);
/* src with a slice of the update's shape replaced. Dimensions that the update lacks are the full
 * ones of src, or 1 on axes that have a start. */
MUST_CHECK enum err ops_slice_update_dynamic(struct arr **out, struct arr *src, struct arr *update,
                                             const struct ops_start *start, struct strm *s);
/* outs: indices.n + 1 parts. */
MUST_CHECK enum err ops_split_sections(struct arr **outs, struct arr *a, struct ints indices,
                                       int axis, struct strm *s);
/* outs: n equal parts. */
MUST_CHECK enum err ops_split(struct arr **outs, struct arr *a, int n, int axis, struct strm *s);

MUST_CHECK enum err ops_copy(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_stop_gradient(struct arr **out, struct arr *a, struct strm *s);

/* outs[i] is inputs[i] and is computed after all of dependencies. */
MUST_CHECK enum err ops_depends(struct arr **outs, struct arrs inputs, struct arrs dependencies,
                                struct strm *s);
/* What transformations of a custom function do, in the place of what its graph says; the calls are
 * those of rules (graph/op_call.h), whose inputs are args and then outputs. */
struct ops_custom {
    struct op_state base;
    enum err (*vjp)(struct vjp_call *c);
    enum err (*jvp)(struct jvp_call *c);
    enum err (*vmap)(struct vmap_call *c);
};
/* results[i] is outputs[i], of which there is one at least, to transformations a function of args.
 */
MUST_CHECK enum err ops_custom(struct arr **results, struct arrs args, struct arrs outputs,
                               struct ops_custom *rules, struct strm *s);
MUST_CHECK enum err ops_contiguous(struct arr **out, struct arr *a, bool allow_col_major,
                                   struct strm *s);

/* ---- data movement ---- */

MUST_CHECK enum err ops_concatenate(struct arr **out, struct arrs in, int axis, struct strm *s);
/* Along axis 0, after flattening each. */
MUST_CHECK enum err ops_concatenate_flat(struct arr **out, struct arrs in, struct strm *s);
MUST_CHECK enum err ops_stack(struct arr **out, struct arrs in, int axis, struct strm *s);
MUST_CHECK enum err ops_repeat(struct arr **out, struct arr *a, int repeats, int axis,
                               struct strm *s);
/* Of the flattened array. */
MUST_CHECK enum err ops_repeat_flat(struct arr **out, struct arr *a, int repeats, struct strm *s);
MUST_CHECK enum err ops_tile(struct arr **out, struct arr *a, struct ints reps, struct strm *s);

/* Elements move by `shift` places, those that leave at one end come in at the other. */
MUST_CHECK enum err ops_roll(struct arr **out, struct arr *a, struct ints shift, struct ints axes,
                             struct strm *s);
/* By the sum of shifts along one axis; */
MUST_CHECK enum err ops_roll_axis(struct arr **out, struct arr *a, struct ints shift, int axis,
                                  struct strm *s);
/* of the flattened array. */
MUST_CHECK enum err ops_roll_flat(struct arr **out, struct arr *a, struct ints shift,
                                  struct strm *s);
/* Each element of a times all of b, in blocks. */
MUST_CHECK enum err ops_kron(struct arr **out, struct arr *a, struct arr *b, struct strm *s);
/* outs[i] varies along axis i only, or with "xy" the first two the other way round; sparse: the
 * other axes have size 1. */
struct ops_meshgrid {
    bool sparse;
    const char *indexing; /* xy, ij */
};
MUST_CHECK enum err ops_meshgrid(struct arr **outs, struct arrs in, const struct ops_meshgrid *m,
                                 struct strm *s);

struct ops_pad { /* one entry per axis each */
    struct ints axes, low, high;
    struct arr *value;
    const char *mode; /* constant, edge, reflect, symmetric */
};
MUST_CHECK enum err ops_pad(struct arr **out, struct arr *a, const struct ops_pad *p,
                            struct strm *s);
/* width before and after every axis; axes, low and high of p are not read. */
MUST_CHECK enum err ops_pad_symmetric(struct arr **out, struct arr *a, int width,
                                      const struct ops_pad *p, struct strm *s);

MUST_CHECK enum err ops_take(struct arr **out, struct arr *a, struct arr *indices, int axis,
                             struct strm *s);
/* Of the flattened array. */
MUST_CHECK enum err ops_take_flat(struct arr **out, struct arr *a, struct arr *indices,
                                  struct strm *s);
/* Elements of a at the positions that indices give along the axis; the other dimensions broadcast.
 */
MUST_CHECK enum err ops_take_along_axis(struct arr **out, struct arr *a, struct arr *indices,
                                        int axis, struct strm *s);

/* Slices of a: one entry of sizes per dimension of a, an index array for each axis, which
 * broadcast. The result has the shape of the indices, then that of a slice. */
struct ops_gather {
    struct arrs indices;
    struct ints axes, sizes;
};
MUST_CHECK enum err ops_gather(struct arr **out, struct arr *a, const struct ops_gather *g,
                               struct strm *s);
/* a with slices replaced by, or combined with, updates, which have the shape of the indices, then
 * that of a slice, and are cast. Of several that go to the same place the last one replaces. */
struct ops_scatter {
    struct arrs indices;
    struct arr *updates;
    struct ints axes;
    enum update_kind kind;
};
MUST_CHECK enum err ops_scatter(struct arr **out, struct arr *a, const struct ops_scatter *v,
                                struct strm *s);
/* The same with single elements along one axis; all other dimensions of a, indices and updates
 * broadcast. kind: UPDATE_SUM or UPDATE_NONE. */
struct ops_scatter_axis {
    struct arr *indices, *updates;
    int axis;
    enum update_kind kind;
};
MUST_CHECK enum err ops_scatter_axis(struct arr **out, struct arr *a,
                                     const struct ops_scatter_axis *v, struct strm *s);
/* a with the places where mask, which has the shape of its first dimensions, is true replaced by
 * values, one after the other. */
MUST_CHECK enum err ops_masked_scatter(struct arr **out, struct arr *a, struct arr *mask,
                                       struct arr *values, struct strm *s);

/* ---- loading ---- */

struct load_part;
/* An array whose bytes are read when it is evaluated: straight into the memory of the stream's
 * device, or used where they are. Does not check that the source is long enough; evaluation does.
 */
MUST_CHECK enum err ops_load(struct arr **out, const struct load_part *p, const struct shp *shape,
                             enum dtype t, struct strm *s);

/* ---- sorting: ascending, NaN last, equal elements in their order ---- */

MUST_CHECK enum err ops_sort(struct arr **out, struct arr *a, int axis, struct strm *s);
MUST_CHECK enum err ops_argsort(struct arr **out, struct arr *a, int axis, struct strm *s);
/* The element that belongs in place kth is there, smaller ones before it, larger ones behind. */
MUST_CHECK enum err ops_partition(struct arr **out, struct arr *a, int kth, int axis,
                                  struct strm *s);
MUST_CHECK enum err ops_argpartition(struct arr **out, struct arr *a, int kth, int axis,
                                     struct strm *s);
/* The k largest, in no particular order. */
MUST_CHECK enum err ops_topk(struct arr **out, struct arr *a, int k, int axis, struct strm *s);

MUST_CHECK enum err ops_median(struct arr **out, struct arr *a, const struct ops_axes *x,
                               struct strm *s);

/* ---- scans ---- */

struct ops_scan {
    enum scan_kind kind;
    int axis;
    bool reverse;   /* from the end */
    bool inclusive; /* else element i is what comes before it */
};
MUST_CHECK enum err ops_scan(struct arr **out, struct arr *a, const struct ops_scan *v,
                             struct strm *s);

/* ---- reductions ---- */

MUST_CHECK enum err ops_reduce(struct arr **out, enum reduce_kind kind, struct arr *a,
                               const struct ops_axes *x, struct strm *s);
MUST_CHECK enum err ops_mean(struct arr **out, struct arr *a, const struct ops_axes *x,
                             struct strm *s);
MUST_CHECK enum err ops_var(struct arr **out, struct arr *a, const struct ops_axes *x, int ddof,
                            struct strm *s);
MUST_CHECK enum err ops_std(struct arr **out, struct arr *a, const struct ops_axes *x, int ddof,
                            struct strm *s);
MUST_CHECK enum err ops_logsumexp(struct arr **out, struct arr *a, const struct ops_axes *x,
                                  struct strm *s);
MUST_CHECK enum err ops_softmax(struct arr **out, struct arr *a, struct ints axes, bool precise,
                                struct strm *s);
/* One axis, or INTS_ALL for the position in the flattened array. */
MUST_CHECK enum err ops_arg_reduce(struct arr **out, bool is_max, struct arr *a,
                                   const struct ops_axes *x, struct strm *s);

/* ---- matrix products ---- */

MUST_CHECK enum err ops_matmul(struct arr **out, struct arr *a, struct arr *b, struct strm *s);

struct ops_addmm { /* alpha * a @ b + beta * c */
    struct arr *c, *a, *b;
    float alpha, beta;
};
MUST_CHECK enum err ops_addmm(struct arr **out, const struct ops_addmm *m, struct strm *s);
/* For each pair of indices, which broadcast, the product of that matrix of a and of b. */
struct ops_gather_mm {
    struct arr *lhs_indices, *rhs_indices; /* NULL: all matrices in order */
    bool sorted;
};
MUST_CHECK enum err ops_gather_mm(struct arr **out, struct arr *a, struct arr *b,
                                  const struct ops_gather_mm *g, struct strm *s);
/* Sum of products over pairs of axes: what is left of a, then what is left of b. */
struct ops_tensordot {
    struct arr *a, *b;
    struct ints axes_a, axes_b;
};
MUST_CHECK enum err ops_tensordot(struct arr **out, const struct ops_tensordot *t, struct strm *s);
/* Over the last n axes of a and the first n of b. */
MUST_CHECK enum err ops_tensordot_axis(struct arr **out, struct arr *a, struct arr *b, int n,
                                       struct strm *s);
MUST_CHECK enum err ops_inner(struct arr **out, struct arr *a, struct arr *b, struct strm *s);
MUST_CHECK enum err ops_outer(struct arr **out, struct arr *a, struct arr *b, struct strm *s);

/* Sums of products of arrays, whose axes have letters: "ij,jk->ik". */
MUST_CHECK enum err ops_einsum(struct arr **out, const char *subscripts, struct arrs operands,
                               struct strm *s);
/* The order in which einsum takes operands: at step i count[i] of those that are left, whose
 * positions are the next ones of `at`; the product joins them at the end. */
struct ops_einsum_path {
    int32_t *at, *count;
    size_t n_at, n;
    char *text; /* what it costs, for people */
};
MUST_CHECK enum err ops_einsum_path(struct ops_einsum_path *out, const char *subscripts,
                                    struct arrs operands);
void ops_einsum_path_fini(struct ops_einsum_path *p);

/* ---- linear algebra; all but cross products and most norms on CPU streams only ---- */

/* outs: the eigenvalues, then, if they are wanted, the vectors as columns of length 1; complex. */
MUST_CHECK enum err ops_eig(struct arr **outs, struct arr *a, bool vectors, struct strm *s);
/* Of a symmetric or Hermitian matrix, of which only the triangle is read that uplo says, "L" or
 * "U". */
MUST_CHECK enum err ops_eigh(struct arr **outs, struct arr *a, const char *uplo, bool vectors,
                             struct strm *s);
/* outs: U, the singular values, V^H; without vectors the values only. */
MUST_CHECK enum err ops_svd(struct arr **outs, struct arr *a, bool vectors, struct strm *s);
MUST_CHECK enum err ops_cholesky(struct arr **out, struct arr *a, bool upper, struct strm *s);
/* The inverse of the matrix that a is the factor of. */
MUST_CHECK enum err ops_cholesky_inv(struct arr **out, struct arr *a, bool upper, struct strm *s);
MUST_CHECK enum err ops_inv(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_tri_inv(struct arr **out, struct arr *a, bool upper, struct strm *s);
MUST_CHECK enum err ops_pinv(struct arr **out, struct arr *a, struct strm *s);
MUST_CHECK enum err ops_qr(struct arr *outs[2], struct arr *a, struct strm *s);
/* outs: the order that makes the rows of L U those of a, L, U. */
MUST_CHECK enum err ops_lu(struct arr *outs[3], struct arr *a, struct strm *s);
/* outs: L and U in one matrix, the row that each one changed places with. */
MUST_CHECK enum err ops_lu_factor(struct arr *outs[2], struct arr *a, struct strm *s);
MUST_CHECK enum err ops_solve(struct arr **out, struct arr *a, struct arr *b, struct strm *s);
MUST_CHECK enum err ops_solve_triangular(struct arr **out, struct arr *a, struct arr *b, bool upper,
                                         struct strm *s);
MUST_CHECK enum err ops_det(struct arr **out, struct arr *a, struct strm *s);
/* outs: the sign, the logarithm of the absolute value. */
MUST_CHECK enum err ops_slogdet(struct arr *outs[2], struct arr *a, struct strm *s);

MUST_CHECK enum err ops_cross(struct arr **out, struct arr *a, struct arr *b, int axis,
                              struct strm *s);
/* Of vectors along one axis or of matrices in two. */
MUST_CHECK enum err ops_norm(struct arr **out, struct arr *a, double ord, const struct ops_axes *x,
                             struct strm *s);
/* ord: "f", "fro", "nuc". */
MUST_CHECK enum err ops_norm_matrix(struct arr **out, struct arr *a, const char *ord,
                                    const struct ops_axes *x, struct strm *s);
/* The root of the sum of squares over axes, two at most or all. */
MUST_CHECK enum err ops_norm_l2(struct arr **out, struct arr *a, const struct ops_axes *x,
                                struct strm *s);

/* Products of which only blocks count: an element of a mask is for a block of so many rows and
 * columns (32 or 64) of the result, of a or of b; bool, or a factor. NULL: all of them. */
struct ops_masked_mm {
    struct arr *a, *b;
    int32_t block;
    struct arr *out, *lhs, *rhs;
};
MUST_CHECK enum err ops_block_masked_mm(struct arr **out, const struct ops_masked_mm *v,
                                        struct strm *s);
/* A product of each segment of k, [first, end) in segments of shape [..., 2]. */
MUST_CHECK enum err ops_segmented_mm(struct arr **out, struct arr *a, struct arr *b,
                                     struct arr *segments, struct strm *s);

/* ---- convolutions ---- */

/* The last axis times the Hadamard matrix of its size and scale; NULL: what makes it orthonormal.
 */
MUST_CHECK enum err ops_hadamard_transform(struct arr **out, struct arr *a, const float *scale,
                                           struct strm *s);

/* x of shape [n, spatial..., channels], weights of [channels, spatial..., channels of x / groups].
 * Numbers of each spatial axis: as many as there are, or one for all, or none for the default. */
struct ops_conv {
    struct arr *x, *w;
    struct ints stride, pad_lo, pad_hi, kernel_dilation, input_dilation;
    int groups;
    bool flip;
};
MUST_CHECK enum err ops_conv(struct arr **out, const struct ops_conv *v, struct strm *s);
/* What undoes the change of shape that ops_conv makes; as many numbers as x has spatial axes. */
struct ops_conv_transpose {
    struct arr *x, *w;
    struct ints stride, padding, dilation, output_padding;
    int groups;
};
MUST_CHECK enum err ops_conv_transpose(struct arr **out, const struct ops_conv_transpose *v,
                                       struct strm *s);

/* ---- Fourier transforms ---- */

/* As numbered in the public header. */
enum ops_fft_norm { FFT_NORM_BACKWARD, FFT_NORM_ORTHO, FFT_NORM_FORWARD };
/* Sizes of the axes, of the input cut or filled up with zeros, or for a real inverse of the result.
 * real: numbers become the first half of a spectrum along the last axis, or back. */
struct ops_fft {
    struct ints n, axes;
    bool inverse, real;
    enum ops_fft_norm norm;
};
MUST_CHECK enum err ops_fft(struct arr **out, struct arr *a, const struct ops_fft *v,
                            struct strm *s);
/* The spectra of pieces that overlap. */
struct ops_stft {
    const int32_t *n_fft;     /* how long pieces are; NULL, of the inverse only: as they are */
    const int32_t *hop, *win; /* from one to the next, of the window; NULL: n_fft / 4, n_fft */
    struct arr *window;       /* a vector, or NULL for ones */
    bool center;              /* piece i is around i * hop instead of behind it */
    const char *pad_mode;     /* what is beyond the ends then; not of the inverse */
    enum ops_fft_norm norm;
    const bool *onesided;  /* NULL: of what is not complex; of the inverse true */
    const int32_t *length; /* of the result of the inverse; NULL: what there is */
};
/* Along the last axis, which becomes frequencies and pieces. */
MUST_CHECK enum err ops_stft(struct arr **out, struct arr *a, const struct ops_stft *v,
                             struct strm *s);
/* Back: the sum of the pieces times the window over the sum of its squares. */
MUST_CHECK enum err ops_istft(struct arr **out, struct arr *a, const struct ops_stft *v,
                              struct strm *s);
/* Frequency 0 to the middle, or back to the front. */
MUST_CHECK enum err ops_fftshift(struct arr **out, struct arr *a, struct ints axes, bool inverse,
                                 struct strm *s);
/* The frequencies of a spectrum of n numbers d apart; real: of the half that ops_fft gives. */
MUST_CHECK enum err ops_fftfreq(struct arr **out, int n, double d, bool real, struct strm *s);

/* ---- quantized weights (docs/runtime.md) ---- */

/* How numbers are packed; NULL: the mode's own. */
struct ops_quant {
    const int32_t *group_size, *bits;
    const char *mode; /* affine, mxfp4, mxfp8, nvfp4 */
};
/* A packed matrix; biases only in affine mode, else NULL. */
struct ops_packed {
    struct arr *w, *scales, *biases;
    struct ops_quant q;
};
/* The packed words, scales and in affine mode biases. */
struct ops_quantized {
    struct arr *v[3];
    size_t n;
};
/* global_scale (nvfp4 only) may be NULL. */
MUST_CHECK enum err ops_quantize(struct ops_quantized *out, struct arr *w,
                                 const struct ops_quant *q, struct arr *global_scale,
                                 struct strm *s);
struct ops_dequantize {
    struct arr *global_scale; /* may be NULL */
    const enum dtype *dtype;  /* NULL: that of the scales, or bfloat16 */
};
MUST_CHECK enum err ops_dequantize(struct arr **out, const struct ops_packed *w,
                                   const struct ops_dequantize *how, struct strm *s);
/* x times the matrix, or its transpose. */
MUST_CHECK enum err ops_quantized_matmul(struct arr **out, struct arr *x,
                                         const struct ops_packed *w, bool transpose,
                                         struct strm *s);
/* For each pair of indices the product of that matrix of x and of w. */
struct ops_gather_qmm {
    struct arr *lhs_indices, *rhs_indices; /* NULL: all matrices in order */
    bool transpose, sorted;
    struct arr *global_scale; /* with nvfp4, of each matrix; may be NULL */
};
MUST_CHECK enum err ops_gather_qmm(struct arr **out, struct arr *x, const struct ops_packed *w,
                                   const struct ops_gather_qmm *g, struct strm *s);

/* x, which is packed first, times the transpose of w, which is packed if it has no scales; what
 * they are packed to is multiplied and added up in float32. */
struct ops_qqmm {
    struct arr *x, *w;
    struct ops_quant q;
    struct arr *scales, *global_x, *global_w; /* may be NULL */
};
MUST_CHECK enum err ops_qqmm(struct arr **out, const struct ops_qqmm *v, struct strm *s);
MUST_CHECK enum err ops_gather_qqmm(struct arr **out, const struct ops_qqmm *v,
                                    struct arr *lhs_indices, struct arr *rhs_indices,
                                    struct strm *s);

/* ---- fast: norms, rotary positions, attention (docs/runtime.md) ---- */

/* Over the last axis; weight may be NULL. */
MUST_CHECK enum err ops_rms_norm(struct arr **out, struct arr *x, struct arr *weight, float eps,
                                 struct strm *s);
struct ops_layer_norm { /* weight and bias may be NULL */
    struct arr *weight, *bias;
    float eps;
};
MUST_CHECK enum err ops_layer_norm(struct arr **out, struct arr *x, const struct ops_layer_norm *n,
                                   struct strm *s);

struct ops_rope {
    int dims;
    bool traditional;
    const float *base; /* either base */
    struct arr *freqs; /* or freqs, the other is NULL */
    float scale;
    int offset;               /* of all positions, */
    struct arr *offset_array; /* or one for all or for each batch */
};
MUST_CHECK enum err ops_rope(struct arr **out, struct arr *x, const struct ops_rope *r,
                             struct strm *s);

struct ops_sdpa {
    struct arr *q, *k, *v;
    float scale;
    const char *mask_mode;    /* "", "causal" or "array" */
    struct arr *mask, *sinks; /* may be NULL */
};
MUST_CHECK enum err ops_sdpa(struct arr **out, const struct ops_sdpa *a, struct strm *s);

/* What a node of this op gives, made of other ops; for those whose rules say parts. */
struct op_apply;
MUST_CHECK enum err ops_parts(struct arr **outs, const struct op_apply *f);
/* If f's op gives gradients: of which op, with the inputs that f begins with, and of which of them,
 * one for each output of f. The cotangent is f's last input. */
bool ops_gradient_of(struct op_apply *of, int *inputs, const struct op_apply *f);

/* ---- made of other ops ---- */

MUST_CHECK enum err ops_logical_xor(struct arr **out, struct arr *a, struct arr *b, struct strm *s);
/* Rounded towards zero. */
MUST_CHECK enum err ops_trunc(struct arr **out, struct arr *a, struct strm *s);
/* Differences of neighbours, n times over. */
MUST_CHECK enum err ops_diff(struct arr **out, struct arr *a, int n, int axis, struct strm *s);
/* Sums of conj(a) * b along an axis. */
MUST_CHECK enum err ops_vecdot(struct arr **out, struct arr *a, struct arr *b, int axis,
                               struct strm *s);
/* Backwards along the axes. */
MUST_CHECK enum err ops_flip(struct arr **out, struct arr *a, struct ints axes, struct strm *s);
MUST_CHECK enum err ops_count_nonzero(struct arr **out, struct arr *a, const struct ops_axes *axes,
                                      struct strm *s);
/* As many parts as the axis, which is not negative, has elements. */
MUST_CHECK enum err ops_unstack(struct arr **parts, struct arr *a, int axis, struct strm *s);
/* Where values belong in a sorted vector: in front of equal ones, or behind them (side "right"). */
MUST_CHECK enum err ops_searchsorted(struct arr **out, struct arr *sorted, struct arr *values,
                                     const char *side, struct strm *s);

/* The size first different elements in order, flattened, behind them fill or, with NULL, the first
 * one. outs has room for 4: the elements, then what is wanted of where each of them stands first,
 * the number of each element of a among them, and how often they occur. */
struct ops_unique {
    int size;
    bool index, inverse, counts;
    struct arr *fill;
};
MUST_CHECK enum err ops_unique(struct arr **outs, struct arr *a, const struct ops_unique *u,
                               struct strm *s);
/* logsumexp(logits) - logits[targets] over the last axis, as float32. */
MUST_CHECK enum err ops_cross_entropy(struct arr **out, struct arr *logits, struct arr *targets,
                                      struct strm *s);

/* q, k: [batch, steps, heads, keys], v: [batch, steps, heads, values]; gamma and beta: a number for
 * each head of v, of which those of q and k may be a divisor. outs: like v, and the memory, [batch,
 * heads, values, keys]. */
struct ops_delta {
    struct arr *q, *k, *v, *gamma, *beta;
    struct arr *state, *mask; /* may be NULL: memory before, [batch, steps] */
};
MUST_CHECK enum err ops_gated_delta(struct arr *outs[2], const struct ops_delta *v, struct strm *s);

/* ---- random numbers (docs/runtime.md) ----
 * key NULL draws from the calling thread's sequence. */

MUST_CHECK enum err ops_random_key(struct arr **out, uint64_t seed);
/* Restarts the calling thread's sequence. */
MUST_CHECK enum err ops_random_seed(uint64_t seed);
MUST_CHECK enum err ops_random_split(struct arr *outs[2], struct arr *key, struct strm *s);
MUST_CHECK enum err ops_random_split_num(struct arr **out, struct arr *key, int num,
                                         struct strm *s);
MUST_CHECK enum err ops_random_bits(struct arr **out, struct ints shape, int width, struct arr *key,
                                    struct strm *s);

struct ops_random {
    struct ints shape;
    enum dtype dtype;
    struct arr *low, *high;  /* uniform, randint */
    struct arr *loc, *scale; /* normal; NULL: 0 and 1 */
    struct arr *key;
};
MUST_CHECK enum err ops_random_uniform(struct arr **out, const struct ops_random *r,
                                       struct strm *s);
MUST_CHECK enum err ops_random_normal(struct arr **out, const struct ops_random *r, struct strm *s);
/* Vectors with a mean and a covariance, as many as r->shape says and what comes before the last
 * axes of both broadcast to; float32, on a CPU stream. */
MUST_CHECK enum err ops_random_multivariate_normal(struct arr **out, struct arr *mean,
                                                   struct arr *cov, const struct ops_random *r,
                                                   struct strm *s);
MUST_CHECK enum err ops_random_randint(struct arr **out, const struct ops_random *r,
                                       struct strm *s);
/* loc and scale are numbers of the dtype. */
MUST_CHECK enum err ops_random_laplace(struct arr **out, const struct ops_random *r,
                                       struct strm *s);
/* Normal numbers between low and high. */
MUST_CHECK enum err ops_random_truncated_normal(struct arr **out, const struct ops_random *r,
                                                struct strm *s);
/* The numbers 0 to n - 1 in random order, */
MUST_CHECK enum err ops_random_permutation(struct arr **out, int n, struct arr *key,
                                           struct strm *s);
/* or the parts of a along an axis. */
MUST_CHECK enum err ops_random_shuffle(struct arr **out, struct arr *a, int axis, struct arr *key,
                                       struct strm *s);
MUST_CHECK enum err ops_random_gumbel(struct arr **out, struct ints shape, enum dtype t,
                                      struct arr *key, struct strm *s);
/* Positions along the axis, drawn with the probabilities that the logits give: one for each
 * distribution, an array of shape r->shape that the logits broadcast to, or n for each. */
MUST_CHECK enum err ops_random_categorical_shape(struct arr **out, struct arr *logits, int axis,
                                                 const struct ops_random *r, struct strm *s);
struct ops_samples {
    int32_t n;
    struct arr *key;
};
MUST_CHECK enum err ops_random_categorical_samples(struct arr **out, struct arr *logits, int axis,
                                                   const struct ops_samples *v, struct strm *s);
MUST_CHECK enum err ops_random_categorical(struct arr **out, struct arr *logits, int axis,
                                           struct arr *key, struct strm *s);
MUST_CHECK enum err ops_random_bernoulli(struct arr **out, struct arr *p, struct ints shape,
                                         struct arr *key, struct strm *s);

/* ---- kernels of callers ---- */

struct spirv_module;
struct out_desc;
/* A call of a module (graph/kernel.h) on a GPU stream. */
struct ops_kernel {
    struct spirv_module *module;
    const char *name; /* for statistics and traces */
    struct arrs in;
    const struct out_desc *out;
    size_t n_out;
    int64_t grid[3];
    bool in_groups;   /* the grid is of workgroups, else of threads, rounded up to whole ones */
    int64_t local[3]; /* threads of a workgroup; 0: as the module says */
    const void *push;
    size_t push_size;
    const struct ops_kernel_spec {
        uint32_t id, value;
    } * spec;
    size_t n_spec;
    const double *init;     /* of all outputs; may be NULL */
    struct arr *init_array; /* instead: a float32 without dimensions */
    bool keeps_strides;     /* inputs are given as they lie, else row-major */
};
/* outs: n_out. */
MUST_CHECK enum err ops_vulkan_kernel(struct arr **outs, const struct ops_kernel *k,
                                      struct strm *s);

/* ---- between processes ----
 *
 * group NULL: that of all processes. In a group of one what a collective gives is x. */

struct dist_group;
struct op_state;
MUST_CHECK enum err ops_all_reduce(struct arr **out, struct arr *x, enum all_reduce_kind kind,
                                   struct dist_group *group, struct strm *s);
/* The arrays of all, joined along the first axis. */
MUST_CHECK enum err ops_all_gather(struct arr **out, struct arr *x, struct dist_group *group,
                                   struct strm *s);
/* This process's part of the sum, which is cut along the first axis. */
MUST_CHECK enum err ops_sum_scatter(struct arr **out, struct arr *x, struct dist_group *group,
                                    struct strm *s);
/* The result is x, once it has been sent. */
MUST_CHECK enum err ops_send(struct arr **out, struct arr *x, int dst, struct dist_group *group,
                             struct strm *s);
struct ops_recv {
    struct ints shape;
    enum dtype dtype;
    int src;
};
MUST_CHECK enum err ops_recv(struct arr **out, const struct ops_recv *r, struct dist_group *group,
                             struct strm *s);
