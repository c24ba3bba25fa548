/* Factorizations of matrices, which LAPACK does: one matrix after the other, small ones on several
 * cores.
 *
 * LAPACK takes matrices by columns, ours are by rows: as it reads them they are transposed. Where
 * the result of the transposed matrix tells that of the matrix, nothing is moved; QR and LU read a
 * copy by columns. Both is as in MLX, so that signs and orders that are free come out the same. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels_scalar.h"
#include "backend/cpu/lapack.h"
#include "backend/cpu/tile.h"

#define MAX_OUT 3
/* Matrices of no more elements than this run on one thread each: BLAS would not share them. */
#define SMALL_MATRIX (64 * 64)
#define PARALLEL_WORK (1 << 16)
/* Kernels of OpenBLAS read a little past the end of matrices, whatever is there. */
#define READ_PAST 64
/* LAPACK's word for a bad fourth argument, which is the matrix. */
#define BAD_MATRIX (-4)

struct task {
    struct cpu_src in;
    struct nest batch; /* of the input's matrices */
    size_t n;          /* matrices */
    int32_t rows, cols;
    int64_t row_stride, col_stride;
    char *out[MAX_OUT];
    size_t out_bytes[MAX_OUT]; /* of one matrix's results; 0: there is no such output */
    uint16_t op;
    uint8_t type; /* enum dtype */
    bool upper, vectors, triangular;
};

/* One thread's state. */
struct work {
    const struct task *t;
    size_t item;
    struct lapack c;
    char *a, *values; /* scratch, where an op has it */
    char *out[MAX_OUT];
};

/* ---- moving elements ---- */

/* A copy of the matrix at src: by rows, or by columns. */
static void load(const struct work *w, char *dst, const char *src, bool by_cols)
{
    const struct task *t = w->t;
    struct shp shape = { .ndim = 2, .d = { t->rows, t->cols } };
    int64_t strides[2] = { t->row_stride, t->col_stride };
    size_t n = (size_t)t->rows * (size_t)t->cols;
    struct nest nest;

    if (by_cols) {
        shape.d[0] = t->cols, shape.d[1] = t->rows;
        strides[0] = t->col_stride, strides[1] = t->row_stride;
    }
    nest_make(&nest, &shape, strides);
    const char *x = tile_gather(dst, src, &(struct tile_walk){ &nest, 0, w->item }, 0, n);
    if (x != dst)
        memcpy(dst, x, n * w->item);
}

/* The first cols columns of a matrix by columns, of `stride` elements each, by rows. */
static void store(const struct work *w, char *dst, size_t rows, size_t cols, size_t stride)
{
    for (size_t i = 0; i < rows; i += TILE_BLOCK_ROWS) {
        struct tile_block b = { .src = w->a + i * w->item,
                                .dst = dst + i * cols * w->item,
                                .src_stride = (int64_t)stride,
                                .dst_stride = (int64_t)cols,
                                .rows = MIN(TILE_BLOCK_ROWS, rows - i),
                                .cols = cols };
        tile_transpose(&b, w->item);
    }
}

/* Zeros in the rows of a matrix by rows: before the diagonal if upper, else behind it. */
static void clear_triangle(const struct work *w, char *a, size_t rows, size_t cols, bool upper)
{
    for (size_t i = 0; i < rows; i++) {
        char *row = a + i * cols * w->item;
        if (upper)
            memset(row, 0, MIN(i, cols) * w->item);
        else if (i + 1 < cols)
            memset(row + (i + 1) * w->item, 0, (cols - i - 1) * w->item);
    }
}

static void identity(const struct work *w, char *a, size_t bytes)
{
    size_t n = (size_t)sqrt((double)(bytes / w->item));

    memset(a, 0, bytes);
    for (size_t i = 0; i < n; i++)
        if (w->t->type == DT_FLOAT64)
            ((double *)a)[i * (n + 1)] = 1;
        else
            memcpy(a + i * (n + 1) * w->item, &(float){ 1 }, sizeof(float));
}

/* A copy in scratch. False if not all of its numbers are finite, at which some versions of LAPACK
 * end the process. */
static bool load_finite(struct work *w, const char *src)
{
    size_t n = (size_t)w->t->rows * (size_t)w->t->cols * (w->t->type == DT_COMPLEX64 ? 2 : 1);

    load(w, w->c.a = w->a, src, false);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(w->t->type == DT_FLOAT64 ? ((const double *)w->c.a)[i]
                                               : (double)((const float *)w->c.a)[i]))
            return false;
    return true;
}

/* ---- the ops, on one matrix: LAPACK's info where it counts as a failure ---- */

static blasint run(struct work *w, enum lapack_routine r)
{
    return lapack_run(&w->c, r, (enum dtype)w->t->type);
}

static char opposite(bool upper)
{
    return upper ? 'L' : 'U';
}

/* A matrix that is not positive definite is no failure, as in MLX: what LAPACK did until it noticed
 * is the result. */
static blasint cholesky(struct work *w, const char *src)
{
    load(w, w->c.a = w->out[0], src, false);
    w->c.uplo = opposite(w->t->upper);
    blasint info = run(w, LAPACK_POTRF);
    clear_triangle(w, w->c.a, (size_t)w->c.n, (size_t)w->c.n, w->t->upper);
    return MIN(info, 0);
}

static blasint inverse(struct work *w, const char *src)
{
    load(w, w->c.a = w->out[0], src, false);
    w->c.uplo = opposite(w->t->upper);
    if (w->t->triangular) {
        clear_triangle(w, w->c.a, (size_t)w->c.n, (size_t)w->c.n, w->t->upper);
        return run(w, LAPACK_TRTRI);
    }
    blasint info = run(w, LAPACK_GETRF);
    return info ? info : run(w, LAPACK_GETRI);
}

/* In place: LAPACK's vectors are columns by columns, which are rows to us. */
static void vectors_to_columns(struct work *w, char *v)
{
    size_t n = (size_t)w->c.n;

    memcpy(w->a, v, n * n * w->item);
    store(w, v, n, n, n);
    if (w->t->type == DT_COMPLEX64)
        for (size_t i = 0; i < n * n; i++)
            ((float *)v)[2 * i + 1] *= -1;
}

static blasint eigh(struct work *w, const char *src)
{
    load(w, w->c.a = w->t->vectors ? w->out[1] : w->a, src, false);
    w->c.uplo = opposite(w->t->upper);
    w->c.values = w->out[0];
    blasint info = run(w, LAPACK_SYEVD);
    if (!info && w->t->vectors)
        vectors_to_columns(w, w->c.a);
    return info;
}

/* Left vectors of the transposed matrix are the conjugates of its right ones. Those of a pair of
 * conjugate values are told by their real and their imaginary part. */
#define REAL_VECTORS(name, T)                                                                      \
    static void name(float _Complex *values, float _Complex *v, const struct work *w)              \
    {                                                                                              \
        const T *re = w->c.values, *left = w->c.left;                                              \
        size_t n = (size_t)w->c.n, step;                                                           \
        for (size_t j = 0; j < n; j++)                                                             \
            values[j] = CMPLXF((float)re[j], (float)re[n + j]);                                    \
        for (size_t j = 0; v && j < n; j += step) {                                                \
            const T *x = left + j * n;                                                             \
            step = cimagf(values[j]) != 0 && j + 1 < n ? 2 : 1;                                    \
            for (size_t i = 0; i < n; i++)                                                         \
                for (size_t k = 0; k < step; k++)                                                  \
                    v[i * n + j + k] =                                                             \
                        CMPLXF((float)x[i], step == 1 ? 0 : (float)(k ? x[n + i] : -x[n + i]));    \
        }                                                                                          \
    }
REAL_VECTORS(vectors_f32, float)
REAL_VECTORS(vectors_f64, double)

static void vectors_c64(float _Complex *values, float _Complex *v, const struct work *w)
{
    const float _Complex *left = w->c.left;
    size_t n = (size_t)w->c.n;

    memcpy(values, w->c.values, n * sizeof *values);
    for (size_t j = 0; v && j < n; j++)
        for (size_t i = 0; i < n; i++)
            v[i * n + j] = conjf(left[j * n + i]);
}

static blasint eig(struct work *w, const char *src)
{
    void *values = w->out[0], *v = w->out[1];
    size_t n = (size_t)w->c.n;

    if (!load_finite(w, src))
        return BAD_MATRIX;
    w->c.values = w->values;
    w->c.left = w->a + n * n * w->item;
    blasint info = run(w, LAPACK_GEEV);
    if (!info)
        (w->t->type == DT_FLOAT32   ? vectors_f32
         : w->t->type == DT_FLOAT64 ? vectors_f64
                                    : vectors_c64)(values, v, w);
    return info;
}

/* A = U S V^H, so that the transposed matrix has V* for its U and U^T for its V^H. */
static blasint svd(struct work *w, const char *src)
{
    bool vectors = w->t->vectors;
    int s = vectors ? 1 : 0;

    if (!w->t->rows || !w->t->cols) {
        for (int i = 0; i < MAX_OUT; i++)
            if (w->out[i])
                identity(w, w->out[i], w->t->out_bytes[i]);
        return 0;
    }
    if (!load_finite(w, src))
        return BAD_MATRIX;
    w->c.values = w->out[s];
    w->c.left = vectors ? w->out[2] : NULL;
    w->c.right = vectors ? w->out[0] : NULL;
    return run(w, LAPACK_GESDD);
}

static blasint qr(struct work *w, const char *src)
{
    size_t m = (size_t)w->t->rows, n = (size_t)w->t->cols, k = MIN(m, n);

    load(w, w->c.a = w->a, src, true);
    w->c.values = w->values;
    blasint info = run(w, LAPACK_GEQRF);
    if (info)
        return info;
    store(w, w->out[1], k, n, m);
    clear_triangle(w, w->out[1], k, n, true);
    info = run(w, LAPACK_ORGQR);
    store(w, w->out[0], m, k, m);
    return info;
}

/* Pivots count from 0. The rows of L U, taken by the last output, are those of the matrix. A zero
 * on the diagonal is no failure. */
static blasint lu(struct work *w, const char *src)
{
    size_t m = (size_t)w->t->rows, n = (size_t)w->t->cols, k = MIN(m, n);
    uint32_t *pivots = (uint32_t *)w->out[1], *row = (uint32_t *)w->out[2];
    blasint info = 0;

    if (k) {
        load(w, w->c.a = w->a, src, true);
        info = run(w, LAPACK_GETRF);
        store(w, w->out[0], m, n, m);
    }
    for (size_t i = 0; i < m; i++)
        row[i] = (uint32_t)i;
    for (size_t i = k; i-- > 0;) {
        uint32_t p = pivots[i] = (uint32_t)w->c.pivots[i] - 1, at = row[p];
        row[p] = row[i];
        row[i] = at;
    }
    return MIN(info, 0);
}

/* By op: its function, what it needs, and how MLX says that it failed. */
static const struct kind {
    blasint (*run)(struct work *w, const char *src);
    uint8_t copies;  /* scratch, in matrices */
    uint8_t asks[2]; /* routines with scratch of their own; LAPACK_COUNT: none */
    const char *failure;
} kinds[] = {
    [OP_CHOLESKY] = { cholesky,
                      0,
                      { LAPACK_COUNT, LAPACK_COUNT },
                      "[Cholesky::eval_cpu] Cholesky decomposition" },
    [OP_INVERSE] = { inverse,
                     0,
                     { LAPACK_GETRI, LAPACK_COUNT },
                     "[Inverse::eval_cpu] LU factorization" },
    [OP_EIGH] = { eigh,
                  1,
                  { LAPACK_SYEVD, LAPACK_COUNT },
                  "[Eigh::eval_cpu] Eigenvalue decomposition" },
    [OP_EIG] = { eig,
                 2,
                 { LAPACK_GEEV, LAPACK_COUNT },
                 "[Eig::eval_cpu] Eigenvalue decomposition" },
    [OP_SVD] = { svd, 1, { LAPACK_GESDD, LAPACK_COUNT }, "[SVD::eval_cpu] SVD" },
    [OP_QRF] = { qr, 1, { LAPACK_GEQRF, LAPACK_ORGQR }, "[QRF::eval_cpu] QR factorization" },
    [OP_LUF] = { lu, 1, { LAPACK_COUNT, LAPACK_COUNT }, "[LUF::eval_cpu] LU factorization" },
};

static const char *failure_of(const struct task *t)
{
    return t->triangular ? "[Inverse::eval_cpu] triangular inversion" : kinds[t->op].failure;
}

/* ---- all matrices ---- */

struct job {
    const struct task *t;
    const char *in;
    _Atomic bool no_memory;
    _Atomic int64_t info; /* of a matrix that failed */
};

static enum err work_begin(struct work *w)
{
    const struct task *t = w->t;
    const struct kind *kind = &kinds[t->op];
    bool by_cols = t->op == OP_QRF || t->op == OP_LUF; /* reads the matrix by columns */
    size_t most = (size_t)MAX(t->rows, t->cols);
    size_t elements = (size_t)t->rows * (size_t)t->cols;

    w->c.m = by_cols ? t->rows : t->cols;
    w->c.n = by_cols ? t->cols : t->rows;
    w->c.vectors = t->vectors;
    if (!elements)
        return ERR_OK;
    for (int i = 0; i < 2; i++)
        if (kind->asks[i] != LAPACK_COUNT)
            lapack_ask(&w->c, (enum lapack_routine)kind->asks[i], (enum dtype)t->type);
    w->values = mem_alloc_aligned(2 * most * w->item);
    w->c.pivots = mem_alloc_aligned(most * sizeof *w->c.pivots);
    if (kind->copies && !(w->a = mem_alloc_aligned(kind->copies * elements * w->item + READ_PAST)))
        return ERR_NO_MEMORY;
    return w->values && w->c.pivots ? lapack_alloc(&w->c, (enum dtype)t->type) : ERR_NO_MEMORY;
}

static void work_end(struct work *w)
{
    mem_free(w->a);
    mem_free(w->values);
    mem_free(w->c.pivots);
    lapack_free(&w->c);
}

/* The failure is told once, and arrays may be read again: what was not computed is no number then,
 * nor is what is made of it. Rows and pivots of LU are numbers of rows that are there. */
static void leave_nan(const struct task *t, size_t begin, size_t end)
{
    for (int k = 0; k < MAX_OUT; k++)
        if (t->out_bytes[k])
            memset(t->out[k] + begin * t->out_bytes[k], t->op == OP_LUF && k > 0 ? 0 : 0xff,
                   (end - begin) * t->out_bytes[k]);
}

static void run_range(void *arg, size_t begin, size_t end)
{
    struct job *j = arg;
    const struct task *t = j->t;
    struct work w = { .t = t, .item = dt_size((enum dtype)t->type) };

    if (work_begin(&w) != ERR_OK) {
        atomic_store(&j->no_memory, true);
        leave_nan(t, begin, end);
        end = begin;
    }
    for (size_t i = begin; i < end; i++) {
        for (int k = 0; k < MAX_OUT; k++)
            w.out[k] = t->out_bytes[k] ? t->out[k] + i * t->out_bytes[k] : NULL;
        int64_t offset = nest_offset(&t->batch, 0, i) * (int64_t)w.item;
        blasint info = kinds[t->op].run(&w, offset ? j->in + offset : j->in); /* NULL: empty */
        if (info) {
            atomic_store(&j->info, info);
            leave_nan(t, i, i + 1);
        }
    }
    work_end(&w);
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    size_t elements = (size_t)t->rows * (size_t)t->cols;
    struct job j = { .t = t };
    enum err err = cpu_src_host(&j.in, &t->in);

    if (err) {
        leave_nan(t, 0, t->n);
        return err;
    }
    cpu_use_blas();
    if (elements > SMALL_MATRIX)
        run_range(&j, 0, t->n);
    else
        cpu_parallel_for(t->n, PARALLEL_WORK / (elements * (size_t)MIN(t->rows, t->cols) + 1) + 1,
                         run_range, &j);
    if (atomic_load(&j.no_memory))
        return err_set(ERR_NO_MEMORY, "%s has no memory.", failure_of(t));
    if (atomic_load(&j.info))
        return err_set(ERR_RUNTIME, "%s failed with error code %lld.", failure_of(t),
                       (long long)atomic_load(&j.info));
    return ERR_OK;
}

static void read_params(struct task *t, const struct node *n)
{
    if (n->op == OP_CHOLESKY) {
        t->upper = ((const struct cholesky_params *)n->params)->upper;
    } else if (n->op == OP_INVERSE) {
        const struct inverse_params *p = n->params;
        t->triangular = p->triangular;
        t->upper = p->upper;
    } else if (n->op == OP_EIGH) {
        const struct eigh_params *p = n->params;
        t->upper = p->upper;
        t->vectors = p->vectors;
    } else if (n->op == OP_EIG || n->op == OP_SVD) {
        t->vectors = ((const struct vectors_params *)n->params)->vectors;
    }
}

enum err cpu_linalg(const struct exec *x)
{
    struct arr *in = x->in[0];
    struct shp shape;
    struct task t = { .in = cpu_src(in), .n = 1, .op = x->node->op, .type = in->dtype };
    enum err err = ERR_OK;

    read_params(&t, x->node);
    arr_shape(&shape, in);
    int batch = shape.ndim -= 2;
    for (int i = 0; i < batch; i++)
        t.n *= (size_t)shape.d[i];
    nest_make(&t.batch, &shape, in->strides);
    t.rows = in->shape[batch];
    t.cols = in->shape[batch + 1];
    t.row_stride = in->strides[batch];
    t.col_stride = in->strides[batch + 1];
    for (int i = 0; i < x->n_out; i++) {
        TRY(arr_alloc(x->out[i], &be_cpu));
        t.out[i] = cpu_dst(x->out[i]);
        t.out_bytes[i] = t.n ? arr_nbytes(x->out[i]) / t.n : 0;
    }
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
