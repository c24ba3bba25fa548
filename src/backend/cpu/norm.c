/* RMSNorm and LayerNorm over the last axis, in float32. The normed value is rounded to the dtype
 * before the weight, and so is each step after it. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#include <math.h>

#define TILE 1024
#define PARALLEL_ELEMENTS 16384

enum { X, WEIGHT, BIAS, INPUTS };

struct task {
    struct cpu_src in[INPUTS];
    int64_t stride[INPUTS]; /* along the last axis */
    char *out;
    float eps;
    uint8_t type; /* enum dtype */
    bool has[INPUTS];
    bool centred; /* LayerNorm */
    size_t n_rows, length;
    struct nest rows; /* the other axes of x */
};

/* What one thread needs: tiles of float32, and scalars repeated to a tile. */
struct work {
    const struct task *t;
    const char *in[INPUTS];
    size_t item;
    float x[TILE] __attribute__((aligned(64)));
    float y[TILE] __attribute__((aligned(64)));
    float mean[TILE] __attribute__((aligned(64)));
    float factor[TILE] __attribute__((aligned(64)));
    char raw[TILE * 4] __attribute__((aligned(64)));
};

static void apply(enum op_id op, float *dst, const float *a, const float *b, size_t n)
{
    cpu_kernels()->op[op][CPU_F32].fn(dst, a, b, NULL, n);
}

static float sum_of(const float *x, size_t n)
{
    float sum;

    cpu_kernels()->fold[OP_ADD][CPU_F32](&sum, x, n);
    return sum;
}

static void splat(float *dst, float v)
{
    tile_splat((char *)dst, (const char *)&v, sizeof v, TILE);
}

static void round_to_type(const struct task *t, float *x, size_t n)
{
    if (t->type == DT_FLOAT16)
        cpu_kernels()->round_f16(x, n);
    else if (t->type == DT_BFLOAT16)
        cpu_kernels()->round_bf16(x, n);
}

/* Elements [i, i + n) of the last axis. */
struct part {
    size_t i, n;
};

/* A part of operand k, whose row begins at from, as float32. */
static void load(struct work *w, float *dst, int k, const char *from, struct part p)
{
    struct nest axis = { .ndim = 1,
                         .n_operands = 1,
                         .dim = { (int64_t)w->t->length },
                         .stride = { { w->t->stride[k] } } };
    const char *src = tile_gather(w->raw, from, &(struct tile_walk){ &axis, 0, w->item }, p.i, p.n);

    if (w->t->type == DT_FLOAT32)
        memcpy(dst, src, p.n * sizeof *dst);
    else
        cpu_widen(dst, src, (enum dtype)w->t->type, p.n);
}

static void load_x(struct work *w, const char *row, struct part p)
{
    load(w, w->x, X, row, p);
    if (w->t->centred)
        apply(OP_SUBTRACT, w->x, w->x, w->mean, p.n);
}

/* Mean of the row's values, or of their squares after centring. */
static float mean_of_row(struct work *w, const char *row, bool squares)
{
    size_t length = w->t->length;
    float sum = 0.0f;

    for (size_t i = 0; i < length; i += TILE) {
        size_t n = MIN(TILE, length - i);
        load_x(w, row, (struct part){ i, n });
        if (squares)
            apply(OP_SQUARE, w->x, w->x, NULL, n);
        sum += sum_of(w->x, n);
    }
    return sum / (float)length;
}

static void norm_row(struct work *w, const char *row, char *out)
{
    const struct task *t = w->t;

    splat(w->mean, 0.0f);
    if (t->centred)
        splat(w->mean, mean_of_row(w, row, false));
    splat(w->factor, 1.0f / sqrtf(mean_of_row(w, row, true) + t->eps));
    for (size_t i = 0; i < t->length; i += TILE) {
        size_t n = MIN(TILE, t->length - i);
        load_x(w, row, (struct part){ i, n });
        apply(OP_MULTIPLY, w->x, w->x, w->factor, n);
        for (int k = WEIGHT; k <= BIAS; k++)
            if (t->has[k]) {
                round_to_type(t, w->x, n);
                load(w, w->y, k, w->in[k], (struct part){ i, n });
                apply(k == WEIGHT ? OP_MULTIPLY : OP_ADD, w->x, w->x, w->y, n);
            }
        cpu_convert((struct cpu_vec){ out + i * w->item, (enum dtype)t->type },
                    (struct cpu_vec){ w->x, DT_FLOAT32 }, n);
    }
}

struct run {
    const struct task *t;
    const char *in[INPUTS];
};

static void run_range(void *arg, size_t begin, size_t end)
{
    const struct run *r = arg;
    const struct task *t = r->t;
    struct work w;

    w.t = t;
    w.item = dt_size((enum dtype)t->type);
    memcpy(w.in, r->in, sizeof w.in);
    for (size_t i = begin; i < end; i++)
        norm_row(&w, r->in[X] + nest_offset(&t->rows, 0, i) * (int64_t)w.item,
                 t->out + i * t->length * w.item);
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    enum err err = ERR_OK;

    for (int k = 0; k < INPUTS; k++)
        if (t->has[k])
            TRY(cpu_src_host(&r.in[k], &t->in[k]));
    cpu_parallel_for(t->n_rows, PARALLEL_ELEMENTS / t->length + 1, run_range, &r);
out:
    return err;
}

static void set_operand(struct task *t, int k, const struct arr *a)
{
    t->has[k] = true;
    t->in[k] = cpu_src(a);
    t->stride[k] = a->strides[a->ndim - 1];
}

enum err cpu_norm(const struct exec *x)
{
    const struct norm_params *p = x->node->params;
    struct arr *in = x->in[0], *out = x->out[0];
    int last = in->ndim - 1;
    struct task t = { .type = in->dtype,
                      .eps = p->eps,
                      .centred = x->node->op == OP_LAYER_NORM,
                      .length = (size_t)in->shape[last] };
    struct shp rows;
    enum err err = ERR_OK;

    if ((in->flags & LAYOUT_ROW) && arr_can_donate_to(in, out, x->strm))
        arr_share_all(out, in);
    else
        TRY(arr_alloc(out, &be_cpu));
    if (!out->size)
        goto out;
    set_operand(&t, X, in);
    if (p->has_weight)
        set_operand(&t, WEIGHT, x->in[1]);
    if (p->has_bias)
        set_operand(&t, BIAS, x->in[1 + p->has_weight]);
    arr_shape(&rows, in);
    rows.ndim = last;
    t.n_rows = shp_size(&rows);
    nest_make(&t.rows, &rows, in->strides);
    t.out = cpu_dst(out);
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
