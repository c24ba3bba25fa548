/* Gradients of norms: one pass over x and the cotangent, then the sums of what its teams left of
 * weight's and bias'. */
#include <stdio.h>

#include "backend/common/families.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/norm.h"
#include "backend/vulkan/ops/variant.h"

/* A team that leaves parts of vectors does so many rows at least, so that the parts are less than
 * what it reads. */
#define MIN_ROWS 4
/* All loops of an invocation together end after 65,535 trips on a software device, and a walk goes
 * over a row three times. */
#define SOFTWARE_MAX_PIECES 8192
#define SUM_COLUMNS 32

struct job {
    const struct exec *x;
    const struct norm_vjp_params *p;
    const struct arr *in[2]; /* x and cotangent as the kernel reads them */
    struct arr *copy[2];     /* owned, where it could not */
    const struct arr *weight;
    uint32_t row_len, n_vectors;
    uint64_t n_rows;
    struct norm_team team;
    uint32_t workgroup;
    struct vk_enc *enc;
};

/* ---- how it runs ---- */

static void describe(char *text, size_t size, const void *data)
{
    const struct job *j = data;

    snprintf(text, size, "%s, rows of %u", dt_name((enum dtype)j->in[0]->dtype), j->row_len);
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    struct job *j = job;
    enum dtype type = (enum dtype)j->in[0]->dtype;

    if (id == VARIANT_NORM_VJP_ROW)
        return norm_hold_row(&j->team, j->row_len, type) ? VARIANT_FITS : VARIANT_SIZE;
    norm_walk_row(&j->team, j->row_len, type);
    return VARIANT_FITS;
}

static uint32_t flags_of(const struct job *j)
{
    const struct norm_vjp_params *p = j->p;
    bool wide = launch_rows_are_aligned(j->in[0]) && launch_rows_are_aligned(j->in[1]) &&
                launch_rows_are_aligned(j->x->out[0]) &&
                (!j->weight || launch_rows_are_aligned(j->weight));

    return (j->x->node->op == OP_LAYER_NORM_VJP ? NORM_CENTRED : 0) |
           (p->of.has_weight ? NORM_WEIGHT : 0) | (p->of.has_bias ? NORM_BIAS : 0) |
           (p->for_vectors ? NORM_VECTORS : 0) | (wide ? NORM_WIDE : 0) |
           (j->team.walks ? NORM_WALK : 0);
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    struct job *j = job;

    (void)id;
    j->workgroup = MAX(launch_workgroup(), 1u << j->team.log2_team);
    uint32_t spec[] = { j->workgroup, 1, 1, flags_of(j), j->workgroup, j->team.blocks };
    return kern_pipe(pipe, KERN_NORM_VJP, j->in[0]->dtype, spec, ARRAY_LEN(spec));
}

static const struct variant_table variants = {
    VARIANT_NORM_VJP_ROW, VARIANT_NORM_VJP_WALK, judge, build, describe, "rows x length"
};

/* Rows of a team. */
static uint32_t rows_of(const struct job *j)
{
    uint64_t teams = launch_busy_groups() * (j->workgroup >> j->team.log2_team);
    uint64_t rows = (uint64_t)ceil_div((int64_t)j->n_rows, (int64_t)teams);
    int64_t per16 = 16 / (int64_t)dt_size((enum dtype)j->in[0]->dtype);
    int64_t pieces = ceil_div(j->row_len, per16 * j->team.blocks * j->team.lanes);

    if (!j->n_vectors)
        return 1;
    rows = MAX(rows, MIN_ROWS);
    if (vk_limits_get()->is_software)
        rows = MIN(rows, (uint64_t)MAX(SOFTWARE_MAX_PIECES / pieces, 1));
    return (uint32_t)MIN(rows, (uint64_t)UINT32_MAX);
}

/* ---- encoding ---- */

/* Each vector's sums, in the order of the outputs behind x's. */
static enum err add_parts(struct job *j, uint64_t parts, uint32_t n_parts)
{
    struct norm_vjp_sum_args a = { .n_parts = n_parts,
                                   .row_len = j->row_len,
                                   .columns = j->row_len * j->n_vectors };
    uint32_t columns = MIN(SUM_COLUMNS, launch_workgroup());
    uint32_t spec[] = { launch_workgroup(), 1, 1, columns, launch_workgroup() / columns };
    struct vk_kernel kernel = { .variant = VARIANT_COUNT };
    enum err err;

    vk_enc_scratch_read(j->enc, parts, (size_t)n_parts * a.columns * sizeof(float));
    a.parts = parts;
    for (uint32_t i = 0; i < j->n_vectors; i++)
        TRY(vk_enc_write(j->enc, &a.dst[i], j->x->out[1 + i]));
    TRY(kern_pipe(&kernel.pipe, KERN_NORM_VJP_SUM, j->in[0]->dtype, spec, ARRAY_LEN(spec)));
    TRY(vk_enc_dispatch(j->enc, kernel, &a, sizeof a,
                        launch_grid((uint64_t)ceil_div(a.columns, columns))));
out:
    return err;
}

static enum err run(struct job *j)
{
    struct norm_vjp_args a = { .row_len = j->row_len, .eps = j->p->of.eps, .n_rows = j->n_rows };
    struct vk_kernel kernel;
    enum err err;

    TRY(variant_pick(&kernel, &variants, j,
                     (int64_t[VARIANT_SIZES]){ (int64_t)j->n_rows, j->row_len }));
    a.lanes = j->team.lanes;
    a.log2_team = j->team.log2_team;
    a.rows = rows_of(j);
    uint32_t n_teams = (uint32_t)ceil_div((int64_t)j->n_rows, a.rows);
    TRY(launch_rows(j->enc, &a.x_walk, &a.x_stride, j->in[0]));
    TRY(launch_rows(j->enc, &a.t_walk, &a.t_stride, j->in[1]));
    TRY(vk_enc_read(j->enc, &a.x, j->in[0]));
    TRY(vk_enc_read(j->enc, &a.cotan, j->in[1]));
    TRY(vk_enc_write(j->enc, &a.dst, j->x->out[0]));
    if (j->weight) {
        a.weight_stride = (int32_t)j->weight->strides[0];
        TRY(vk_enc_read(j->enc, &a.weight, j->weight));
    }
    if (j->n_vectors)
        TRY(vk_enc_scratch(j->enc, &a.parts,
                           (size_t)n_teams * j->n_vectors * j->row_len * sizeof(float)));
    TRY(vk_enc_dispatch(j->enc, kernel, &a, sizeof a,
                        launch_grid((uint64_t)ceil_div(n_teams, j->workgroup >> a.log2_team))));
    if (j->n_vectors)
        TRY(add_parts(j, a.parts, n_teams));
out:
    return err;
}

/* ---- the op ---- */

static enum err make_readable(struct job *j, int i, struct arr *a)
{
    struct strm *s = j->x->strm;
    struct shp shape;
    int last = a->ndim - 1;
    enum err err;

    j->in[i] = a;
    if (a->strides[last] == 1 || a->shape[last] == 1)
        return ERR_OK;
    arr_shape(&shape, a);
    TRY(arr_new_empty(&j->copy[i], &shape, (enum dtype)a->dtype));
    TRY(be_copy_dense(s, j->copy[i], a));
    TRY(s->be->hold(s, &j->copy[i]->buf, 1));
    j->in[i] = j->copy[i];
out:
    return err;
}

/* Storage of the results: x's gradient may take the place of what it is made of. */
static enum err alloc(const struct job *j)
{
    const struct exec *x = j->x;
    struct arr *dst = x->out[0], *from[2] = { x->in[x->n_in - 1], x->in[0] };
    int i = 0;
    enum err err = ERR_OK;

    while (i < 2 && !(from[i]->flags & LAYOUT_ROW && arr_can_donate_to(from[i], dst, x->strm)))
        i++;
    if (i < 2)
        arr_share_all(dst, from[i]);
    else
        TRY(arr_alloc(dst, x->strm->be));
    for (int k = 1; k < x->n_out; k++)
        TRY(arr_alloc(x->out[k], x->strm->be));
out:
    return err;
}

enum err vk_norm_vjp(const struct exec *x)
{
    const struct norm_vjp_params *p = x->node->params;
    struct arr *in = x->in[0];
    struct job j = { .x = x,
                     .p = p,
                     .weight = p->of.has_weight ? x->in[1] : NULL,
                     .n_vectors = (uint32_t)x->n_out - 1 };
    enum err err;

    j.row_len = (uint32_t)in->shape[in->ndim - 1];
    j.n_rows = in->size / j.row_len;
    TRY(make_readable(&j, 0, in));
    TRY(make_readable(&j, 1, x->in[x->n_in - 1]));
    TRY(alloc(&j));
    TRY(vk_enc_get(&j.enc, x->strm));
    TRY(run(&j));
out:
    if (err && j.enc)
        vk_enc_drop(j.enc);
    arr_unref(&j.copy[0]);
    arr_unref(&j.copy[1]);
    return err;
}
