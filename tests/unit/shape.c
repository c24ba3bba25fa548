#include "graph/shape.h"

#include "support/testing.h"

#include <string.h>

#define SHAPE(...)                                                                                 \
    ((struct shp){ .ndim = (int)(sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)),            \
                   .d = { __VA_ARGS__ } })

/* ---- making, comparing, printing ---- */

static void test_make_refuses_what_is_no_shape(void **state)
{
    const int32_t many[SHP_MAX + 1] = { 1 }, negative[] = { 2, -1 }, good[] = { 2, 0, 3 };
    struct shp s;

    (void)state;
    assert_fails(ERR_ARG, shp_make(&s, many, SHP_MAX + 1, "op"));
    assert_fails(ERR_ARG, shp_make(&s, NULL, 1, "op"));
    assert_fails(ERR_ARG, shp_make(&s, negative, 2, "op"));
    assert_non_null(strstr(err_text(), "[op]"));
    assert_ok(shp_make(&s, NULL, 0, "op"));
    assert_int_equal(s.ndim, 0);
    assert_ok(shp_make(&s, many, SHP_MAX, "op"));
    assert_ok(shp_make(&s, good, 3, "op"));
    assert_true(shp_equal(&s, &SHAPE(2, 0, 3)));
    assert_false(shp_equal(&s, &SHAPE(2, 0)));
    assert_false(shp_equal(&s, &SHAPE(2, 0, 4)));
}

static void test_sizes(void **state)
{
    int64_t size = -1;

    (void)state;
    assert_int_equal(shp_size(&(struct shp){ 0 }), 1);
    assert_int_equal(shp_size(&SHAPE(2, 3, 5)), 30);
    assert_int_equal(shp_size(&SHAPE(2, 0, 5)), 0);
    assert_true(shp_size_checked(&SHAPE(65536, 65536, 65536), &size));
    assert_int_equal(size, (int64_t)1 << 48);
    assert_false(shp_size_checked(&SHAPE(65536, 65536, 65536, 32768), &size));
    /* A zero anywhere makes it empty, but not the strides. */
    assert_true(shp_size_checked(&SHAPE(65536, 0, 65536, 65536), &size));
    assert_int_equal(size, 0);
    assert_false(shp_size_checked(&SHAPE(65536, 65536, 65536, 32768, 0), &size));
    assert_false(shp_size_checked(&SHAPE(0, 65536, 65536, 65536, 32768), &size));
    assert_true(shp_volume_checked(&SHAPE(2, 0, 5), &size));
    assert_int_equal(size, 10);
}

static void test_axes(void **state)
{
    int axis = -1;

    (void)state;
    assert_ok(shp_axis(&axis, -3, 3, "op"));
    assert_int_equal(axis, 0);
    assert_ok(shp_axis(&axis, 2, 3, "op"));
    assert_int_equal(axis, 2);
    assert_fails(ERR_RANGE, shp_axis(&axis, 3, 3, "op"));
    assert_fails(ERR_RANGE, shp_axis(&axis, -4, 3, "op"));
    assert_fails(ERR_RANGE, shp_axis(&axis, 0, 0, "op"));
    assert_int_equal(axis, 2);
}

static void test_printing(void **state)
{
    char small[6];
    struct shp widest = { .ndim = SHP_MAX };

    (void)state;
    for (int i = 0; i < SHP_MAX; i++)
        widest.d[i] = INT32_MAX;
    assert_string_equal(shp_text(&(struct shp){ 0 }), "()");
    assert_string_equal(shp_text(&SHAPE(2, 3)), "(2,3)");
    assert_string_equal(shp_print(&SHAPE(100, 200, 300), small, sizeof small), "(100,");
    assert_int_equal(strlen(shp_text(&widest)), SHP_MAX * 11 + 1);
}

/* ---- random shapes ---- */

static struct shp random_shape(struct rng *r, int max_ndim, int max_dim)
{
    struct shp s = { .ndim = rng_below(r, max_ndim + 1) };

    for (int i = 0; i < s.ndim; i++)
        s.d[i] = rng_one_in(r, 12) ? 0 : 1 + rng_below(r, max_dim);
    return s;
}

static int64_t offset_of(const int32_t *index, const int64_t *strides, int ndim)
{
    int64_t at = 0;

    for (int i = 0; i < ndim; i++)
        at += index[i] * strides[i];
    return at;
}

/* ---- broadcast ---- */

/* From the definition: dimension k counted from the end. */
static bool reference_broadcast(struct shp *out, const struct shp *a, const struct shp *b)
{
    out->ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int k = 1; k <= out->ndim; k++) {
        int32_t da = k <= a->ndim ? a->d[a->ndim - k] : 1;
        int32_t db = k <= b->ndim ? b->d[b->ndim - k] : 1;
        if (da == db)
            out->d[out->ndim - k] = da;
        else if (da == 1 || db == 1)
            out->d[out->ndim - k] = da == 1 ? db : da;
        else
            return false;
    }
    return true;
}

static void test_broadcast_against_the_definition(void **state)
{
    struct rng rng = { 11 };
    int fits = 0, clashes = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct shp a = random_shape(&rng, 5, 3), b = random_shape(&rng, 5, 3);
        struct shp got = { 0 }, want = { 0 };
        if (reference_broadcast(&want, &a, &b)) {
            assert_ok(shp_broadcast(&got, &a, &b, "add"));
            assert_true(shp_equal(&got, &want));
            fits++;
        } else {
            assert_fails(ERR_ARG, shp_broadcast(&got, &a, &b, "add"));
            clashes++;
        }
    }
    assert_true(fits > 1000 && clashes > 1000);
}

static void test_broadcast_into_an_operand_and_its_text(void **state)
{
    struct shp a = SHAPE(4, 1), b = SHAPE(3);

    (void)state;
    assert_ok(shp_broadcast(&a, &a, &b, "add"));
    assert_true(shp_equal(&a, &SHAPE(4, 3)));
    assert_fails(ERR_ARG, shp_broadcast(&a, &a, &SHAPE(2), "add"));
    assert_string_equal(err_text(), "[add] Shapes (4,3) and (2) cannot be broadcast.");
    assert_true(shp_equal(&a, &SHAPE(4, 3)));
}

/* ---- layouts: against a walk over every element ---- */

struct layout {
    struct shp shape;
    int64_t strides[SHP_MAX];
};

/* A view of a dense array made by slicing, flipping, broadcasting and permuting, as ops do. */
static struct layout random_view(struct rng *r)
{
    struct layout v = { .shape = random_shape(r, 4, 4) };
    struct shp dense = v.shape;
    int n = v.shape.ndim;

    for (int i = 0; i < n; i++)
        if (rng_one_in(r, 4))
            dense.d[i] *= 2; /* every other element is taken */
    shp_row_strides(v.strides, &dense);
    for (int i = 0; i < n; i++) {
        if (dense.d[i] != v.shape.d[i])
            v.strides[i] *= 2;
        if (rng_one_in(r, 6))
            v.strides[i] = 0;
        if (rng_one_in(r, 6))
            v.strides[i] = -v.strides[i];
    }
    for (int i = n - 1; i > 0 && rng_one_in(r, 2); i--) {
        int j = rng_below(r, i + 1);
        int32_t d = v.shape.d[i];
        int64_t s = v.strides[i];
        v.shape.d[i] = v.shape.d[j];
        v.strides[i] = v.strides[j];
        v.shape.d[j] = d;
        v.strides[j] = s;
    }
    return v;
}

struct walk { /* what a walk over all elements finds */
    int64_t low, high;
    size_t distinct;
    bool row_order, col_order; /* element number = offset from the first */
};

static struct walk walk_layout(const struct layout *v)
{
    static unsigned char seen[1 << 16];
    struct walk w = { .row_order = true, .col_order = true };
    int32_t index[SHP_MAX] = { 0 };
    int64_t number = 0;

    memset(seen, 0, sizeof seen);
    do {
        int64_t at = offset_of(index, v->strides, v->shape.ndim), col = 0;
        for (int i = v->shape.ndim - 1; i >= 0; i--)
            col = col * v->shape.d[i] + index[i];
        w.low = MIN(w.low, at);
        w.high = MAX(w.high, at);
        w.distinct += !seen[at + (1 << 15)]++;
        w.row_order &= at == number++;
        w.col_order &= at == col;
    } while (next_index(index, &v->shape));
    return w;
}

static bool has_negative_stride(const struct layout *v)
{
    for (int i = 0; i < v->shape.ndim; i++)
        if (v->strides[i] < 0 && v->shape.d[i] > 1)
            return true;
    return false;
}

static void test_span_and_flags_of_random_views(void **state)
{
    struct rng rng = { 5 };
    int count[LAYOUT_ALL + 1] = { 0 };

    (void)state;
    for (int round = 0; round < 30000; round++) {
        struct layout v = random_view(&rng);
        if (shp_size(&v.shape) == 0) {
            assert_int_equal(shp_span(&v.shape, v.strides), 0);
            continue;
        }
        struct walk w = walk_layout(&v);
        size_t span = shp_span(&v.shape, v.strides);
        unsigned flags = shp_layout_flags(&v.shape, v.strides, span);
        assert_int_equal(span, w.high - w.low + 1);
        assert_int_equal(!!(flags & LAYOUT_ROW), w.row_order);
        assert_int_equal(!!(flags & LAYOUT_COL), w.col_order);
        assert_int_equal(!!(flags & LAYOUT_CONTIGUOUS),
                         w.distinct == span && !has_negative_stride(&v));
        count[flags]++;
    }
    assert_true(count[0] > 100 && count[LAYOUT_CONTIGUOUS] > 100 && count[LAYOUT_ALL] > 100);
    assert_true(count[LAYOUT_CONTIGUOUS | LAYOUT_ROW] > 100);
    assert_true(count[LAYOUT_CONTIGUOUS | LAYOUT_COL] > 100);
}

/* A view of part of a larger buffer is row-major but has holes around it. */
static void test_contiguity_is_relative_to_the_data(void **state)
{
    int64_t strides[] = { 4, 1 };

    (void)state;
    assert_int_equal(shp_layout_flags(&SHAPE(2, 4), strides, 8), LAYOUT_CONTIGUOUS | LAYOUT_ROW);
    assert_int_equal(shp_layout_flags(&SHAPE(2, 4), strides, 9), LAYOUT_ROW);
    assert_int_equal(shp_layout_flags(&(struct shp){ 0 }, strides, 1), LAYOUT_ALL);
    strides[0] = strides[1] = 0;
    assert_int_equal(shp_layout_flags(&SHAPE(2, 4), strides, 1), LAYOUT_CONTIGUOUS);
}

static void test_row_strides(void **state)
{
    int64_t strides[3];

    (void)state;
    shp_row_strides(strides, &SHAPE(65536, 65536, 65536));
    assert_int_equal(strides[0], (int64_t)1 << 32);
    assert_int_equal(strides[1], 65536);
    assert_int_equal(strides[2], 1);
}

/* ---- collapse ---- */

#define OPERANDS 3

static void check_same_walk(const struct nest *n, const struct layout *v,
                            const int64_t *const *strides)
{
    int32_t index[SHP_MAX] = { 0 };
    struct shp nest_shape = { .ndim = n->ndim };
    int32_t nest_index[SHP_MAX] = { 0 };
    bool more, nest_more;

    for (int i = 0; i < n->ndim; i++)
        nest_shape.d[i] = (int32_t)n->dim[i];
    do {
        for (int k = 0; k < OPERANDS; k++)
            assert_int_equal(offset_of(index, strides[k], v->shape.ndim),
                             offset_of(nest_index, n->stride[k], n->ndim));
        more = next_index(index, &v->shape);
        nest_more = next_index(nest_index, &nest_shape);
        assert_int_equal(more, nest_more);
    } while (more);
}

/* No dimension of size 1 is left and no two neighbours could still be merged. */
static void check_minimal(const struct nest *n)
{
    for (int i = 0; i < n->ndim; i++) {
        bool all = i > 0;
        assert_true(n->dim[i] != 1);
        for (int k = 0; all && k < OPERANDS; k++)
            all = n->stride[k][i - 1] == n->stride[k][i] * n->dim[i];
        assert_false(all);
    }
}

static void test_collapse_walks_the_same_elements(void **state)
{
    struct rng rng = { 3 };
    int merged = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct layout v[OPERANDS];
        const int64_t *strides[OPERANDS];
        struct nest nest;
        v[0] = random_view(&rng);
        for (int k = 0; k < OPERANDS; k++) {
            v[k].shape = v[0].shape;
            if (k && rng_one_in(&rng, 2))
                memcpy(v[k].strides, v[0].strides, sizeof v[k].strides);
            else if (k)
                shp_row_strides(v[k].strides, &v[0].shape);
            strides[k] = v[k].strides;
        }
        shp_collapse(&nest, &v[0].shape, strides, OPERANDS);
        assert_int_equal(nest.n_operands, OPERANDS);
        if (shp_size(&v[0].shape) == 0)
            continue;
        check_same_walk(&nest, &v[0], strides);
        check_minimal(&nest);
        merged += nest.ndim < v[0].shape.ndim;
    }
    assert_true(merged > 1000);
}

static void test_collapse_keeps_dimensions_within_32_bits(void **state)
{
    struct shp s = SHAPE(4, 65536, 16384, 4);
    int64_t row[4];
    const int64_t *strides[] = { row };
    struct nest nest;

    (void)state;
    shp_row_strides(row, &s);
    shp_collapse(&nest, &s, strides, 1);
    int64_t product = 1;
    for (int i = 0; i < nest.ndim; i++) {
        assert_true(nest.dim[i] <= INT32_MAX);
        product *= nest.dim[i];
    }
    assert_int_equal(product, (int64_t)1 << 34);
    assert_true(nest.ndim >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_make_refuses_what_is_no_shape),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_printing),
        cmocka_unit_test(test_broadcast_against_the_definition),
        cmocka_unit_test(test_broadcast_into_an_operand_and_its_text),
        cmocka_unit_test(test_span_and_flags_of_random_views),
        cmocka_unit_test(test_contiguity_is_relative_to_the_data),
        cmocka_unit_test(test_row_strides),
        cmocka_unit_test(test_collapse_walks_the_same_elements),
        cmocka_unit_test(test_collapse_keeps_dimensions_within_32_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
