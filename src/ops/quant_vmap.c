/* Packed matrices over a batch. */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

/* ---- products ---- */

/* a with its last two dimensions, behind those that x has before its own. */
static enum err batch_like(struct arr **a, const struct arr *x, struct strm *s)
{
    struct shp to;
    int32_t axes[SHP_MAX];
    size_t n = (size_t)(x->ndim - (*a)->ndim);
    enum err err;

    for (size_t i = 0; i < n; i++)
        axes[i] = (int32_t)i + 1;
    arr_shape(&to, x);
    for (int i = 1; i <= 2; i++)
        to.d[to.ndim - i] = (*a)->shape[(*a)->ndim - i];
    STEP(*a, ops_expand_dims(&next, *a, (struct ints){ axes, n }, s));
    STEP(*a, ops_broadcast_to(&next, *a, shp_ints(&to), s));
out:
    return err;
}

/* Every matrix has a batch as x has it; a vector becomes a row meanwhile. */
static enum err packed_batches(struct vmap_call *c)
{
    static const int32_t row = 1;
    bool is_vector = c->f.in[0]->ndim - (c->axis[0] != VMAP_NONE) == 1;
    struct arr *in[4] = { NULL }, *r = NULL;
    enum err err;

    TRY(vmap_fronts(in, c, 0));
    if (is_vector)
        STEP(in[0], ops_expand_dims(&next, in[0], (struct ints){ &row, 1 }, c->f.strm));
    for (size_t i = 1; i < c->f.n_in; i++)
        TRY(in[i]->ndim > in[0]->ndim ? op_no_rule(c->f.op, "vmap")
                                      : batch_like(&in[i], in[0], c->f.strm));
    TRY(ops_make_of(&r, c->f.op, c->f.params, (struct given){ in, c->f.n_in }, c->f.strm));
    if (is_vector)
        STEP(r, ops_squeeze(&next, r, (struct ints){ &row, 1 }, c->f.strm));
    arr_move(&c->result[0], &r);
out:
    arr_unref_all(in, 4);
    arr_unref(&r);
    return err;
}

enum err op_vmap_quantized_matmul(struct vmap_call *c)
{
    struct arr *in[4], *x = NULL;
    bool is_shared = c->f.in[1]->ndim == 2;
    enum err err;

    c->out_axis[0] = 0;
    for (size_t i = 1; i < c->f.n_in; i++)
        is_shared &= c->axis[i] == VMAP_NONE;
    if (!is_shared)
        return packed_batches(c);
    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    TRY(vmap_front(&x, c, 0));
    in[0] = x;
    err = ops_make(&c->result[0], c->f.op, c->f.params, (struct arrs){ in, c->f.n_in }, c->f.strm);
out:
    arr_unref(&x);
    return err;
}

enum err op_vmap_gather_qmm(struct vmap_call *c)
{
    return err_set(ERR_RUNTIME, "[%s::vmap] Not implemented.", op_name(c->f.op));
}

/* ---- packing and unpacking ---- */

/* A global scale is one for all. */
enum err op_vmap_quantize(struct vmap_call *c)
{
    const struct quantize_params *p = c->f.params;
    size_t n = p->dequantize && p->q.mode == QUANT_AFFINE ? 3 : p->dequantize ? 2 : 1;
    struct arr *in[3] = { NULL };
    enum err err = ERR_OK;

    if (c->f.n_in > n && c->axis[n] != VMAP_NONE)
        return op_no_rule(c->f.op, "vmap");
    for (size_t i = 0; i < c->f.n_out; i++)
        c->out_axis[i] = 0;
    for (size_t i = 0; i < n; i++)
        TRY(vmap_front(&in[i], c, i));
    if (c->f.n_in > n)
        in[n] = arr_ref(c->f.in[n]);
    err = ops_make_of(c->result, c->f.op, p, (struct given){ in, c->f.n_in }, c->f.strm);
out:
    arr_unref_all(in, 3);
    return err;
}
