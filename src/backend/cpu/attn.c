/* Attention: keys in tiles, softmax with a running maximum, everything in float32.
 *
 * The rows of a kv head are its query heads at all positions; a block of them shares the tiles.
 * Where there are fewer blocks than threads, the keys are cut into parts that are joined at the
 * end. */
#include "backend/common/attn.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

#define ROWS 32 /* of a block */
#define KEYS 64 /* of a tile */
/* From so many rows on a tile of keys is transposed, which turns sums across lanes into sums along
 * them. */
#define TRANSPOSE_ROWS 4
#define MIN_PART 256 /* keys of a part */

enum { Q, K, V, MASK, SINKS, OPERANDS };

struct task {
    struct cpu_src in[OPERANDS];
    bool has[OPERANDS];
    int64_t stride[OPERANDS][4];
    char *out;
    int32_t heads, n_kv, group, n_q, n_k, dim, v_dim;
    float scale;
    bool causal, bool_mask;
    uint8_t type;         /* enum dtype */
    size_t units, blocks; /* units: blocks of all kv heads of all batches */
    size_t parts;         /* of the keys */
};

/* State of a row, followed by its v_dim sums. */
struct state {
    float max, sum;
};
#define STATE_FLOATS 2

struct run {
    const struct task *t;
    const char *in[OPERANDS];
    float *states; /* one for each (unit, part, row), where there are parts */
    size_t pitch;  /* floats from state to state */
    _Atomic int failed;
};

struct work {
    const struct run *r;
    float *memory;
    float *q, *k, *v; /* rows x dim, a tile of keys, a tile of values */
    float *states;    /* rows x pitch, unless the run has them */
    float score[KEYS], tmp[KEYS];
    char raw[256 * 8];
    /* the unit */
    int64_t batch, kv;
    size_t first, n_rows; /* rows of the block */
};

static struct state *state_of(float *states, const struct run *r, size_t row)
{
    return (struct state *)(states + row * r->pitch);
}

static float *sums_of(struct state *s)
{
    return (float *)s + STATE_FLOATS;
}

/* ---- operands ---- */

static size_t item_of(const struct task *t)
{
    return dt_size((enum dtype)t->type);
}

/* n elements with a stride, as float32. */
static void load(struct work *w, float *dst, const char *from, int64_t stride, size_t n)
{
    const struct task *t = w->r->t;
    struct nest axis = {
        .ndim = 1, .n_operands = 1, .dim = { (int64_t)n }, .stride = { { stride } }
    };
    const char *src = tile_gather(w->raw, from, &(struct tile_walk){ &axis, 0, item_of(t) }, 0, n);

    cpu_convert((struct cpu_vec){ dst, DT_FLOAT32 },
                (struct cpu_vec){ (void *)(uintptr_t)src, (enum dtype)t->type }, n);
}

/* Element [i, j, l, 0] of an operand. */
static const char *at(const struct run *r, int k, int64_t i, int64_t j, int64_t l)
{
    const int64_t *s = r->t->stride[k];

    return r->in[k] + (i * s[0] + j * s[1] + l * s[2]) * (int64_t)item_of(r->t);
}

/* Rows [first, first + n) of k or v as float32: where they lie, or in dst. */
static struct cpu_rows load_rows(struct work *w, float *dst, int k, size_t first, size_t n)
{
    const struct task *t = w->r->t;
    size_t width = (size_t)(k == K ? t->dim : t->v_dim);
    const char *from = at(w->r, k, w->batch, w->kv, (int64_t)first);
    int64_t pitch = t->stride[k][2];

    if (t->type == DT_FLOAT32 && t->stride[k][3] == 1 && pitch >= 0)
        return (struct cpu_rows){ (const float *)from, n, width, (size_t)pitch };
    for (size_t i = 0; i < n; i++)
        load(w, dst + i * width, from + (int64_t)i * pitch * (int64_t)item_of(t), t->stride[k][3],
             width);
    return (struct cpu_rows){ dst, n, width, width };
}

/* Keys as the columns of dim rows. */
static struct cpu_rows transpose(float *dst, const struct cpu_rows *k)
{
    for (size_t j = 0; j < k->width; j++)
        for (size_t i = 0; i < k->n; i++)
            dst[j * KEYS + i] = k->v[i * k->pitch + j];
    return (struct cpu_rows){ dst, k->width, k->n, KEYS };
}

/* ---- a row of a tile ---- */

struct tile {
    size_t first, n;
    struct cpu_rows k, v;
    bool is_transposed; /* k */
};

static int64_t position_of(const struct work *w, size_t row)
{
    return (int64_t)(w->first + row) / w->r->t->group;
}

static int64_t head_of(const struct work *w, size_t row)
{
    return w->kv * w->r->t->group + (int64_t)(w->first + row) % w->r->t->group;
}

/* Keys that a row sees, from 0. */
static size_t keys_of(const struct work *w, size_t row)
{
    const struct task *t = w->r->t;
    size_t n_k = (size_t)t->n_k;

    return t->causal ? MIN((size_t)(position_of(w, row) + 1 + t->n_k - t->n_q), n_k) : n_k;
}

static void add_mask(struct work *w, size_t row, size_t first, size_t n)
{
    const struct task *t = w->r->t;
    const int64_t *s = t->stride[MASK];
    int64_t offset = w->batch * s[0] + head_of(w, row) * s[1] + position_of(w, row) * s[2] +
                     (int64_t)first * s[3];

    if (t->bool_mask) {
        const char *keep = w->r->in[MASK] + offset;
        for (size_t i = 0; i < n; i++)
            if (!keep[(int64_t)i * s[3]])
                w->score[i] = -FLT_MAX;
        return;
    }
    load(w, w->tmp, w->r->in[MASK] + offset * (int64_t)item_of(t), s[3], n);
    cpu_kernels()->op[OP_ADD][CPU_F32].fn(w->score, w->score, w->tmp, NULL, n);
}

static void scores_of(struct work *w, const struct tile *tile, size_t row, size_t n)
{
    const float *q = w->q + row * (size_t)w->r->t->dim;
    struct cpu_rows k = tile->k;

    if (tile->is_transposed) {
        memset(w->score, 0, n * sizeof w->score[0]);
        k.width = n;
        cpu_kernels()->add_rows(w->score, q, &k);
    } else {
        k.n = n;
        cpu_kernels()->dot_rows(w->score, q, &k);
    }
    if (w->r->t->has[MASK])
        add_mask(w, row, tile->first, n);
}

static void scale_state(struct state *s, float max, size_t n)
{
    float factor = s->max == max ? 1.0f : expf(s->max - max);

    s->max = max;
    if (factor == 1.0f)
        return;
    s->sum *= factor;
    for (size_t i = 0; i < n; i++)
        sums_of(s)[i] *= factor;
}

static void run_row(struct work *w, const struct tile *tile, struct state *s, size_t row)
{
    const struct cpu_kernels *k = cpu_kernels();
    size_t limit = keys_of(w, row), n = MIN(tile->n, limit - MIN(limit, tile->first));
    struct cpu_rows v = tile->v;
    float max, sum;

    if (!n)
        return;
    scores_of(w, tile, row, n);
    k->fold[OP_MAXIMUM][CPU_F32](&max, w->score, n);
    if (max == -INFINITY) /* the mask leaves nothing */
        return;
    scale_state(s, max > s->max || isnan(max) ? max : s->max, v.width);
    tile_splat((char *)w->tmp, (const char *)&s->max, sizeof s->max, n);
    k->op[OP_SUBTRACT][CPU_F32].fn(w->score, w->score, w->tmp, NULL, n);
    k->op[OP_EXP][CPU_F32].fn(w->score, w->score, NULL, NULL, n);
    k->fold[OP_ADD][CPU_F32](&sum, w->score, n);
    s->sum += sum;
    v.n = n;
    k->add_rows(sums_of(s), w->score, &v);
}

/* ---- blocks ---- */

static void load_queries(struct work *w)
{
    const struct task *t = w->r->t;
    size_t dim = (size_t)t->dim;

    for (size_t row = 0; row < w->n_rows; row++)
        load(w, w->q + row * dim, at(w->r, Q, w->batch, head_of(w, row), position_of(w, row)),
             t->stride[Q][3], dim);
    for (size_t i = 0; i < w->n_rows * dim; i++)
        w->q[i] *= t->scale;
}

static void run_keys(struct work *w, float *states, size_t begin, size_t end)
{
    const struct run *r = w->r;

    for (size_t row = 0; row < w->n_rows; row++) {
        struct state *s = state_of(states, r, row);
        *s = (struct state){ .max = -INFINITY };
        memset(sums_of(s), 0, (size_t)r->t->v_dim * sizeof(float));
    }
    for (size_t i = begin; i < end; i += KEYS) {
        struct tile tile = { .first = i, .n = MIN(KEYS, end - i) };
        float *spare = w->k + KEYS * (size_t)r->t->dim;
        tile.k = load_rows(w, w->k, K, i, tile.n);
        tile.v = load_rows(w, w->v, V, i, tile.n);
        tile.is_transposed = w->n_rows >= TRANSPOSE_ROWS;
        if (tile.is_transposed)
            tile.k = transpose(spare, &tile.k);
        for (size_t row = 0; row < w->n_rows; row++)
            run_row(w, &tile, state_of(states, r, row), row);
    }
}

/* A sink joins the sum of its head. */
static void finish_row(const struct work *w, struct state *s, size_t row)
{
    const struct task *t = w->r->t;
    size_t n = (size_t)t->v_dim;
    int64_t head = head_of(w, row), position = position_of(w, row);
    size_t to = (size_t)((w->batch * t->n_q + position) * t->heads + head) * n;
    float sink;

    if (t->has[SINKS]) {
        const char *from = w->r->in[SINKS] + head * t->stride[SINKS][0] * (int64_t)item_of(t);
        cpu_convert((struct cpu_vec){ &sink, DT_FLOAT32 },
                    (struct cpu_vec){ (void *)(uintptr_t)from, (enum dtype)t->type }, 1);
        scale_state(s, fmaxf(s->max, sink), n);
        s->sum += expf(sink - s->max);
    }
    float factor = s->sum == 0.0f ? 0.0f : 1.0f / s->sum;
    for (size_t i = 0; i < n; i++)
        sums_of(s)[i] *= factor;
    cpu_convert((struct cpu_vec){ t->out + to * item_of(t), (enum dtype)t->type },
                (struct cpu_vec){ sums_of(s), DT_FLOAT32 }, n);
}

static void select_unit(struct work *w, size_t unit)
{
    const struct task *t = w->r->t;
    size_t rows = (size_t)t->group * (size_t)t->n_q, head = unit / t->blocks;

    w->batch = (int64_t)head / t->n_kv;
    w->kv = (int64_t)head % t->n_kv;
    w->first = unit % t->blocks * ROWS;
    w->n_rows = MIN(ROWS, rows - w->first);
}

/* Floats of the rows of one unit and part. */
static size_t block_states(const struct run *r)
{
    return ROWS * r->pitch;
}

static bool work_init(struct work *w, const struct run *r)
{
    size_t dim = (size_t)r->t->dim, v_dim = (size_t)r->t->v_dim;

    w->r = r;
    w->memory = mem_alloc_aligned((ROWS * dim + KEYS * (2 * dim + v_dim) + block_states(r)) *
                                  sizeof(float));
    if (!w->memory)
        return false;
    w->q = w->memory;
    w->k = w->q + ROWS * dim;
    w->v = w->k + 2 * KEYS * dim;
    w->states = w->v + KEYS * v_dim;
    return true;
}

static void run_unit(struct work *w, size_t unit, size_t part)
{
    const struct run *r = w->r;
    const struct task *t = r->t;
    float *states = r->states ? r->states + (unit * t->parts + part) * block_states(r) : w->states;

    select_unit(w, unit);
    load_queries(w);
    size_t keys = keys_of(w, w->n_rows - 1);
    size_t length = (size_t)ceil_div((int64_t)keys, (int64_t)t->parts);
    size_t begin = MIN(part * length, keys);
    run_keys(w, states, begin, MIN(begin + length, keys));
    if (r->states)
        return;
    for (size_t row = 0; row < w->n_rows; row++)
        finish_row(w, state_of(states, r, row), row);
}

static void run_range(void *arg, size_t begin, size_t end)
{
    struct run *r = arg;
    struct work w;

    if (!work_init(&w, r)) {
        atomic_store(&r->failed, 1);
        return;
    }
    for (size_t i = begin; i < end; i++)
        run_unit(&w, i / r->t->parts, i % r->t->parts);
    mem_free(w.memory);
}

/* Adds part b of a row to part a. */
static void join_states(struct state *a, struct state *b, size_t n)
{
    if (b->max == -INFINITY)
        return;
    float max = b->max > a->max || isnan(b->max) ? b->max : a->max;
    scale_state(a, max, n);
    scale_state(b, max, n);
    a->sum += b->sum;
    for (size_t i = 0; i < n; i++)
        sums_of(a)[i] += sums_of(b)[i];
}

static void join_parts(struct run *r)
{
    const struct task *t = r->t;
    struct work w = { .r = r };

    for (size_t unit = 0; unit < t->units; unit++) {
        float *states = r->states + unit * t->parts * block_states(r);
        select_unit(&w, unit);
        for (size_t row = 0; row < w.n_rows; row++) {
            struct state *s = state_of(states, r, row);
            for (size_t part = 1; part < t->parts; part++)
                join_states(s, state_of(states + part * block_states(r), r, row), (size_t)t->v_dim);
            finish_row(&w, s, row);
        }
    }
}

static enum err run_task(void *payload)
{
    struct task *t = payload;
    struct run r = { .t = t, .pitch = align_up((size_t)t->v_dim + STATE_FLOATS, 16) };
    enum err err = ERR_OK;

    for (int k = 0; k < OPERANDS; k++)
        if (t->has[k])
            TRY(cpu_src_host(&r.in[k], &t->in[k]));
    if (t->parts > 1 &&
        !(r.states = mem_alloc_aligned(t->units * t->parts * block_states(&r) * sizeof(float))))
        return ERR_NO_MEMORY;
    cpu_parallel_for(t->units * t->parts, 1, run_range, &r);
    if (atomic_load(&r.failed))
        err = err_set(ERR_NO_MEMORY, "[scaled_dot_product_attention] Out of memory.");
    else if (r.states)
        join_parts(&r);
out:
    mem_free(r.states);
    return err;
}

static void set_operand(struct task *t, int k, const struct arr *a)
{
    if (!a)
        return;
    t->has[k] = a->size > 0;
    t->in[k] = cpu_src(a);
    memcpy(t->stride[k], a->strides, a->ndim * sizeof a->strides[0]);
}

enum err cpu_sdpa(const struct exec *x)
{
    struct arr *out = x->out[0];
    struct attn a;
    enum err err = attn_alloc(out, &be_cpu);

    if (err || !out->size)
        return err;
    attn_of(&a, x);
    struct task t = { .out = cpu_dst(out),
                      .heads = a.heads,
                      .n_kv = a.n_kv,
                      .group = a.group,
                      .n_q = a.n_q,
                      .n_k = a.n_k,
                      .dim = a.dim,
                      .v_dim = a.v_dim,
                      .scale = a.p->scale,
                      .causal = a.p->causal,
                      .type = out->dtype };
    set_operand(&t, Q, a.q);
    set_operand(&t, K, a.k);
    set_operand(&t, V, a.v);
    set_operand(&t, MASK, a.mask);
    set_operand(&t, SINKS, a.sinks);
    t.bool_mask = a.mask && a.mask->dtype == DT_BOOL;
    t.blocks = (size_t)ceil_div((int64_t)a.group * a.n_q, ROWS);
    t.units = (size_t)a.batch * (size_t)a.n_kv * t.blocks;
    size_t wanted = (size_t)ceil_div(2 * cpu_threads(), (int64_t)t.units);
    t.parts = MAX(MIN(wanted, (size_t)a.n_k / MIN_PART), 1);
    return cpu_enqueue(x->strm, run_task, &t, sizeof t);
}
