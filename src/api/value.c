/* The values of arrays: items, host pointers, text. */
#include "api/handle.h"

#include <stdatomic.h>

#include "eval/wait.h"

/* ---- items ---- */

/* Reads the only element as size bytes, whatever its dtype: nothing is converted. */
static void call_item(struct call *c, mlx_array arr, void *res, size_t size)
{
    struct arr *a = call_arr(c, arr, "arr");
    const void *p = NULL;

    if (call_ok(c) && a->size != 1)
        c->err = err_set(ERR_ARG, "[item] Item can only be called on arrays of size 1.");
    if (call_ok(c))
        c->err = arr_host(&p, a);
    if (!call_ok(c))
        return;
    memset(res, 0, size);
    memcpy(res, p, MIN(size, dt_size((enum dtype)a->dtype)));
}

/* suffix, C type */
#define TYPES(X)                                                                                   \
    X(bool, bool)                                                                                  \
    X(uint8, uint8_t)                                                                              \
    X(uint16, uint16_t)                                                                            \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)                                                                            \
    X(int8, int8_t)                                                                                \
    X(int16, int16_t)                                                                              \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)                                                                              \
    X(float32, float)                                                                              \
    X(float64, double)                                                                             \
    X(complex64, mlx_complex64_t)

/* Types that only some compilers have, declared under the same conditions. */
#ifdef HAS_FLOAT16
#define FLOAT16_TYPE(X) X(float16, float16_t)
#else
#define FLOAT16_TYPE(X)
#endif
#ifdef HAS_BFLOAT16
#define BFLOAT16_TYPE(X) X(bfloat16, bfloat16_t)
#else
#define BFLOAT16_TYPE(X)
#endif

#define ITEM(suffix, type)                                                                         \
    int mlx_array_item_##suffix(type *res, const mlx_array arr)                                    \
    {                                                                                              \
        struct call c = CALL(res);                                                                 \
        call_item(&c, arr, res, sizeof *res);                                                      \
        return CALL_END(&c);                                                                       \
    }
TYPES(ITEM)
FLOAT16_TYPE(ITEM)
BFLOAT16_TYPE(ITEM)

/* ---- host pointers ---- */

static const void *call_data(struct call *c, mlx_array arr)
{
    struct arr *a = call_arr(c, arr, "arr");
    const void *p = NULL;

    if (call_ok(c) && arr_is_scheduled(a))
        c->err = arr_host(&p, a);
    return call_ok(c) ? p : NULL;
}

#define DATA(suffix, type)                                                                         \
    const type *mlx_array_data_##suffix(const mlx_array arr)                                       \
    {                                                                                              \
        struct call c = CALL_BARE;                                                                 \
        const void *p = call_data(&c, arr);                                                        \
        CALL_END(&c);                                                                              \
        return p;                                                                                  \
    }
TYPES(DATA)
FLOAT16_TYPE(DATA)
BFLOAT16_TYPE(DATA)

/* ---- text, as MLX prints it ---- */

/* One element of any dtype, in the widest type of its kind. */
struct number {
    enum dt_kind kind;
    int64_t i;     /* signed */
    uint64_t u;    /* bool, unsigned */
    double re, im; /* floating, complex */
};

#define READ(type, field)                                                                          \
    do {                                                                                           \
        type v_;                                                                                   \
        memcpy(&v_, p, sizeof v_);                                                                 \
        n.field = v_;                                                                              \
    } while (0)

static struct number read_number(const void *p, enum dtype t)
{
    struct number n = { .kind = (enum dt_kind)dt_table[t].kind };
    uint16_t half;

    switch (t) {
    case DT_BOOL:
    case DT_UINT8:
        READ(uint8_t, u);
        break;
    case DT_UINT16:
        READ(uint16_t, u);
        break;
    case DT_UINT32:
        READ(uint32_t, u);
        break;
    case DT_UINT64:
        READ(uint64_t, u);
        break;
    case DT_INT8:
        READ(int8_t, i);
        break;
    case DT_INT16:
        READ(int16_t, i);
        break;
    case DT_INT32:
        READ(int32_t, i);
        break;
    case DT_INT64:
        READ(int64_t, i);
        break;
    case DT_FLOAT16:
    case DT_BFLOAT16:
        memcpy(&half, p, sizeof half);
        n.re = t == DT_FLOAT16 ? dt_f16_to_f32(half) : dt_bf16_to_f32(half);
        break;
    case DT_COMPLEX64:
        READ(float, re);
        p = (const char *)p + sizeof(float);
        READ(float, im);
        break;
    case DT_FLOAT32:
        READ(float, re);
        break;
    case DT_FLOAT64:
        READ(double, re);
        break;
    case DT_COUNT:
        break;
    }
    return n;
}

#define EDGE_ITEMS 3 /* shown at both ends of a dimension that has more than twice as many */

/* Digits behind the point; PRECISION_SHORT: as many as tell six digits apart. */
#define PRECISION_SHORT (-1)
#define PRECISION_MAX 512
static atomic_int print_precision = PRECISION_SHORT;

struct printer {
    struct text text;
    const struct arr *arr;
    int precision;
};

static enum err print_float(struct printer *p, double v)
{
    if (p->precision == PRECISION_SHORT)
        return text_add(&p->text, "%g", v);
    return text_add(&p->text, "%.*f", p->precision, v);
}

static enum err print_item(struct printer *p, const char *at)
{
    struct number n = read_number(at, (enum dtype)p->arr->dtype);

    switch (n.kind) {
    case DT_KIND_B:
        return text_add(&p->text, "%s", n.u ? "True" : "False");
    case DT_KIND_U:
        return text_add(&p->text, "%llu", (unsigned long long)n.u);
    case DT_KIND_I:
        return text_add(&p->text, "%lld", (long long)n.i);
    case DT_KIND_F:
        return print_float(p, n.re);
    case DT_KIND_C:
        break;
    }
    bool negative = n.im < 0;
    enum err err;

    TRY(print_float(p, n.re));
    TRY(text_add(&p->text, negative ? "-" : "+"));
    TRY(print_float(p, negative ? -n.im : n.im));
    TRY(text_add(&p->text, "j"));
out:
    return err;
}

static enum err print_dim(struct printer *p, const char *at, int dim)
{
    const struct arr *a = p->arr;
    bool last = dim == a->ndim - 1;
    int32_t n = a->shape[dim];
    int64_t step = a->strides[dim] * (int64_t)dt_size((enum dtype)a->dtype);
    enum err err;

    TRY(text_add(&p->text, "["));
    for (int32_t i = 0; i < n; i++) {
        const char *item = at ? at + i * step : NULL; /* an empty array has no bytes */
        if (i)
            TRY(text_add(&p->text, last ? ", " : ",\n%*s", 7 + dim, ""));
        if (i == EDGE_ITEMS && n > 2 * EDGE_ITEMS) {
            TRY(text_add(&p->text, "..."));
            i = n - EDGE_ITEMS - 1;
        } else if (last) {
            TRY(print_item(p, item));
        } else {
            TRY(print_dim(p, item, dim + 1));
        }
    }
    TRY(text_add(&p->text, "]"));
out:
    return err;
}

static enum err print_array(struct printer *p, const void *data)
{
    enum err err;

    TRY(text_add(&p->text, "array("));
    TRY(p->arr->ndim ? print_dim(p, data, 0) : print_item(p, data));
    TRY(text_add(&p->text, ", dtype=%s)", dt_name((enum dtype)p->arr->dtype)));
out:
    return err;
}

int mlx_array_tostring(mlx_string *str, const mlx_array arr)
{
    struct call c = CALL(str);
    struct printer p = { .arr = call_arr(&c, arr, "arr"), .precision = print_precision };
    const void *data = NULL;

    if (call_ok(&c))
        c.err = arr_host(&data, (struct arr *)p.arr);
    if (call_ok(&c))
        c.err = print_array(&p, data);
    if (call_ok(&c)) {
        c.err = box_set_text(str, p.text.s.v);
        p.text.s.v = NULL;
    }
    VEC_FINI(&p.text.s);
    return CALL_END(&c);
}

int mlx_get_print_precision(int *digits)
{
    struct call c = CALL(digits);

    if (call_ok(&c))
        *digits = print_precision;
    return CALL_END(&c);
}

int mlx_set_print_precision(int digits)
{
    struct call c = CALL_BARE;

    if (digits < PRECISION_SHORT || digits > PRECISION_MAX)
        c.err = err_set(ERR_ARG, "[%s] %d digits are not within -1 and %d.", c.fn, digits,
                        PRECISION_MAX);
    if (call_ok(&c))
        print_precision = digits;
    return CALL_END(&c);
}
