#include "backend/vulkan/ops/matmul.h"

#include "backend/common/matmul_plan.h"
#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/epilogue.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/rt/encoder.h"

#define REDUCE_THREADS 256

/* One product on its way to the device. */
struct product {
    const struct exec *x;
    enum dtype dtype;
    float alpha, beta;
    bool is_scaled;
    const struct vk_epilogue *epilogue; /* NULL: none */
    struct mm_plan plan;
    struct mm_layout layout[2];
    struct arr *in[MM_OPERANDS];     /* what the kernels read: an input or its packed copy */
    struct arr *packed[MM_OPERANDS]; /* the copies, owned */
    struct mm_extras extras;
    struct mm_choice choice;
    bool gave_way; /* the choice cannot be run, there is another */
    struct vk_enc *enc;
    uint64_t addr[MM_OPERANDS];
    uint64_t batch; /* address of mm_batch_args, or 0 */
    uint64_t epilogue_args;
};

/* ---- operands ---- */

/* The copy outlives the caller's reference: the work encoded so far reads or writes it. */
static enum err hold(const struct product *p, enum mm_operand i)
{
    return p->x->strm->be->hold(p->x->strm, &p->packed[i]->buf, 1);
}

/* Puts an operand into rows that begin at multiples of 16 bytes. */
static enum err pack(struct product *p, enum mm_operand i)
{
    const struct be *be = p->x->strm->be;
    struct mm_pack how;
    int64_t chunk = 16 / (int64_t)dt_size(p->dtype);
    enum err err;

    mm_plan_pack(&how, &p->plan, i, (int64_t)align_up((size_t)p->plan.side[i].cols, (size_t)chunk));
    TRY(arr_new_empty(&p->packed[i], &how.dst_shape, p->dtype));
    TRY(arr_alloc(p->packed[i], be));
    TRY(be->copy(p->x->strm, &(struct be_copy){ .src = p->in[i],
                                                .dst = p->packed[i],
                                                .shape = &how.shape,
                                                .src_strides = how.src_strides,
                                                .dst_strides = how.dst_strides }));
    p->in[i] = p->packed[i];
    if (i != MM_C)
        p->layout[i] = (struct mm_layout){ .ld = p->plan.side[i].row_stride };
    TRY(hold(p, i));
out:
    return err;
}

static bool fits_i32(int64_t v)
{
    return v >= -INT32_MAX && v <= INT32_MAX;
}

/* Packs what no kernel can read as it lies, then folds the batch. */
static enum err prepare(struct product *p)
{
    const struct mm_side *c = &p->plan.side[MM_C];
    enum err err = ERR_OK;

    for (int i = MM_A; i <= MM_B; i++)
        if (p->plan.k && !mm_side_layout(&p->layout[i], &p->plan.side[i]))
            TRY(pack(p, (enum mm_operand)i));
    if (p->is_scaled && !(fits_i32(c->row_stride) && fits_i32(c->col_stride)))
        TRY(pack(p, MM_C));
    mm_plan_fold(&p->plan);
    for (int i = MM_A; i <= MM_B; i++)
        if (!mm_side_layout(&p->layout[i], &p->plan.side[i]) && p->plan.k)
            TRY(pack(p, (enum mm_operand)i));
out:
    return err;
}

static bool along_k(const struct product *p, enum mm_operand i)
{
    return p->layout[i].by_col == (i == MM_B);
}

/* Elements of the operand along its unit stride. */
static int64_t line_length(const struct product *p, enum mm_operand i)
{
    const struct mm_side *s = &p->plan.side[i];

    return p->layout[i].by_col ? s->rows : s->cols;
}

/* Every line begins at a multiple of `bytes`. Buffers do. */
static bool lines_are_aligned(const struct product *p, enum mm_operand i, int64_t bytes)
{
    int64_t item = (int64_t)dt_size(p->dtype);
    const struct mm_side *s = &p->plan.side[i];

    if (p->in[i]->offset % bytes || p->layout[i].ld * item % bytes)
        return false;
    for (int d = 0; d < p->plan.n_dims; d++)
        if (s->batch[d] * item % bytes)
            return false;
    return true;
}

/* Lines can be read `width` elements at a time without a remainder. */
static bool is_wide(const struct product *p, enum mm_operand i, int64_t width)
{
    int64_t bytes = MIN(16, width * (int64_t)dt_size(p->dtype));

    return line_length(p, i) % width == 0 && lines_are_aligned(p, i, bytes);
}

static bool is_sparse(const struct product *p)
{
    return p->plan.is_segmented || p->plan.block;
}

/* The same of what the kernel reads: a segment of k may begin anywhere. */
static bool reads_wide(const struct product *p, enum mm_operand i, int64_t width)
{
    return is_wide(p, i, width) && !(p->plan.is_segmented && along_k(p, i));
}

static bool is_bool(const struct arr *mask)
{
    return mask && mask->dtype == DT_BOOL;
}

static struct mm_problem problem_of(const struct product *p)
{
    struct mm_problem q = { .dtype = p->dtype,
                            .m = p->plan.m,
                            .n = p->plan.n,
                            .k = p->plan.k,
                            .n_batch = p->plan.n_batch,
                            .is_fixed = p->plan.is_gather || p->plan.is_segmented,
                            .is_sparse = is_sparse(p),
                            .has_factors = p->plan.block && p->extras.in[MM_MASK_A] &&
                                           !is_bool(p->extras.in[MM_MASK_A]),
                            .block = p->plan.block };
    int64_t chunk = 16 / (int64_t)dt_size(p->dtype);

    for (int i = MM_A; i <= MM_B; i++) {
        q.along_k[i] = along_k(p, (enum mm_operand)i);
        q.ld[i] = p->layout[i].ld;
        q.aligned[i] = reads_wide(p, (enum mm_operand)i, chunk);
    }
    return q;
}

/* ---- arguments ---- */

/* Batch dimensions go through memory unless there is only one. Sides in the order of the kernel. */
static enum err batch_args(struct product *p, const enum mm_operand order[2])
{
    const struct mm_plan *plan = &p->plan;
    struct mm_batch_args args = { .ndim = (uint32_t)plan->n_dims };
    enum err err = ERR_OK;

    p->batch = 0;
    if (plan->is_gather ? !plan->k : plan->n_dims <= 1)
        return ERR_OK;
    if (plan->is_gather) {
        TRY(vk_enc_read(p->enc, &args.lhs, p->extras.in[MM_A]));
        TRY(vk_enc_read(p->enc, &args.rhs, p->extras.in[MM_B]));
        args.ndim_b = (uint32_t)plan->n_dims_b;
        args.n_pairs = (uint32_t)plan->n_batch;
        args.n_a = (uint32_t)plan->n_a;
        args.n_b = (uint32_t)plan->n_b;
    }
    for (int d = 0; d < plan->n_dims; d++) {
        int from = plan->n_dims - 1 - d;
        args.dim[d] = (uint32_t)plan->dim[from];
        for (int i = 0; i < 2; i++)
            args.stride[i * WALK_MAX + d] = plan->side[order[i]].batch[from];
        args.stride[2 * WALK_MAX + d] = p->is_scaled ? plan->side[MM_C].batch[from] : 0;
    }
    TRY(vk_enc_args(p->enc, &p->batch, &args, sizeof args, .n_addr = 2));
out:
    return err;
}

static enum err read_extra(struct product *p, uint64_t *addr, int i)
{
    const struct arr *a = p->extras.in[i];

    return a && a->size ? vk_enc_read(p->enc, addr, a) : ERR_OK;
}

/* What counts of a sparse product takes the place of c. */
static enum err sparse_args(struct product *p)
{
    const struct mm_plan *plan = &p->plan;
    uint32_t block = plan->block ? (uint32_t)plan->block : 1;
    struct mm_sparse_args args = { .block = block,
                                   .tiles_m = (uint32_t)ceil_div(plan->m, block),
                                   .tiles_n = (uint32_t)ceil_div(plan->n, block),
                                   .tiles_k = (uint32_t)ceil_div(plan->k, block),
                                   .step = (uint32_t)p->choice.step };
    enum err err;

    if (plan->is_segmented) {
        TRY(read_extra(p, &args.segments, MM_SEGMENTS));
    } else {
        args.has_out = p->extras.in[MM_MASK_OUT] != NULL;
        args.out_is_bool = is_bool(p->extras.in[MM_MASK_OUT]);
        args.has_operands = p->extras.in[MM_MASK_A] != NULL;
        args.operands_are_bool = is_bool(p->extras.in[MM_MASK_A]);
        TRY(read_extra(p, &args.mask_out, MM_MASK_OUT));
        TRY(read_extra(p, &args.mask_a, MM_MASK_A));
        TRY(read_extra(p, &args.mask_b, MM_MASK_B));
    }
    err = vk_enc_args(p->enc, &p->addr[MM_C], &args, sizeof args, .n_addr = 4);
out:
    return err;
}

static int64_t batch_stride(const struct product *p, enum mm_operand i)
{
    return (int)i < p->plan.n_sides && p->plan.n_dims == 1 ? p->plan.side[i].batch[0] : 0;
}

/* Declares what the next dispatch reads; c only where it reads it. */
static enum err read_operands(struct product *p, bool with_c)
{
    int n = with_c ? MM_OPERANDS : MM_C;
    enum err err = ERR_OK;

    for (int i = 0; i < n; i++)
        if (p->plan.k || i == MM_C)
            TRY(vk_enc_read(p->enc, &p->addr[i], p->in[i]));
out:
    return err;
}

static bool reads_c(const struct product *p)
{
    return p->is_scaled && p->beta != 0;
}

/* Kernels number their workgroups with 32 bits. */
static enum err grid_of(struct vk_grid *out, int64_t groups)
{
    if (groups > UINT32_MAX)
        return err_set(ERR_UNSUPPORTED, "[matmul] A product of %lld workgroups is too large.",
                       (long long)groups);
    *out = launch_grid((uint64_t)groups);
    return ERR_OK;
}

/* ---- dispatches ---- */

struct launch {
    const void *args;
    size_t args_size;
    uint32_t flags, vectors; /* vectors: gemv only */
    int64_t groups;
};

static uint32_t epilogue_of(const struct product *p)
{
    if (p->choice.splits > 1)
        return EPILOGUE_PARTIAL;
    return p->is_scaled ? EPILOGUE_SCALED : EPILOGUE_PLAIN;
}

/* The program that the kernel of the product ends with; that of a part of k has none. */
static const struct vk_epilogue *program_of(const struct product *p)
{
    return p->choice.splits > 1 ? NULL : p->epilogue;
}

/* Specialization constants: workgroup size, what the kernel has of its own, flags, epilogue. */
static enum err dispatch(struct product *p, const struct launch *l)
{
    const struct mm_choice *c = &p->choice;
    uint32_t spec[VK_MAX_SPEC] = { c->threads, 1, 1 };
    const struct vk_pipe *pipe;
    struct vk_grid grid;
    int n = 3;
    enum err err;

    if (c->kernel == MM_COOP) {
        spec[n++] = vk_limits_get()->subgroup_size;
        spec[n++] = vk_limits_get()->coopmat_edge;
    }
    for (int i = 0; i < (c->kernel == MM_GEMV ? 2 : c->n_tile); i++)
        spec[n++] = c->tile[i];
    if (c->kernel == MM_GEMV)
        spec[n++] = l->vectors;
    spec[n++] = l->flags | (program_of(p) ? FLAG_PROGRAM : 0);
    spec[n++] = epilogue_of(p);
    if ((err = vk_epilogue_pipe(&pipe, program_of(p),
                                &(struct kern_want){ c->kern, (int)p->dtype, spec, n }))) {
        vk_enc_drop(p->enc);
        p->gave_way = variant_gives_way(c->variant, err);
        goto out;
    }
    TRY(grid_of(&grid, l->groups));
    TRY(vk_enc_dispatch(p->enc, (struct vk_kernel){ pipe, c->variant }, l->args, l->args_size,
                        grid));
out:
    return err;
}

static enum err run_gemm(struct product *p, uint64_t dst)
{
    const struct mm_choice *c = &p->choice;
    const struct mm_plan *plan = &p->plan;
    const struct mm_side *side_c = &plan->side[MM_C];
    int64_t width = c->kernel == MM_COOP ? 8 : 4;
    struct gemm_args args = { .a = p->addr[MM_A],
                              .b = p->addr[MM_B],
                              .c = p->addr[MM_C],
                              .dst = dst,
                              .batch = p->batch,
                              .epilogue = p->epilogue_args,
                              .batch_a = batch_stride(p, MM_A),
                              .batch_b = batch_stride(p, MM_B),
                              .batch_c = batch_stride(p, MM_C),
                              .ld_a = (int32_t)p->layout[MM_A].ld,
                              .ld_b = (int32_t)p->layout[MM_B].ld,
                              .c_row = p->is_scaled ? (int32_t)side_c->row_stride : 0,
                              .c_col = p->is_scaled ? (int32_t)side_c->col_stride : 0,
                              .m = (uint32_t)plan->m,
                              .n = (uint32_t)plan->n,
                              .k = (uint32_t)plan->k,
                              .n_batch = (uint32_t)plan->n_batch,
                              .alpha = p->alpha,
                              .beta = p->beta,
                              .splits = c->splits,
                              .k_split = c->k_split,
                              .band = BAND };
    uint32_t flags = (along_k(p, MM_A) ? FLAG_A_ALONG_K : 0) |
                     (along_k(p, MM_B) ? FLAG_B_ALONG_K : 0) |
                     (reads_wide(p, MM_A, width) ? FLAG_A_WIDE : 0) |
                     (reads_wide(p, MM_B, width) ? FLAG_B_WIDE : 0) |
                     (plan->k % c->step || plan->is_segmented ? FLAG_K_EDGE : 0);

    return dispatch(p, &(struct launch){ .args = &args,
                                         .args_size = sizeof args,
                                         .flags = flags,
                                         .groups = c->groups * c->splits });
}

/* The matrix is b with the rows of a as vectors, or a with the columns of b. */
static enum err run_gemv(struct product *p, uint64_t dst, const enum mm_operand order[2])
{
    const struct mm_choice *c = &p->choice;
    const struct mm_plan *plan = &p->plan;
    enum mm_operand w = order[0], x = order[1];
    const struct mm_side *sx = &plan->side[x], *side_c = &plan->side[MM_C];
    bool by_n = w == MM_B;
    int64_t chunk = 16 / (int64_t)dt_size(p->dtype);
    int32_t c_row = p->is_scaled ? (int32_t)side_c->row_stride : 0;
    int32_t c_col = p->is_scaled ? (int32_t)side_c->col_stride : 0;
    struct gemv_args args = { .w = p->addr[w],
                              .x = p->addr[x],
                              .c = p->addr[MM_C],
                              .dst = dst,
                              .batch = p->batch,
                              .epilogue = p->epilogue_args,
                              .batch_w = batch_stride(p, w),
                              .batch_x = batch_stride(p, x),
                              .batch_c = batch_stride(p, MM_C),
                              .ld_w = (int32_t)p->layout[w].ld,
                              .x_vec = (int32_t)(by_n ? sx->row_stride : sx->col_stride),
                              .x_k = (int32_t)(by_n ? sx->col_stride : sx->row_stride),
                              .c_vec = by_n ? c_row : c_col,
                              .c_row = by_n ? c_col : c_row,
                              .dst_vec = by_n ? (uint32_t)plan->n : 1,
                              .dst_row = by_n ? 1 : (uint32_t)plan->n,
                              .rows = (uint32_t)(by_n ? plan->n : plan->m),
                              .k = (uint32_t)plan->k,
                              .n_batch = (uint32_t)plan->n_batch,
                              .alpha = p->alpha,
                              .beta = p->beta,
                              .splits = c->splits,
                              .k_split = c->k_split };
    bool wide = is_wide(p, w, chunk);
    uint32_t flags = (along_k(p, w) ? FLAG_A_ALONG_K : 0) | (wide ? FLAG_A_WIDE : 0) |
                     (wide && along_k(p, x) && is_wide(p, x, chunk) ? FLAG_B_WIDE : 0) |
                     (by_n ? FLAG_X_BY_ROW : 0);

    return dispatch(p, &(struct launch){ .args = &args,
                                         .args_size = sizeof args,
                                         .flags = flags,
                                         .vectors = (uint32_t)(by_n ? plan->m : plan->n),
                                         .groups = c->groups * c->splits });
}

/* Adds up the parts of a split k. */
static enum err run_reduce(struct product *p, uint64_t parts, size_t parts_size)
{
    const struct mm_plan *plan = &p->plan;
    int64_t size = plan->m * plan->n * plan->n_batch;
    struct splitk_args args = { .parts = parts,
                                .batch = p->batch,
                                .batch_c = batch_stride(p, MM_C),
                                .size = (uint64_t)size,
                                .c_row = p->is_scaled ? (int32_t)plan->side[MM_C].row_stride : 0,
                                .c_col = p->is_scaled ? (int32_t)plan->side[MM_C].col_stride : 0,
                                .m = (uint32_t)plan->m,
                                .n = (uint32_t)plan->n,
                                .splits = p->choice.splits,
                                .alpha = p->alpha,
                                .beta = p->beta };
    uint32_t spec[] = { REDUCE_THREADS, 1, 1, p->epilogue ? FLAG_PROGRAM : 0,
                        p->is_scaled ? EPILOGUE_SCALED : EPILOGUE_PLAIN };
    struct kern_want want = { KERN_SPLITK_REDUCE, (int)p->dtype, spec, ARRAY_LEN(spec) };
    const struct vk_pipe *pipe;
    struct vk_grid grid;
    enum err err;

    TRY(vk_epilogue_pipe(&pipe, p->epilogue, &want));
    TRY(grid_of(&grid, ceil_div(size, 4 * REDUCE_THREADS)));
    vk_enc_scratch_read(p->enc, parts, parts_size);
    if (reads_c(p))
        TRY(vk_enc_read(p->enc, &args.c, p->in[MM_C]));
    TRY(vk_epilogue_encode(p->enc, &args.epilogue, p->epilogue));
    TRY(vk_enc_write(p->enc, &args.dst, p->x->out[0]));
    TRY(vk_enc_dispatch(p->enc, (struct vk_kernel){ pipe, VARIANT_COUNT }, &args, sizeof args,
                        grid));
out:
    return err;
}

static enum err run(struct product *p)
{
    static const enum mm_operand a_first[2] = { MM_A, MM_B }, b_first[2] = { MM_B, MM_A };
    struct mm_problem q = problem_of(p);
    bool is_gemv = p->choice.kernel == MM_GEMV;
    const enum mm_operand *order = is_gemv && mm_vectors_are_a(&q) ? b_first : a_first;
    bool is_split = p->choice.splits > 1;
    size_t part = p->dtype == DT_COMPLEX64 ? 8 : 4;
    size_t parts_size = (size_t)(q.m * q.n * q.n_batch) * part * p->choice.splits;
    uint64_t dst = 0;
    enum err err;

    TRY(vk_enc_get(&p->enc, p->x->strm));
    TRY(batch_args(p, order));
    TRY(read_operands(p, reads_c(p) && !is_split));
    if (is_sparse(p))
        TRY(sparse_args(p));
    TRY(vk_epilogue_encode(p->enc, &p->epilogue_args, program_of(p)));
    if (is_split)
        TRY(vk_enc_scratch(p->enc, &dst, parts_size));
    else
        TRY(vk_enc_write(p->enc, &dst, p->x->out[0]));
    TRY(is_gemv ? run_gemv(p, dst, order) : run_gemm(p, dst));
    if (is_split)
        TRY(run_reduce(p, dst, parts_size));
out:
    return err;
}

/* Chunks of 16 bytes are all that the cooperative kernel reads. */
static enum err pack_for_coop(struct product *p)
{
    enum err err = ERR_OK;

    for (int i = MM_A; i <= MM_B; i++)
        if (!p->packed[i] && !is_wide(p, (enum mm_operand)i, 8))
            TRY(pack(p, (enum mm_operand)i));
out:
    return err;
}

/* A variant that cannot be run leaves the product to the next one. */
static enum err pick_and_run(struct product *p)
{
    struct mm_problem q;
    enum err err;

    do {
        p->gave_way = false;
        q = problem_of(p);
        TRY(mm_pick(&p->choice, &q));
        if (p->choice.kernel == MM_COOP)
            TRY(pack_for_coop(p));
        err = run(p);
    } while (p->gave_way);
out:
    return err;
}

enum err vk_matmul_with(const struct exec *x, const struct vk_epilogue *epilogue)
{
    struct product p = { .x = x,
                         .dtype = (enum dtype)x->out[0]->dtype,
                         .alpha = 1,
                         .epilogue = epilogue,
                         .is_scaled = x->node->op == OP_ADDMM };
    enum err err;

    if (p.is_scaled) {
        const struct addmm_params *params = x->node->params;
        p.alpha = params->alpha;
        p.beta = params->beta;
    }
    TRY(arr_alloc(x->out[0], x->strm->be));
    mm_plan_init(&p.plan, x);
    for (int i = 0; i < p.plan.n_sides; i++)
        p.in[i] = x->in[i];
    TRY(mm_extras_init(&p.extras, &p.plan, x));
    TRY(prepare(&p));
    TRY(pick_and_run(&p));
    for (int i = 0; i < MM_OPERANDS; i++)
        if (p.packed[i])
            TRY(hold(&p, (enum mm_operand)i));
    TRY(mm_extras_hold(&p.extras, x->strm));
out:
    mm_extras_fini(&p.extras);
    for (int i = 0; i < MM_OPERANDS; i++)
        arr_unref(&p.packed[i]);
    return err;
}

enum err vk_matmul(const struct exec *x)
{
    return vk_matmul_with(x, NULL);
}

enum err vk_sparse_mm(const struct exec *x)
{
    return vk_matmul_with(x, NULL);
}
