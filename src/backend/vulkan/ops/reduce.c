#include "backend/vulkan/ops/reduce.h"

#include <stdio.h>

#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"

/* Loads of a lane that are in flight together: one round of the kernels' loops. */
#define LOADS_IN_FLIGHT 4

/* Loads of a lane when there are rows enough; and the lanes below which fewer loads are better.
 * Measured on an H200 in TB/s, rows of 8192: 4 loads 3.90, 16 loads 4.01; rows of 64: 4 loads 3.43,
 * 8 loads 2.88. */
#define LOADS_PER_LANE 16
#define MIN_LANES 8

/* Runs of consecutive elements below this are walked element by element. */
#define MIN_RUN_BYTES 64

/* Lanes along the kept axis in one workgroup: 512 bytes in a row when each loads 16. */
#define MAX_LOG2_COLS 5

/* Slices that their last workgroup joins. Every output has a counter, in memory that the host sets;
 * one subgroup reads the parts, some for each lane; and a lane makes its loads one by one, so that
 * of many two dispatches are faster. argmax of 151,936 bf16 on an H200, in microseconds with
 * timestamps: 75 slices 6.7, and 11.8 with two dispatches. */
#define MAX_JOINED 64
#define MAX_PARTS_PER_LANE 8
#define MAX_LOADS_JOINED 4

/* llvmpipe ends all loops of an invocation after 65,535 trips in total, without an error. */
#define MAX_TRIPS 30000

/* One reduction with everything decided. */
struct job {
    const struct vk_reduction *r;
    struct vk_kernel kernel; /* without a pipeline */
    bool is_wide;            /* 16-byte loads */
    uint64_t in_addr;
    uint32_t workgroup;
    uint32_t held;   /* elements of one load */
    int lane;        /* axis of plan->kept that lanes follow, -1 in rows */
    bool joins;      /* the last workgroup of an output joins its slices */
    uint64_t groups; /* workgroups of one slice */
    struct reduce_args args;
};

static uint32_t elements_per_16(const struct vk_reduction *r)
{
    return 16 / (uint32_t)dt_size((enum dtype)r->in->dtype);
}

/* ---- variants ---- */

/* Rows are aligned by the kernel. */
static enum variant_reason judge_rows_wide(const struct vk_reduction *r)
{
    const struct reduce_axes *red = &r->plan->red;
    int last = red->n - 1;

    if (last < 0 || red->in[last] != 1)
        return VARIANT_LAYOUT;
    if (red->n > 1 && red->dim[last] * (int64_t)dt_size((enum dtype)r->in->dtype) < MIN_RUN_BYTES)
        return VARIANT_SIZE;
    return VARIANT_FITS;
}

static bool all_multiples(const struct reduce_axes *a, int but, int64_t of)
{
    for (int i = 0; i < a->n; i++)
        if (i != but && a->in[i] % of)
            return false;
    return true;
}

static enum variant_reason judge_cols_wide(const struct vk_reduction *r, uint64_t in_addr)
{
    const struct reduce_plan *p = r->plan;
    uint32_t per16 = elements_per_16(r);
    int lane = p->lane;

    if (p->kept.in[lane] != 1 || p->kept.dim[lane] % per16 || in_addr % 16)
        return VARIANT_LAYOUT;
    if ((uint64_t)launch_workgroup() * per16 * r->part_bytes > vk_limits_get()->shared_memory)
        return VARIANT_DEVICE;
    return all_multiples(&p->kept, lane, per16) && all_multiples(&p->red, -1, per16)
               ? VARIANT_FITS
               : VARIANT_LAYOUT;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct vk_reduction *r = ((const struct job *)data)->r;
    const struct reduce_plan *p = r->plan;

    snprintf(text, size, "%s, %s, %llu outputs of %llu elements, %d kept and %d reduced axes",
             dt_name((enum dtype)r->in->dtype), p->walk == REDUCE_ROWS ? "rows" : "columns",
             (unsigned long long)p->n_out, (unsigned long long)p->n_red, p->kept.n, p->red.n);
}

static bool is_wide(enum variant_id id)
{
    return id == VARIANT_REDUCE_ROWS_WIDE || id == VARIANT_REDUCE_COLS_WIDE;
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    const struct job *j = job;

    if (!is_wide(id))
        return VARIANT_FITS;
    if (!gate_on(GATE_VK_REDUCE_WIDE))
        return VARIANT_OFF;
    return id == VARIANT_REDUCE_ROWS_WIDE ? judge_rows_wide(j->r)
                                          : judge_cols_wide(j->r, j->in_addr);
}

#define SIZES "outputs x elements of each"
static const struct variant_table variants[] = {
    [REDUCE_ROWS] = { VARIANT_REDUCE_ROWS_WIDE, VARIANT_REDUCE_ROWS, judge, NULL, describe, SIZES },
    [REDUCE_COLS] = { VARIANT_REDUCE_COLS_WIDE, VARIANT_REDUCE_COLS, judge, NULL, describe, SIZES },
};

/* ---- geometry ---- */

/* Of one round of the main loop; a walk has two loops, and both count once when they end. */
static uint64_t trips_per_round(const struct reduce_axes *red)
{
    return 1 + (red->n > 1 ? ((uint64_t)red->n + 2) * LOADS_IN_FLIGHT : 0);
}

/* Cuts the reduced elements into slices of a multiple of `grain` elements. */
static void set_slices(struct job *j, uint64_t slices, uint64_t grain)
{
    uint64_t n_red = j->args.n_red;
    uint64_t chunk = (uint64_t)ceil_div((int64_t)n_red, (int64_t)MAX(slices, 1u));

    j->args.chunk = (uint64_t)ceil_div((int64_t)chunk, (int64_t)grain) * grain;
    j->args.slices = n_red ? (uint32_t)ceil_div((int64_t)n_red, (int64_t)j->args.chunk) : 1;
}

/* Slices that occupy the device without making the loads of a lane too few, and that keep its trips
 * below the limit. `rounds`: trips of the main loop without slices. */
static uint64_t wanted_slices(const struct job *j, uint64_t rounds)
{
    /* Small loads need more lanes for the same bytes in flight: a column sum of 8191 x 8191 on an
     * H200 reaches 2.82 TB/s with 4 groups per unit, 3.44 with 16. */
    uint64_t busy = launch_busy_groups() * (j->is_wide ? 1 : 3);
    uint64_t wanted = j->groups < busy ? MIN(busy / j->groups, rounds / 2) : 1;
    uint64_t trips = rounds * trips_per_round(&j->r->plan->red);

    return MAX(wanted, trips / MAX_TRIPS + 1);
}

/* Slices for the last workgroup to join, or 0. What would not be cut for two dispatches is not cut
 * for one either. */
static uint64_t joined_slices(const struct job *j, uint64_t loads, uint64_t slices)
{
    uint64_t n_out = j->r->plan->n_out, each = (loads + j->workgroup - 1) / j->workgroup;
    uint64_t most = MIN(launch_busy_groups() / MAX(n_out, 1u),
                        (uint64_t)vk_limits_get()->min_subgroup * MAX_PARTS_PER_LANE);

    if (!gate_on(GATE_VK_REDUCE_JOIN) || !j->r->out || n_out > MAX_JOINED || slices < 2 ||
        1u << j->args.log2_team != j->workgroup || each > most * MAX_LOADS_JOINED)
        return 0;
    return MIN(each, most);
}

static void plan_rows(struct job *j)
{
    const struct reduce_plan *p = j->r->plan;
    uint64_t loads = (p->n_red + j->held - 1) / j->held;
    uint64_t lanes = MAX((loads + LOADS_PER_LANE - 1) / LOADS_PER_LANE,
                         MIN((loads + LOADS_IN_FLIGHT - 1) / LOADS_IN_FLIGHT, MIN_LANES));
    uint32_t max = launch_log2(j->workgroup), log2;
    uint64_t busy = launch_busy_groups() * j->workgroup;

    j->args.run = p->red.n ? (uint32_t)p->red.dim[p->red.n - 1] : 1;
    if (j->is_wide) /* lanes beyond a run would idle */
        max = MIN(max, launch_log2((j->args.run + j->held - 1) / j->held));
    log2 = MIN(launch_log2(lanes), max);
    while (log2 < max && (1ull << log2) < loads && p->n_out << log2 < busy)
        log2++;
    j->args.log2_team = log2;
    j->groups = (uint64_t)ceil_div((int64_t)p->n_out, j->workgroup >> log2);
    uint64_t rounds = (loads >> log2) / LOADS_IN_FLIGHT + 1;
    if (j->is_wide && p->red.n > 1) /* every run may end with a round that is not full */
        rounds += p->n_red / j->args.run;
    uint64_t slices = wanted_slices(j, rounds), joined = joined_slices(j, loads, slices);
    set_slices(j, joined ? joined : slices, 64);
    j->joins = joined && j->args.slices > 1;
}

static void plan_cols(struct job *j)
{
    const struct reduce_plan *p = j->r->plan;
    uint64_t units = (uint64_t)p->kept.dim[j->lane] / j->held;
    uint32_t all = launch_log2(j->workgroup), rows;
    uint32_t cols = MIN(launch_log2(units), MIN(MAX_LOG2_COLS, all));

    /* As many rows as have enough loads to do; the rest of the workgroup goes along the lanes. */
    rows = MIN(all - cols, launch_log2(p->n_red / LOADS_IN_FLIGHT));
    cols = MIN(all - rows, launch_log2(units));
    rows = all - cols;
    j->args.run = (uint32_t)units;
    j->args.log2_team = cols;
    j->args.n_outer = (uint32_t)(p->n_out / (uint64_t)p->kept.dim[j->lane]);
    j->groups = (uint64_t)ceil_div((int64_t)units, 1LL << cols) * j->args.n_outer;
    set_slices(j, wanted_slices(j, (p->n_red >> rows) / LOADS_IN_FLIGHT + 1), 1ull << rows);
}

/* ---- arguments ---- */

/* The kept axes without the one that lanes follow. */
static void outer_axes(struct reduce_axes *a, const struct job *j)
{
    const struct reduce_axes *kept = &j->r->plan->kept;

    a->n = 0;
    for (int i = 0; i < kept->n; i++) {
        if (i == j->lane)
            continue;
        a->dim[a->n] = kept->dim[i];
        a->in[a->n] = kept->in[i];
        a->out[a->n] = kept->out[i];
        a->n++;
    }
}

static enum err set_axes(struct job *j, struct vk_enc *e)
{
    const struct reduce_axes *red = &j->r->plan->red;
    struct reduce_args *a = &j->args;
    struct walk_args walks[3];
    struct reduce_axes kept;
    uint64_t addr;

    outer_axes(&kept, j);
    if (kept.n == 1) {
        a->kept_stride = kept.in[0];
        a->kept_out_stride = kept.out[0];
    }
    if (red->n == 1)
        a->red_stride = red->in[0];
    if (kept.n <= 1 && red->n <= 1)
        return ERR_OK;
    launch_walk(&walks[0], kept.dim, kept.in, kept.n);
    launch_walk(&walks[1], kept.dim, kept.out, kept.n);
    launch_walk(&walks[2], red->dim, red->in, red->n);
    enum err err = vk_enc_args(e, &addr, walks, sizeof walks);
    a->kept_walk = kept.n > 1 ? addr : 0;
    a->red_walk = red->n > 1 ? addr + 2 * sizeof walks[0] : 0;
    return err;
}

static enum err plan_job(struct job *j, struct vk_enc *e, const struct vk_reduction *r)
{
    const struct reduce_plan *p = r->plan;

    *j = (struct job){ .r = r, .workgroup = launch_workgroup(), .lane = -1, .held = 1 };
    enum err err = vk_enc_read(e, &j->in_addr, r->in);
    if (err)
        return err;
    j->in_addr += (uint64_t)(p->offset * (int64_t)dt_size((enum dtype)r->in->dtype));
    err = variant_pick(&j->kernel, &variants[p->walk], j,
                       (int64_t[VARIANT_SIZES]){ (int64_t)p->n_out, (int64_t)p->n_red });
    if (err)
        return err;
    j->is_wide = is_wide(j->kernel.variant);
    j->args.in_addr = j->in_addr;
    j->args.n_out = p->n_out;
    j->args.n_red = p->n_red;
    if (j->is_wide)
        j->held = elements_per_16(r);
    if (p->walk == REDUCE_ROWS) {
        plan_rows(j);
    } else {
        j->lane = p->lane;
        j->args.lane_stride = p->kept.in[p->lane];
        j->args.lane_out_stride = p->kept.out[p->lane];
        plan_cols(j);
    }
    return set_axes(j, e);
}

/* ---- encoding ---- */

struct stage {
    enum kern_id kern;
    uint32_t wide, out_parts, in_parts, joins;
    uint32_t shared_parts;
    uint64_t groups;
};

static enum err dispatch(struct vk_enc *e, const struct job *j, const struct reduce_args *args,
                         const struct stage *s)
{
    bool walks = j->r->plan->red.n > 1 && !s->in_parts;
    uint32_t spec[] = {
        j->workgroup,    1,     1,       j->r->kind, s->wide, s->out_parts, s->in_parts,
        s->shared_parts, walks, s->joins
    };
    const struct vk_pipe *pipe;
    enum err err;

    TRY(kern_pipe(&pipe, s->kern, j->r->in->dtype, spec, ARRAY_LEN(spec)));
    TRY(vk_enc_dispatch(e, (struct vk_kernel){ pipe, j->kernel.variant }, args, sizeof *args,
                        launch_grid(s->groups)));
out:
    return err;
}

/* Where a stage writes: the output, or parts in scratch memory. */
static enum err bind_out(struct vk_enc *e, const struct job *j, uint64_t *addr, uint64_t parts)
{
    if (!parts)
        return vk_enc_write(e, addr, j->r->out);
    return vk_enc_scratch(e, addr, parts * j->r->part_bytes);
}

/* Where the slices of an output meet. */
static enum err bind_parts(struct vk_enc *e, struct job *j)
{
    size_t n_out = j->args.n_out;
    enum err err;

    TRY(launch_counters(e, &j->args.counters, n_out));
    TRY(vk_enc_scratch(e, &j->args.parts, n_out * j->args.slices * j->r->part_bytes));
out:
    return err;
}

static enum err first_stage(struct vk_enc *e, struct job *j)
{
    bool rows = j->r->plan->walk == REDUCE_ROWS;
    bool parts = !j->r->out || (j->args.slices > 1 && !j->joins);
    struct stage s = { .kern = rows ? j->r->row : j->r->col,
                       .wide = j->is_wide,
                       .out_parts = parts,
                       .joins = j->joins,
                       .shared_parts = j->workgroup * (rows ? 1 : j->held) };
    enum err err;

    TRY(bind_out(e, j, &j->args.out_addr, parts ? j->args.slices * j->args.n_out : 0));
    if (j->joins)
        TRY(bind_parts(e, j));
    s.groups = rows ? (uint64_t)ceil_div((int64_t)(j->args.n_out * j->args.slices),
                                         j->workgroup >> j->args.log2_team)
                    : j->groups * j->args.slices;
    TRY(dispatch(e, j, &j->args, &s));
out:
    return err;
}

/* Joins the slices: the parts are a matrix of slices times outputs. As many rows of a workgroup go
 * along the slices as leave two rounds of loads to each. */
static enum err second_stage(struct vk_enc *e, struct job *j, uint64_t *parts)
{
    uint64_t n_out = j->args.n_out, slices = j->args.slices;
    uint32_t all = launch_log2(j->workgroup);
    uint32_t cols = all - MIN(all, launch_log2(slices / (2 * LOADS_IN_FLIGHT)));
    struct reduce_args args = { .in_addr = j->args.out_addr,
                                .n_out = n_out,
                                .n_red = slices,
                                .red_stride = (int64_t)n_out,
                                .lane_stride = 1,
                                .lane_out_stride = 1,
                                .chunk = slices,
                                .slices = 1,
                                .run = (uint32_t)n_out,
                                .n_outer = 1,
                                .log2_team = cols };
    enum err err;

    vk_enc_scratch_read(e, args.in_addr, n_out * slices * j->r->part_bytes);
    TRY(bind_out(e, j, &args.out_addr, j->r->out ? 0 : n_out));
    TRY(dispatch(e, j, &args,
                 &(struct stage){ .kern = j->r->col,
                                  .out_parts = !j->r->out,
                                  .in_parts = 1,
                                  .shared_parts = j->workgroup,
                                  .groups = (uint64_t)ceil_div((int64_t)n_out, 1LL << cols) }));
    if (parts)
        *parts = args.out_addr;
out:
    return err;
}

enum err vk_reduction_encode(struct vk_enc *e, const struct vk_reduction *r, uint64_t *parts)
{
    struct job j;
    enum err err;

    do {
        TRY(plan_job(&j, e, r));
        err = first_stage(e, &j);
        if (err)
            vk_enc_drop(e);
    } while (err && variant_gives_way(j.kernel.variant, err));
    if (err)
        goto out;
    if (parts)
        *parts = j.args.out_addr;
    if (j.args.slices > 1 && !j.joins)
        TRY(second_stage(e, &j, parts));
out:
    return err;
}

/* ---- the family ---- */

enum err vk_reduce(const struct exec *x)
{
    const struct reduce_params *params = x->node->params;
    enum reduce_kind kind = (enum reduce_kind)params->kind;
    struct arr *in = x->in[0], *out = x->out[0];
    enum dtype t = (enum dtype)in->dtype;
    struct reduce_plan plan;
    struct vk_enc *e;
    enum err err;

    if (out->dtype != op_reduce_dtype(kind, t) || !kern_is_usable(KERN_REDUCE_ROW, t))
        return err_set(ERR_UNSUPPORTED, "[reduce] no Vulkan kernel from %s to %s", dt_name(t),
                       dt_name((enum dtype)out->dtype));
    TRY(arr_alloc(out, x->strm->be));
    if (!out->size)
        goto out;
    reduce_plan_make(&plan, in, params->axis, params->n, reduce_kind_order(kind));
    TRY(vk_enc_get(&e, x->strm));
    TRY(vk_reduction_encode(e,
                            &(struct vk_reduction){ .row = KERN_REDUCE_ROW,
                                                    .col = KERN_REDUCE_COL,
                                                    .kind = (uint32_t)kind,
                                                    .part_bytes = dt_size(t) == 8 ? 8 : 4,
                                                    .plan = &plan,
                                                    .in = in,
                                                    .out = out },
                            NULL));
out:
    return err;
}
