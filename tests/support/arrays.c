#include "support/arrays.h"
#include "eval/wait.h"

#include "base/to_int.h"
#include "eval/eval.h"
#include "ops/ops.h"

#include <math.h>

struct strm *test_stream(void)
{
    struct strm *s;

    assert_ok(strm_default(&s, (struct dev){ DEV_CPU, 0 }));
    return s;
}

/* ---- single elements ---- */

static void write_element(void *p, double complex v, enum dtype t)
{
    double re = creal(v);

    switch (t) {
    case DT_BOOL:
        *(uint8_t *)p = v != 0;
        break;
    case DT_UINT8:
        *(uint8_t *)p = (uint8_t)to_int64(re);
        break;
    case DT_UINT16:
        *(uint16_t *)p = (uint16_t)to_int64(re);
        break;
    case DT_UINT32:
        *(uint32_t *)p = (uint32_t)to_int64(re);
        break;
    case DT_UINT64:
        *(uint64_t *)p = to_uint64(re);
        break;
    case DT_INT8:
        *(int8_t *)p = (int8_t)to_int64(re);
        break;
    case DT_INT16:
        *(int16_t *)p = (int16_t)to_int64(re);
        break;
    case DT_INT32:
        *(int32_t *)p = (int32_t)to_int64(re);
        break;
    case DT_INT64:
        *(int64_t *)p = to_int64(re);
        break;
    case DT_FLOAT16:
        *(uint16_t *)p = dt_f32_to_f16((float)re);
        break;
    case DT_BFLOAT16:
        *(uint16_t *)p = dt_f32_to_bf16((float)re);
        break;
    case DT_FLOAT32:
        *(float *)p = (float)re;
        break;
    case DT_FLOAT64:
        *(double *)p = re;
        break;
    default:
        *(float complex *)p = (float complex)v;
        break;
    }
}

static double complex read_element(const void *p, enum dtype t)
{
    switch (t) {
    case DT_BOOL:
    case DT_UINT8:
        return *(const uint8_t *)p;
    case DT_UINT16:
        return *(const uint16_t *)p;
    case DT_UINT32:
        return *(const uint32_t *)p;
    case DT_UINT64:
        return (double)*(const uint64_t *)p;
    case DT_INT8:
        return *(const int8_t *)p;
    case DT_INT16:
        return *(const int16_t *)p;
    case DT_INT32:
        return *(const int32_t *)p;
    case DT_INT64:
        return (double)*(const int64_t *)p;
    case DT_FLOAT16:
        return (double)dt_f16_to_f32(*(const uint16_t *)p);
    case DT_BFLOAT16:
        return (double)dt_bf16_to_f32(*(const uint16_t *)p);
    case DT_FLOAT32:
        return (double)*(const float *)p;
    case DT_FLOAT64:
        return *(const double *)p;
    default:
        return (double complex) * (const float complex *)p;
    }
}

double complex rounded_to(double complex v, enum dtype t)
{
    _Alignas(8) char element[8];

    write_element(element, v, t);
    return read_element(element, t);
}

double complex random_value(struct rng *r, enum dtype t)
{
    double a = (rng_below(r, 512) - 256) / 64.0, b = (rng_below(r, 512) - 256) / 64.0;

    switch (dt_table[t].kind) {
    case DT_KIND_B:
        return rng_below(r, 2);
    case DT_KIND_U:
        return rng_below(r, 6);
    case DT_KIND_I:
        return rng_below(r, 11) - 5;
    case DT_KIND_F:
        return a;
    default:
        return a + b * I;
    }
}

double complex *random_values(struct rng *r, size_t n, enum dtype t)
{
    double complex *v = mem_alloc_array(n + 1, sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = random_value(r, t);
    return v;
}

struct arr *arr_random(struct rng *r, const struct shp *s, enum dtype t, enum layout layout)
{
    double complex *v = random_values(r, shp_size(s), t);
    struct arr *a = arr_of_layout(v, s, t, layout);

    mem_free(v);
    return a;
}

double tolerance_of(enum dtype t)
{
    switch (t) {
    case DT_FLOAT16:
        return 2e-3;
    case DT_BFLOAT16:
        return 1.6e-2;
    case DT_FLOAT64:
        return 1e-12;
    case DT_FLOAT32:
    case DT_COMPLEX64:
        return 1e-5;
    default:
        return 0;
    }
}

/* ---- arrays ---- */

struct arr *arr_of(const double complex *v, const struct shp *s, enum dtype t)
{
    size_t n = shp_size(s), item = dt_size(t);
    char *bytes = mem_alloc(n * item);
    struct arr *a = NULL;

    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        write_element(bytes + i * item, v[i], t);
    assert_ok(arr_new_data(&a, bytes, s, t));
    mem_free(bytes);
    return a;
}

/* Places v (of shape s) into a larger, zeroed block by a stride per dimension. */
static double complex *spread(const double complex *v, const struct shp *s, const int64_t *strides,
                              int64_t offset, size_t total)
{
    double complex *big = mem_alloc_array(total + 1, sizeof *big);
    size_t n = shp_size(s);

    assert_non_null(big);
    for (size_t i = 0; i < n; i++) {
        int64_t at = offset;
        size_t rest = i;
        for (int d = s->ndim - 1; d >= 0; d--) {
            at += (int64_t)(rest % (size_t)s->d[d]) * strides[d];
            rest /= (size_t)s->d[d];
        }
        big[at] = v[i];
    }
    return big;
}

static struct arr *strided_view(struct arr *flat, const struct shp *s, const int64_t *strides,
                                int64_t offset)
{
    struct arr *view = NULL;
    struct strm *st = test_stream();
    struct ops_as_strided p = { .shape = { s->d, (size_t)s->ndim },
                                .strides = strides,
                                .n_strides = (size_t)s->ndim,
                                .offset = (size_t)offset };

    assert_ok(ops_as_strided(&view, flat, &p, st));
    assert_ok(eval_arrays(&view, 1, false));
    return view;
}

struct arr *arr_of_layout(const double complex *v, const struct shp *s, enum dtype t,
                          enum layout layout)
{
    int64_t strides[SHP_MAX], step = layout == LAY_STEPPED ? 2 : 1, offset = 0;
    size_t total;

    if (layout == LAY_DENSE || shp_size(s) == 0 || s->ndim == 0)
        return arr_of(v, s, t);
    for (int i = 0; i < s->ndim; i++) {
        int d = layout == LAY_TRANSPOSED ? i : s->ndim - 1 - i;
        strides[d] = step;
        step *= s->d[d] + (layout == LAY_STEPPED);
    }
    total = (size_t)step + 3;
    if (layout == LAY_STEPPED)
        offset = 3;
    for (int i = 0; layout == LAY_REVERSED && i < s->ndim; i++) {
        offset += strides[i] * (s->d[i] - 1);
        strides[i] = -strides[i];
    }
    double complex *big = spread(v, s, strides, offset, total);
    struct arr *flat = arr_of(big, SHAPE((int32_t)total), t);
    if (layout == LAY_BROADCAST)
        strides[0] = 0;
    struct arr *view = strided_view(flat, s, strides, offset);
    arr_unref(&flat);
    mem_free(big);
    return view;
}

void *arr_bytes(struct arr *a)
{
    size_t item = dt_size((enum dtype)a->dtype);
    const char *base;
    char *bytes = mem_alloc(a->size * item + 1);

    assert_non_null(bytes);
    assert_ok(arr_host((const void **)&base, a));
    for (size_t i = 0; i < a->size; i++) {
        int64_t at = 0;
        size_t rest = i;
        for (int d = a->ndim - 1; d >= 0; d--) {
            at += (int64_t)(rest % (size_t)a->shape[d]) * a->strides[d];
            rest /= (size_t)a->shape[d];
        }
        memcpy(bytes + i * item, base + at * (int64_t)item, item);
    }
    return bytes;
}

double complex *arr_values(struct arr *a)
{
    size_t item = dt_size((enum dtype)a->dtype);
    char *bytes = arr_bytes(a);
    double complex *v = mem_alloc_array(a->size + 1, sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i < a->size; i++)
        v[i] = read_element(bytes + i * item, (enum dtype)a->dtype);
    mem_free(bytes);
    return v;
}
