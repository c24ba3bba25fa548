/* Running sums, products and extremes of rows. Half types accumulate in float32. */
#include "backend/common/rows.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/kernels_scalar.h"

#define PARALLEL_ELEMENTS 16384

struct task {
    struct cpu_src in;
    char *out;
    uint8_t type, wide; /* enum dtype */
    struct scan_params p;
    uint32_t length;
    size_t rows;
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

/* Extremes keep the first NaN. */
#define SCANS(id, T, WIDE, LOWEST, HIGHEST)                                                        \
    SCAN(max_##id, T, LOWEST, (v > acc || v != v) && acc == acc ? v : acc)                         \
    SCAN(min_##id, T, HIGHEST, (v < acc || v != v) && acc == acc ? v : acc)                        \
    SCAN(sum_##id, T, 0, (T)((WIDE)acc + (WIDE)v))                                                 \
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
    return isinf(high) ? high : high + log1p(exp(low - high));
}

SCAN(lae_F32, float, -INFINITY, (float)log_add_exp((double)acc, (double)v))
SCAN(lae_F64, double, -INFINITY, log_add_exp(acc, v))
SCAN(sum_C64, float _Complex, 0, acc + v)
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

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    enum err err = cpu_src_host(&r.in, &t->in);

    if (err)
        return err;
    cpu_parallel_for(t->rows, PARALLEL_ELEMENTS / t->length + 1, run_rows, &r);
    if (atomic_load(&r.no_memory))
        err = err_set(ERR_NO_MEMORY, "[scan] No memory for rows of %u.", t->length);
    return err;
}

enum err cpu_scan(const struct exec *x)
{
    const struct scan_params *p = x->node->params;
    enum dtype type = (enum dtype)x->out[0]->dtype;
    enum dtype wide = cpu_is_half(type) ? DT_FLOAT32 : type;
    struct be_rows rows;
    enum err err;

    if (!scans[cpu_class_of[wide]][p->kind])
        return err_set(ERR_UNSUPPORTED, "[scan] No such scan of %s.", dt_name(type));
    TRY(be_rows_begin(&rows, x, p->axis));
    struct task t = { .in = cpu_src(rows.in),
                      .out = cpu_dst(rows.out),
                      .type = (uint8_t)type,
                      .wide = (uint8_t)wide,
                      .p = *p,
                      .length = rows.length,
                      .rows = rows.n };
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
    err = be_rows_end(&rows, x->strm, err);
out:
    return err;
}
