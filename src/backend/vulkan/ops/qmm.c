#include "backend/vulkan/ops/qmm.h"

#include "backend/vulkan/ops/epilogue.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/matmul.h"
#include "backend/vulkan/ops/qmm_batch.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"

/* One product on its way to the device. */
struct product {
    const struct exec *x;
    const struct vk_epilogue *epilogue; /* NULL: none */
    enum dtype dtype;
    struct qmm_plan plan;
    struct vk_enc *enc;
};

enum err qmm_batch_encode(struct vk_enc *e, uint64_t *addr, const struct qmm_plan *p)
{
    struct qmm_batch_args args = { .ndim = (uint32_t)p->n_dims,
                                   .n_x = (uint32_t)p->n_x,
                                   .n_w = (uint32_t)p->n_w };
    enum err err = ERR_OK;

    *addr = 0;
    if (!p->is_gather && p->n_batch == 1)
        return ERR_OK;
    if (p->is_gather) {
        TRY(vk_enc_read(e, &args.lhs, p->in[QMM_LHS]));
        TRY(vk_enc_read(e, &args.rhs, p->in[QMM_RHS]));
    }
    for (int d = 0; d < p->n_dims; d++) {
        int from = p->n_dims - 1 - d;
        args.dim[d] = (uint32_t)p->dim[from];
        for (int i = 0; i < QMM_STRIDED; i++)
            args.stride[i * WALK_MAX + d] = p->stride[i][from];
    }
    TRY(vk_enc_args(e, addr, &args, sizeof args, .n_addr = 2));
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

/* ---- tiles whose packed side is unpacked on its way to shared memory ---- */

static enum err run_tiled(struct product *p)
{
    const struct qmm_plan *plan = &p->plan;
    struct qmm_args args = { .ld_a = (int32_t)plan->ld,
                             .m = (uint32_t)plan->m,
                             .n = (uint32_t)plan->n,
                             .k = (uint32_t)plan->k,
                             .n_batch = (uint32_t)plan->n_batch,
                             .splits = 1,
                             .k_split = (uint32_t)plan->k,
                             .band = BAND };
    uint32_t flags = FLAG_A_ALONG_K | (plan->transpose ? FLAG_B_ALONG_K : 0) |
                     (is_wide(p) ? FLAG_A_WIDE : 0) | (p->epilogue ? FLAG_PROGRAM : 0);
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
    TRY(vk_epilogue_pipe(
        &pipe, p->epilogue,
        &(struct kern_want){ KERN_QMM_TILED, (int)p->dtype, spec, ARRAY_LEN(spec) }));
    if (plan->k) {
        TRY(qmm_batch_encode(p->enc, &args.batch, plan));
        TRY(vk_enc_read(p->enc, &args.a, plan->in[QMM_X]));
        TRY(vk_enc_read(p->enc, &args.w, plan->in[QMM_W]));
        TRY(vk_enc_read(p->enc, &args.scales, plan->in[QMM_SCALES]));
        if (plan->in[QMM_BIASES])
            TRY(vk_enc_read(p->enc, &args.biases, plan->in[QMM_BIASES]));
    }
    TRY(vk_epilogue_encode(p->enc, &args.epilogue, p->epilogue));
    TRY(vk_enc_write(p->enc, &args.dst, p->x->out[0]));
    TRY(vk_enc_dispatch(p->enc, (struct vk_kernel){ pipe, VARIANT_QMM_TILED }, &args, sizeof args,
                        launch_grid((uint64_t)groups)));
out:
    return err;
}

/* ---- few rows ---- */

/* *done: the product is encoded. */
static enum err run_few(struct product *p, bool *done)
{
    const struct qmm_plan *plan = &p->plan;
    struct vk_qmv v = { .q = plan->q,
                        .x = plan->in[QMM_X],
                        .m = plan->m,
                        .k = plan->k,
                        .ld = plan->ld,
                        .n_sets = 1,
                        .set = { { plan->in[QMM_W], plan->in[QMM_SCALES], plan->in[QMM_BIASES],
                                   p->x->out[0], plan->n } },
                        .epilogue = p->epilogue,
                        .plan = plan };
    bool gave_way = false;
    enum err err = ERR_OK;

    *done = plan->transpose && vk_qmv_fits(&v);
    if (!*done)
        return ERR_OK;
    TRY(arr_alloc(p->x->out[0], p->x->strm->be));
    err = vk_qmv_encode(p->enc, &v, &gave_way);
    *done = !gave_way;
    if (gave_way)
        arr_give_back(p->x->out[0]);
out:
    return gave_way ? ERR_OK : err;
}

/* ---- many rows: the matrix is unpacked once, then multiplied like any other ---- */

/* Fewer rows do not pay for writing the numbers and reading them again. */
#define UNPACK_ROWS 128
#define UNPACK_ROWS_COOP (VK_QMV_ROWS + 1)
/* Numbers of a matrix that is unpacked as a whole take at most this many bytes. */
#define UNPACK_BYTES ((int64_t)1 << 30)

static bool is_dense(const struct arr *a)
{
    return !a || a->flags & LAYOUT_ROW;
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    const struct product *p = job;
    const struct qmm_plan *plan = &p->plan;
    bool coop = gate_on(GATE_VK_COOPMAT) && (kern_is_usable(KERN_GEMM_COOP, (int)p->dtype) ||
                                             kern_is_usable(KERN_GEMM_COOP_BF16, (int)p->dtype));
    int64_t bytes = plan->n * plan->k * (int64_t)dt_size(p->dtype);

    if (id == VARIANT_QMM_TILED)
        return VARIANT_FITS;
    if (plan->is_gather || plan->n_batch > 1 || !is_dense(plan->in[QMM_W]) ||
        !is_dense(plan->in[QMM_SCALES]) || !is_dense(plan->in[QMM_BIASES]))
        return VARIANT_LAYOUT;
    return plan->m >= (coop ? UNPACK_ROWS_COOP : UNPACK_ROWS) && plan->k && bytes <= UNPACK_BYTES
               ? VARIANT_FITS
               : VARIANT_SIZE;
}

/* A leaf with the bytes of a, rows and columns at other distances. */
static enum err view_of(struct arr **out, const struct arr *a, const int64_t dims[2],
                        const int64_t strides[2])
{
    struct shp shape = { 2, { (int32_t)dims[0], (int32_t)dims[1] } };
    enum err err = arr_new_empty(out, &shape, (enum dtype)a->dtype);

    if (!err)
        arr_share(*out, a, strides, shp_layout_flags(&shape, strides, a->data_size), a->data_size,
                  0);
    return err;
}

/* w as numbers, in the rows it has. */
static enum err unpack(struct arr **out, struct product *p)
{
    const struct qmm_plan *plan = &p->plan;
    struct shp shape = { 2, { (int32_t)plan->k, (int32_t)plan->n } };
    enum err err;

    if (plan->transpose)
        shape = (struct shp){ 2, { (int32_t)plan->n, (int32_t)plan->k } };
    TRY(arr_new_empty(out, &shape, p->dtype));
    TRY(arr_alloc(*out, plan->strm->be));
    TRY(vk_dequantize_encode(p->enc, &(struct vk_dequantize){ .q = plan->q,
                                                              .w = plan->in[QMM_W],
                                                              .scales = plan->in[QMM_SCALES],
                                                              .biases = plan->in[QMM_BIASES],
                                                              .out = *out,
                                                              .variant = VARIANT_QMM_UNPACKED }));
out:
    return err;
}

static enum err run_unpacked(struct product *p)
{
    static const struct node matmul = { .op = OP_MATMUL };
    const struct qmm_plan *plan = &p->plan;
    struct shp shape = { 2, { (int32_t)plan->m, (int32_t)plan->n } }, whole;
    struct arr *numbers = NULL, *in[2] = { NULL, NULL }, *out = NULL;
    int64_t strides[SHP_MAX];
    enum err err;

    TRY(unpack(&numbers, p));
    TRY(view_of(&in[0], plan->in[QMM_X], (int64_t[]){ plan->m, plan->k },
                (int64_t[]){ plan->ld, 1 }));
    TRY(view_of(&in[1], numbers, (int64_t[]){ plan->k, plan->n },
                plan->transpose ? (int64_t[]){ 1, plan->k } : (int64_t[]){ plan->n, 1 }));
    TRY(arr_new_empty(&out, &shape, p->dtype));
    struct exec product = {
        .strm = plan->strm, .node = &matmul, .in = in, .out = &out, .n_in = 2, .n_out = 1
    };
    TRY(vk_matmul_with(&product, p->epilogue));
    arr_shape(&whole, p->x->out[0]);
    shp_row_strides(strides, &whole);
    arr_share(p->x->out[0], out, strides, shp_layout_flags(&whole, strides, out->data_size),
              out->data_size, 0);
    TRY(plan->strm->be->hold(plan->strm, &numbers->buf, 1));
out:
    arr_unref(&numbers);
    arr_unref(&in[0]);
    arr_unref(&in[1]);
    arr_unref(&out);
    return err;
}

/* ---- the choice ---- */

static void describe(char *text, size_t size, const void *data)
{
    const struct product *p = data;

    snprintf(text, size, "%s, %lld products of %lld x %lld x %lld, %d bits, mode %d",
             dt_name(p->dtype), (long long)p->plan.n_batch, (long long)p->plan.m,
             (long long)p->plan.n, (long long)p->plan.k, p->plan.q.bits, p->plan.q.mode);
}

static const struct variant_table variants = {
    VARIANT_QMM_UNPACKED, VARIANT_QMM_TILED, judge, NULL, describe, "m x n x k x batch"
};

static enum err run_many(struct product *p)
{
    const struct qmm_plan *q = &p->plan;
    struct vk_kernel kernel;
    enum err err;

    TRY(variant_pick(&kernel, &variants, p,
                     (int64_t[VARIANT_SIZES]){ q->m, q->n, q->k, q->n_batch }));
    if (kernel.variant == VARIANT_QMM_UNPACKED)
        return run_unpacked(p);
    TRY(arr_alloc(p->x->out[0], p->x->strm->be));
    TRY(run_tiled(p));
out:
    return err;
}

enum err vk_quantized_matmul_with(const struct exec *x, const struct vk_epilogue *epilogue)
{
    struct product p = { .x = x, .epilogue = epilogue, .dtype = (enum dtype)x->out[0]->dtype };
    bool done;
    enum err err;

    if (!x->out[0]->size)
        return arr_alloc(x->out[0], x->strm->be);
    TRY(qmm_plan_init(&p.plan, x));
    TRY(vk_enc_get(&p.enc, x->strm));
    TRY(run_few(&p, &done));
    if (!done)
        TRY(run_many(&p));
    TRY(qmm_plan_hold(&p.plan));
out:
    qmm_plan_fini(&p.plan);
    return err;
}

enum err vk_quantized_matmul(const struct exec *x)
{
    return vk_quantized_matmul_with(x, NULL);
}
