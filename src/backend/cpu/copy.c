/* Strided copies with conversion. */
#include "backend/common/families.h"
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

enum { SRC = BE_COPY_SRC, DST = BE_COPY_DST };

struct task {
    struct cpu_src src;
    char *dst;
    struct cpu_moves moves;
};

struct copy {
    const struct cpu_moves *t;
    const char *src;
    char *dst;
    int across; /* transposing copies: the dimension along which src is dense */
};

/* ---- element by element, in dst order ---- */

/* result = op(old, new), all of dtype t. */
static void combine_tile(char *result, const struct cpu_moves *t, const char *old, const char *new,
                         size_t n)
{
    enum dtype type = (enum dtype)t->to;
    cpu_kernel fn = cpu_kernels()->op[t->combine][cpu_class_of[type]].fn;
    float a[TILE], b[TILE];

    if (!cpu_is_half(type)) {
        fn(result, old, new, NULL, n);
        return;
    }
    cpu_widen(a, old, type, n);
    cpu_widen(b, new, type, n);
    fn(a, a, b, NULL, n);
    cpu_narrow(result, a, type, n);
}

/* At most TILE elements unless src is used in place. */
static void copy_piece(const struct copy *c, size_t first, size_t n)
{
    const struct cpu_moves *t = c->t;
    enum dtype from = (enum dtype)t->from, to = (enum dtype)t->to;
    struct tile_walk to_dst = { &t->nest, DST, dt_size(to) };
    char raw[TILE * 8] __attribute__((aligned(64))),
        converted[TILE * 8] __attribute__((aligned(64))),
        old[TILE * 8] __attribute__((aligned(64)));
    const char *src =
        tile_gather(raw, c->src, &(struct tile_walk){ &t->nest, SRC, dt_size(from) }, first, n);

    if (from != to) {
        cpu_convert((struct cpu_vec){ converted, to }, (struct cpu_vec){ (char *)src, from }, n);
        src = converted;
    }
    if (t->combine) {
        combine_tile(converted, t, tile_gather(old, c->dst, &to_dst, first, n), src, n);
        src = converted;
    }
    tile_scatter(c->dst, src, &to_dst, first, n);
}

static void copy_range(void *arg, size_t begin, size_t end)
{
    const struct copy *c = arg;
    const struct nest *nest = &c->t->nest;
    size_t row = (size_t)nest->dim[nest->ndim - 1];
    bool in_place =
        c->t->from == c->t->to && !c->t->combine && nest->stride[SRC][nest->ndim - 1] == 1;

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

void cpu_move(const struct cpu_moves *m, char *dst, const char *src, const size_t range[2])
{
    copy_range(&(struct copy){ .t = m, .src = src, .dst = dst }, range[0], range[1]);
}

/* ---- one element everywhere ---- */

static void fill_range(void *arg, size_t begin, size_t end)
{
    const struct copy *c = arg;
    size_t item = dt_size((enum dtype)c->t->to);

    tile_splat(c->dst + begin * item, c->src, item, end - begin);
}

static bool is_fill(const struct cpu_moves *t)
{
    const struct nest *n = &t->nest;

    return !t->combine && n->ndim == 1 && n->stride[SRC][0] == 0 && n->stride[DST][0] == 1;
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
static int transposed_dim(const struct cpu_moves *t)
{
    const struct nest *n = &t->nest;
    int last = n->ndim - 1;

    if (t->from != t->to || t->combine || n->stride[DST][last] != 1 || n->dim[last] < TRANSPOSE_MIN)
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
                              .dst = c->dst + dst * item,
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

static void run_copy(struct copy *c)
{
    const struct cpu_moves *t = c->t;

    c->across = transposed_dim(t);
    if (is_fill(t))
        run_fill(c);
    else if (c->across >= 0)
        run_transpose(c);
    else
        cpu_parallel_for(t->n, PARALLEL_ELEMENTS, copy_range, c);
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct copy c = { .t = &t->moves, .dst = t->dst };
    enum err err;

    TRY(cpu_src_host(&c.src, &t->src));
    run_copy(&c);
out:
    return err;
}

/* ---- offsets that are known when the task runs ---- */

struct start {
    struct cpu_src position;
    uint8_t type;  /* enum dtype */
    int64_t apart; /* elements from one position to the next */
    struct be_start s;
};

struct moved_task {
    struct task t;
    struct start start[BE_COPY_OPERANDS];
};

/* Adds the start, in elements. */
static enum err add_start(int64_t *offset, const struct start *p)
{
    enum dtype type = (enum dtype)p->type;
    const char *at;
    enum err err = ERR_OK;

    if (p->s.n)
        TRY(cpu_src_host(&at, &p->position));
    for (int i = 0; i < p->s.n; i++) {
        int64_t v;
        const char *from = at + i * p->apart * (int64_t)dt_size(type);
        cpu_convert((struct cpu_vec){ &v, DT_INT64 }, (struct cpu_vec){ (char *)from, type }, 1);
        *offset += cpu_position(v, type, p->s.size[i], p->s.last[i]) * p->s.stride[i];
    }
out:
    return err;
}

static enum err run_moved(void *payload)
{
    const struct moved_task *m = payload;
    struct copy c = { .t = &m->t.moves };
    int64_t item = (int64_t)dt_size((enum dtype)m->t.moves.to), src = 0, dst = 0;
    enum err err;

    TRY(cpu_src_host(&c.src, &m->t.src));
    TRY(add_start(&src, &m->start[SRC]));
    TRY(add_start(&dst, &m->start[DST]));
    c.src += src * item;
    c.dst = m->t.dst + dst * item;
    run_copy(&c);
out:
    return err;
}

static void set_start(struct start *p, const struct be_start *s)
{
    p->s.n = 0;
    if (!s)
        return;
    p->position = cpu_src(s->position);
    p->type = s->position->dtype;
    p->apart = s->position->ndim ? s->position->strides[0] : 0;
    p->s = *s;
}

static void set_task(struct task *t, const struct be_copy *c)
{
    struct cpu_moves *m = &t->moves;

    m->from = c->src->dtype;
    m->to = c->dst->dtype;
    m->combine = (uint16_t)c->combine;
    m->n = shp_size(c->shape);
    t->src = cpu_src(c->src);
    t->src.offset += c->src_offset * (int64_t)dt_size((enum dtype)m->from);
    t->dst = cpu_dst(c->dst) + c->dst_offset * (int64_t)dt_size((enum dtype)m->to);
    be_copy_nest(&m->nest, c);
    if (m->nest.ndim == 0) {
        m->nest.ndim = 1;
        m->nest.dim[0] = m->nest.stride[SRC][0] = m->nest.stride[DST][0] = 1;
    }
}

static enum err copy_moved(struct strm *s, const struct be_copy *c)
{
    struct moved_task m;

    set_task(&m.t, c);
    set_start(&m.start[SRC], c->src_start);
    set_start(&m.start[DST], c->dst_start);
    return cpu_enqueue(s, run_moved, &m, sizeof m);
}

enum err cpu_copy(struct strm *s, const struct be_copy *c)
{
    struct task t;

    if (shp_size(c->shape) == 0)
        return ERR_OK;
    if (c->src_start || c->dst_start)
        return copy_moved(s, c);
    set_task(&t, c);
    return cpu_enqueue(s, run_task, &t, sizeof t);
}
