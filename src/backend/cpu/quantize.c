/* Quantize in both directions. Every step rounds to the dtype that MLX computes it in, so that the
 * packed words and scales are MLX's. */
#include "backend/cpu/quant.h"

#include "backend/common/qmm_plan.h"
#include "backend/cpu/fp8.h"
#include "backend/cpu/kernels.h"

#include <math.h>

#define MAX_GROUP 128
/* Groups of work for one thread. */
#define GRAIN 64

struct task {
    struct quant_params q;
    struct cpu_src w, scales, biases, global; /* inputs */
    bool has_biases, has_global;
    unsigned char *out, *out_scales, *out_biases;
    uint8_t dtype; /* enum dtype: of the numbers that are packed, or of the result */
    size_t groups;
};

struct job {
    const struct task *t;
    const char *w, *scales, *biases;
    float global;
};

static float rounded(float v, enum dtype t)
{
    if (t == DT_FLOAT16)
        return dt_f16_to_f32(dt_f32_to_f16(v));
    return t == DT_BFLOAT16 ? dt_bf16_to_f32(dt_f32_to_bf16(v)) : v;
}

static void load(float *dst, const void *src, enum dtype t, size_t n)
{
    cpu_convert((struct cpu_vec){ dst, DT_FLOAT32 }, (struct cpu_vec){ (void *)src, t }, n);
}

static void store(void *dst, const float *src, enum dtype t, size_t n)
{
    cpu_convert((struct cpu_vec){ dst, t }, (struct cpu_vec){ (void *)src, DT_FLOAT32 }, n);
}

/* Codes of `bits` bits as a little-endian stream. */
static void pack(unsigned char *dst, const uint8_t *codes, int bits, int n)
{
    uint64_t pending = 0;
    int have = 0;

    for (int i = 0; i < n; i++) {
        pending |= (uint64_t)codes[i] << have;
        for (have += bits; have >= 8; have -= 8) {
            *dst++ = (unsigned char)pending;
            pending >>= 8;
        }
    }
}

/* ---- affine ---- */

static void find_affine(float *scale, float *bias, const float *w, const struct quant_params *q)
{
    float low = INFINITY, high = -INFINITY;

    for (int i = 0; i < q->group_size; i++) {
        low = fminf(low, w[i]);
        high = fmaxf(high, w[i]);
    }
    if (q->bits == 1) { /* both ends, with no room for a zero between them */
        *scale = fmaxf(high - low, 1e-7f);
        *bias = low;
        return;
    }
    bool from_low = fabsf(low) > fabsf(high);
    float edge = from_low ? low : high;
    *scale = fmaxf((high - low) / (float)((1 << q->bits) - 1), 1e-7f);
    if (!from_low)
        *scale = -*scale;
    float q0 = rintf(edge / *scale);
    *bias = 0.0f;
    if (q0 != 0.0f) {
        *scale = edge / q0;
        *bias = edge;
    }
}

static void encode_affine(uint8_t *codes, const float *w, const struct quant_params *q, float scale,
                          float bias)
{
    float most = (float)((1 << q->bits) - 1);

    for (int i = 0; i < q->group_size; i++) {
        float v = rintf((w[i] - bias) / scale);
        codes[i] = (uint8_t)(v > 0.0f ? fminf(v, most) : 0.0f);
    }
}

/* ---- fp modes ---- */

/* The nearest number, the first of two that are as near, by differences rounded to t. */
static uint8_t encode_fp4(float v, enum dtype t)
{
    static const float values[16] = { 0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                      -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f };
    float best = fabsf(rounded(v - values[0], t));
    uint8_t code = 0;

    for (uint8_t i = 1; i < 16; i++) {
        float distance = fabsf(rounded(v - values[i], t));
        if (distance < best) {
            best = distance;
            code = i;
        }
    }
    return code;
}

/* The largest absolute value; NaN if there is one. */
static float magnitude(const float *w, int n)
{
    float most = 0.0f;

    for (int i = 0; i < n; i++)
        most = fabsf(w[i]) > most || isnan(w[i]) ? fabsf(w[i]) : most;
    return most;
}

/* What is no number, or not finite, becomes the largest number that there is. A NaN is positive:
 * hardware that converts float16 drops its sign. */
static uint8_t encode_beyond(float v, int bits)
{
    if (bits == 8)
        return v < 0.0f ? 0xfe : 0x7e;
    return v < 0.0f ? 15 : 7;
}

/* A power of two as scale: the least that is not below what the largest number needs. It is
 * infinite with a number that is, and with a NaN. */
static uint8_t encode_mx(uint8_t *codes, const float *w, const struct task *t)
{
    enum dtype dtype = (enum dtype)t->dtype;
    int n = t->q.group_size;
    float scale = rounded(magnitude(w, n) / (t->q.bits == 4 ? 6.0f : 448.0f), dtype);
    int e = 0;

    if (scale > 0.0f && isfinite(scale) && frexpf(scale, &e) == 0.5f)
        e--;
    e = isfinite(scale) ? MAX(-127, MIN(e, 127)) : 128;
    float unit = rounded(ldexpf(1.0f, e), dtype);
    for (int i = 0; i < n; i++) {
        float v = rounded(w[i] / unit, dtype);
        if (!isfinite(w[i]))
            codes[i] = encode_beyond(w[i], t->q.bits);
        else
            codes[i] = t->q.bits == 4 ? encode_fp4(v, dtype) : fp8_encode(v);
    }
    return (uint8_t)(e + 127);
}

/* An 8-bit float as scale, which is the largest with a number that is not finite. global: what
 * scales are multiplied by. */
static uint8_t encode_nv(uint8_t *codes, const float *w, const struct task *t, float global)
{
    enum dtype dtype = (enum dtype)t->dtype;
    int n = t->q.group_size;
    float scale = rounded(magnitude(w, n) / 6.0f, dtype);
    uint8_t code = isfinite(scale) ? fp8_encode(scale * global) : 0x7e;
    float unit = rounded(fp8_decode(code), dtype);

    for (int i = 0; i < n; i++)
        codes[i] = isfinite(w[i]) ? encode_fp4(rounded(w[i] / unit, dtype) * global, DT_FLOAT32)
                                  : encode_beyond(w[i], 4);
    return code;
}

/* ---- the tasks ---- */

static void quantize_groups(void *arg, size_t begin, size_t end)
{
    const struct job *j = arg;
    const struct task *t = j->t;
    enum dtype dtype = (enum dtype)t->dtype;
    size_t n = (size_t)t->q.group_size, item = dt_size(dtype), bytes = n * (size_t)t->q.bits / 8;
    float encode = t->has_global ? 448.0f * 6.0f / j->global : 1.0f, w[MAX_GROUP], scale, bias;
    uint8_t codes[MAX_GROUP];

    for (size_t i = begin; i < end; i++) {
        load(w, j->w + i * n * item, dtype, n);
        if (t->q.mode == QUANT_AFFINE) {
            find_affine(&scale, &bias, w, &t->q);
            encode_affine(codes, w, &t->q, scale, bias);
            store(t->out_scales + i * item, &scale, dtype, 1);
            store(t->out_biases + i * item, &bias, dtype, 1);
        } else {
            t->out_scales[i] =
                t->q.mode == QUANT_NVFP4 ? encode_nv(codes, w, t, encode) : encode_mx(codes, w, t);
        }
        pack(t->out + i * bytes, codes, t->q.bits, t->q.group_size);
    }
}

/* The scale of a group in the fp modes, as MLX rounds it on the way. */
static float fp_scale(const struct job *j, size_t group)
{
    const struct task *t = j->t;
    enum dtype dtype = (enum dtype)t->dtype;
    float scale = rounded(
        cpu_scale_decode(((const uint8_t *)j->scales)[group], (enum quant_mode)t->q.mode), dtype);

    return t->has_global ? scale * (j->global / (448.0f * 6.0f)) : scale;
}

static void dequantize_groups(void *arg, size_t begin, size_t end)
{
    const struct job *j = arg;
    const struct task *t = j->t;
    enum dtype dtype = (enum dtype)t->dtype;
    size_t n = (size_t)t->q.group_size, item = dt_size(dtype), bytes = n * (size_t)t->q.bits / 8;
    float v[MAX_GROUP], scale, bias = 0.0f;

    for (size_t i = begin; i < end; i++) {
        cpu_unpack(v, &t->q, (const unsigned char *)j->w + i * bytes, t->q.group_size);
        if (t->q.mode == QUANT_AFFINE) {
            load(&scale, j->scales + i * item, dtype, 1);
            load(&bias, j->biases + i * item, dtype, 1);
            for (size_t k = 0; k < n; k++)
                v[k] = rounded(v[k] * scale, dtype) + bias;
        } else {
            scale = fp_scale(j, i);
            for (size_t k = 0; k < n; k++)
                v[k] *= scale;
        }
        store(t->out + i * n * item, v, dtype, n);
    }
}

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct job j = { .t = t };
    bool is_back = !t->out_scales;
    const char *global;
    enum err err;

    TRY(cpu_src_host(&j.w, &t->w));
    if (is_back)
        TRY(cpu_src_host(&j.scales, &t->scales));
    if (t->has_biases)
        TRY(cpu_src_host(&j.biases, &t->biases));
    if (t->has_global) {
        TRY(cpu_src_host(&global, &t->global));
        memcpy(&j.global, global, sizeof j.global);
    }
    cpu_parallel_for(t->groups, GRAIN, is_back ? dequantize_groups : quantize_groups, &j);
out:
    return err;
}

/* Dense inputs, the global scale aside. */
struct inputs {
    struct arr *in[4], *copies[4];
    int n;
};

static enum err inputs_init(struct inputs *v, const struct exec *x)
{
    enum err err = ERR_OK;

    v->n = x->n_in;
    for (int i = 0; i < x->n_in; i++) {
        v->in[i] = x->in[i];
        if (!(v->in[i]->flags & LAYOUT_ROW))
            TRY(qmm_dense(&v->in[i], &v->copies[i], x->strm));
    }
out:
    return err;
}

static enum err inputs_fini(struct inputs *v, struct strm *s)
{
    enum err err = ERR_OK;

    for (int i = 0; i < v->n && !err; i++)
        if (v->copies[i])
            err = cpu_hold(s, &v->copies[i]->buf, 1);
    arr_unref(&v->copies[0]);
    for (int i = 1; i < v->n; i++)
        arr_unref(&v->copies[i]);
    return err;
}

enum err cpu_quantize(const struct exec *x)
{
    const struct quantize_params *p = x->node->params;
    const struct arr *numbers = p->dequantize ? x->out[0] : x->in[0];
    struct task t = { .q = p->q, .dtype = numbers->dtype };
    struct inputs v = { 0 };
    int n = 1;
    enum err err;

    if (numbers->dtype == DT_FLOAT64)
        return err_set(ERR_UNSUPPORTED, "[quantize] Not supported for float64.");
    for (int i = 0; i < x->n_out; i++)
        TRY(arr_alloc(x->out[i], &be_cpu));
    if (!numbers->size)
        goto out;
    TRY(inputs_init(&v, x));
    t.groups = numbers->size / (size_t)p->q.group_size;
    t.w = cpu_src(v.in[0]);
    t.out = (unsigned char *)cpu_dst(x->out[0]);
    if (p->dequantize) {
        t.scales = cpu_src(v.in[n++]);
        t.has_biases = p->q.mode == QUANT_AFFINE;
        if (t.has_biases)
            t.biases = cpu_src(v.in[n++]);
    } else {
        t.out_scales = (unsigned char *)cpu_dst(x->out[1]);
        t.out_biases = x->n_out > 2 ? (unsigned char *)cpu_dst(x->out[2]) : NULL;
    }
    t.has_global = x->n_in > n;
    if (t.has_global)
        t.global = cpu_src(v.in[n]);
    TRY(cpu_enqueue(x->strm, run_task, &t, sizeof t));
out:
    return inputs_fini(&v, x->strm) && !err ? ERR_NO_MEMORY : err;
}
