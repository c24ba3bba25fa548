/* Products with packed matrices on the GPU: designs of the mat-vec kernel, merged products. */
#include <math.h>
#include <stdio.h>

#include "backend/backend.h"
#include "backend/vulkan/ops/epilogue.h"
#include "backend/vulkan/ops/qmm.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/wait.h"
#include "ops/ops.h"
#include "support/nd.h"

static struct rng rng = { 11 };

static double random_real(void)
{
    return (double)rng_below(&rng, 4001) / 1000.0 - 2.0;
}

/* ---- arrays ---- */

static struct arr *array_of(const double *v, int32_t rows, int32_t cols, enum dtype t)
{
    size_t n = (size_t)rows * (size_t)cols, item = dt_size(t);
    char *bytes = mem_alloc(n * item + 1);
    struct arr *a = NULL;

    for (size_t i = 0; i < n; i++)
        num_store(t, bytes + i * item,
                  (struct num){ .re = v[i], .i = dt_is_float(t) ? 0 : (int64_t)v[i] });
    assert_ok(arr_new_data(&a, bytes, &(struct shp){ 2, { rows, cols } }, t));
    mem_free(bytes);
    return a;
}

static double value_at(struct arr *a, size_t i)
{
    const void *p;

    assert_ok(arr_host(&p, a));
    return num_load((enum dtype)a->dtype, (const char *)p + i * dt_size((enum dtype)a->dtype)).re;
}

/* A packed matrix of random codes, scales and biases, and its numbers. */
struct packed {
    struct quant_params q;
    int32_t n, k;
    struct arr *w, *scales, *biases;
    double *number;
};

static double small_float(unsigned code, int exponent_bits, int mantissa_bits, int bias)
{
    int exponent = (int)(code >> mantissa_bits & ((1u << exponent_bits) - 1));
    int mantissa = (int)(code & ((1u << mantissa_bits) - 1));
    double sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
    double one = exponent ? 1 : 0;

    return sign * (one + mantissa / (double)(1 << mantissa_bits)) * pow(2, MAX(exponent, 1) - bias);
}

static double code_value(const struct quant_params *q, unsigned code)
{
    if (q->mode == QUANT_AFFINE)
        return code;
    return q->bits == 4 ? small_float(code, 2, 1, 1) : small_float(code, 4, 3, 7);
}

static unsigned code_at(const uint32_t *row, int bits, int i)
{
    unsigned code = 0;

    for (int b = 0; b < bits; b++) {
        int at = i * bits + b;
        code |= (row[at / 32] >> (at % 32) & 1) << b;
    }
    return code;
}

static void fill_words(uint32_t *words, size_t n, const struct quant_params *q)
{
    for (size_t i = 0; i < n; i++) {
        words[i] = (uint32_t)rng_next(&rng);
        if (q->mode == QUANT_MXFP8) /* no NaN among the codes */
            words[i] &= 0xbfbfbfbf;
    }
}

static void packed_init(struct packed *p, const struct quant_params *q, int32_t n, int32_t k,
                        enum dtype t)
{
    int32_t groups = k / q->group_size, words = k * q->bits / 32;
    bool is_affine = q->mode == QUANT_AFFINE;
    enum dtype scale_type = is_affine ? t : DT_UINT8;
    uint32_t *w = mem_alloc((size_t)(n * words) * 4);
    double *s = mem_alloc((size_t)(n * groups) * 8), *b = mem_alloc((size_t)(n * groups) * 8);

    *p = (struct packed){ .q = *q, .n = n, .k = k };
    fill_words(w, (size_t)(n * words), q);
    for (int32_t i = 0; i < n * groups; i++) {
        s[i] = is_affine ? random_real() / (1 << q->bits) : 118 + rng_below(&rng, 8);
        if (q->mode == QUANT_NVFP4)
            s[i] = 40 + rng_below(&rng, 24);
        b[i] = random_real();
    }
    assert_ok(arr_new_data(&p->w, w, &(struct shp){ 2, { n, words } }, DT_UINT32));
    p->scales = array_of(s, n, groups, scale_type);
    p->biases = is_affine ? array_of(b, n, groups, t) : NULL;
    p->number = mem_alloc((size_t)n * (size_t)k * 8);
    for (int32_t i = 0; i < n * k; i++) {
        size_t group = (size_t)(i / k * groups + i % k / q->group_size);
        double scale = value_at(p->scales, group);
        if (!is_affine)
            scale = q->mode == QUANT_NVFP4 ? small_float((unsigned)scale, 4, 3, 7)
                                           : pow(2, scale - 127);
        p->number[i] = code_value(q, code_at(w + i / k * words, q->bits, i % k)) * scale +
                       (is_affine ? value_at(p->biases, group) : 0);
    }
    mem_free(w);
    mem_free(s);
    mem_free(b);
}

static void packed_fini(struct packed *p)
{
    arr_unref(&p->w);
    arr_unref(&p->scales);
    arr_unref(&p->biases);
    mem_free(p->number);
}

static struct ops_packed as_operand(const struct packed *p)
{
    static const char *const modes[] = { "affine", "mxfp4", "mxfp8", "nvfp4" };

    return (struct ops_packed){
        p->w, p->scales, p->biases, { &p->q.group_size, &p->q.bits, modes[p->q.mode] }
    };
}

static struct arr *random_x(int32_t m, int32_t k, enum dtype t)
{
    double *v = mem_alloc((size_t)(m * k) * 8);

    for (int32_t i = 0; i < m * k; i++)
        v[i] = random_real();
    struct arr *x = array_of(v, m, k, t);
    mem_free(v);
    return x;
}

static struct arr *product(struct arr *x, const struct packed *p)
{
    struct ops_packed w = as_operand(p);
    struct arr *out = NULL;

    assert_ok(ops_quantized_matmul(&out, x, &w, true, nd_gpu));
    return out;
}

/* Sum of products in double, and of their magnitudes. */
static double exact(double *magnitude, struct arr *x, int32_t row, const struct packed *p,
                    int32_t col)
{
    double sum = 0;

    *magnitude = 0;
    for (int32_t k = 0; k < p->k; k++) {
        double v = value_at(x, (size_t)(row * p->k + k)) * p->number[col * p->k + k];
        sum += v;
        *magnitude += fabs(v);
    }
    return sum;
}

static void check_product(struct arr *out, struct arr *x, const struct packed *p, const char *what)
{
    enum dtype t = (enum dtype)out->dtype;
    const char *got = nd_run(out);
    double magnitude;

    for (size_t i = 0; i < out->size; i++) {
        double want = exact(&magnitude, x, (int32_t)i / p->n, p, (int32_t)i % p->n);
        nd_check(t, num_load(t, got + i * dt_size(t)), (struct num){ .re = want },
                 fmax(magnitude / 8, fabs(want)), what);
    }
}

/* ---- designs ---- */

static const char *old_design;

static void set_design(const char *text)
{
    old_design = gate_text(GATE_VK_QMV_DESIGN);
    gate_set_text(GATE_VK_QMV_DESIGN, text);
}

static void reset_design(void)
{
    gate_set_text(GATE_VK_QMV_DESIGN, old_design);
}

static void check_one(const struct quant_params *q, enum dtype t, int32_t m, int32_t n, int32_t k)
{
    struct packed p;
    struct arr *x = random_x(m, k, t);
    char what[96];

    packed_init(&p, q, n, k, t);
    snprintf(what, sizeof what, "%s %d x %d x %d, mode %d, %d bits in groups of %d", dt_name(t), m,
             n, k, q->mode, q->bits, q->group_size);
    struct arr *out = product(x, &p);
    check_product(out, x, &p, what);
    arr_unref(&out);
    arr_unref(&x);
    packed_fini(&p);
}

/* Several teams in a workgroup, rows that do not fill the last one, k in several passes, k that
 * does not fill the lanes. */
static void test_designs(void **state)
{
    static const char *const designs[] = { "8,8,1,1,32",   "16,8,2,2,16", "32,4,4,2,16",
                                           "64,8,1,8,16",  "32,2,2,4,32", "128,8,2,4,32",
                                           "256,8,4,1,16", "32,1,8,1,32" };
    static const struct quant_params formats[] = { { 64, 4, QUANT_AFFINE },
                                                   { 32, 8, QUANT_AFFINE } };
    static const enum dtype types[] = { DT_BFLOAT16, DT_FLOAT32, DT_FLOAT16 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(designs); i++) {
        set_design(designs[i]);
        check_one(&formats[i % 2], types[i % 3], 1, 37, i % 4 == 3 ? 4160 : 320);
        check_one(&formats[0], DT_BFLOAT16, i % 2 ? 3 : 8, 21, 192);
        reset_design();
    }
}

/* More blocks than the grid has workgroups, and x in several passes. */
static void test_large(void **state)
{
    struct quant_params q = { 128, 4, QUANT_AFFINE };

    (void)state;
    check_one(&q, DT_BFLOAT16, 1, 3000, 128);
    check_one(&q, DT_BFLOAT16, 1, 5, 20096);
    check_one(&q, DT_FLOAT32, 2, 3, 12288);
    check_one(&q, DT_FLOAT16, 16, 9, 4096);
    /* A design that needs more shared memory for so many vectors than there is. */
    set_design("128,8,2,4,32");
    check_one(&q, DT_FLOAT32, 16, 9, 4096);
    reset_design();
}

/* Workgroups that walk over blocks of rows, with and without splits of k. */
static void test_walkers(void **state)
{
    struct quant_params q = { 128, 4, QUANT_AFFINE };

    (void)state;
    set_design("16,8,2,1,16,1");
    check_one(&q, DT_FLOAT16, 1, 1000, 128);
    reset_design();
    set_design("32,8,2,2,16,1");
    check_one(&q, DT_BFLOAT16, 1, 1000, 256);
    reset_design();
}

static void test_formats(void **state)
{
    static const struct quant_params formats[] = {
        { 32, 2, QUANT_AFFINE }, { 64, 3, QUANT_AFFINE }, { 128, 5, QUANT_AFFINE },
        { 32, 6, QUANT_AFFINE }, { 64, 8, QUANT_AFFINE }, { 32, 4, QUANT_MXFP4 },
        { 32, 8, QUANT_MXFP8 },  { 16, 4, QUANT_NVFP4 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        check_one(&formats[i], DT_BFLOAT16, 1, 33, 384);
        check_one(&formats[i], DT_FLOAT32, 3, 9, 128);
    }
}

/* Without integer dot products; without any mat-vec kernel. */
static void test_gates(void **state)
{
    struct quant_params q = { 64, 4, QUANT_AFFINE };
    int64_t dot = gate_set_int(GATE_VK_QMM_INT_DOT, 0);

    (void)state;
    check_one(&q, DT_BFLOAT16, 1, 50, 512);
    gate_set_int(GATE_VK_QMM_INT_DOT, dot);
    int64_t native = gate_set_int(GATE_VK_QMM_NATIVE, 0);
    uint64_t before = variant_hits(VARIANT_QMM_NATIVE_M1);
    check_one(&q, DT_BFLOAT16, 1, 50, 512);
    assert_int_equal(variant_hits(VARIANT_QMM_NATIVE_M1), before);
    gate_set_int(GATE_VK_QMM_NATIVE, native);
    check_one(&q, DT_BFLOAT16, 1, 50, 512);
    assert_true(variant_hits(VARIANT_QMM_NATIVE_M1) > before);
}

/* x much larger and much smaller than 16-bit floats are; x that is zero; one that dwarfs the rest.
 */
static void test_ranges(void **state)
{
    static const double sizes[] = { 1e30, 1e-30, 0, 1e-40 };
    struct quant_params q = { 32, 4, QUANT_AFFINE };
    double v[64];
    struct packed p;

    (void)state;
    packed_init(&p, &q, 16, 64, DT_BFLOAT16);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (int k = 0; k < 64; k++)
            v[k] = random_real() * sizes[i];
        v[5] *= 300;
        struct arr *x = array_of(v, 1, 64, DT_BFLOAT16), *out = product(x, &p);
        if (sizes[i] > 1e-35) {
            check_product(out, x, &p, "ranges");
        } else { /* subnormals may be zeros */
            const char *got = nd_run(out);
            for (size_t k = 0; k < out->size; k++)
                assert_true(fabs(num_load(DT_BFLOAT16, got + 2 * k).re) < 1e-35);
        }
        arr_unref(&out);
        arr_unref(&x);
    }
    packed_fini(&p);
}

/* ---- merged products ---- */

static struct arr *new_result(int32_t m, int32_t n, enum dtype t)
{
    struct arr *a = NULL;

    assert_ok(arr_new_empty(&a, &(struct shp){ 2, { m, n } }, t));
    assert_ok(arr_alloc(a, nd_gpu->be));
    return a;
}

static void encode(const struct vk_qmv *v)
{
    struct vk_enc *e;
    bool gave_way;
    uint64_t before = stat_get(STAT_DISPATCHES);

    assert_true(vk_qmv_fits(v));
    assert_ok(vk_enc_get(&e, nd_gpu));
    assert_ok(vk_qmv_encode(e, v, &gave_way));
    assert_ok(nd_gpu->be->sync(nd_gpu));
    assert_int_equal(stat_get(STAT_DISPATCHES), before + 1);
}

static struct vk_qmv merged(struct arr *x, const struct packed *p, struct arr *const *outs, int n)
{
    struct vk_qmv v = {
        .q = p->q, .x = x, .m = x->shape[0], .k = x->shape[1], .ld = x->shape[1], .n_sets = n
    };

    for (int i = 0; i < n; i++)
        v.set[i] = (struct vk_qmv_set){ p[i].w, p[i].scales, p[i].biases, outs[i], p[i].n };
    return v;
}

/* Results are in buffers of the device. */
static void assert_same(struct arr *a, struct arr *b)
{
    const void *x, *y;

    assert_int_equal(a->size, b->size);
    assert_ok(buf_host(&x, a->buf));
    assert_ok(arr_host(&y, b));
    assert_memory_equal(x, y, arr_nbytes(a));
}

static const enum dtype types[] = { DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32 };

/* Two, three and four matrices at once: the bits of single products of the same design. */
static void check_siblings(enum dtype t, int32_t m)
{
    static const int32_t rows[VK_QMV_SETS] = { 40, 9, 9, 70 };
    struct quant_params q = { 64, 4, QUANT_AFFINE };
    struct packed p[VK_QMV_SETS];
    struct arr *outs[VK_QMV_SETS], *x = random_x(m, 320, t);

    for (int i = 0; i < VK_QMV_SETS; i++) {
        packed_init(&p[i], &q, rows[i], 320, t);
        outs[i] = new_result(m, rows[i], t);
    }
    for (int n = 2; n <= VK_QMV_SETS; n++) {
        struct vk_qmv v = merged(x, p, outs, n);
        encode(&v);
        for (int i = 0; i < n; i++) {
            struct arr *alone = product(x, &p[i]);
            nd_run(alone);
            assert_same(outs[i], alone);
            arr_unref(&alone);
        }
    }
    for (int i = 0; i < VK_QMV_SETS; i++) {
        packed_fini(&p[i]);
        arr_unref(&outs[i]);
    }
    arr_unref(&x);
}

static void test_siblings(void **state)
{
    static const int32_t m[] = { 1, 3, 16 };

    (void)state;
    set_design("32,8,2,2,16");
    for (size_t k = 0; k < ARRAY_LEN(types); k++)
        for (size_t i = 0; i < ARRAY_LEN(m); i++)
            check_siblings(types[k], m[i]);
    reset_design();
}

static struct arr *binary(enum op_id op, struct arr *a, struct arr *b)
{
    struct arr *r = NULL;

    assert_ok(ops_binary(&r, op, a, b, nd_gpu));
    arr_unref(&a);
    return r;
}

/* a + b. */
static const struct elem_program add_program = {
    .n_in = 2,
    .n_ins = 1,
    .n_out = 1,
    .out = { 2 },
    .ins = { { .op = OP_ADD, .n_args = 2, .arg = { 0, 1 } } }
};
/* a * sigmoid(a) * b. */
static const struct elem_program silu_program = {
    .n_in = 2,
    .n_ins = 3,
    .n_out = 1,
    .out = { 4 },
    .ins = { { .op = OP_SIGMOID, .n_args = 1, .arg = { 0 } },
             { .op = OP_MULTIPLY, .n_args = 2, .arg = { 0, 2 } },
             { .op = OP_MULTIPLY, .n_args = 2, .arg = { 3, 1 } } }
};

static struct elem_program program_of(const struct elem_program *f, enum dtype t)
{
    struct elem_program own = *f;

    own.in_dtype[0] = own.in_dtype[1] = (uint8_t)t;
    for (int i = 0; i < own.n_ins; i++)
        own.ins[i].dtype = (uint8_t)t;
    return own;
}

static void test_residual(void **state)
{
    struct quant_params q = { 32, 8, QUANT_AFFINE };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(types); k++) {
        struct arr *x = random_x(1, 96, types[k]), *residual = random_x(1, 50, types[k]);
        struct arr *out = new_result(1, 50, types[k]);
        struct packed p;
        packed_init(&p, &q, 50, 96, types[k]);
        struct vk_qmv v = merged(x, &p, &out, 1);
        struct elem_program program = program_of(&add_program, types[k]);
        struct vk_epilogue add;
        assert_int_equal(vk_epilogue_init(&add, &program, 1, &residual, out), GROUP_TAKEN);
        v.epilogue = &add;
        encode(&v);
        struct arr *apart = binary(OP_ADD, product(x, &p), residual);
        nd_run(apart);
        assert_same(out, apart);
        arr_unref(&apart);
        arr_unref(&out);
        arr_unref(&residual);
        arr_unref(&x);
        packed_fini(&p);
    }
}

static void check_silu_mul(enum dtype t, const char *design)
{
    struct quant_params q = { 64, 4, QUANT_AFFINE };
    struct arr *x = random_x(1, 256, t), *out[2] = { new_result(1, 45, t), NULL };
    struct packed p[2];
    struct arr *sigmoid = NULL;

    set_design(design);
    for (int i = 0; i < 2; i++)
        packed_init(&p[i], &q, 45, 256, t);
    struct vk_qmv v = merged(x, p, out, 2);
    struct elem_program program = program_of(&silu_program, t);
    struct vk_epilogue silu;
    assert_int_equal(vk_epilogue_init(&silu, &program, 2, NULL, out[0]), GROUP_TAKEN);
    v.epilogue = &silu;
    encode(&v);
    struct arr *gate = product(x, &p[0]), *up = product(x, &p[1]);
    assert_ok(ops_unary(&sigmoid, OP_SIGMOID, gate, nd_gpu));
    struct arr *apart = binary(OP_MULTIPLY, binary(OP_MULTIPLY, gate, sigmoid), up);
    nd_run(apart);
    assert_same(out[0], apart);
    reset_design();
    arr_unref(&apart);
    arr_unref(&sigmoid);
    arr_unref(&up);
    arr_unref(&out[0]);
    arr_unref(&x);
    packed_fini(&p[0]);
    packed_fini(&p[1]);
}

static void test_silu_mul(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(types); k++) {
        check_silu_mul(types[k], "16,8,2,1,32");
        check_silu_mul(types[k], "32,8,4,2,16");
        check_silu_mul(types[k], "16,4,8,1,16");
    }
}

/* A norm in front of the product. */
struct norm {
    enum dtype t;
    int32_t m;
    bool is_centred, has_bias;
};

enum { NORM_K = 320, NORM_N = 30 };

/* The rows of x as the norm leaves them. */
static struct arr *normed(const struct norm *n, struct arr *x, struct arr *weight, struct arr *bias)
{
    double v[16 * NORM_K];
    char bytes[8];

    for (int32_t row = 0; row < n->m; row++) {
        double mean = 0, squares = 0;
        double *to = v + row * NORM_K;
        for (int i = 0; i < NORM_K; i++)
            to[i] = value_at(x, (size_t)(row * NORM_K + i));
        for (int i = 0; i < NORM_K && n->is_centred; i++)
            mean += to[i] / NORM_K;
        for (int i = 0; i < NORM_K; i++)
            squares += (to[i] - mean) * (to[i] - mean);
        for (int i = 0; i < NORM_K; i++) {
            num_store(n->t, bytes,
                      (struct num){ .re = (to[i] - mean) / sqrt(squares / NORM_K + 1e-5) });
            to[i] = num_load(n->t, bytes).re * value_at(weight, (size_t)i);
            num_store(n->t, bytes, (struct num){ .re = to[i] });
            to[i] = num_load(n->t, bytes).re + (bias ? value_at(bias, (size_t)i) : 0);
        }
    }
    return array_of(v, n->m, NORM_K, n->t);
}

/* The norm's sum may be rounded otherwise than here, so that single elements of x differ by a unit:
 * within the tolerance of the product. */
static void check_result(struct arr *out, struct arr *reference, const struct packed *p)
{
    enum dtype t = (enum dtype)out->dtype;
    const void *got;
    double magnitude;

    assert_ok(buf_host(&got, out->buf));
    for (int32_t i = 0; i < (int32_t)out->size; i++) {
        double want = exact(&magnitude, reference, i / NORM_N, p, i % NORM_N);
        nd_check(t, num_load(t, (const char *)got + (size_t)i * dt_size(t)),
                 (struct num){ .re = want }, magnitude, "norm");
    }
}

static void check_norm(const struct norm *n)
{
    struct quant_params q = { 64, 4, QUANT_AFFINE };
    struct arr *x = random_x(n->m, NORM_K, n->t), *weight = random_x(1, NORM_K, n->t);
    struct arr *bias = n->has_bias ? random_x(1, NORM_K, n->t) : NULL;
    struct arr *out[2] = { new_result(n->m, NORM_N, n->t), new_result(n->m, NORM_N, n->t) };
    struct arr *reference = normed(n, x, weight, bias);
    struct packed p[2];

    for (int i = 0; i < 2; i++)
        packed_init(&p[i], &q, NORM_N, NORM_K, n->t);
    for (int sets = 1; sets <= 2; sets++) {
        struct vk_qmv v = merged(x, p, out, sets);
        v.norm = weight;
        v.norm_bias = bias;
        v.is_centred = n->is_centred;
        v.eps = 1e-5f;
        encode(&v);
        for (int i = 0; i < sets; i++)
            check_result(out[i], reference, &p[i]);
    }
    for (int i = 0; i < 2; i++) {
        packed_fini(&p[i]);
        arr_unref(&out[i]);
    }
    arr_unref(&reference);
    arr_unref(&bias);
    arr_unref(&weight);
    arr_unref(&x);
}

static void test_norm(void **state)
{
    static const int32_t m[] = { 1, 3, 8 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(types); k++)
        for (size_t i = 0; i < ARRAY_LEN(m); i++) {
            check_norm(&(struct norm){ types[k], m[i], false, false });
            check_norm(&(struct norm){ types[k], m[i], true, false });
            check_norm(&(struct norm){ types[k], m[i], true, true });
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_designs),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_walkers),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_siblings),
        cmocka_unit_test(test_residual),
        cmocka_unit_test(test_silu_mul),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
