/* Views, copies and movements: the shared ops of backend/common on the CPU's strided copy. */
#include "backend/backend.h"
#include "eval/eval.h"
#include "support/arrays.h"

static const enum dtype some_types[] = { DT_UINT8, DT_BFLOAT16, DT_FLOAT32, DT_COMPLEX64 };

/* 0, 1, 2, ... in the given layout. */
static struct arr *counting(const struct shp *s, enum dtype t, enum layout layout)
{
    size_t n = shp_size(s);
    double complex *v = mem_alloc_array(n + 1, sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = (double)(i % 200);
    struct arr *a = arr_of_layout(v, s, t, layout);
    mem_free(v);
    return a;
}

static void check_equal(struct arr *a, const double complex *want)
{
    double complex *got = arr_values(a);

    for (size_t i = 0; i < a->size; i++)
        if (got[i] != want[i])
            fail_msg("element %zu is %g, not %g", i, creal(got[i]), creal(want[i]));
    mem_free(got);
}

/* Flags and span of an evaluated array are what its strides imply. */
static void check_layout(const struct arr *a)
{
    struct shp s;

    arr_shape(&s, a);
    unsigned implied = shp_layout_flags(&s, a->strides, a->data_size);
    assert_int_equal(a->flags & (LAYOUT_ROW | LAYOUT_COL), implied & (LAYOUT_ROW | LAYOUT_COL));
    assert_int_equal(a->data_size, shp_span(&s, a->strides));
}

static void eval(struct arr *a)
{
    assert_ok(eval_arrays(&a, 1, false));
}

/* Element of a row-major array of shape s at the coordinates. */
static double complex at(const double complex *v, const struct shp *s, const int *c)
{
    size_t i = 0;

    for (int d = 0; d < s->ndim; d++)
        i = i * (size_t)s->d[d] + (size_t)c[d];
    return v[i];
}

/* ---- pure views ---- */

static void test_transpose(void **state)
{
    const struct shp *s = SHAPE(3, 4, 5);

    (void)state;
    for (int l = 0; l < LAY_COUNT; l++) {
        struct arr *a = counting(s, DT_INT32, (enum layout)l), *t = NULL;
        double complex *v = arr_values(a), want[60];
        int32_t axes[] = { 2, 0, 1 };
        assert_ok(ops_transpose(&t, a, (struct ints){ axes, 3 }, test_stream()));
        eval(t);
        assert_ptr_equal(t->buf, a->buf);
        check_layout(t);
        for (int i = 0; i < 60; i++)
            want[i] = at(v, s, (int[]){ i / 4 % 3, i % 4, i / 12 });
        check_equal(t, want);
        mem_free(v);
        arr_unref(&t);
        arr_unref(&a);
    }
}

static void test_slice(void **state)
{
    static const struct {
        int start[2], stop[2], step[2];
    } cases[] = {
        { { 0, 0 }, { 6, 7 }, { 2, 3 } },     { { 1, 2 }, { 5, 6 }, { 1, 1 } },
        { { 5, 6 }, { -7, -8 }, { -1, -1 } }, { { 4, 1 }, { 0, 6 }, { -2, 2 } },
        { { 2, 0 }, { 3, 7 }, { 1, 1 } },
    };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++)
        for (int l = 0; l < LAY_COUNT; l++) {
            struct arr *a = counting(SHAPE(6, 7), DT_FLOAT32, (enum layout)l), *out = NULL;
            double complex *v = arr_values(a), want[42];
            struct ops_slice p = { { cases[k].start, 2 },
                                   { cases[k].stop, 2 },
                                   { cases[k].step, 2 } };
            assert_ok(ops_slice(&out, a, &p, test_stream()));
            eval(out);
            assert_ptr_equal(out->buf, a->buf);
            check_layout(out);
            for (int i = 0; i < (int)out->size; i++)
                want[i] = at(v, SHAPE(6, 7),
                             (int[]){ cases[k].start[0] + i / out->shape[1] * cases[k].step[0],
                                      cases[k].start[1] + i % out->shape[1] * cases[k].step[1] });
            check_equal(out, want);
            mem_free(v);
            arr_unref(&out);
            arr_unref(&a);
        }
}

static void test_split(void **state)
{
    struct arr *a = counting(SHAPE(3, 8), DT_INT16, LAY_TRANSPOSED), *parts[3];
    double complex *v = arr_values(a);
    int32_t cuts[] = { 2, 5 };

    (void)state;
    assert_ok(ops_split_sections(parts, a, (struct ints){ cuts, 2 }, 1, test_stream()));
    for (int p = 0, first = 0; p < 3; p++) {
        double complex *got = arr_values(parts[p]);
        check_layout(parts[p]);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < parts[p]->shape[1]; j++)
                assert_true(got[i * parts[p]->shape[1] + j] == v[i * 8 + first + j]);
        first += parts[p]->shape[1];
        mem_free(got);
        arr_unref(&parts[p]);
    }
    mem_free(v);
    arr_unref(&a);
}

static void test_broadcast(void **state)
{
    struct arr *a = counting(SHAPE(3, 1), DT_FLOAT32, LAY_DENSE), *out = NULL;
    int32_t shape[] = { 2, 3, 4 };
    double complex want[24];

    (void)state;
    assert_ok(ops_broadcast_to(&out, a, (struct ints){ shape, 3 }, test_stream()));
    eval(out);
    assert_ptr_equal(out->buf, a->buf);
    assert_int_equal(out->data_size, 3);
    assert_true(out->flags & LAYOUT_CONTIGUOUS);
    assert_false(out->flags & LAYOUT_ROW);
    for (int i = 0; i < 24; i++)
        want[i] = i / 4 % 3;
    check_equal(out, want);
    arr_unref(&out);
    arr_unref(&a);
}

static void test_expand_and_squeeze(void **state)
{
    struct arr *a = counting(SHAPE(2, 3), DT_FLOAT32, LAY_REVERSED), *up = NULL, *down = NULL;
    double complex *v = arr_values(a);
    int32_t axes[] = { 0, 2 };

    (void)state;
    assert_ok(ops_expand_dims(&up, a, (struct ints){ axes, 2 }, test_stream()));
    assert_ok(ops_squeeze(&down, up, (struct ints){ axes, 2 }, test_stream()));
    check_equal(up, v);
    check_equal(down, v);
    assert_ptr_equal(down->buf, a->buf);
    assert_int_equal(up->ndim, 4);
    assert_int_equal(up->strides[0], 1);
    mem_free(v);
    arr_unref(&down);
    arr_unref(&up);
    arr_unref(&a);
}

static void test_as_strided_needs_dense(void **state)
{
    struct arr *a = counting(SHAPE(4, 4), DT_FLOAT32, LAY_TRANSPOSED), *out = NULL;
    struct as_strided_params p = { .n = 1, .d = { { 4, 1 } } };

    (void)state;
    assert_ok(arr_new_op(&out, .op = OP_AS_STRIDED, .strm = test_stream(), .in = &a, .n_in = 1,
                         .params = &p, .out = &(struct out_desc){ *SHAPE(4), DT_FLOAT32 }));
    assert_fails(ERR_RUNTIME, eval_arrays(&out, 1, false));
    arr_unref(&out);
    arr_unref(&a);
}

static void test_overlapping_windows(void **state)
{
    struct arr *a = counting(SHAPE(6), DT_FLOAT32, LAY_DENSE), *out = NULL, *twice = NULL;
    struct as_strided_params p = { .offset = 1, .n = 2, .d = { { 4, 1 }, { 2, 1 } } };
    double complex want[8];

    (void)state;
    assert_ok(arr_new_op(&out, .op = OP_AS_STRIDED, .strm = test_stream(), .in = &a, .n_in = 1,
                         .params = &p, .out = &(struct out_desc){ *SHAPE(4, 2), DT_FLOAT32 }));
    assert_ok(ops_binary(&twice, OP_ADD, out, out, test_stream()));
    for (int i = 0; i < 8; i++)
        want[i] = 2 * (1 + i / 2 + i % 2);
    check_equal(twice, want);
    arr_unref(&twice);
    arr_unref(&out);
    arr_unref(&a);
}

/* ---- views that copy when they must ---- */

static void test_reshape(void **state)
{
    static const struct shp shapes[] = {
        { 1, { 120 } },     { 2, { 12, 10 } },    { 4, { 2, 3, 4, 5 } }, { 5, { 2, 1, 12, 1, 5 } },
        { 3, { 8, 5, 3 } }, { 3, { 1, 120, 1 } },
    };

    (void)state;
    for (int l = 0; l < LAY_COUNT; l++)
        for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
            for (size_t t = 0; t < ARRAY_LEN(some_types); t++) {
                struct arr *a = counting(SHAPE(6, 4, 5), some_types[t], (enum layout)l),
                           *out = NULL;
                double complex *v = arr_values(a);
                assert_ok(ops_reshape(&out, a, (struct ints){ shapes[k].d, (size_t)shapes[k].ndim },
                                      test_stream()));
                check_equal(out, v);
                check_layout(out);
                mem_free(v);
                arr_unref(&out);
                arr_unref(&a);
            }
}

static void test_reshape_shares_where_it_can(void **state)
{
    static const struct {
        enum layout layout;
        struct shp to;
        bool shares;
    } cases[] = {
        { LAY_DENSE, { 2, { 3, 20 } }, true },         { LAY_TRANSPOSED, { 2, { 4, 15 } }, false },
        { LAY_TRANSPOSED, { 3, { 10, 3, 2 } }, true }, /* splits a dimension */
        { LAY_STEPPED, { 3, { 2, 5, 6 } }, true },     { LAY_STEPPED, { 1, { 60 } }, false },
        { LAY_REVERSED, { 1, { 60 } }, true }, /* one dimension with a negative stride */
    };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        struct arr *a = counting(SHAPE(10, 6), DT_FLOAT32, cases[k].layout), *out = NULL;
        assert_ok(ops_reshape(&out, a, (struct ints){ cases[k].to.d, (size_t)cases[k].to.ndim },
                              test_stream()));
        eval(out);
        assert_int_equal(out->buf == a->buf, cases[k].shares);
        arr_unref(&out);
        arr_unref(&a);
    }
}

static void test_view_dtype(void **state)
{
    static const enum dtype types[] = { DT_INT8, DT_UINT16, DT_FLOAT32, DT_INT64 };

    (void)state;
    for (int l = 0; l < LAY_COUNT; l++)
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
            for (size_t j = 0; j < ARRAY_LEN(types); j++) {
                struct arr *a = counting(SHAPE(5, 8), types[i], (enum layout)l), *out = NULL;
                void *bytes = arr_bytes(a), *again;
                assert_ok(ops_view(&out, a, types[j], test_stream()));
                again = arr_bytes(out);
                assert_int_equal(arr_nbytes(out), arr_nbytes(a));
                assert_memory_equal(again, bytes, arr_nbytes(a));
                mem_free(bytes);
                mem_free(again);
                arr_unref(&out);
                arr_unref(&a);
            }
}

static void test_contiguous(void **state)
{
    (void)state;
    for (int l = 0; l < LAY_COUNT; l++)
        for (int col = 0; col < 2; col++) {
            struct arr *a = counting(SHAPE(7, 9), DT_FLOAT16, (enum layout)l), *out = NULL;
            double complex *v = arr_values(a);
            bool shares = l == LAY_DENSE || (col && l == LAY_TRANSPOSED);
            assert_ok(ops_contiguous(&out, a, col, test_stream()));
            check_equal(out, v);
            assert_int_equal(out->buf == a->buf, shares);
            assert_true(out->flags & (LAYOUT_ROW | (col ? LAYOUT_COL : 0)));
            mem_free(v);
            arr_unref(&out);
            arr_unref(&a);
        }
}

/* A small part of a large buffer is copied, so that the buffer can go. */
static void test_contiguous_lets_go(void **state)
{
    struct arr *a = counting(SHAPE(100000), DT_FLOAT32, LAY_DENSE), *part = NULL, *out = NULL;
    int32_t zero = 0, end = 10, one = 1;

    (void)state;
    assert_ok(ops_slice(&part, a, &(struct ops_slice){ { &zero, 1 }, { &end, 1 }, { &one, 1 } },
                        test_stream()));
    assert_ok(ops_contiguous(&out, part, false, test_stream()));
    eval(out);
    assert_ptr_not_equal(out->buf, a->buf);
    arr_unref(&out);
    arr_unref(&part);
    arr_unref(&a);
}

/* ---- copies ---- */

static void copy_case(const struct shp *s, enum dtype from, enum dtype to, enum layout layouts[2])
{
    struct arr *src = counting(s, from, layouts[0]), *dst = counting(s, to, layouts[1]);
    double complex *want = arr_values(src);

    /* The destination's own strides; those of a broadcast one would collide. */
    assert_ok(be_cpu.copy(test_stream(), &(struct be_copy){ .src = src,
                                                            .dst = dst,
                                                            .shape = s,
                                                            .src_strides = src->strides,
                                                            .dst_strides = dst->strides }));
    assert_ok(strm_synchronize(test_stream()));
    for (size_t i = 0; i < src->size; i++)
        want[i] = rounded_to(want[i], to);
    check_equal(dst, want);
    mem_free(want);
    arr_unref(&src);
    arr_unref(&dst);
}

static void test_copy(void **state)
{
    static const struct shp shapes[] = {
        { 0, { 0 } },       { 1, { 1 } },          { 1, { 3000 } },     { 2, { 40, 50 } },
        { 2, { 3, 2500 } }, { 3, { 17, 33, 20 } }, { 3, { 5, 1, 70 } }, { 4, { 2, 3, 4, 5 } },
    };
    static const enum dtype types[][2] = {
        { DT_FLOAT32, DT_FLOAT32 },  { DT_UINT8, DT_UINT8 },     { DT_BFLOAT16, DT_BFLOAT16 },
        { DT_INT64, DT_INT64 },      { DT_FLOAT32, DT_FLOAT16 }, { DT_BFLOAT16, DT_INT32 },
        { DT_FLOAT16, DT_BFLOAT16 }, { DT_BOOL, DT_COMPLEX64 },  { DT_FLOAT16, DT_FLOAT32 },
    };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
        for (size_t t = 0; t < ARRAY_LEN(types); t++)
            for (int l = 0; l < LAY_COUNT * LAY_BROADCAST; l++)
                copy_case(
                    &shapes[k], types[t][0], types[t][1],
                    (enum layout[]){ (enum layout)(l % LAY_COUNT), (enum layout)(l / LAY_COUNT) });
}

static void test_concatenate(void **state)
{
    (void)state;
    for (int l = 0; l < LAY_COUNT; l++) {
        struct arr *in[3] = { counting(SHAPE(2, 3), DT_FLOAT32, (enum layout)l),
                              counting(SHAPE(2, 1), DT_FLOAT32, LAY_DENSE),
                              counting(SHAPE(2, 4), DT_FLOAT32, (enum layout)l) };
        double complex *v[3], want[16];
        struct arr *out = NULL;
        for (int i = 0; i < 3; i++)
            v[i] = arr_values(in[i]);
        for (int i = 0; i < 16; i++) {
            int row = i / 8, col = i % 8;
            want[i] = col < 3 ? v[0][row * 3 + col] : col < 4 ? v[1][row] : v[2][row * 4 + col - 4];
        }
        assert_ok(ops_concatenate(&out, (struct arrs){ in, 3 }, 1, test_stream()));
        check_equal(out, want);
        arr_unref(&out);
        for (int i = 0; i < 3; i++) {
            mem_free(v[i]);
            arr_unref(&in[i]);
        }
    }
}

static void test_pad(void **state)
{
    struct arr *a = counting(SHAPE(2, 3), DT_INT32, LAY_TRANSPOSED), *out = NULL;
    struct arr *value = arr_of((double complex[]){ 9 }, &(struct shp){ 0 }, DT_INT32);
    double complex *v = arr_values(a), want[24];
    int32_t axes[] = { 0, 1 }, low[] = { 1, 0 }, high[] = { 1, 3 };

    (void)state;
    assert_ok(ops_pad(&out, a,
                      &(struct ops_pad){ { axes, 2 }, { low, 2 }, { high, 2 }, value, "constant" },
                      test_stream()));
    for (int i = 0; i < 24; i++) {
        int row = i / 6 - 1, col = i % 6;
        want[i] = row >= 0 && row < 2 && col < 3 ? v[row * 3 + col] : 9;
    }
    check_equal(out, want);
    mem_free(v);
    arr_unref(&out);
    arr_unref(&value);
    arr_unref(&a);
}

static void test_full(void **state)
{
    (void)state;
    for (int t = 0; t < DT_COUNT; t++) {
        struct arr *value = arr_of((double complex[]){ 1 }, &(struct shp){ 0 }, (enum dtype)t);
        struct arr *out = NULL;
        double complex want[700];
        int32_t shape[] = { 7, 100 };
        for (int i = 0; i < 700; i++)
            want[i] = 1;
        assert_ok(ops_full(&out, (struct ints){ shape, 2 }, value, (enum dtype)t, test_stream()));
        check_equal(out, want);
        assert_true(out->flags & LAYOUT_ROW);
        assert_int_equal(out->data_size, 700);
        arr_unref(&out);
        arr_unref(&value);
    }
}

static void test_arange(void **state)
{
    static const struct {
        double start, stop, step;
        enum dtype t;
    } cases[] = {
        { 0, 5000, 1, DT_INT32 },    { 10, -10, -3, DT_INT8 },     { 0, 100, 1, DT_UINT8 },
        { 0, 1, 0.125, DT_FLOAT16 }, { -3, 3, 0.25, DT_BFLOAT16 }, { 0.5, 100, 0.5, DT_FLOAT32 },
        { 0, 7, 0.1, DT_FLOAT64 },   { 0, 4, 1, DT_COMPLEX64 },    { 5e9, 5e9 + 3, 1, DT_INT64 },
        { 0, 200000, 2, DT_UINT32 },
    };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        struct arange_params p = { cases[k].start, cases[k].stop, cases[k].step };
        struct arr *out = NULL;
        assert_ok(ops_arange(&out, &p, cases[k].t, test_stream()));
        double complex *v = arr_values(out);
        for (size_t i = 0; i < out->size; i++)
            assert_true(v[i] == rounded_to(p.start + (double)i * p.step, cases[k].t));
        mem_free(v);
        arr_unref(&out);
    }
}

/* The backend is called directly: new arrays must lie where it can write. */
static int use_cpu(void **state)
{
    (void)state;
    return dev_set_default((struct dev){ DEV_CPU, 0 }) == ERR_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_expand_and_squeeze),
        cmocka_unit_test(test_as_strided_needs_dense),
        cmocka_unit_test(test_overlapping_windows),
        cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_reshape_shares_where_it_can),
        cmocka_unit_test(test_view_dtype),
        cmocka_unit_test(test_contiguous),
        cmocka_unit_test(test_contiguous_lets_go),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_concatenate),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_arange),
    };
    return cmocka_run_group_tests(tests, use_cpu, NULL);
}
