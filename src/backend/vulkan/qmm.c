#include "backend/vulkan/qmm.h"

#include "backend/common/qmm_plan.h"
#include "backend/vulkan/families.h"
#include "backend/vulkan/launch.h"

/* As in kernels/gemm.glsl. */
enum { EPILOGUE_PLAIN, EPILOGUE_SCALED, EPILOGUE_PARTIAL };
enum { FLAG_A_ALONG_K = 1, FLAG_B_ALONG_K = 2, FLAG_A_WIDE = 4 };

/* Rows of tiles that are walked together, as in matmul.c. */
#define BAND 8

/* One product on its way to the device. */
struct product {
    const struct exec *x;
    enum dtype dtype;
    struct qmm_plan plan;
    struct vk_enc *enc;
    uint64_t batch; /* address of qmm_batch_args, or 0 */
};

static enum err batch_args(struct product *p)
{
    const struct qmm_plan *plan = &p->plan;
    struct qmm_batch_args args = { .ndim = (uint32_t)plan->n_dims,
                                   .n_x = (uint32_t)plan->n_x,
                                   .n_w = (uint32_t)plan->n_w };
    enum err err = ERR_OK;

    if (!plan->is_gather && plan->n_batch == 1)
        return ERR_OK;
    if (plan->is_gather) {
        TRY(vk_enc_read(p->enc, &args.lhs, plan->in[QMM_LHS]));
        TRY(vk_enc_read(p->enc, &args.rhs, plan->in[QMM_RHS]));
    }
    for (int d = 0; d < plan->n_dims; d++) {
        int from = plan->n_dims - 1 - d;
        args.dim[d] = (uint32_t)plan->dim[from];
        for (int i = 0; i < QMM_STRIDED; i++)
            args.stride[i * WALK_MAX + d] = plan->stride[i][from];
    }
    TRY(vk_enc_args(p->enc, &p->batch, &args, sizeof args));
out:
    return err;
}

/* Rows of x can be read four elements at a time. */
static bool is_wide(const struct product *p)
{
    int64_t item = (int64_t)dt_size(p->dtype), bytes = 4 * item;
    bool wide = p->plan.in[QMM_X]->offset % bytes == 0 && p->plan.ld * item % bytes == 0;

    for (int d = 0; d < p->plan.n_dims; d++)
        wide &= p->plan.stride[QMM_X][d] * item % bytes == 0;
    return wide;
}

static enum err run_tiled(struct product *p)
{
    const struct qmm_plan *plan = &p->plan;
    struct qmm_args args = { .batch = p->batch,
                             .ld_a = (int32_t)plan->ld,
                             .m = (uint32_t)plan->m,
                             .n = (uint32_t)plan->n,
                             .k = (uint32_t)plan->k,
                             .n_batch = (uint32_t)plan->n_batch,
                             .splits = 1,
                             .k_split = (uint32_t)plan->k,
                             .band = BAND };
    uint32_t flags =
        FLAG_A_ALONG_K | (plan->transpose ? FLAG_B_ALONG_K : 0) | (is_wide(p) ? FLAG_A_WIDE : 0);
    const uint32_t tile[5] = { 32, 32, 16, 4, 4 };
    uint32_t threads = tile[0] / tile[3] * (tile[1] / tile[4]);
    uint32_t spec[] = { threads,
                        1,
                        1,
                        tile[0],
                        tile[1],
                        tile[2],
                        tile[3],
                        tile[4],
                        flags,
                        EPILOGUE_PLAIN,
                        (uint32_t)plan->q.mode,
                        (uint32_t)plan->q.bits,
                        (uint32_t)plan->q.group_size };
    int64_t groups = ceil_div(plan->m, tile[0]) * ceil_div(plan->n, tile[1]) * plan->n_batch;
    const struct vk_pipe *pipe;
    enum err err;

    if (groups > UINT32_MAX)
        return err_set(ERR_UNSUPPORTED, "[quantized_matmul] The product is too large.");
    TRY(kern_pipe(&pipe, KERN_QMM_TILED, (int)p->dtype, spec, ARRAY_LEN(spec)));
    if (plan->k) {
        TRY(vk_enc_read(p->enc, &args.a, plan->in[QMM_X]));
        TRY(vk_enc_read(p->enc, &args.w, plan->in[QMM_W]));
        TRY(vk_enc_read(p->enc, &args.scales, plan->in[QMM_SCALES]));
        if (plan->in[QMM_BIASES])
            TRY(vk_enc_read(p->enc, &args.biases, plan->in[QMM_BIASES]));
    }
    TRY(vk_enc_write(p->enc, &args.dst, p->x->out[0]));
    TRY(vk_enc_dispatch(p->enc, pipe, &args, sizeof args, launch_grid((uint64_t)groups)));
out:
    return err;
}

enum err vk_quantized_matmul(const struct exec *x)
{
    struct product p = { .x = x, .dtype = (enum dtype)x->out[0]->dtype };
    enum err err;

    TRY(arr_alloc(x->out[0], x->strm->be));
    if (!x->out[0]->size)
        goto out;
    TRY(qmm_plan_init(&p.plan, x));
    TRY(vk_enc_get(&p.enc, x->strm));
    TRY(batch_args(&p));
    TRY(run_tiled(&p));
    TRY(qmm_plan_hold(&p.plan));
out:
    qmm_plan_fini(&p.plan);
    return err;
}
