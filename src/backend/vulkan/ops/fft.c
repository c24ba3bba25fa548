/* Fourier transforms: one axis after the other. Lengths with large prime factors are convolutions
 * with a chirp (L. Bluestein); an even number of real numbers is transformed as half as many
 * complex ones. */
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/fft_lines.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"

/* Kernels count eighths of a turn with 32 bits; a convolution takes up to four times as many. */
#define MOST (1 << 27)

/* A transform along one axis. */
struct job {
    struct vk_enc *e;
    struct fft_axis axis;
    bool inverse;
    struct shp rest;
    struct fft_place from, to;
};

static bool is_packed(const struct job *j)
{
    return j->axis.kind != FFT_COMPLEX && j->axis.n % 2 == 0;
}

/* Complex numbers that are transformed. */
static uint32_t length_of(const struct job *j)
{
    return (uint32_t)(is_packed(j) ? j->axis.n / 2 : j->axis.n);
}

static bool batch_first(const struct job *j)
{
    return j->to.strides[j->axis.axis] != 1 && shp_size(&j->rest) > 1;
}

/* Pairs of real numbers are complex ones. */
static bool has_wide_pairs(const struct job *j, const struct fft_place *p)
{
    bool is_wide = p->a && p->strides[j->axis.axis] == 1 && p->addr % 8 == 0;

    for (int i = 0; i < j->rest.ndim; i++)
        is_wide &= j->rest.d[i] == 1 || p->strides[i] % 2 == 0;
    return is_wide;
}

/* ---- what is loaded and stored ---- */

static struct fft_lines lines_of(struct job *j)
{
    static const uint32_t loads[][2] = { { FFT_LOAD_COMPLEX, FFT_LOAD_COMPLEX },
                                         { FFT_LOAD_REAL, FFT_LOAD_PAIRS },
                                         { FFT_LOAD_MIRRORED, FFT_LOAD_HALVED } };
    static const uint32_t stores[][2] = { { FFT_STORE_COMPLEX, FFT_STORE_COMPLEX },
                                          { FFT_STORE_COMPLEX, FFT_STORE_HALF },
                                          { FFT_STORE_REAL, FFT_STORE_PAIRS } };
    uint32_t n = length_of(j), half = (uint32_t)(j->axis.n / 2 + 1);
    struct fft_lines t = { .e = j->e,
                           .rest = j->rest,
                           .axis = j->axis.axis,
                           .batch_first = batch_first(j),
                           .n = n,
                           .load = loads[j->axis.kind][is_packed(j)],
                           .store = stores[j->axis.kind][is_packed(j)],
                           .flags = j->inverse ? FFT_CONJ_IN | FFT_CONJ_OUT : 0,
                           .count = n,
                           .limit = j->axis.kind == FFT_TO_HALF ? half : n,
                           .scale = j->inverse ? (float)(1 / (double)j->axis.n) : 1,
                           .from = &j->from,
                           .to = &j->to };

    if (t.load == FFT_LOAD_PAIRS && has_wide_pairs(j, &j->from))
        t.flags |= FFT_WIDE_IN;
    if (t.store == FFT_STORE_PAIRS && has_wide_pairs(j, &j->to))
        t.flags |= FFT_WIDE_OUT;
    return t;
}

/* ---- any length ---- */

static enum err make_chirp(struct fft_place *chirp, struct vk_enc *e, uint32_t n)
{
    struct fft_chirp_args a = { .n = n };
    uint32_t workgroup = launch_loose_workgroup(n);
    struct vk_kernel kernel = { NULL, VARIANT_COUNT };
    enum err err;

    *chirp = (struct fft_place){ .bytes = 8 * (size_t)n };
    TRY(kern_pipe(&kernel.pipe, KERN_FFT_CHIRP, -1, (uint32_t[]){ workgroup, 1, 1 }, 3));
    TRY(fft_place_write(&a.table, e, chirp));
    err = vk_enc_dispatch(e, kernel, &a, sizeof a, launch_grid((uint64_t)ceil_div(n, workgroup)));
out:
    return err;
}

/* The spectrum, over `length`, of what n numbers are convolved with. */
static enum err make_spectrum(struct fft_place *spectrum, const struct fft_place *chirp,
                              struct vk_enc *e, uint32_t n, uint32_t length)
{
    struct fft_lines t = { .e = e,
                           .rest = { .ndim = 1, .d = { 1 } },
                           .n = length,
                           .load = FFT_LOAD_CHIRP,
                           .count = n,
                           .limit = length,
                           .scale = 1,
                           .from = chirp,
                           .to = spectrum,
                           .table = chirp };

    *spectrum = fft_lines_scratch(&t, length);
    return fft_lines_run(&t);
}

/* Numbers times the chirp, convolved with its conjugate, times the chirp again. */
static enum err run_chirp(const struct fft_lines *t)
{
    uint32_t length = 1u << launch_log2(2 * (uint64_t)t->n - 1);
    struct fft_place chirp, spectrum, between = fft_lines_scratch(t, length);
    struct fft_lines there = *t, back = *t;
    enum err err;

    TRY(make_chirp(&chirp, t->e, t->n));
    TRY(make_spectrum(&spectrum, &chirp, t->e, t->n, length));
    there.n = back.n = there.limit = length;
    there.table = back.table = &chirp;
    there.spectrum = &spectrum;
    there.store = FFT_STORE_COMPLEX;
    there.flags = (t->flags & (FFT_CONJ_IN | FFT_WIDE_IN)) | FFT_CHIRP_IN | FFT_SPECTRUM_OUT;
    there.scale = 1;
    there.to = &between;
    back.from = &between;
    back.load = FFT_LOAD_COMPLEX;
    back.flags = (t->flags & (FFT_CONJ_OUT | FFT_WIDE_OUT)) | FFT_CHIRP_OUT;
    back.scale = t->scale / (float)length;
    TRY(fft_lines_run(&there));
    err = fft_lines_run(&back);
out:
    return err;
}

static enum err run_lines(const struct fft_lines *t)
{
    return fft_lines_fit(t->n) ? fft_lines_run(t) : run_chirp(t);
}

/* ---- the spectrum of pairs, if no workgroup has all of it ---- */

static enum err encode_half(struct job *j, const struct fft_place *pairs)
{
    const int64_t *strides[] = { j->to.strides };
    uint32_t n = length_of(j);
    bool is_first = batch_first(j);
    struct fft_half_args a = { .src_step = pairs->strides[j->axis.axis],
                               .src_batch = is_first ? 1 : n,
                               .dst_step = j->to.strides[j->axis.axis],
                               .n_lines = shp_size(&j->rest),
                               .n = n,
                               .batch_first = is_first };
    uint64_t total = a.n_lines * ((uint64_t)n + 1);
    uint32_t workgroup = launch_loose_workgroup(total);
    struct vk_kernel kernel = { NULL, VARIANT_COUNT };
    struct walk_args walk;
    struct nest nest;
    enum err err;

    TRY(kern_pipe(&kernel.pipe, KERN_FFT_HALF, -1, (uint32_t[]){ workgroup, 1, 1 }, 3));
    shp_collapse(&nest, &j->rest, strides, 1);
    a.dst_batch = nest.ndim ? nest.stride[0][0] : 0;
    if (nest.ndim > 1) {
        launch_walk(&walk, nest.dim, nest.stride[0], nest.ndim);
        TRY(vk_enc_args(j->e, &a.walk, &walk, sizeof walk));
    }
    TRY(fft_place_read(&a.src, j->e, pairs));
    TRY(fft_place_write(&a.dst, j->e, &j->to));
    err = vk_enc_dispatch(j->e, kernel, &a, sizeof a,
                          launch_grid((uint64_t)ceil_div((int64_t)total, workgroup)));
out:
    return err;
}

static enum err run_axis(struct job *j)
{
    struct fft_lines t = lines_of(j);
    struct fft_place pairs;
    enum err err;

    if (t.store != FFT_STORE_HALF || (fft_lines_fit(t.n) && fft_lines_is_single(t.n)))
        return run_lines(&t);
    pairs = fft_lines_scratch(&t, t.n);
    t.store = FFT_STORE_COMPLEX;
    t.limit = t.n;
    t.to = &pairs;
    TRY(run_lines(&t));
    err = encode_half(j, &pairs);
out:
    return err;
}

/* ---- the op ---- */

static enum err check(const struct fft_plan *plan, const struct exec *x)
{
    for (int i = 0; i < plan->n; i++)
        if (plan->d[i].n > MOST || MAX(x->in[0]->size, x->out[0]->size) > UINT32_MAX)
            return err_set(ERR_UNSUPPORTED,
                           "[fft] Transforms of %zu numbers in arrays of %zu are too large for the "
                           "GPU.",
                           plan->d[i].n, MAX(x->in[0]->size, x->out[0]->size));
    return ERR_OK;
}

static enum err place_of(struct fft_place *p, struct vk_enc *e, const struct arr *a, bool is_read)
{
    *p = (struct fft_place){ .a = a };
    for (int i = 0; i < a->ndim; i++)
        p->strides[i] = a->strides[i];
    return is_read ? vk_enc_read(e, &p->addr, a) : vk_enc_write(e, &p->addr, a);
}

static void set_rest(struct job *j, const struct arr *a)
{
    arr_shape(&j->rest, a);
    j->rest.d[j->axis.axis] = 1;
}

/* What is complex until the last axis is in scratch memory. */
static enum err encode(const struct exec *x, const struct fft_plan *plan, struct vk_enc *e)
{
    bool is_back = plan->d[plan->n - 1].kind == FFT_FROM_HALF;
    struct job j = { .e = e, .inverse = plan->inverse };
    struct fft_place from, to;
    enum err err;

    TRY(place_of(&from, e, x->in[0], true));
    TRY(place_of(&to, e, x->out[0], false));
    vk_enc_drop(e); /* every pass says so itself */
    for (int i = 0; i < plan->n; i++) {
        j.axis = plan->d[i];
        set_rest(&j, i && !is_back ? x->out[0] : x->in[0]);
        j.from = from;
        j.to = to;
        if (is_back && i < plan->n - 1) {
            struct fft_lines t = { .rest = j.rest, .axis = j.axis.axis };
            j.to = fft_lines_scratch(&t, (uint32_t)j.axis.n);
        }
        TRY(run_axis(&j));
        from = j.to;
    }
out:
    return err;
}

enum err vk_fft(const struct exec *x)
{
    struct fft_plan plan;
    struct vk_enc *e;
    enum err err;

    fft_plan_init(&plan, x);
    TRY(check(&plan, x));
    TRY(arr_alloc(x->out[0], x->strm->be));
    if (!x->out[0]->size)
        goto out;
    TRY(vk_enc_get(&e, x->strm));
    err = encode(x, &plan, e);
out:
    return err;
}
