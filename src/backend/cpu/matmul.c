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
    struct cpu_src extras[MM_EXTRAS];
    bool has_extra[MM_EXTRAS], is_bool[MM_EXTRAS];
    char *out;
    uint8_t type, wide_type; /* enum dtype; wide_type is what BLAS computes in */
    float alpha, beta;
};

struct job {
    const struct task *t;
    const char *in[MM_OPERANDS];
    const char *extras[MM_EXTRAS];
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
    int64_t size; /* elements that there is room for */
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
    int64_t ld; /* of out */
    double alpha, beta;
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
    blasint ldc = (blasint)p->ld;
    const float alpha[2] = { (float)p->alpha, 0.0f }, beta[2] = { (float)p->beta, 0.0f };

    if (type == DT_FLOAT64)
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, p->alpha, p->a.data, lda, p->b.data, ldb,
                    p->beta, p->out, ldc);
    else if (type == DT_COMPLEX64)
        cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, alpha, p->a.data, lda, p->b.data, ldb, beta,
                    p->out, ldc);
    else
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha[0], p->a.data, lda, p->b.data, ldb,
                    beta[0], p->out, ldc);
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
    if (!p->data && !(p->data = mem_alloc_aligned((size_t)p->size * j->wide)))
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

static const uint32_t *extra_u32(const struct job *j, int i)
{
    return (const uint32_t *)j->extras[i];
}

static const char *operand_at(const struct job *j, enum mm_operand i, const struct part *part)
{
    const struct mm_plan *p = &j->t->plan;
    int64_t batch = part->batch, offset;

    if (!j->in[i]) /* no bytes: k is 0 */
        return NULL;
    if (p->is_gather)
        batch = mm_pair(p, extra_u32(j, MM_A)[batch], extra_u32(j, MM_B)[batch]);
    offset = mm_batch_offset(p, i, batch);
    if (i != MM_B)
        offset += part->first * p->side[i].row_stride;
    return j->in[i] + offset * (int64_t)j->item;
}

/* The operands of one part: of a segmented product those of its segment. */
static enum err load_operands(struct product *p, const struct job *j, struct scratch *s,
                              const struct part *part)
{
    const struct mm_plan *plan = &j->t->plan;
    struct mm_side a = plan->side[MM_A], b = plan->side[MM_B];
    const char *at_a = operand_at(j, MM_A, part), *at_b = operand_at(j, MM_B, part);
    int64_t range[2];
    enum err err = ERR_OK;

    a.rows = part->rows;
    if (plan->is_segmented) {
        mm_segment(range, extra_u32(j, MM_SEGMENTS) + 2 * part->batch, plan->k);
        a.cols = b.rows = p->k = range[1] - range[0];
        at_a = at_a ? at_a + range[0] * a.col_stride * (int64_t)j->item : NULL;
        at_b = at_b ? at_b + range[0] * b.row_stride * (int64_t)j->item : NULL;
        s->a.at = s->b.at = NULL; /* another segment may begin there, too */
    }
    TRY(load_operand(&p->a, j, &s->a, at_a, &a));
    TRY(load_operand(&p->b, j, &s->b, at_b, &b));
out:
    return err;
}

static enum err run_part(const struct job *j, struct scratch *s, const struct part *part)
{
    const struct task *t = j->t;
    const struct mm_plan *plan = &t->plan;
    bool direct = t->type == t->wide_type;
    struct mm_side c = plan->side[MM_C];
    char *out = t->out + (part->batch * plan->m + part->first) * plan->n * (int64_t)j->item;
    struct product p = {
        .m = part->rows, .n = plan->n, .k = plan->k, .ld = plan->n, .alpha = (double)t->alpha
    };
    enum err err = ERR_OK;

    c.rows = part->rows;
    TRY(load_operands(&p, j, s, part));
    p.out = direct ? out : s->out;
    if (plan->n_sides > MM_C && t->beta != 0.0f) {
        copy_wide(j, p.out, operand_at(j, MM_C, part), &c);
        p.beta = (double)t->beta;
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
    struct scratch s = { .a.size = j->block_rows * plan->k, .b.size = plan->k * plan->n };
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

/* ---- masks ---- */

/* What is done for one batch. A block of the result is one task: for 64 x 64 x 64 numbers OpenBLAS
 * takes no threads of its own. */
struct masked {
    const struct job *j;
    int64_t batch, tiles_m, tiles_n, tiles_k;
    struct matrix in[2];
};

#define BLOCK_MAX 64

/* Element at of a mask, 1 where there is none. Masks that are not bool have the product's dtype. */
static double mask_at(const struct masked *m, enum mm_mask mask, int64_t at)
{
    const struct task *t = m->j->t;
    const char *v = m->j->extras[mask];
    double wide = 0;

    if (!v)
        return 1;
    if (t->is_bool[mask])
        return v[at] != 0;
    cpu_convert((struct cpu_vec){ &wide, DT_FLOAT64 },
                (struct cpu_vec){ (char *)v + at * (int64_t)m->j->item, (enum dtype)t->type }, 1);
    return wide;
}

/* The part of a matrix that begins at a row and a column. */
static struct matrix matrix_from(const struct masked *m, int i, int64_t row, int64_t col)
{
    struct matrix x = m->in[i];
    int64_t at = x.transposed ? col * x.ld + row : row * x.ld + col;

    x.data = (const char *)x.data + at * (int64_t)m->j->wide;
    return x;
}

/* The sum over the blocks of k that count. False if there is none: nothing was written. */
static bool sum_blocks(const struct masked *m, struct product *p, const int64_t tile[2])
{
    const struct mm_plan *plan = &m->j->t->plan;
    int64_t size = plan->block, row = tile[0] * size, col = tile[1] * size;
    int64_t at_a = (m->batch * m->tiles_m + tile[0]) * m->tiles_k;
    int64_t at_b = m->batch * m->tiles_k * m->tiles_n + tile[1];

    for (int64_t i = 0; i < m->tiles_k; i++) {
        p->alpha = mask_at(m, MM_MASK_A, at_a + i) * mask_at(m, MM_MASK_B, at_b + i * m->tiles_n);
        if (p->alpha == 0)
            continue;
        p->k = MIN(size, plan->k - i * size);
        p->a = matrix_from(m, MM_A, row, i * size);
        p->b = matrix_from(m, MM_B, i * size, col);
        multiply(p, (enum dtype)m->j->t->wide_type);
        p->beta = 1;
    }
    return p->beta != 0;
}

static void scale(const struct masked *m, const struct product *p, double factor)
{
    for (int64_t r = 0; r < p->m; r++)
        for (int64_t c = 0; c < p->n; c++)
            if (m->j->wide == sizeof(double))
                ((double *)p->out)[r * p->ld + c] *= factor;
            else
                ((float *)p->out)[r * p->ld + c] *= (float)factor;
}

static void run_block(const struct masked *m, int64_t number)
{
    const struct task *t = m->j->t;
    const struct mm_plan *plan = &t->plan;
    int64_t tile[2] = { number / m->tiles_n, number % m->tiles_n };
    int64_t row = tile[0] * plan->block, col = tile[1] * plan->block;
    double sums[BLOCK_MAX * BLOCK_MAX] __attribute__((aligned(64)));
    double factor = mask_at(m, MM_MASK_OUT, m->batch * m->tiles_m * m->tiles_n + number);
    struct product p = { .m = MIN(plan->block, plan->m - row),
                         .n = MIN(plan->block, plan->n - col),
                         .out = sums,
                         .ld = BLOCK_MAX };

    if (factor == 0 || !sum_blocks(m, &p, tile))
        memset(sums, 0, sizeof sums);
    else if (factor != 1)
        scale(m, &p, factor);
    for (int64_t r = 0; r < p.m; r++) {
        int64_t at = ((m->batch * plan->m + row + r) * plan->n + col) * (int64_t)m->j->item;
        cpu_convert((struct cpu_vec){ t->out + at, (enum dtype)t->type },
                    (struct cpu_vec){ (char *)sums + r * BLOCK_MAX * (int64_t)m->j->wide,
                                      (enum dtype)t->wide_type },
                    (size_t)p.n);
    }
}

static void run_blocks(void *arg, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        run_block(arg, (int64_t)i);
}

static enum err run_masked(const struct job *j)
{
    const struct mm_plan *plan = &j->t->plan;
    struct scratch s = { .a.size = plan->m * plan->k, .b.size = plan->k * plan->n };
    struct masked m = { .j = j,
                        .tiles_m = ceil_div(plan->m, plan->block),
                        .tiles_n = ceil_div(plan->n, plan->block),
                        .tiles_k = ceil_div(plan->k, plan->block) };
    enum err err = ERR_OK;

    for (; m.batch < plan->n_batch; m.batch++) {
        struct part part = { m.batch, 0, plan->m };
        TRY(load_operand(&m.in[MM_A], j, &s.a, operand_at(j, MM_A, &part), &plan->side[MM_A]));
        TRY(load_operand(&m.in[MM_B], j, &s.b, operand_at(j, MM_B, &part), &plan->side[MM_B]));
        cpu_parallel_for((size_t)(m.tiles_m * m.tiles_n), 1, run_blocks, &m);
    }
out:
    mem_free(s.a.data);
    mem_free(s.b.data);
    return err;
}

/* ---- the op ---- */

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
    for (int i = 0; i < MM_EXTRAS; i++)
        if (t->has_extra[i])
            TRY(cpu_src_host(&j.extras[i], &t->extras[i]));
    j.item = dt_size((enum dtype)t->type);
    j.wide = dt_size((enum dtype)t->wide_type);
    if (t->type != t->wide_type)
        j.block_rows =
            MIN(plan->m, MAX(BLOCK_ROWS_MIN, BLOCK_ELEMENTS / MAX(MAX(plan->k, plan->n), 1)));
    if (plan->block)
        return run_masked(&j);
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
    struct mm_extras extras = { 0 };
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
    TRY(mm_extras_init(&extras, &t.plan, x));
    for (int i = 0; i < MM_EXTRAS; i++)
        if ((t.has_extra[i] = extras.in[i] && extras.in[i]->size)) {
            t.extras[i] = cpu_src(extras.in[i]);
            t.is_bool[i] = extras.in[i]->dtype == DT_BOOL;
        }
    TRY(cpu_enqueue(x->strm, run_task, &t, sizeof t));
    TRY(mm_extras_hold(&extras, x->strm));
out:
    mm_extras_fini(&extras);
    return err;
}

enum err cpu_sparse_mm(const struct exec *x)
{
    return cpu_matmul(x);
}
