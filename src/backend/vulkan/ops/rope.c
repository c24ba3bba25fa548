#include "backend/vulkan/ops/rope.h"

#include <math.h>
#include <stdio.h>

#include "backend/common/families.h"
#include "backend/common/rope.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/stream.h"

/* Few rows are spread over workgroups of this size. */
#define FEW_THREADS 64
/* Up to so many pairs of all positions have their cosines and sines computed here: a token's
 * rotation is the same in all layers, and computing it takes a kernel longer than everything else.
 */
#define MAX_TURNS 1024

/* ---- tables ---- */

/* The last table of turns of a stream. */
struct vk_turns {
    uint32_t n, positions;
    float base, scale;
    int32_t offset;
    float v[2 * MAX_TURNS];
    float freq[MAX_TURNS]; /* the first n, of base */
};

static void compute_turns(struct vk_turns *t, const struct rope_params *p, uint32_t positions)
{
    uint32_t n = (uint32_t)p->dims / 2;

    if (t->n != n || t->base != p->base)
        rope_inv_freqs(t->freq, p->base, n);
    for (uint32_t i = 0; i < positions * n; i++) {
        float position = (float)((int64_t)p->offset + i / n) * p->scale;
        float angle = position * t->freq[i % n];
        t->v[2 * i] = cosf(angle);
        t->v[2 * i + 1] = sinf(angle);
    }
    t->n = n;
    t->positions = positions;
    t->base = p->base;
    t->scale = p->scale;
    t->offset = p->offset;
}

static bool has_turns(const struct vk_turns *t, const struct rope_params *p, uint32_t positions)
{
    return t->n == (uint32_t)p->dims / 2 && t->positions == positions && t->base == p->base &&
           t->scale == p->scale && t->offset == p->offset;
}

static enum err turns_table(struct vk_enc *e, uint64_t *addr, const struct vk_rope *r)
{
    struct vk_turns *t = e->turns;

    if (!t && !(t = e->turns = mem_alloc(sizeof *t)))
        return ERR_NO_MEMORY;
    if (!has_turns(t, r->p, r->positions))
        compute_turns(t, r->p, r->positions);
    return vk_enc_args(e, addr, t->v, (size_t)r->positions * t->n * 2 * sizeof t->v[0]);
}

bool vk_rope_has_turns(const struct vk_rope *r)
{
    return !r->offset && !r->freqs &&
           (uint64_t)r->positions * (uint32_t)r->p->dims / 2 <= MAX_TURNS;
}

enum err vk_rope_table(struct vk_enc *e, struct vk_rope_table *out, const struct vk_rope *r)
{
    size_t n = (size_t)r->p->dims / 2;
    float *freq = NULL;
    enum err err = ERR_OK;

    out->stride = 1;
    if (r->freqs) {
        out->stride = r->freqs->strides[0];
        return vk_enc_read(e, &out->addr, r->freqs);
    }
    if (vk_rope_has_turns(r))
        return turns_table(e, &out->addr, r);
    if (!(freq = mem_alloc(n * sizeof *freq)))
        return ERR_NO_MEMORY;
    rope_inv_freqs(freq, r->p->base, n);
    err = vk_enc_args(e, &out->addr, freq, n * sizeof *freq);
    mem_free(freq);
    return err;
}

/* ---- parts ---- */

static bool strides_are_aligned(const struct vk_head_strides *s, int64_t offset, int64_t item)
{
    return s->element == 1 && s->batch * item % 16 == 0 && s->head * item % 16 == 0 &&
           s->position * item % 16 == 0 && offset * item % 16 == 0;
}

static bool part_is_aligned(const struct vk_rope_part *q, int64_t item)
{
    bool aligned = strides_are_aligned(&q->from, q->src_offset, item) && q->src->offset % 16 == 0;

    if (q->dst)
        aligned &= strides_are_aligned(&q->to, q->dst_offset, item) && q->dst->offset % 16 == 0;
    for (int i = 0; q->head_nest && i < q->head_nest->ndim; i++)
        aligned &= q->head_nest->stride[0][i] * item % 16 == 0;
    if (q->weight)
        aligned &= launch_rows_are_aligned(q->weight);
    return aligned;
}

static enum variant_reason judge_wide(const struct vk_rope *r, int64_t item)
{
    int64_t halves = r->p->traditional ? 1 : 2;

    if (r->size * item % 16 != 0 || r->p->dims / halves * item % 16 != 0)
        return VARIANT_SIZE;
    for (int i = 0; i < r->n_parts; i++)
        if (!part_is_aligned(&r->part[i], item))
            return VARIANT_LAYOUT;
    return VARIANT_FITS;
}

static enum err set_part(struct vk_enc *e, struct rope_part *to, const struct vk_rope_part *q)
{
    uint64_t item = dt_size((enum dtype)q->src->dtype);
    struct walk_args walk;
    enum err err = ERR_OK;

    *to = (struct rope_part){ .src_batch = q->from.batch,
                              .src_head = q->from.head,
                              .src_position = q->from.position,
                              .dst_batch = q->to.batch,
                              .dst_head = q->to.head,
                              .dst_position = q->to.position,
                              .src_stride = (int32_t)q->from.element,
                              .dst_stride = (int32_t)q->to.element,
                              .heads = q->heads,
                              .eps = q->eps };
    to->flags = (q->is_normed ? ROPE_PART_NORM : 0) | (q->is_rotated ? ROPE_PART_TURN : 0) |
                (q->weight ? ROPE_PART_WEIGHT : 0);
    if (q->head_nest && q->head_nest->ndim > 1) {
        launch_walk(&walk, q->head_nest->dim, q->head_nest->stride[0], q->head_nest->ndim);
        TRY(vk_enc_args(e, &to->head_walk, &walk, sizeof walk));
    } else if (q->head_nest) {
        to->src_head = q->head_nest->stride[0][0];
    }
    if (q->weight) {
        to->weight_stride = (int32_t)q->weight->strides[0];
        TRY(vk_enc_read(e, &to->weight, q->weight));
    }
    TRY(vk_enc_read(e, &to->src, q->src));
    TRY(vk_enc_write(e, &to->dst, q->dst));
    to->src += (uint64_t)q->src_offset * item;
    to->dst += (uint64_t)q->dst_offset * item;
out:
    return err;
}

static enum err set_parts(struct vk_enc *e, struct rope_args *a, const struct vk_rope *r)
{
    struct rope_part parts[ROPE_PARTS] = { { 0 } };
    uint64_t rows = 0;
    enum err err = ERR_OK;

    for (int i = 0; i < r->n_parts; i++) {
        TRY(set_part(e, &parts[i], &r->part[i]));
        a->first_row[i] = (uint32_t)rows;
        rows += (uint64_t)r->batch * r->positions * r->part[i].heads;
    }
    if (rows > UINT32_MAX)
        TRY(err_set(ERR_UNSUPPORTED, "[rope] %llu rows are more than Vulkan kernels take",
                    (unsigned long long)rows));
    a->n_rows = (uint32_t)rows;
    for (int i = r->n_parts; i < ROPE_PARTS; i++)
        a->first_row[i] = UINT32_MAX;
    TRY(vk_enc_args(e, &a->parts, parts, sizeof parts, .n_addr = 4, .records = ROPE_PARTS));
out:
    return err;
}

/* ---- encoding ---- */

struct choice {
    const struct vk_rope *r;
    struct norm_team team;
    uint32_t workgroup;
};

static enum dtype type_of(const struct vk_rope *r)
{
    return (enum dtype)r->part[0].src->dtype;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct vk_rope *r = ((const struct choice *)data)->r;

    snprintf(text, size, "%s, %d tensors, rows of %u, %d turning", dt_name(type_of(r)), r->n_parts,
             r->size, r->p->dims);
}

uint32_t vk_rope_flags(const struct vk_rope *r)
{
    bool norms = false;

    for (int i = 0; i < r->n_parts; i++)
        norms |= r->part[i].is_normed;
    return (r->p->traditional ? ROPE_TRADITIONAL : 0) | (r->p->forward ? 0 : ROPE_INVERSE) |
           (r->freqs ? ROPE_FREQS : 0) | (vk_rope_has_turns(r) ? ROPE_TURNS : 0) |
           (norms ? ROPE_NORMS : 0);
}

/* A lane holds a block of each half of the row. */
static bool halves_meet(const struct vk_rope *r, const struct norm_team *t, enum dtype type)
{
    uint32_t half = t->lanes * 16 / (uint32_t)dt_size(type);

    return !r->p->traditional && !t->walks && t->blocks == 2 && r->size == 2 * half &&
           (uint32_t)r->p->dims == r->size;
}

bool vk_rope_is_held(const struct vk_rope *r, struct norm_team *t)
{
    enum dtype type = type_of(r);

    norm_team_of(t, r->size, type);
    return judge_wide(r, (int64_t)dt_size(type)) == VARIANT_FITS && halves_meet(r, t, type);
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    const struct vk_rope *r = ((const struct choice *)job)->r;

    return id == VARIANT_ROPE_WIDE ? judge_wide(r, (int64_t)dt_size(type_of(r))) : VARIANT_FITS;
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    struct choice *c = job;
    enum dtype type = type_of(c->r);
    uint32_t flags = vk_rope_flags(c->r);

    if (id == VARIANT_ROPE_WIDE)
        flags |= ROPE_WIDE | (halves_meet(c->r, &c->team, type) ? ROPE_HELD : 0);
    uint32_t spec[] = { c->workgroup, 1, 1, flags, c->workgroup, c->team.blocks };
    return kern_pipe(pipe, KERN_ROPE, type, spec, ARRAY_LEN(spec));
}

static const struct variant_table variants = {
    VARIANT_ROPE_WIDE, VARIANT_ROPE_ELEMENT, judge, build, describe, "tensors x positions x size"
};

static uint32_t workgroup_of(const struct norm_team *t, uint64_t rows)
{
    uint32_t size = launch_workgroup();

    if (rows << t->log2_team <= (uint64_t)vk_limits_get()->compute_units * FEW_THREADS)
        size = MIN(size, MAX(FEW_THREADS, vk_limits_get()->max_subgroup));
    return MAX(size, 1u << t->log2_team);
}

enum err vk_rope_encode(struct vk_enc *e, const struct vk_rope *r)
{
    struct rope_args a = { .first = r->p->offset,
                           .scale = r->p->scale,
                           .positions = r->positions,
                           .size = r->size,
                           .pairs = (uint32_t)r->p->dims / 2 };
    struct choice c = { .r = r };
    struct vk_rope_table table;
    struct vk_kernel kernel;
    enum err err;

    norm_team_of(&c.team, r->size, type_of(r));
    a.lanes = c.team.lanes;
    a.log2_team = c.team.log2_team;
    TRY(set_parts(e, &a, r));
    TRY(vk_rope_table(e, &table, r));
    a.table = table.addr;
    a.table_stride = table.stride;
    if (r->offset) {
        a.offset_stride = r->offset->size > 1 ? r->offset->strides[0] : 0;
        TRY(vk_enc_read(e, &a.offset, r->offset));
    }
    c.workgroup = workgroup_of(&c.team, a.n_rows);
    TRY(variant_pick(&kernel, &variants, &c,
                     (int64_t[VARIANT_SIZES]){ r->n_parts, r->positions, r->size }));
    TRY(vk_enc_dispatch(
        e, kernel, &a, sizeof a,
        launch_grid((uint64_t)ceil_div((int64_t)a.n_rows, c.workgroup >> a.log2_team))));
out:
    if (err)
        vk_enc_drop(e);
    return err;
}

/* ---- the op ---- */

static enum err prepare(const struct exec *x, struct arr **in)
{
    struct arr *dst = x->out[0];
    const struct be *be = x->strm->be;
    int64_t stride = x->in[0]->strides[x->in[0]->ndim - 1];
    enum err err = ERR_OK;

    *in = x->in[0];
    if (stride > INT32_MAX || stride < -INT32_MAX) {
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

enum err vk_rope(const struct exec *x)
{
    const struct rope_params *p = x->node->params;
    struct rope_rows rows;
    struct arr *in;
    struct vk_enc *e;
    enum err err;

    if (!x->out[0]->size)
        return arr_alloc(x->out[0], x->strm->be);
    TRY(prepare(x, &in));
    rope_rows_of(&rows, in);
    int64_t length = rows.length, size = rows.size, heads = (int64_t)rows.heads;
    struct vk_rope r = { .p = p,
                         .offset = p->has_offset ? x->in[1] : NULL,
                         .freqs = p->has_freqs ? x->in[1 + p->has_offset] : NULL,
                         .batch = (uint32_t)rows.batch,
                         .positions = (uint32_t)length,
                         .size = (uint32_t)size,
                         .n_parts = 1 };
    r.part[0] = (struct vk_rope_part){
        .src = in,
        .dst = x->out[0],
        .from = { rows.batch_stride, 0, rows.position_stride, rows.stride },
        .to = { heads * length * size, length * size, size, 1 },
        .head_nest = &rows.head,
        .heads = (uint32_t)heads,
        .is_rotated = true,
    };
    TRY(vk_enc_get(&e, x->strm));
    TRY(vk_rope_encode(e, &r));
out:
    return err;
}
