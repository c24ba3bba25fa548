/* Softmax and log-sum-exp along the last axis. Half types compute in float32, so that `precise`
 * changes nothing here. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#include <math.h>

#define TILE 1024
#define PARALLEL_ELEMENTS 16384

struct task {
    struct cpu_src in;
    char *out;
    uint8_t type, wide_type; /* enum dtype; wide_type is float32 or float64 */
    bool logsumexp;
    size_t n_rows;
    int64_t length, stride; /* of the last axis */
    struct nest rows;       /* the other axes */
};

/* What one thread needs for a row: tiles of wide values, and scalars repeated to a tile. */
struct work {
    const struct task *t;
    const char *in;
    size_t item, wide;
    uint8_t class;
    char raw[TILE * 8] __attribute__((aligned(64)));
    char x[TILE * 8] __attribute__((aligned(64)));
    char scalar[TILE * 8] __attribute__((aligned(64)));
};

struct args {
    void *dst;
    const void *a, *b;
};

static void apply(const struct work *w, enum op_id op, struct args x, size_t n)
{
    cpu_kernels()->op[op][w->class].fn(x.dst, x.a, x.b, NULL, n);
}

static void fold(const struct work *w, enum op_id op, void *dst, const void *x, size_t n)
{
    cpu_kernels()->fold[op][w->class](dst, x, n);
}

/* n values from position i of the row, widened. */
static const char *load(struct work *w, const char *row, size_t i, size_t n)
{
    struct nest axis = {
        .ndim = 1, .n_operands = 1, .dim = { w->t->length }, .stride = { { w->t->stride } }
    };
    const char *src = tile_gather(w->raw, row, &(struct tile_walk){ &axis, 0, w->item }, i, n);

    if (w->t->type == w->t->wide_type)
        return src;
    cpu_widen((float *)w->x, src, (enum dtype)w->t->type, n);
    return w->x;
}

/* One value of the wide type, with room for alignment. */
union value {
    float f32;
    double f64;
};

static void row_max(struct work *w, union value *max, const char *row)
{
    union value tile;
    size_t length = (size_t)w->t->length;

    for (size_t i = 0; i < length; i += TILE) {
        size_t n = MIN(TILE, length - i);
        fold(w, OP_MAXIMUM, &tile, load(w, row, i, n), n);
        if (i == 0)
            *max = tile;
        else
            apply(w, OP_MAXIMUM, (struct args){ max, max, &tile }, 1);
    }
}

/* exp(x - max) for one tile; w->scalar holds max. */
static void exp_tile(struct work *w, char *dst, const char *row, size_t i, size_t n)
{
    apply(w, OP_SUBTRACT, (struct args){ dst, load(w, row, i, n), w->scalar }, n);
    apply(w, OP_EXP, (struct args){ dst, dst, NULL }, n);
}

/* The sum of exp(x - max). keep: a row of wide values that the terms are left in, or NULL. */
static void row_sum(struct work *w, union value *sum, const char *row, char *keep)
{
    union value tile;
    size_t length = (size_t)w->t->length;

    memset(sum, 0, sizeof *sum);
    for (size_t i = 0; i < length; i += TILE) {
        size_t n = MIN(TILE, length - i);
        char *dst = keep ? keep + i * w->wide : w->x;
        exp_tile(w, dst, row, i, n);
        fold(w, OP_ADD, &tile, dst, n);
        apply(w, OP_ADD, (struct args){ sum, sum, &tile }, 1);
    }
}

static void softmax_row(struct work *w, const char *row, char *out)
{
    bool in_place = w->t->type == w->t->wide_type;
    size_t length = (size_t)w->t->length;
    char factor[TILE * 8] __attribute__((aligned(64)));
    union value v;

    row_max(w, &v, row);
    tile_splat(w->scalar, (char *)&v, w->wide, TILE);
    row_sum(w, &v, row, in_place ? out : NULL);
    if (w->class == CPU_F32)
        v.f32 = 1.0f / v.f32;
    else
        v.f64 = 1.0 / v.f64;
    tile_splat(factor, (char *)&v, w->wide, TILE);
    for (size_t i = 0; i < length; i += TILE) {
        size_t n = MIN(TILE, length - i);
        char *dst = in_place ? out + i * w->wide : w->x;
        if (!in_place)
            exp_tile(w, dst, row, i, n);
        apply(w, OP_MULTIPLY, (struct args){ dst, dst, factor }, n);
        if (!in_place)
            cpu_narrow(out + i * w->item, (const float *)dst, (enum dtype)w->t->type, n);
    }
}

static bool is_infinite(const struct work *w, const union value *v)
{
    return w->class == CPU_F32 ? isinf(v->f32) : isinf(v->f64);
}

static void logsumexp_row(struct work *w, const char *row, char *out)
{
    union value max, sum;

    row_max(w, &max, row);
    tile_splat(w->scalar, (char *)&max, w->wide, TILE);
    sum = max;
    if (!is_infinite(w, &max)) {
        row_sum(w, &sum, row, NULL);
        apply(w, OP_LOG, (struct args){ &sum, &sum, NULL }, 1);
        apply(w, OP_ADD, (struct args){ &sum, &sum, &max }, 1);
    }
    cpu_convert((struct cpu_vec){ out, (enum dtype)w->t->type },
                (struct cpu_vec){ &sum, (enum dtype)w->t->wide_type }, 1);
}

struct run {
    const struct task *t;
    const char *in;
};

static void run_range(void *arg, size_t begin, size_t end)
{
    const struct run *r = arg;
    const struct task *t = r->t;
    struct work w;

    w.t = t;
    w.item = dt_size((enum dtype)t->type);
    w.wide = dt_size((enum dtype)t->wide_type);
    w.class = cpu_class_of[t->wide_type];
    for (size_t i = begin; i < end; i++) {
        const char *row = r->in + nest_offset(&t->rows, 0, i) * (int64_t)w.item;
        if (t->logsumexp)
            logsumexp_row(&w, row, t->out + i * w.item);
        else
            softmax_row(&w, row, t->out + i * (size_t)t->length * w.item);
    }
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    enum err err = cpu_src_host(&r.in, &t->in);

    if (err == ERR_OK)
        cpu_parallel_for(t->n_rows, (size_t)(PARALLEL_ELEMENTS / t->length) + 1, run_range, &r);
    return err;
}

static enum err check_type(const struct exec *x)
{
    if (dt_is_float((enum dtype)x->in[0]->dtype))
        return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "[%s] Not supported for %s on the CPU.",
                   op_name((enum op_id)x->node->op), dt_name((enum dtype)x->in[0]->dtype));
}

/* x->out[0] has its storage. Rows are those of the input's shape, in row-major order. */
static enum err enqueue(const struct exec *x, bool logsumexp)
{
    const struct arr *in = x->in[0];
    enum dtype type = (enum dtype)in->dtype;
    int last = in->ndim - 1;
    struct task t = {
        .in = cpu_src(in),
        .out = cpu_dst(x->out[0]),
        .type = in->dtype,
        .wide_type = (uint8_t)(cpu_is_half(type) ? DT_FLOAT32 : type),
        .logsumexp = logsumexp,
        .length = in->shape[last],
        .stride = in->strides[last],
    };
    struct shp rows;

    arr_shape(&rows, in);
    rows.ndim = last;
    t.n_rows = shp_size(&rows);
    nest_make(&t.rows, &rows, in->strides);
    return cpu_enqueue(x->strm, run_task, &t, sizeof t);
}

enum err cpu_softmax(const struct exec *x)
{
    struct arr *in = x->in[0], *out = x->out[0];
    enum err err;

    TRY(check_type(x));
    if ((in->flags & LAYOUT_ROW) && arr_can_donate_to(in, out, x->strm))
        arr_share_all(out, in);
    else
        TRY(arr_alloc(out, &be_cpu));
    err = enqueue(x, false);
out:
    return err;
}

enum err cpu_logsumexp(const struct exec *x)
{
    enum err err;

    TRY(check_type(x));
    TRY(arr_alloc(x->out[0], &be_cpu));
    err = enqueue(x, true);
out:
    return err;
}
