/* Matrix products on Vulkan: which kernel with which tile, decided by a table (matmul_pick.c), and
 * the dispatch of it (matmul.c). */
#pragma once

#include "backend/backend.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/variant.h"
#include "base/common.h"
#include "base/err.h"
#include "graph/dtype.h"

/* As in kernels/gemm.glsl. */
enum { EPILOGUE_PLAIN, EPILOGUE_SCALED, EPILOGUE_PARTIAL };
enum {
    FLAG_A_ALONG_K = 1,
    FLAG_B_ALONG_K = 2,
    FLAG_A_WIDE = 4,
    FLAG_B_WIDE = 8,
    FLAG_K_EDGE = 16,
    FLAG_PROGRAM = 32,
    FLAG_X_BY_ROW = 64,
};

/* Rows of tiles that are walked together: with tiles of 128 x 128, about as many columns of tiles
 * are in flight on a device of 132 units as there are rows in two bands. */
#define BAND 8

enum mm_kernel {
    MM_GEMV,  /* tile: lanes, rows, workgroup size */
    MM_COOP,  /* tile: subgroups along m and n, fragments along m, n and k, stages */
    MM_TILED, /* tile: m, n, k, and m and n of one invocation */
    MM_KERNELS
};

#define MM_TILE_MAX 6

enum mm_layout_want { MM_EITHER, MM_ALONG_K, MM_ACROSS_K };

/* A row of a table of variants. */
struct mm_variant {
    enum variant_id id; /* VARIANT_COUNT: given by kernel and tile */
    enum mm_kernel kernel;
    uint32_t tile[MM_TILE_MAX];
    uint32_t dtypes;
    int64_t fill;               /* workgroups needed, in per cent of the compute units */
    int64_t max_k;              /* 0: any */
    enum mm_layout_want layout; /* of the matrix of a gemv */
    bool last;                  /* of its kernel: accepts every size */
};
#define MM_BIT(dtype) (1u << (dtype))

/* What the table is asked: a product after folding, its operands packed where they had to be. */
struct mm_problem {
    enum dtype dtype;
    int64_t m, n, k, n_batch;
    bool along_k[2];  /* a, b: unit stride along k */
    int64_t ld[2];    /* leading dimensions */
    bool aligned[2];  /* rows begin at multiples of 16 bytes, and have whole chunks of them */
    bool is_fixed;    /* operands are read as they lie: packing them is waste, or no way */
    bool is_unfolded; /* a is the unfolded input of a convolution */
    bool is_sparse;   /* only parts count */
    bool has_factors; /* by masks of the operands that are not bool */
    int64_t block;    /* of masks: tiles divide it; 0: none */
};

/* A gemv sees one operand as the matrix and the other as a few vectors. */
bool mm_vectors_are_a(const struct mm_problem *q);

struct mm_choice {
    enum variant_id variant; /* VARIANT_COUNT: none of the table */
    enum mm_kernel kernel;
    enum kern_id kern;
    uint32_t tile[MM_TILE_MAX]; /* specialization constants after the workgroup size */
    int n_tile;
    uint32_t threads;
    int64_t groups; /* workgroups of all batches for one part of k */
    int64_t step;   /* of k in one trip */
    uint32_t splits, k_split;
};

struct vk_epilogue;

/* As vk_matmul, with a program behind the product; NULL: none. */
MUST_CHECK enum err vk_matmul_with(const struct exec *x, const struct vk_epilogue *epilogue);

/* Whether a row accepts the problem, and how it would run it. */
enum variant_reason mm_judge(struct mm_choice *out, const struct mm_variant *v,
                             const struct mm_problem *q);

/* Parts of k for a choice of all but that: enough to fill the device with `busy` invocations per
 * compute unit. `groups` of the choice: of all batches. */
void mm_split(struct mm_choice *c, const struct mm_problem *q, uint32_t busy);

/* The first row that accepts the problem; the last rows accept everything. */
MUST_CHECK enum err mm_pick(struct mm_choice *out, const struct mm_problem *q);
