/* Running sums, products and extremes of rows. Half types accumulate in float32. */
#include "backend/common/rows.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/kernels_scalar.h"

#define PARALLEL_ELEMENTS 16384
/* Columns that are scanned side by side. */
#define COLUMNS 1024

struct task {
    struct cpu_src in;
    char *out;
    uint8_t type, wide; /* enum dtype */
    struct scan_params p;
    uint32_t length;
    size_t rows;  /* along the axis */
    size_t inner; /* by columns: elements between neighbours of a row, which is strided; else 0 */
};

/* Scans n elements in the given direction; out may be in. */
typedef void (*scan_fn)(void *out, const void *in, uint32_t n, const struct scan_params *p);

#define SCAN(name, T, ID, NEXT)                                                                    \
    static void name(void *out, const void *in, uint32_t n, const struct scan_params *p)           \
    {                                                                                              \
        const T *x = in;                                                                           \
        T *y = out, acc = ID;                                                                      \
        for (uint32_t k = 0; k < n; k++) {                                                         \
            uint32_t i = p->reverse ? n - 1 - k : k;                                               \
            T v = x[i], before = acc;                                                              \
            acc = NEXT;                                                                            \
            y[i] = p->inclusive ? acc : before;                                                    \
        }                                                                                          \
    }

/* Extremes keep the first NaN. -0 + x is x, so that the first sum is the first number, whose sign a
 * zero has; an exclusive scan begins with +0. */
#define SCANS(id, T, WIDE, LOWEST, HIGHEST)                                                        \
    SCAN(max_##id, T, LOWEST, (v > acc || v != v) && acc == acc ? v : acc)                         \
    SCAN(min_##id, T, HIGHEST, (v < acc || v != v) && acc == acc ? v : acc)                        \
    SCAN(sum_##id, T, (T)(p->inclusive ? -0.0 : 0), (T)((WIDE)acc + (WIDE)v))                      \
    SCAN(prod_##id, T, 1, (T)((WIDE)acc * (WIDE)v))

/* Integers wrap around, so they are computed without a sign; 8 and 16 bits fit in 32. */
SCANS(U8, uint8_t, uint32_t, 0, UINT8_MAX)
SCANS(U16, uint16_t, uint32_t, 0, UINT16_MAX)
SCANS(U32, uint32_t, uint32_t, 0, UINT32_MAX)
SCANS(U64, uint64_t, uint64_t, 0, UINT64_MAX)
SCANS(I8, int8_t, uint32_t, INT8_MIN, INT8_MAX)
SCANS(I16, int16_t, uint32_t, INT16_MIN, INT16_MAX)
SCANS(I32, int32_t, uint32_t, INT32_MIN, INT32_MAX)
SCANS(I64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
SCANS(F32, float, float, -INFINITY, INFINITY)
SCANS(F64, double, double, -INFINITY, INFINITY)

static double log_add_exp(double a, double b)
{
    double high = fmax(a, b), low = fmin(a, b);

    if (isnan(a) || isnan(b))
        return NAN;
    return isinf(high) || isinf(low) ? high : high + log1p(exp(low - high));
}

SCAN(lae_F32, float, -INFINITY, (float)log_add_exp((double)acc, (double)v))
SCAN(lae_F64, double, -INFINITY, log_add_exp(acc, v))
SCAN(sum_C64, float _Complex, p->inclusive ? CMPLXF(-0.0F, -0.0F) : 0, acc + v)
SCAN(prod_C64, float _Complex, 1, acc *v)
SCAN(max_C64, float _Complex, CMPLXF(-INFINITY, -INFINITY),
     !c_isnan(acc) && (c_isnan(v) || c_greater(v, acc)) ? v : acc)
SCAN(min_C64, float _Complex, CMPLXF(INFINITY, INFINITY),
     !c_isnan(acc) && (c_isnan(v) || c_greater(acc, v)) ? v : acc)
SCAN(lae_C64, float _Complex, CMPLXF(-INFINITY, 0), c_logaddexp(acc, v))

#define ROW(id)                                                                                    \
    [CPU_##id] = { [SCAN_MAX] = max_##id,                                                          \
                   [SCAN_MIN] = min_##id,                                                          \
                   [SCAN_SUM] = sum_##id,                                                          \
                   [SCAN_PROD] = prod_##id }
static const scan_fn scans[CPU_CLASS_COUNT][SCAN_LOGADDEXP + 1] = {
    ROW(U8),
    ROW(U16),
    ROW(U32),
    ROW(U64),
    ROW(I8),
    ROW(I16),
    ROW(I32),
    ROW(I64),
    [CPU_F32] = { max_F32, min_F32, sum_F32, prod_F32, lae_F32 },
    [CPU_F64] = { max_F64, min_F64, sum_F64, prod_F64, lae_F64 },
    [CPU_C64] = { max_C64, min_C64, sum_C64, prod_C64, lae_C64 },
};

struct run {
    const struct task *t;
    const char *in;
    _Atomic bool no_memory;
};

static void run_rows(void *arg, size_t begin, size_t end)
{
    struct run *r = arg;
    const struct task *t = r->t;
    size_t bytes = t->length * dt_size((enum dtype)t->type);
    scan_fn scan = scans[cpu_class_of[t->wide]][t->p.kind];
    bool is_half = t->type != t->wide;
    float *wide = is_half ? mem_alloc_aligned(t->length * sizeof *wide) : NULL;

    if (is_half && !wide) {
        atomic_store(&r->no_memory, true);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        const char *in = r->in + i * bytes;
        char *out = t->out + i * bytes;
        if (is_half) {
            cpu_widen(wide, in, (enum dtype)t->type, t->length);
            scan(wide, wide, t->length, &t->p);
            cpu_narrow(out, wide, (enum dtype)t->type, t->length);
        } else {
            scan(out, in, t->length, &t->p);
        }
    }
    mem_free(wide);
}

/* ---- by columns: many rows side by side, one element of each after the other ---- */

static const uint8_t combining_op[] = {
    [SCAN_MAX] = OP_MAXIMUM,   [SCAN_MIN] = OP_MINIMUM,           [SCAN_SUM] = OP_ADD,
    [SCAN_PROD] = OP_MULTIPLY, [SCAN_LOGADDEXP] = OP_LOG_ADD_EXP,
};

/* What comes before the first element: the first result of an exclusive scan of anything. */
static void fill_identity(char *dst, const struct task *t, size_t n)
{
    size_t item = dt_size((enum dtype)t->wide);
    const struct scan_params exclusive = { .kind = t->p.kind };
    const uint64_t anything = 0;

    for (size_t i = 0; i < n; i++)
        scans[cpu_class_of[t->wide]][t->p.kind](dst + i * item, &anything, 1, &exclusive);
}

/* n columns whose first elements are at in and out. */
static void scan_columns(const struct task *t, const char *in, char *out, size_t n)
{
    enum dtype type = (enum dtype)t->type, wide = (enum dtype)t->wide;
    cpu_kernel combine = cpu_kernels()->op[combining_op[t->p.kind]][cpu_class_of[wide]].fn;
    int64_t step = (int64_t)(t->inner * dt_size(type)), at = t->p.reverse ? t->length - 1 : 0;
    char sum[COLUMNS * 8] __attribute__((aligned(64))), raw[COLUMNS * 8];

    fill_identity(sum, t, n);
    for (uint32_t k = 0; k < t->length; k++, at += t->p.reverse ? -1 : 1) {
        const char *x = in + at * step;
        if (!t->p.inclusive)
            cpu_convert((struct cpu_vec){ out + at * step, type }, (struct cpu_vec){ sum, wide },
                        n);
        if (type != wide) {
            cpu_widen((float *)raw, x, type, n);
            x = raw;
        }
        if (k == 0 && t->p.inclusive)
            memcpy(sum, x, n * dt_size(wide));
        else
            combine(sum, sum, x, NULL, n);
        if (t->p.inclusive)
            cpu_convert((struct cpu_vec){ out + at * step, type }, (struct cpu_vec){ sum, wide },
                        n);
    }
}

static size_t blocks_of(const struct task *t)
{
    return (t->inner + COLUMNS - 1) / COLUMNS;
}

static void run_columns(void *arg, size_t begin, size_t end)
{
    struct run *r = arg;
    const struct task *t = r->t;
    size_t item = dt_size((enum dtype)t->type);

    for (size_t i = begin; i < end; i++) {
        size_t first = i % blocks_of(t) * COLUMNS;
        size_t offset = (i / blocks_of(t) * t->length * t->inner + first) * item;
        scan_columns(t, r->in + offset, t->out + offset, MIN(COLUMNS, t->inner - first));
    }
}

/* ---- the op ---- */

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    enum err err = cpu_src_host(&r.in, &t->in);

    if (err)
        return err;
    if (t->inner)
        cpu_parallel_for(t->rows / t->inner * blocks_of(t),
                         PARALLEL_ELEMENTS / t->length / MIN(t->inner, COLUMNS) + 1, run_columns,
                         &r);
    else
        cpu_parallel_for(t->rows, PARALLEL_ELEMENTS / t->length + 1, run_rows, &r);
    if (atomic_load(&r.no_memory))
        err = err_set(ERR_NO_MEMORY, "[scan] No memory for rows of %u.", t->length);
    return err;
}

/* A row-major array along another axis than the last needs no rows side by side. The vector ops
 * order complex numbers with NaN by the other operand, so these take rows. */
static size_t columns_of(const struct arr *in, int axis)
{
    size_t inner = 1;

    for (int i = axis + 1; i < in->ndim; i++)
        inner *= (size_t)in->shape[i];
    return inner > 1 && (in->flags & LAYOUT_ROW) && in->dtype != DT_COMPLEX64 ? inner : 0;
}

enum err cpu_scan(const struct exec *x)
{
    const struct scan_params *p = x->node->params;
    struct arr *in = x->in[0], *out = x->out[0];
    enum dtype type = (enum dtype)out->dtype;
    struct task t = { .type = (uint8_t)type,
                      .wide = (uint8_t)(cpu_is_half(type) ? DT_FLOAT32 : type),
                      .p = *p,
                      .length = (uint32_t)in->shape[p->axis],
                      .rows = in->size / (size_t)in->shape[p->axis],
                      .inner = columns_of(in, p->axis) };
    struct be_rows rows;
    enum err err;

    if (!scans[cpu_class_of[t.wide]][p->kind])
        return err_set(ERR_UNSUPPORTED, "[scan] No such scan of %s.", dt_name(type));
    if (t.inner) {
        TRY(arr_alloc(out, &be_cpu));
        t.in = cpu_src(in);
        t.out = cpu_dst(out);
        return cpu_enqueue(x->strm, run_task, &t, sizeof t);
    }
    TRY(be_rows_begin(&rows, x, p->axis));
    t.in = cpu_src(rows.in);
    t.out = cpu_dst(rows.out);
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
    err = be_rows_end(&rows, x->strm, err);
out:
    return err;
}
