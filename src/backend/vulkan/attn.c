/* Attention: operands that the kernels can read, the choice among them, the dispatch. */
#include "backend/common/attn.h"

#include <stdio.h>

#include "backend/common/families.h"
#include "backend/vulkan/families.h"
#include "backend/vulkan/kern.h"
#include "backend/vulkan/launch.h"
#include "backend/vulkan/variant.h"

/* Rows of one workgroup: more would not leave the registers for keys in flight. A software device
 * spends its time building what is unrolled. */
#define MAX_ROWS 8
#define MAX_ROWS_LEAN 2
/* Work items with a counter of splits each. */
#define MAX_SPLIT_ITEMS 256

struct job {
    const struct exec *x;
    struct attn a;
    const struct arr *in[3]; /* q, k, v as the kernels read them */
    struct arr *copy[3];     /* owned, where they could not */
    bool is_wide;
    struct vk_enc *enc;
    struct sdpa_args args;
};

/* ---- operands ---- */

static bool fits_i32(int64_t v)
{
    return v >= -INT32_MAX && v <= INT32_MAX;
}

static bool is_readable(const struct arr *a)
{
    bool ok = a->strides[3] == 1 || a->shape[3] <= 1;

    for (int i = 0; i < 3; i++)
        ok &= fits_i32(a->strides[i]) || a->shape[i] <= 1;
    return ok;
}

static enum err make_readable(struct job *j, int i)
{
    struct strm *s = j->x->strm;
    struct shp shape;
    enum err err = ERR_OK;

    j->in[i] = j->x->in[i];
    if (!j->in[i]->size || is_readable(j->in[i]))
        return ERR_OK;
    arr_shape(&shape, j->in[i]);
    TRY(arr_new_empty(&j->copy[i], &shape, (enum dtype)j->in[i]->dtype));
    TRY(be_copy_dense(s, j->copy[i], j->x->in[i]));
    TRY(s->be->hold(s, &j->copy[i]->buf, 1));
    j->in[i] = j->copy[i];
out:
    return err;
}

static enum err set_mask(struct job *j)
{
    const struct arr *m = j->a.mask;
    struct sdpa_mask mask;
    enum err err = ERR_OK;

    if (!m || !m->size)
        return ERR_OK;
    mask = (struct sdpa_mask){
        .batch = m->strides[0], .head = m->strides[1], .query = m->strides[2], .key = m->strides[3]
    };
    TRY(vk_enc_read(j->enc, &mask.addr, m));
    TRY(vk_enc_args(j->enc, &j->args.mask, &mask, sizeof mask));
out:
    return err;
}

static enum err bind(struct job *j)
{
    struct sdpa_args *a = &j->args;
    const int64_t *q = j->in[0]->strides, *k = j->in[1]->strides, *v = j->in[2]->strides;
    enum err err;

    a->q_batch = (int32_t)q[0], a->q_head = (int32_t)q[1], a->q_pos = (int32_t)q[2];
    a->k_batch = (int32_t)k[0], a->k_head = (int32_t)k[1], a->k_pos = (int32_t)k[2];
    a->v_batch = (int32_t)v[0], a->v_head = (int32_t)v[1], a->v_pos = (int32_t)v[2];
    TRY(vk_enc_read(j->enc, &a->q, j->in[0]));
    TRY(vk_enc_read(j->enc, &a->k, j->in[1]));
    TRY(vk_enc_read(j->enc, &a->v, j->in[2]));
    TRY(set_mask(j));
    if (j->a.sinks) {
        a->sinks_stride = (int32_t)j->a.sinks->strides[0];
        TRY(vk_enc_read(j->enc, &a->sinks, j->a.sinks));
    }
    TRY(vk_enc_write(j->enc, &a->dst, j->x->out[0]));
    a->n_kv = (uint32_t)j->a.n_kv;
    a->n_q = (uint32_t)j->a.n_q;
    a->n_k = (uint32_t)j->a.n_k;
    a->scale = j->a.p->scale;
out:
    return err;
}

static uint32_t flags_of(const struct job *j)
{
    const struct arr *m = j->a.mask;
    uint32_t mask = !m ? 0 : m->dtype == DT_BOOL ? SDPA_MASK_BOOL : SDPA_MASK_ADD;

    return mask | (j->a.p->causal ? SDPA_CAUSAL : 0) | (j->a.sinks ? SDPA_SINKS : 0) |
           (j->is_wide ? SDPA_WIDE : 0);
}

/* ---- a few rows per workgroup ---- */

struct rows_plan {
    uint32_t lanes; /* of a key */
    uint32_t rows, unroll, workgroup;
    uint32_t items, splits;
};

static uint32_t shared_bytes(const struct rows_plan *r, const struct job *j)
{
    uint32_t subgroups = (uint32_t)ceil_div(r->workgroup, vk_limits_get()->min_subgroup);

    return 4 * r->rows * (subgroups * ((uint32_t)j->a.v_dim + 2) + SDPA_SPLITS + 2) + 4;
}

/* Enough parts of the keys to occupy the device, each with a step's worth of keys. */
static void split_keys(struct rows_plan *r, const struct job *j)
{
    uint32_t at_a_time = r->workgroup / r->lanes, units = vk_limits_get()->compute_units;
    uint32_t wanted = r->items ? units / r->items : 1, n_k = (uint32_t)j->a.n_k;

    r->splits = MIN(MIN(wanted, SDPA_SPLITS), (uint32_t)ceil_div(n_k, at_a_time));
    if (r->splits < 1 || r->items > MAX_SPLIT_ITEMS)
        r->splits = 1;
    int64_t steps = ceil_div(ceil_div(n_k, r->splits), at_a_time);
    r->unroll = steps <= 1 || launch_is_lean() ? 1 : steps == 2 || r->rows > 4 ? 2 : 4;
}

static void plan_rows(struct rows_plan *r, const struct job *j)
{
    const struct vk_limits *dev = vk_limits_get();
    int64_t per16 = 16 / (int64_t)dt_size((enum dtype)j->in[0]->dtype);
    int64_t blocks = ceil_div(MAX(MAX(j->a.dim, j->a.v_dim), 1), per16);
    int64_t all = (int64_t)j->a.group * j->a.n_q;

    r->lanes = MIN(1u << launch_log2((uint64_t)blocks), MIN(dev->min_subgroup, 32));
    r->rows = (uint32_t)MIN(all, launch_is_lean() ? MAX_ROWS_LEAN : MAX_ROWS);
    r->workgroup = MAX(launch_workgroup(), dev->max_subgroup);
    while (shared_bytes(r, j) > dev->shared_memory && r->workgroup > dev->max_subgroup)
        r->workgroup /= 2;
    while (shared_bytes(r, j) > dev->shared_memory && r->rows > 1)
        r->rows /= 2;
    r->items = (uint32_t)(j->a.batch * j->a.n_kv * ceil_div(all, r->rows));
    split_keys(r, j);
}

static enum err rows_pipe(const struct vk_pipe **pipe, const struct rows_plan *r,
                          const struct job *j)
{
    uint32_t subgroups = (uint32_t)ceil_div(r->workgroup, vk_limits_get()->min_subgroup);
    uint32_t spec[] = { r->workgroup,
                        1,
                        1,
                        flags_of(j) | (r->splits > 1 ? SDPA_SPLIT : 0),
                        r->lanes,
                        r->unroll,
                        r->rows,
                        (uint32_t)j->a.group,
                        (uint32_t)j->a.dim,
                        (uint32_t)j->a.v_dim,
                        subgroups };

    return kern_pipe(pipe, KERN_ATTN_ROWS, j->in[0]->dtype, spec, ARRAY_LEN(spec));
}

static enum err encode_rows(struct job *j, const struct vk_pipe *pipe, const struct rows_plan *r)
{
    static const char zeros[MAX_SPLIT_ITEMS * SDPA_COUNTER_BYTES];
    struct sdpa_args *a = &j->args;
    enum err err = ERR_OK;

    a->splits = r->splits;
    a->n_items = r->items;
    if (r->splits > 1) {
        size_t part = r->rows * ((size_t)j->a.v_dim + 2) * sizeof(float);
        TRY(vk_enc_args(j->enc, &a->counters, zeros, (size_t)r->items * SDPA_COUNTER_BYTES));
        TRY(vk_enc_scratch(j->enc, &a->parts, (size_t)r->items * r->splits * part));
    }
    TRY(vk_enc_dispatch(j->enc, pipe, a, sizeof *a, launch_grid((uint64_t)r->items * r->splits)));
out:
    return err;
}

/* ---- the choice ---- */

static void describe(char *text, size_t size, const void *data)
{
    const struct job *j = data;

    snprintf(text, size, "%s, heads %d of %d x %d, %d queries, %d keys%s",
             dt_name((enum dtype)j->in[0]->dtype), j->a.heads, j->a.n_kv, j->a.dim, j->a.n_q,
             j->a.n_k, j->is_wide ? "" : ", not aligned");
}

static enum variant_reason judge_decode(const struct job *j)
{
    if (!j->is_wide)
        return VARIANT_LAYOUT;
    return j->a.n_q <= MAX_ROWS ? VARIANT_FITS : VARIANT_SIZE;
}

static enum err run(struct job *j)
{
    struct variant_problem problem = { describe, j };
    const struct vk_pipe *pipe;
    struct rows_plan rows;
    enum variant_id id;
    enum err err;

    do {
        id = VARIANT_SDPA_DECODE;
        if (!variant_takes(id, judge_decode(j), &problem)) {
            id = VARIANT_SDPA_ROWS;
            variant_takes(id, VARIANT_FITS, &problem);
        }
        plan_rows(&rows, j);
        err = rows_pipe(&pipe, &rows, j);
    } while (err && variant_gives_way(id, err));
    return err ? err : encode_rows(j, pipe, &rows);
}

enum err vk_sdpa(const struct exec *x)
{
    struct job j = { .x = x };
    enum err err = attn_alloc(x->out[0], x->strm->be);

    if (err || !x->out[0]->size)
        return err;
    attn_of(&j.a, x);
    for (int i = 0; i < 3; i++)
        TRY(make_readable(&j, i));
    j.is_wide = true;
    for (int i = 0; i < 3; i++)
        j.is_wide &= launch_rows_are_aligned(j.in[i]);
    TRY(vk_enc_get(&j.enc, x->strm));
    TRY(bind(&j));
    TRY(run(&j));
out:
    if (err && j.enc)
        vk_enc_drop(j.enc);
    for (int i = 0; i < 3; i++)
        arr_unref(&j.copy[i]);
    return err;
}
