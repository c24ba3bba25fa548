/* The Hadamard transform of the last axis. */
#include "graph/hadamard.h"

#include <math.h>

#include "ops/build.h"
#include "ops/rules.h"

static int32_t last_dim(const struct arr *a)
{
    return a->ndim ? a->shape[a->ndim - 1] : 1;
}

enum err op_infer_hadamard(struct infer_call *c)
{
    const struct arr *a = c->in[0];
    struct hadamard_size size;

    FITS(dt_is_float(dtype_of(a)) && a->ndim > 0);
    if (!hadamard_size(&size, last_dim(a)))
        return err_set(ERR_ARG, "[hadamard] Only supports n = m*2^k where m in (1, 12, 20, 28).");
    infer_like(c, a);
    return ERR_OK;
}

static enum err times(struct arr **out, struct arr *a, double factor, enum dtype t, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(arr_new_number(&v, factor, t));
    err = ops_binary(out, OP_MULTIPLY, a, v, s);
out:
    arr_unref(&v);
    return err;
}

enum err ops_hadamard_transform(struct arr **out, struct arr *a, const float *scale, struct strm *s)
{
    enum dtype t = dt_is_float(dtype_of(a)) ? dtype_of(a) : DT_FLOAT32;
    double norm = 1 / sqrt(last_dim(a));
    /* The factor of float64 is no float32. */
    bool is_apart = t == DT_FLOAT64 && !scale;
    struct hadamard_params p = { scale ? *scale : is_apart ? 1 : (float)norm };
    struct arr *x = NULL;
    enum err err;

    if (a->size == 0)
        return err_set(ERR_ARG, "[hadamard_transform] Does not support empty arrays.");
    if (last_dim(a) == 1)
        return p.scale == 1 ? ops_same(out, a) : times(out, a, p.scale, t, s);
    TRY(ops_astype(&x, a, t, s));
    STEP(x, ops_make_one(&next, OP_HADAMARD, &p, x, s));
    if (is_apart)
        STEP(x, times(&next, x, norm, t, s));
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

/* ---- gradient ---- */

/* The transposed matrix of a base, which has so many rows. */
static enum err transposed_base(struct arr **out, int32_t n, enum dtype t, struct strm *s)
{
    float v[HADAMARD_BASE_MAX * HADAMARD_BASE_MAX];
    const uint32_t *rows = hadamard_rows(n);
    struct arr *x = NULL;
    enum err err;

    for (int j = 0; j < n; j++)
        for (int q = 0; q < n; q++)
            v[q * n + j] = rows[j] >> q & 1 ? 1.0f : -1.0f;
    TRY(arr_new_data(&x, v, &(struct shp){ 2, { n, n } }, DT_FLOAT32));
    TRY(ops_astype(out, x, t, s));
out:
    arr_unref(&x);
    return err;
}

/* By the transposed matrix: a row is a matrix of base rows, whose columns the base's matrix joins.
 */
static enum err transposed(struct arr **out, struct arr *a, const struct hadamard_size *size,
                           float scale, struct strm *s)
{
    int32_t parts[] = { size->base, 1 << size->log2 };
    struct arr *x = NULL, *h = NULL;
    enum err err;

    TRY(ops_unflatten(&x, a, -1, (struct ints){ parts, 2 }, s));
    STEP(x, ops_hadamard_transform(&next, x, &scale, s));
    TRY(transposed_base(&h, size->base, dtype_of(a), s));
    STEP(x, ops_matmul(&next, h, x, s));
    TRY(ops_flatten(out, x, -2, -1, s));
out:
    arr_unref(&x);
    arr_unref(&h);
    return err;
}

enum err op_vjp_hadamard(struct vjp_call *c)
{
    const struct hadamard_params *p = c->f.params;
    struct arr *cotan = c->cotan[0];
    struct hadamard_size size;
    bool is_symmetric;

    (void)hadamard_size(&size, last_dim(cotan)); /* op_infer has made sure */
    is_symmetric = size.base <= 12;
    if (is_symmetric)
        return ops_make_one(c->result, OP_HADAMARD, p, cotan, c->f.strm);
    return transposed(c->result, cotan, &size, p->scale, c->f.strm);
}
