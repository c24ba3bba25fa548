/* Strided copies with conversion. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

/* Elements that a converting or scattered copy moves at a time, through a tile on the stack. */
#define TILE 1024
/* Rows in place are cut here, so that several threads share a long one. */
#define LONG_RUN 16384
#define PARALLEL_ELEMENTS 32768
/* Shorter sides than this are not worth turning in blocks. */
#define TRANSPOSE_MIN 16

enum { SRC, DST };

struct task {
    struct cpu_src src;
    char *dst;
    uint8_t from, to; /* enum dtype */
    size_t n;
    struct nest nest; /* operands SRC and DST */
};

struct copy {
    const struct task *t;
    const char *src;
    int across; /* transposing copies: the dimension along which src is dense */
};

/* ---- planning ---- */

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

/* The loop order that writes dst from front to back, which may let more dimensions merge. */
static void order_by_dst(const struct be_copy *c, struct shp *shape, int64_t strides[2][SHP_MAX])
{
    shape->ndim = 0;
    for (int i = 0; i < c->shape->ndim; i++) {
        int at = shape->ndim;
        if (c->shape->d[i] == 1)
            continue;
        for (; at > 0 && magnitude(strides[DST][at - 1]) < magnitude(c->dst_strides[i]); at--) {
            shape->d[at] = shape->d[at - 1];
            strides[SRC][at] = strides[SRC][at - 1];
            strides[DST][at] = strides[DST][at - 1];
        }
        shape->d[at] = c->shape->d[i];
        strides[SRC][at] = c->src_strides[i];
        strides[DST][at] = c->dst_strides[i];
        shape->ndim++;
    }
}

static void plan_nest(struct nest *nest, const struct be_copy *c)
{
    int64_t strides[2][SHP_MAX];
    const int64_t *operands[2] = { strides[SRC], strides[DST] };
    struct shp shape;

    order_by_dst(c, &shape, strides);
    shp_collapse(nest, &shape, operands, 2);
    if (nest->ndim == 0) {
        nest->ndim = 1;
        nest->dim[0] = 1;
        nest->stride[SRC][0] = nest->stride[DST][0] = 1;
    }
}

/* ---- element by element, in dst order ---- */

static void copy_piece(const struct copy *c, size_t first, size_t n)
{
    const struct task *t = c->t;
    enum dtype from = (enum dtype)t->from, to = (enum dtype)t->to;
    char raw[TILE * 8] __attribute__((aligned(64))),
        converted[TILE * 8] __attribute__((aligned(64)));
    const char *src =
        tile_gather(raw, c->src, &(struct tile_walk){ &t->nest, SRC, dt_size(from) }, first, n);

    if (from != to) {
        cpu_convert((struct cpu_vec){ converted, to }, (struct cpu_vec){ (char *)src, from }, n);
        src = converted;
    }
    tile_scatter(t->dst, src, &(struct tile_walk){ &t->nest, DST, dt_size(to) }, first, n);
}

static void copy_range(void *arg, size_t begin, size_t end)
{
    const struct copy *c = arg;
    const struct nest *nest = &c->t->nest;
    size_t row = (size_t)nest->dim[nest->ndim - 1];
    bool in_place = c->t->from == c->t->to && nest->stride[SRC][nest->ndim - 1] == 1;

    for (size_t i = begin, n; i < end; i += n) {
        size_t left = row - i % row;
        if (in_place && left >= TILE)
            n = MIN(LONG_RUN, left);
        else
            n = row >= TILE ? MIN(TILE, left) : TILE;
        n = MIN(n, end - i);
        copy_piece(c, i, n);
    }
}

/* ---- one element everywhere ---- */

static void fill_range(void *arg, size_t begin, size_t end)
{
    const struct copy *c = arg;
    size_t item = dt_size((enum dtype)c->t->to);

    tile_splat(c->t->dst + begin * item, c->src, item, end - begin);
}

static bool is_fill(const struct nest *nest)
{
    return nest->ndim == 1 && nest->stride[SRC][0] == 0 && nest->stride[DST][0] == 1;
}

static void run_fill(struct copy *c)
{
    uint64_t element;

    cpu_convert((struct cpu_vec){ &element, (enum dtype)c->t->to },
                (struct cpu_vec){ (char *)c->src, (enum dtype)c->t->from }, 1);
    c->src = (const char *)&element;
    cpu_parallel_for(c->t->n, PARALLEL_ELEMENTS, fill_range, c);
}

/* ---- transposing: dst is dense along the last dimension, src along another ---- */

/* The dimension along which src is dense, if it is long enough for blocks; else -1. */
static int transposed_dim(const struct task *t)
{
    const struct nest *n = &t->nest;
    int last = n->ndim - 1;

    if (t->from != t->to || n->stride[DST][last] != 1 || n->dim[last] < TRANSPOSE_MIN)
        return -1;
    for (int i = 0; i < last; i++)
        if (n->stride[SRC][i] == 1 && n->dim[i] >= TRANSPOSE_MIN)
            return i;
    return -1;
}

/* One strip: some rows along `across`, all columns, at one position of the other dimensions. */
static void transpose_strip(const struct copy *c, size_t strip)
{
    const struct nest *n = &c->t->nest;
    int last = n->ndim - 1;
    int64_t item = (int64_t)dt_size((enum dtype)c->t->to);
    int64_t rest = (int64_t)strip, per_matrix = ceil_div(n->dim[c->across], TILE_BLOCK_ROWS);
    int64_t row = rest % per_matrix * TILE_BLOCK_ROWS;
    int64_t src = row, dst = row * n->stride[DST][c->across];

    rest /= per_matrix;
    for (int i = last - 1; i >= 0; i--) {
        if (i == c->across)
            continue;
        src += rest % n->dim[i] * n->stride[SRC][i];
        dst += rest % n->dim[i] * n->stride[DST][i];
        rest /= n->dim[i];
    }
    tile_transpose(
        &(struct tile_block){ .src = c->src + src * item,
                              .dst = c->t->dst + dst * item,
                              .src_stride = n->stride[SRC][last],
                              .dst_stride = n->stride[DST][c->across],
                              .rows = (size_t)MIN(TILE_BLOCK_ROWS, n->dim[c->across] - row),
                              .cols = (size_t)n->dim[last] },
        (size_t)item);
}

static void transpose_range(void *arg, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        transpose_strip(arg, i);
}

static void run_transpose(struct copy *c)
{
    const struct nest *n = &c->t->nest;
    int64_t strips = ceil_div(n->dim[c->across], TILE_BLOCK_ROWS);
    size_t strip_elements = (size_t)n->dim[n->ndim - 1] * TILE_BLOCK_ROWS;

    for (int i = 0; i < n->ndim - 1; i++)
        if (i != c->across)
            strips *= n->dim[i];
    cpu_parallel_for((size_t)strips, PARALLEL_ELEMENTS / strip_elements + 1, transpose_range, c);
}

/* ---- tasks ---- */

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct copy c = { .t = t, .across = transposed_dim(t) };
    enum err err = cpu_src_host(&c.src, &t->src);

    if (err != ERR_OK)
        return err;
    if (is_fill(&t->nest))
        run_fill(&c);
    else if (c.across >= 0)
        run_transpose(&c);
    else
        cpu_parallel_for(t->n, PARALLEL_ELEMENTS, copy_range, &c);
    return ERR_OK;
}

enum err cpu_copy(struct strm *s, const struct be_copy *c)
{
    struct task t = { .from = c->src->dtype, .to = c->dst->dtype, .n = shp_size(c->shape) };

    if (t.n == 0)
        return ERR_OK;
    t.src = cpu_src(c->src);
    t.src.offset += c->src_offset * (int64_t)dt_size((enum dtype)t.from);
    t.dst = cpu_dst(c->dst) + c->dst_offset * (int64_t)dt_size((enum dtype)t.to);
    plan_nest(&t.nest, c);
    return cpu_enqueue(s, run_task, &t, sizeof t);
}
