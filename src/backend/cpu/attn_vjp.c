/* Gradients of attention, in float32: the weights of a row are computed again.
 *
 *   w = exp(score - maximum) / sum     of a query row and a key
 *   d = w * (cotangent . value - mean) where the mean over the row's keys is cotangent . result
 *   q's: sum of d * key, k's: of d * query (both times scale), v's: of w * cotangent
 *
 * A kv head of a batch is one task with all rows that read it, so that nobody else adds to the same
 * sums. */
#include "backend/common/attn.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

enum { Q, K, V, MASK, SINKS, OUT, COTAN, OPERANDS };

struct task {
    struct cpu_src in[OPERANDS];
    bool has[OPERANDS];
    int64_t stride[OPERANDS][4];
    char *result[4]; /* of q, k, v, sinks */
    int32_t batch, heads, n_kv, group, n_q, n_k, dim, v_dim;
    float scale;
    bool causal, bool_mask;
    uint8_t type; /* enum dtype */
};

struct run {
    const struct task *t;
    const char *in[OPERANDS];
    float *sinks; /* for each batch and head */
    _Atomic int failed;
};

struct work {
    const struct run *r;
    float *memory;                /* everything below */
    float *k, *v, *k_sum, *v_sum; /* of all keys */
    float *q, *t, *out, *q_sum;   /* of a row */
    float *weight, *slope, *mask; /* of a row's keys */
    char *raw;
    int64_t batch, kv, head, position; /* of the row */
    size_t n_keys;                     /* that it sees */
};

static size_t item_of(const struct task *t)
{
    return dt_size((enum dtype)t->type);
}

/* ---- operands ---- */

static void load(const struct work *w, float *dst, const char *from, int64_t stride, size_t n)
{
    const struct task *t = w->r->t;
    struct nest axis = {
        .ndim = 1, .n_operands = 1, .dim = { (int64_t)n }, .stride = { { stride } }
    };
    const char *src = tile_gather(w->raw, from, &(struct tile_walk){ &axis, 0, item_of(t) }, 0, n);

    cpu_convert((struct cpu_vec){ dst, DT_FLOAT32 },
                (struct cpu_vec){ (void *)(uintptr_t)src, (enum dtype)t->type }, n);
}

/* Row l of an operand: of the kv head, or of the row's head. */
static void load_row(const struct work *w, float *dst, int operand, int64_t l)
{
    const struct task *t = w->r->t;
    const int64_t *s = t->stride[operand];
    bool is_key = operand == K || operand == V;
    int64_t at = w->batch * s[0] + (is_key ? w->kv : w->head) * s[1] + l * s[2];

    load(w, dst, w->r->in[operand] + at * (int64_t)item_of(t), s[3],
         (size_t)(operand == Q || operand == K ? t->dim : t->v_dim));
}

static float sink_of(const struct work *w)
{
    const struct task *t = w->r->t;
    float sink;

    load(w, &sink, w->r->in[SINKS] + w->head * t->stride[SINKS][0] * (int64_t)item_of(t), 1, 1);
    return sink;
}

/* ---- a row ---- */

static bool is_kept(const struct work *w, size_t key)
{
    const int64_t *s = w->r->t->stride[MASK];

    return w->r
        ->in[MASK][w->batch * s[0] + w->head * s[1] + w->position * s[2] + (int64_t)key * s[3]];
}

static void mask_scores(const struct work *w)
{
    const struct task *t = w->r->t;
    const int64_t *s = t->stride[MASK];
    int64_t at = w->batch * s[0] + w->head * s[1] + w->position * s[2];

    if (!t->bool_mask)
        load(w, w->mask, w->r->in[MASK] + at * (int64_t)item_of(t), s[3], w->n_keys);
    for (size_t i = 0; i < w->n_keys; i++)
        if (!t->bool_mask)
            w->weight[i] += w->mask[i];
        else if (!is_kept(w, i))
            w->weight[i] = -FLT_MAX;
}

/* The weights of the row's keys, and the sink's. */
static float find_weights(const struct work *w)
{
    const struct cpu_kernels *kernels = cpu_kernels();
    size_t n = w->n_keys, dim = (size_t)w->r->t->dim;
    bool has_sink = w->r->t->has[SINKS];
    float sink = has_sink ? sink_of(w) : -INFINITY, max, sum;

    kernels->dot_rows(w->weight, w->q, &(struct cpu_rows){ w->k, n, dim, dim });
    if (w->r->t->has[MASK])
        mask_scores(w);
    kernels->fold[OP_MAXIMUM][CPU_F32](&max, w->weight, n);
    max = fmaxf(max, sink);
    if (max == -INFINITY) { /* the mask leaves nothing */
        memset(w->weight, 0, n * sizeof *w->weight);
        return 0.0f;
    }
    for (size_t i = 0; i < n; i++)
        w->weight[i] -= max;
    kernels->op[OP_EXP][CPU_F32].fn(w->weight, w->weight, NULL, NULL, n);
    kernels->fold[OP_ADD][CPU_F32](&sum, w->weight, n);
    sink = has_sink ? expf(sink - max) : 0.0f;
    sum += sink;
    for (size_t i = 0; i < n; i++)
        w->weight[i] /= sum;
    return sink / sum;
}

/* The cotangents of the scores, those of masked ones 0. */
static void find_slopes(const struct work *w, float mean)
{
    const struct task *t = w->r->t;
    size_t n = w->n_keys, width = (size_t)t->v_dim;

    cpu_kernels()->dot_rows(w->slope, w->t, &(struct cpu_rows){ w->v, n, width, width });
    for (size_t i = 0; i < n; i++)
        w->slope[i] = w->weight[i] * (w->slope[i] - mean);
    for (size_t i = 0; t->has[MASK] && t->bool_mask && i < n; i++)
        if (!is_kept(w, i))
            w->slope[i] = 0.0f;
}

/* Adds factor[i] * row to row i of sums, for the keys that the row sees. */
static void add_outer(const struct work *w, float *sums, const float *factor, const float *row,
                      size_t width)
{
    for (size_t i = 0; i < w->n_keys; i++)
        for (size_t j = 0; j < width; j++)
            sums[i * width + j] += factor[i] * row[j];
}

static void do_row(struct work *w)
{
    const struct task *t = w->r->t;
    size_t dim = (size_t)t->dim, v_dim = (size_t)t->v_dim;
    float mean = 0.0f;

    w->n_keys = (size_t)(t->causal ? w->position + 1 + t->n_k - t->n_q : t->n_k);
    load_row(w, w->q, Q, w->position);
    load_row(w, w->t, COTAN, w->position);
    load_row(w, w->out, OUT, w->position);
    for (size_t i = 0; i < dim; i++)
        w->q[i] *= t->scale;
    for (size_t i = 0; i < v_dim; i++)
        mean += w->t[i] * w->out[i];
    float sink = find_weights(w);
    find_slopes(w, mean);
    memset(w->q_sum, 0, dim * sizeof *w->q_sum);
    cpu_kernels()->add_rows(w->q_sum, w->slope, &(struct cpu_rows){ w->k, w->n_keys, dim, dim });
    for (size_t i = 0; i < dim; i++)
        w->q_sum[i] *= t->scale;
    add_outer(w, w->k_sum, w->slope, w->q, dim);
    add_outer(w, w->v_sum, w->weight, w->t, v_dim);
    int64_t head = w->batch * t->heads + w->head;
    cpu_convert(
        (struct cpu_vec){ t->result[0] + (size_t)(head * t->n_q + w->position) * dim * item_of(t),
                          (enum dtype)t->type },
        (struct cpu_vec){ w->q_sum, DT_FLOAT32 }, dim);
    if (w->r->sinks)
        w->r->sinks[head] -= sink * mean;
}

/* ---- a kv head ---- */

static bool work_init(struct work *w, const struct run *r)
{
    size_t dim = (size_t)r->t->dim, v_dim = (size_t)r->t->v_dim, n = (size_t)r->t->n_k;
    size_t row = MAX(MAX(dim, v_dim), 2), keys = n * (dim + v_dim);
    size_t floats = 2 * keys + 4 * row + 3 * n + MAX(row, n);

    *w = (struct work){ .r = r };
    if (!(w->memory = mem_alloc_aligned(floats * sizeof(float))))
        return false;
    w->k = w->memory;
    w->v = w->k + n * dim;
    w->k_sum = w->v + n * v_dim;
    w->v_sum = w->k_sum + n * dim;
    w->q = w->v_sum + n * v_dim;
    w->t = w->q + row;
    w->out = w->t + row;
    w->q_sum = w->out + row;
    w->weight = w->q_sum + row;
    w->slope = w->weight + n;
    w->mask = w->slope + n;
    w->raw = (char *)(w->mask + n);
    return true;
}

/* The sums of all keys of the kv head. */
static void store_keys(const struct work *w, int which, const float *sums, size_t width)
{
    const struct task *t = w->r->t;
    size_t n = (size_t)t->n_k * width;
    size_t to = (size_t)(w->batch * t->n_kv + w->kv) * n;

    cpu_convert((struct cpu_vec){ t->result[which] + to * item_of(t), (enum dtype)t->type },
                (struct cpu_vec){ (void *)(uintptr_t)sums, DT_FLOAT32 }, n);
}

static void do_head(struct work *w)
{
    const struct task *t = w->r->t;
    size_t dim = (size_t)t->dim, v_dim = (size_t)t->v_dim;

    for (int64_t i = 0; i < t->n_k; i++) {
        load_row(w, w->k + (size_t)i * dim, K, i);
        load_row(w, w->v + (size_t)i * v_dim, V, i);
    }
    memset(w->k_sum, 0, (size_t)t->n_k * (dim + v_dim) * sizeof(float));
    for (int64_t g = 0; g < t->group; g++) {
        w->head = w->kv * t->group + g;
        for (w->position = 0; w->position < t->n_q; w->position++)
            do_row(w);
    }
    store_keys(w, 1, w->k_sum, dim);
    store_keys(w, 2, w->v_sum, v_dim);
}

static void run_heads(void *arg, size_t begin, size_t end)
{
    struct run *r = arg;
    struct work w;

    if (!work_init(&w, r)) {
        atomic_store(&r->failed, 1);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        w.batch = (int64_t)i / r->t->n_kv;
        w.kv = (int64_t)i % r->t->n_kv;
        do_head(&w);
    }
    mem_free(w.memory);
}

/* ---- the op ---- */

static void add_sinks(const struct run *r)
{
    const struct task *t = r->t;
    size_t heads = (size_t)t->heads;

    for (size_t i = 1; i < (size_t)t->batch; i++)
        for (size_t h = 0; h < heads; h++)
            r->sinks[h] += r->sinks[i * heads + h];
    cpu_convert((struct cpu_vec){ t->result[3], (enum dtype)t->type },
                (struct cpu_vec){ r->sinks, DT_FLOAT32 }, heads);
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    size_t heads = (size_t)t->batch * (size_t)t->heads;
    enum err err = ERR_OK;

    for (int k = 0; k < OPERANDS; k++)
        if (t->has[k])
            TRY(cpu_src_host(&r.in[k], &t->in[k]));
    if (t->has[SINKS] && !(r.sinks = mem_alloc_array(heads, sizeof *r.sinks)))
        return ERR_NO_MEMORY;
    cpu_parallel_for((size_t)t->batch * (size_t)t->n_kv, 1, run_heads, &r);
    if (atomic_load(&r.failed))
        err = err_set(ERR_NO_MEMORY, "[ScaledDotProductAttentionVJP] Out of memory.");
    else if (r.sinks)
        add_sinks(&r);
out:
    mem_free(r.sinks);
    return err;
}

static void set_operand(struct task *t, int k, const struct arr *a)
{
    if (!a)
        return;
    t->has[k] = true;
    t->in[k] = cpu_src(a);
    memcpy(t->stride[k], a->strides, a->ndim * sizeof a->strides[0]);
}

enum err cpu_sdpa_vjp(const struct exec *x)
{
    struct attn a;
    enum err err = ERR_OK;

    attn_of(&a, x);
    struct task t = { .batch = a.batch,
                      .heads = a.heads,
                      .n_kv = a.n_kv,
                      .group = a.group,
                      .n_q = a.n_q,
                      .n_k = a.n_k,
                      .dim = a.dim,
                      .v_dim = a.v_dim,
                      .scale = a.p->scale,
                      .causal = a.p->causal,
                      .bool_mask = a.mask && a.mask->dtype == DT_BOOL,
                      .type = x->in[0]->dtype };
    for (int i = 0; i < x->n_out; i++) {
        TRY(arr_alloc(x->out[i], &be_cpu));
        t.result[i] = cpu_dst(x->out[i]);
    }
    set_operand(&t, Q, a.q);
    set_operand(&t, K, a.k);
    set_operand(&t, V, a.v);
    set_operand(&t, MASK, a.mask);
    set_operand(&t, SINKS, a.sinks);
    set_operand(&t, OUT, x->in[x->n_in - 2]);
    set_operand(&t, COTAN, x->in[x->n_in - 1]);
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
