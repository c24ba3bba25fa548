#include "backend/vulkan/ops/reduce_block.h"

#include "backend/vulkan/ops/launch.h"

/* Subgroups of a workgroup: beginning one costs less than beginning a workgroup. */
#define SUBGROUPS 8

/* The second dispatch joins the slices of an output in one workgroup, whose loops are limited. */
#define MAX_SLICES (1u << 19)

#define CHUNK (REDUCE_BLOCK_LOADS * BLOCK_LANES)
#define WIDTH (REDUCE_BLOCK_COLS * BLOCK_LANES)

/* Which families have such kernels. KERN_COUNT: none. */
static const struct {
    enum kern_id row, row_block, col_block;
} kernels[] = {
    { KERN_REDUCE_ROW, KERN_REDUCE_ROW_BLOCK, KERN_REDUCE_COL_BLOCK },
    { KERN_LOGSUMEXP_ROW, KERN_LOGSUMEXP_ROW_BLOCK, KERN_COUNT },
};

static enum kern_id kernel_of(const struct vk_reduction *r)
{
    bool rows = r->plan->walk == REDUCE_ROWS;

    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        if (kernels[i].row == r->row)
            return rows ? kernels[i].row_block : kernels[i].col_block;
    return KERN_COUNT;
}

/* ---- elements and units ---- */

static int64_t item_size(const struct vk_reduction *r)
{
    return (int64_t)dt_size((enum dtype)r->in->dtype);
}

static int64_t unit_size(const struct vk_reduction *r)
{
    return MAX(item_size(r), 4);
}

static bool is_whole(const struct vk_reduction *r, int64_t elements)
{
    return elements * item_size(r) % unit_size(r) == 0;
}

static int64_t units(const struct vk_reduction *r, int64_t elements)
{
    return elements * item_size(r) / unit_size(r);
}

/* ---- what fits ---- */

static uint64_t slices_of(uint64_t n, uint64_t chunk)
{
    return (n + chunk - 1) / chunk;
}

static enum variant_reason judge_tasks(uint64_t slices, uint64_t per_slice)
{
    if (slices > MAX_SLICES || per_slice > 1u << BLOCK_TASK_BITS ||
        slices * per_slice > 1u << BLOCK_TASK_BITS)
        return VARIANT_SIZE;
    return VARIANT_FITS;
}

static enum variant_reason judge_rows(const struct vk_reduction *r)
{
    const struct reduce_plan *p = r->plan;

    if (p->red.n != 1 || p->red.in[0] != 1 || p->kept.n > 1 || !is_whole(r, p->red.dim[0]))
        return VARIANT_LAYOUT;
    if (p->kept.n && !is_whole(r, p->kept.in[0]))
        return VARIANT_LAYOUT;
    uint64_t n = (uint64_t)units(r, p->red.dim[0]);
    return n < CHUNK || n > INT32_MAX ? VARIANT_SIZE : judge_tasks(slices_of(n, CHUNK), p->n_out);
}

/* The kept axis that lanes do not follow; -1 if there is none. */
static int outer_axis(const struct reduce_plan *p)
{
    return p->kept.n == 2 ? 1 - p->lane : -1;
}

static enum variant_reason judge_cols(const struct vk_reduction *r)
{
    const struct reduce_plan *p = r->plan;
    const struct reduce_axes *kept = &p->kept;
    int outer = outer_axis(p);

    if (p->red.n != 1 || kept->n > 2 || kept->in[p->lane] != 1 || kept->out[p->lane] != 1)
        return VARIANT_LAYOUT;
    if (!is_whole(r, kept->dim[p->lane]) || !is_whole(r, p->red.in[0]) ||
        (outer >= 0 && !is_whole(r, kept->in[outer])))
        return VARIANT_LAYOUT;
    uint64_t columns = (uint64_t)units(r, kept->dim[p->lane]), n = p->n_red;
    if (columns < WIDTH || columns > INT32_MAX || n < REDUCE_BLOCK_ROWS || n > INT32_MAX)
        return VARIANT_SIZE;
    uint64_t blocks = slices_of(columns, WIDTH) * (outer < 0 ? 1 : (uint64_t)kept->dim[outer]);
    return judge_tasks(slices_of(n, REDUCE_BLOCK_ROWS), blocks);
}

enum variant_reason reduce_block_judge(const struct vk_reduction *r, uint64_t in_addr)
{
    const struct reduce_plan *p = r->plan;
    enum kern_id kern = kernel_of(r);

    if (launch_block_lanes() != BLOCK_LANES)
        return VARIANT_DEVICE;
    if (kern == KERN_COUNT || !kern_is_usable(kern, r->in->dtype))
        return VARIANT_DTYPE;
    if (in_addr % (uint64_t)unit_size(r))
        return VARIANT_LAYOUT;
    if (!launch_block_pays(p->n_out * p->n_red * (uint64_t)item_size(r)))
        return VARIANT_SIZE;
    return p->walk == REDUCE_ROWS ? judge_rows(r) : judge_cols(r);
}

/* ---- the dispatch ---- */

static void plan_cols(struct reduce_block_args *a, const struct vk_reduction *r)
{
    const struct reduce_plan *p = r->plan;
    int outer = outer_axis(p);

    a->columns = (uint32_t)units(r, p->kept.dim[p->lane]);
    a->n_red = (uint32_t)p->n_red;
    a->red_stride = units(r, p->red.in[0]);
    a->slices = (uint32_t)slices_of(a->n_red, REDUCE_BLOCK_ROWS);
    a->n_tasks = (uint32_t)slices_of(a->columns, WIDTH) * a->slices;
    if (outer >= 0) {
        a->kept_stride = units(r, p->kept.in[outer]);
        a->kept_out_stride = (uint32_t)p->kept.out[outer];
        a->n_tasks *= (uint32_t)p->kept.dim[outer];
    }
}

static void plan_rows(struct reduce_block_args *a, const struct vk_reduction *r)
{
    const struct reduce_plan *p = r->plan;

    a->n_red = (uint32_t)units(r, p->red.dim[0]);
    a->kept_stride = p->kept.n ? units(r, p->kept.in[0]) : 0;
    a->slices = (uint32_t)slices_of(a->n_red, CHUNK);
    a->n_tasks = (uint32_t)p->n_out * a->slices;
}

void reduce_block_plan(struct reduce_block_args *a, const struct vk_reduction *r, uint64_t in_addr)
{
    *a = (struct reduce_block_args){ .in_addr = in_addr, .n_out = r->plan->n_out };
    launch_block_digits(a->digit);
    if (r->plan->walk == REDUCE_ROWS)
        plan_rows(a, r);
    else
        plan_cols(a, r);
}

enum err reduce_block_dispatch(struct vk_enc *e, const struct vk_reduction *r,
                               const struct reduce_block_args *a, bool out_parts)
{
    uint32_t spec[] = { SUBGROUPS * BLOCK_LANES, 1, 1, r->kind, 0, out_parts };
    const struct vk_pipe *pipe;
    enum err err;

    TRY(kern_pipe(&pipe, kernel_of(r), r->in->dtype, spec, ARRAY_LEN(spec)));
    TRY(vk_enc_dispatch(e, pipe, a, sizeof *a, launch_grid(slices_of(a->n_tasks, SUBGROUPS))));
out:
    return err;
}
