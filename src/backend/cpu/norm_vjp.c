/* Gradients of RMSNorm and LayerNorm over the last axis, in float32.
 *
 * n = (x - mean) * factor is what the norm made of x, d the cotangent times weight:
 *   dx = factor * (d - mean of d (LayerNorm) - n * mean of d * n)
 *   weight's: the sum of cotangent * n over all rows, bias': of the cotangent
 * Rows are cut into chunks by their number alone, whose sums are added up in order. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#include <math.h>
#include <stdatomic.h>

#define MAX_CHUNKS 64
#define MIN_ELEMENTS 16384 /* of a chunk */

enum { X, COTAN, WEIGHT, INPUTS };

struct task {
    struct cpu_src in[INPUTS];
    int64_t stride[INPUTS];   /* along the last axis */
    struct nest rows[WEIGHT]; /* the other axes of x and of the cotangent */
    char *dx, *vector[2];     /* results; weight's and bias' may be NULL */
    float eps;
    uint8_t type; /* enum dtype */
    bool has_weight, centred;
    size_t n_rows, length, n_chunks;
};

struct run {
    const struct task *t;
    const char *in[INPUTS];
    float *sums; /* of each chunk: weight's, then bias' */
    _Atomic int failed;
};

/* What one thread needs: a row of each. */
struct work {
    const struct run *r;
    size_t item;
    char *memory; /* everything below */
    float *n, *t, *d, *weight, *product;
    char *raw;
};

static void load(const struct work *w, float *dst, int k, const char *from)
{
    const struct task *t = w->r->t;
    struct nest axis = {
        .ndim = 1, .n_operands = 1, .dim = { (int64_t)t->length }, .stride = { { t->stride[k] } }
    };
    const char *src =
        tile_gather(w->raw, from, &(struct tile_walk){ &axis, 0, w->item }, 0, t->length);

    cpu_convert((struct cpu_vec){ dst, DT_FLOAT32 },
                (struct cpu_vec){ (void *)(uintptr_t)src, (enum dtype)t->type }, t->length);
}

static void load_row(const struct work *w, float *dst, int k, size_t row)
{
    const struct task *t = w->r->t;

    load(w, dst, k, w->r->in[k] + nest_offset(&t->rows[k], 0, row) * (int64_t)w->item);
}

static bool work_init(struct work *w, const struct run *r)
{
    size_t line = align_up(r->t->length, 16);

    *w = (struct work){ .r = r, .item = dt_size((enum dtype)r->t->type) };
    if (!(w->memory = mem_alloc_aligned(6 * line * sizeof(float))))
        return false;
    w->n = (float *)w->memory;
    w->t = w->n + line;
    w->d = w->t + line;
    w->weight = w->d + line;
    w->product = w->weight + line;
    w->raw = (char *)(w->product + line);
    if (r->t->has_weight)
        load(w, w->weight, WEIGHT, r->in[WEIGHT]);
    return true;
}

static float mean_of(const float *x, size_t n)
{
    float sum;

    cpu_kernels()->fold[OP_ADD][CPU_F32](&sum, x, n);
    return sum / (float)n;
}

/* The mean of a * b. */
static float mean_product(const struct work *w, const float *a, const float *b, size_t n)
{
    cpu_kernels()->op[OP_MULTIPLY][CPU_F32].fn(w->product, a, b, NULL, n);
    return mean_of(w->product, n);
}

/* x becomes n. Returns the factor. */
static float norm(const struct work *w)
{
    const struct task *t = w->r->t;
    float mean = t->centred ? mean_of(w->n, t->length) : 0.0f;

    for (size_t i = 0; t->centred && i < t->length; i++)
        w->n[i] -= mean;
    float factor = 1.0f / sqrtf(mean_product(w, w->n, w->n, t->length) + t->eps);
    for (size_t i = 0; i < t->length; i++)
        w->n[i] *= factor;
    return factor;
}

static void do_row(const struct work *w, size_t row, float *const sums[2])
{
    const struct task *t = w->r->t;

    load_row(w, w->n, X, row);
    load_row(w, w->t, COTAN, row);
    float factor = norm(w);
    for (size_t i = 0; sums[0] && i < t->length; i++)
        sums[0][i] += w->t[i] * w->n[i];
    for (size_t i = 0; sums[1] && i < t->length; i++)
        sums[1][i] += w->t[i];
    for (size_t i = 0; i < t->length; i++)
        w->d[i] = t->has_weight ? w->t[i] * w->weight[i] : w->t[i];
    float mean_dn = mean_product(w, w->d, w->n, t->length);
    float mean_d = t->centred ? mean_of(w->d, t->length) : 0.0f;
    for (size_t i = 0; i < t->length; i++)
        w->d[i] = factor * (w->d[i] - mean_d - w->n[i] * mean_dn);
    cpu_convert((struct cpu_vec){ t->dx + row * t->length * w->item, (enum dtype)t->type },
                (struct cpu_vec){ w->d, DT_FLOAT32 }, t->length);
}

/* Sums of vector k in a chunk; NULL: nobody wants them. */
static float *sums_of(const struct run *r, size_t chunk, int k)
{
    return r->t->vector[k] ? r->sums + (2 * chunk + (size_t)k) * r->t->length : NULL;
}

static void run_chunks(void *arg, size_t begin, size_t end)
{
    struct run *r = arg;
    const struct task *t = r->t;
    struct work w;

    if (!work_init(&w, r)) {
        atomic_store(&r->failed, 1);
        return;
    }
    for (size_t c = begin; c < end; c++)
        for (size_t row = c * t->n_rows / t->n_chunks; row < (c + 1) * t->n_rows / t->n_chunks;
             row++)
            do_row(&w, row, (float *const[]){ sums_of(r, c, 0), sums_of(r, c, 1) });
    mem_free(w.memory);
}

static void add_chunks(const struct run *r)
{
    const struct task *t = r->t;

    for (int k = 0; k < 2; k++) {
        float *sum = sums_of(r, 0, k);
        for (size_t c = 1; sum && c < t->n_chunks; c++)
            for (size_t i = 0; i < t->length; i++)
                sum[i] += sums_of(r, c, k)[i];
        if (sum)
            cpu_convert((struct cpu_vec){ t->vector[k], (enum dtype)t->type },
                        (struct cpu_vec){ sum, DT_FLOAT32 }, t->length);
    }
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    bool has_sums = t->vector[0] || t->vector[1];
    enum err err = ERR_OK;

    for (int k = 0; k < INPUTS; k++)
        if (k != WEIGHT || t->has_weight)
            TRY(cpu_src_host(&r.in[k], &t->in[k]));
    if (has_sums && !(r.sums = mem_alloc_array(2 * t->n_chunks * t->length, sizeof *r.sums)))
        return ERR_NO_MEMORY;
    cpu_parallel_for(t->n_chunks, 1, run_chunks, &r);
    if (atomic_load(&r.failed))
        err = ERR_NO_MEMORY;
    else
        add_chunks(&r);
out:
    mem_free(r.sums);
    return err;
}

static void set_rows(struct task *t, int k, const struct arr *a)
{
    struct shp rows;

    t->in[k] = cpu_src(a);
    t->stride[k] = a->strides[a->ndim - 1];
    arr_shape(&rows, a);
    rows.ndim--;
    t->n_rows = shp_size(&rows);
    nest_make(&t->rows[k], &rows, a->strides);
}

enum err cpu_norm_vjp(const struct exec *x)
{
    const struct norm_vjp_params *p = x->node->params;
    struct arr *in = x->in[0], *cotan = x->in[x->n_in - 1];
    int next = 1;
    struct task t = { .eps = p->of.eps,
                      .type = in->dtype,
                      .has_weight = p->of.has_weight,
                      .centred = x->node->op == OP_LAYER_NORM_VJP,
                      .length = (size_t)in->shape[in->ndim - 1] };
    enum err err = ERR_OK;

    for (int i = 0; i < x->n_out; i++)
        TRY(arr_alloc(x->out[i], &be_cpu));
    set_rows(&t, X, in);
    set_rows(&t, COTAN, cotan);
    if (p->of.has_weight) {
        t.in[WEIGHT] = cpu_src(x->in[1]);
        t.stride[WEIGHT] = x->in[1]->strides[0];
    }
    t.dx = cpu_dst(x->out[0]);
    if (p->for_vectors && p->of.has_weight)
        t.vector[0] = cpu_dst(x->out[next++]);
    if (p->for_vectors && p->of.has_bias)
        t.vector[1] = cpu_dst(x->out[next]);
    t.n_chunks = MIN(MIN(t.n_rows, MAX_CHUNKS), in->size / MIN_ELEMENTS + 1);
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
