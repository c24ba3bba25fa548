/* Products of matrices that indices choose. */
#include "ops/build.h"

/* All batch dimensions as one. */
static enum err as_list(struct arr **out, struct arr *a, struct strm *s)
{
    int32_t shape[3] = { -1, a->shape[a->ndim - 2], a->shape[a->ndim - 1] };

    if (a->size == 0)
        shape[0] = 0;
    return ops_reshape(out, a, (struct ints){ shape, 3 }, s);
}

/* The indices given, as uint32, or the numbers of a's matrices in the shape of its batch. */
static enum err indices_of(struct arr **out, struct arr *indices, struct arr *a, struct strm *s)
{
    struct arr *x = NULL;
    int64_t n = 1;
    enum err err;

    if (indices)
        return ops_astype(out, indices, DT_UINT32, s);
    for (int i = 0; i < a->ndim - 2; i++)
        n *= a->shape[i];
    TRY(ops_arange(&x, &(struct arange_params){ 0, (double)n, 1 }, DT_UINT32, s));
    TRY(ops_reshape(out, x, (struct ints){ a->shape, (size_t)(a->ndim - 2) }, s));
out:
    arr_unref(&x);
    return err;
}

static enum err check(const struct arr *a, const struct arr *b, const struct ops_gather_mm *g)
{
    if (a->ndim < 2 || b->ndim < 2)
        return err_set(ERR_ARG, "[gather_mm] Inputs must have at least two dimensions.");
    if (a->shape[a->ndim - 1] != b->shape[b->ndim - 2])
        return err_set(ERR_ARG,
                       "[gather_mm] Last dimension of first input must match second to last "
                       "dimension of second input, got %d and %d.",
                       a->shape[a->ndim - 1], b->shape[b->ndim - 2]);
    if ((g->lhs_indices && !dt_is_integer(dtype_of(g->lhs_indices))) ||
        (g->rhs_indices && !dt_is_integer(dtype_of(g->rhs_indices))))
        return err_set(ERR_ARG, "[gather_mm] Got indices with invalid dtype. Indices must be "
                                "integral.");
    if (!dt_is_inexact(dt_promote(dtype_of(a), dtype_of(b))))
        return err_set(ERR_ARG, "[gather_mm] Only real floating point types are supported.");
    return ERR_OK;
}

enum err ops_gather_mm(struct arr **out, struct arr *a, struct arr *b,
                       const struct ops_gather_mm *g, struct strm *s)
{
    struct arr *at[2] = { NULL, NULL }, *x[2] = { NULL, NULL };
    enum err err;

    if (!g->lhs_indices && !g->rhs_indices)
        return ops_matmul(out, a, b, s);
    TRY(check(a, b, g));
    TRY(indices_of(&at[0], g->lhs_indices, a, s));
    TRY(indices_of(&at[1], g->rhs_indices, b, s));
    TRY(as_list(&x[0], a, s));
    TRY(as_list(&x[1], b, s));
    for (int i = 0; i < 2; i++)
        STEP(x[i], ops_take(&next, x[i], at[i], 0, s));
    err = ops_matmul(out, x[0], x[1], s);
out:
    arr_unref_all(at, 2);
    arr_unref_all(x, 2);
    return err;
}
