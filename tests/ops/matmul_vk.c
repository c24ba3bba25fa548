/* Matrix products on the GPU against double references.
 *
 * Most operands are small integers: their sums are exact in float32, so results must agree to the
 * last bit, rounding to 16 bits included. Every case must have dispatched something. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/array.h"
#include "graph/memory.h"
#include "graph/op.h"
#include "ops/ops.h"
#include "support/testing.h"

enum layout { ROW, COL, PADDED, SHIFTED, SPREAD, FLIPPED, SAME_ROWS, SCALAR, LAYOUTS };

/* Which batch dimensions an operand does not have of its own. */
enum share { OWN, SHARE_OUTER, SHARE_INNER, SHARE_ALL };

struct side {
    enum layout layout;
    enum share share;
};

struct product_case {
    enum dtype dtype;
    int32_t m, n, k;
    int32_t batch[2]; /* 0: as 1, and without a dimension if both are */
    struct side a, b, c;
    bool is_addmm, is_gather;
    float alpha, beta;
    bool is_real; /* random reals and a tolerance instead of integers */
};

struct operand {
    struct arr *arr;
    double *value; /* of the storage, two per element */
    int64_t stride[4], offset;
};

static struct strm *gpu;
static struct rng rng = { 7 };

/* ---- operands ---- */

static void matrix_strides(struct operand *o, enum layout layout, int32_t rows, int32_t cols)
{
    static const struct {
        int64_t col, pad;
    } by_row[LAYOUTS] = { [ROW] = { 1, 0 },    [PADDED] = { 1, 3 },  [SHIFTED] = { 1, 0 },
                          [SPREAD] = { 2, 1 }, [FLIPPED] = { 1, 0 }, [SAME_ROWS] = { 1, 0 } };
    int64_t col = by_row[layout].col, row = cols * col + by_row[layout].pad;

    if (layout == COL) {
        row = 1;
        col = rows;
    } else if (layout == FLIPPED) {
        o->offset = (rows - 1) * row;
        row = -row;
    } else if (layout == SAME_ROWS) {
        row = 0;
    }
    if (layout == SHIFTED)
        o->offset = 1;
    o->stride[2] = layout == SCALAR ? 0 : row;
    o->stride[3] = col;
}

static double random_value(bool is_real)
{
    return is_real ? (double)rng_below(&rng, 2001) / 1000.0 - 1.0 : rng_below(&rng, 7) - 3;
}

/* Writes v[0..1] in the dtype and reads back what it holds. */
static void store(void *to, double *v, enum dtype t)
{
    float f = (float)v[0];
    uint16_t h;

    if (t == DT_FLOAT32 || t == DT_COMPLEX64) {
        float both[2] = { f, (float)v[1] };
        memcpy(to, both, dt_size(t));
        v[0] = both[0];
        v[1] = t == DT_COMPLEX64 ? both[1] : 0;
        return;
    }
    h = t == DT_FLOAT16 ? dt_f32_to_f16(f) : dt_f32_to_bf16(f);
    memcpy(to, &h, sizeof h);
    v[0] = t == DT_FLOAT16 ? dt_f16_to_f32(h) : dt_bf16_to_f32(h);
    v[1] = 0;
}

static struct arr *new_storage(struct operand *o, int32_t n, const struct product_case *c)
{
    size_t item = dt_size(c->dtype);
    char *bytes = calloc((size_t)n, item);
    struct arr *a = NULL;

    o->value = calloc((size_t)n, 2 * sizeof(double));
    assert_non_null(bytes);
    assert_non_null(o->value);
    for (int32_t i = 0; i < n; i++) {
        double *v = o->value + 2 * i;
        v[0] = random_value(c->is_real);
        v[1] = random_value(c->is_real);
        store(bytes + (size_t)i * item, v, c->dtype);
    }
    assert_ok(arr_new_data(&a, bytes, &(struct shp){ 1, { n } }, c->dtype));
    free(bytes);
    return a;
}

/* Leading dimensions of size 1 are left out when there is no batch. */
static struct shp shape_of(const struct product_case *c, int32_t rows, int32_t cols)
{
    int32_t outer = c->batch[0] ? c->batch[0] : 1, inner = c->batch[1] ? c->batch[1] : 1;

    if (outer == 1 && inner == 1)
        return (struct shp){ 2, { rows, cols } };
    return (struct shp){ 4, { outer, inner, rows, cols } };
}

static void make_operand(struct operand *o, const struct product_case *c, struct side side,
                         const int32_t dim[2])
{
    struct shp shape = shape_of(c, dim[0], dim[1]);
    int32_t inner = MAX(c->batch[1], 1), outer = MAX(c->batch[0], 1);
    struct arr *storage;

    memset(o, 0, sizeof *o);
    matrix_strides(o, side.layout, dim[0], dim[1]);
    int64_t span = (int64_t)llabs(o->stride[2]) * (dim[0] - 1) + o->stride[3] * (dim[1] - 1) + 1 +
                   (side.layout == SHIFTED);
    span = MAX(span, 1);
    o->stride[1] = side.share & SHARE_INNER ? 0 : span;
    o->stride[0] = side.share & SHARE_OUTER ? 0 : side.share & SHARE_INNER ? span : span * inner;
    storage = new_storage(o, (int32_t)(span * inner * outer + 1), c);
    struct ops_as_strided p = { .shape = { shape.d, (size_t)shape.ndim },
                                .strides = o->stride + 4 - shape.ndim,
                                .n_strides = (size_t)shape.ndim,
                                .offset = (size_t)o->offset };
    assert_ok(ops_as_strided(&o->arr, storage, &p, gpu));
    arr_unref(&storage);
}

static void free_operand(struct operand *o)
{
    arr_unref(&o->arr);
    free(o->value);
}

static const double *at(const struct operand *o, const int64_t i[4])
{
    int64_t index = o->offset;

    for (int d = 0; d < 4; d++)
        index += i[d] * o->stride[d];
    return o->value + 2 * index;
}

/* The numbers by which a gather's product i finds the matrices of its operands. */
static uint32_t matrix_number(const struct product_case *c, int64_t i, int operand)
{
    int64_t n = (int64_t)MAX(c->batch[0], 1) * MAX(c->batch[1], 1);

    return (uint32_t)((operand ? i * i + 2 : 5 * i + 1) % n);
}

static struct arr *new_numbers(const struct product_case *c, int operand)
{
    struct shp shape = shape_of(c, 1, 1);
    uint32_t numbers[64];
    struct arr *out = NULL;

    shape.ndim -= 2;
    assert_true(shp_size(&shape) <= ARRAY_LEN(numbers));
    for (size_t i = 0; i < shp_size(&shape); i++)
        numbers[i] = matrix_number(c, (int64_t)i, operand);
    assert_ok(arr_new_data(&out, numbers, &shape, DT_UINT32));
    return out;
}

/* ---- reference ---- */

/* Batch indices of an operand for those of the result. */
static void batch_of(int64_t out[2], const struct product_case *c, const int64_t i[2], int operand)
{
    int64_t inner = MAX(c->batch[1], 1), number = i[0] * inner + i[1];

    if (c->is_gather)
        number = matrix_number(c, number, operand);
    out[0] = number / inner;
    out[1] = number % inner;
}

/* Element i of the result before rounding to the dtype. */
static void reference(double out[2], const struct product_case *c, const struct operand o[3],
                      const int64_t i[4])
{
    double re = 0, im = 0;
    int64_t in[2][2];

    batch_of(in[0], c, i, 0);
    batch_of(in[1], c, i, 1);
    for (int32_t k = 0; k < c->k; k++) {
        const double *a = at(&o[0], (int64_t[]){ in[0][0], in[0][1], i[2], k });
        const double *b = at(&o[1], (int64_t[]){ in[1][0], in[1][1], k, i[3] });
        re += a[0] * b[0] - a[1] * b[1];
        im += a[0] * b[1] + a[1] * b[0];
    }
    if (c->is_addmm) {
        const double *old = at(&o[2], i);
        re = c->alpha * re + c->beta * old[0];
        im = c->alpha * im + c->beta * old[1];
    }
    out[0] = re;
    out[1] = im;
}

/* What a result of the dtype may be off by: nothing for integers, else the rounding of the result
 * and of sums in float32. */
static double tolerance(const struct product_case *c, double value)
{
    static const double eps[DT_COUNT] = { [DT_FLOAT32] = 0x1p-24,
                                          [DT_COMPLEX64] = 0x1p-24,
                                          [DT_FLOAT16] = 0x1p-11,
                                          [DT_BFLOAT16] = 0x1p-8 };

    return c->is_real ? eps[c->dtype] * fabs(value) + 0x1p-23 * (c->k + 64) : 0;
}

static void check_element(const struct product_case *c, const double want[2], const void *got,
                          const int64_t i[4])
{
    double should[2] = { want[0], want[1] }, have[2] = { 0, 0 };
    char bits[8];

    if (!c->is_real)
        store(bits, should, c->dtype);
    if (c->dtype == DT_FLOAT16 || c->dtype == DT_BFLOAT16) {
        uint16_t h;
        memcpy(&h, got, sizeof h);
        have[0] = c->dtype == DT_FLOAT16 ? dt_f16_to_f32(h) : dt_bf16_to_f32(h);
    } else {
        float f[2] = { 0, 0 };
        memcpy(f, got, dt_size(c->dtype));
        have[0] = f[0];
        have[1] = f[1];
    }
    for (int part = 0; part < 2; part++)
        if (!(fabs(have[part] - should[part]) <= tolerance(c, should[part])))
            fail_msg("%s %dx%dx%d, layouts %d %d, shares %d %d, addmm %d (%g, %g), variant %s: "
                     "[%d,%d,%d,%d] is %.9g, should be %.9g",
                     dt_name(c->dtype), c->m, c->n, c->k, (int)c->a.layout, (int)c->b.layout,
                     (int)c->a.share, (int)c->b.share, c->is_addmm, (double)c->alpha,
                     (double)c->beta, gate_text(GATE_VK_MATMUL_VARIANT), (int)i[0], (int)i[1],
                     (int)i[2], (int)i[3], have[part], should[part]);
}

static void check_result(const struct product_case *c, const struct operand o[3], struct arr *out)
{
    const char *host = NULL;
    int64_t size[4] = { MAX(c->batch[0], 1), MAX(c->batch[1], 1), c->m, c->n }, i[4], at_byte = 0;

    assert_true(out->flags & LAYOUT_ROW);
    assert_ok(arr_host((const void **)&host, out));
    for (i[0] = 0; i[0] < size[0]; i[0]++)
        for (i[1] = 0; i[1] < size[1]; i[1]++)
            for (int64_t element = 0; element < size[2] * size[3]; element++) {
                double want[2];
                i[2] = element / size[3];
                i[3] = element % size[3];
                reference(want, c, o, i);
                check_element(c, want, host + at_byte, i);
                at_byte += (int64_t)dt_size(c->dtype);
            }
}

/* ---- one case ---- */

static enum err new_product(struct arr **out, const struct product_case *c,
                            const struct operand o[3])
{
    struct addmm_params p = { c->alpha, c->beta };
    struct gather_mm_params gather = { 0 };
    struct out_desc d = { shape_of(c, c->m, c->n), c->dtype };
    struct arr *in[4] = { o[0].arr, o[1].arr, o[2].arr, NULL };
    enum err err;

    if (!c->is_gather)
        return arr_new_op(out, .op = c->is_addmm ? OP_ADDMM : OP_MATMUL, .strm = gpu, .in = in,
                          .n_in = c->is_addmm ? 3 : 2, .params = c->is_addmm ? &p : NULL,
                          .out = &d);
    in[2] = new_numbers(c, 0);
    in[3] = new_numbers(c, 1);
    err = arr_new_op(out, .op = OP_GATHER_MM, .strm = gpu, .in = in, .n_in = 4, .params = &gather,
                     .out = &d);
    arr_unref(&in[2]);
    arr_unref(&in[3]);
    return err;
}

static void run_case(const struct product_case *c)
{
    struct operand o[3] = { 0 };
    uint64_t before = stat_get(STAT_DISPATCHES);
    struct arr *out = NULL;

    make_operand(&o[0], c, c->a, (int32_t[]){ c->m, c->k });
    make_operand(&o[1], c, c->b, (int32_t[]){ c->k, c->n });
    if (c->is_addmm)
        make_operand(&o[2], c, c->c, (int32_t[]){ c->m, c->n });
    assert_ok(new_product(&out, c, o));
    assert_ok(eval_arrays(&out, 1, false));
    if (out->size) {
        assert_true(stat_get(STAT_DISPATCHES) > before);
        check_result(c, o, out);
    }
    arr_unref(&out);
    for (int i = 0; i < 3; i++)
        free_operand(&o[i]);
}

static const enum dtype dtypes[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16, DT_COMPLEX64 };

static void for_all_dtypes(struct product_case c)
{
    for (size_t t = 0; t < ARRAY_LEN(dtypes); t++) {
        c.dtype = dtypes[t];
        run_case(&c);
    }
}

/* ---- tests ---- */

static const struct {
    int32_t m, n, k;
} sizes[] = {
    { 1, 1, 1 },    { 1, 1, 1000 }, { 1, 17, 64 },    { 17, 1, 64 },    { 1, 130, 1000 },
    { 130, 1, 17 }, { 4, 4, 3 },    { 8, 200, 64 },   { 200, 7, 1000 }, { 16, 16, 16 },
    { 33, 31, 3 },  { 9, 65, 17 },  { 64, 64, 64 },   { 65, 63, 1000 }, { 100, 40, 1 },
    { 10, 12, 0 },  { 1, 5, 0 },    { 128, 132, 40 }, { 3, 300, 20 },   { 300, 2, 33 },
};

/* Every size with both operands either way round. The dtypes take turns: a pipeline per dtype,
 * layout and tile is what the time of these tests goes into. */
static void test_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (size_t way = 0; way < 4; way++)
            run_case(&(struct product_case){ .dtype = dtypes[(i + way) % 4],
                                             .m = sizes[i].m,
                                             .n = sizes[i].n,
                                             .k = sizes[i].k,
                                             .a.layout = way & 1 ? COL : ROW,
                                             .b.layout = way & 2 ? COL : ROW });
}

static void test_layouts(void **state)
{
    static const int32_t small[][3] = { { 37, 45, 29 }, { 3, 50, 40 }, { 40, 2, 32 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(small); i++)
        for (int a = ROW; a <= SCALAR; a++)
            for (int b = ROW; b <= SCALAR; b++)
                run_case(&(struct product_case){ .dtype = dtypes[i],
                                                 .m = small[i][0],
                                                 .n = small[i][1],
                                                 .k = small[i][2],
                                                 .a.layout = (enum layout)a,
                                                 .b.layout = (enum layout)b });
}

static void test_batches(void **state)
{
    static const int32_t small[][3] = { { 5, 20, 12 }, { 1, 40, 24 }, { 34, 18, 9 }, { 20, 1, 8 } };
    static const enum layout layouts[] = { ROW, COL, SPREAD };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(small); i++)
        for (int a = OWN; a <= SHARE_ALL; a++)
            for (int b = OWN; b <= SHARE_ALL; b++)
                run_case(&(struct product_case){ .dtype = dtypes[(i + 1) % 4],
                                                 .m = small[i][0],
                                                 .n = small[i][1],
                                                 .k = small[i][2],
                                                 .batch = { 2, 3 },
                                                 .a = { layouts[(a + (int)i) % 3], (enum share)a },
                                                 .b = { layouts[b % 3], (enum share)b } });
    /* Vectors apart from each other that become the rows of a matrix, which is packed. */
    for_all_dtypes((struct product_case){
        .m = 1, .n = 40, .k = 24, .batch = { 2, 12 }, .a.layout = SPREAD, .b.share = SHARE_INNER });
}

static void test_gathers(void **state)
{
    static const int32_t small[][3] = { { 5, 20, 12 }, { 1, 40, 24 }, { 34, 18, 9 }, { 20, 1, 8 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(small); i++)
        for (int a = ROW; a <= SCALAR; a++)
            run_case(&(struct product_case){
                .dtype = dtypes[(i + (size_t)a) % 3],
                .m = small[i][0],
                .n = small[i][1],
                .k = small[i][2],
                .batch = { 3, 2 },
                .a = { (enum layout)a, (enum share)(a % 4) },
                .b = { (enum layout)((a + 3) % LAYOUTS), (enum share)((size_t)a + i) % 4 },
                .is_gather = true });
    run_case(&(struct product_case){
        .dtype = DT_FLOAT32, .m = 1, .n = 3, .k = 70000, .batch = { 1, 2 }, .is_gather = true });
}

/* Matrices that are chosen are read where they lie. */
static void test_gather_copies_nothing(void **state)
{
    enum { MATRICES = 64, SIDE = 256, PAIRS = 48 };
    struct arr *in[4] = { NULL }, *out = NULL;
    struct gather_mm_params p = { 0 };
    struct out_desc d = { { 3, { PAIRS, 1, SIDE } }, DT_FLOAT32 };
    struct operand a = { 0 }, b = { 0 };
    struct product_case c = { .dtype = DT_FLOAT32, .batch = { 1, PAIRS } };
    size_t before;

    (void)state;
    make_operand(&a, &c, (struct side){ ROW, OWN }, (int32_t[]){ 1, SIDE });
    c.batch[1] = MATRICES;
    make_operand(&b, &c, (struct side){ ROW, OWN }, (int32_t[]){ SIDE, SIDE });
    c.batch[1] = PAIRS;
    assert_ok(eval_arrays((struct arr *[]){ a.arr, b.arr }, 2, false));
    in[0] = a.arr;
    in[1] = b.arr;
    in[2] = new_numbers(&c, 0);
    in[3] = new_numbers(&c, 1);
    assert_ok(arr_new_op(&out, .op = OP_GATHER_MM, .strm = gpu, .in = in, .n_in = 4, .params = &p,
                         .out = &d));
    memory_reset_peak();
    before = memory_active();
    assert_ok(eval_arrays(&out, 1, false));
    assert_true(memory_peak() - before < (size_t)4 * SIDE * SIDE * sizeof(float));
    arr_unref(&out);
    arr_unref(&in[2]);
    arr_unref(&in[3]);
    free_operand(&a);
    free_operand(&b);
}

static void test_addmm(void **state)
{
    static const float factors[][2] = { { 1, 1 }, { 2, 0.5f }, { -1, 0 }, { 0, 2 } };
    static const int32_t small[][3] = { { 20, 37, 16 }, { 2, 70, 33 }, { 50, 3, 64 }, { 6, 9, 0 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(small); i++)
        for (int c = ROW; c <= SCALAR; c++)
            for (int share = OWN; share <= SHARE_ALL; share++) {
                const float *f = factors[(c + share) % 4];
                run_case(
                    &(struct product_case){ .dtype = dtypes[(i + (size_t)(c == ROW)) % 4],
                                            .m = small[i][0],
                                            .n = small[i][1],
                                            .k = small[i][2],
                                            .batch = { 3, share % 2 ? 2 : 0 },
                                            .b.share = (enum share)(share % 2 ? SHARE_ALL : OWN),
                                            .c = { (enum layout)c, (enum share)share },
                                            .is_addmm = true,
                                            .alpha = f[0],
                                            .beta = f[1] });
            }
}

/* Longer than a software device's loops: split over workgroups, added up by a second kernel. */
static void test_long_k(void **state)
{
    static const int32_t small[][2] = { { 1, 1 }, { 3, 5 }, { 20, 33 }, { 40, 2 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(small); i++)
        for (size_t way = 0; way < 4; way++)
            run_case(&(struct product_case){ .dtype = dtypes[(i + way) % 4],
                                             .m = small[i][0],
                                             .n = small[i][1],
                                             .k = 70000,
                                             .a.layout = way & 1 ? COL : ROW,
                                             .b.layout = way & 2 ? COL : ROW,
                                             .is_addmm = way == 3,
                                             .alpha = 1,
                                             .beta = 2 });
    run_case(&(struct product_case){ .dtype = DT_FLOAT32, .m = 9, .n = 9, .k = 1500000 });
    run_case(&(struct product_case){ .dtype = DT_BFLOAT16, .m = 1, .n = 2, .k = 1500000 });
    run_case(&(struct product_case){
        .dtype = DT_FLOAT32, .m = 2, .n = 1, .k = 1500000, .a.layout = SHIFTED });
}

static void test_reals(void **state)
{
    static const int32_t ks[] = { 3, 64, 1000, 70000 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ks); i++)
        for (int wide = 0; wide < 2; wide++)
            for_all_dtypes((struct product_case){
                .m = wide ? 24 : 2, .n = 19, .k = ks[i], .b.layout = COL, .is_real = true });
}

static void run_variant(const char *name, enum dtype t)
{
    static const int32_t small[][3] = { { 3, 90, 136 }, { 140, 150, 72 }, { 90, 80, 101 } };
    const char *old = gate_set_text(GATE_VK_MATMUL_VARIANT, name);

    for (size_t i = 0; i < ARRAY_LEN(small); i++)
        for (int way = 1; way < 3; way++)
            run_case(&(struct product_case){ .dtype = t,
                                             .m = small[i][0],
                                             .n = small[i][1],
                                             .k = small[i][2],
                                             .batch = { 1, i == 1 ? 2 : 1 },
                                             .a.layout = way & 1 ? COL : ROW,
                                             .b.layout = way & 2 ? COL : ROW,
                                             .is_addmm = i == 2,
                                             .is_gather = i == 1,
                                             .alpha = 1,
                                             .beta = 2 });
    gate_set_text(GATE_VK_MATMUL_VARIANT, old);
}

/* Each variant where it fits, whatever the table would choose. */
static void test_variants(void **state)
{
    static const char *const names[] = {
        "gemv_k_short", "gemv_k_rows4", "gemv_k_rows1", "gemv_k_group",   "gemv_x_wide",
        "gemv_x",       "tiled_64x64",  "tiled_32x32",  "tiled_64x64_k8", "tiled_128x128",
    };

    (void)state;
    for (size_t v = 0; v < ARRAY_LEN(names); v++)
        run_variant(names[v], dtypes[v % 4]);
    run_variant("tiled_32x32_k8", DT_COMPLEX64);
    run_variant("tiled:64,32,8,4,4", DT_BFLOAT16);
    run_variant("gemv:16,2,64", DT_BFLOAT16);
}

static void test_coop_variants(void **state)
{
    static const char *const names[] = { "coop_128x128_k64", "coop_128x128",     "coop_64x64",
                                         "coop_32x64",       "coop:2,2,4,4,2,2", "coop:1,1,3,5,3,2",
                                         "coop:4,2,4,4,2,1" };

    (void)state;
    for (size_t v = 0; v < ARRAY_LEN(names); v++) {
        run_variant(names[v], DT_FLOAT16);
        run_variant(names[v], DT_BFLOAT16);
    }
}

static void test_without_gemv(void **state)
{
    int64_t old = gate_set_int(GATE_VK_GEMV, 0);

    (void)state;
    for_all_dtypes((struct product_case){ .m = 1, .n = 50, .k = 30 });
    for_all_dtypes((struct product_case){ .m = 50, .n = 1, .k = 30, .a.layout = COL });
    gate_set_int(GATE_VK_GEMV, old);
}

static void test_empty(void **state)
{
    (void)state;
    run_case(&(struct product_case){ .dtype = DT_FLOAT32, .m = 0, .n = 4, .k = 3 });
    run_case(&(struct product_case){ .dtype = DT_FLOAT32, .m = 4, .n = 0, .k = 0 });
}

static int open_stream(void **state)
{
    (void)state;
    return strm_new(&gpu, (struct dev){ DEV_GPU, 0 }) == ERR_OK ? 0 : 1;
}

static void test_no_messages(void **state)
{
    (void)state;
    assert_int_equal(stat_get(STAT_VALIDATION_MESSAGES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_batches),      cmocka_unit_test(test_addmm),
        cmocka_unit_test(test_long_k),       cmocka_unit_test(test_reals),
        cmocka_unit_test(test_variants),     cmocka_unit_test(test_coop_variants),
        cmocka_unit_test(test_without_gemv), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_gathers),      cmocka_unit_test(test_gather_copies_nothing),
        cmocka_unit_test(test_no_messages),
    };

    return cmocka_run_group_tests_name("matmul_vk", tests, open_stream, NULL);
}
