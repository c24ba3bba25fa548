/* Products with packed matrices: blocks of the matrix are expanded to float32 and multiplied by
 * OpenBLAS. */
#include "backend/common/qmm_plan.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/quant.h"

#include <cblas.h>
#include <stdatomic.h>

/* Elements of an expanded block: it stays in the second-level cache. */
#define BLOCK_ELEMENTS ((int64_t)1 << 18)

struct task {
    struct quant_params q;
    bool transpose, is_gather;
    uint8_t dtype;
    int64_t m, n, k, ld, n_batch;
    int n_dims;
    int64_t dim[SHP_MAX], stride[QMM_STRIDED][SHP_MAX];
    int64_t n_x, n_w;
    struct cpu_src in[QMM_OPERANDS];
    uint8_t present[QMM_OPERANDS];
    char *out;
};

/* One product, its operands found. */
struct product {
    const struct task *t;
    struct cpu_packed w;
    const float *x; /* m x k, dense */
    float *out;     /* m x n */
    _Atomic int failed;
};

/* ---- expanded blocks ---- */

/* Result columns [begin, end): they are rows of w, or columns of it. */
static enum err run_columns(struct product *p, int64_t begin, int64_t end)
{
    const struct task *t = p->t;
    int64_t unit = t->transpose ? 1 : t->q.group_size;
    int64_t step = MAX(unit, BLOCK_ELEMENTS / t->k / unit * unit), n;
    float *block = mem_alloc_aligned((size_t)(MIN(step, end - begin) * t->k) * sizeof *block);

    if (!block)
        return ERR_NO_MEMORY;
    for (int64_t at = begin; at < end; at += n) {
        n = MIN(step, end - at);
        if (t->transpose)
            for (int64_t i = 0; i < n; i++)
                cpu_expand(block + i * t->k, &p->w, at + i, 0, t->k);
        else
            for (int64_t i = 0; i < t->k; i++)
                cpu_expand(block + i * n, &p->w, i, at, n);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, t->transpose ? CblasTrans : CblasNoTrans,
                    (blasint)t->m, (blasint)n, (blasint)t->k, 1.0f, p->x, (blasint)t->k, block,
                    (blasint)(t->transpose ? t->k : n), 0.0f, p->out + at, (blasint)t->n);
    }
    mem_free(block);
    return ERR_OK;
}

static void run_range(void *arg, size_t begin, size_t end)
{
    struct product *p = arg;
    int64_t unit = p->t->transpose ? 1 : p->t->q.group_size;
    enum err err = run_columns(p, (int64_t)begin * unit, (int64_t)end * unit);

    if (err)
        atomic_store(&p->failed, (int)err);
}

/* ---- batches ---- */

/* Numbers of the matrices of product i; what lies outside is moved to the last one. */
static int64_t matrix_number(const uint32_t *numbers, int64_t i, int64_t n)
{
    return MIN((int64_t)numbers[i], n - 1);
}

struct operands {
    const char *base[QMM_OPERANDS];
};

static int64_t offset_of(const struct task *t, const struct operands *o, int64_t batch,
                         enum qmm_operand i)
{
    int64_t offset = 0;

    if (t->is_gather) {
        int64_t number = i == QMM_X
                             ? matrix_number((const uint32_t *)o->base[QMM_LHS], batch, t->n_x)
                             : matrix_number((const uint32_t *)o->base[QMM_RHS], batch, t->n_w);
        return number * t->stride[i][0];
    }
    for (int d = t->n_dims - 1; d >= 0; d--) {
        offset += batch % t->dim[d] * t->stride[i][d];
        batch /= t->dim[d];
    }
    return offset;
}

/* x as dense float32 rows. */
static void load_x(float *dst, const struct task *t, const char *x)
{
    size_t item = dt_size((enum dtype)t->dtype);

    for (int64_t i = 0; i < t->m; i++)
        cpu_convert((struct cpu_vec){ dst + i * t->k, DT_FLOAT32 },
                    (struct cpu_vec){ (char *)x + i * t->ld * (int64_t)item, (enum dtype)t->dtype },
                    (size_t)t->k);
}

static enum err run_batch(const struct task *t, const struct operands *o, int64_t batch,
                          float *scratch)
{
    int64_t item = (int64_t)dt_size((enum dtype)t->dtype);
    int64_t scale_item = t->q.mode == QUANT_AFFINE ? item : 1;
    char *out = t->out + batch * t->m * t->n * item;
    int64_t at_s = offset_of(t, o, batch, QMM_SCALES), at_b = offset_of(t, o, batch, QMM_BIASES);
    struct product p = {
        .t = t,
        .w = { .q = t->q, .dtype = (enum dtype)t->dtype, .cols = t->transpose ? t->k : t->n },
        .x = scratch,
        .out = t->dtype == DT_FLOAT32 ? (float *)out : scratch + t->m * t->k
    };
    size_t units = (size_t)(t->transpose ? t->n : t->n / t->q.group_size);

    p.w.w = (const unsigned char *)o->base[QMM_W] + offset_of(t, o, batch, QMM_W) * 4;
    p.w.scales = o->base[QMM_SCALES] + at_s * scale_item;
    if (t->present[QMM_BIASES])
        p.w.biases = o->base[QMM_BIASES] + at_b * item;
    load_x(scratch, t, o->base[QMM_X] + offset_of(t, o, batch, QMM_X) * item);
    run_range(&p, 0, units);
    if (t->dtype != DT_FLOAT32)
        cpu_narrow(out, p.out, (enum dtype)t->dtype, (size_t)(t->m * t->n));
    return (enum err)atomic_load(&p.failed);
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct operands o = { { NULL } };
    float *scratch = NULL;
    enum err err = ERR_OK;

    if (t->k == 0) {
        memset(t->out, 0, (size_t)(t->m * t->n) * dt_size((enum dtype)t->dtype));
        return ERR_OK;
    }
    for (int i = 0; i < QMM_OPERANDS; i++)
        if (t->present[i])
            TRY(cpu_src_host(&o.base[i], &t->in[i]));
    scratch = mem_alloc_aligned((size_t)(t->m * (t->k + t->n)) * sizeof *scratch);
    if (!scratch)
        return ERR_NO_MEMORY;
    for (int64_t i = 0; i < t->n_batch; i++)
        TRY(run_batch(t, &o, i, scratch));
out:
    mem_free(scratch);
    return err;
}

static void task_init(struct task *t, const struct qmm_plan *p)
{
    *t = (struct task){ .q = p->q,
                        .transpose = p->transpose,
                        .is_gather = p->is_gather,
                        .m = p->m,
                        .n = p->n,
                        .k = p->k,
                        .ld = p->ld,
                        .n_batch = p->n_batch,
                        .n_dims = p->n_dims,
                        .n_x = p->n_x,
                        .n_w = p->n_w };
    memcpy(t->dim, p->dim, sizeof t->dim);
    memcpy(t->stride, p->stride, sizeof t->stride);
    for (int i = 0; i < QMM_OPERANDS; i++) {
        t->present[i] = p->in[i] != NULL;
        if (p->in[i])
            t->in[i] = cpu_src(p->in[i]);
    }
}

enum err cpu_quantized_matmul(const struct exec *x)
{
    struct arr *out = x->out[0];
    struct qmm_plan plan = { 0 };
    struct task t;
    enum err err;

    if (out->dtype == DT_FLOAT64)
        return err_set(ERR_UNSUPPORTED, "[quantized_matmul] only floating types are supported");
    TRY(arr_alloc(out, &be_cpu));
    if (!out->size)
        goto out;
    TRY(qmm_plan_init(&plan, x));
    task_init(&t, &plan);
    t.dtype = out->dtype;
    t.out = cpu_dst(out);
    TRY(cpu_enqueue(x->strm, run_task, &t, sizeof t));
    TRY(qmm_plan_hold(&plan));
out:
    qmm_plan_fini(&plan);
    return err;
}
