/* Few rows times packed matrices: which design of the kernel, and its dispatch. */
#include "backend/vulkan/ops/qmm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/common/qmm_plan.h"
#include "backend/vulkan/ops/epilogue.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/qmm_batch.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "base/log.h"

static_assert(VK_QMV_SETS == QMV_SETS, "as in kernels/args.h");

/* Bytes of shared memory of a workgroup: several then fit a compute unit. */
#define SHARED_BYTES 32768
/* Words of weights that an invocation holds; more would leave the registers. */
#define HELD_WORDS 32
/* A loop of a software device ends after 65,535 trips. */
#define MAX_TRIPS 1024

/* ---- designs ---- */

/* How a workgroup shares the work, see qmv.comp. */
struct design {
    uint32_t threads, lanes, rows, splits, span;
    /* A grid of more than twice as many workgroups per compute unit is walked by this many, each of
     * which stages x once; 0: a workgroup for every block of rows. */
    uint32_t walkers;
};

struct geometry {
    struct design d;
    bool is_dot;
    uint32_t vectors, steps, outs; /* outs: result rows of a workgroup */
    uint32_t staged;               /* k of x in shared memory */
};

/* Two products that become one result. */
static bool is_pair(const struct vk_qmv *v)
{
    return v->epilogue && v->n_sets == 2;
}

/* One block of numbers is at most a group. */
static uint32_t span_within(uint32_t span, const struct quant_params *q)
{
    /* Three words, five and six are no load of their own: whole blocks of 32. */
    if (q->bits != 2 && q->bits != 4 && q->bits != 8)
        span = MAX(span, 32u);
    return MIN(span, (uint32_t)q->group_size);
}

static uint32_t power_of_two_below(int64_t n)
{
    uint32_t p = 1;

    while ((int64_t)p * 2 <= n)
        p *= 2;
    return p;
}

static int64_t all_rows(const struct vk_qmv *v)
{
    int64_t n = 0;

    for (int i = 0; i < v->n_sets; i++)
        n += v->set[i].n;
    return n;
}

/* Designs by k and by how many rows there are for each compute unit; the first that fits. Measured
 * on an H200 with 132 units: small matrices are latency, tall ones memory. */
static const struct row {
    int64_t max_k, max_rows; /* per unit; 0: any */
    struct design d;
} designs[] = {
    { 1536, 12, { 128, 32, 1, 1, 16, 0 } }, { 1536, 24, { 128, 8, 1, 4, 16, 0 } },
    { 1536, 40, { 128, 32, 2, 1, 16, 0 } }, { 1536, 128, { 128, 8, 2, 4, 16, 0 } },
    { 1536, 0, { 128, 16, 4, 1, 32, 4 } },  { 2304, 16, { 256, 16, 1, 4, 16, 0 } },
    { 3584, 16, { 128, 8, 2, 8, 16, 0 } },  { 4608, 64, { 512, 32, 2, 2, 32, 0 } },
    { 0, 64, { 256, 32, 2, 1, 16, 0 } },    { 0, 0, { 256, 32, 2, 1, 32, 2 } },
};

static struct design choose_design(const struct vk_qmv *v, uint32_t vectors)
{
    const struct vk_limits *dev = vk_limits_get();
    int64_t per_unit = all_rows(v) / MAX(dev->compute_units, 1u);
    const struct row *r = designs;

    /* Barriers are expensive there, and a team that is a whole subgroup needs none but x's; so is
     * compiling what is unrolled. */
    if (dev->is_software)
        return (struct design){ dev->subgroup_size, dev->subgroup_size, vectors > 1 ? 1 : 2, 1,
                                32 };
    while ((r->max_k && v->k > r->max_k) || (r->max_rows && per_unit > r->max_rows))
        r++;
    return r->d;
}

/* "threads,lanes,rows,splits,span[,walkers]" of the setting, for measurements. All but the walkers,
 * which may be left out, are powers of two between these. Blocks of numbers are whole words. */
static const struct {
    unsigned long min, max;
} design_range[] = { { 1, 1024 }, { 1, 128 }, { 1, 32 }, { 1, 1024 }, { 16, 128 }, { 0, 1024 } };
#define DESIGN_FIELDS ARRAY_LEN(design_range)

static bool parse_design(uint32_t *field, const char *text)
{
    size_t n = 0;

    for (bool more = true; more; n++) {
        char *end;
        unsigned long v = strtoul(text, &end, 10);
        if (n == DESIGN_FIELDS || end == text || v < design_range[n].min ||
            v > design_range[n].max || (n < DESIGN_FIELDS - 1 && (v & (v - 1))))
            return false;
        field[n] = (uint32_t)v;
        more = *end == ',';
        if (!more && *end)
            return false;
        text = end + more;
    }
    return n >= DESIGN_FIELDS - 1;
}

static bool asked_design(struct design *d)
{
    static const char *_Atomic refused; /* told of it */
    const char *text = gate_text(GATE_VK_QMV_DESIGN);
    uint32_t f[DESIGN_FIELDS] = { 0 };

    if (!text || !*text)
        return false;
    if (!parse_design(f, text)) {
        if (atomic_exchange(&refused, text) != text)
            log_warn("%s=%s is no design, ignored", gate_table[GATE_VK_QMV_DESIGN].variable, text);
        return false;
    }
    *d = (struct design){ f[0], f[1], f[2], f[3], f[4], f[5] };
    return true;
}

/* Makes a design possible for the device and the problem. */
static void adapt(struct design *d, const struct vk_qmv *v, uint32_t vectors)
{
    const struct vk_limits *dev = vk_limits_get();
    uint32_t words;

    d->threads =
        MAX(MIN(d->threads, power_of_two_below(dev->max_workgroup_size)), dev->max_subgroup);
    d->lanes = MIN(d->lanes, dev->min_subgroup);
    d->splits = MIN(d->splits, d->threads / d->lanes);
    d->span = span_within(d->span, &v->q);
    words = d->span * (uint32_t)v->q.bits / 32;
    d->rows = MAX(MIN(d->rows, power_of_two_below(HELD_WORDS / words)), 1u);
    while (d->rows > 1 && d->rows * vectors > 32)
        d->rows /= 2;
    if (is_pair(v))
        d->rows = MAX(d->rows, 2u);
}

/* Shared memory of the kernel, without what it needs for x in one step. */
static uint32_t fixed_bytes(const struct geometry *g, const struct vk_qmv *v)
{
    uint32_t split_sums = g->d.splits > 1 ? g->d.threads / g->d.lanes * g->d.rows * g->vectors : 1;

    return 4 * (split_sums + (v->norm ? g->d.threads : 1));
}

/* Shared memory for x in one step: a block is its numbers, 2 or 4 bytes each, and two floats. */
static uint32_t step_bytes(const struct geometry *g)
{
    return g->d.lanes * g->d.splits * g->vectors * (g->d.span * (g->is_dot ? 2 : 4) + 8);
}

/* Many vectors leave room for fewer blocks of each. */
static void make_room(struct geometry *g, const struct vk_qmv *v, uint32_t room)
{
    while (g->d.splits > 1 && step_bytes(g) + fixed_bytes(g, v) > room)
        g->d.splits /= 2;
    while (g->d.lanes > 1 && step_bytes(g) + fixed_bytes(g, v) > room)
        g->d.lanes /= 2;
}

static void geometry_of(struct geometry *g, const struct vk_qmv *v, bool is_dot)
{
    uint32_t room = MIN(SHARED_BYTES, vk_limits_get()->shared_memory), block, most, words;

    *g = (struct geometry){ .is_dot = is_dot, .vectors = 1u << launch_log2((uint64_t)v->m) };
    if (!asked_design(&g->d))
        g->d = choose_design(v, g->vectors);
    adapt(&g->d, v, g->vectors);
    make_room(g, v, room);
    block = g->d.span * g->d.lanes * g->d.splits;
    words = g->d.span * (uint32_t)v->q.bits / 32 * g->d.rows;
    most = MAX(MIN((room - fixed_bytes(g, v)) / step_bytes(g), HELD_WORDS / words), 1u);
    /* Passes of the same length. */
    g->steps = (uint32_t)ceil_div(ceil_div(v->k, block), ceil_div(v->k, (int64_t)block * most));
    g->staged = (uint32_t)MIN(v->k, (int64_t)block * g->steps);
    g->outs = g->d.threads / (g->d.lanes * g->d.splits) * g->d.rows / (is_pair(v) ? 2 : 1);
}

/* ---- what fits ---- */

static const enum variant_id variants[] = { VARIANT_QMM_NATIVE_M1, VARIANT_QMM_NATIVE_M2,
                                            VARIANT_QMM_NATIVE_M4, VARIANT_QMM_NATIVE_M8,
                                            VARIANT_QMM_NATIVE_M16 };

static enum variant_id variant_of(const struct vk_qmv *v)
{
    return variants[launch_log2((uint64_t)v->m)];
}

static enum kern_id kern_of(const struct vk_qmv *v, bool is_dot)
{
    if (is_pair(v))
        return is_dot ? KERN_QMV_PAIR_DOT : KERN_QMV_PAIR;
    if (v->n_sets > 1)
        return is_dot ? KERN_QMV_MANY_DOT : KERN_QMV_MANY;
    return is_dot ? KERN_QMV_DOT : KERN_QMV;
}

static bool takes_dot(const struct vk_qmv *v)
{
    enum kern_id kern = kern_of(v, true);

    return gate_on(GATE_VK_QMM_INT_DOT) && v->q.mode == QUANT_AFFINE &&
           (v->q.bits == 4 || v->q.bits == 8) && kern_is_usable(kern, v->x->dtype);
}

static bool is_aligned(const struct arr *a, int64_t bytes)
{
    return !a || a->offset % bytes == 0;
}

/* Addresses of arrays are multiples of their element size; of words, whole ones. */
static bool words_are_aligned(const struct vk_qmv *v, int64_t bytes)
{
    bool aligned = true;

    for (int i = 0; i < v->n_sets; i++)
        aligned &= is_aligned(v->set[i].w, bytes);
    if (v->plan)
        for (int d = 0; d < v->plan->n_dims; d++)
            aligned &= v->plan->stride[QMM_W][d] * 4 % bytes == 0;
    return aligned;
}

static bool x_is_aligned(const struct vk_qmv *v)
{
    int64_t item = (int64_t)dt_size((enum dtype)v->x->dtype);
    bool aligned = is_aligned(v->x, 16) && is_aligned(v->norm, 16) &&
                   is_aligned(v->norm_bias, 16) && (v->m == 1 || v->ld * item % 16 == 0);

    if (v->plan)
        for (int d = 0; d < v->plan->n_dims; d++)
            aligned &= v->plan->stride[QMM_X][d] * item % 16 == 0;
    return aligned;
}

static bool is_batch(const struct vk_qmv *v)
{
    return v->plan && (v->plan->is_gather || v->plan->n_batch > 1);
}

/* More matrices than can be pushed, or other numbers besides. */
static bool sets_in_memory(const struct vk_qmv *v)
{
    return v->n_sets > QMV_PUSHED || v->m > 1 || v->norm_bias;
}

static uint32_t flags_of(const struct vk_qmv *v, const struct geometry *g)
{
    int64_t words = g->d.span * v->q.bits / 32;
    int64_t load = words % 4 == 0 ? 16 : words % 2 == 0 ? 8 : 4;

    return (words_are_aligned(v, load) ? QMV_WIDE_W : 0) | (x_is_aligned(v) ? QMV_WIDE_X : 0) |
           (v->norm ? QMV_NORM : 0) | (is_batch(v) ? QMV_BATCH : 0) |
           (v->is_centred ? QMV_CENTRED : 0) | (v->norm_bias ? QMV_NORM_BIAS : 0) |
           (v->epilogue ? QMV_PROGRAM : 0) | (sets_in_memory(v) ? QMV_IN_MEMORY : 0);
}

static void describe(char *text, size_t size, const void *data)
{
    const struct vk_qmv *v = data;

    snprintf(text, size, "%s, %lld x %lld x %lld, %d matrices of %d bits, mode %d",
             dt_name((enum dtype)v->x->dtype), (long long)v->m, (long long)all_rows(v),
             (long long)v->k, v->n_sets, v->q.bits, v->q.mode);
}

static enum variant_reason judge(const struct vk_qmv *v)
{
    struct geometry g;

    if (!gate_on(GATE_VK_QMM_NATIVE))
        return VARIANT_OFF;
    if (!kern_is_usable(KERN_QMV, v->x->dtype))
        return VARIANT_DTYPE;
    if (!v->k || v->k > INT32_MAX / 8)
        return VARIANT_SIZE;
    geometry_of(&g, v, takes_dot(v));
    /* The norm of x needs all of it. */
    if (v->norm && g.staged < v->k)
        return VARIANT_SIZE;
    if (!words_are_aligned(v, 4) || v->ld > INT32_MAX || v->ld < -INT32_MAX)
        return VARIANT_LAYOUT;
    return VARIANT_FITS;
}

bool vk_qmv_fits(const struct vk_qmv *v)
{
    struct variant_problem problem = { .describe = describe,
                                       .data = v,
                                       .sizes = "m x n x k x matrices",
                                       .size = { v->m, all_rows(v), v->k, v->n_sets } };

    return v->m >= 1 && v->m <= VK_QMV_ROWS && variant_takes(variant_of(v), judge(v), &problem);
}

/* ---- the dispatch ---- */

static enum err pipe_of(const struct vk_pipe **pipe, const struct vk_qmv *v,
                        const struct geometry *g)
{
    uint32_t spec[] = { g->d.threads,
                        1,
                        1,
                        g->d.lanes,
                        g->d.rows,
                        g->d.splits,
                        g->vectors,
                        (uint32_t)v->k,
                        g->d.span,
                        g->steps,
                        flags_of(v, g),
                        (uint32_t)v->n_sets,
                        (uint32_t)v->q.mode,
                        (uint32_t)v->q.bits,
                        (uint32_t)v->q.group_size };
    struct kern_want want = { kern_of(v, g->is_dot), v->x->dtype, spec, ARRAY_LEN(spec) };

    return vk_epilogue_pipe(pipe, v->epilogue, &want);
}

/* Blocks of rows over all matrices. */
static int64_t blocks_of(const struct vk_qmv *v, const struct geometry *g)
{
    int64_t blocks = 0;

    for (int i = 0; i < (is_pair(v) ? 1 : v->n_sets); i++)
        blocks += ceil_div(v->set[i].n, g->outs);
    return blocks;
}

/* Many blocks are walked by as many workgroups as run at a time. */
static int64_t groups_of(const struct vk_qmv *v, const struct geometry *g, int64_t blocks)
{
    int64_t most = (int64_t)vk_limits_get()->compute_units * g->d.walkers;

    if (is_batch(v))
        return blocks * v->plan->n_batch;
    if (!most || g->staged < v->k || blocks <= 2 * most)
        return blocks;
    return MAX(most, ceil_div(blocks, MAX_TRIPS));
}

static enum err read_set(struct vk_enc *e, struct qmv_set *to, const struct vk_qmv_set *s)
{
    enum err err;

    *to = (struct qmv_set){ .n = (uint32_t)s->n };
    TRY(vk_enc_read(e, &to->w, s->w));
    TRY(vk_enc_read(e, &to->scales, s->scales));
    if (s->biases)
        TRY(vk_enc_read(e, &to->biases, s->biases));
out:
    return err;
}

/* One matrix, or the first of a pair. */
static enum err fill_args(struct qmv_args *a, struct vk_enc *e, const struct vk_qmv *v,
                          const struct geometry *g)
{
    struct qmv_set s;
    enum err err = ERR_OK;

    *a = (struct qmv_args){ .ld_x = (int32_t)v->ld,
                            .m = (uint32_t)v->m,
                            .n = (uint32_t)v->set[0].n,
                            .n_batch = v->plan ? (uint32_t)v->plan->n_batch : 1,
                            .blocks = (uint32_t)blocks_of(v, g),
                            .eps = v->eps };
    if (v->plan)
        TRY(qmm_batch_encode(e, &a->batch, v->plan));
    TRY(read_set(e, &s, &v->set[0]));
    a->w = s.w;
    a->scales = s.scales;
    a->biases = s.biases;
    TRY(vk_enc_read(e, &a->x, v->x));
    if (v->norm)
        TRY(vk_enc_read(e, &a->norm, v->norm));
    if (v->norm_bias)
        TRY(vk_enc_read(e, &a->norm_bias, v->norm_bias));
    TRY(vk_epilogue_encode(e, &a->epilogue, v->epilogue));
    TRY(vk_enc_write(e, &a->out_addr, v->set[0].out));
out:
    return err;
}

static enum err encode_one(struct vk_enc *e, const struct vk_qmv *v, const struct geometry *g,
                           struct vk_kernel kernel)
{
    int64_t groups = groups_of(v, g, blocks_of(v, g));
    struct qmv_args a;
    enum err err;

    TRY(fill_args(&a, e, v, g));
    TRY(vk_enc_dispatch(e, kernel, &a, sizeof a, launch_grid((uint64_t)groups)));
out:
    return err;
}

static enum err encode_pair(struct vk_enc *e, const struct vk_qmv *v, const struct geometry *g,
                            struct vk_kernel kernel)
{
    int64_t groups = groups_of(v, g, blocks_of(v, g));
    struct qmv_args a;
    struct qmv_set s;
    enum err err;

    TRY(fill_args(&a, e, v, g));
    TRY(read_set(e, &s, &v->set[1]));
    struct qmv_pair_args pair = { .x = a.x,
                                  .w = a.w,
                                  .scales = a.scales,
                                  .biases = a.biases,
                                  .out_addr = a.out_addr,
                                  .batch = a.batch,
                                  .norm = a.norm,
                                  .epilogue = a.epilogue,
                                  .norm_bias = a.norm_bias,
                                  .w2 = s.w,
                                  .scales2 = s.scales,
                                  .biases2 = s.biases,
                                  .ld_x = a.ld_x,
                                  .m = a.m,
                                  .n = a.n,
                                  .n_batch = a.n_batch,
                                  .blocks = a.blocks,
                                  .eps = a.eps };
    TRY(vk_enc_dispatch(e, kernel, &pair, sizeof pair, launch_grid((uint64_t)groups)));
out:
    return err;
}

/* All sets at an address; what there is room for then. Each begins with addresses. */
static enum err put_in_memory(struct vk_enc *e, struct qmv_sets_args *a, struct qmv_set *s,
                              const struct vk_qmv *v)
{
    *a = (struct qmv_sets_args){ .n = { (uint32_t)v->m, (uint32_t)(int32_t)v->ld }, .eps = v->eps };
    return vk_enc_args(e, &a->set[0].w, s, sizeof *s * VK_QMV_SETS, .n_addr = 4,
                       .records = VK_QMV_SETS);
}

static enum err encode_many(struct vk_enc *e, const struct vk_qmv *v, const struct geometry *g,
                            struct vk_kernel kernel)
{
    struct qmv_sets_args a = { .eps = v->eps };
    struct qmv_set s[VK_QMV_SETS];
    enum err err = ERR_OK;

    memset(s, 0, sizeof s);
    for (int i = 0; i < v->n_sets; i++) {
        TRY(read_set(e, &s[i], &v->set[i]));
        TRY(vk_enc_write(e, &s[i].out_addr, v->set[i].out));
        if (i < QMV_PUSHED) {
            a.set[i] = (struct qmv_pushed){ s[i].w, s[i].scales, s[i].biases, s[i].out_addr };
            a.n[i] = s[i].n;
        }
    }
    if (sets_in_memory(v))
        TRY(put_in_memory(e, &a, s, v));
    TRY(vk_enc_read(e, &a.x, v->x));
    if (v->norm)
        TRY(vk_enc_read(e, &a.norm, v->norm));
    if (v->norm_bias)
        TRY(vk_enc_read(e, &a.set[1].w, v->norm_bias));
    TRY(vk_enc_dispatch(e, kernel, &a, sizeof a,
                        launch_grid((uint64_t)groups_of(v, g, blocks_of(v, g)))));
out:
    return err;
}

static enum err encode(struct vk_enc *e, const struct vk_qmv *v, const struct geometry *g,
                       struct vk_kernel kernel)
{
    if (is_pair(v))
        return encode_pair(e, v, g, kernel);
    return v->n_sets > 1 ? encode_many(e, v, g, kernel) : encode_one(e, v, g, kernel);
}

enum err vk_qmv_encode(struct vk_enc *e, const struct vk_qmv *v, bool *gave_way)
{
    struct vk_kernel kernel = { .variant = variant_of(v) };
    struct geometry g;
    enum err err;

    geometry_of(&g, v, takes_dot(v));
    log_line(LOG_TRACE, "qmv %lldx%lldx%lld: %u threads, %u lanes, %u rows, %u splits, span %u",
             (long long)v->m, (long long)all_rows(v), (long long)v->k, g.d.threads, g.d.lanes,
             g.d.rows, g.d.splits, g.d.span);
    err = pipe_of(&kernel.pipe, v, &g);
    *gave_way = err && variant_gives_way(kernel.variant, err);
    if (!err)
        err = encode(e, v, &g, kernel);
    if (err)
        vk_enc_drop(e);
    return err;
}
