/* Updates of the places that index arrays or a mask give, in the order of the updates. */
#include "backend/common/scatter.h"
#include "backend/common/families.h"
#include "backend/cpu/index.h"
#include "backend/cpu/kernels.h"

#define TILE INDEX_TILE
#define PARALLEL_ELEMENTS 16384
/* Where an index is out of range: nothing is written. */
#define NOWHERE INT64_MIN

/* ---- by index arrays ---- */

struct task {
    struct cpu_src updates;
    char *out;
    size_t n, slice_n;         /* positions; elements of a slice */
    struct cpu_moves slice;    /* of one */
    struct nest update, along; /* over positions: updates; the result, before the indices count */
    int n_index;
    struct cpu_index index[]; /* n_index */
};

struct run {
    const struct task *t;
    const char *updates;
    const char *index[SHP_MAX];
};

/* Offsets in the result of positions first .. first + n. */
static void find_places(const struct run *r, int64_t *place, size_t first, size_t n)
{
    const struct task *t = r->t;
    int64_t v[TILE];

    for (size_t i = 0; i < n; i++)
        place[i] = nest_offset(&t->along, 0, first + i);
    for (int k = 0; k < t->n_index; k++) {
        const struct cpu_index *x = &t->index[k];
        cpu_index_read(v, x, r->index[k], first, n);
        for (size_t i = 0; i < n; i++)
            if (v[i] < 0 || v[i] > x->limit)
                place[i] = NOWHERE;
            else if (place[i] != NOWHERE)
                place[i] += v[i] * x->stride;
    }
}

/* Single elements, of which a tile is collected first. */
static void put_elements(const struct run *r, const int64_t *place, size_t first, size_t n)
{
    const struct task *t = r->t;
    enum dtype from = (enum dtype)t->slice.from, to = (enum dtype)t->slice.to;
    char raw[TILE * 8] __attribute__((aligned(64))),
        converted[TILE * 8] __attribute__((aligned(64)));
    int64_t item = (int64_t)dt_size(to);
    const char *src =
        tile_gather(raw, r->updates, &(struct tile_walk){ &t->update, 0, dt_size(from) }, first, n);

    if (from != to) {
        cpu_convert((struct cpu_vec){ converted, to }, (struct cpu_vec){ (char *)src, from }, n);
        src = converted;
    }
    cpu_kernel fn = cpu_kernels()->op[t->slice.combine][cpu_class_of[to]].fn;
    for (size_t i = 0; i < n; i++) {
        if (place[i] == NOWHERE)
            continue;
        char *dst = t->out + place[i] * item;
        if (t->slice.combine)
            fn(dst, dst, src + (int64_t)i * item, NULL, 1);
        else
            memcpy(dst, src + (int64_t)i * item, (size_t)item);
    }
}

/* Of every slice the elements from begin up to end: threads share slices, because positions may
 * meet. */
static void run_range(void *arg, size_t begin, size_t end)
{
    const struct run *r = arg;
    const struct task *t = r->t;
    int64_t place[TILE], from = (int64_t)dt_size((enum dtype)t->slice.from),
                         to = (int64_t)dt_size((enum dtype)t->slice.to);

    for (size_t i = 0, n; i < t->n; i += n) {
        n = MIN(TILE, t->n - i);
        find_places(r, place, i, n);
        if (t->slice_n == 1) {
            put_elements(r, place, i, n);
            continue;
        }
        for (size_t j = 0; j < n; j++)
            if (place[j] != NOWHERE)
                cpu_move(&t->slice, t->out + place[j] * to,
                         r->updates + nest_offset(&t->update, 0, i + j) * from,
                         (size_t[]){ begin, end });
    }
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    enum err err;

    TRY(cpu_src_host(&r.updates, &t->updates));
    for (int k = 0; k < t->n_index; k++)
        TRY(cpu_src_host(&r.index[k], &t->index[k].src));
    cpu_parallel_for(t->slice_n, (size_t)ceil_div(PARALLEL_ELEMENTS, (int64_t)t->n), run_range, &r);
out:
    return err;
}

static void fill_index(struct cpu_index *x, const struct be_scatter *p, int k,
                       const struct arr *out)
{
    int64_t strides[SHP_MAX];

    be_scatter_index_strides(strides, p, k);
    nest_make(&x->nest, &p->position, strides);
    x->src = cpu_src(p->index[k]);
    x->type = p->index[k]->dtype;
    x->stride = out->strides[p->axis[k]];
    x->size = out->shape[p->axis[k]];
    x->limit = p->last[k];
}

static void fill_slice(struct cpu_moves *m, const struct be_scatter *p, const struct arr *out)
{
    int64_t strides[SHP_MAX];
    const int64_t *both[] = { [BE_COPY_SRC] = p->update_slice, [BE_COPY_DST] = strides };

    for (int i = 0; i < p->slice.ndim; i++)
        strides[i] = out->strides[p->axis_of[i]];
    m->from = p->updates->dtype;
    m->to = out->dtype;
    m->combine = (uint16_t)op_of_update(p->kind);
    m->n = p->slice_n;
    shp_collapse(&m->nest, &p->slice, both, 2);
    if (m->nest.ndim == 0) {
        m->nest.ndim = 1;
        m->nest.dim[0] = m->nest.stride[0][0] = m->nest.stride[1][0] = 1;
    }
}

/* Into out, which has the elements of the source already and may be of another dtype. */
static enum err enqueue(struct strm *s, const struct be_scatter *p, const struct arr *out)
{
    size_t bytes = sizeof(struct task) + (size_t)p->n_index * sizeof(struct cpu_index);
    struct task *t = mem_alloc(bytes);
    int64_t strides[SHP_MAX];

    if (!t)
        return ERR_NO_MEMORY;
    t->updates = cpu_src(p->updates);
    t->out = cpu_dst(out);
    t->n = p->n;
    t->slice_n = p->slice_n;
    fill_slice(&t->slice, p, out);
    nest_make(&t->update, &p->position, p->update_position);
    for (int i = 0; i < p->position.ndim; i++)
        strides[i] = p->along[i] < 0 ? 0 : out->strides[p->along[i]];
    nest_make(&t->along, &p->position, strides);
    t->n_index = p->n_index;
    for (int k = 0; k < p->n_index; k++)
        fill_index(&t->index[k], p, k, out);
    enum err err = cpu_enqueue(s, run_task, t, bytes);
    mem_free(t);
    return err;
}

/* Halves are combined as float32 and rounded once, at the end. */
static enum err scatter_wide(const struct exec *x, const struct be_scatter *p)
{
    struct arr *wide = NULL;
    struct shp shape;
    enum err err;

    arr_shape(&shape, x->out[0]);
    TRY(arr_new_empty(&wide, &shape, DT_FLOAT32));
    TRY(be_copy_dense(x->strm, wide, x->in[0]));
    TRY(enqueue(x->strm, p, wide));
    err = be_copy_dense(x->strm, x->out[0], wide);
out:
    if (wide && wide->buf) {
        enum err held = cpu_hold(x->strm, &wide->buf, 1);
        err = err ? err : held;
    }
    arr_unref(&wide);
    return err;
}

enum err cpu_scatter(const struct exec *x)
{
    struct be_scatter p;
    enum err err;

    if (!x->out[0]->size)
        return arr_alloc(x->out[0], &be_cpu);
    be_scatter_plan(&p, x);
    if (cpu_is_half((enum dtype)p.updates->dtype) && p.kind != UPDATE_NONE)
        return scatter_wide(x, &p);
    TRY(be_take_over(x->strm, x->out[0], x->in[0]));
    if (p.n && p.slice_n)
        err = enqueue(x->strm, &p, x->out[0]);
out:
    return err;
}

/* ---- by a mask ---- */

enum { OUT, MASK };

struct masked_task {
    struct cpu_src mask, values;
    char *out;
    size_t rows, n, n_values; /* elements of a row */
    size_t item;
    struct nest nest; /* out, mask */
    struct nest value;
};

/* One row of the first axis, with values of its own. */
static enum err put_row(const struct masked_task *t, const char *mask, const char *values,
                        size_t row)
{
    struct tile_walk walk = { &t->nest, MASK, 1 };
    char raw[TILE];
    size_t k = 0, end = (row + 1) * t->n;

    for (size_t i = row * t->n, n; i < end; i += n) {
        n = MIN(TILE, end - i);
        const char *set = tile_gather(raw, mask, &walk, i, n);
        for (size_t j = 0; j < n; j++) {
            if (!set[j])
                continue;
            if (k == t->n_values)
                return err_set(ERR_RUNTIME,
                               "[masked_scatter] There are %zu values, fewer than true elements of "
                               "the mask.",
                               t->n_values);
            int64_t from = nest_offset(&t->value, 0, row * t->n_values + k++);
            memcpy(t->out + nest_offset(&t->nest, OUT, i + j) * (int64_t)t->item,
                   values + from * (int64_t)t->item, t->item);
        }
    }
    return ERR_OK;
}

static enum err run_masked(void *payload)
{
    const struct masked_task *t = payload;
    const char *mask, *values = "";
    enum err err;

    TRY(cpu_src_host(&mask, &t->mask));
    if (t->n_values)
        TRY(cpu_src_host(&values, &t->values));
    for (size_t row = 0; row < t->rows; row++)
        TRY(put_row(t, mask, values, row));
out:
    return err;
}

enum err cpu_masked_scatter(const struct exec *x)
{
    struct arr *out = x->out[0], *mask = x->in[1], *values = x->in[2];
    struct masked_task t = { .rows = (size_t)out->shape[0],
                             .item = dt_size((enum dtype)out->dtype) };
    struct shp shape;
    enum err err;

    if (!out->size)
        return arr_alloc(out, &be_cpu);
    TRY(be_take_over(x->strm, out, x->in[0]));
    t.mask = cpu_src(mask);
    t.values = cpu_src(values);
    t.out = cpu_dst(out);
    t.n = out->size / t.rows;
    t.n_values = values->size / t.rows;
    arr_shape(&shape, out);
    shp_collapse(&t.nest, &shape, (const int64_t *[]){ out->strides, mask->strides }, 2);
    if (t.nest.ndim == 0) {
        t.nest.ndim = 1;
        t.nest.dim[0] = t.nest.stride[OUT][0] = t.nest.stride[MASK][0] = 1;
    }
    arr_shape(&shape, values);
    nest_make(&t.value, &shape, values->strides);
    err = cpu_enqueue(x->strm, run_masked, &t, sizeof t);
out:
    return err;
}
