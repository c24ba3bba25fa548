/* Convolutions: products of the unfolded input with the weights, whose tiles are those of matrix
 * products, and a kernel without tiles for few channels. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/common/conv_plan.h"
#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/matmul.h"
#include "backend/vulkan/rt/encoder.h"
#include "base/gate.h"

/* As in kernels/unfold.glsl and conv_direct.comp, besides those of matmul.h. */
enum {
    FLAG_DILATED = 128,
    FLAG_ONE_AXIS = 256,
    FLAG_TWO_AXES = 512,
    FLAG_ONE_CHANNEL = 1024,
    FLAG_OWN_CHANNELS = 2048,
};

#define F32 MM_BIT(DT_FLOAT32)
#define F16 MM_BIT(DT_FLOAT16)
#define BF16 MM_BIT(DT_BFLOAT16)
#define C64 MM_BIT(DT_COMPLEX64)

#define REDUCE_THREADS 256
/* Tiles are for more channels than these, or for long sums. */
#define FEW_INPUTS 8
#define FEW_OUTPUTS 16
#define LONG_SUM 1024
/* The direct kernel: lanes along channels, positions of an invocation, weights at once; and how
 * many invocations a compute unit should have. */
#define DIRECT_LANES 16
#define DIRECT_POSITIONS 4
#define DIRECT_STEP 16
#define DIRECT_BUSY 1024

enum { INPUT, WEIGHTS };

struct job {
    const struct exec *x;
    enum dtype dtype;
    struct conv_inputs inputs;
    struct conv_plan plan;
    struct mm_problem q;
    struct mm_choice choice;
    bool is_direct; /* the choice is the kernel without tiles */
};

/* ---- variants ---- */

#define FIRST VARIANT_CONV_DIRECT
#define LAST VARIANT_CONV_TILED_32X32_K8
#define ROW(name, ...) [VARIANT_CONV_##name - FIRST] = { VARIANT_CONV_##name, __VA_ARGS__ }

static const struct mm_variant variants[LAST - FIRST + 1] = {
    ROW(COOP_128X128, MM_COOP, { 2, 4, 4, 2, 4, 1 }, F16 | BF16, .fill = 50),
    ROW(COOP_64X64, MM_COOP, { 2, 2, 2, 2, 4, 1 }, F16 | BF16, .fill = 50),
    ROW(COOP_32X64, MM_COOP, { 1, 2, 2, 2, 4, 1 }, F16 | BF16, .last = true),
    ROW(TILED_128X128, MM_TILED, { 128, 128, 16, 16, 8 }, F32 | F16 | BF16, .fill = 100),
    ROW(TILED_64X64, MM_TILED, { 64, 64, 16, 8, 4 }, F32 | F16 | BF16, .fill = 100),
    ROW(TILED_32X32, MM_TILED, { 32, 32, 16, 4, 4 }, F32 | F16 | BF16, .last = true),
    ROW(TILED_32X32_K8, MM_TILED, { 32, 32, 8, 4, 4 }, C64, .last = true),
};

/* `width` neighbours out of lines of so many, or of those along k, can be read at once. */
static bool lines_are_wide(const struct job *j, int i, int64_t length, int64_t width)
{
    const struct arr *a = j->inputs.in[i];
    int64_t item = (int64_t)dt_size(j->dtype), bytes = MIN(16, width * item);
    int64_t strides = 0;

    if (i == INPUT) {
        strides = llabs(j->plan.x_stride);
        for (int d = 0; d < CONV_PLAN_AXES; d++)
            strides |= llabs(j->plan.axis[d].x_stride);
    }
    return length % width == 0 && a->offset % bytes == 0 && strides * item % bytes == 0;
}

static bool is_wide(const struct job *j, int i, int64_t width)
{
    return lines_are_wide(j, i, i == INPUT ? j->plan.c : j->plan.k, width);
}

/* The results of all groups: one problem without batch, as the direct kernel sees it. */
static struct mm_problem whole_problem(const struct job *j)
{
    struct mm_problem q = j->q;

    q.n *= q.n_batch;
    q.n_batch = 1;
    return q;
}

static void direct_choice(struct mm_choice *c, const struct mm_problem *q)
{
    int64_t quads = ceil_div(q->n, 4);
    uint32_t threads = launch_workgroup();
    uint32_t lanes = MIN(MIN(1u << launch_log2((uint64_t)quads), DIRECT_LANES), threads);
    int64_t tiles_n = ceil_div(quads, lanes), rows = threads / lanes;
    uint32_t positions = DIRECT_POSITIONS;

    if (ceil_div(q->m, rows * positions) * tiles_n < (int64_t)launch_busy_groups())
        positions = 1;
    *c = (struct mm_choice){ .variant = VARIANT_CONV_DIRECT,
                             .kern = KERN_CONV_DIRECT,
                             .tile = { lanes, positions, DIRECT_STEP },
                             .n_tile = 3,
                             .threads = threads,
                             .groups = ceil_div(q->m, rows * positions) * tiles_n,
                             .step = DIRECT_STEP };
    mm_split(c, q, DIRECT_BUSY);
}

static enum variant_reason judge_direct(struct job *j)
{
    const struct mm_problem *q = &j->q;
    struct mm_problem whole = whole_problem(j);

    if (!kern_is_usable(KERN_CONV_DIRECT, q->dtype))
        return q->dtype == DT_COMPLEX64 ? VARIANT_DTYPE : VARIANT_DEVICE;
    if (q->n >= FEW_OUTPUTS && (j->plan.c >= FEW_INPUTS || q->k > LONG_SUM))
        return VARIANT_SIZE;
    direct_choice(&j->choice, &whole);
    return VARIANT_FITS;
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    struct job *j = job;

    j->is_direct = id == VARIANT_CONV_DIRECT;
    return j->is_direct ? judge_direct(j) : mm_judge(&j->choice, &variants[id - FIRST], &j->q);
}

static uint32_t flags_of(const struct job *j)
{
    const struct conv_axis *a = j->plan.axis;
    int64_t width = j->choice.kernel == MM_COOP && !j->is_direct ? 8 : 4;
    uint32_t flags = 0;

    for (int i = 0; i < CONV_PLAN_AXES; i++)
        flags |= a[i].dilation > 1 ? FLAG_DILATED : 0;
    if (a[0].out == 1 && a[0].kernel == 1)
        flags |= a[1].out == 1 && a[1].kernel == 1 ? FLAG_ONE_AXIS : FLAG_TWO_AXES;
    if (j->is_direct && j->plan.o % 4 == 0)
        return flags | FLAG_ONE_CHANNEL;
    if (j->is_direct) /* neighbours, though of different groups */
        return flags |
               (j->plan.o == 1 && j->plan.c == 1 && lines_are_wide(j, INPUT, j->plan.groups, 4)
                    ? FLAG_OWN_CHANNELS
                    : 0);
    return flags | FLAG_A_ALONG_K | FLAG_B_ALONG_K | (is_wide(j, INPUT, width) ? FLAG_A_WIDE : 0) |
           (is_wide(j, WEIGHTS, width) ? FLAG_B_WIDE : 0) |
           (j->plan.k % j->choice.step ? FLAG_K_EDGE : 0);
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    const struct job *j = job;
    const struct mm_choice *c = &j->choice;
    uint32_t spec[VK_MAX_SPEC] = { c->threads, 1, 1 };
    int n = 3;

    if (!j->is_direct && c->kernel == MM_COOP) {
        spec[n++] = vk_limits_get()->subgroup_size;
        spec[n++] = vk_limits_get()->coopmat_edge;
    }
    for (int i = 0; i < c->n_tile; i++)
        spec[n++] = c->tile[i];
    spec[n++] = flags_of(j);
    spec[n++] = c->splits > 1 ? EPILOGUE_PARTIAL : EPILOGUE_PLAIN;
    (void)id;
    return kern_pipe(pipe, c->kern, (int)j->dtype, spec, n);
}

static void describe(char *text, size_t size, const void *data)
{
    const struct job *j = data;

    snprintf(text, size, "%s, %lld groups of %lld x %lld x %lld, %lld taps%s", dt_name(j->dtype),
             (long long)j->plan.groups, (long long)j->q.m, (long long)j->q.n, (long long)j->q.k,
             (long long)j->plan.taps, j->q.aligned[INPUT] ? ", aligned" : "");
}

static const struct variant_table table = { FIRST, LAST,     judge,
                                            build, describe, "m x n x k x groups" };

/* ---- arguments ---- */

/* The shift is the least with 2^shift >= d, and mul what then remains of 2^(32 + shift) / d. */
static struct divisor divisor_of(int64_t d)
{
    d = MAX(d, 1); /* nothing is divided by a size of 0 */
    uint32_t shift = launch_log2((uint64_t)d);
    uint64_t rest = ((uint64_t)1 << shift) - (uint64_t)d;

    return (struct divisor){ (uint32_t)d, (uint32_t)((rest << 32) / (uint64_t)d + 1), shift };
}

static struct unfold_args unfold_args(const struct job *j)
{
    const struct conv_plan *p = &j->plan;
    int64_t item = (int64_t)dt_size(j->dtype);
    struct unfold_args u = { .image_stride = p->x_stride * item, .c = divisor_of(p->c) };

    for (int i = 0; i < CONV_PLAN_AXES; i++) {
        const struct conv_axis *a = &p->axis[i];
        u.x_stride[i] = a->x_stride * item;
        u.size[i] = (int32_t)a->in;
        u.stride[i] = (int32_t)a->stride;
        u.start[i] = (int32_t)a->start;
        u.step[i] = (int32_t)a->step;
        u.result[i] = divisor_of(a->out);
        u.kernel[i] = divisor_of(a->kernel);
        u.dilation[i] = divisor_of(a->dilation);
    }
    return u;
}

/* Kernels count positions, taps and places with 31 bits. */
static bool fits_kernels(const struct conv_plan *p)
{
    bool fits = p->m <= INT32_MAX && p->k <= INT32_MAX && p->o * p->groups <= INT32_MAX;

    for (int i = 0; i < CONV_PLAN_AXES; i++) {
        const struct conv_axis *a = &p->axis[i];
        int64_t last = a->out * a->stride + a->kernel * llabs(a->step);
        fits &= llabs(a->start) <= INT32_MAX / 2 && last <= INT32_MAX / 2;
    }
    return fits;
}

/* ---- dispatches ---- */

/* Adds up the parts of a split k. */
static enum err run_reduce(const struct job *j, struct vk_enc *e, uint64_t parts, size_t size)
{
    struct splitk_args args = { .parts = parts,
                                .size = j->x->out[0]->size,
                                .m = (uint32_t)j->plan.m,
                                .n = (uint32_t)(j->plan.o * j->plan.groups),
                                .splits = j->choice.splits,
                                .alpha = 1 };
    uint32_t spec[] = { REDUCE_THREADS, 1, 1, 0, EPILOGUE_PLAIN };
    const struct vk_pipe *pipe;
    enum err err;

    TRY(kern_pipe(&pipe, KERN_SPLITK_REDUCE, (int)j->dtype, spec, ARRAY_LEN(spec)));
    vk_enc_scratch_read(e, parts, size);
    TRY(vk_enc_write(e, &args.dst, j->x->out[0]));
    TRY(vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_COUNT }, &args, sizeof args,
                        launch_grid((args.size + 4 * REDUCE_THREADS - 1) / (4 * REDUCE_THREADS))));
out:
    return err;
}

static enum err run(struct job *j)
{
    const struct conv_plan *p = &j->plan;
    const struct mm_choice *c = &j->choice;
    struct unfold_args unfold = unfold_args(j);
    size_t parts = j->x->out[0]->size * (j->dtype == DT_COMPLEX64 ? 8 : 4);
    struct vk_kernel kernel;
    struct vk_enc *e;
    enum err err;

    TRY(variant_pick(&kernel, &table, j, (int64_t[VARIANT_SIZES]){ p->m, p->o, p->k, p->groups }));
    struct conv_args args = { .m = (uint32_t)p->m,
                              .n = (uint32_t)p->o,
                              .k = (uint32_t)p->k,
                              .groups = (uint32_t)p->groups,
                              .splits = c->splits,
                              .k_split = c->k_split,
                              .band = BAND };
    if (c->groups * c->splits > UINT32_MAX)
        return err_set(ERR_UNSUPPORTED, "[conv] A convolution of %lld workgroups is too large.",
                       (long long)(c->groups * c->splits));
    TRY(vk_enc_get(&e, j->x->strm));
    TRY(vk_enc_args(e, &args.unfold, &unfold, sizeof unfold));
    for (int i = 0; p->k && i < 2; i++)
        TRY(vk_enc_read(e, i == INPUT ? &args.a : &args.b, j->inputs.in[i]));
    parts *= c->splits;
    if (c->splits > 1)
        TRY(vk_enc_scratch(e, &args.dst, parts));
    else
        TRY(vk_enc_write(e, &args.dst, j->x->out[0]));
    TRY(vk_enc_dispatch(e, kernel, &args, sizeof args,
                        launch_grid((uint64_t)(c->groups * c->splits))));
    if (c->splits > 1)
        TRY(run_reduce(j, e, args.dst, parts));
out:
    return err;
}

static void problem_init(struct job *j)
{
    const struct conv_plan *p = &j->plan;
    int64_t chunk = 16 / (int64_t)dt_size(j->dtype);

    j->q = (struct mm_problem){ .dtype = j->dtype,
                                .m = p->m,
                                .n = p->o,
                                .k = p->k,
                                .n_batch = p->groups,
                                .along_k = { true, true },
                                .ld = { 0, p->k },
                                .aligned = { is_wide(j, INPUT, chunk), is_wide(j, WEIGHTS, chunk) },
                                .is_fixed = true,
                                .is_unfolded = true };
}

enum err vk_conv(const struct exec *x)
{
    struct job j = { .x = x, .dtype = (enum dtype)x->out[0]->dtype };
    enum err err;

    if (!kern_is_usable(KERN_CONV_TILED, (int)j.dtype))
        return err_set(ERR_UNSUPPORTED, "[conv] no Vulkan kernel for %s", dt_name(j.dtype));
    TRY(arr_alloc(x->out[0], x->strm->be));
    if (!x->out[0]->size)
        goto out;
    TRY(conv_inputs_init(&j.inputs, x, j.dtype));
    conv_plan_init(&j.plan, x, &j.inputs);
    if (!fits_kernels(&j.plan))
        TRY(err_set(ERR_UNSUPPORTED,
                    "[conv] A convolution of %lld positions and %lld products each is too large "
                    "for the GPU.",
                    (long long)j.plan.m, (long long)j.plan.k));
    problem_init(&j);
    TRY(run(&j));
out:
    return conv_inputs_end(&j.inputs, x->strm, err);
}
