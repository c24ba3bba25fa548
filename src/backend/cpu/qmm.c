/* Products with packed matrices. Few rows meet the packed numbers as they are; for many, blocks of
 * the matrix are expanded to float32 and multiplied by OpenBLAS. */
#include "backend/common/qmm_plan.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/qmv.h"
#include "backend/cpu/quant.h"

#include <cblas.h>
#include <stdatomic.h>

/* Elements of an expanded block: few enough for a cache, enough for the threads of BLAS to meet
 * rarely. */
#define BLOCK_ELEMENTS ((int64_t)1 << 20)
/* More rows of x than this are worth an expansion. */
#define FEW_ROWS 16
/* Bytes of the matrix for one thread, and scales that are widened at a time. */
#define GRAIN_BYTES 65536
#define SCALES_AT_ONCE 1024
/* Rows that one thread expands. */
#define EXPAND_GRAIN 16

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
    struct vector {
        const void *x; /* as the kernel wants it; plain where there is none for the format */
        float *sums, *units;
    } vector[FEW_ROWS];
    _Atomic int failed;
};

/* ---- few rows: the packed numbers as they are ---- */

static bool has_kernel(const struct quant_params *q)
{
    return q->mode == QUANT_AFFINE && (q->bits == 2 || q->bits == 4 || q->bits == 8);
}

static bool takes_integers(const struct task *t)
{
    return cpu_is_half((enum dtype)t->dtype) && has_kernel(&t->q) && t->q.bits != 2 &&
           (cpu_qmv_kernels()->rows_int || cpu_qmv_kernels()->rows_half);
}

/* Scales and biases are read as they lie. */
static bool takes_half_scales(const struct task *t)
{
    return takes_integers(t) && cpu_qmv_kernels()->rows_half;
}

/* Rows [first, first + n) of w times vector m. */
struct rows {
    int64_t first, n, m;
    const float *scales, *biases; /* widened; not for dot_half */
};

static void dot_packed(struct product *p, const struct rows *r, float *scaled)
{
    const struct task *t = p->t;
    const struct vector *x = &p->vector[r->m];
    int64_t per_row = t->k / t->q.group_size;
    struct cpu_qmv v = { .bits = t->q.bits,
                         .group_size = t->q.group_size,
                         .k = t->k,
                         .w = p->w.w + r->first * cpu_packed_row_bytes(&p->w),
                         .scales = r->scales,
                         .biases = r->biases,
                         .x = x->x,
                         .sums = x->sums };
    float *out = p->out + r->m * t->n + r->first;

    if (!takes_integers(t)) {
        cpu_qmv_kernels()->rows(out, &v, r->n);
        return;
    }
    for (int64_t i = 0; i < r->n * per_row; i += per_row)
        for (int64_t g = 0; g < per_row; g++)
            scaled[i + g] = r->scales[i + g] * x->units[g];
    v.scales = scaled;
    cpu_qmv_kernels()->rows_int(out, &v, r->n);
}

static void dot_half(struct product *p, const struct rows *r)
{
    const struct task *t = p->t;
    const struct vector *x = &p->vector[r->m];
    int64_t at = r->first * (t->k / t->q.group_size);

    cpu_qmv_kernels()->rows_half(
        p->out + r->m * t->n + r->first,
        &(struct cpu_qmv){ .bits = t->q.bits,
                           .group_size = t->q.group_size,
                           .k = t->k,
                           .w = p->w.w + r->first * cpu_packed_row_bytes(&p->w),
                           .x = x->x,
                           .sums = x->sums,
                           .half_scales = (const uint16_t *)p->w.scales + at,
                           .half_biases = (const uint16_t *)p->w.biases + at,
                           .is_bf16 = t->dtype == DT_BFLOAT16,
                           .units = x->units },
        r->n);
}

static void dot_unpacked(struct product *p, const struct rows *r, float *numbers)
{
    const struct task *t = p->t;
    int64_t group = t->q.group_size, per_row = t->k / group;
    const float *x = p->vector[r->m].x;

    for (int64_t i = 0; i < r->n; i++) {
        float sum = 0.0f;
        cpu_unpack(numbers, &t->q, p->w.w + (r->first + i) * cpu_packed_row_bytes(&p->w), t->k);
        for (int64_t g = 0; g < per_row; g++) {
            sum += r->scales[i * per_row + g] *
                   cpu_qmv_kernels()->dot(numbers + g * group, x + g * group, group);
            if (t->q.mode == QUANT_AFFINE)
                sum += r->biases[i * per_row + g] * p->vector[r->m].sums[g];
        }
        p->out[r->m * t->n + r->first + i] = sum;
    }
}

/* So many that vectors meet rows of the matrix which are still in a cache. */
static int64_t rows_at_once(const struct task *t)
{
    return MAX(SCALES_AT_ONCE / (t->k / t->q.group_size), 1);
}

static void run_rows_half(struct product *p, int64_t begin, int64_t end)
{
    struct rows r = { .n = 0 };
    int64_t step = rows_at_once(p->t);

    for (r.first = begin; r.first < end; r.first += step) {
        r.n = MIN(step, end - r.first);
        for (r.m = 0; r.m < p->t->m; r.m++)
            dot_half(p, &r);
    }
}

static enum err run_rows_widened(struct product *p, int64_t begin, int64_t end)
{
    const struct task *t = p->t;
    int64_t per_row = t->k / t->q.group_size, step = rows_at_once(t);
    int64_t n_scales = step * per_row, n_other = MAX(n_scales, t->k);
    float *scales = mem_alloc_aligned((size_t)(2 * n_scales + n_other) * sizeof *scales);
    void (*dot)(struct product *, const struct rows *, float *) =
        has_kernel(&t->q) ? dot_packed : dot_unpacked;

    if (!scales)
        return ERR_NO_MEMORY;
    struct rows r = { .scales = scales, .biases = scales + n_scales };
    for (r.first = begin; r.first < end; r.first += step) {
        r.n = MIN(step, end - r.first);
        cpu_scales(scales, scales + n_scales, &p->w, r.first * per_row, (size_t)(r.n * per_row));
        for (r.m = 0; r.m < t->m; r.m++)
            dot(p, &r, scales + 2 * n_scales);
    }
    mem_free(scales);
    return ERR_OK;
}

static enum err run_rows(struct product *p, int64_t begin, int64_t end)
{
    if (!takes_half_scales(p->t))
        return run_rows_widened(p, begin, end);
    run_rows_half(p, begin, end);
    return ERR_OK;
}

/* Sums, and x in the form of the kernel; into memory of few_floats() each. */
static int64_t few_floats(const struct task *t)
{
    return 2 * (t->k / t->q.group_size) + cpu_qmv_length(t->k, has_kernel(&t->q) ? t->q.bits : 8);
}

/* In eight parts, which do not wait for each other; n is a multiple of 8. */
static float sum_of(const float *x, int64_t n)
{
    float part[8] = { 0 };

    for (int64_t i = 0; i < n; i += 8)
        for (int j = 0; j < 8; j++)
            part[j] += x[i + j];
    return ((part[0] + part[4]) + (part[1] + part[5])) +
           ((part[2] + part[6]) + (part[3] + part[7]));
}

static void prepare_vector(struct vector *v, const struct task *t, const float *x, float *to)
{
    int64_t group = t->q.group_size, per_row = t->k / group;
    const struct cpu_qmv how = { .bits = t->q.bits, .group_size = group, .k = t->k };

    *v = (struct vector){ .x = x, .sums = to, .units = to + per_row };
    for (int64_t g = 0; g < per_row; g++)
        v->sums[g] = sum_of(x + g * group, group);
    to += 2 * per_row;
    if (takes_integers(t)) {
        cpu_qmv_arrange_int((int16_t *)to, v->units, x, &how, cpu_qmv_kernels());
        v->x = to;
    } else if (has_kernel(&t->q)) {
        cpu_qmv_arrange(to, x, t->k, t->q.bits);
        v->x = to;
    }
}

static bool is_few(const struct task *t)
{
    return t->transpose && t->m <= FEW_ROWS;
}

/* ---- expanded blocks ---- */

/* Part of the matrix on its way to a block. */
struct expansion {
    const struct product *p;
    float *block;
    int64_t at, n; /* result columns */
};

/* Rows [begin, end) of the block: rows of w, or parts of them. */
static void expand_rows(void *arg, size_t begin, size_t end)
{
    const struct expansion *e = arg;
    const struct task *t = e->p->t;

    for (int64_t i = (int64_t)begin; i < (int64_t)end; i++)
        if (t->transpose)
            cpu_expand(e->block + i * t->k, &e->p->w, e->at + i, 0, t->k);
        else
            cpu_expand(e->block + i * e->n, &e->p->w, i, e->at, e->n);
}

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
        cpu_parallel_for((size_t)(t->transpose ? n : t->k), EXPAND_GRAIN, expand_rows,
                         &(struct expansion){ p, block, at, n });
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
    enum err err = is_few(p->t) ? run_rows(p, (int64_t)begin, (int64_t)end)
                                : run_columns(p, (int64_t)begin * unit, (int64_t)end * unit);

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
    if (is_few(t)) {
        for (int64_t i = 0; i < t->m; i++)
            prepare_vector(&p.vector[i], t, scratch + i * t->k,
                           scratch + t->m * (t->k + t->n) + i * few_floats(t));
        cpu_parallel_for(units, (size_t)(GRAIN_BYTES / cpu_packed_row_bytes(&p.w) + 1), run_range,
                         &p);
    } else {
        run_range(&p, 0, units);
    }
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
    scratch = mem_alloc_aligned((size_t)(t->m * (t->k + t->n + (is_few(t) ? few_floats(t) : 0))) *
                                sizeof *scratch);
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
