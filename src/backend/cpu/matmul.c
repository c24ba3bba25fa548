/* Matrix products through OpenBLAS. Half types are widened to float32 block by block. */
#include "backend/common/matmul_plan.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#include <cblas.h>
#include <pthread.h>
#include <stdatomic.h>

/* Elements of a widened block of rows. */
#define BLOCK_ELEMENTS (1 << 20)
#define BLOCK_ROWS_MIN 64
/* Products below this many multiplications run on one thread each, several at a time. */
#define SMALL_PRODUCT (1 << 18)
#define TILE 1024

struct task {
    struct mm_plan plan;
    struct cpu_src in[MM_OPERANDS];
    struct cpu_src numbers[2]; /* of a gather's matrices */
    char *out;
    uint8_t type, wide_type; /* enum dtype; wide_type is what BLAS computes in */
    float alpha, beta;
};

struct job {
    const struct task *t;
    const char *in[MM_OPERANDS];
    const uint32_t *numbers[2];
    size_t item, wide;
    int64_t block_rows;
    _Atomic int failed; /* enum err */
};

/* An operand as BLAS reads it. */
struct matrix {
    const void *data;
    bool transposed;
    int64_t ld;
};

/* Memory that one thread fills with widened or rearranged operands. `at` is what it holds: the same
 * matrix is often used by many batches. */
struct packed {
    char *data;
    const char *at;
};

struct scratch {
    struct packed a, b;
    char *out;
};

/* ---- BLAS by type ---- */

struct product {
    int64_t m, n, k;
    struct matrix a, b;
    void *out;
    float alpha, beta;
};

static CBLAS_TRANSPOSE transpose(const struct matrix *x)
{
    return x->transposed ? CblasTrans : CblasNoTrans;
}

static void multiply(const struct product *p, enum dtype type)
{
    CBLAS_TRANSPOSE ta = transpose(&p->a), tb = transpose(&p->b);
    blasint m = (blasint)p->m, n = (blasint)p->n, k = (blasint)p->k;
    blasint lda = (blasint)p->a.ld, ldb = (blasint)p->b.ld;
    const float alpha[2] = { p->alpha, 0.0f }, beta[2] = { p->beta, 0.0f };

    if (type == DT_FLOAT64)
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, (double)p->alpha, p->a.data, lda, p->b.data,
                    ldb, (double)p->beta, p->out, n);
    else if (type == DT_COMPLEX64)
        cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, alpha, p->a.data, lda, p->b.data, ldb, beta,
                    p->out, n);
    else
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, p->alpha, p->a.data, lda, p->b.data, ldb,
                    p->beta, p->out, n);
}

/* ---- operands ---- */

/* rows x cols elements of src with any strides, dense and in the wide type. */
static void copy_wide(const struct job *j, char *dst, const char *src, const struct mm_side *s)
{
    struct shp shape = { .ndim = 2, .d = { (int32_t)s->rows, (int32_t)s->cols } };
    enum dtype from = (enum dtype)j->t->type, to = (enum dtype)j->t->wide_type;
    size_t total = (size_t)(s->rows * s->cols);
    char raw[TILE * 8] __attribute__((aligned(64)));
    struct nest nest;

    nest_make(&nest, &shape, (int64_t[]){ s->row_stride, s->col_stride });
    for (size_t i = 0, n; i < total; i += n) {
        n = MIN(TILE, total - i);
        const char *x = tile_gather(raw, src, &(struct tile_walk){ &nest, 0, j->item }, i, n);
        cpu_convert((struct cpu_vec){ dst + i * j->wide, to }, (struct cpu_vec){ (char *)x, from },
                    n);
    }
}

static bool is_direct(struct matrix *out, const struct job *j, const struct mm_side *s)
{
    struct mm_layout layout;

    if (j->t->type != j->t->wide_type || !mm_side_layout(&layout, s))
        return false;
    int64_t width = layout.by_col ? s->rows : s->cols;
    bool one = layout.by_col ? s->cols == 1 : s->rows == 1;
    if (layout.ld < width && !one)
        return false; /* rows that overlap or run backwards */
    *out = (struct matrix){ NULL, layout.by_col, MAX(layout.ld, MAX(width, 1)) };
    return true;
}

static enum err load_operand(struct matrix *out, const struct job *j, struct packed *p,
                             const char *src, const struct mm_side *s)
{
    if (is_direct(out, j, s)) {
        out->data = src;
        return ERR_OK;
    }
    if (!p->data && !(p->data = mem_alloc_aligned((size_t)(s->rows * s->cols) * j->wide)))
        return ERR_NO_MEMORY;
    if (p->at != src)
        copy_wide(j, p->data, src, s);
    p->at = src;
    *out = (struct matrix){ p->data, false, MAX(s->cols, 1) };
    return ERR_OK;
}

/* ---- one product ---- */

/* Rows [first, first + rows) of one batch. */
struct part {
    int64_t batch, first, rows;
};

static const char *operand_at(const struct job *j, enum mm_operand i, const struct part *part)
{
    const struct mm_plan *p = &j->t->plan;
    int64_t batch = part->batch, offset;

    if (!j->in[i]) /* no bytes: k is 0 */
        return NULL;
    if (p->is_gather)
        batch = mm_pair(p, j->numbers[MM_A][batch], j->numbers[MM_B][batch]);
    offset = mm_batch_offset(p, i, batch);
    if (i != MM_B)
        offset += part->first * p->side[i].row_stride;
    return j->in[i] + offset * (int64_t)j->item;
}

static enum err run_part(const struct job *j, struct scratch *s, const struct part *part)
{
    const struct task *t = j->t;
    const struct mm_plan *plan = &t->plan;
    bool direct = t->type == t->wide_type;
    struct mm_side a = plan->side[MM_A], c = plan->side[MM_C];
    char *out = t->out + (part->batch * plan->m + part->first) * plan->n * (int64_t)j->item;
    struct product p = { .m = part->rows, .n = plan->n, .k = plan->k, .alpha = t->alpha };
    enum err err = ERR_OK;

    a.rows = c.rows = part->rows;
    TRY(load_operand(&p.a, j, &s->a, operand_at(j, MM_A, part), &a));
    TRY(load_operand(&p.b, j, &s->b, operand_at(j, MM_B, part), &plan->side[MM_B]));
    p.out = direct ? out : s->out;
    if (plan->n_sides > MM_C && t->beta != 0.0f) {
        copy_wide(j, p.out, operand_at(j, MM_C, part), &c);
        p.beta = t->beta;
    }
    multiply(&p, (enum dtype)t->wide_type);
    if (!direct)
        cpu_narrow(out, (const float *)p.out, (enum dtype)t->type, (size_t)(p.m * p.n));
out:
    return err;
}

static enum err run_batches(const struct job *j, size_t begin, size_t end)
{
    const struct mm_plan *plan = &j->t->plan;
    struct scratch s = { 0 };
    enum err err = ERR_OK;

    if (j->t->type != j->t->wide_type &&
        !(s.out = mem_alloc_aligned((size_t)(j->block_rows * plan->n) * j->wide)))
        return ERR_NO_MEMORY;
    for (size_t i = begin; i < end; i++)
        for (int64_t row = 0; row < plan->m; row += j->block_rows)
            TRY(run_part(j, &s,
                         &(struct part){ (int64_t)i, row, MIN(j->block_rows, plan->m - row) }));
out:
    mem_free(s.a.data);
    mem_free(s.b.data);
    mem_free(s.out);
    return err;
}

static void run_range(void *arg, size_t begin, size_t end)
{
    struct job *j = arg;
    enum err err = run_batches(j, begin, end);

    if (err != ERR_OK)
        atomic_store(&j->failed, (int)err);
}

static void use_all_threads(void)
{
    openblas_set_num_threads(cpu_threads());
}

void cpu_use_blas(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, use_all_threads);
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    const struct mm_plan *plan = &t->plan;
    struct job j = { .t = t, .block_rows = plan->m };
    size_t work = (size_t)(plan->m * plan->n * MAX(plan->k, 1));
    enum err err = ERR_OK;

    cpu_use_blas();
    for (int i = 0; i < plan->n_sides; i++)
        TRY(cpu_src_host(&j.in[i], &t->in[i]));
    for (int i = 0; plan->is_gather && i < 2; i++)
        TRY(cpu_src_host((const char **)&j.numbers[i], &t->numbers[i]));
    j.item = dt_size((enum dtype)t->type);
    j.wide = dt_size((enum dtype)t->wide_type);
    if (t->type != t->wide_type)
        j.block_rows =
            MIN(plan->m, MAX(BLOCK_ROWS_MIN, BLOCK_ELEMENTS / MAX(MAX(plan->k, plan->n), 1)));
    if (work >= SMALL_PRODUCT)
        return run_batches(&j, 0, (size_t)plan->n_batch);
    cpu_parallel_for((size_t)plan->n_batch, SMALL_PRODUCT / work, run_range, &j);
    err = (enum err)atomic_load(&j.failed);
    if (err != ERR_OK)
        err_set(err, "[matmul] Out of memory.");
out:
    return err;
}

enum err cpu_matmul(const struct exec *x)
{
    struct arr *out = x->out[0];
    enum dtype type = (enum dtype)out->dtype;
    struct task t = { .type = out->dtype, .alpha = 1.0f };
    struct mm_numbers numbers = { 0 };
    enum err err = ERR_OK;

    if (!dt_is_inexact(type))
        return err_set(ERR_UNSUPPORTED, "[%s] Not supported for %s on the CPU.",
                       op_name((enum op_id)x->node->op), dt_name(type));
    TRY(arr_alloc(out, &be_cpu));
    if (x->node->op == OP_ADDMM) {
        const struct addmm_params *p = x->node->params;
        t.alpha = p->alpha;
        t.beta = p->beta;
    }
    t.wide_type = (uint8_t)(cpu_is_half(type) ? DT_FLOAT32 : type);
    t.out = cpu_dst(out);
    mm_plan_init(&t.plan, x);
    mm_plan_fold(&t.plan);
    for (int i = 0; i < t.plan.n_sides; i++)
        t.in[i] = cpu_src(x->in[i]);
    if (t.plan.is_gather) {
        TRY(mm_numbers_init(&numbers, x));
        t.numbers[MM_A] = cpu_src(numbers.in[MM_A]);
        t.numbers[MM_B] = cpu_src(numbers.in[MM_B]);
    }
    TRY(cpu_enqueue(x->strm, run_task, &t, sizeof t));
    TRY(mm_numbers_hold(&numbers, x->strm));
out:
    mm_numbers_fini(&numbers);
    return err;
}
