/* Sorting rows: elements become unsigned keys in the same order, and a radix sort, which keeps
 * equal ones in their order, moves pairs of key and position. */
#include "backend/common/rows.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
/* Below this many elements an insertion sort is quicker than counting. */
#define SMALL 48
#define PARALLEL_ELEMENTS 4096

struct pair {
    uint64_t key;
    uint32_t at;
};

struct task {
    struct cpu_src in;
    char *out;
    uint8_t type; /* enum dtype */
    bool is_arg;
    uint32_t length;
    size_t rows;
};

/* ---- keys ---- */

static uint64_t signed_key(int64_t v, int bits)
{
    return (uint64_t)v ^ (uint64_t)1 << (bits - 1);
}

/* Negative floats count downwards; both zeros are equal; NaN comes last. */
static uint64_t float_key(uint64_t bits, uint64_t sign, uint64_t infinity)
{
    if ((bits & ~sign) > infinity)
        return UINT64_MAX;
    if ((bits & ~sign) == 0)
        return sign;
    return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
}

static uint64_t f32_key(uint32_t bits)
{
    return float_key(bits, 0x80000000u, 0x7f800000u);
}

/* By real part, then by imaginary part; with a NaN in either it comes last. */
static uint64_t complex_key(uint64_t bits)
{
    uint64_t re = f32_key((uint32_t)bits), im = f32_key((uint32_t)(bits >> 32));

    return MAX(re, im) == UINT64_MAX ? UINT64_MAX : re << 32 | im;
}

/* Fills pair[0..n) from a row. */
static void make_keys(struct pair *pair, const char *row, enum dtype t, uint32_t n)
{
#define KEYS(T, expr)                                                                              \
    for (uint32_t i = 0; i < n; i++) {                                                             \
        T v = ((const T *)row)[i];                                                                 \
        pair[i] = (struct pair){ expr, i };                                                        \
    }                                                                                              \
    break
    switch (t) {
    case DT_BOOL:
    case DT_UINT8:
        KEYS(uint8_t, v);
    case DT_UINT16:
        KEYS(uint16_t, v);
    case DT_UINT32:
        KEYS(uint32_t, v);
    case DT_UINT64:
        KEYS(uint64_t, v);
    case DT_INT8:
        KEYS(int8_t, signed_key(v, 8) & 0xff);
    case DT_INT16:
        KEYS(int16_t, signed_key(v, 16) & 0xffff);
    case DT_INT32:
        KEYS(int32_t, signed_key(v, 32) & 0xffffffff);
    case DT_INT64:
        KEYS(int64_t, signed_key(v, 64));
    case DT_FLOAT16:
        KEYS(uint16_t, float_key(v, 0x8000, 0x7c00));
    case DT_BFLOAT16:
        KEYS(uint16_t, float_key(v, 0x8000, 0x7f80));
    case DT_FLOAT32:
        KEYS(uint32_t, f32_key(v));
    case DT_FLOAT64:
        KEYS(uint64_t, float_key(v, (uint64_t)1 << 63, 0x7ff0000000000000u));
    default:
        KEYS(uint64_t, complex_key(v));
    }
#undef KEYS
}

/* ---- one row ---- */

static void insertion_sort(struct pair *p, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct pair v = p[i];
        uint32_t k = i;
        for (; k > 0 && p[k - 1].key > v.key; k--)
            p[k] = p[k - 1];
        p[k] = v;
    }
}

/* One pass by the digit at shift; false if all digits are the same and nothing was moved. */
static bool radix_pass(struct pair *to, const struct pair *from, uint32_t n, int shift)
{
    uint32_t count[DIGITS] = { 0 }, at = 0;

    for (uint32_t i = 0; i < n; i++)
        count[from[i].key >> shift & (DIGITS - 1)]++;
    if (count[from[0].key >> shift & (DIGITS - 1)] == n)
        return false;
    for (int d = 0; d < DIGITS; d++) {
        uint32_t here = count[d];
        count[d] = at;
        at += here;
    }
    for (uint32_t i = 0; i < n; i++)
        to[count[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

/* Sorts p with the help of q; returns which of them holds the result. */
static const struct pair *sort_pairs(struct pair *p, struct pair *q, uint32_t n)
{
    if (n < SMALL) {
        insertion_sort(p, n);
        return p;
    }
    for (int shift = 0; shift < 64; shift += DIGIT_BITS)
        if (radix_pass(q, p, n, shift)) {
            struct pair *sorted = q;
            q = p;
            p = sorted;
        }
    return p;
}

static void put_row(const struct task *t, char *out, const char *row, const struct pair *p)
{
    size_t item = dt_size((enum dtype)t->type);

    if (t->is_arg) {
        for (uint32_t i = 0; i < t->length; i++)
            ((uint32_t *)out)[i] = p[i].at;
        return;
    }
#define PUT(T)                                                                                     \
    for (uint32_t i = 0; i < t->length; i++)                                                       \
        ((T *)out)[i] = ((const T *)row)[p[i].at];
    BY_ITEM(item, PUT)
#undef PUT
}

/* ---- the op ---- */

struct run {
    const struct task *t;
    const char *in;
    _Atomic int err; /* enum err */
};

static void run_rows(void *arg, size_t begin, size_t end)
{
    struct run *r = arg;
    const struct task *t = r->t;
    size_t item = dt_size((enum dtype)t->type), out_item = t->is_arg ? 4 : item;
    struct pair *pairs = mem_alloc_aligned(2 * (size_t)t->length * sizeof *pairs);

    if (!pairs) {
        atomic_store(&r->err, ERR_NO_MEMORY);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        const char *row = r->in + i * t->length * item;
        make_keys(pairs, row, (enum dtype)t->type, t->length);
        put_row(t, t->out + i * t->length * out_item, row,
                sort_pairs(pairs, pairs + t->length, t->length));
    }
    mem_free(pairs);
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    enum err err = cpu_src_host(&r.in, &t->in);

    if (err)
        return err;
    cpu_parallel_for(t->rows, PARALLEL_ELEMENTS / t->length + 1, run_rows, &r);
    if (atomic_load(&r.err))
        err = err_set(ERR_NO_MEMORY, "[sort] No memory for rows of %u.", t->length);
    return err;
}

enum err cpu_sort(const struct exec *x)
{
    bool is_arg = x->node->op == OP_ARG_SORT || x->node->op == OP_ARG_PARTITION;
    bool is_partition = x->node->op == OP_PARTITION || x->node->op == OP_ARG_PARTITION;
    int axis = is_partition ? ((const struct partition_params *)x->node->params)->axis
                            : ((const struct axis_params *)x->node->params)->axis;
    struct be_rows rows;
    enum err err;

    TRY(be_rows_begin(&rows, x, axis));
    struct task t = { .in = cpu_src(rows.in),
                      .out = cpu_dst(rows.out),
                      .type = rows.in->dtype,
                      .is_arg = is_arg,
                      .length = rows.length,
                      .rows = rows.n };
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
    err = be_rows_end(&rows, x->strm, err);
out:
    return err;
}
