#include "backend/vulkan/ops/fft_lines.h"

#include <stdio.h>

#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"

#define MAX_PASSES 8
#define WIDE_THREADS 512
/* Memory is read and written 32 bytes at a time at least. */
#define NEIGHBOURS 4
/* Of fft_mixed, besides its numbers. */
#define PLACES_BYTES (FFT_MAX_LINES * 20)

enum { SRC, DST };

static const uint8_t primes[] = { 13, 11, 7, 5, 3, 2, 0 };
static const uint8_t radices[] = { 8, 4, 2, 3, 5, 7, 11, 13, 0 };

struct pass {
    uint32_t n, before, parts; /* as in fft_args */
    uint32_t lines;            /* of a workgroup, as a power of two */
    uint32_t flags;
    const struct vk_pipe *pipe;
};

struct job {
    const struct fft_lines *t;
    uint32_t n_batch;
    enum variant_id variant;
    struct pass pass[MAX_PASSES];
    int n_passes;
};

/* ---- scratch memory ---- */

/* The other axes in order, `step` elements apart at least. */
static void rest_strides(int64_t *strides, const struct shp *rest, int axis, int64_t step)
{
    for (int i = rest->ndim - 1; i >= 0; i--)
        if (i != axis) {
            strides[i] = step;
            step *= rest->d[i];
        }
}

struct fft_place fft_lines_scratch(const struct fft_lines *t, uint32_t n)
{
    size_t n_batch = shp_size(&t->rest);
    struct fft_place p = { .bytes = (size_t)8 * n * n_batch };

    p.strides[t->axis] = t->batch_first ? (int64_t)n_batch : 1;
    rest_strides(p.strides, &t->rest, t->axis, t->batch_first ? 1 : n);
    return p;
}

enum err fft_place_read(uint64_t *addr, struct vk_enc *e, const struct fft_place *p)
{
    *addr = p->addr;
    if (p->a)
        return vk_enc_read(e, addr, p->a);
    vk_enc_scratch_read(e, p->addr, p->bytes);
    return ERR_OK;
}

enum err fft_place_write(uint64_t *addr, struct vk_enc *e, struct fft_place *p)
{
    enum err err;

    if (p->a)
        return vk_enc_write(e, addr, p->a);
    TRY(vk_enc_scratch(e, &p->addr, p->bytes));
    *addr = p->addr;
out:
    return err;
}

/* ---- lines that fit ---- */

static uint32_t forced_line(uint32_t most)
{
    uint32_t forced = (uint32_t)gate_int(GATE_VK_FFT_LINE);

    return forced ? MIN(forced, most) : most;
}

static uint32_t room_of_mixed(void)
{
    uint32_t bytes = vk_limits_get()->shared_memory - PLACES_BYTES, n = 64;

    while (2 * 8 * (2 * n) <= bytes)
        n *= 2;
    return n;
}

static uint32_t padded(uint32_t n)
{
    return n + (n >> 4);
}

/* Numbers that a workgroup has in registers. */
static uint32_t room_of_wide(void)
{
    uint32_t threads = MIN(WIDE_THREADS, vk_limits_get()->max_workgroup_size);
    uint32_t n = FFT_PER_LANE;

    while (2 * n <= threads * FFT_PER_LANE && 4 * padded(2 * n) <= vk_limits_get()->shared_memory)
        n *= 2;
    return n;
}

static uint32_t longest_line(enum variant_id id)
{
    return id == VARIANT_FFT_WIDE ? forced_line(MIN(room_of_wide(), 4096u))
                                  : forced_line(room_of_mixed());
}

/* Shares the prime factors out among as few passes as there can be, the largest ones first, each to
 * the one that is the shortest. False if there are too many. */
static bool share_out(struct job *j)
{
    uint32_t prime[FFT_FACTORS], most = longest_line(j->variant);
    int n = fft_factors(prime, j->t->n, primes);

    for (j->n_passes = 1; j->n_passes <= MAX_PASSES; j->n_passes++) {
        bool fits = true;
        for (int i = 0; i < j->n_passes; i++)
            j->pass[i].n = 1;
        for (int i = 0; i < n; i++) {
            struct pass *least = &j->pass[0];
            for (int k = 1; k < j->n_passes; k++)
                least = j->pass[k].n < least->n ? &j->pass[k] : least;
            least->n *= prime[i];
            fits &= least->n <= most;
        }
        if (fits)
            break;
    }
    uint32_t before = 1;
    for (int i = 0; i < j->n_passes && i < MAX_PASSES; before *= j->pass[i++].n) {
        j->pass[i].before = before;
        j->pass[i].parts = j->t->n / before / j->pass[i].n;
    }
    return j->n_passes <= MAX_PASSES;
}

bool fft_lines_fit(uint32_t n)
{
    uint32_t prime[FFT_FACTORS];

    return n == 1 || fft_factors(prime, n, primes) > 0;
}

/* ---- variants ---- */

static bool wide_fits(const struct job *j)
{
    if (j->t->n < FFT_PER_LANE || j->t->n & (j->t->n - 1))
        return false;
    for (int i = 0; i < j->n_passes; i++)
        if (j->pass[i].n < FFT_PER_LANE)
            return false;
    return true;
}

/* Barriers, and what is unrolled, cost software devices more than passes through memory. */
static enum variant_reason judge(void *job, enum variant_id id)
{
    struct job *j = job;

    j->variant = id;
    if (id == VARIANT_FFT_WIDE && launch_is_lean())
        return VARIANT_DEVICE;
    if (!share_out(j))
        return VARIANT_SIZE;
    return id == VARIANT_FFT_MIXED || wide_fits(j) ? VARIANT_FITS : VARIANT_SIZE;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct job *j = data;

    snprintf(text, size, "%u lines of %u, loads %u, stores %u, flags %u", j->n_batch, j->t->n,
             j->t->load, j->t->store, j->t->flags);
}

static const struct variant_table table = {
    VARIANT_FFT_WIDE, VARIANT_FFT_MIXED, judge, NULL, describe, "numbers of a line x lines"
};

bool fft_lines_is_single(uint32_t n)
{
    struct fft_lines t = { .n = n };
    struct job j = { .t = &t, .variant = VARIANT_FFT_MIXED };

    return share_out(&j) && j.n_passes == 1;
}

/* ---- pipelines ---- */

static uint32_t lines_of(const struct pass *p, const struct job *j)
{
    return j->n_batch * p->before * p->parts;
}

static bool is_wide(const struct job *j)
{
    return j->variant == VARIANT_FFT_WIDE;
}

/* As many lines as there is room for, unless the device would not be busy then. */
static uint32_t lines_together(const struct pass *p, const struct job *j)
{
    uint32_t room = is_wide(j) ? room_of_wide() : room_of_mixed(), log = 0;
    uint32_t least = p->flags & FFT_LINES_IN ? NEIGHBOURS : 1, n = lines_of(p, j);
    uint32_t most = is_wide(j) ? room / p->n : MIN(room / p->n, FFT_MAX_LINES);

    while (2u << log <= most && 1u << log < n)
        log++;
    while (1u << log > least && n >> log < launch_busy_groups())
        log--;
    return log;
}

static bool is_first(const struct pass *p)
{
    return p->before == 1;
}

static bool is_last(const struct pass *p)
{
    return p->parts == 1;
}

static uint32_t flags_of(const struct pass *p, const struct job *j)
{
    const uint32_t in = FFT_CONJ_IN | FFT_CHIRP_IN | FFT_WIDE_IN;
    const uint32_t out = FFT_CONJ_OUT | FFT_CHIRP_OUT | FFT_SPECTRUM_OUT | FFT_WIDE_OUT;
    uint32_t flags = (is_first(p) ? j->t->flags & in : 0) | (is_last(p) ? j->t->flags & out : 0);
    bool is_whole = is_first(p) && is_last(p);

    if (j->t->batch_first)
        return flags | FFT_BATCH_FIRST | FFT_LINES_IN | FFT_LINES_OUT;
    return flags | (is_whole ? 0 : FFT_LINES_IN) | (is_first(p) ? 0 : FFT_LINES_OUT);
}

static uint32_t threads_of(const struct pass *p, const struct job *j)
{
    return is_wide(j) ? (p->n << p->lines) / FFT_PER_LANE : launch_workgroup();
}

static enum err build(struct job *j)
{
    enum kern_id kern = is_wide(j) ? KERN_FFT_WIDE : KERN_FFT_MIXED;
    enum err err = ERR_OK;

    for (int i = 0; i < j->n_passes; i++) {
        struct pass *p = &j->pass[i];
        p->flags = flags_of(p, j);
        p->lines = lines_together(p, j);
        uint32_t spec[] = { threads_of(p, j),
                            1,
                            1,
                            is_first(p) ? j->t->load : FFT_LOAD_COMPLEX,
                            is_last(p) ? j->t->store : FFT_STORE_COMPLEX,
                            p->flags,
                            is_wide(j) ? padded(p->n << p->lines) : room_of_mixed() };
        TRY(kern_pipe(&p->pipe, kern, -1, spec, ARRAY_LEN(spec)));
    }
out:
    return err;
}

/* The passes with their pipelines, before anything is encoded. */
static enum err choose(struct job *j)
{
    int64_t sizes[VARIANT_SIZES] = { j->t->n, j->n_batch };
    struct vk_kernel k;
    enum err err;

    do {
        TRY(variant_pick(&k, &table, j, sizes));
        err = build(j);
    } while (err && variant_gives_way(j->variant, err));
out:
    return err;
}

/* ---- dispatches ---- */

static uint32_t radices_of(const struct pass *p, const struct job *j)
{
    uint32_t list[FFT_FACTORS], packed = 0;
    int n = 0;

    if (is_wide(j)) {
        for (uint32_t log = launch_log2(p->n); log; log -= list[n++])
            list[n] = MIN(log, 4);
    } else {
        n = fft_factors(list, p->n, radices);
    }
    for (int i = 0; i < n; i++)
        packed |= list[i] << 4 * i;
    return packed;
}

static enum err set_lines(struct fft_args *a, const struct job *j, const struct fft_place *from,
                          const struct fft_place *to)
{
    const struct fft_lines *t = j->t;
    const int64_t *strides[] = { from->strides, to->strides };
    struct walk_args walks[2];
    struct nest nest;

    a->src_step = from->strides[t->axis];
    a->dst_step = to->strides[t->axis];
    shp_collapse(&nest, &t->rest, strides, 2);
    if (nest.ndim > 1) {
        for (int o = SRC; o <= DST; o++)
            launch_walk(&walks[o], nest.dim, nest.stride[o], nest.ndim);
        return vk_enc_args(t->e, &a->walks, walks, sizeof walks);
    }
    a->src_batch = nest.ndim ? nest.stride[SRC][0] : 0;
    a->dst_batch = nest.ndim ? nest.stride[DST][0] : 0;
    return ERR_OK;
}

static enum err run_pass(const struct job *j, const struct pass *p, const struct fft_place *from,
                         struct fft_place *to)
{
    const struct fft_lines *t = j->t;
    struct vk_kernel kernel = { p->pipe, j->variant };
    uint32_t groups = (uint32_t)ceil_div(lines_of(p, j), (int64_t)1 << p->lines);
    struct fft_args a = { .n = p->n,
                          .radices = radices_of(p, j),
                          .before = p->before,
                          .parts = p->parts,
                          .n_lines = lines_of(p, j),
                          .n_batch = j->n_batch,
                          .lines = p->lines,
                          .count = t->count,
                          .limit = is_last(p) ? t->limit : UINT32_MAX,
                          .scale = is_last(p) ? t->scale : 1 };
    enum err err;

    TRY(set_lines(&a, j, from, to));
    if (!is_first(p) || t->load != FFT_LOAD_CHIRP)
        TRY(fft_place_read(&a.src, t->e, from));
    if (t->table)
        TRY(fft_place_read(&a.table, t->e, t->table));
    if (t->spectrum)
        TRY(fft_place_read(&a.spectrum, t->e, t->spectrum));
    TRY(fft_place_write(&a.dst, t->e, to));
    err = vk_enc_dispatch(t->e, kernel, &a, sizeof a, launch_grid(groups));
out:
    return err;
}

enum err fft_lines_run(const struct fft_lines *t)
{
    struct job j = { .t = t, .n_batch = (uint32_t)shp_size(&t->rest) };
    struct fft_place between[2];
    enum err err;

    TRY(choose(&j));
    for (int i = 0; i < j.n_passes; i++) {
        bool is_end = i == j.n_passes - 1;
        between[i % 2] = fft_lines_scratch(t, t->n);
        TRY(run_pass(&j, &j.pass[i], i ? &between[!(i % 2)] : t->from,
                     is_end ? t->to : &between[i % 2]));
    }
out:
    return err;
}
