/* Attention: operands that the kernels can read, the choice among them, the dispatch. */
#include "backend/vulkan/ops/attn.h"

#include <stdio.h>

#include "backend/common/families.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"

/* Rows of one workgroup: more would not leave the registers for keys in flight. A software device
 * spends its time building what is unrolled. */
#define MAX_ROWS 8
#define MAX_ROWS_LEAN 2
/* Measured on an H200 (qwen3-0.6b, 40 to 120 keys): a token takes 5 % less time than with keys
 * split after the first step; from 160 keys on splitting wins. */
#define WHOLE_STEPS 8
/* All loops of an invocation together end after 65,535 trips on a software device: so many steps
 * over keys are safe, and so many keys in kernels with loops inside of a step. */
#define SOFTWARE_MAX_STEPS 1024
#define SOFTWARE_MAX_KEYS 8192

/* ---- operands ---- */

static bool is_readable(const struct arr *a)
{
    bool ok = a->strides[3] == 1 || a->shape[3] <= 1;

    for (int i = 0; i < 3; i++)
        ok &= attn_fits_i32(a->strides[i]) || a->shape[i] <= 1;
    return ok;
}

static enum err make_readable(struct attn_job *j, int i)
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

static enum err set_mask(struct attn_job *j)
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
    TRY(vk_enc_args(j->enc, &j->args.mask, &mask, sizeof mask, .n_addr = 1));
out:
    return err;
}

static enum err bind(struct attn_job *j)
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

static uint32_t flags_of(const struct attn_job *j)
{
    const struct arr *m = j->a.mask;
    uint32_t mask = !m ? 0 : m->dtype == DT_BOOL ? SDPA_MASK_BOOL : SDPA_MASK_ADD;

    return mask | (j->a.p->causal ? SDPA_CAUSAL : 0) | (j->a.sinks ? SDPA_SINKS : 0) |
           (j->is_wide ? SDPA_WIDE : 0);
}

/* ---- how a kernel would run it ---- */

/* Rows of a kv head: its query heads at all positions. */
static int64_t rows_of(const struct attn_job *j)
{
    return (int64_t)j->a.group * j->a.n_q;
}

static uint32_t tiles_of(const struct attn_job *j, uint32_t rows)
{
    return (uint32_t)(j->a.batch * j->a.n_kv * ceil_div(rows_of(j), rows));
}

/* Constants 0 to 2 are the workgroup size, 3 the flags; then four of the kernel's own and the
 * heads.
 */
static void set_spec(struct attn_plan *p, const struct attn_job *j, uint32_t workgroup,
                     const uint32_t own[4])
{
    uint32_t spec[] = { workgroup,
                        1,
                        1,
                        flags_of(j) | (p->splits > 1 ? SDPA_SPLIT : 0),
                        own[0],
                        own[1],
                        own[2],
                        own[3],
                        (uint32_t)j->a.group,
                        (uint32_t)j->a.dim,
                        (uint32_t)j->a.v_dim };

    memcpy(p->spec, spec, sizeof spec);
    p->n_spec = ARRAY_LEN(spec);
}

/* ---- a few rows per workgroup: attn_rows.comp ---- */

struct rows_plan {
    uint32_t lanes; /* of a key */
    uint32_t rows, unroll, workgroup, subgroups;
    uint32_t shared; /* bytes of memory */
};

static bool rows_fit(struct rows_plan *r, const struct attn_job *j)
{
    const struct vk_limits *dev = vk_limits_get();
    uint32_t floats = 2 * SDPA_SPLITS;

    r->subgroups = (uint32_t)ceil_div(r->workgroup, dev->min_subgroup);
    floats += r->subgroups * ((uint32_t)j->a.v_dim + 2);
    r->shared = 4 * (r->rows * floats + 1);
    return r->shared <= dev->shared_memory;
}

static uint32_t steps_of(const struct rows_plan *r, const struct attn_job *j)
{
    return (uint32_t)ceil_div(j->a.n_k, r->workgroup / r->lanes);
}

/* So few keys that joining parts of them would take longer than going over them all. */
static bool takes_all_keys(const struct rows_plan *r, const struct attn_job *j)
{
    return !vk_limits_get()->is_software && steps_of(r, j) <= WHOLE_STEPS;
}

/* Then there are more workgroups instead, each with fewer rows. */
static void spread_rows(struct rows_plan *r, const struct attn_job *j)
{
    int64_t rows = (int64_t)j->a.batch * j->a.n_kv * rows_of(j);

    if (takes_all_keys(r, j))
        r->rows = MIN(r->rows, (uint32_t)ceil_div(rows, MAX(vk_limits_get()->compute_units, 1)));
}

/* Enough parts of the keys to occupy the device, each with a step's worth of keys. */
static uint32_t split_keys(const struct rows_plan *r, const struct attn_job *j, uint32_t items)
{
    const struct vk_limits *dev = vk_limits_get();
    uint32_t steps = steps_of(r, j);
    uint32_t splits = MIN(steps, dev->compute_units / MAX(items, 1));

    if (takes_all_keys(r, j))
        return 1;
    if (dev->is_software)
        splits = MAX(splits, (uint32_t)ceil_div(steps, SOFTWARE_MAX_STEPS));
    return MAX(MIN(splits, SDPA_SPLITS), 1);
}

/* Threads of a workgroup: where splitting alone does not keep loops short enough, more. */
static uint32_t rows_workgroup(const struct attn_job *j, uint32_t lanes)
{
    const struct vk_limits *dev = vk_limits_get();
    uint32_t size = MAX(launch_workgroup(), dev->max_subgroup);
    int64_t most = (int64_t)SOFTWARE_MAX_STEPS * SDPA_SPLITS;

    while (dev->is_software && j->a.n_k / (size / lanes) > most && size < dev->max_workgroup_size)
        size *= 2;
    return size;
}

static uint32_t unroll_of(const struct rows_plan *r, const struct attn_job *j, uint32_t splits)
{
    int64_t steps = ceil_div(ceil_div(j->a.n_k, splits), r->workgroup / r->lanes);

    if (steps <= 1 || launch_is_lean())
        return 1;
    return steps == 2 || r->rows > 4 ? 2 : 4;
}

void attn_plan_rows(struct attn_plan *p, const struct attn_job *j)
{
    const struct vk_limits *dev = vk_limits_get();
    int64_t per16 = 16 / (int64_t)dt_size((enum dtype)j->in[0]->dtype);
    int64_t blocks = ceil_div(MAX(MAX(j->a.dim, j->a.v_dim), 1), per16);
    struct rows_plan r = {
        .lanes = MIN(1u << launch_log2((uint64_t)blocks), MIN(dev->min_subgroup, 32)),
        .rows = (uint32_t)MIN(rows_of(j), launch_is_lean() ? MAX_ROWS_LEAN : MAX_ROWS),
    };

    r.workgroup = rows_workgroup(j, r.lanes);
    spread_rows(&r, j);
    while (!rows_fit(&r, j) && r.workgroup > dev->max_subgroup)
        r.workgroup /= 2;
    while (!rows_fit(&r, j) && r.rows > 1)
        r.rows /= 2;
    *p = (struct attn_plan){
        .kern = KERN_ATTN_ROWS, .items = tiles_of(j, r.rows), .rows = r.rows, .shared = r.shared
    };
    p->splits = split_keys(&r, j, p->items);
    p->part_bytes = r.rows * ((size_t)j->a.v_dim + 2) * sizeof(float);
    set_spec(p, j, r.workgroup,
             (uint32_t[]){ r.lanes, unroll_of(&r, j, p->splits), r.rows, r.subgroups });
}

static enum variant_reason judge_rows(struct attn_plan *p, const struct attn_job *j)
{
    attn_plan_rows(p, j);
    return VARIANT_FITS;
}

static enum variant_reason judge_decode(struct attn_plan *p, const struct attn_job *j)
{
    if (!j->is_wide)
        return VARIANT_LAYOUT;
    if (j->a.n_q > MAX_ROWS)
        return VARIANT_SIZE;
    return judge_rows(p, j);
}

/* ---- tiles of rows ---- */

/* Fragments of 16 bytes or 8 that attn_coop.comp has names for. */
#define COOP_MAX_DIMS 16
#define COOP_KEYS 2
#define COOP_SUBGROUPS 4
/* Fewer rows of a kv head leave most of a tile empty. */
#define MIN_TILE_ROWS 16

static bool suits_tiles(const struct attn_job *j)
{
    if (vk_limits_get()->is_software && j->a.n_k > SOFTWARE_MAX_KEYS)
        return false;
    return rows_of(j) >= MIN_TILE_ROWS && MIN(j->a.dim, j->a.v_dim) > 0;
}

static uint32_t chunk_pitch(int32_t size, uint32_t edge)
{
    return (uint32_t)(align_up((size_t)size, edge) / 8) | 1;
}

/* Shared memory of attn_coop.comp. */
static uint32_t coop_bytes(const struct attn_job *j, uint32_t edge)
{
    uint32_t pitch_k = chunk_pitch(j->a.dim, edge), pitch_v = chunk_pitch(j->a.v_dim, edge);
    uint32_t keys = COOP_KEYS * edge, rows = COOP_SUBGROUPS * edge;
    uint32_t staged = MAX(rows * pitch_k, keys * (pitch_k + pitch_v));

    return 16 * (staged + rows * (keys / 4 + 1 + edge / 4 + 1));
}

static enum variant_reason judge_coop(struct attn_plan *p, const struct attn_job *j)
{
    const struct vk_limits *dev = vk_limits_get();
    enum dtype type = (enum dtype)j->in[0]->dtype;
    uint32_t edge = dev->coopmat_edge, lanes = dev->subgroup_size;
    uint32_t threads = lanes * COOP_SUBGROUPS;

    if (type == DT_FLOAT32)
        return VARIANT_DTYPE;
    p->kern = type == DT_BFLOAT16 ? KERN_ATTN_COOP_BF16 : KERN_ATTN_COOP;
    if (!kern_is_usable(p->kern, type) || lanes % edge != 0 || lanes > 4 * edge ||
        threads > dev->max_workgroup_size || coop_bytes(j, edge) > dev->shared_memory)
        return VARIANT_DEVICE;
    if (!j->is_wide)
        return VARIANT_LAYOUT;
    if (!suits_tiles(j) || MAX(j->a.dim, j->a.v_dim) > (int32_t)(COOP_MAX_DIMS * edge))
        return VARIANT_SIZE;
    p->splits = 1;
    p->items = tiles_of(j, COOP_SUBGROUPS * edge);
    set_spec(p, j, threads, (uint32_t[]){ lanes, edge, COOP_SUBGROUPS, COOP_KEYS });
    return VARIANT_FITS;
}

struct tile_plan {
    uint32_t tx, ty, rows, keys; /* of an invocation */
};

/* Shared memory of attn_tiled.comp. */
static uint32_t tiled_bytes(const struct tile_plan *t, const struct attn_job *j)
{
    uint32_t pitch_k = (uint32_t)ceil_div(j->a.dim, 4) | 1;
    uint32_t pitch_v = (uint32_t)ceil_div(j->a.v_dim, 4) | 1;
    uint32_t rows = t->ty * t->rows, keys = t->tx * t->keys;

    return 16 * (rows * pitch_k + keys * MAX(pitch_k, pitch_v)) + 4 * rows * (keys + 1);
}

static enum variant_reason judge_tiled(struct attn_plan *p, const struct attn_job *j)
{
    const struct vk_limits *dev = vk_limits_get();
    struct tile_plan t = { MIN(16, dev->min_subgroup), 8, 4, 2 };

    if (launch_is_lean()) /* its barriers cost more than reading keys again */
        return VARIANT_DEVICE;
    if (!suits_tiles(j))
        return VARIANT_SIZE;
    while (tiled_bytes(&t, j) > dev->shared_memory && t.tx * t.ty > dev->max_subgroup)
        t.ty /= 2;
    if (tiled_bytes(&t, j) > dev->shared_memory)
        t.keys = 1;
    if (tiled_bytes(&t, j) > dev->shared_memory || t.tx * t.ty < dev->max_subgroup)
        return VARIANT_DEVICE;
    *p = (struct attn_plan){ .kern = KERN_ATTN_TILED, .splits = 1 };
    p->items = tiles_of(j, t.ty * t.rows);
    set_spec(p, j, t.tx * t.ty, (uint32_t[]){ t.tx, t.ty, t.rows, t.keys });
    return VARIANT_FITS;
}

/* ---- the choice ---- */

static enum variant_reason judge(void *job, enum variant_id id)
{
    static enum variant_reason (*const by_id[])(struct attn_plan *, const struct attn_job *) = {
        judge_decode, judge_coop, judge_tiled, judge_rows
    };
    struct attn_job *j = job;

    return by_id[id - VARIANT_SDPA_DECODE](&j->plan, j);
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    const struct attn_job *j = job;

    (void)id;
    return kern_pipe(pipe, j->plan.kern, j->in[0]->dtype, j->plan.spec, j->plan.n_spec);
}

static void describe(char *text, size_t size, const void *data)
{
    const struct attn_job *j = data;

    snprintf(text, size, "%s, heads %d of %d x %d, %d queries, %d keys%s",
             dt_name((enum dtype)j->in[0]->dtype), j->a.heads, j->a.n_kv, j->a.dim, j->a.n_q,
             j->a.n_k, j->is_wide ? "" : ", not aligned");
}

static const struct variant_table variants = {
    VARIANT_SDPA_DECODE, VARIANT_SDPA_ROWS, judge, build, describe, "queries x keys x heads x dim"
};

enum err attn_parts(struct vk_enc *e, uint64_t *parts, uint64_t *counters,
                    const struct attn_plan *p)
{
    enum err err;

    TRY(launch_counters(e, counters, p->items));
    TRY(vk_enc_scratch(e, parts, (size_t)p->items * p->splits * p->part_bytes));
out:
    return err;
}

static enum err run(struct attn_job *j)
{
    const struct attn_plan *p = &j->plan;
    struct sdpa_args *a = &j->args;
    struct vk_kernel kernel;
    enum err err;

    TRY(variant_pick(&kernel, &variants, j,
                     (int64_t[VARIANT_SIZES]){ j->a.n_q, j->a.n_k, j->a.heads, j->a.dim }));
    a->splits = p->splits;
    a->n_items = p->items;
    if (p->splits > 1)
        TRY(attn_parts(j->enc, &a->parts, &a->counters, p));
    TRY(vk_enc_dispatch(j->enc, kernel, a, sizeof *a, launch_grid((uint64_t)p->items * p->splits)));
out:
    return err;
}

enum err vk_sdpa(const struct exec *x)
{
    struct attn_job j = { .x = x };
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
