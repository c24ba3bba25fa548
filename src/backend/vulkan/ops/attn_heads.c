/* Attention of one new position together with what gets its heads into their places. */
#include <stdio.h>

#include "backend/vulkan/ops/attn.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/recording.h"
#include "backend/vulkan/rt/stream.h"

enum { QUERIES, KEYS, VALUES, PARTS };

struct heads_job {
    struct attn_job attn;
    const struct vk_rope *rope;
    struct norm_team team;
};

/* ---- whether ---- */

static bool strides_fit(const struct vk_rope_part *part)
{
    const struct vk_head_strides *from = &part->from, *to = &part->to;

    return attn_fits_i32(from->batch) && attn_fits_i32(from->head) && attn_fits_i32(to->batch) &&
           attn_fits_i32(to->head) && attn_fits_i32(to->position);
}

/* Rows of queries, a key and a value, and the sums of teams. */
static uint32_t shared_bytes(const struct heads_job *j)
{
    uint32_t row = j->rope->size * (uint32_t)dt_size((enum dtype)j->attn.in[0]->dtype);

    return j->attn.plan.shared + (j->attn.plan.rows + 2) * row + 4 * j->attn.plan.spec[0];
}

static enum variant_reason judge(struct heads_job *j)
{
    const struct vk_limits *dev = vk_limits_get();

    if (!vk_rope_is_held(j->rope, &j->team))
        return VARIANT_LAYOUT;
    for (int i = 0; i < PARTS; i++)
        if (!strides_fit(&j->rope->part[i]))
            return VARIANT_LAYOUT;
    attn_plan_rows(&j->attn.plan, &j->attn);
    if (1u << j->team.log2_team > j->attn.plan.spec[0] ||
        (uint64_t)j->attn.plan.items * j->attn.plan.splits > dev->max_groups[0])
        return VARIANT_SIZE;
    return shared_bytes(j) <= dev->shared_memory ? VARIANT_FITS : VARIANT_DEVICE;
}

static enum group_reason reason_of(enum variant_reason why)
{
    return why == VARIANT_FITS     ? GROUP_OFF /* it fits, but was not taken */
           : why == VARIANT_LAYOUT ? GROUP_LAYOUT
                                   : GROUP_SIZE;
}

/* ---- encoding ---- */

static void describe(char *text, size_t size, const void *data)
{
    const struct heads_job *j = data;
    const struct attn *a = &j->attn.a;

    snprintf(text, size, "%s, heads %d of %d x %d, %d keys",
             dt_name((enum dtype)j->attn.in[0]->dtype), a->heads, a->n_kv, a->dim, a->n_k);
}

/* Constants that attn_heads.glsl has beside those of attn_rows.comp. One query sees all keys. */
static void extend_spec(struct heads_job *j)
{
    const struct vk_rope_part *part = j->rope->part;
    struct attn_plan *p = &j->attn.plan;

    p->kern = KERN_ATTN_HEADS;
    p->spec[3] &= ~SDPA_CAUSAL;
    p->spec[p->n_spec++] = vk_rope_flags(j->rope) | (part[QUERIES].is_normed ? HEADS_NORM_Q : 0) |
                           (part[KEYS].is_normed ? HEADS_NORM_K : 0);
    p->spec[p->n_spec++] = p->spec[0];
    p->spec[p->n_spec++] = j->team.lanes;
    p->spec[p->n_spec++] = j->team.log2_team;
    p->spec[p->n_spec++] = (uint32_t)j->attn.a.n_kv;
}

static enum err bind_rows(struct vk_enc *e, struct attn_heads_args *a, const struct vk_rope *r)
{
    const struct vk_rope_part *q = &r->part[QUERIES], *k = &r->part[KEYS], *v = &r->part[VALUES];
    enum err err;

    TRY(vk_enc_read(e, &a->q_row, q->src));
    TRY(vk_enc_read(e, &a->k_row, k->src));
    TRY(vk_enc_read(e, &a->v_row, v->src));
    if (q->weight)
        TRY(vk_enc_read(e, &a->q_weight, q->weight));
    if (k->weight)
        TRY(vk_enc_read(e, &a->k_weight, k->weight));
    /* Also read, but not where it is written. */
    TRY(vk_enc_write(e, &a->k, k->dst));
    TRY(vk_enc_write(e, &a->v, v->dst));
    a->q_row_head = (int32_t)q->from.head;
    a->k_row_head = (int32_t)k->from.head;
    a->v_row_head = (int32_t)v->from.head;
    a->k_head = (int32_t)k->to.head, a->k_pos = (int32_t)k->to.position;
    a->v_head = (int32_t)v->to.head, a->v_pos = (int32_t)v->to.position;
    a->eps = q->is_normed ? q->eps : k->eps;
out:
    return err;
}

static enum err bind_more(struct vk_enc *e, struct attn_heads_args *a, const struct heads_job *j)
{
    const struct vk_rope *r = j->rope;
    const struct arr *sinks = j->attn.a.sinks;
    struct attn_heads_more m = { .q_batch = (int32_t)r->part[QUERIES].from.batch,
                                 .k_batch = (int32_t)r->part[KEYS].from.batch,
                                 .v_batch = (int32_t)r->part[VALUES].from.batch,
                                 .keys_batch = (int32_t)r->part[KEYS].to.batch,
                                 .values_batch = (int32_t)r->part[VALUES].to.batch,
                                 .first = r->p->offset,
                                 .position_scale = r->p->scale };
    struct vk_rope_table table;
    enum err err;

    TRY(vk_rope_table(e, &table, r));
    a->table = table.addr;
    m.table_stride = table.stride;
    if (r->offset) {
        m.offset_stride = r->offset->size > 1 ? r->offset->strides[0] : 0;
        TRY(vk_enc_read(e, &m.offset, r->offset));
    }
    if (sinks) {
        m.sinks_stride = (int32_t)sinks->strides[0];
        TRY(vk_enc_read(e, &m.sinks, sinks));
    }
    if (j->attn.plan.splits > 1)
        TRY(attn_parts(e, &m.parts, &m.counters, &j->attn.plan));
    err = vk_enc_args(e, &a->more, &m, sizeof m, .n_addr = 4);
out:
    return err;
}

static enum err encode(struct vk_enc *e, const struct heads_job *j, const struct vk_pipe *pipe)
{
    const struct attn *t = &j->attn.a;
    struct attn_heads_args a = { .n_k = (uint32_t)t->n_k,
                                 .size = j->rope->size,
                                 .splits = j->attn.plan.splits,
                                 .scale = t->p->scale };
    const struct exec *x = j->attn.x;
    enum err err;

    TRY(attn_alloc(x->out[0], x->strm->be));
    TRY(bind_rows(e, &a, j->rope));
    TRY(bind_more(e, &a, j));
    TRY(vk_enc_write(e, &a.dst, x->out[0]));
    err = vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_SDPA_DECODE_HEADS }, &a, sizeof a,
                          launch_grid((uint64_t)j->attn.plan.items * j->attn.plan.splits));
out:
    if (err)
        vk_enc_drop(e);
    return err;
}

enum err vk_attn_heads(struct vk_enc *e, const struct vk_attn_heads *h, enum group_reason *why)
{
    struct heads_job j = { .attn = { .x = h->sdpa, .is_wide = true }, .rope = h->rope };
    const struct attn *a = &j.attn.a;
    const struct vk_pipe *pipe;
    enum err err;

    attn_of(&j.attn.a, h->sdpa);
    j.attn.in[0] = a->q;
    struct variant_problem problem = {
        describe, &j, "queries x keys x heads x dim", { a->n_q, a->n_k, a->heads, a->dim }
    };
    enum variant_reason fits = judge(&j);
    if (!variant_takes(VARIANT_SDPA_DECODE_HEADS, fits, &problem)) {
        *why = reason_of(fits);
        return ERR_OK;
    }
    extend_spec(&j);
    err = kern_pipe(&pipe, j.attn.plan.kern, a->q->dtype, j.attn.plan.spec, j.attn.plan.n_spec);
    if (!err)
        return encode(e, &j, pipe);
    if (!variant_gives_way(VARIANT_SDPA_DECODE_HEADS, err))
        return err;
    *why = GROUP_OFF;
    return ERR_OK;
}

/* ---- another position ---- */

/* How so many keys are gone over. */
static struct attn_plan plan_of(struct heads_job *j, uint32_t n_k)
{
    j->attn.a.n_k = (int32_t)n_k;
    attn_plan_rows(&j->attn.plan, &j->attn);
    return j->attn.plan;
}

static bool are_plans_equal(const struct attn_plan *a, const struct attn_plan *b)
{
    return a->items == b->items && a->splits == b->splits && a->rows == b->rows &&
           a->n_spec == b->n_spec && memcmp(a->spec, b->spec, (size_t)a->n_spec * 4) == 0;
}

/* The number of a push constant of 8 bytes. */
#define WORD(field) ((uint32_t)(offsetof(struct attn_heads_args, field) / sizeof(uint64_t)))

static bool set_table(struct vk_enc *e, struct be_recording *r, const struct vk_recorded *d,
                      const struct vk_rope *rope)
{
    struct vk_rope_table table;

    if (!vk_rope_has_turns(rope))
        return true;
    e->recording = r;
    enum err err = vk_rope_table(e, &table, rope);
    e->recording = NULL;
    if (!err)
        vk_recorded_set_block(r, d, WORD(table), table.addr);
    return !err;
}

bool vk_attn_heads_move(struct vk_enc *e, struct be_recording *r, size_t step,
                        const struct vk_attn_heads *h)
{
    struct heads_job j = { .attn = { .x = h->sdpa, .is_wide = true }, .rope = h->rope };
    struct vk_recorded *d = vk_recorded_only(r, step);

    if (!d || d->d.kernel.variant != VARIANT_SDPA_DECODE_HEADS)
        return false;
    attn_of(&j.attn.a, h->sdpa);
    j.attn.in[0] = j.attn.a.q;
    struct attn_heads_args *a = (struct attn_heads_args *)d->d.push;
    uint32_t n_k = (uint32_t)j.attn.a.n_k;
    struct attn_plan before = plan_of(&j, a->n_k), now = plan_of(&j, n_k);
    if (!are_plans_equal(&before, &now) || !set_table(e, r, d, h->rope))
        return false;
    struct attn_heads_more *more = vk_recorded_block(r, d, WORD(more));
    more->first = h->rope->p->offset;
    a->n_k = n_k;
    return true;
}
