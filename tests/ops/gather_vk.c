/* Gather on the GPU against plain loops on the host. */
#include "base/gate.h"
#include "base/mem.h"
#include "eval/eval.h"
#include "graph/op.h"
#include "support/nd.h"

static const enum dtype index_types[] = { DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64,
                                          DT_INT8,  DT_INT16,  DT_INT32,  DT_INT64 };
static const enum dtype item_types[] = { DT_UINT8,   DT_BOOL,  DT_FLOAT16,   DT_BFLOAT16,
                                         DT_FLOAT32, DT_INT32, DT_COMPLEX64, DT_INT64 };

#define MAX_INDEX 4

struct gather {
    struct nd src, index[MAX_INDEX];
    struct gather_params p;
};

static void index_fill(struct nd *a, struct rng *r, int32_t dim, int32_t slice)
{
    int range = MIN(dim - slice + 1, 100); /* fits int8 */
    bool is_signed = dt_table[a->dtype].kind == DT_KIND_I;

    for (size_t i = 0; i < a->n; i++) {
        int v = rng_below(r, range);
        if (is_signed && dim <= 120 && rng_one_in(r, 3))
            v -= dim;
        num_store(a->dtype, a->bytes + i * dt_size(a->dtype), (struct num){ .i = v });
    }
    nd_view(a);
}

static void gather_free(struct gather *g)
{
    nd_free(&g->src);
    for (int k = 0; k < g->p.n_axes; k++)
        nd_free(&g->index[k]);
}

static struct arr *gather_node(const struct gather *g)
{
    struct arr *in[1 + MAX_INDEX] = { g->src.arr };
    struct out_desc out = { g->index[0].shape, g->src.dtype };
    struct arr *r = NULL;

    if (g->p.n_axes == 0)
        out.shape.ndim = 0;
    for (int k = 0; k < g->p.n_axes; k++)
        in[1 + k] = g->index[k].arr;
    for (int i = 0; i < g->src.shape.ndim; i++)
        out.shape.d[out.shape.ndim++] = g->p.d[i].size;
    assert_ok(arr_new_op(&r, .op = OP_GATHER, .strm = nd_gpu, .in = in,
                         .n_in = 1 + (size_t)g->p.n_axes, .params = &g->p, .out = &out));
    return r;
}

/* Row-major position in the source of slice element j at index position i. */
static size_t source_of(const struct gather *g, size_t i, size_t j)
{
    struct shp slice = { .ndim = g->src.shape.ndim };
    int32_t at[SHP_MAX];
    size_t n = 0;

    for (int k = 0; k < g->p.n; k++)
        slice.d[k] = g->p.d[k].size;
    nd_unravel(at, &slice, j);
    for (int k = 0; k < g->p.n_axes; k++) {
        int axis = g->p.d[k].axis;
        int64_t dim = g->src.shape.d[axis], v = nd_get(&g->index[k], i).i;
        int64_t last = dim - g->p.d[axis].size;
        if (g->index[k].dtype == DT_UINT64 && v < 0)
            v = INT64_MAX;
        v = v < 0 ? v + dim : v;
        at[axis] += (int32_t)(v < 0 ? 0 : v > last ? last : v);
    }
    for (int k = 0; k < g->src.shape.ndim; k++)
        n = n * (size_t)g->src.shape.d[k] + (size_t)at[k];
    return n;
}

static void check_gather(const struct gather *g)
{
    struct arr *out = gather_node(g);
    const char *got = nd_run(out);
    size_t item = dt_size(g->src.dtype), slice = 1;

    for (int i = 0; i < g->src.shape.ndim; i++)
        slice *= (size_t)g->p.d[i].size;
    for (size_t n = 0; n < out->size; n++)
        if (memcmp(got + n * item, nd_at(&g->src, source_of(g, n / slice, n % slice)), item) != 0)
            fail_msg("gather of %s %s: element %zu differs", dt_name(g->src.dtype),
                     shp_text(&g->src.shape), n);
    arr_unref(&out);
}

/* Any axes, any slices, any layouts. */
static void random_gather(struct gather *g, struct rng *r, enum dtype t, enum dtype index_type)
{
    struct shp shape, index_shape;

    *g = (struct gather){ 0 };
    nd_random_shape(&shape, r, 4, 4000);
    nd_random_shape(&index_shape, r, 3, 60);
    g->p.n = shape.ndim;
    for (int i = 0; i < shape.ndim; i++) {
        bool indexed = g->p.n_axes < MAX_INDEX && rng_one_in(r, 2);
        if (indexed)
            g->p.d[g->p.n_axes++].axis = i;
        g->p.d[i].size = indexed && !rng_one_in(r, 4) ? 1 : 1 + rng_below(r, shape.d[i]);
        if (!indexed && rng_one_in(r, 2))
            g->p.d[i].size = shape.d[i];
    }
    nd_make(&g->src, r, t, &shape, (enum nd_layout)rng_below(r, ND_LAYOUTS));
    for (int k = 0; k < g->p.n_axes; k++) {
        int axis = g->p.d[k].axis;
        nd_make(&g->index[k], r, index_type, &index_shape,
                (enum nd_layout)rng_below(r, ND_LAYOUTS));
        index_fill(&g->index[k], r, shape.d[axis], g->p.d[axis].size);
    }
}

static void check_random(uint64_t seed, int rounds)
{
    struct rng r = { seed };

    for (size_t i = 0; i < ARRAY_LEN(item_types); i++)
        for (size_t k = 0; k < ARRAY_LEN(index_types); k++)
            for (int n = 0; n < rounds; n++) {
                struct gather g;
                random_gather(&g, &r, item_types[i], index_types[k]);
                check_gather(&g);
                gather_free(&g);
            }
}

/* Whole rows: one index along axis 0. */
static void take_rows(struct gather *g, struct rng *r, enum dtype t, struct shp shape)
{
    *g = (struct gather){ .p = { .n_axes = 1, .n = shape.ndim } };
    nd_make(&g->src, r, t, &shape, ND_ROW);
    nd_make(&g->index[0], r, DT_INT32, &(struct shp){ 2, { 7, 11 } }, ND_ROW);
    g->p.d[0].size = 1;
    for (int i = 1; i < shape.ndim; i++)
        g->p.d[i].size = shape.d[i];
    index_fill(&g->index[0], r, shape.d[0], 1);
}

static void test_random_gathers(void **state)
{
    (void)state;
    check_random(1, 3);
}

static void test_without_wide_units(void **state)
{
    int64_t old = gate_set_int(GATE_VK_GATHER_WIDE, 0);

    (void)state;
    check_random(2, 1);
    gate_set_int(GATE_VK_GATHER_WIDE, old);
}

static void test_rows(void **state)
{
    static const int32_t widths[] = { 1, 2, 3, 4, 6, 8, 12, 16, 40, 1000, 4096 };
    struct rng r = { 3 };
    struct gather g;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(item_types); i++)
        for (size_t k = 0; k < ARRAY_LEN(widths); k++) {
            take_rows(&g, &r, item_types[i], (struct shp){ 2, { 50, widths[k] } });
            check_gather(&g);
            gather_free(&g);
        }
}

/* From sources that have gaps, begin anywhere or lie across, by indices of any layout. */
static void test_long_slices(void **state)
{
    static const int32_t bytes[] = { 2040, 2048, 2056, 3000, 4096, 10008 };
    struct rng r = { 7 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(item_types); i++)
        for (size_t k = 0; k < ARRAY_LEN(index_types); k++) {
            int32_t n = bytes[rng_below(&r, ARRAY_LEN(bytes))] / (int32_t)dt_size(item_types[i]);
            struct shp shape = { 3, { 30, 2, n / 2 } };
            struct gather g = {
                .p = { .n_axes = 1, .n = 3, .d = { { 0, 1 + rng_below(&r, 3) }, { 0, 2 } } }
            };
            g.p.d[2].size = shape.d[2];
            nd_make(&g.src, &r, item_types[i], &shape, (enum nd_layout)(k % ND_LAYOUTS));
            nd_make(&g.index[0], &r, index_types[k], &(struct shp){ 2, { 5, 3 } },
                    (enum nd_layout)rng_below(&r, ND_LAYOUTS));
            index_fill(&g.index[0], &r, shape.d[0], g.p.d[0].size);
            check_gather(&g);
            gather_free(&g);
        }
}

static void test_out_of_range_is_clamped(void **state)
{
    static const int64_t values[] = { 5,   -6,        1000, -1000,     INT64_MAX,
                                      100, INT64_MIN, -5,   INT32_MAX, 4 };
    struct rng r = { 4 };
    struct gather g;

    (void)state;
    for (size_t k = 0; k < 2 * ARRAY_LEN(index_types); k++) {
        enum dtype t = index_types[k / 2];
        int32_t n = k % 2 ? 8 : 1024;
        g = (struct gather){ .p = { .n_axes = 1, .n = 2, .d = { { 0, 1 }, { 0, n } } } };
        nd_make(&g.src, &r, DT_FLOAT32, &(struct shp){ 2, { 5, n } }, ND_ROW);
        nd_make(&g.index[0], &r, t, &(struct shp){ 1, { (int32_t)ARRAY_LEN(values) } }, ND_ROW);
        for (size_t i = 0; i < ARRAY_LEN(values); i++)
            num_store(t, nd_at(&g.index[0], i), (struct num){ .i = values[i] });
        nd_view(&g.index[0]);
        check_gather(&g);
        gather_free(&g);
    }
}

static void test_empty_index_gives_an_empty_array(void **state)
{
    struct rng r = { 5 };
    struct gather g = { .p = { .n_axes = 1, .n = 1, .d = { { 0, 1 } } } };

    (void)state;
    nd_make(&g.src, &r, DT_FLOAT32, &(struct shp){ 1, { 5 } }, ND_ROW);
    nd_make(&g.index[0], &r, DT_INT32, &(struct shp){ 1, { 0 } }, ND_ROW);
    struct arr *out = gather_node(&g);
    assert_ok(eval_arrays(&out, 1, false));
    assert_int_equal(out->size, 0);
    arr_unref(&out);
    gather_free(&g);
}

static void test_bool_cannot_index(void **state)
{
    struct rng r = { 6 };
    struct gather g = { .p = { .n_axes = 1, .n = 1, .d = { { 0, 1 } } } };

    (void)state;
    nd_make(&g.src, &r, DT_FLOAT32, &(struct shp){ 1, { 5 } }, ND_ROW);
    nd_make(&g.index[0], &r, DT_BOOL, &(struct shp){ 1, { 3 } }, ND_ROW);
    struct arr *out = gather_node(&g);
    assert_fails(ERR_UNSUPPORTED, eval_arrays(&out, 1, false));
    arr_unref(&out);
    gather_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_gathers),
        cmocka_unit_test(test_without_wide_units),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_long_slices),
        cmocka_unit_test(test_out_of_range_is_clamped),
        cmocka_unit_test(test_empty_index_gives_an_empty_array),
        cmocka_unit_test(test_bool_cannot_index),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
