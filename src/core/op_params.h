/* Parameters of ops: plain structs without padding, zero-initialised, so that equality is memcmp
 * and a hash runs over the bytes. Axes are normalised (not negative) when the node is made. */
#pragma once

#include "core/shape.h"

struct none_params {
    char unused;
};

struct axis_params {
    int32_t axis;
};

struct axes_params { /* ExpandDims: axes in the output; Squeeze: in the input; Transpose: a
                        permutation; DynamicSlice (inputs: x, start) and DynamicSliceUpdate (x,
                        update, start): one per entry of start */
    int32_t n;
    int32_t axis[SHP_MAX];
};

struct arange_params {
    double start, stop, step;
};

struct random_bits_params { /* input: keys of shape [..., 2] */
    int32_t width;          /* bytes per value: 1, 2 or 4 */
};

struct as_strided_params {
    int64_t strides[SHP_MAX];
    int64_t offset; /* in elements */
};

struct contiguous_params {
    int32_t allow_col_major;
};

struct flatten_params {
    int32_t start, end;
};

struct unflatten_params {
    int32_t axis;
};

struct slice_params { /* normalised: start is the first element taken, step may be negative */
    int32_t n;
    int32_t start[SHP_MAX], stop[SHP_MAX], step[SHP_MAX];
};

enum update_kind { UPDATE_MAX, UPDATE_MIN, UPDATE_SUM, UPDATE_PROD, UPDATE_NONE };

struct slice_update_params { /* inputs: src, an update of the region's shape */
    int32_t kind;            /* enum update_kind */
    struct slice_params region;
};

struct split_params {
    int32_t axis;
};

struct gather_params { /* inputs: src, then one index array per axis */
    int32_t n_axes;
    int32_t axis[SHP_MAX];
    int32_t slice_size[SHP_MAX]; /* one per dimension of src */
};

struct pad_params { /* inputs: x, the 0-d pad value */
    int32_t n;
    int32_t axis[SHP_MAX], low[SHP_MAX], high[SHP_MAX];
};

enum reduce_kind { REDUCE_AND, REDUCE_OR, REDUCE_SUM, REDUCE_PROD, REDUCE_MIN, REDUCE_MAX };

struct reduce_params { /* sorted axes; the output keeps them as size 1 */
    int32_t kind;      /* enum reduce_kind */
    int32_t n;
    int32_t axis[SHP_MAX];
};

struct arg_reduce_params {
    int32_t is_max; /* else argmin */
    int32_t axis;   /* kept as size 1 */
};

enum scan_kind { SCAN_MAX, SCAN_MIN, SCAN_SUM, SCAN_PROD, SCAN_LOGADDEXP };

struct scan_params {
    int32_t kind; /* enum scan_kind */
    int32_t axis;
    int32_t reverse, inclusive;
};

struct partition_params { /* the backends sort the whole axis */
    int32_t kth, axis;
};

struct softmax_params {
    int32_t precise; /* accumulate in float32 */
};

enum quant_mode { QUANT_AFFINE, QUANT_MXFP4, QUANT_MXFP8, QUANT_NVFP4, QUANT_MODES };

/* How rows of numbers are packed: bits of each, and how many share a scale. */
struct quant_params {
    int32_t group_size, bits, mode; /* enum quant_mode */
};

struct quantize_params { /* inputs: w [, global scale] give w, scales [, biases]; or back: w, scales
                            [, biases] [, global scale] */
    struct quant_params q;
    int32_t dequantize;
};

struct quantized_matmul_params { /* inputs: x, w, scales [, biases]; of GatherQMM then the numbers
                                    of the matrices of x and of w */
    struct quant_params q;
    int32_t transpose; /* w is n x k */
    int32_t left_sorted, right_sorted;
};

struct addmm_params { /* inputs: a, b, c; alpha * a @ b + beta * c */
    float alpha, beta;
};

struct gather_mm_params { /* inputs: a, b, the numbers of their matrices */
    int32_t left_sorted, right_sorted;
};

struct norm_params { /* RMSNorm and LayerNorm; inputs: x, then weight and bias where they are there
                      */
    float eps;
    int32_t has_weight, has_bias;
};

struct rope_params { /* inputs: x, then an offset array and freqs where they are there */
    int32_t dims;
    int32_t traditional; /* pairs of neighbours, else of halves */
    int32_t forward;     /* else the inverse rotation */
    float base, scale;   /* base counts only without freqs */
    int32_t offset;      /* of all positions, without an offset array */
    int32_t has_offset, has_freqs;
};

struct sdpa_params { /* inputs: q, k, v, then mask and sinks where they are there */
    float scale;
    int32_t causal; /* query i sees keys up to i + (keys - queries) */
    int32_t has_mask, has_sinks;
};
