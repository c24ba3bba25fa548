/* Operand layouts of a matrix product, decided once for every backend (docs/runtime.md, Walks).
 *
 * A product is out[batch] = a[batch] x b[batch] (+ c[batch]) over a nest of batch dimensions. Each
 * operand is described by element strides; nothing is moved here. A backend initialises the plan,
 * packs what it cannot read as it lies, and then folds the batch.
 *
 * A gather multiplies pairs of matrices that two arrays of numbers choose. Its batch dimensions are
 * those of a, over which b is broadcast, and then those of b, over which a is.
 *
 * Of a sparse product only parts count: of each batch a segment of k, or blocks by masks. */
#pragma once

#include "backend/backend.h"

/* One operand: element strides of its rows, columns and batch dimensions (0 = broadcast). */
struct mm_side {
    int64_t rows, cols;
    int64_t row_stride, col_stride;
    int64_t batch[SHP_MAX];
};

enum mm_operand { MM_A, MM_B, MM_C, MM_OPERANDS };

/* What a product reads besides its operands: numbers of a's and of b's matrices, or segments, or
 * masks of what is behind the names. */
#define MM_SEGMENTS 0
enum mm_mask { MM_MASK_OUT, MM_MASK_A, MM_MASK_B };
#define MM_EXTRAS 3

struct mm_plan {
    int64_t m, n, k;
    int n_dims; /* batch dimensions after merging, outermost first */
    int64_t dim[SHP_MAX];
    int64_t n_batch; /* product of dim; of a gather the number of pairs */
    bool is_gather;
    bool is_segmented;
    int32_t block;    /* rows and columns of what an element of a mask is for; 0: no masks */
    int n_dims_b;     /* gather: how many of n_dims are b's */
    int64_t n_a, n_b; /* gather: matrices there are */
    int n_sides;      /* 2, or 3 with c */
    struct mm_side side[MM_OPERANDS]; /* a is m x k, b is k x n, c is m x n */
};

/* How a matrix lies in memory: unit stride along the columns of a row, or (by_col) along the rows
 * of a column; ld elements lead from one row, or column, to the next. */
struct mm_layout {
    bool by_col;
    int64_t ld;
};

/* Shapes and strides of x: inputs a, b and for AddMM c, all broadcastable to the output; else a, b
 * and what mm_extras_init takes. */
void mm_plan_init(struct mm_plan *p, const struct exec *x);

/* False if neither stride is one, or the other does not fit 32 bits: the operand must be packed. A
 * dimension of size 1 has any stride. */
bool mm_side_layout(struct mm_layout *out, const struct mm_side *s);

/* The copy that packs an operand: every element once (broadcast batches stay broadcast), rows
 * side by side with ld elements from one to the next. */
struct mm_pack {
    struct shp shape;     /* of the copy: batch dimensions that exist, rows, cols */
    struct shp dst_shape; /* the same with ld columns: what to allocate, row-major */
    int64_t src_strides[SHP_MAX], dst_strides[SHP_MAX];
};
/* Describes the copy of operand i and changes the plan to its result. */
void mm_plan_pack(struct mm_pack *out, struct mm_plan *p, enum mm_operand i, int64_t ld);

/* Makes batch dimensions that share b part of m where a and c allow it: one large product instead
 * of many small ones. */
void mm_plan_fold(struct mm_plan *p);

/* Element offset of an operand's matrix for batch number i (row-major over dim). */
int64_t mm_batch_offset(const struct mm_plan *p, enum mm_operand operand, int64_t i);
/* The batch number of a gather's pair; numbers past the last matrix mean that one. */
int64_t mm_pair(const struct mm_plan *p, uint32_t left, uint32_t right);

/* The extras as dense arrays: inputs or copies of them, which are encoded; NULL where there is
 * none. To be finished in any case, after the last use. */
struct mm_extras {
    struct arr *in[MM_EXTRAS];
    struct arr *copies[MM_EXTRAS]; /* owned */
};
MUST_CHECK enum err mm_extras_init(struct mm_extras *e, const struct mm_plan *p,
                                   const struct exec *x);
/* Keeps the copies alive for the work encoded so far. */
MUST_CHECK enum err mm_extras_hold(const struct mm_extras *e, struct strm *s);
void mm_extras_fini(struct mm_extras *e);

/* The part of k that a segment, which is two numbers, takes: what lies behind k counts for nothing.
 */
static inline void mm_segment(int64_t range[2], const uint32_t *segment, int64_t k)
{
    range[0] = MIN((int64_t)segment[0], k);
    range[1] = MAX(MIN((int64_t)segment[1], k), range[0]);
}
