/* Updates of slices and slices with starts in arrays, through the public interface on both devices:
 * random ones against plain loops on the host, and who gets whose memory. */
#include "eval/wait.h"
#include "support/nd.h"

#include "api/handle.h"
#include "base/gate.h"
#include "base/stat.h"
#include "mlx/c/mlx.h"

#include <stdio.h>

/* ---- devices ---- */

struct device {
    const char *name;
    mlx_stream s;
    bool is_gpu;
};

static struct device devices[2];
static int n_devices;
static int n_errors;

static void count_error(const char *text, void *data)
{
    (void)text;
    (void)data;
    n_errors++;
}

/* A call of the public interface succeeds. */
#define must(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            fail_msg("%s: %s", #call, err_text());                                                 \
    } while (0)

static void must_fail(int status)
{
    assert_int_equal(status, 1);
    assert_int_equal(n_errors, 1);
    n_errors = 0;
}

static struct arr *arr_of(mlx_array a)
{
    return ((struct arr_box *)a.ctx)->arr;
}

/* The array that x describes, on the device. */
static mlx_array array_of(const struct nd *x, const struct device *d)
{
    mlx_array a = mlx_array_new_data(x->bytes, (int[]){ (int)x->n }, 1, (mlx_dtype)x->dtype);
    size_t n = (size_t)x->shape.ndim;

    if (shp_size(&x->shape))
        must(mlx_as_strided(&a, a, x->shape.d, n, x->strides, n, (size_t)x->offset, d->s));
    else
        must(mlx_zeros(&a, x->shape.d, n, (mlx_dtype)x->dtype, d->s));
    return a;
}

static mlx_array floats(const float *v, int n)
{
    return mlx_array_new_data(v, &n, 1, MLX_FLOAT32);
}

/* The GPU has worked for a, unless a is a view: a whole array that is replaced is its update. */
static void eval_on(const struct device *d, mlx_array a)
{
    uint64_t before = stat_get(STAT_DISPATCHES);
    bool is_view = op_table[arr_of(a)->node->op].flags & OPF_VIEW;

    must(mlx_array_eval(a));
    if (d->is_gpu && !is_view)
        assert_true(stat_get(STAT_DISPATCHES) > before);
}

/* Element n in row-major order; a is evaluated. */
static const void *element(mlx_array a, size_t n)
{
    struct arr *x = arr_of(a);
    struct shp shape;
    int32_t at[SHP_MAX];
    const void *first = NULL;
    int64_t offset = 0;

    arr_shape(&shape, x);
    nd_unravel(at, &shape, n);
    for (int i = 0; i < shape.ndim; i++)
        offset += at[i] * x->strides[i];
    assert_ok(arr_host(&first, x));
    return (const char *)first + offset * (int64_t)dt_size((enum dtype)x->dtype);
}

static float float_at(mlx_array a, size_t n)
{
    float v;

    memcpy(&v, element(a, n), sizeof v);
    return v;
}

/* ---- what a host loop makes of it ---- */

static bool is_larger(enum dtype t, struct num a, struct num b)
{
    if (!dt_is_inexact(t))
        return a.i > b.i;
    return a.re > b.re || (a.re == b.re && a.im > b.im);
}

static struct num combined(enum update_kind kind, enum dtype t, struct num a, struct num b)
{
    uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;

    switch (kind) {
    case UPDATE_MAX:
        return is_larger(t, a, b) ? a : b;
    case UPDATE_MIN:
        return is_larger(t, b, a) ? a : b;
    case UPDATE_SUM:
        return (struct num){ a.re + b.re, a.im + b.im, (int64_t)(t == DT_BOOL ? x | y : x + y) };
    case UPDATE_PROD:
        return (struct num){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re,
                             (int64_t)(x * y) };
    default:
        return b;
    }
}

/* Results have the bits of the loop; products of complex numbers are rounded in between. */
static void check_element(enum dtype t, const void *got, struct num want, bool is_close)
{
    char bytes[8];

    if (is_close) {
        nd_check(t, num_load(t, got), want, 8, "product");
        return;
    }
    num_store(t, bytes, want);
    if (memcmp(got, bytes, dt_size(t)) != 0)
        nd_check(t, num_load(t, got), num_load(t, bytes), 1e-300, "update");
}

static size_t ravel(const int32_t *at, const struct shp *shape)
{
    size_t n = 0;

    for (int i = 0; i < shape->ndim; i++)
        n = n * (size_t)shape->d[i] + (size_t)at[i];
    return n;
}

/* ---- fixed regions ---- */

struct update {
    struct nd src, new;
    enum update_kind kind;
    struct shp region;
    int32_t first[SHP_MAX]; /* element of src at which the region starts */
    int start[SHP_MAX], stop[SHP_MAX], step[SHP_MAX];
};

/* Any number of elements, any step; sometimes counted from the end. */
static void random_range(struct update *u, struct rng *r, int i)
{
    int d = u->src.shape.d[i], n = 1 + rng_below(r, d);
    int step = n > 1 ? 1 + rng_below(r, (d - 1) / (n - 1)) : 1 + rng_below(r, 3);
    int low = rng_below(r, d - (n - 1) * step), high = low + (n - 1) * step;
    bool back = rng_one_in(r, 3);

    u->region.d[i] = n;
    u->first[i] = back ? high : low;
    u->step[i] = back ? -step : step;
    u->start[i] = rng_one_in(r, 3) ? u->first[i] - d : u->first[i];
    u->stop[i] = back ? low - 1 : high + 1;
    if (u->stop[i] < 0)
        u->stop[i] = -d - 1; /* before the first element */
}

/* The region's shape, or one that broadcasts to it. */
static void update_shape(struct shp *shape, struct rng *r, const struct shp *region)
{
    *shape = *region;
    if (!rng_one_in(r, 4))
        return;
    int drop = rng_below(r, shape->ndim + 1);
    for (int i = 0; i < shape->ndim - drop; i++)
        shape->d[i] = rng_one_in(r, 2) ? 1 : region->d[i + drop];
    shape->ndim -= drop;
}

static void random_update(struct update *u, struct rng *r, enum dtype t)
{
    struct shp shape;

    nd_random_shape(&shape, r, 4, 2000);
    nd_make(&u->src, r, t, &shape, (enum nd_layout)rng_below(r, ND_LAYOUTS));
    u->region.ndim = shape.ndim;
    for (int i = 0; i < shape.ndim; i++)
        random_range(u, r, i);
    update_shape(&shape, r, &u->region);
    nd_make(&u->new, r, t, &shape, (enum nd_layout)rng_below(r, ND_LAYOUTS));
}

static void update_free(struct update *u)
{
    nd_free(&u->src);
    nd_free(&u->new);
}

typedef int (*update_fn)(mlx_array *, const mlx_array, const mlx_array, const int *, size_t,
                         const int *, size_t, const int *, size_t, const mlx_stream);
static const update_fn update_fns[] = { [UPDATE_MAX] = mlx_slice_update_max,
                                        [UPDATE_MIN] = mlx_slice_update_min,
                                        [UPDATE_SUM] = mlx_slice_update_add,
                                        [UPDATE_PROD] = mlx_slice_update_prod,
                                        [UPDATE_NONE] = mlx_slice_update };

static mlx_array call_update(const struct update *u, const struct device *d)
{
    mlx_array src = array_of(&u->src, d), new = array_of(&u->new, d), out = mlx_array_new();
    size_t n = (size_t)u->src.shape.ndim;

    must(update_fns[u->kind](&out, src, new, u->start, n, u->stop, n, u->step, n, d->s));
    mlx_array_free(src);
    mlx_array_free(new);
    return out;
}

/* The element of the update for a place in the region: dimensions align at the end. */
static struct num update_at(const struct update *u, const int32_t *at)
{
    const struct shp *s = &u->new.shape;
    int32_t place[SHP_MAX];

    for (int i = 0; i < s->ndim; i++)
        place[i] = s->d[i] == 1 ? 0 : at[u->region.ndim - s->ndim + i];
    return nd_get(&u->new, ravel(place, s));
}

static void check_update(const struct update *u, const struct device *d)
{
    size_t n = shp_size(&u->src.shape), n_region = shp_size(&u->region);
    bool is_close = u->kind == UPDATE_PROD && u->src.dtype == DT_COMPLEX64;
    struct num *want = mem_alloc(n * sizeof *want);
    mlx_array out = call_update(u, d);

    assert_non_null(want);
    for (size_t i = 0; i < n; i++)
        want[i] = nd_get(&u->src, i);
    for (size_t i = 0; i < n_region; i++) {
        int32_t at[SHP_MAX], in_src[SHP_MAX];
        nd_unravel(at, &u->region, i);
        for (int k = 0; k < u->region.ndim; k++)
            in_src[k] = u->first[k] + at[k] * (u->region.d[k] > 1 ? u->step[k] : 1);
        struct num *old = &want[ravel(in_src, &u->src.shape)];
        *old = combined(u->kind, u->src.dtype, *old, update_at(u, at));
    }
    eval_on(d, out);
    for (size_t i = 0; i < n; i++)
        check_element(u->src.dtype, element(out, i), want[i], is_close);
    mlx_array_free(out);
    mem_free(want);
}

static void test_random_updates(void **state)
{
    const struct device *d = *state;
    struct rng r = { 11 };

    for (int t = 0; t < DT_COUNT; t++)
        for (int kind = 0; kind <= UPDATE_NONE; kind++)
            for (int n = 0; n < 4 && !(d->is_gpu && t == DT_FLOAT64); n++) {
                struct update u = { .kind = (enum update_kind)kind };
                random_update(&u, &r, (enum dtype)t);
                check_update(&u, d);
                update_free(&u);
            }
}

/* Long rows and many threads. */
static void test_large_updates(void **state)
{
    const struct device *d = *state;
    struct rng r = { 12 };
    struct shp whole = { 2, { 300, 1024 } }, part = { 2, { 200, 1000 } };

    for (int kind = 0; kind <= UPDATE_NONE; kind++) {
        struct update u = { .kind = (enum update_kind)kind, .region = part };
        nd_make(&u.src, &r, DT_FLOAT16, &whole, ND_ROW);
        nd_make(&u.new, &r, DT_FLOAT16, &part, kind % 2 ? ND_ROW : ND_PERMUTED);
        for (int i = 0; i < 2; i++) {
            u.first[i] = u.start[i] = 8 * (i + 1);
            u.stop[i] = u.start[i] + part.d[i];
            u.step[i] = 1;
        }
        check_update(&u, d);
        update_free(&u);
    }
}

/* ---- starts in arrays ---- */

struct dynamic {
    struct nd src, new, start; /* new: also the shape of the slice */
    int axes[SHP_MAX];
    int32_t first[SHP_MAX];
};

static const enum dtype start_types[] = { DT_INT32, DT_UINT32, DT_INT64,  DT_UINT8,
                                          DT_INT8,  DT_INT16,  DT_UINT16, DT_UINT64 };

/* A position in the type of the start array, and where it leads: negative ones count from the end,
 * what does not fit moves to the nearest place that does. */
static int64_t random_position(struct rng *r, enum dtype t, int32_t *first, int32_t dim, int32_t n)
{
    bool is_signed = dt_table[t].kind == DT_KIND_I;
    int last = dim - n, v = rng_below(r, MIN(last, 100) + 1);

    *first = v;
    if (is_signed && dim <= 120 && rng_one_in(r, 4))
        return v - dim;
    if (rng_one_in(r, 8) && dim < 127) {
        *first = last;
        return 127;
    }
    if (is_signed && rng_one_in(r, 8) && dim < 127) {
        *first = 0;
        return -127;
    }
    return v;
}

static void random_dynamic(struct dynamic *x, struct rng *r, const enum dtype types[2])
{
    struct shp shape, part, n_axes = { 1, { 0 } };
    int64_t at[SHP_MAX];

    memset(x, 0, sizeof *x);
    nd_random_shape(&shape, r, 4, 2000);
    part = shape;
    for (int i = shape.ndim - 1; i >= 0; i--) {
        part.d[i] = rng_one_in(r, 3) ? shape.d[i] : 1 + rng_below(r, shape.d[i]);
        if (rng_one_in(r, 3))
            continue;
        int k = n_axes.d[0]++;
        x->axes[k] = rng_one_in(r, 2) ? i : i - shape.ndim;
        at[k] = random_position(r, types[1], &x->first[i], shape.d[i], part.d[i]);
    }
    nd_make(&x->src, r, types[0], &shape, (enum nd_layout)rng_below(r, ND_LAYOUTS));
    nd_make(&x->new, r, types[0], &part, (enum nd_layout)rng_below(r, ND_LAYOUTS));
    nd_make(&x->start, r, types[1], &n_axes, (enum nd_layout)rng_below(r, ND_BROADCAST));
    for (int k = 0; k < n_axes.d[0]; k++)
        num_store(types[1], nd_at(&x->start, (size_t)k), (struct num){ .i = at[k] });
}

static void dynamic_free(struct dynamic *x)
{
    nd_free(&x->src);
    nd_free(&x->new);
    nd_free(&x->start);
}

/* Where element n of the slice lies in src. */
static size_t place_in_src(const struct dynamic *x, size_t n)
{
    int32_t at[SHP_MAX];

    nd_unravel(at, &x->new.shape, n);
    for (int i = 0; i < x->src.shape.ndim; i++)
        at[i] += x->first[i];
    return ravel(at, &x->src.shape);
}

static void check_same(const void *got, const void *want, enum dtype t, const char *what)
{
    if (memcmp(got, want, dt_size(t)) != 0)
        nd_check(t, num_load(t, got), num_load(t, want), 1e-300, what);
}

static void check_slice(const struct dynamic *x, mlx_array src, mlx_array start,
                        const struct device *d)
{
    const struct shp *part = &x->new.shape;
    mlx_array out = mlx_array_new();

    must(mlx_slice_dynamic(&out, src, start, x->axes, x->start.n ? (size_t)x->start.shape.d[0] : 0,
                           part->d, (size_t)part->ndim, d->s));
    eval_on(d, out);
    for (size_t i = 0; i < shp_size(part); i++)
        check_same(element(out, i), nd_at(&x->src, place_in_src(x, i)), x->src.dtype, "slice");
    mlx_array_free(out);
}

static void check_dynamic_update(const struct dynamic *x, mlx_array src, mlx_array start,
                                 const struct device *d)
{
    size_t n = shp_size(&x->src.shape), n_part = shp_size(&x->new.shape);
    const void **want = mem_alloc_array(n, sizeof *want);
    mlx_array out = mlx_array_new(), new = array_of(&x->new, d);

    assert_non_null(want);
    for (size_t i = 0; i < n; i++)
        want[i] = nd_at(&x->src, i);
    for (size_t i = 0; i < n_part; i++)
        want[place_in_src(x, i)] = nd_at(&x->new, i);
    must(mlx_slice_update_dynamic(&out, src, new, start, x->axes, (size_t)x->start.shape.d[0],
                                  d->s));
    eval_on(d, out);
    for (size_t i = 0; i < n; i++)
        check_same(element(out, i), want[i], x->src.dtype, "dynamic update");
    mlx_array_free(out);
    mlx_array_free(new);
    mem_free(want);
}

static void check_random_dynamic(const struct device *d, uint64_t seed, int rounds)
{
    struct rng r = { seed };
    struct dynamic x;

    for (int t = 0; t < DT_COUNT; t++)
        for (size_t k = 0; k < ARRAY_LEN(start_types); k++)
            for (int n = 0; n < rounds && !(d->is_gpu && t == DT_FLOAT64); n++) {
                random_dynamic(&x, &r, (enum dtype[]){ (enum dtype)t, start_types[k] });
                mlx_array src = array_of(&x.src, d), start = array_of(&x.start, d);
                check_slice(&x, src, start, d);
                check_dynamic_update(&x, src, start, d);
                mlx_array_free(src);
                mlx_array_free(start);
                dynamic_free(&x);
            }
}

static void test_random_dynamic(void **state)
{
    check_random_dynamic(*state, 21, 2);
}

static void test_dynamic_without_wide_units(void **state)
{
    gate_set_int(GATE_VK_COPY_DYNAMIC_WIDE, 0);
    check_random_dynamic(*state, 22, 1);
    gate_set_int(GATE_VK_COPY_DYNAMIC_WIDE, 1);
}

/* A start that is a result of the same evaluation, not a leaf. */
static void test_start_is_computed(void **state)
{
    const struct device *d = *state;
    const float v[] = { 0, 1, 2, 3, 4, 5, 6, 7 };

    mlx_array a = floats(v, 8), at = mlx_array_new(), out = mlx_array_new();
    must(mlx_argmax(&at, a, false, d->s)); /* 7 */
    mlx_array two = mlx_array_new_int(2);
    must(mlx_subtract(&at, at, two, d->s));
    must(mlx_slice_dynamic(&out, a, at, (int[]){ 0 }, 1, (int[]){ 3 }, 1, d->s));
    eval_on(d, out);
    assert_true(float_at(out, 0) == 5 && float_at(out, 2) == 7);
    mlx_array_free(a);
    mlx_array_free(at);
    mlx_array_free(two);
    mlx_array_free(out);
}

/* ---- memory ---- */

/* Dimensions of a cache: batch, heads, positions, values. */
enum { B = 2, H = 3, L = 20, D = 8 };

static mlx_array new_cache(const struct device *d)
{
    mlx_array cache = mlx_array_new();

    must(mlx_zeros(&cache, (int[]){ B, H, L, D }, 4, MLX_FLOAT32, d->s));
    eval_on(d, cache);
    return cache;
}

/* What step t writes: one position of every head. */
static mlx_array new_row(int t)
{
    float v[B * H * D];

    for (int i = 0; i < B * H * D; i++)
        v[i] = (float)(100 * (t + 1) + i);
    return mlx_array_new_data(v, (int[]){ B, H, 1, D }, 4, MLX_FLOAT32);
}

static void put_row(mlx_array *cache, int t, bool dynamic, const struct device *d)
{
    mlx_array row = new_row(t), at = mlx_array_new_data(&t, (int[]){ 1 }, 1, MLX_INT32);

    if (dynamic)
        must(mlx_slice_update_dynamic(cache, *cache, row, at, (int[]){ 2 }, 1, d->s));
    else
        must(mlx_slice_update(cache, *cache, row, (int[]){ 0, 0, t, 0 }, 4,
                              (int[]){ B, H, t + 1, D }, 4, (int[]){ 1, 1, 1, 1 }, 4, d->s));
    mlx_array_free(row);
    mlx_array_free(at);
}

static void check_cache(mlx_array cache, int steps)
{
    for (int i = 0; i < B * H * L * D; i++) {
        int t = i / D % L, in_row = i / (L * D) * D + i % D;
        float want = t < steps ? (float)(100 * (t + 1) + in_row) : 0;
        if (float_at(cache, (size_t)i) != want)
            fail_msg("element %d is %g, not %g", i, (double)float_at(cache, (size_t)i),
                     (double)want);
    }
}

/* Step by step: the buffer stays, one dispatch each, and the host never sees old values. */
static void check_in_place(const struct device *d, bool is_read_eagerly)
{
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        mlx_array cache = new_cache(d);
        put_row(&cache, 0, dynamic, d);
        eval_on(d, cache);
        const struct buf *buf = arr_of(cache)->buf;
        for (int t = 1; t < L; t++) {
            uint64_t donations = stat_get(STAT_DONATIONS);
            uint64_t dispatches = stat_get(STAT_DISPATCHES);
            put_row(&cache, t, dynamic, d);
            eval_on(d, cache);
            assert_ptr_equal(arr_of(cache)->buf, buf);
            assert_int_equal(stat_get(STAT_DONATIONS), donations + 1);
            if (!is_read_eagerly) /* which is a dispatch, where memory is not unified */
                assert_int_equal(stat_get(STAT_DISPATCHES), dispatches + d->is_gpu);
            check_cache(cache, t + 1);
        }
        mlx_array_free(cache);
    }
}

static void test_cache_in_place(void **state)
{
    check_in_place(*state, true);
    int64_t old = gate_set_int(GATE_VK_EAGER_READ, 0);
    check_in_place(*state, false);
    gate_set_int(GATE_VK_EAGER_READ, old);
}

/* All steps in one graph. */
static void test_cache_chain(void **state)
{
    const struct device *d = *state;
    mlx_array cache = new_cache(d);
    put_row(&cache, 0, false, d);
    eval_on(d, cache);
    const struct buf *buf = arr_of(cache)->buf;
    for (int t = 1; t < L; t++)
        put_row(&cache, t, t % 2, d);
    eval_on(d, cache);
    assert_ptr_equal(arr_of(cache)->buf, buf);
    check_cache(cache, L);
    mlx_array_free(cache);
}

/* Steps that do not wait for each other, with a reader of every state in between: the stream orders
 * them, so the buffer stays. */
static void test_cache_async(void **state)
{
    const struct device *d = *state;
    mlx_array cache = new_cache(d), sum[L];
    const struct buf *buf = NULL;
    for (int t = 0; t < L; t++) {
        put_row(&cache, t, t % 2, d);
        sum[t] = mlx_array_new();
        must(mlx_sum(&sum[t], cache, false, d->s));
        mlx_vector_array both = mlx_vector_array_new_data((mlx_array[]){ cache, sum[t] }, 2);
        must(mlx_async_eval(both));
        mlx_vector_array_free(both);
        assert_true(t == 0 || arr_of(cache)->buf == buf);
        buf = arr_of(cache)->buf;
    }
    float want = 0;
    for (int t = 0; t < L; t++) {
        for (int i = 0; i < B * H * D; i++)
            want += (float)(100 * (t + 1) + i);
        assert_true(float_at(sum[t], 0) == want); /* whole numbers below 2^24 */
        mlx_array_free(sum[t]);
    }
    check_cache(cache, L);
    mlx_array_free(cache);
}

/* Whoever still holds the source keeps its values. */
static void test_held_source_is_copied(void **state)
{
    const struct device *d = *state;
    mlx_array old = new_cache(d), new = mlx_array_new();
    put_row(&old, 0, false, d);
    eval_on(d, old);
    must(mlx_array_set(&new, old));
    uint64_t donations = stat_get(STAT_DONATIONS);
    put_row(&new, 1, true, d);
    eval_on(d, new);
    assert_int_equal(stat_get(STAT_DONATIONS), donations);
    assert_ptr_not_equal(arr_of(new)->buf, arr_of(old)->buf);
    check_cache(old, 1);
    check_cache(new, 2);
    mlx_array_free(old);
    mlx_array_free(new);
}

/* The source is also what the update is made of: rows move down by one. */
static void test_update_from_itself(void **state)
{
    const struct device *d = *state;
    enum { N = 6, M = 5 };

    mlx_array a = mlx_array_new(), part = mlx_array_new();
    must(mlx_arange(&a, 0, N * M, 1, MLX_FLOAT32, d->s));
    must(mlx_reshape(&a, a, (int[]){ N, M }, 2, d->s));
    eval_on(d, a);
    must(mlx_slice(&part, a, (int[]){ 0, 0 }, 2, (int[]){ N - 1, M }, 2, (int[]){ 1, 1 }, 2, d->s));
    must(mlx_slice_update(&a, a, part, (int[]){ 1, 0 }, 2, (int[]){ N, M }, 2, (int[]){ 1, 1 }, 2,
                          d->s));
    mlx_array_free(part);
    eval_on(d, a);
    for (int i = 0; i < N * M; i++)
        assert_true(float_at(a, (size_t)i) == (float)(i < M ? i : i - M));
    mlx_array_free(a);
}

/* A dense source in another order of axes keeps its layout, copied or not. */
static void test_layout_is_kept(void **state)
{
    const struct device *d = *state;
    for (int held = 0; held < 2; held++) {
        mlx_array a = mlx_array_new(), keep = mlx_array_new(), one = mlx_array_new_float(1);
        must(mlx_zeros(&a, (int[]){ 4, 6 }, 2, MLX_FLOAT32, d->s));
        must(mlx_transpose(&a, a, d->s));
        eval_on(d, a);
        if (held)
            must(mlx_array_set(&keep, a));
        must(mlx_slice_update_add(&a, a, one, (int[]){ 1, 1 }, 2, (int[]){ 3, 4 }, 2,
                                  (int[]){ 1, 2 }, 2, d->s));
        eval_on(d, a);
        assert_int_equal(mlx_array_strides(a)[0], 1);
        assert_int_equal(mlx_array_strides(a)[1], 6);
        for (int i = 0; i < 24; i++) {
            bool inside = i / 4 >= 1 && i / 4 < 3 && (i % 4 == 1 || i % 4 == 3);
            assert_true(float_at(a, (size_t)i) == (inside ? 1.0f : 0.0f));
        }
        mlx_array_free(a);
        mlx_array_free(keep);
        mlx_array_free(one);
    }
}

/* ---- values that need care ---- */

static void test_bits_of_nans(void **state)
{
    const struct device *d = *state;
    const uint16_t half[] = { 0x7d01, 0xfe12, 0x3c00, 0x0001, 0x7c00 };
    const uint16_t bf16[] = { 0x7f81, 0xffc3, 0x3f80, 0x0001, 0xff80 };
    const uint32_t f32[] = { 0x7f800001, 0xffc12345, 0x3f800000, 1, 0xff800000 };
    const struct {
        const void *data;
        mlx_dtype dtype;
        size_t item;
    } rows[] = { { half, MLX_FLOAT16, 2 }, { bf16, MLX_BFLOAT16, 2 }, { f32, MLX_FLOAT32, 4 } };

    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        mlx_array a = mlx_array_new_data(rows[k].data, (int[]){ 5 }, 1, rows[k].dtype);
        mlx_array out = mlx_array_new(), part = mlx_array_new();
        must(mlx_slice(&part, a, (int[]){ 0 }, 1, (int[]){ 2 }, 1, (int[]){ 1 }, 1, d->s));
        must(mlx_slice_update(&out, a, part, (int[]){ 4 }, 1, (int[]){ 1 }, 1, (int[]){ -2 }, 1,
                              d->s));
        eval_on(d, out);
        for (size_t i = 0; i < 5; i++) {
            size_t from = i == 4 ? 0 : i == 2 ? 1 : i;
            assert_memory_equal(element(out, i), (const char *)rows[k].data + from * rows[k].item,
                                rows[k].item);
        }
        mlx_array_free(a);
        mlx_array_free(out);
        mlx_array_free(part);
    }
}

static void test_nan_beats_numbers(void **state)
{
    const struct device *d = *state;
    const float nan = __builtin_nanf(""), old[] = { nan, 1, 2, 3 }, new[] = { 5, nan, 7 };

    for (int kind = UPDATE_MAX; kind < UPDATE_NONE; kind++) {
        mlx_array a = floats(old, 4), b = floats(new, 3), out = mlx_array_new();
        must(update_fns[kind](&out, a, b, (int[]){ 0 }, 1, (int[]){ 3 }, 1, (int[]){ 1 }, 1, d->s));
        eval_on(d, out);
        assert_true(__builtin_isnan(float_at(out, 0)) && __builtin_isnan(float_at(out, 1)));
        assert_false(__builtin_isnan(float_at(out, 2)));
        assert_true(float_at(out, 3) == 3);
        mlx_array_free(a);
        mlx_array_free(b);
        mlx_array_free(out);
    }
}

/* ---- nothing to do, and nothing that can be done ---- */

static void test_empty(void **state)
{
    const struct device *d = *state;
    const float v[] = { 1, 2, 3 };

    mlx_array a = floats(v, 3), none = mlx_array_new(), out = mlx_array_new();
    mlx_array at = mlx_array_new_int(1);
    must(mlx_zeros(&none, (int[]){ 0 }, 1, MLX_FLOAT32, d->s));
    must(mlx_slice_update_add(&out, a, none, (int[]){ 2 }, 1, (int[]){ 2 }, 1, (int[]){ 1 }, 1,
                              d->s));
    assert_ptr_equal(arr_of(out), arr_of(a));
    must(mlx_slice_update_dynamic(&out, a, none, at, (int[]){ 0 }, 1, d->s));
    assert_ptr_equal(arr_of(out), arr_of(a));
    must(mlx_slice_dynamic(&out, a, at, (int[]){ 0 }, 1, (int[]){ 0 }, 1, d->s));
    must(mlx_array_eval(out));
    assert_int_equal(mlx_array_size(out), 0);
    must_fail(mlx_slice_update(&out, none, a, (int[]){ 0 }, 1, (int[]){ 0 }, 1, (int[]){ 1 }, 1,
                               d->s)); /* 3 into 0 */
    mlx_array_free(a);
    mlx_array_free(none);
    mlx_array_free(out);
    mlx_array_free(at);
}

static void test_errors(void **state)
{
    const float v[] = { 1, 2, 3, 4, 5, 6 };
    const int ints[] = { 0, 0, 0 }, none[] = { 0, 0 }, one[] = { 1, 1 }, two[] = { 2, 2 };
    mlx_array a = mlx_array_new_data(v, (int[]){ 2, 3 }, 2, MLX_FLOAT32), x = floats(v, 4);
    mlx_array at = mlx_array_new_data(ints, (int[]){ 2 }, 1, MLX_INT32), out = mlx_array_new();
    mlx_array many = mlx_array_new_data(ints, (int[]){ 3 }, 1, MLX_INT32);
    mlx_array square = mlx_array_new_data(ints, (int[]){ 1, 2 }, 2, MLX_INT32);
    mlx_array deep = mlx_array_new_data(v, (int[]){ 1, 2, 3 }, 3, MLX_FLOAT32);
    mlx_array real = floats(v, 2);
    mlx_stream s = devices[0].s;

    (void)state;
    must_fail(mlx_slice_update(&out, a, x, none, 1, two, 2, one, 2, s));
    must_fail(mlx_slice_update(&out, a, x, none, 2, two, 2, none, 2, s)); /* a stride of 0 */
    must_fail(mlx_slice_update(&out, a, x, none, 2, two, 2, one, 2, s));  /* 4 into 2 x 2 */
    must_fail(mlx_slice_update_max(&out, a, deep, none, 2, two, 2, one, 2, s));
    must_fail(mlx_slice_dynamic(&out, a, many, (int[]){ 0, 1, 1 }, 3, one, 2, s));
    must_fail(mlx_slice_dynamic(&out, a, square, (int[]){ 0, 1 }, 2, one, 2, s));
    must_fail(mlx_slice_dynamic(&out, a, real, (int[]){ 0, 1 }, 2, one, 2, s));
    must_fail(mlx_slice_dynamic(&out, a, at, (int[]){ 0, 0 }, 2, one, 2, s));
    must_fail(mlx_slice_dynamic(&out, a, at, (int[]){ 0, 2 }, 2, one, 2, s));
    must_fail(mlx_slice_dynamic(&out, a, at, (int[]){ 0 }, 1, one, 2, s));
    must_fail(mlx_slice_dynamic(&out, a, at, (int[]){ 0, 1 }, 2, one, 1, s));
    must_fail(mlx_slice_dynamic(&out, a, at, (int[]){ 0, 1 }, 2, (int[]){ 3, 1 }, 2, s));
    must_fail(mlx_slice_dynamic(&out, a, at, (int[]){ 0, 1 }, 2, (int[]){ -1, 1 }, 2, s));
    must_fail(mlx_slice_update_dynamic(&out, a, x, at, (int[]){ 0, 1 }, 2, s)); /* 4 of 3 */
    must_fail(mlx_slice_update_dynamic(&out, a, deep, at, (int[]){ 0, 1 }, 2, s));
    must_fail(mlx_slice_update_dynamic(&out, a, a, at, (int[]){ 0, -2 }, 2, s));
    mlx_array_free(a);
    mlx_array_free(x);
    mlx_array_free(at);
    mlx_array_free(out);
    mlx_array_free(many);
    mlx_array_free(square);
    mlx_array_free(deep);
    mlx_array_free(real);
}

/* ---- */

static int open_devices(void **state)
{
    (void)state;
    mlx_set_error_handler(count_error, NULL, NULL);
    devices[n_devices++] = (struct device){ .name = "cpu", .s = mlx_default_cpu_stream_new() };
    if (MLX_HAVE_VULKAN)
        devices[n_devices++] =
            (struct device){ .name = "gpu", .s = mlx_default_gpu_stream_new(), .is_gpu = true };
    for (int i = 0; i < n_devices; i++)
        if (!devices[i].s.ctx) {
            print_error("no %s: %s\n", devices[i].name, err_text());
            return -1;
        }
    return 0;
}

/* A test on every device. */
#define ON_CPU(fn) cmocka_unit_test_prestate(fn, &devices[0])
#if MLX_HAVE_VULKAN
#define EACH(fn) ON_CPU(fn), cmocka_unit_test_prestate(fn, &devices[1])
#else
#define EACH(fn) ON_CPU(fn)
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(test_random_updates),        EACH(test_large_updates),
        EACH(test_random_dynamic),        EACH(test_dynamic_without_wide_units),
        EACH(test_start_is_computed),     EACH(test_cache_in_place),
        EACH(test_cache_chain),           EACH(test_cache_async),
        EACH(test_held_source_is_copied), EACH(test_update_from_itself),
        EACH(test_layout_is_kept),        EACH(test_bits_of_nans),
        EACH(test_nan_beats_numbers),     EACH(test_empty),
        cmocka_unit_test(test_errors),    cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, open_devices, NULL);
}
