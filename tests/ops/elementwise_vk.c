/* Elementwise programs and copies on the GPU: every op and dtype against the CPU backend, every
 * layout and size against plain loops, fused against separate kernels bit for bit. */
#include <math.h>

#include "backend/vulkan/ops/elementwise.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "ops/ops.h"
#include "support/nd.h"
#include "support/room.h"

static struct strm *cpu;

static const enum dtype dtypes[] = {
    DT_BOOL,  DT_UINT8, DT_UINT16,  DT_UINT32,  DT_UINT64,   DT_INT8,      DT_INT16,
    DT_INT32, DT_INT64, DT_FLOAT16, DT_FLOAT32, DT_BFLOAT16, DT_COMPLEX64,
};

/* Of magnitudes: none is allowed to differ. */
#define EXACT 1e-300

static void eval_one(struct arr *a)
{
    assert_ok(eval_arrays(&a, 1, false));
}

/* Element i in row-major order. */
static struct num element(struct arr *a, size_t i)
{
    int32_t at[SHP_MAX];
    const char *host = NULL;
    int64_t offset = 0;
    struct shp shape;

    arr_shape(&shape, a);
    nd_unravel(at, &shape, i);
    for (int d = 0; d < shape.ndim; d++)
        offset += at[d] * a->strides[d];
    assert_ok(arr_host((const void **)&host, a));
    return num_load((enum dtype)a->dtype, host + offset * (int64_t)dt_size((enum dtype)a->dtype));
}

/* ---- every op and dtype, against the CPU ---- */

#define MANY 3000

/* Numbers of any size, with the ends of the range among them. */
static struct num wide_number(struct rng *r, enum dtype t)
{
    int bits = (int)dt_size(t) * 8;
    uint64_t v = rng_next(r) >> rng_below(r, 64);

    if (dt_is_inexact(t))
        return (struct num){ .re = (double)(rng_below(r, 40001) - 20000) / 4096,
                             .im = (double)(rng_below(r, 40001) - 20000) / 4096 };
    if (rng_one_in(r, 16))
        v = 1ull << (bits - 1);
    if (rng_one_in(r, 16))
        v = UINT64_MAX;
    return (struct num){ .i = t == DT_BOOL ? (int64_t)(v & 1) : (int64_t)v };
}

/* Arguments for which the result is defined: no division by 0, no shift by the width or more. */
static struct num second_number(struct rng *r, enum dtype t, enum op_id op)
{
    struct num v = wide_number(r, t);
    char bytes[8] = { 0 };

    if (op == OP_LEFT_SHIFT || op == OP_RIGHT_SHIFT)
        v.i = rng_below(r, t == DT_BOOL ? 2 : (int)dt_size(t) * 8);
    else if (op == OP_POWER && !dt_is_inexact(t) && t != DT_BOOL)
        v.i = rng_below(r, 12);
    num_store(t, bytes, v);
    bool is_zero = num_load(t, bytes).re == 0;
    if (is_zero && (op == OP_DIVIDE || op == OP_REMAINDER || op == OP_DIVMOD))
        v = (struct num){ .re = 1, .i = 1 };
    return v;
}

struct operands {
    struct arr *a, *b, *condition;
};

static struct arr *leaf(const void *bytes, enum dtype t)
{
    struct shp shape = { 1, { MANY } };
    struct arr *a = NULL;

    assert_ok(arr_new_data(&a, bytes, &shape, t));
    return a;
}

static struct operands make_operands(struct rng *r, enum dtype t, enum op_id op)
{
    size_t item = dt_size(t);
    char *a = mem_alloc(MANY * item), *b = mem_alloc(MANY * item), *c = mem_alloc(MANY);
    struct operands out;

    assert_true(a && b && c);
    for (size_t i = 0; i < MANY; i++) {
        num_store(t, a + i * item, wide_number(r, t));
        num_store(t, b + i * item, second_number(r, t, op));
        if (rng_one_in(r, 8)) /* equal operands, for comparisons */
            memcpy(a + i * item, b + i * item, item);
        c[i] = (char)rng_below(r, 2);
    }
    out = (struct operands){ leaf(a, t), leaf(b, t), leaf(c, DT_BOOL) };
    mem_free(a);
    mem_free(b);
    mem_free(c);
    return out;
}

/* outs[1] stays NULL unless the op has two results. False if the op does not take the dtype. */
static bool apply(struct arr **outs, enum op_id op, const struct operands *x, struct strm *s)
{
    outs[0] = outs[1] = NULL;
    switch (op_table[op].family) {
    case OP_FAMILY_UNARY:
        if (op == OP_TO_FP8)
            return ops_to_fp8(outs, x->a, s) == ERR_OK;
        if (op == OP_FROM_FP8)
            return ops_from_fp8(outs, x->a, DT_BFLOAT16, s) == ERR_OK;
        return ops_unary(outs, op, x->a, s) == ERR_OK;
    case OP_FAMILY_BINARY:
        if (op == OP_DIVIDE && !dt_is_inexact((enum dtype)x->a->dtype))
            return ops_floor_divide(outs, x->a, x->b, s) == ERR_OK;
        return ops_binary(outs, op, x->a, x->b, s) == ERR_OK;
    case OP_FAMILY_TERNARY:
        return ops_where(outs, x->condition, x->a, x->b, s) == ERR_OK;
    case OP_FAMILY_DIVMOD:
        return ops_divmod(outs, x->a, x->b, s) == ERR_OK;
    default:
        return false;
    }
}

static void compare(struct arr *got, struct arr *want, const char *what)
{
    enum dtype t = (enum dtype)got->dtype;

    assert_int_equal(got->dtype, want->dtype);
    assert_int_equal(got->size, want->size);
    for (size_t i = 0; i < got->size; i++) {
        struct num w = element(want, i);

        nd_check(t, element(got, i), w, dt_is_inexact(t) ? 0 : EXACT, what);
    }
}

static void check_op(struct rng *r, enum op_id op, enum dtype t)
{
    struct operands x = make_operands(r, t, op);
    struct arr *got[2], *want[2];
    char what[64];

    if (apply(got, op, &x, nd_gpu) && apply(want, op, &x, cpu)) {
        snprintf(what, sizeof what, "%s of %s", op_name(op), dt_name(t));
        for (int o = 0; o < 2 && got[o]; o++) {
            uint64_t before = stat_get(STAT_DISPATCHES);

            eval_one(got[o]);
            assert_true(o || stat_get(STAT_DISPATCHES) > before || got[o] == x.a);
            eval_one(want[o]);
            compare(got[o], want[o], what);
            arr_unref(&got[o]);
            arr_unref(&want[o]);
        }
    }
    arr_unref(&x.a);
    arr_unref(&x.b);
    arr_unref(&x.condition);
}

static void test_every_op_and_dtype(void **state)
{
    struct rng r = { 1 };

    (void)state;
    for (int op = OP_NONE + 1; op < OP_COUNT; op++)
        for (size_t i = 0; i < ARRAY_LEN(dtypes) && op != OP_ASTYPE; i++)
            check_op(&r, (enum op_id)op, dtypes[i]);
}

/* Values that both dtypes have, so that nothing depends on what conversions do out of range. */
static void check_cast(struct rng *r, enum dtype from, enum dtype to)
{
    size_t item = dt_size(from);
    char *bytes = mem_alloc(MANY * item);
    bool can_be_negative = dt_table[from].kind >= DT_KIND_I && dt_table[to].kind >= DT_KIND_I;
    char what[64];

    assert_non_null(bytes);
    for (size_t i = 0; i < MANY; i++) {
        int v = rng_below(r, 128) - (can_be_negative ? 64 : 0);
        double fraction = dt_is_inexact(from) ? rng_below(r, 8) / 8.0 : 0;

        num_store(from, bytes + i * item,
                  (struct num){ .re = v + fraction, .im = 0.5, .i = from == DT_BOOL ? v & 1 : v });
    }
    struct arr *in = leaf(bytes, from), *got = NULL, *want = NULL;
    assert_ok(ops_astype(&got, in, to, nd_gpu));
    assert_ok(ops_astype(&want, in, to, cpu));
    eval_one(got);
    eval_one(want);
    snprintf(what, sizeof what, "cast from %s", dt_name(from));
    compare(got, want, what);
    arr_unref(&in);
    arr_unref(&got);
    arr_unref(&want);
    mem_free(bytes);
}

static void test_every_cast(void **state)
{
    struct rng r = { 2 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        for (size_t k = 0; k < ARRAY_LEN(dtypes); k++)
            check_cast(&r, dtypes[i], dtypes[k]);
}

/* Rounding to nearest even, over every float16 and what lies between two of them. */
static void check_half_rounding(void)
{
    enum { N = 1 << 16 };
    float *x = mem_alloc_array(N, sizeof *x);
    struct shp shape = { 1, { N } };
    struct arr *in = NULL, *half = NULL, *brain = NULL;

    assert_non_null(x);
    for (int i = 0; i < N; i++) {
        uint32_t bits = (uint32_t)i * 65537u, jump = (uint32_t)i % 5; /* ties are among them */
        bits = jump == 0 ? (bits & 0xffff0000u) | 0x8000u : jump == 1 ? bits & 0xfffff000u : bits;
        memcpy(&x[i], &bits, sizeof bits);
        if (jump == 2) /* around what float16 can hold */
            x[i] = ldexpf((float)(i % 4096) + 0.5f, i % 40 - 30);
    }
    assert_ok(arr_new_data(&in, x, &shape, DT_FLOAT32));
    assert_ok(ops_astype(&half, in, DT_FLOAT16, nd_gpu));
    assert_ok(ops_astype(&brain, in, DT_BFLOAT16, nd_gpu));
    const uint16_t *h = nd_run(half), *b = nd_run(brain);
    for (int i = 0; i < N; i++) {
        uint16_t want_h = dt_f32_to_f16(x[i]), want_b = dt_f32_to_bf16(x[i]);

        if (isnan(x[i])) {
            assert_true(isnan(dt_f16_to_f32(h[i])) && isnan(dt_bf16_to_f32(b[i])));
            continue;
        }
        if (fabsf(x[i]) < 1.2e-38f) /* float32 subnormals may be flushed */
            continue;
        if (h[i] != want_h || b[i] != want_b)
            fail_msg("%.9g gives %04x %04x, should be %04x %04x", x[i], h[i], b[i], want_h, want_b);
    }
    arr_unref(&in);
    arr_unref(&half);
    arr_unref(&brain);
    mem_free(x);
}

static void test_half_rounding(void **state)
{
    (void)state;
    for (int64_t native = 0; native < 2; native++) {
        int64_t old = gate_set_int(GATE_VK_NATIVE_HALF, native);

        check_half_rounding();
        gate_set_int(GATE_VK_NATIVE_HALF, old);
    }
}

/* ---- layouts and sizes ---- */

/* a + b over any layouts; integers wrap. */
static void check_add(struct rng *r, enum dtype t, const struct shp *shape, const int *layouts)
{
    struct nd a, b;
    struct arr *out = NULL;
    char what[SHP_TEXT_MAX + 32];

    nd_make(&a, r, t, shape, (enum nd_layout)layouts[0]);
    nd_make(&b, r, t, shape, (enum nd_layout)layouts[1]);
    assert_ok(ops_binary(&out, OP_ADD, a.arr, b.arr, nd_gpu));
    eval_one(out);
    snprintf(what, sizeof what, "sum of %s, layouts %d %d", shp_text(shape), layouts[0],
             layouts[1]);
    for (size_t i = 0; i < out->size; i++) {
        struct num x = nd_get(&a, i), y = nd_get(&b, i);
        struct num want = { x.re + y.re, x.im + y.im, x.i + y.i };

        if (t == DT_BOOL)
            want.i = x.i || y.i;
        else if (dt_table[t].kind == DT_KIND_U && dt_size(t) < 8)
            want.i &= (1ll << dt_size(t) * 8) - 1;
        nd_check(t, element(out, i), want, dt_is_inexact(t) ? 0 : EXACT, what);
    }
    arr_unref(&out);
    nd_free(&a);
    nd_free(&b);
}

static void test_layouts(void **state)
{
    struct rng r = { 3 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        for (int k = 0; k < 40; k++) {
            int layouts[2] = { rng_below(&r, ND_LAYOUTS), rng_below(&r, ND_LAYOUTS) };
            struct shp shape;

            nd_random_shape(&shape, &r, k % 4 == 0 ? 9 : 4, 2000);
            check_add(&r, dtypes[i], &shape, layouts);
        }
}

static void test_one_element_at_a_time(void **state)
{
    int64_t old = gate_set_int(GATE_VK_ELEMENTWISE_WIDE, 0);

    test_layouts(state);
    gate_set_int(GATE_VK_ELEMENTWISE_WIDE, old);
}

static void test_sizes(void **state)
{
    static const int32_t sizes[] = { 1, 2, 3, 4, 5, 63, 64, 65, 255, 257, 1023, 65537, 1048579 };
    static const enum dtype types[] = { DT_UINT8, DT_FLOAT16, DT_FLOAT32, DT_INT64 };
    struct rng r = { 4 };

    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
            check_add(&r, types[t], &(struct shp){ 1, { sizes[i] } }, (int[]){ ND_ROW, ND_ROW });
}

/* Row, column and scalar broadcasts of large arrays: the strided kernels with words of lanes. */
static void test_large_broadcasts(void **state)
{
    static const enum dtype types[] = { DT_UINT8, DT_BFLOAT16, DT_FLOAT32, DT_COMPLEX64 };
    struct rng r = { 5 };

    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (int k = 0; k < 6; k++) {
            struct shp shape = { 2, { 1025, k % 2 ? 1024 : 1023 } };

            check_add(&r, types[t], &shape, (int[]){ ND_ROW, k < 4 ? ND_BROADCAST : ND_PERMUTED });
        }
}

/* Operands in different orders of axes, with extents that divide into tiles or do not. */
static void test_permuted_operands(void **state)
{
    static const enum dtype types[] = { DT_UINT8, DT_FLOAT16, DT_FLOAT32, DT_COMPLEX64 };
    static const struct shp shapes[] = {
        { 2, { 512, 272 } },   { 2, { 260, 300 } },    { 2, { 257, 259 } },
        { 3, { 48, 20, 80 } }, { 3, { 5, 128, 104 } }, { 4, { 8, 24, 2, 176 } },
    };
    struct rng r = { 12 };

    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
            for (int i = 0; i < 2; i++)
                check_add(&r, types[t], &shapes[k],
                          (int[]){ ND_PERMUTED, i ? ND_PERMUTED : ND_BROADCAST });
}

/* ---- copies ---- */

static void check_contiguous(struct rng *r, enum dtype t, const struct shp *shape,
                             enum nd_layout layout)
{
    struct nd a;
    struct arr *out = NULL;
    char what[SHP_TEXT_MAX + 32];

    nd_make(&a, r, t, shape, layout);
    struct contiguous_params p = { 0 };
    struct out_desc desc = { *shape, t };
    assert_ok(arr_new_op(&out, .op = OP_CONTIGUOUS, .strm = nd_gpu, .in = &a.arr, .n_in = 1,
                         .params = &p, .out = &desc));
    eval_one(out);
    assert_true(out->flags & LAYOUT_ROW);
    snprintf(what, sizeof what, "copy of %s, layout %d", shp_text(shape), (int)layout);
    for (size_t i = 0; i < out->size; i++)
        nd_check(t, element(out, i), nd_get(&a, i), EXACT, what);
    arr_unref(&out);
    nd_free(&a);
}

static void test_copies(void **state)
{
    struct rng r = { 6 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        for (int k = 0; k < 30; k++) {
            struct shp shape;

            nd_random_shape(&shape, &r, k % 5 == 0 ? 8 : 4, 3000);
            check_contiguous(&r, dtypes[i], &shape, (enum nd_layout)rng_below(&r, ND_LAYOUTS));
        }
}

static void check_transposition(struct rng *r, enum dtype t, int n)
{
    static const int32_t sizes[] = { 8, 16, 31, 32, 33, 100, 257 };
    struct shp shape = { n, { 1 } };

    for (int d = 0; d < n; d++)
        shape.d[d] = 1 + rng_below(r, 4);
    shape.d[n - 1] = sizes[rng_below(r, ARRAY_LEN(sizes))];
    shape.d[rng_below(r, n - 1)] = sizes[rng_below(r, ARRAY_LEN(sizes))];
    check_contiguous(r, t, &shape, ND_PERMUTED);
}

static void test_transpositions(void **state)
{
    static const enum dtype types[] = { DT_INT8, DT_FLOAT16, DT_FLOAT32, DT_COMPLEX64 };
    struct rng r = { 7 };
    int64_t old = gate_set_int(GATE_VK_TRANSPOSE, 1);

    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (int k = 0; k < 40; k++)
            check_transposition(&r, types[t], 2 + k % 4);
    gate_set_int(GATE_VK_TRANSPOSE, old);
}

/* Copies into parts of an array leave the rest alone: concatenations of odd pieces. */
static void check_concatenate(struct rng *r, enum dtype t, int axis)
{
    struct nd part[3];
    struct arr *in[3], *out = NULL;
    struct axis_params p = { axis };
    struct out_desc desc = { { 2, { 7, 9 } }, t };
    size_t at = 0;

    desc.shape.d[axis] = 0;
    for (int i = 0; i < 3; i++) {
        struct shp shape = { 2, { 7, 9 } };

        shape.d[axis] = 1 + rng_below(r, 30);
        desc.shape.d[axis] += shape.d[axis];
        nd_make(&part[i], r, t, &shape, (enum nd_layout)rng_below(r, ND_LAYOUTS));
        in[i] = part[i].arr;
    }
    assert_ok(arr_new_op(&out, .op = OP_CONCATENATE, .strm = nd_gpu, .in = in, .n_in = 3,
                         .params = &p, .out = &desc));
    eval_one(out);
    for (int i = 0; i < 3; i++) {
        size_t cols = (size_t)part[i].shape.d[1], all = (size_t)desc.shape.d[1];

        for (size_t k = 0; k < shp_size(&part[i].shape); k++) {
            size_t row = k / cols + (axis == 0 ? at : 0), col = k % cols + (axis == 1 ? at : 0);
            nd_check(t, element(out, row * all + col), nd_get(&part[i], k), EXACT, "concatenate");
        }
        at += (size_t)part[i].shape.d[axis];
        nd_free(&part[i]);
    }
    arr_unref(&out);
}

static void test_parts(void **state)
{
    struct rng r = { 8 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        for (int k = 0; k < 6; k++)
            check_concatenate(&r, dtypes[i], k % 2);
}

static void test_arange(void **state)
{
    static const struct arange_params ranges[] = {
        { 0, 1000, 1 },
        { 5, -200, -3 },
        { 0.5, 100, 0.25 },
        { -7, 1 << 19, 1 },
    };

    (void)state;
    for (size_t i = 1; i < ARRAY_LEN(dtypes); i++)
        for (size_t k = 0; k < ARRAY_LEN(ranges); k++) {
            struct arr *got = NULL, *want = NULL;

            assert_ok(ops_arange(&got, &ranges[k], dtypes[i], nd_gpu));
            assert_ok(ops_arange(&want, &ranges[k], dtypes[i], cpu));
            (void)nd_run(got);
            eval_one(want);
            compare(got, want, "arange");
            arr_unref(&got);
            arr_unref(&want);
        }
}

/* ---- 64-bit indices, on arrays that would not need them ---- */

static void test_wide_indices(void **state)
{
    enum { ROWS = 37, COLS = 50 };
    struct rng r = { 9 };
    struct elem_program program = { .n_in = 1, .n_ins = 1, .n_out = 1, .out = { 1 } };
    struct nest nest = { .ndim = 2, .n_operands = 1, .dim = { ROWS, COLS } };

    (void)state;
    program.in_dtype[0] = DT_FLOAT32;
    program.ins[0] =
        (struct elem_program_ins){ .op = OP_NEGATIVE, .dtype = DT_FLOAT32, .n_args = 1 };
    nest.stride[0][0] = -COLS;
    nest.stride[0][1] = 1;
    for (int strided = 0; strided < 2; strided++) {
        struct shp shape = { 2, { ROWS, COLS } };
        struct elem_job job = { .program = &program, .n = ROWS * COLS, .is_wide = true };
        struct arr *out = NULL;
        struct vk_enc *e;
        struct nd a;

        nd_make(&a, &r, DT_FLOAT32, &shape, ND_ROW);
        eval_one(a.arr);
        assert_ok(arr_new_empty(&out, &shape, DT_FLOAT32));
        assert_ok(arr_alloc(out, nd_gpu->be));
        assert_ok(vk_enc_get(&e, nd_gpu));
        assert_ok(vk_enc_read(e, &job.addr[0], a.arr));
        assert_ok(vk_enc_write(e, &job.addr[1], out));
        job.nest = strided ? &nest : NULL;
        job.addr[0] += strided ? (ROWS - 1) * COLS * 4 : 0;
        assert_ok(elem_dispatch(e, &job));
        assert_ok(nd_gpu->be->sync(nd_gpu));
        atomic_store(&out->status, ARR_AVAILABLE);
        for (size_t i = 0; i < out->size; i++) {
            size_t row = strided ? ROWS - 1 - i / COLS : i / COLS;
            struct num v = nd_get(&a, row * COLS + i % COLS);
            nd_check(DT_FLOAT32, element(out, i), (struct num){ .re = -v.re }, EXACT, "wide");
        }
        arr_unref(&out);
        nd_free(&a);
    }
}

/* More than 2^31 elements, where the device has the memory: a sum with a broadcast row, so that
 * both the flat and the strided kernel see indices beyond 32 bits. */
static void test_beyond_32_bits(void **state)
{
    enum { ROWS = 5, COLS = 1 << 29 };
    const size_t step = 104729, n = (size_t)ROWS * COLS;
    const int32_t shape[2] = { ROWS, COLS };
    struct arr *row = NULL, *ones = NULL, *sum = NULL, *twice = NULL;
    const uint8_t *v = NULL;

    (void)state;
    if (!room_on(nd_gpu->be, n, 8 * n))
        skip();
    assert_ok(ops_arange(&row, &(struct arange_params){ 0, COLS, 1 }, DT_UINT8, nd_gpu));
    assert_ok(ops_fill(&ones, (struct ints){ shape, 2 }, 1, DT_UINT8, nd_gpu));
    assert_ok(ops_binary(&sum, OP_ADD, ones, row, nd_gpu));
    eval_one(sum);
    assert_ok(ops_binary(&twice, OP_ADD, sum, sum, nd_gpu));
    eval_one(twice);
    assert_ok(arr_host((const void **)&v, twice));
    for (size_t i = 0; i < n; i += step)
        assert_int_equal(v[i], (uint8_t)(2 * (1 + i % COLS)));
    assert_int_equal(v[n - 1], (uint8_t)(2 * COLS));
    arr_unref(&row);
    arr_unref(&ones);
    arr_unref(&sum);
    arr_unref(&twice);
}

/* ---- fused and separate kernels ---- */

static const enum op_id chain_ops[] = {
    OP_ADD, OP_MULTIPLY, OP_SUBTRACT, OP_MAXIMUM, OP_DIVIDE, OP_POWER, OP_LOG_ADD_EXP, OP_ARCTAN2,
};
static const enum op_id step_ops[] = {
    OP_EXP, OP_SIN, OP_TANH, OP_SQRT, OP_NEGATIVE, OP_SIGMOID, OP_LOG1P, OP_ERF, OP_ABS, OP_ROUND,
};

/* A chain of random ops over a and b, the same for the same seed. */
static struct arr *chain(uint64_t seed, struct arr *a, struct arr *b)
{
    struct rng r = { seed };
    struct arr *v = arr_ref(a);

    for (int i = 0; i < 8; i++) {
        struct arr *next = NULL;

        if (rng_one_in(&r, 6))
            assert_ok(ops_astype(&next, v, rng_one_in(&r, 2) ? DT_FLOAT16 : DT_FLOAT32, nd_gpu));
        else if (rng_one_in(&r, 2))
            assert_ok(ops_unary(&next, step_ops[rng_below(&r, ARRAY_LEN(step_ops))], v, nd_gpu));
        else
            assert_ok(
                ops_binary(&next, chain_ops[rng_below(&r, ARRAY_LEN(chain_ops))], v, b, nd_gpu));
        arr_unref(&v);
        v = next;
    }
    return v;
}

static void check_chain(struct rng *r, enum dtype t, uint64_t seed)
{
    struct shp shape;
    struct nd a, b;

    nd_random_shape(&shape, r, 4, 4000);
    nd_make(&a, r, t, &shape, (enum nd_layout)rng_below(r, ND_LAYOUTS));
    nd_make(&b, r, t, &shape, (enum nd_layout)rng_below(r, ND_LAYOUTS));
    int64_t old = gate_set_int(GATE_PLAN_FUSE, 1);
    uint64_t before = stat_get(STAT_FUSED_GROUPS);
    struct arr *fused = chain(seed, a.arr, b.arr);
    eval_one(fused);
    assert_true(stat_get(STAT_FUSED_GROUPS) > before);
    gate_set_int(GATE_PLAN_FUSE, 0);
    struct arr *separate = chain(seed, a.arr, b.arr);
    eval_one(separate);
    gate_set_int(GATE_PLAN_FUSE, old);
    assert_int_equal(fused->dtype, separate->dtype);
    for (size_t i = 0; i < fused->size; i++) {
        struct num x = element(fused, i), y = element(separate, i);
        bool same = memcmp(&x.re, &y.re, sizeof x.re) == 0 || (isnan(x.re) && isnan(y.re));
        if (!same)
            fail_msg("chain %llu: element %zu is %.9g fused, %.9g separate",
                     (unsigned long long)seed, i, x.re, y.re);
    }
    arr_unref(&fused);
    arr_unref(&separate);
    nd_free(&a);
    nd_free(&b);
}

static void test_fusion_changes_no_bit(void **state)
{
    static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16 };
    struct rng r = { 10 };

    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (uint64_t seed = 1; seed <= 20; seed++)
            check_chain(&r, types[t], seed);
}

/* ---- caching ---- */

static void test_kernels_are_built_once(void **state)
{
    struct rng r = { 11 };
    struct shp shape = { 1, { 1000 } };
    uint64_t modules = 0, dispatches = stat_get(STAT_DISPATCHES);

    (void)state;
    for (int i = 0; i < 5; i++) {
        check_add(&r, DT_FLOAT32, &shape, (int[]){ ND_ROW, ND_ROW });
        if (i == 0)
            modules = stat_get(STAT_MODULES_EMITTED);
    }
    assert_int_equal(stat_get(STAT_MODULES_EMITTED), modules);
    assert_true(stat_get(STAT_DISPATCHES) >= dispatches + 5);
}

static int open_streams(void **state)
{
    return nd_open(state) != 0 || strm_new(&cpu, (struct dev){ DEV_CPU, 0 }) != ERR_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_and_dtype),
        cmocka_unit_test(test_every_cast),
        cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_one_element_at_a_time),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_large_broadcasts),
        cmocka_unit_test(test_permuted_operands),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_transpositions),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_arange),
        cmocka_unit_test(test_wide_indices),
        cmocka_unit_test(test_beyond_32_bits),
        cmocka_unit_test(test_fusion_changes_no_bit),
        cmocka_unit_test(test_kernels_are_built_once),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests_name("elementwise_vk", tests, open_streams, NULL);
}
