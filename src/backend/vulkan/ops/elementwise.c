#include "backend/vulkan/ops/elementwise.h"

#include <stdio.h>

#include "backend/common/elementwise.h"
#include "backend/vulkan/jit/elementwise_emit.h"
#include "backend/vulkan/jit/elementwise_fn.h"
#include "backend/vulkan/jit/elementwise_pipe.h"
#include "backend/vulkan/ops/elementwise_tile.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/device.h"
#include "base/gate.h"
#include "graph/dtype.h"

/* From this many elements on bandwidth counts, and a thread moves more bytes per operand. Measured
 * on an H200: 4 bytes reach 3.3 TB/s, 16 reach 4.2. Below, more threads hide latency better. */
#define LARGE_FROM (1u << 18)
/* Bytes of one access, and of all accesses of a thread to one operand. Software devices go over the
 * lanes of each access one by one: 8 bytes, which are one number, double their speed. */
#define ACCESS_BYTES 16
#define SOFTWARE_ACCESS_BYTES 8
#define THREAD_BYTES 16
#define SOFTWARE_THREAD_BYTES 32
/* Threads of a workgroup. Small arrays leave most of one idle, which software devices feel. */
#define THREADS_LARGE 256
#define THREADS_SMALL 128
/* A program whose inlined code is longer than this (words of SPIR-V) is bound by arithmetic:
 * more copies of it only make the pipeline slow to build. */
#define MAX_CODE_WORDS 20000

/* ---- the class of a job ---- */

static int n_operands(const struct elem_job *job)
{
    return job->program->n_in + job->program->n_out;
}

static bool is_arange(const struct elem_program *f)
{
    return f->n_ins == 1 && f->ins[0].op == OP_ARANGE;
}

static uint32_t operand_size(const struct elem_job *job, int o)
{
    const struct elem_program *f = job->program;

    return (uint32_t)dt_size(elem_program_dtype(f, o < f->n_in ? o : f->out[o - f->n_in]));
}

static bool is_once(const struct elem_job *job, int o)
{
    return o < job->program->n_in && job->once_in >> o & 1;
}

/* Row of the nest for an operand; NULL if it is walked by the number of the group. */
static const int64_t *strides_of(const struct elem_job *job, int o)
{
    bool is_input = o < job->program->n_in;

    if (!job->nest || is_once(job, o) || (!is_input && !job->out_strided))
        return NULL;
    return job->nest->stride[o];
}

static uint32_t low_bit(uint64_t v)
{
    return (uint32_t)MIN(v & -v, 16);
}

/* Can operand o deliver `lanes` neighbours at once, or the same element for all of them? */
static bool fits_lanes(const struct elem_job *job, int o, uint32_t lanes)
{
    const int64_t *stride = strides_of(job, o);
    int last = job->nest ? job->nest->ndim - 1 : 0;

    if (is_once(job, o))
        return true;
    if (stride && stride[last] == 0)
        return o < job->program->n_in;
    if (job->addr[o] % MIN(operand_size(job, o) * lanes, 16) != 0 || (stride && stride[last] != 1))
        return false;
    for (int d = 0; stride && d < last; d++)
        if (stride[d] % lanes != 0)
            return false;
    return true;
}

static bool all_fit_lanes(const struct elem_job *job, uint32_t lanes)
{
    int last = job->nest ? job->nest->ndim - 1 : 0;
    size_t run = job->nest ? (size_t)job->nest->dim[last] : job->n;
    bool fits = true;

    /* The last group of a flat walk may reach beyond the end if nothing is lost there. */
    if (run % lanes != 0 && (job->nest || !job->owns_outputs))
        return false;
    for (int o = 0; o < n_operands(job) && fits; o++)
        fits = fits_lanes(job, o, lanes);
    return fits;
}

/* Small elements are moved by the word, and in large arrays by as many words as one access takes
 * where the device gains by that. */
static uint32_t wanted_lanes(uint32_t smallest, bool is_large)
{
    if (!gate_on(GATE_VK_ELEMENTWISE_WIDE))
        return 1;
    if (vk_limits_get()->is_software)
        return SOFTWARE_ACCESS_BYTES / smallest;
    return is_large ? 4 : MAX(4 / smallest, 1);
}

static void describe(char *text, size_t size, const void *data)
{
    const struct elem_job *job = data;

    snprintf(text, size, "%zu elements of %s, %d dimensions, %d instructions", job->n,
             dt_name(elem_program_dtype(job->program, job->program->out[0])),
             job->nest ? job->nest->ndim : 0, job->program->n_ins);
}

static struct variant_problem problem_of(const struct elem_job *job)
{
    return (struct variant_problem){
        describe, job, "elements x instructions", { (int64_t)job->n, job->program->n_ins }
    };
}

/* Several elements at a time, or one because of `why`: two classes of one kernel. */
static void count_class(const struct elem_job *job, enum variant_reason why)
{
    struct variant_problem problem = problem_of(job);

    if (!variant_takes(VARIANT_ELEMENTWISE_WIDE, why, &problem))
        variant_takes(VARIANT_ELEMENTWISE_NARROW, VARIANT_FITS, &problem);
}

struct sizes {
    uint32_t smallest, largest;
};

/* Of elements, without operands that are one. */
static struct sizes element_sizes(const struct elem_job *job)
{
    struct sizes s = { 8, 1 };

    for (int o = 0; o < n_operands(job); o++) {
        if (is_once(job, o))
            continue;
        s.smallest = MIN(s.smallest, operand_size(job, o));
        s.largest = MAX(s.largest, operand_size(job, o));
    }
    return s;
}

static void choose_work(struct elem_class *c, const struct elem_job *job)
{
    bool is_large = job->n >= LARGE_FROM;
    enum variant_reason why = VARIANT_LAYOUT; /* of lanes that turn out to be one */
    uint32_t smallest = element_sizes(job).smallest, largest = element_sizes(job).largest;
    uint32_t lanes = wanted_lanes(smallest, is_large), unroll = 1;

    if (lanes == 1)
        why = gate_on(GATE_VK_ELEMENTWISE_WIDE) ? VARIANT_SIZE : VARIANT_OFF;
    while (lanes > 1 && (lanes * largest > ACCESS_BYTES || !all_fit_lanes(job, lanes)))
        lanes /= 2;
    if (is_large)
        unroll = (vk_limits_get()->is_software ? SOFTWARE_THREAD_BYTES : THREAD_BYTES) /
                 (largest * lanes);
    unroll = MIN(unroll, 4);
    uint32_t weight = unroll > 1 || lanes * smallest > 4 ? elem_weight(job->program) : 0;
    while (lanes * unroll * weight > MAX_CODE_WORDS &&
           (unroll > 1 || (lanes > 1 && lanes * smallest > 4))) {
        if (unroll > 1)
            unroll /= 2;
        else
            lanes /= 2;
    }
    count_class(job, lanes > 1 ? VARIANT_FITS : why);
    c->lanes = (uint8_t)lanes;
    c->unroll = (uint8_t)unroll;
    c->threads = is_large ? THREADS_LARGE : THREADS_SMALL;
}

/* Sets the alignment of every access, and which inputs are the same in all lanes. */
static void set_accesses(struct elem_class *c, const struct elem_job *job)
{
    uint32_t widest = 1, align = 16;
    int last = job->nest ? job->nest->ndim - 1 : 0;

    for (int o = 0; o < n_operands(job); o++) {
        const int64_t *stride = strides_of(job, o);
        bool splat = c->lanes > 1 && stride && stride[last] == 0;
        uint32_t lanes = is_once(job, o) || splat ? 1 : c->lanes;
        uint32_t bytes = MIN(operand_size(job, o) * lanes, 16);

        if (splat)
            c->splat_in |= (uint16_t)(1u << o);
        widest = MAX(widest, bytes);
        if (job->addr[o] % bytes != 0)
            align = MIN(align, low_bit(job->addr[o]));
        for (int d = 0; stride && lanes > 1 && d < last; d++)
            if ((uint64_t)stride[d] * operand_size(job, o) % bytes != 0)
                align = MIN(align, low_bit((uint64_t)stride[d] * operand_size(job, o)));
    }
    c->align = (uint8_t)MIN(MIN(align, widest),
                            vk_limits_get()->is_software ? SOFTWARE_ACCESS_BYTES : ACCESS_BYTES);
}

static bool reaches_far(const struct elem_job *job, int o)
{
    const int64_t *stride = strides_of(job, o);
    uint64_t reach = 0;

    for (int d = 0; stride && d < job->nest->ndim; d++)
        reach +=
            (uint64_t)(job->nest->dim[d] - 1) * (uint64_t)(stride[d] < 0 ? -stride[d] : stride[d]);
    return reach > INT32_MAX;
}

/* Software devices convert float16 by routines that are slower than the library's, and llvmpipe
 * with LLVM 15 miscompiles chains of such conversions. */
static bool use_native_half(void)
{
    int64_t gate = gate_int(GATE_VK_NATIVE_HALF);

    return gate == 1 || (gate == 2 && !vk_limits_get()->is_software);
}

uint16_t elem_float_flags(void)
{
    const VkPhysicalDeviceVulkan12Properties *p = &vk_dev.phys.props12;
    bool has_modes = p->shaderSignedZeroInfNanPreserveFloat16 &&
                     p->shaderSignedZeroInfNanPreserveFloat32 && p->shaderRoundingModeRTEFloat16 &&
                     p->shaderRoundingModeRTEFloat32;

    if (!has_modes)
        return 0;
    return use_native_half() ? ELEM_FLOAT_MODES | ELEM_NATIVE_HALF : ELEM_FLOAT_MODES;
}

/* More than 4 dimensions are rare: they are rounded up, so that few kernels cover them all. */
static uint8_t class_dims(int ndim)
{
    return (uint8_t)(ndim <= 4 ? ndim : ndim <= 8 ? 8 : ndim <= 16 ? 16 : 32);
}

static size_t group_count(const struct elem_job *job, uint32_t lanes)
{
    return job->n / lanes + (job->n % lanes != 0);
}

static struct elem_class classify(const struct elem_job *job)
{
    struct elem_class c = { .dims = job->nest ? class_dims(job->nest->ndim) : 0 };
    bool wide;

    c.once_in = (uint16_t)job->once_in;
    choose_work(&c, job);
    set_accesses(&c, job);
    wide = job->is_wide || job->n > INT32_MAX;
    for (int o = 0; o < n_operands(job) && !wide; o++)
        wide = reaches_far(job, o);
    c.flags = (uint16_t)((wide ? ELEM_WIDE : 0) | (job->out_strided ? ELEM_OUT_STRIDED : 0) |
                         elem_float_flags());
    struct elem_args size = elem_args_size(job->program, &c);
    if (size.n_long * 8 + size.n_index * (wide ? 8 : 4) > VK_PUSH_MAX)
        c.flags |= ELEM_ARGS_IN_MEMORY;
    return c;
}

/* ---- the argument block ---- */

#define MAX_INDEX_WORDS (1 + (SHP_MAX - 1) * 3 + ELEM_OPERANDS * SHP_MAX)

struct block {
    uint64_t words[ELEM_OPERANDS + 2 + MAX_INDEX_WORDS];
    size_t size; /* bytes */
    bool wide;
};

static void put_long(struct block *b, uint64_t v)
{
    memcpy((char *)b->words + b->size, &v, sizeof v);
    b->size += sizeof v;
}

static void put_index(struct block *b, int64_t v)
{
    uint32_t low = (uint32_t)v;

    if (b->wide) {
        put_long(b, (uint64_t)v);
        return;
    }
    memcpy((char *)b->words + b->size, &low, sizeof low);
    b->size += sizeof low;
}

/* i / d == (high word of i * multiplier + i) >> shift for every i < 2^31 and 0 < d < 2^31: the
 * multiplier is 2^32 (2^shift / d - 1), rounded up, with 2^shift the power of two not below d. */
static void put_divisor(struct block *b, uint32_t d)
{
    uint32_t shift = launch_log2(d);

    put_index(b, (int64_t)((((1ull << shift) - d) << 32) / d + 1));
    put_index(b, shift);
}

/* Dimensions that the class has beyond the nest's are outermost, of extent 1. */
static void put_nest(struct block *b, const struct elem_job *job, const struct elem_class *c)
{
    int extra = c->dims - job->nest->ndim, last = c->dims - 1;

    for (int d = 1; d < c->dims; d++) {
        int64_t extent = d < extra ? 1 : job->nest->dim[d - extra] / (d == last ? c->lanes : 1);

        put_index(b, extent);
        if (!b->wide)
            put_divisor(b, (uint32_t)extent);
    }
    for (int o = 0; o < n_operands(job); o++) {
        const int64_t *stride = strides_of(job, o);

        for (int d = 0; stride && d < c->dims; d++)
            put_index(b, d < extra ? 0 : stride[d - extra] * (d == last ? c->lanes : 1));
    }
}

static void fill_block(struct block *b, const struct elem_job *job, const struct elem_class *c,
                       size_t groups)
{
    int n = n_operands(job);

    b->wide = c->flags & ELEM_WIDE;
    for (int o = 0; o < n; o++)
        b->words[o] = job->addr[o];
    b->size = (size_t)n * sizeof b->words[0];
    if (is_arange(job->program)) {
        put_long(b, job->range[0]);
        put_long(b, job->range[1]);
    }
    put_index(b, (int64_t)groups);
    if (job->nest)
        put_nest(b, job, c);
}

static struct vk_grid grid_of(const struct elem_class *c, size_t groups)
{
    size_t per_workgroup = (size_t)c->threads * c->unroll;

    return launch_grid(groups / per_workgroup + (groups % per_workgroup != 0));
}

static enum variant_id variant_of(const struct elem_class *c)
{
    return c->lanes > 1 ? VARIANT_ELEMENTWISE_WIDE : VARIANT_ELEMENTWISE_NARROW;
}

static enum err dispatch(struct vk_enc *e, const struct elem_job *job)
{
    struct elem_class c = classify(job);
    struct vk_kernel kernel = { .variant = variant_of(&c) };
    size_t groups = group_count(job, c.lanes);
    struct block b;
    uint64_t addr;
    enum err err;

    TRY(elem_pipe(&kernel.pipe, job->program, &c));
    fill_block(&b, job, &c, groups);
    if (!(c.flags & ELEM_ARGS_IN_MEMORY))
        return vk_enc_dispatch(e, kernel, b.words, b.size, grid_of(&c, groups));
    TRY(vk_enc_args(e, &addr, b.words, b.size, .n_addr = (uint32_t)n_operands(job)));
    err = vk_enc_dispatch(e, kernel, &addr, sizeof addr, grid_of(&c, groups));
out:
    return err;
}

enum err elem_dispatch(struct vk_enc *e, const struct elem_job *job)
{
    struct nest nest;

    if (!elem_tile(&nest, job))
        return dispatch(e, job);
    struct elem_job tiled = *job;
    tiled.nest = &nest;
    tiled.out_strided = true;
    return dispatch(e, &tiled);
}

/* ---- op families ---- */

static uint32_t constant_inputs(const struct nest *nest, int n_in)
{
    uint32_t mask = 0;

    for (int i = 0; i < n_in; i++) {
        bool constant = true;

        for (int d = 0; d < nest->ndim; d++)
            constant = constant && nest->stride[i][d] == 0;
        mask |= constant ? 1u << i : 0;
    }
    return mask;
}

/* One element has no use for a kernel of its own kind: it is a flat walk over one. */
static void set_walk(struct elem_job *job, const struct elem_walk *w)
{
    job->n = w->n;
    switch (w->kind) {
    case ELEM_SCALAR:
        break;
    case ELEM_VECTOR:
        job->once_in = w->scalar_in;
        break;
    case ELEM_STRIDED:
        job->nest = &w->nest;
        job->once_in = constant_inputs(&w->nest, job->program->n_in);
        break;
    }
}

enum err vk_elementwise(const struct exec *x)
{
    struct elem_job job = { .program = x->program, .owns_outputs = true };
    struct elem_walk w;
    struct vk_enc *e;
    enum err err;

    TRY(elem_prepare(&w, x, &be_vulkan));
    if (w.n == 0)
        goto out;
    set_walk(&job, &w);
    TRY(vk_enc_get(&e, x->strm));
    TRY(vk_enc_step(e, job.addr, x));
    err = elem_dispatch(e, &job);
out:
    return err;
}

/* v as the dtype has it, by the bits of its working type. */
static uint64_t range_bits(double v, enum dtype t)
{
    float f = (float)v;
    uint32_t bits;

    if (!dt_is_inexact(t))
        return dt_f64_to_int(v, t);
    if (t == DT_FLOAT16)
        f = dt_f16_to_f32(dt_f32_to_f16(f));
    else if (t == DT_BFLOAT16)
        f = dt_bf16_to_f32(dt_f32_to_bf16(f));
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float as_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;

    memcpy(&f, &low, sizeof f);
    return f;
}

/* The step is the difference of the first two elements as the dtype has them. */
static void set_range(uint64_t *range, const struct arange_params *p, enum dtype t)
{
    uint64_t second = range_bits(p->start + p->step, t);

    range[0] = range_bits(p->start, t);
    range[1] =
        dt_is_inexact(t) ? range_bits(as_float(second) - as_float(range[0]), t) : second - range[0];
}

enum err vk_arange(const struct exec *x)
{
    struct arr *out = x->out[0];
    struct elem_program program = { .n_ins = 1,
                                    .n_out = 1,
                                    .ins = { { .op = OP_ARANGE, .dtype = out->dtype } } };
    struct elem_job job = { .program = &program, .n = out->size, .owns_outputs = true };
    struct vk_enc *e;
    enum err err;

    TRY(arr_alloc(out, &be_vulkan));
    TRY(vk_enc_get(&e, x->strm));
    TRY(vk_enc_write(e, &job.addr[0], out));
    set_range(job.range, x->node->params, (enum dtype)out->dtype);
    err = elem_dispatch(e, &job);
out:
    return err;
}
