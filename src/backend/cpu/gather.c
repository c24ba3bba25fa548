/* Slices of an array at positions that index arrays give. */
#include "backend/cpu/index.h"

#define TILE INDEX_TILE
#define PARALLEL_ELEMENTS 16384

struct task {
    struct cpu_src src;
    char *out;
    size_t item, n; /* n: slices */
    size_t slice_size;
    struct nest slice;
    bool has_base; /* slices start where base says before the indices count */
    struct nest base;
    int n_axes;
    struct cpu_index index[]; /* n_axes */
};

struct run {
    const struct task *t;
    const char *src;
    const char *index[SHP_MAX];
};

/* offset[i] += where index array k puts slice first + i: what lies outside is moved to the nearest
 * end. MLX reads past the end there. */
static void add_positions(const struct run *r, int k, int64_t *offset, size_t first, size_t n)
{
    const struct cpu_index *x = &r->t->index[k];
    int64_t v[TILE];

    cpu_index_read(v, x, r->index[k], first, n);
    for (size_t i = 0; i < n; i++)
        offset[i] += MAX(0, MIN(v[i], x->limit)) * x->stride;
}

static void copy_elements(const struct run *r, const int64_t *offset, size_t first, size_t n)
{
#define COPY(T)                                                                                    \
    {                                                                                              \
        T *dst = (T *)r->t->out + first;                                                           \
        const T *src = (const T *)r->src;                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            dst[i] = src[offset[i]];                                                               \
    }
    BY_ITEM(r->t->item, COPY)
#undef COPY
}

static void copy_slice(const struct task *t, char *dst, const char *src)
{
    struct tile_walk w = { &t->slice, 0, t->item };
    size_t row = (size_t)t->slice.dim[t->slice.ndim - 1];

    for (size_t i = 0, n; i < t->slice_size; i += n) {
        n = row >= TILE ? MIN(row - i % row, t->slice_size - i) : MIN(TILE, t->slice_size - i);
        char *to = dst + i * t->item;
        const char *from = tile_gather(to, src, &w, i, n);
        if (from != to)
            memcpy(to, from, n * t->item);
    }
}

static void run_range(void *arg, size_t begin, size_t end)
{
    const struct run *r = arg;
    const struct task *t = r->t;
    int64_t offset[TILE];

    for (size_t i = begin, n; i < end; i += n) {
        n = MIN(TILE, end - i);
        for (size_t j = 0; j < n; j++)
            offset[j] = t->has_base ? nest_offset(&t->base, 0, i + j) : 0;
        for (int k = 0; k < t->n_axes; k++)
            add_positions(r, k, offset, i, n);
        if (t->slice_size == 1) {
            copy_elements(r, offset, i, n);
            continue;
        }
        for (size_t j = 0; j < n; j++)
            copy_slice(t, t->out + (i + j) * t->slice_size * t->item,
                       r->src + offset[j] * (int64_t)t->item);
    }
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t };
    enum err err;

    TRY(cpu_src_host(&r.src, &t->src));
    for (int k = 0; k < t->n_axes; k++)
        TRY(cpu_src_host(&r.index[k], &t->index[k].src));
    cpu_parallel_for(t->n, PARALLEL_ELEMENTS / MIN(t->slice_size, PARALLEL_ELEMENTS), run_range,
                     &r);
out:
    return err;
}

static void fill_index(struct cpu_index *x, const struct arr *src, const struct arr *a, int axis,
                       int32_t slice_size)
{
    struct shp shape;

    arr_shape(&shape, a);
    nest_make(&x->nest, &shape, a->strides);
    x->src = cpu_src(a);
    x->type = a->dtype;
    x->stride = src->strides[axis];
    x->size = src->shape[axis];
    x->limit = src->shape[axis] - slice_size;
}

enum err cpu_gather(const struct exec *x)
{
    const struct gather_params *p = x->node->params;
    const struct arr *src = x->in[0];
    size_t bytes = sizeof(struct task) + (size_t)p->n_axes * sizeof(struct cpu_index);
    struct task *t = NULL;
    struct shp slice = { .ndim = src->ndim };
    enum err err;

    TRY(arr_alloc(x->out[0], &be_cpu));
    if (!x->out[0]->size)
        goto out;
    if (!(t = mem_alloc(bytes))) {
        err = ERR_NO_MEMORY;
        goto out;
    }
    for (int i = 0; i < src->ndim; i++)
        slice.d[i] = p->d[i].size;
    t->src = cpu_src(src);
    t->out = cpu_dst(x->out[0]);
    t->item = dt_size((enum dtype)src->dtype);
    t->slice_size = shp_size(&slice);
    t->n = x->out[0]->size / t->slice_size;
    nest_make(&t->slice, &slice, src->strides);
    t->n_axes = p->n_axes;
    for (int k = 0; k < p->n_axes; k++)
        fill_index(&t->index[k], src, x->in[1 + k], p->d[k].axis, p->d[p->d[k].axis].size);
    err = cpu_enqueue(x->strm, run_task, t, bytes);
out:
    mem_free(t);
    return err;
}

enum err cpu_gather_axis(const struct exec *x)
{
    int axis = ((const struct axis_params *)x->node->params)->axis;
    struct arr *src = x->in[0], *out = x->out[0];
    size_t bytes = sizeof(struct task) + sizeof(struct cpu_index);
    int64_t strides[SHP_MAX];
    struct shp shape, one = { .ndim = 0 };
    struct task *t = NULL;
    enum err err;

    TRY(arr_alloc(out, &be_cpu));
    if (!(t = mem_alloc(bytes))) {
        err = ERR_NO_MEMORY;
        goto out;
    }
    memcpy(strides, src->strides, src->ndim * sizeof strides[0]);
    strides[axis] = 0;
    arr_shape(&shape, out);
    *t = (struct task){ .src = cpu_src(src),
                        .out = cpu_dst(out),
                        .item = dt_size((enum dtype)src->dtype),
                        .n = out->size,
                        .slice_size = 1,
                        .has_base = true,
                        .n_axes = 1 };
    nest_make(&t->slice, &one, NULL);
    nest_make(&t->base, &shape, strides);
    fill_index(&t->index[0], src, x->in[1], axis, 1);
    err = cpu_enqueue(x->strm, run_task, t, bytes);
out:
    mem_free(t);
    return err;
}
