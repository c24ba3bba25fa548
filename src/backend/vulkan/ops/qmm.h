/* Products with quantized matrices on Vulkan: mat-vec kernels for few rows (qmv.c), tiles for many
 * (qmm.c). */
#pragma once

#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/rt/encoder.h"

struct qmm_plan;
struct vk_epilogue;

/* As vk_quantized_matmul, with a program behind the product; NULL: none. */
MUST_CHECK enum err vk_quantized_matmul_with(const struct exec *x,
                                             const struct vk_epilogue *epilogue);

/* Unpacks a dense matrix into out, whose dtype is that of scales and biases in affine mode; or rows
 * of it, numbered as gather's indices are. */
struct vk_dequantize {
    struct quant_params q;
    const struct arr *w, *scales;
    const struct arr *biases, *global_scale; /* NULL: none */
    const struct arr *ids;                   /* NULL: all; integers of any layout, not empty */
    const struct arr *out;
    enum variant_id variant; /* of a product that begins like this; VARIANT_COUNT: none */
};
MUST_CHECK enum err vk_dequantize_encode(struct vk_enc *e, const struct vk_dequantize *d);

/* ---- few rows ---- */

#define VK_QMV_SETS 4

/* One x times up to VK_QMV_SETS packed matrices of k columns (n rows each, dense) in one dispatch,
 * each with its result or, with an epilogue, one or two with one result. All steps round to the
 * dtype of x, as separate ops would. */
struct vk_qmv {
    struct quant_params q;
    const struct arr *x; /* m rows of k elements, ld apart */
    int64_t m, k, ld;
    int n_sets;
    struct vk_qmv_set {
        const struct arr *w, *scales, *biases; /* biases NULL in the fp modes */
        const struct arr *out;                 /* m x n, dense, has storage */
        int64_t n;
    } set[VK_QMV_SETS];          /* epilogue: all of the same n; the result is set[0].out */
    const struct arr *norm;      /* NULL, or: x is normed first, with this dense weight */
    const struct arr *norm_bias; /* NULL: none; dense */
    bool is_centred;             /* LayerNorm, else RMSNorm */
    float eps;
    const struct vk_epilogue *epilogue; /* NULL, or: over as many products as there are sets */
    const struct qmm_plan *plan;        /* NULL, or the batch; one result only */
};

/* The most rows that the kernels take at once. */
#define VK_QMV_ROWS 16

/* True if the kernels can run it: m up to VK_QMV_ROWS, and fewer where x is normed. Checks layouts
 * and settings, encodes nothing. */
bool vk_qmv_fits(const struct vk_qmv *v);

/* Encodes v, which fits. *gave_way: the variant's kernel cannot be built; it is off from here on,
 * nothing was encoded, and the caller takes another way. */
MUST_CHECK enum err vk_qmv_encode(struct vk_enc *e, const struct vk_qmv *v, bool *gave_way);
