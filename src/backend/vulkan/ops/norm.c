#include "backend/vulkan/ops/norm.h"

#include <stdio.h>

#include "backend/common/families.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"

/* Rows of up to so many blocks take two blocks per lane, longer ones four: heads are short and few,
 * their loads should spread; elsewhere loads in flight count more than lanes. Two is also what
 * makes the halves of a head meet in a lane. */
#define SHORT_BLOCKS 64
/* A loop of a software device ends after 65,535 trips. */
#define SOFTWARE_MAX_TRIPS 16384

/* ---- teams ---- */

static bool fit_row(struct norm_team *t, uint32_t n_blocks, uint32_t blocks)
{
    t->blocks = blocks;
    t->lanes = (uint32_t)ceil_div(n_blocks, blocks);
    t->log2_team = launch_log2(t->lanes);
    return 1u << t->log2_team <= launch_max_workgroup();
}

static uint32_t blocks_of(uint32_t row_len, enum dtype type)
{
    return (uint32_t)ceil_div((int64_t)row_len * (int64_t)dt_size(type), 16);
}

void norm_walk_row(struct norm_team *t, uint32_t row_len, enum dtype type)
{
    uint32_t n_blocks = blocks_of(row_len, type), most = launch_max_workgroup();

    if (n_blocks / (NORM_BLOCKS * most) > SOFTWARE_MAX_TRIPS)
        most = vk_limits_get()->max_workgroup_size;
    uint32_t log2 = launch_log2(most + 1) - 1; /* of the largest power of two within */
    *t = (struct norm_team){
        .blocks = NORM_BLOCKS, .lanes = 1u << log2, .log2_team = log2, .walks = true
    };
}

bool norm_hold_row(struct norm_team *t, uint32_t row_len, enum dtype type)
{
    uint32_t n = blocks_of(row_len, type);

    t->walks = false;
    return (n <= SHORT_BLOCKS && fit_row(t, n, 2)) || fit_row(t, n, NORM_BLOCKS);
}

void norm_team_of(struct norm_team *t, uint32_t row_len, enum dtype type)
{
    if (!gate_on(GATE_VK_NORM_ROW) || !norm_hold_row(t, row_len, type))
        norm_walk_row(t, row_len, type);
}

/* ---- encoding ---- */

struct choice {
    const struct vk_norm *n;
    struct norm_team team;
    uint32_t row_len, workgroup;
};

static void describe(char *text, size_t size, const void *data)
{
    const struct vk_norm *n = ((const struct choice *)data)->n;

    snprintf(text, size, "%s, rows of %d", dt_name((enum dtype)n->x->dtype),
             n->x->shape[n->x->ndim - 1]);
}

static uint32_t flags_of(const struct vk_norm *n)
{
    bool wide = launch_rows_are_aligned(n->x) && launch_rows_are_aligned(n->dst);

    if (n->addend)
        wide &= launch_rows_are_aligned(n->addend) && launch_rows_are_aligned(n->sum);
    if (n->weight)
        wide &= launch_rows_are_aligned(n->weight);
    if (n->bias)
        wide &= launch_rows_are_aligned(n->bias);
    return (n->is_centred ? NORM_CENTRED : 0) | (n->weight ? NORM_WEIGHT : 0) |
           (n->bias ? NORM_BIAS : 0) | (n->addend ? NORM_ADDEND : 0) | (wide ? NORM_WIDE : 0);
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    struct choice *c = job;
    enum dtype type = (enum dtype)c->n->x->dtype;

    if (id == VARIANT_NORM_ROW)
        return norm_hold_row(&c->team, c->row_len, type) ? VARIANT_FITS : VARIANT_SIZE;
    norm_walk_row(&c->team, c->row_len, type);
    return VARIANT_FITS;
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    struct choice *c = job;
    uint32_t flags = flags_of(c->n) | (id == VARIANT_NORM_WALK ? NORM_WALK : 0);

    c->workgroup = MAX(launch_workgroup(), 1u << c->team.log2_team);
    uint32_t spec[] = { c->workgroup, 1, 1, flags, c->workgroup, c->team.blocks };
    return kern_pipe(pipe, KERN_NORM, c->n->x->dtype, spec, ARRAY_LEN(spec));
}

static const struct variant_table variants = { VARIANT_NORM_ROW, VARIANT_NORM_WALK, judge, build,
                                               describe,         "rows x length" };

static enum err bind(struct vk_enc *e, struct norm_args *a, const struct vk_norm *n)
{
    enum err err;

    TRY(launch_rows(e, &a->x_walk, &a->x_stride, n->x));
    TRY(vk_enc_read(e, &a->x, n->x));
    TRY(vk_enc_write(e, &a->dst, n->dst));
    if (n->addend) {
        TRY(launch_rows(e, &a->addend_walk, &a->addend_stride, n->addend));
        TRY(vk_enc_read(e, &a->addend, n->addend));
        TRY(vk_enc_write(e, &a->sum, n->sum));
    }
    if (n->weight) {
        a->weight_stride = (int32_t)n->weight->strides[0];
        TRY(vk_enc_read(e, &a->weight, n->weight));
    }
    if (n->bias) {
        a->bias_stride = (int32_t)n->bias->strides[0];
        TRY(vk_enc_read(e, &a->bias, n->bias));
    }
out:
    return err;
}

enum err vk_norm_encode(struct vk_enc *e, const struct vk_norm *n)
{
    struct choice c = { .n = n, .row_len = (uint32_t)n->x->shape[n->x->ndim - 1] };
    struct norm_args a = { .row_len = c.row_len, .eps = n->eps, .n_rows = n->x->size / c.row_len };
    struct vk_kernel kernel;
    enum err err;

    TRY(variant_pick(&kernel, &variants, &c,
                     (int64_t[VARIANT_SIZES]){ (int64_t)a.n_rows, c.row_len }));
    a.lanes = c.team.lanes;
    a.log2_team = c.team.log2_team;
    TRY(bind(e, &a, n));
    TRY(vk_enc_dispatch(
        e, kernel, &a, sizeof a,
        launch_grid((uint64_t)ceil_div((int64_t)a.n_rows, c.workgroup >> a.log2_team))));
out:
    return err;
}

/* ---- the op ---- */

/* Gives dst storage and says what to read: the input where its rows are consecutive, else a copy of
 * it that becomes the output. */
static enum err prepare(const struct exec *x, struct arr **in)
{
    struct arr *dst = x->out[0];
    const struct be *be = x->strm->be;
    int last = x->in[0]->ndim - 1;
    enum err err = ERR_OK;

    *in = x->in[0];
    if ((*in)->strides[last] != 1 && (*in)->shape[last] != 1) {
        TRY(be_copy_dense(x->strm, dst, *in));
        *in = dst;
    } else if ((*in)->flags & LAYOUT_ROW && arr_can_donate_to(*in, dst, x->strm)) {
        arr_share_all(dst, *in);
    } else {
        TRY(arr_alloc(dst, be));
    }
out:
    return err;
}

enum err vk_norm(const struct exec *x)
{
    const struct norm_params *p = x->node->params;
    struct vk_norm n = { .is_centred = x->node->op == OP_LAYER_NORM,
                         .eps = p->eps,
                         .weight = p->has_weight ? x->in[1] : NULL,
                         .bias = p->has_bias ? x->in[1 + p->has_weight] : NULL,
                         .dst = x->out[0] };
    struct arr *in;
    struct vk_enc *e;
    enum err err;

    if (!x->out[0]->size)
        return arr_alloc(x->out[0], x->strm->be);
    TRY(prepare(x, &in));
    n.x = in;
    TRY(vk_enc_get(&e, x->strm));
    TRY(vk_norm_encode(e, &n));
out:
    return err;
}
