/* Gradients of attention: one dispatch for queries, which finds maximum and sum of every row, one
 * for keys and values, and one for sinks. */
#include <stdio.h>

#include "backend/common/attn.h"
#include "backend/common/families.h"
#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/attn.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"

/* All loops of an invocation together end after 65,535 trips on a software device. */
#define SOFTWARE_MAX_TRIPS 32768

/* Lanes of a workgroup, by other rows and by its own, four of each to a lane. */
struct shape {
    uint32_t tx, ty;
};

struct job {
    const struct exec *x;
    struct attn a;
    const struct arr *in[SDPA_VJP_OPERANDS];
    struct arr *copy[SDPA_VJP_OPERANDS]; /* owned, where the kernels could not read one */
    bool is_wide;
    struct shape shape;
    const struct vk_pipe *rows, *keys;
    struct vk_enc *enc;
    struct sdpa_vjp_args args;
    size_t stats_size;
};

/* ---- how it runs ---- */

static int64_t rows_of(const struct job *j)
{
    return (int64_t)j->a.group * j->a.n_q;
}

static uint32_t shared_bytes(struct shape s)
{
    uint32_t own = 4 * s.ty, other = 4 * s.tx;

    return 16 * ((own + other) * (SDPA_VJP_CHUNK + 1) + MAX(own, other)) + 4 * own * (other + 1);
}

/* Trips of the loops over as many others, at most. */
static int64_t trips_of(struct shape s, const struct job *j)
{
    int64_t others = MAX(rows_of(j), j->a.n_k), chunk = 4 * SDPA_VJP_CHUNK;
    int64_t chunks_k = ceil_div(j->a.dim, chunk), chunks_v = ceil_div(j->a.v_dim, chunk);
    int64_t stage_own = 4 * SDPA_VJP_CHUNK / s.tx, stage_other = 4 * SDPA_VJP_CHUNK / s.ty;
    int64_t products = (2 * chunks_k + chunks_v) * (stage_own + stage_other + SDPA_VJP_CHUNK);

    return ceil_div(others, 4 * s.tx) * (products + (chunks_k + chunks_v) * (stage_other + s.tx));
}

static bool pick_shape(struct job *j)
{
    static const struct shape shapes[] = { { 4, 2 }, { 16, 16 }, { 16, 8 }, { 8, 8 } };
    const struct vk_limits *dev = vk_limits_get();

    for (size_t i = launch_is_lean() ? 0 : 1; i < ARRAY_LEN(shapes); i++) {
        j->shape = shapes[i];
        if (shared_bytes(shapes[i]) <= dev->shared_memory &&
            shapes[i].tx * shapes[i].ty <= dev->max_workgroup_size &&
            (!dev->is_software || trips_of(shapes[i], j) <= SOFTWARE_MAX_TRIPS))
            return true;
    }
    return false;
}

static uint32_t flags_of(const struct job *j)
{
    const struct arr *m = j->a.mask;
    uint32_t mask = !m ? 0 : m->dtype == DT_BOOL ? SDPA_MASK_BOOL : SDPA_MASK_ADD;

    return mask | (j->a.p->causal ? SDPA_CAUSAL : 0) | (j->a.sinks ? SDPA_SINKS : 0) |
           (j->is_wide ? SDPA_WIDE : 0);
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    (void)job;
    (void)id;
    return VARIANT_FITS;
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    struct job *j = job;
    struct shape s = j->shape;
    uint32_t spec[] = {
        s.tx * s.ty,
        1,
        1,
        flags_of(j),
        s.tx,
        s.ty,
        (uint32_t)j->a.group,
        (uint32_t)j->a.dim,
        (uint32_t)j->a.v_dim,
    };
    enum err err;

    (void)id;
    TRY(kern_pipe(&j->rows, KERN_ATTN_VJP_ROWS, j->in[0]->dtype, spec, ARRAY_LEN(spec)));
    TRY(kern_pipe(&j->keys, KERN_ATTN_VJP_KEYS, j->in[0]->dtype, spec, ARRAY_LEN(spec)));
    *pipe = j->rows;
out:
    return err;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct job *j = data;

    snprintf(text, size, "%s, gradient, heads %d of %d x %d, %d queries, %d keys",
             dt_name((enum dtype)j->in[0]->dtype), j->a.heads, j->a.n_kv, j->a.dim, j->a.n_q,
             j->a.n_k);
}

static const struct variant_table variants = {
    VARIANT_SDPA_VJP_TILED,        VARIANT_SDPA_VJP_TILED, judge, build, describe,
    "queries x keys x heads x dim"
};

/* ---- operands ---- */

static enum err make_readable(struct job *j, int i, struct arr *a)
{
    struct strm *s = j->x->strm;
    struct shp shape;
    enum err err;

    j->in[i] = a;
    if (a->strides[3] == 1 || a->shape[3] == 1)
        return ERR_OK;
    arr_shape(&shape, a);
    TRY(arr_new_empty(&j->copy[i], &shape, (enum dtype)a->dtype));
    TRY(be_copy_dense(s, j->copy[i], a));
    TRY(s->be->hold(s, &j->copy[i]->buf, 1));
    j->in[i] = j->copy[i];
out:
    return err;
}

static enum err make_all_readable(struct job *j)
{
    const struct exec *x = j->x;
    struct arr *const in[] = { x->in[0], x->in[1], x->in[2], x->in[x->n_in - 2],
                               x->in[x->n_in - 1] };
    enum err err = ERR_OK;

    static_assert(SDPA_VJP_V == 2 && SDPA_VJP_OUT == 3 && SDPA_VJP_COTAN == 4, "in this order");
    j->is_wide = true;
    for (int i = 0; i < SDPA_VJP_OPERANDS; i++) {
        TRY(make_readable(j, i, in[i]));
        j->is_wide &= launch_rows_are_aligned(j->in[i]);
    }
out:
    return err;
}

/* What a dispatch reads; the blocks of addresses are made by the first. */
static enum err bind(struct job *j)
{
    struct sdpa_operand op[SDPA_VJP_OPERANDS];
    const struct arr *m = j->a.mask;
    enum err err = ERR_OK;

    for (int i = 0; i < SDPA_VJP_OPERANDS; i++) {
        const int64_t *s = j->in[i]->strides;
        op[i] = (struct sdpa_operand){ .batch = s[0], .head = s[1], .pos = s[2] };
        TRY(vk_enc_read(j->enc, &op[i].addr, j->in[i]));
    }
    TRY(vk_enc_args(j->enc, &j->args.operands, op, sizeof op, .n_addr = 1,
                    .records = SDPA_VJP_OPERANDS));
    if (m) {
        const int64_t *s = m->strides;
        struct sdpa_mask mask = { .batch = s[0], .head = s[1], .query = s[2], .key = s[3] };
        TRY(vk_enc_read(j->enc, &mask.addr, m));
        TRY(vk_enc_args(j->enc, &j->args.mask, &mask, sizeof mask, .n_addr = 1));
    }
    if (j->a.sinks) {
        j->args.sinks_stride = (int32_t)j->a.sinks->strides[0];
        TRY(vk_enc_read(j->enc, &j->args.sinks, j->a.sinks));
    }
out:
    return err;
}

/* ---- encoding ---- */

static uint32_t items_of(const struct job *j, int64_t own)
{
    return (uint32_t)(j->a.batch * j->a.n_kv * ceil_div(own, 4 * j->shape.ty));
}

static enum err dispatch(struct job *j, struct vk_kernel kernel, uint32_t n_items)
{
    j->args.n_items = n_items;
    return vk_enc_dispatch(j->enc, kernel, &j->args, sizeof j->args, launch_grid(n_items));
}

static enum err run_rows(struct job *j, struct vk_kernel kernel)
{
    enum err err;

    TRY(bind(j));
    TRY(vk_enc_scratch(j->enc, &j->args.stats, j->stats_size));
    TRY(vk_enc_write(j->enc, &j->args.dst[0], j->x->out[0]));
    TRY(dispatch(j, kernel, items_of(j, rows_of(j))));
out:
    return err;
}

static enum err run_keys(struct job *j, struct vk_kernel kernel)
{
    enum err err;

    kernel.pipe = j->keys;
    TRY(bind(j));
    vk_enc_scratch_read(j->enc, j->args.stats, j->stats_size);
    TRY(vk_enc_write(j->enc, &j->args.dst[0], j->x->out[1]));
    TRY(vk_enc_write(j->enc, &j->args.dst[1], j->x->out[2]));
    TRY(dispatch(j, kernel, items_of(j, j->a.n_k)));
out:
    return err;
}

static enum err run_sinks(struct job *j)
{
    uint32_t spec[] = { launch_workgroup(), 1, 1, flags_of(j), (uint32_t)j->a.group };
    struct vk_kernel kernel = { .variant = VARIANT_COUNT };
    enum err err;

    TRY(kern_pipe(&kernel.pipe, KERN_ATTN_VJP_SINKS, j->in[0]->dtype, spec, ARRAY_LEN(spec)));
    TRY(vk_enc_read(j->enc, &j->args.sinks, j->a.sinks));
    vk_enc_scratch_read(j->enc, j->args.stats, j->stats_size);
    TRY(vk_enc_write(j->enc, &j->args.dst[0], j->x->out[3]));
    TRY(dispatch(j, kernel, (uint32_t)j->a.heads));
out:
    return err;
}

static enum err run(struct job *j)
{
    struct vk_kernel kernel;
    enum err err;

    if (!pick_shape(j))
        return err_set(ERR_UNSUPPORTED, "[%s] %d queries and %d keys are too many for this device.",
                       op_name((enum op_id)j->x->node->op), j->a.n_q, j->a.n_k);
    TRY(variant_pick(&kernel, &variants, j,
                     (int64_t[VARIANT_SIZES]){ j->a.n_q, j->a.n_k, j->a.heads, j->a.dim }));
    TRY(run_rows(j, kernel));
    TRY(run_keys(j, kernel));
    if (j->a.sinks)
        TRY(run_sinks(j));
out:
    return err;
}

enum err vk_sdpa_vjp(const struct exec *x)
{
    struct job j = { .x = x };
    enum err err = ERR_OK;

    attn_of(&j.a, x);
    for (int i = 0; i < x->n_out; i++)
        TRY(arr_alloc(x->out[i], x->strm->be));
    TRY(make_all_readable(&j));
    j.args.n_batch = (uint32_t)j.a.batch;
    j.args.n_kv = (uint32_t)j.a.n_kv;
    j.args.n_q = (uint32_t)j.a.n_q;
    j.args.n_k = (uint32_t)j.a.n_k;
    j.args.scale = j.a.p->scale;
    j.stats_size =
        (size_t)j.a.batch * (size_t)j.a.n_kv * (size_t)rows_of(&j) * SDPA_VJP_STATS * sizeof(float);
    TRY(vk_enc_get(&j.enc, x->strm));
    TRY(run(&j));
out:
    if (err && j.enc)
        vk_enc_drop(j.enc);
    for (int i = 0; i < SDPA_VJP_OPERANDS; i++)
        arr_unref(&j.copy[i]);
    return err;
}
