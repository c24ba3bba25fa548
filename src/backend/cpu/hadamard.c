/* The Hadamard transform of rows: butterflies of each block of a power of two, the widest first,
 * then sums over the blocks by the matrix of the base. In float32 or float64, rounded once. */
#include "graph/hadamard.h"
#include "backend/common/rows.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"

#define PARALLEL_ELEMENTS 16384
/* A block of so many elements stays in the first-level cache. */
#define CACHED 4096
/* Columns that are summed up side by side. */
#define COLUMNS 256

struct task {
    struct cpu_src in;
    char *out;
    uint8_t type; /* enum dtype */
    struct hadamard_size size;
    float scale;
    size_t n_rows, length;
};

struct run {
    const struct task *t;
    const char *in;
    _Atomic bool no_memory;
};

/* x: n elements, a power of two. Halves that do not fit the cache are gone through one after the
 * other. */
#define TRANSFORM(name, T)                                                                         \
    static void widest_##name(T *x, size_t h)                                                      \
    {                                                                                              \
        for (size_t i = 0; i < h; i++) {                                                           \
            T a = x[i], b = x[i + h];                                                              \
            x[i] = a + b;                                                                          \
            x[i + h] = a - b;                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void cached_##name(T *x, size_t n)                                                      \
    {                                                                                              \
        for (size_t h = n / 2; h > 0; h /= 2)                                                      \
            for (size_t i = 0; i < n; i += 2 * h)                                                  \
                widest_##name(x + i, h);                                                           \
    }                                                                                              \
    static void butterflies_##name(T *x, size_t n)                                                 \
    {                                                                                              \
        for (size_t done = 0; done < n; done += MIN(CACHED, n)) {                                  \
            /* What ends where a block begins comes before that block. */                          \
            for (size_t h = n / 2; h >= CACHED; h /= 2)                                            \
                if (done % (2 * h) == 0)                                                           \
                    widest_##name(x + done, h);                                                    \
            cached_##name(x + done, MIN(CACHED, n));                                               \
        }                                                                                          \
    }                                                                                              \
    static void sums_##name(T *x, const struct task *t)                                            \
    {                                                                                              \
        size_t m = (size_t)t->size.base, n = (size_t)1 << t->size.log2;                            \
        const uint32_t *signs = hadamard_rows(t->size.base);                                       \
        T in[HADAMARD_BASE_MAX][COLUMNS];                                                          \
        for (size_t first = 0; first < n; first += COLUMNS) {                                      \
            size_t width = MIN(COLUMNS, n - first);                                                \
            for (size_t q = 0; q < m; q++)                                                         \
                memcpy(in[q], x + q * n + first, width * sizeof(T));                               \
            for (size_t j = 0; j < m; j++) {                                                       \
                T *sum = x + j * n + first;                                                        \
                memset(sum, 0, width * sizeof(T));                                                 \
                for (size_t q = 0; q < m; q++) {                                                   \
                    T sign = signs[j] >> q & 1 ? 1 : -1;                                           \
                    for (size_t i = 0; i < width; i++)                                             \
                        sum[i] += sign * in[q][i];                                                 \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void row_##name(void *row, const struct task *t)                                        \
    {                                                                                              \
        size_t n = (size_t)1 << t->size.log2;                                                      \
        T *x = row;                                                                                \
        for (size_t i = 0; i < t->length; i += n)                                                  \
            butterflies_##name(x + i, n);                                                          \
        if (t->size.base > 1)                                                                      \
            sums_##name(x, t);                                                                     \
        for (size_t i = 0; i < t->length; i++)                                                     \
            x[i] *= (T)t->scale;                                                                   \
    }
TRANSFORM(f32, float)
TRANSFORM(f64, double)

static void run_rows(void *arg, size_t begin, size_t end)
{
    struct run *r = arg;
    const struct task *t = r->t;
    enum dtype type = (enum dtype)t->type;
    size_t bytes = t->length * dt_size(type);
    float *wide = cpu_is_half(type) ? mem_alloc_aligned(t->length * sizeof *wide) : NULL;

    if (cpu_is_half(type) && !wide) {
        atomic_store(&r->no_memory, true);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        const char *in = r->in + i * bytes;
        char *out = t->out + i * bytes;
        if (wide) {
            cpu_widen(wide, in, type, t->length);
            row_f32(wide, t);
            cpu_narrow(out, wide, type, t->length);
        } else {
            if (out != in)
                memcpy(out, in, bytes);
            (type == DT_FLOAT64 ? row_f64 : row_f32)(out, t);
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
    cpu_parallel_for(t->n_rows, PARALLEL_ELEMENTS / t->length + 1, run_rows, &r);
    if (atomic_load(&r.no_memory))
        err = err_set(ERR_NO_MEMORY, "[hadamard_transform] No memory for rows of %zu.", t->length);
    return err;
}

enum err cpu_hadamard(const struct exec *x)
{
    const struct hadamard_params *p = x->node->params;
    struct arr *in = x->in[0], *out = x->out[0];
    struct task t = { .type = out->dtype, .scale = p->scale };
    struct be_rows rows;
    enum err err;

    if (!out->size)
        return arr_alloc(out, &be_cpu);
    (void)hadamard_size(&t.size, in->shape[in->ndim - 1]); /* op_infer has made sure */
    TRY(be_rows_begin(&rows, x, in->ndim - 1));
    t.in = cpu_src(rows.in);
    t.out = cpu_dst(rows.out);
    t.n_rows = rows.n;
    t.length = rows.length;
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
    err = be_rows_end(&rows, x->strm, err);
out:
    return err;
}
