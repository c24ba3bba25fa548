/* Fourier transforms, one axis after the other. Lines along the axis are copied side by side into
 * blocks, which threads share; a few long lines are shared step by step. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/fft_table.h"
#include "backend/cpu/tile.h"

#include <stdatomic.h>

/* Bytes of a block that stay in a core's cache, and lines that fill its registers. */
#define BLOCK_BYTES (192 << 10)
#define BLOCK_LINES 16
/* Shorter lines are not worth sharing. */
#define SHARED_FROM (1 << 14)

enum { SRC, DST };

/* A pass along one axis. Numbers in memory are complex or real; `half` numbers are read or written
 * where a spectrum is half there. */
struct pass {
    enum fft_kind kind;
    bool is_packed; /* real numbers by twos, as complex ones */
    bool inverse;
    float scale;
    size_t n, half;
    const char *src;
    char *dst;
    int64_t step[2]; /* along the axis, in elements */
    struct nest lines;
    size_t n_lines, width;
    struct fft_table table;
    float *turn; /* is_packed: the roots of n up to half, pairs */
    bool is_shared;
    atomic_bool no_memory;
};

/* Some lines of it. */
struct lines {
    struct pass *p;
    struct fft_block b;
    size_t first;
    int64_t at[2][BLOCK_LINES];
};

/* ---- numbers in memory ---- */

struct pair {
    float re, im;
};

static const float *reals_at(const struct lines *w, size_t line, size_t j)
{
    return (const float *)w->p->src + w->at[SRC][line] + (int64_t)j * w->p->step[SRC];
}

static struct pair pair_at(const struct lines *w, size_t line, size_t j)
{
    const float *v =
        (const float *)w->p->src + 2 * (w->at[SRC][line] + (int64_t)j * w->p->step[SRC]);

    return (struct pair){ v[0], v[1] };
}

static void put_real(const struct lines *w, size_t line, size_t j, float v)
{
    ((float *)w->p->dst)[w->at[DST][line] + (int64_t)j * w->p->step[DST]] = v;
}

static void put_pair(const struct lines *w, size_t line, size_t j, struct pair v)
{
    float *to = (float *)w->p->dst + 2 * (w->at[DST][line] + (int64_t)j * w->p->step[DST]);

    to[0] = v.re;
    to[1] = v.im;
}

/* ---- from memory to blocks, where every transform is a forward one ---- */

/* Frequency j of a spectrum of which the first half is there. */
static struct pair frequency(const struct lines *w, size_t line, size_t j)
{
    const struct pass *p = w->p;
    size_t mirrored = p->n - j;
    struct pair v = pair_at(w, line, j < p->half ? j : mirrored);

    if (j == 0 || j == mirrored)
        v.im = 0;
    return j < p->half ? v : (struct pair){ v.re, -v.im };
}

/* What has even numbers as real and odd ones as imaginary parts, times 2. */
static struct pair packed_frequency(const struct lines *w, size_t line, size_t k)
{
    const struct pass *p = w->p;
    struct pair a = frequency(w, line, k), b = frequency(w, line, p->n / 2 - k);
    float c = p->turn[2 * k], s = -p->turn[2 * k + 1];
    float x = a.re - b.re, y = a.im + b.im;

    return (struct pair){ a.re + b.re - (x * s + y * c), a.im - b.im + (x * c - y * s) };
}

static struct pair load(const struct lines *w, size_t line, size_t j)
{
    const struct pass *p = w->p;

    switch (p->kind) {
    case FFT_TO_HALF:
        if (p->is_packed)
            return (struct pair){ *reals_at(w, line, 2 * j), *reals_at(w, line, 2 * j + 1) };
        return (struct pair){ *reals_at(w, line, j), 0 };
    case FFT_FROM_HALF:
        return p->is_packed ? packed_frequency(w, line, j) : frequency(w, line, j);
    default:
        return pair_at(w, line, j);
    }
}

/* ---- and back ---- */

static struct pair number(const struct lines *w, size_t line, size_t j)
{
    const float *re = w->b.data + j * w->b.width + line;

    return (struct pair){ re[0], re[w->p->table.length * w->b.width] };
}

/* From the spectrum of pairs of real numbers to that of the numbers. */
static struct pair unpacked(const struct lines *w, size_t line, size_t k)
{
    size_t half = w->p->n / 2;
    struct pair a = number(w, line, k % half), b = number(w, line, (half - k) % half);
    float c = w->p->turn[2 * k], s = w->p->turn[2 * k + 1];
    float x = 0.5f * (a.im + b.im), y = 0.5f * (b.re - a.re);

    return (struct pair){ 0.5f * (a.re + b.re) + (x * c - y * s),
                          0.5f * (a.im - b.im) + (x * s + y * c) };
}

static void store(const struct lines *w, size_t line, size_t j)
{
    const struct pass *p = w->p;
    struct pair v =
        p->kind == FFT_TO_HALF && p->is_packed ? unpacked(w, line, j) : number(w, line, j);

    v.re *= p->scale;
    v.im *= p->inverse ? -p->scale : p->scale;
    if (p->kind != FFT_FROM_HALF) {
        put_pair(w, line, j, v);
    } else if (p->is_packed) {
        put_real(w, line, 2 * j, v.re);
        put_real(w, line, 2 * j + 1, v.im);
    } else {
        put_real(w, line, j, v.re);
    }
}

/* ---- blocks ---- */

/* Numbers of a block that are read, and of its result that are written. */
static size_t count_loads(const struct pass *p)
{
    return p->table.n;
}

static size_t count_stores(const struct pass *p)
{
    return p->kind == FFT_TO_HALF ? p->half : p->table.n;
}

static void load_range(void *arg, size_t begin, size_t end)
{
    struct lines *w = arg;
    size_t width = w->b.width, length = w->p->table.length;
    float sign = w->p->inverse ? -1 : 1;

    for (size_t j = begin; j < end; j++)
        for (size_t l = 0; l < width; l++) {
            struct pair v = load(w, l, j);
            w->b.data[j * width + l] = v.re;
            w->b.data[(length + j) * width + l] = sign * v.im;
        }
}

static void store_range(void *arg, size_t begin, size_t end)
{
    const struct lines *w = arg;

    for (size_t j = begin; j < end; j++)
        for (size_t l = 0; l < w->b.width; l++)
            store(w, l, j);
}

static void share(struct lines *w, size_t n, cpu_range_fn fn)
{
    if (w->p->is_shared)
        cpu_parallel_for(n, 1024, fn, w);
    else
        fn(w, 0, n);
}

static void run_lines(struct lines *w)
{
    struct pass *p = w->p;

    for (size_t l = 0; l < w->b.width; l++)
        for (int o = SRC; o <= DST; o++)
            w->at[o][l] = nest_offset(&p->lines, o, w->first + l);
    share(w, count_loads(p), load_range);
    fft_table_run(&p->table, &w->b);
    share(w, count_stores(p), store_range);
}

/* Blocks from begin up to end. */
static void run_blocks(void *arg, size_t begin, size_t end)
{
    struct pass *p = arg;
    size_t size = 2 * p->table.length * p->width;
    float *memory = mem_alloc_aligned(2 * size * sizeof *memory);

    if (!memory) {
        atomic_store(&p->no_memory, true);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        struct lines w = { .p = p, .first = i * p->width };
        w.b = (struct fft_block){ .data = memory,
                                  .other = memory + size,
                                  .width = MIN(p->width, p->n_lines - w.first),
                                  .is_shared = p->is_shared };
        run_lines(&w);
    }
    mem_free(memory);
}

/* ---- passes ---- */

static enum err turn_init(struct pass *p)
{
    struct fft_roots r;
    enum err err = fft_roots_init(&r, p->n);

    p->turn = mem_alloc_array(2 * p->half, sizeof *p->turn);
    if (!p->turn)
        err = ERR_NO_MEMORY;
    for (size_t k = 0; !err && k < p->half; k++) {
        double v[2];
        fft_root(v, &r, k);
        p->turn[2 * k] = (float)v[0];
        p->turn[2 * k + 1] = (float)v[1];
    }
    fft_roots_fini(&r);
    return err;
}

static enum err run_pass(struct pass *p)
{
    size_t length = p->is_packed ? p->n / 2 : p->n, threads = (size_t)cpu_threads();
    enum err err = fft_table_init(&p->table, length);

    if (!err && p->is_packed)
        err = turn_init(p);
    TRY(err);
    size_t fits = BLOCK_BYTES / (4 * sizeof(float) * p->table.length);
    p->width = MIN(MIN(MAX(fits, 1), BLOCK_LINES), p->n_lines);
    p->is_shared = p->table.length >= SHARED_FROM && p->n_lines < threads;
    size_t blocks = (size_t)ceil_div((int64_t)p->n_lines, (int64_t)p->width);
    size_t grain = MAX(BLOCK_BYTES / (16 * p->table.length * p->width), 1);
    if (p->is_shared)
        run_blocks(p, 0, blocks);
    else
        cpu_parallel_for(blocks, grain, run_blocks, p);
    if (atomic_load(&p->no_memory))
        err = ERR_NO_MEMORY;
out:
    fft_table_fini(&p->table);
    mem_free(p->turn);
    return err ? err_set(err, "[FFT::eval_cpu] There is no memory for %zu numbers.", p->n) : err;
}

/* ---- the op ---- */

/* What passes read and write. */
struct side {
    const char *src;
    char *dst; /* the same, but of the op's input */
    struct shp shape;
    int64_t strides[SHP_MAX];
};

struct task {
    struct fft_plan plan;
    struct cpu_src src;
    struct side in, out;
};

static void side_init(struct side *s, const struct arr *a)
{
    arr_shape(&s->shape, a);
    for (int i = 0; i < a->ndim; i++)
        s->strides[i] = a->strides[i];
}

static enum err run_axis(const struct fft_axis *a, bool inverse, const struct side *from,
                         const struct side *to)
{
    const int64_t *strides[] = { from->strides, to->strides };
    struct pass p = { .kind = a->kind,
                      .is_packed = a->kind != FFT_COMPLEX && a->n % 2 == 0,
                      .inverse = inverse,
                      .scale = inverse ? (float)(1 / (double)a->n) : 1,
                      .n = a->n,
                      .half = a->n / 2 + 1,
                      .src = from->src,
                      .dst = to->dst,
                      .step = { from->strides[a->axis], to->strides[a->axis] } };
    struct shp rest = from->shape;

    rest.d[a->axis] = 1;
    p.n_lines = shp_size(&rest);
    shp_collapse(&p.lines, &rest, strides, 2);
    if (!p.lines.ndim) {
        p.lines.ndim = 1;
        p.lines.dim[0] = 1;
        p.lines.stride[SRC][0] = p.lines.stride[DST][0] = 0;
    }
    return run_pass(&p);
}

/* What is complex until the last axis has room of its own. */
static enum err run_task(void *payload)
{
    struct task *t = payload;
    int last = t->plan.n - 1;
    bool is_back = t->plan.d[last].kind == FFT_FROM_HALF && last > 0;
    struct side between = is_back ? t->in : t->out;
    char *room = NULL;
    enum err err = cpu_src_host(&t->in.src, &t->src);

    TRY(err);
    if (is_back) {
        shp_row_strides(between.strides, &between.shape);
        between.src = between.dst = room = mem_alloc_aligned(8 * shp_size(&between.shape));
        if (!room)
            TRY(err_set(ERR_NO_MEMORY, "[FFT::eval_cpu] There is no memory."));
    }
    for (int i = 0; i <= last; i++)
        TRY(run_axis(&t->plan.d[i], t->plan.inverse, i ? &between : &t->in,
                     i < last ? &between : &t->out));
out:
    mem_free(room);
    return err;
}

enum err cpu_fft(const struct exec *x)
{
    struct task t = { .src = cpu_src(x->in[0]) };
    enum err err;

    TRY(arr_alloc(x->out[0], &be_cpu));
    if (!x->out[0]->size)
        goto out;
    fft_plan_init(&t.plan, x);
    side_init(&t.in, x->in[0]);
    side_init(&t.out, x->out[0]);
    t.out.src = t.out.dst = cpu_dst(x->out[0]);
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
