/* Convolutions: the input is unfolded into rows, block by block, for OpenBLAS; one channel per
 * group is summed up where it lies. Half types are float32 from the inputs' copies to the result.
 */
#include "backend/common/conv_plan.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"

#include <cblas.h>
#include <complex.h>
#include <stdatomic.h>

/* Elements of a block of the unfolded input, and the fewest rows of one. */
#define BLOCK_ELEMENTS (1 << 20)
#define BLOCK_ROWS_MIN 16
/* Elements that are worth a thread. */
#define GRAIN (1 << 14)
/* Products below this many multiplications run on one thread each, several at a time. */
#define SMALL_PRODUCT (1 << 18)

struct task {
    struct conv_plan plan;
    struct cpu_src in[2];
    char *out;
    uint8_t type, wide_type; /* enum dtype; wide_type is that of the inputs and of sums */
};

struct job {
    const struct task *t;
    const char *x, *w;
    size_t wide;         /* bytes of an element */
    int64_t first, rows; /* of the block */
    char *unfolded;      /* [group][row][k] */
    char *sums;          /* [row][group, channel], where they are not the result */
    char *weights;       /* one channel per group: [tap][channel] */
    _Atomic int failed;  /* enum err */
};

/* ---- positions ---- */

/* Where in the input a tap of one axis is; -1: outside, or between its elements. */
static int64_t place_on(const struct conv_axis *a, int64_t out, int64_t tap)
{
    int64_t at = out * a->stride + a->start + tap * a->step;

    if (at < 0 || at % a->dilation)
        return -1;
    at /= a->dilation;
    return at < a->in ? at : -1;
}

/* A row of the unfolded input: the image and the place in the output. */
struct position {
    int64_t image; /* offset of its first element */
    int64_t out[CONV_PLAN_AXES];
};

static struct position position_of(const struct conv_plan *p, int64_t row)
{
    struct position at;

    for (int i = CONV_PLAN_AXES - 1; i >= 0; i--) {
        at.out[i] = row % p->axis[i].out;
        row /= p->axis[i].out;
    }
    at.image = row * p->x_stride;
    return at;
}

/* Walks over the taps of a position, the last axis innermost. */
struct taps {
    int64_t tap[CONV_PLAN_AXES];
    int64_t place[CONV_PLAN_AXES]; /* of the first two axes; -1 as place_on */
};

static void locate(struct taps *t, const struct conv_plan *p, const struct position *at, int from)
{
    for (int i = from; i < CONV_PLAN_AXES; i++)
        t->place[i] = place_on(&p->axis[i], at->out[i], t->tap[i]);
}

static void next_tap(struct taps *t, const struct conv_plan *p, const struct position *at)
{
    int i = CONV_PLAN_AXES - 1;

    for (; i > 0 && ++t->tap[i] == p->axis[i].kernel; i--)
        t->tap[i] = 0;
    if (i == 0)
        t->tap[0]++;
    locate(t, p, at, i);
}

/* Offset of the tap's first channel in elements; false: zeros. */
static bool tap_offset(int64_t *out, const struct taps *t, const struct conv_plan *p,
                       const struct position *at)
{
    *out = at->image;
    for (int i = 0; i < CONV_PLAN_AXES; i++) {
        if (t->place[i] < 0)
            return false;
        *out += t->place[i] * p->axis[i].x_stride;
    }
    return true;
}

/* ---- products ---- */

static void unfold_row(const struct job *j, char *to, int64_t group, int64_t row)
{
    const struct conv_plan *p = &j->t->plan;
    struct position at = position_of(p, row);
    size_t bytes = (size_t)p->c * j->wide;
    struct taps t = { 0 };

    locate(&t, p, &at, 0);
    for (int64_t i = 0; i < p->taps; i++, to += bytes, next_tap(&t, p, &at)) {
        int64_t offset;
        if (tap_offset(&offset, &t, p, &at))
            memcpy(to, j->x + (offset + group * p->c) * (int64_t)j->wide, bytes);
        else
            memset(to, 0, bytes);
    }
}

static void unfold_range(void *arg, size_t begin, size_t end)
{
    const struct job *j = arg;
    const struct conv_plan *p = &j->t->plan;
    size_t bytes = (size_t)p->k * j->wide, rows = (size_t)j->rows;

    for (size_t i = begin; i < end; i++)
        unfold_row(j, j->unfolded + i * bytes, (int64_t)(i / rows), j->first + (int64_t)(i % rows));
}

static char *block_result(const struct job *j)
{
    const struct conv_plan *p = &j->t->plan;

    return j->sums ? j->sums : j->t->out + j->first * p->o * p->groups * (int64_t)j->wide;
}

static void multiply(const struct job *j, int64_t group)
{
    const struct conv_plan *p = &j->t->plan;
    const void *a = j->unfolded + group * j->rows * p->k * (int64_t)j->wide;
    const void *b = j->w + group * p->o * p->k * (int64_t)j->wide;
    void *c = block_result(j) + group * p->o * (int64_t)j->wide;
    blasint m = (blasint)j->rows, n = (blasint)p->o, k = (blasint)p->k;
    blasint ldc = (blasint)(p->o * p->groups);
    static const float one[2] = { 1 }, zero[2] = { 0 };

    if (j->t->wide_type == DT_FLOAT64)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a, k, b, k, 0, c, ldc);
    else if (j->t->wide_type == DT_COMPLEX64)
        cblas_cgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, one, a, k, b, k, zero, c,
                    ldc);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a, k, b, k, 0, c, ldc);
}

static void multiply_range(void *arg, size_t begin, size_t end)
{
    for (size_t group = begin; group < end; group++)
        multiply(arg, (int64_t)group);
}

static void narrow_block(const struct job *j)
{
    const struct conv_plan *p = &j->t->plan;
    int64_t width = p->o * p->groups;

    if (j->sums)
        cpu_narrow(j->t->out + j->first * width * (int64_t)dt_size((enum dtype)j->t->type),
                   (const float *)j->sums, (enum dtype)j->t->type, (size_t)(j->rows * width));
}

static enum err run_products(struct job *j)
{
    const struct conv_plan *p = &j->t->plan;
    int64_t row = MAX(p->k * p->groups, 1);
    int64_t most = MIN(p->m, MAX(BLOCK_ROWS_MIN, BLOCK_ELEMENTS / row));
    size_t work = (size_t)(most * p->o * p->k);

    if (!(j->unfolded = mem_alloc_aligned((size_t)(most * row) * j->wide)))
        return ERR_NO_MEMORY;
    if (j->t->type != j->t->wide_type &&
        !(j->sums = mem_alloc_aligned((size_t)(most * p->o * p->groups) * j->wide)))
        return ERR_NO_MEMORY;
    for (j->first = 0; j->first < p->m; j->first += j->rows) {
        j->rows = MIN(most, p->m - j->first);
        cpu_parallel_for((size_t)(p->groups * j->rows), (size_t)MAX(GRAIN / p->k, 1), unfold_range,
                         j);
        if (work >= SMALL_PRODUCT)
            multiply_range(j, 0, (size_t)p->groups);
        else
            cpu_parallel_for((size_t)p->groups, SMALL_PRODUCT / MAX(work, 1), multiply_range, j);
        narrow_block(j);
    }
    return ERR_OK;
}

/* ---- one channel per group ---- */

/* sums[i] += x[group of i] * w[i] for n output channels, `each` of a group. */
#define ADD_TAP(name, type)                                                                        \
    static void name(void *sums, const void *x, const void *w, int64_t n, int64_t each)            \
    {                                                                                              \
        type *restrict s = sums;                                                                   \
        const type *restrict a = x, *restrict b = w;                                               \
        if (each == 1) {                                                                           \
            for (int64_t i = 0; i < n; i++)                                                        \
                s[i] += a[i] * b[i];                                                               \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            s[i] += a[i / each] * b[i];                                                            \
    }
ADD_TAP(add_tap_f32, float)
ADD_TAP(add_tap_f64, double)
ADD_TAP(add_tap_c64, float complex)

typedef void (*add_tap_fn)(void *sums, const void *x, const void *w, int64_t n, int64_t each);

static add_tap_fn add_tap_of(uint8_t type)
{
    if (type == DT_FLOAT64)
        return add_tap_f64;
    return type == DT_COMPLEX64 ? add_tap_c64 : add_tap_f32;
}

static void sum_row(const struct job *j, char *sums, int64_t row)
{
    const struct conv_plan *p = &j->t->plan;
    struct position at = position_of(p, row);
    int64_t width = p->o * p->groups, offset;
    add_tap_fn add_tap = add_tap_of(j->t->wide_type);
    struct taps t = { 0 };

    memset(sums, 0, (size_t)width * j->wide);
    locate(&t, p, &at, 0);
    for (int64_t i = 0; i < p->taps; i++, next_tap(&t, p, &at))
        if (tap_offset(&offset, &t, p, &at))
            add_tap(sums, j->x + offset * (int64_t)j->wide,
                    j->weights + i * width * (int64_t)j->wide, width, p->o);
}

static enum err sum_rows(const struct job *j, size_t begin, size_t end)
{
    const struct conv_plan *p = &j->t->plan;
    size_t width = (size_t)(p->o * p->groups);
    bool direct = j->t->type == j->t->wide_type;
    char *out = j->t->out + begin * width * dt_size((enum dtype)j->t->type);
    char *sums = direct ? out : mem_alloc_aligned(width * j->wide);

    if (!sums)
        return ERR_NO_MEMORY;
    for (size_t row = begin; row < end; row++) {
        sum_row(j, sums, (int64_t)row);
        if (direct)
            sums += width * j->wide;
        else
            cpu_narrow(out + (row - begin) * width * dt_size((enum dtype)j->t->type),
                       (const float *)sums, (enum dtype)j->t->type, width);
    }
    if (!direct)
        mem_free(sums);
    return ERR_OK;
}

static void sum_range(void *arg, size_t begin, size_t end)
{
    struct job *j = arg;
    enum err err = sum_rows(j, begin, end);

    if (err != ERR_OK)
        atomic_store(&j->failed, (int)err);
}

static enum err run_depthwise(struct job *j)
{
    const struct conv_plan *p = &j->t->plan;
    int64_t width = p->o * p->groups;
    size_t n = (size_t)(width * p->taps);

    if (!(j->weights = mem_alloc_aligned(n * j->wide)))
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        size_t tap = i / (size_t)width, channel = i % (size_t)width;
        memcpy(j->weights + i * j->wide, j->w + (channel * (size_t)p->taps + tap) * j->wide,
               j->wide);
    }
    cpu_parallel_for((size_t)p->m, (size_t)MAX(GRAIN / (int64_t)n, 1), sum_range, j);
    return (enum err)atomic_load(&j->failed);
}

/* ---- */

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct job j = { .t = t, .wide = dt_size((enum dtype)t->wide_type) };
    size_t size = (size_t)(t->plan.m * t->plan.o * t->plan.groups);
    enum err err = ERR_OK;

    if (!t->plan.k) {
        memset(t->out, 0, size * dt_size((enum dtype)t->type));
        goto out;
    }
    cpu_use_blas();
    TRY(cpu_src_host(&j.x, &t->in[0]));
    TRY(cpu_src_host(&j.w, &t->in[1]));
    err = t->plan.c == 1 && t->plan.groups > 1 ? run_depthwise(&j) : run_products(&j);
    if (err == ERR_NO_MEMORY)
        err_set(err, "[conv] Out of memory.");
out:
    mem_free(j.unfolded);
    mem_free(j.sums);
    mem_free(j.weights);
    return err;
}

enum err cpu_conv(const struct exec *x)
{
    struct arr *out = x->out[0];
    enum dtype type = (enum dtype)out->dtype, wide = cpu_is_half(type) ? DT_FLOAT32 : type;
    struct task t = { .type = (uint8_t)type, .wide_type = (uint8_t)wide };
    struct conv_inputs inputs = { 0 };
    enum err err;

    TRY(arr_alloc(out, &be_cpu));
    if (!out->size)
        goto out;
    TRY(conv_inputs_init(&inputs, x, wide));
    conv_plan_init(&t.plan, x, &inputs);
    t.out = cpu_dst(out);
    for (int i = 0; i < 2; i++)
        t.in[i] = cpu_src(inputs.in[i]);
    TRY(cpu_enqueue(x->strm, run_task, &t, sizeof t));
out:
    return conv_inputs_end(&inputs, x->strm, err);
}
