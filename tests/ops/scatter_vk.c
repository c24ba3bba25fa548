/* Scatters on the GPU against those of the CPU, bit by bit: which variants run, chunks of any size,
 * the same result every time, and who gets whose memory. */
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "eval/eval.h"
#include "ops/build.h"
#include "support/arrays.h"
#include "support/nd.h"

static const enum dtype types[] = { DT_BOOL,    DT_UINT8,    DT_UINT16,   DT_UINT32, DT_UINT64,
                                    DT_INT8,    DT_INT16,    DT_INT32,    DT_INT64,  DT_FLOAT16,
                                    DT_FLOAT32, DT_BFLOAT16, DT_COMPLEX64 };
static const enum dtype index_types[] = { DT_UINT8, DT_UINT32, DT_UINT64,
                                          DT_INT8,  DT_INT32,  DT_INT64 };

#define MAX_INDEX 3

struct scatter {
    struct arr *src, *index[MAX_INDEX], *updates;
    int32_t axis[MAX_INDEX];
    int n_index;
    enum update_kind kind;
};

static void scatter_free(struct scatter *v)
{
    arr_unref(&v->src);
    arr_unref(&v->updates);
    arr_unref_all(v->index, MAX_INDEX);
}

static struct arr *scattered(const struct scatter *v, struct strm *s)
{
    struct ops_scatter o = {
        { v->index, (size_t)v->n_index }, v->updates, { v->axis, (size_t)v->n_index }, v->kind
    };
    struct arr *out = NULL;

    assert_ok(ops_scatter(&out, v->src, &o, s));
    return out;
}

/* Numbers of a dimension, some from its end, some beyond an end. */
static struct arr *random_index(struct rng *r, enum dtype t, const struct shp *shape, int32_t dim)
{
    size_t n = shp_size(shape);
    double complex *v = mem_alloc_array(n, sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i < n; i++) {
        v[i] = rng_below(r, rng_one_in(r, 2) ? MIN(dim, 3) : dim);
        if (dt_table[t].kind == DT_KIND_I && rng_one_in(r, 4))
            v[i] -= dim;
        if (rng_one_in(r, 20))
            v[i] = 100;
    }
    struct arr *a = arr_of_layout(v, shape, t, (enum layout)rng_below(r, LAY_BROADCAST));
    mem_free(v);
    return a;
}

/* Any axes, any slices, any layouts. */
static void random_scatter(struct scatter *v, struct rng *r, enum dtype t, enum update_kind kind)
{
    enum dtype index_type = index_types[rng_below(r, ARRAY_LEN(index_types))];
    struct shp shape = { .ndim = 1 + rng_below(r, 3) }, at = { .ndim = rng_below(r, 3) }, update;

    *v = (struct scatter){ .kind = kind };
    for (int i = 0; i < shape.ndim; i++)
        shape.d[i] = 1 + rng_below(r, i == shape.ndim - 1 ? 33 : 9);
    for (int i = 0; i < at.ndim; i++)
        at.d[i] = 1 + rng_below(r, 9);
    for (int i = shape.ndim - 1; i >= 0; i--)
        if (rng_one_in(r, 2)) {
            v->axis[v->n_index] = i;
            v->index[v->n_index++] = random_index(r, index_type, &at, shape.d[i]);
        }
    if (!v->n_index)
        at.ndim = 0;
    update = at;
    for (int i = 0; i < shape.ndim; i++) {
        bool is_indexed = false;
        for (int k = 0; k < v->n_index; k++)
            is_indexed |= v->axis[k] == i;
        update.d[update.ndim++] = is_indexed && !rng_one_in(r, 4) ? 1
                                  : rng_one_in(r, 3)              ? 1 + rng_below(r, shape.d[i])
                                                                  : shape.d[i];
    }
    v->src = arr_random(r, &shape, t, (enum layout)rng_below(r, LAY_COUNT));
    v->updates = arr_random(r, &update, t, (enum layout)rng_below(r, LAY_COUNT));
}

static void check_equal(const struct scatter *v)
{
    struct arr *got = scattered(v, nd_gpu), *want = scattered(v, test_stream());
    char *x = arr_bytes(got), *y = arr_bytes(want);

    for (size_t i = 0, item = dt_size((enum dtype)got->dtype); i < got->size; i++)
        if (memcmp(x + i * item, y + i * item, item) != 0)
            fail_msg("%s of %s by %d index arrays: element %zu of %zu differs",
                     update_kind_words.word[v->kind], dt_name((enum dtype)got->dtype), v->n_index,
                     i, got->size);
    mem_free(x);
    mem_free(y);
    arr_unref(&got);
    arr_unref(&want);
}

/* Products of floats are another number in another order. */
static bool is_exact(enum dtype t, enum update_kind kind)
{
    return kind != UPDATE_PROD || !dt_is_inexact(t);
}

static void check_random(uint64_t seed, int rounds)
{
    struct rng r = { seed };

    for (int i = 0; i < rounds; i++)
        for (size_t k = 0; k < ARRAY_LEN(types); k++)
            for (int kind = UPDATE_MAX; kind <= UPDATE_NONE; kind++) {
                struct scatter v;
                if (!is_exact(types[k], (enum update_kind)kind))
                    continue;
                random_scatter(&v, &r, types[k], (enum update_kind)kind);
                check_equal(&v);
                scatter_free(&v);
            }
}

static void test_random_scatters(void **state)
{
    (void)state;
    check_random(1, 4);
}

static void test_chunks(void **state)
{
    int64_t old = gate_set_int(GATE_VK_SCATTER_CHUNK, 0);

    (void)state;
    for (int64_t chunk = 1; chunk <= 4; chunk++) {
        gate_set_int(GATE_VK_SCATTER_CHUNK, chunk);
        check_random((uint64_t)chunk + 1, 1);
    }
    gate_set_int(GATE_VK_SCATTER_CHUNK, old);
}

static void test_without_wide_units(void **state)
{
    int64_t old = gate_set_int(GATE_VK_SCATTER_WIDE, 0);

    (void)state;
    check_random(9, 1);
    gate_set_int(GATE_VK_SCATTER_WIDE, old);
}

/* n rows of a table of 50, of a width in bytes. */
static void row_scatter(struct scatter *v, struct rng *r, enum dtype t, const int32_t size[2])
{
    struct shp table = { 2, { 50, size[1] } }, update = { 3, { size[0], 1, size[1] } };

    *v = (struct scatter){ .n_index = 1 };
    v->index[0] = random_index(r, DT_INT32, &(struct shp){ 1, { size[0] } }, 50);
    v->src = arr_random(r, &table, t, LAY_DENSE);
    v->updates = arr_random(r, &update, t, LAY_DENSE);
}

/* Rows take the widest unit that they are made of. */
static void test_rows(void **state)
{
    static const struct {
        enum dtype type;
        int32_t width;
        enum variant_id put, fold;
    } rows[] = {
        { DT_BFLOAT16, 64, VARIANT_SCATTER_PUT_16, VARIANT_SCATTER_FOLD_WIDE },
        { DT_FLOAT16, 12, VARIANT_SCATTER_PUT_8, VARIANT_SCATTER_FOLD_ELEMENT },
        { DT_FLOAT32, 4, VARIANT_SCATTER_PUT_16, VARIANT_SCATTER_FOLD_WIDE },
        { DT_INT8, 12, VARIANT_SCATTER_PUT_4, VARIANT_SCATTER_FOLD_ELEMENT },
        { DT_UINT8, 6, VARIANT_SCATTER_PUT_2, VARIANT_SCATTER_FOLD_ELEMENT },
        { DT_INT32, 7, VARIANT_SCATTER_PUT_ELEMENT, VARIANT_SCATTER_FOLD_ELEMENT },
        { DT_COMPLEX64, 2, VARIANT_SCATTER_PUT_16, VARIANT_SCATTER_FOLD_WIDE },
    };
    struct rng r = { 3 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int k = 0; k < 2; k++) {
            enum variant_id id = k ? rows[i].fold : rows[i].put;
            uint64_t hits = variant_hits(id);
            struct scatter v;
            row_scatter(&v, &r, rows[i].type, (int32_t[]){ 300, rows[i].width });
            v.kind = k ? UPDATE_SUM : UPDATE_NONE;
            check_equal(&v);
            assert_int_equal(variant_hits(id) - hits, 1);
            scatter_free(&v);
        }
}

/* Sums of floats do not depend on which lane is first. */
static void test_the_same_every_time(void **state)
{
    struct rng r = { 5 };
    struct scatter v;
    char *first;

    (void)state;
    row_scatter(&v, &r, DT_FLOAT32, (int32_t[]){ 5000, 3 });
    v.kind = UPDATE_SUM;
    struct arr *a = scattered(&v, nd_gpu);
    first = arr_bytes(a);
    for (int i = 0; i < 5; i++) {
        struct arr *b = scattered(&v, nd_gpu);
        char *again = arr_bytes(b);
        assert_memory_equal(again, first, a->size * sizeof(float));
        mem_free(again);
        arr_unref(&b);
    }
    mem_free(first);
    arr_unref(&a);
    scatter_free(&v);
}

/* What nobody else needs is written where it is. */
static void test_donation(void **state)
{
    struct rng r = { 6 };
    struct scatter v;

    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        row_scatter(&v, &r, DT_FLOAT32, (int32_t[]){ 20, 4096 });
        struct arr *src = NULL;
        assert_ok(ops_binary(&src, OP_ADD, v.src, v.src, nd_gpu));
        assert_ok(eval_arrays(&src, 1, false));
        uint64_t addr = src->buf->addr;
        arr_unref(&v.src);
        v.src = src;
        struct arr *out = scattered(&v, nd_gpu);
        if (!kept)
            arr_unref(&v.src);
        assert_ok(eval_arrays(&out, 1, false));
        assert_int_equal(out->buf->addr == addr, !kept);
        arr_unref(&out);
        scatter_free(&v);
    }
}

/* Values that a mask has no room for, or that are too few for it. */
static void test_masks(void **state)
{
    struct rng r = { 7 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(types); k++) {
        struct shp shape = { 2, { 37, 300 } }, values = { 1, { 37 * 300 } };
        struct arr *a = arr_random(&r, &shape, types[k], (enum layout)(k % LAY_COUNT)),
                   *mask = arr_random(&r, &shape, DT_BOOL, (enum layout)(k % LAY_COUNT)),
                   *v = arr_random(&r, &values, types[k], LAY_STEPPED), *got = NULL, *want = NULL;
        assert_ok(ops_masked_scatter(&got, a, mask, v, nd_gpu));
        assert_ok(ops_masked_scatter(&want, a, mask, v, test_stream()));
        char *x = arr_bytes(got), *y = arr_bytes(want);
        assert_memory_equal(x, y, arr_nbytes(want));
        mem_free(x);
        mem_free(y);
        arr_unref_all((struct arr *[]){ a, mask, v, got, want }, 5);
    }
}

static void test_too_few_values(void **state)
{
    static const double complex zeros[] = { 0, 0, 0, 0 }, ones[] = { 1, 1, 1, 1 }, two[] = { 5, 6 };
    struct arr *a = arr_of(zeros, SHAPE(4), DT_INT32), *mask = arr_of(ones, SHAPE(4), DT_BOOL),
               *v = arr_of(two, SHAPE(2), DT_INT32), *got = NULL;

    (void)state;
    assert_ok(ops_masked_scatter(&got, a, mask, v, nd_gpu));
    int32_t *x = arr_bytes(got);
    assert_memory_equal(x, ((int32_t[]){ 5, 6, 0, 0 }), 16);
    mem_free(x);
    arr_unref(&got);
    assert_ok(ops_masked_scatter(&got, a, mask, v, test_stream()));
    assert_fails(ERR_RUNTIME, eval_arrays(&got, 1, false));
    arr_unref_all((struct arr *[]){ a, mask, v, got }, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_scatters),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_without_wide_units),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_the_same_every_time),
        cmocka_unit_test(test_donation),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_too_few_values),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
