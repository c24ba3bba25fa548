/* Rotary positions: angles, sines and cosines in float32, one rounding to the dtype at the end. */
#include "backend/common/rope.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#include <stdatomic.h>

#define PARALLEL_ELEMENTS 8192

struct task {
    struct cpu_src x, offset, freqs;
    char *out;
    struct rope_params p;
    struct rope_rows rows;
    uint8_t type; /* enum dtype */
    int64_t offset_stride, freqs_stride;
};

struct run {
    const struct task *t;
    const char *x;
    const int32_t *offset; /* NULL: t->p.offset */
    const float *inv_freq;
    _Atomic int failed;
};

/* Memory of one thread: a row, its pairs, and the rotation of one position. */
struct work {
    const struct run *r;
    size_t half, item, wide;
    char *memory; /* everything below */
    char *row;    /* in float32, or float64 */
    float *first, *second;
    float *angle, *cos, *sin;
};

static bool work_init(struct work *w, const struct run *r)
{
    const struct task *t = r->t;
    size_t half = (size_t)t->p.dims / 2, size = align_up((size_t)t->rows.size * 8, 64);
    size_t line = align_up(half * sizeof(float), 64);

    *w = (struct work){ .r = r, .half = half, .item = dt_size((enum dtype)t->type) };
    w->wide = MAX(w->item, sizeof(float));
    w->memory = mem_alloc_aligned(size + 5 * line);
    if (!w->memory)
        return false;
    w->row = w->memory;
    w->first = (float *)(w->memory + size);
    w->second = (float *)(w->memory + size + line);
    w->angle = (float *)(w->memory + size + 2 * line);
    w->cos = (float *)(w->memory + size + 3 * line);
    w->sin = (float *)(w->memory + size + 4 * line);
    return true;
}

static void unary(enum op_id op, float *dst, const float *x, size_t n)
{
    cpu_kernels()->op[op][CPU_F32].fn(dst, x, NULL, NULL, n);
}

static void set_position(struct work *w, int64_t batch, int64_t t)
{
    const struct task *k = w->r->t;
    int64_t offset = w->r->offset ? w->r->offset[batch * k->offset_stride] : (int64_t)k->p.offset;
    float position = (float)(t + offset) * k->p.scale;

    for (size_t i = 0; i < w->half; i++)
        w->angle[i] = position * w->r->inv_freq[i];
    unary(OP_COS, w->cos, w->angle, w->half);
    unary(OP_SIN, w->sin, w->angle, w->half);
    if (!k->p.forward)
        unary(OP_NEGATIVE, w->sin, w->sin, w->half);
}

static void rotate_f32(struct work *w)
{
    float *x = (float *)w->row;
    size_t half = w->half;

    if (!w->r->t->p.traditional) {
        cpu_kernels()->rotate(x, x + half, w->cos, w->sin, half);
        return;
    }
    for (size_t i = 0; i < half; i++) {
        w->first[i] = x[2 * i];
        w->second[i] = x[2 * i + 1];
    }
    cpu_kernels()->rotate(w->first, w->second, w->cos, w->sin, half);
    for (size_t i = 0; i < half; i++) {
        x[2 * i] = w->first[i];
        x[2 * i + 1] = w->second[i];
    }
}

static void rotate_f64(struct work *w)
{
    double *x = (double *)w->row;
    bool traditional = w->r->t->p.traditional;

    for (size_t i = 0; i < w->half; i++) {
        double *a = x + (traditional ? 2 * i : i), *b = traditional ? a + 1 : a + w->half;
        double c = (double)w->cos[i], s = (double)w->sin[i], v = *a;
        *a = v * c - *b * s;
        *b = v * s + *b * c;
    }
}

static void rope_row(struct work *w, const char *from, char *to)
{
    const struct task *t = w->r->t;
    enum dtype type = (enum dtype)t->type;
    size_t size = (size_t)t->rows.size;
    struct nest axis = {
        .ndim = 1, .n_operands = 1, .dim = { t->rows.size }, .stride = { { t->rows.stride } }
    };
    /* The output row is the staging area: in place, or not read before. */
    const char *src = tile_gather(to, from, &(struct tile_walk){ &axis, 0, w->item }, 0, size);
    struct cpu_vec wide = { w->row, type == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32 };

    cpu_convert(wide, (struct cpu_vec){ (void *)(uintptr_t)src, type }, size);
    if (type == DT_FLOAT64)
        rotate_f64(w);
    else
        rotate_f32(w);
    cpu_convert((struct cpu_vec){ to, type }, wide, size);
}

/* Units are pairs of batch and position: all heads turn by the same angles. */
static void run_range(void *arg, size_t begin, size_t end)
{
    struct run *r = arg;
    const struct task *t = r->t;
    const struct rope_rows *rows = &t->rows;
    struct work w;

    if (!work_init(&w, r)) {
        atomic_store(&r->failed, 1);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        int64_t batch = (int64_t)i / rows->length, at = (int64_t)i % rows->length;
        set_position(&w, batch, at);
        for (size_t h = 0; h < rows->heads; h++) {
            int64_t from = batch * rows->batch_stride + at * rows->position_stride +
                           nest_offset(&rows->head, 0, h);
            size_t to = ((size_t)batch * rows->heads + h) * (size_t)rows->length + (size_t)at;
            rope_row(&w, r->x + from * (int64_t)w.item, t->out + to * (size_t)rows->size * w.item);
        }
    }
    mem_free(w.memory);
}

static enum err make_inv_freqs(float *dst, const struct task *t)
{
    size_t half = (size_t)t->p.dims / 2;
    const char *freqs;
    enum err err = ERR_OK;

    if (!t->p.has_freqs) {
        rope_inv_freqs(dst, t->p.base, half);
        return ERR_OK;
    }
    TRY(cpu_src_host(&freqs, &t->freqs));
    for (size_t i = 0; i < half; i++)
        dst[i] = 1.0f / ((const float *)freqs)[(int64_t)i * t->freqs_stride];
out:
    return err;
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    size_t unit = t->rows.heads * (size_t)t->rows.size;
    float *inv_freq = mem_alloc_aligned((size_t)t->p.dims / 2 * sizeof(float));
    const char *offset;
    enum err err = inv_freq ? ERR_OK : ERR_NO_MEMORY;

    if (err)
        goto out;
    TRY(make_inv_freqs(inv_freq, t));
    r.inv_freq = inv_freq;
    TRY(cpu_src_host(&r.x, &t->x));
    if (t->p.has_offset) {
        TRY(cpu_src_host(&offset, &t->offset));
        r.offset = (const int32_t *)offset;
    }
    cpu_parallel_for((size_t)t->rows.batch * (size_t)t->rows.length, PARALLEL_ELEMENTS / unit + 1,
                     run_range, &r);
    if (atomic_load(&r.failed))
        err = err_set(ERR_NO_MEMORY, "[rope] Out of memory.");
out:
    mem_free(inv_freq);
    return err;
}

enum err cpu_rope(const struct exec *x)
{
    const struct rope_params *p = x->node->params;
    struct arr *in = x->in[0], *out = x->out[0];
    struct task t = { .p = *p, .type = in->dtype };
    enum err err = ERR_OK;

    if ((in->flags & LAYOUT_ROW) && arr_can_donate_to(in, out, x->strm))
        arr_share_all(out, in);
    else
        TRY(arr_alloc(out, &be_cpu));
    if (!out->size)
        goto out;
    rope_rows_of(&t.rows, in);
    t.x = cpu_src(in);
    t.out = cpu_dst(out);
    if (p->has_offset) {
        const struct arr *offset = x->in[1];
        t.offset = cpu_src(offset);
        t.offset_stride = offset->size > 1 ? offset->strides[0] : 0;
    }
    if (p->has_freqs) {
        const struct arr *freqs = x->in[1 + p->has_offset];
        t.freqs = cpu_src(freqs);
        t.freqs_stride = freqs->strides[0];
    }
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
