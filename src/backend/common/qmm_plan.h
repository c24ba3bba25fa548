/* Operands of a product with a quantized matrix, decided once for every backend.
 *
 * The product is out[i] = x[i] times w[i] over a batch. Packed words, scales and biases of a matrix
 * are read as dense rows, x as rows of neighbouring elements; what lies otherwise is copied first.
 * Rows that share a matrix become one tall x. */
#pragma once

#include "backend/backend.h"

enum qmm_operand { QMM_X, QMM_W, QMM_SCALES, QMM_BIASES, QMM_LHS, QMM_RHS, QMM_OPERANDS };
/* Those that have a stride over the batch. */
#define QMM_STRIDED QMM_LHS

struct qmm_plan {
    struct strm *strm;
    struct quant_params q;
    bool is_gather, transpose; /* transpose: w is n x k */
    int64_t m, n, k;
    int64_t ld;      /* elements from row to row of x */
    int64_t n_batch; /* products */
    /* Batch dimensions, outermost first, and element strides of the operands over them. Of a gather
     * one dimension: the numbers of matrices, which the index arrays give. */
    int n_dims;
    int64_t dim[SHP_MAX], stride[QMM_STRIDED][SHP_MAX];
    int64_t n_x, n_w; /* gather: matrices there are */
    /* What to read: inputs or their copies; NULL for what the mode or the op does not have. */
    struct arr *in[QMM_OPERANDS];
    struct arr *copies[QMM_OPERANDS]; /* owned */
};

/* Fills p for a QuantizedMatmul or GatherQMM with a result that is not empty; encodes the copies.
 * p is to be finished in any case. */
MUST_CHECK enum err qmm_plan_init(struct qmm_plan *p, const struct exec *x);
/* Keeps the copies alive for the work encoded so far. To be called after the last use. */
MUST_CHECK enum err qmm_plan_hold(const struct qmm_plan *p);
void qmm_plan_fini(struct qmm_plan *p);

/* Element offset of an operand's matrix for product number i, which is no gather's. */
int64_t qmm_batch_offset(const struct qmm_plan *p, enum qmm_operand operand, int64_t i);

/* Dense row-major, or a copy of it that is. *copy is the copy, owned by the caller. */
MUST_CHECK enum err qmm_dense(struct arr **in, struct arr **copy, struct strm *s);
