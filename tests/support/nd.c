#include "support/nd.h"
#include "eval/wait.h"

#include <math.h>

#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "graph/op.h"
#include "ops/ops.h"

struct strm *nd_gpu;

int nd_open(void **state)
{
    (void)state;
    return strm_new(&nd_gpu, (struct dev){ DEV_GPU, 0 }) == ERR_OK ? 0 : -1;
}

int nd_open_for_counts(void **state)
{
    gate_set_int(GATE_VK_EAGER_READ, 0);
    return nd_open(state);
}

void nd_test_no_validation_messages(void **state)
{
    (void)state;
    assert_int_equal(stat_get(STAT_VALIDATION_MESSAGES), 0);
}

/* ---- numbers ---- */

#define LOAD_INT(type)                                                                             \
    do {                                                                                           \
        type v_;                                                                                   \
        memcpy(&v_, p, sizeof v_);                                                                 \
        return (struct num){ .re = (double)v_, .i = (int64_t)v_ };                                 \
    } while (0)

static struct num load_float(double v)
{
    return (struct num){ .re = v };
}

struct num num_load(enum dtype t, const void *p)
{
    uint16_t h;
    float f[2];
    double d;

    switch (t) {
    case DT_BOOL:
        LOAD_INT(uint8_t);
    case DT_UINT8:
        LOAD_INT(uint8_t);
    case DT_UINT16:
        LOAD_INT(uint16_t);
    case DT_UINT32:
        LOAD_INT(uint32_t);
    case DT_UINT64:
        LOAD_INT(uint64_t);
    case DT_INT8:
        LOAD_INT(int8_t);
    case DT_INT16:
        LOAD_INT(int16_t);
    case DT_INT32:
        LOAD_INT(int32_t);
    case DT_INT64:
        LOAD_INT(int64_t);
    case DT_FLOAT16:
        memcpy(&h, p, 2);
        return load_float(dt_f16_to_f32(h));
    case DT_BFLOAT16:
        memcpy(&h, p, 2);
        return load_float(dt_bf16_to_f32(h));
    case DT_FLOAT32:
        memcpy(f, p, 4);
        return load_float(f[0]);
    case DT_FLOAT64:
        memcpy(&d, p, 8);
        return load_float(d);
    case DT_COMPLEX64:
        memcpy(f, p, 8);
        return (struct num){ .re = f[0], .im = f[1] };
    default:
        fail_msg("no dtype has the number %d", (int)t);
        return load_float(0);
    }
}

void num_store(enum dtype t, void *p, struct num v)
{
    float f[2] = { (float)v.re, (float)v.im };
    uint16_t h;

    switch (t) {
    case DT_FLOAT16:
        h = dt_f32_to_f16(f[0]);
        memcpy(p, &h, 2);
        break;
    case DT_BFLOAT16:
        h = dt_f32_to_bf16(f[0]);
        memcpy(p, &h, 2);
        break;
    case DT_FLOAT32:
        memcpy(p, f, 4);
        break;
    case DT_FLOAT64:
        memcpy(p, &v.re, 8);
        break;
    case DT_COMPLEX64:
        memcpy(p, f, 8);
        break;
    default:
        memcpy(p, &v.i, dt_size(t));
        break; /* little-endian: the low bytes */
    }
}

static struct num random_num(struct rng *r, enum dtype t)
{
    double u = (double)rng_below(r, 1 << 20) / (1 << 18) - 2;
    double w = (double)rng_below(r, 1 << 20) / (1 << 18) - 2;

    switch (dt_table[t].kind) {
    case DT_KIND_B:
        return (struct num){ .i = rng_below(r, 2) };
    case DT_KIND_U:
        return (struct num){ .i = rng_below(r, 7) };
    case DT_KIND_I:
        return (struct num){ .i = rng_below(r, 9) - 4 };
    default:
        return (struct num){ .re = u, .im = w };
    }
}

/* ---- layouts ---- */

static void permute(int *order, struct rng *r, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = rng_below(r, i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

/* Strides and offset; returns how many elements are looked at. */
static size_t lay_out(struct nd *a, struct rng *r, enum nd_layout layout)
{
    int order[SHP_MAX], n = a->shape.ndim;
    int64_t step = layout == ND_SLICED ? 2 : 1;

    for (int i = 0; i < n; i++)
        order[i] = i;
    if (layout == ND_PERMUTED)
        permute(order, r, n);
    a->offset = layout == ND_SHIFTED || layout == ND_SLICED ? 1 + rng_below(r, 6) : 0;
    for (int i = n - 1; i >= 0; i--) {
        int32_t d = a->shape.d[order[i]];
        a->strides[order[i]] = step;
        if (layout == ND_BROADCAST && rng_one_in(r, 2)) {
            a->strides[order[i]] = 0;
            d = 1;
        }
        if (layout == ND_REVERSED && rng_one_in(r, 2)) {
            a->strides[order[i]] = -step;
            a->offset += step * (d - 1);
        }
        step *= layout == ND_SLICED ? 2 * (int64_t)d : d;
    }
    return (size_t)(step + (layout == ND_SHIFTED || layout == ND_SLICED ? 8 : 0));
}

void nd_make(struct nd *a, struct rng *r, enum dtype t, const struct shp *shape,
             enum nd_layout layout)
{
    *a = (struct nd){ .dtype = t, .shape = *shape };
    if (shp_size(shape) == 0)
        layout = ND_ROW;
    a->n = lay_out(a, r, layout);
    size_t item = dt_size(t);

    a->bytes = mem_alloc((a->n + 1) * item);
    assert_non_null(a->bytes);
    for (size_t i = 0; i < a->n; i++)
        num_store(t, a->bytes + i * item, random_num(r, t));
    nd_view(a);
}

void nd_view(struct nd *a)
{
    struct shp flat = { 1, { (int32_t)a->n } };
    struct ops_as_strided p = { .shape = { a->shape.d, (size_t)a->shape.ndim },
                                .strides = a->strides,
                                .n_strides = (size_t)a->shape.ndim,
                                .offset = (size_t)a->offset };
    struct arr *base = NULL;

    arr_unref(&a->arr);
    if (shp_size(&a->shape) == 0) {
        assert_ok(arr_new_data(&a->arr, a->bytes, &a->shape, a->dtype));
        return;
    }
    assert_ok(arr_new_data(&base, a->bytes, &flat, a->dtype));
    assert_ok(ops_as_strided(&a->arr, base, &p, nd_gpu));
    arr_unref(&base);
}

void nd_unravel(int32_t *at, const struct shp *shape, size_t n)
{
    for (int i = shape->ndim - 1; i >= 0; i--) {
        at[i] = (int32_t)(n % (size_t)shape->d[i]);
        n /= (size_t)shape->d[i];
    }
}

void *nd_at(const struct nd *a, size_t n)
{
    int64_t offset = a->offset;
    int32_t at[SHP_MAX];

    nd_unravel(at, &a->shape, n);
    for (int i = 0; i < a->shape.ndim; i++)
        offset += at[i] * a->strides[i];
    return a->bytes + offset * (int64_t)dt_size(a->dtype);
}

struct num nd_get(const struct nd *a, size_t n)
{
    return num_load(a->dtype, nd_at(a, n));
}

void nd_free(struct nd *a)
{
    arr_unref(&a->arr);
    mem_free(a->bytes);
    a->bytes = NULL;
}

void nd_random_shape(struct shp *shape, struct rng *r, int max_ndim, size_t max_size)
{
    size_t left = max_size;

    shape->ndim = 1 + rng_below(r, max_ndim);
    for (int i = 0; i < shape->ndim; i++) {
        int top = (int)MIN(left, (size_t)(rng_one_in(r, 4) ? 300 : 12));
        shape->d[i] = 1 + rng_below(r, MAX(top, 1));
        left = MAX(left / (size_t)shape->d[i], 1u);
    }
}

/* ---- running and checking ---- */

const void *nd_run(struct arr *out)
{
    uint64_t before = stat_get(STAT_DISPATCHES);
    const void *host = NULL;

    assert_ok(eval_arrays(&out, 1, false));
    assert_true(stat_get(STAT_DISPATCHES) > before);
    assert_true(out->flags & LAYOUT_ROW);
    assert_ok(arr_host(&host, out));
    return host;
}

static double tolerance(enum dtype t)
{
    switch (t) {
    case DT_FLOAT16:
        return 1.0 / 1024;
    case DT_BFLOAT16:
        return 1.0 / 128;
    default:
        return 1e-5;
    }
}

static bool close_to(double got, double want, double allowed)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    return got == want || fabs(got - want) <= allowed;
}

void nd_check(enum dtype t, struct num got, struct num want, double scale, const char *what)
{
    bool ok = got.i == want.i;

    if (dt_is_inexact(t)) {
        double least = t == DT_FLOAT16 ? 6e-8 : 1e-8; /* half precision has large subnormals */
        double allowed =
            scale != 0 ? tolerance(t) * scale : tolerance(t) * hypot(want.re, want.im) + least;
        ok = close_to(got.re, want.re, allowed) &&
             (t != DT_COMPLEX64 || close_to(got.im, want.im, allowed));
    }
    if (!ok)
        fail_msg("%s: %s gives %.9g %+.9gi (%lld), should be %.9g %+.9gi (%lld)", what, dt_name(t),
                 got.re, got.im, (long long)got.i, want.re, want.im, (long long)want.i);
}
