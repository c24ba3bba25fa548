#include "api/handle.h"

#include "eval/eval.h"
#include "eval/wait.h"
#include "graph/memory.h"

#define DTYPE(id, ...) static_assert((int)DT_##id == (int)MLX_##id, "public dtype values");
#include "graph/dtype.def"
#undef DTYPE

size_t mlx_dtype_size(mlx_dtype dtype)
{
    struct call c = CALL_BARE;
    enum dtype t = call_dtype(&c, dtype);

    return CALL_END(&c) ? 0 : dt_size(t);
}

/* ---- creation ---- */

mlx_array mlx_array_new(void)
{
    return (mlx_array){ NULL };
}

int mlx_array_free(mlx_array arr)
{
    struct arr_box *box = arr.ctx;

    if (box)
        arr_unref(&box->arr);
    mem_free(box);
    return 0;
}

int mlx_array_set(mlx_array *arr, const mlx_array src)
{
    struct call c = CALL(arr);
    struct arr *from = call_arr(&c, src, "src");

    if (call_ok(&c))
        c.out = arr_ref(from);
    return CALL_END_ARR(&c, arr);
}

/* suffix, C type, dtype */
#define SCALARS(X)                                                                                 \
    X(bool, bool, DT_BOOL)                                                                         \
    X(int, int, DT_INT32)                                                                          \
    X(float32, float, DT_FLOAT32)                                                                  \
    X(float, float, DT_FLOAT32)                                                                    \
    X(float64, double, DT_FLOAT64)                                                                 \
    X(double, double, DT_FLOAT64)

#define SCALAR(suffix, type, dtype)                                                                \
    int mlx_array_set_##suffix(mlx_array *arr, type val)                                           \
    {                                                                                              \
        struct call c = CALL(arr);                                                                 \
        if (call_ok(&c))                                                                           \
            c.err = arr_new_scalar(&c.out, &val, dtype);                                           \
        return CALL_END_ARR(&c, arr);                                                              \
    }                                                                                              \
    mlx_array mlx_array_new_##suffix(type val)                                                     \
    {                                                                                              \
        mlx_array res = { NULL };                                                                  \
        mlx_array_set_##suffix(&res, val);                                                         \
        return res;                                                                                \
    }
SCALARS(SCALAR)

int mlx_array_set_complex(mlx_array *arr, float real_val, float imag_val)
{
    struct call c = CALL(arr);
    float parts[2] = { real_val, imag_val };

    if (call_ok(&c))
        c.err = arr_new_scalar(&c.out, parts, DT_COMPLEX64);
    return CALL_END_ARR(&c, arr);
}

mlx_array mlx_array_new_complex(float real_val, float imag_val)
{
    mlx_array res = { NULL };

    mlx_array_set_complex(&res, real_val, imag_val);
    return res;
}

/* Checks what a caller says about its buffer. */
static enum dtype call_buffer(struct call *c, struct shp *s, const int *shape, int dim,
                              mlx_dtype dtype)
{
    enum dtype t = call_dtype(c, dtype);

    if (call_ok(c) && dim < 0)
        c->err = err_set(ERR_ARG, "[%s] Negative number of dimensions %d.", c->fn, dim);
    if (call_ok(c))
        c->err = shp_make(s, shape, (size_t)dim, c->fn);
    return t;
}

int mlx_array_set_data(mlx_array *arr, const void *data, const int *shape, int dim, mlx_dtype dtype)
{
    struct call c = CALL(arr);
    struct shp s;
    enum dtype t = call_buffer(&c, &s, shape, dim, dtype);

    if (call_ok(&c) && shp_size(&s))
        call_ptr(&c, data, "data");
    if (call_ok(&c))
        c.err = arr_new_data(&c.out, data, &s, t);
    return CALL_END_ARR(&c, arr);
}

mlx_array mlx_array_new_data(const void *data, const int *shape, int dim, mlx_dtype dtype)
{
    mlx_array res = { NULL };

    mlx_array_set_data(&res, data, shape, dim, dtype);
    return res;
}

mlx_array mlx_array_new_data_managed_payload(void *data, const int *shape, int dim, mlx_dtype dtype,
                                             void *payload, void (*dtor)(void *))
{
    mlx_array res = { NULL };
    struct call c = CALL_BARE;
    bool adopted = false;
    struct shp s;
    enum dtype t = call_buffer(&c, &s, shape, dim, dtype);

    if (call_ok(&c) && !dtor)
        c.err = err_set(ERR_ARG, "[%s] The destructor is NULL.", c.fn);
    if (call_ok(&c) && shp_size(&s))
        call_ptr(&c, data, "data");
    if (call_ok(&c))
        c.err = shp_size(&s) ? arr_new_empty(&c.out, &s, t) : arr_new_data(&c.out, NULL, &s, t);
    if (call_ok(&c) && c.out->size) {
        c.err = arr_adopt(c.out, data, dtor, payload);
        adopted = call_ok(&c);
        if (adopted)
            atomic_store(&c.out->status, ARR_AVAILABLE);
    }
    if (!adopted && dtor)
        dtor(payload);
    CALL_END_ARR(&c, &res);
    return res;
}

mlx_array mlx_array_new_data_managed(void *data, const int *shape, int dim, mlx_dtype dtype,
                                     void (*dtor)(void *))
{
    return mlx_array_new_data_managed_payload(data, shape, dim, dtype, data, dtor);
}

/* ---- properties ---- */

/* Returns value, which may read a, or empty after telling the handler. */
#define PROPERTY(arr, empty, value)                                                                \
    do {                                                                                           \
        struct call c = CALL_BARE;                                                                 \
        struct arr *a = call_arr(&c, arr, "arr");                                                  \
        return CALL_END(&c) ? (empty) : (value);                                                   \
    } while (0)

size_t mlx_array_itemsize(const mlx_array arr)
{
    PROPERTY(arr, 0, dt_size((enum dtype)a->dtype));
}

size_t mlx_array_size(const mlx_array arr)
{
    PROPERTY(arr, 0, a->size);
}

size_t mlx_array_nbytes(const mlx_array arr)
{
    PROPERTY(arr, 0, arr_nbytes(a));
}

size_t mlx_array_ndim(const mlx_array arr)
{
    PROPERTY(arr, 0, a->ndim);
}

const int *mlx_array_shape(const mlx_array arr)
{
    PROPERTY(arr, NULL, a->shape);
}

const size_t *mlx_array_strides(const mlx_array arr)
{
    static_assert(sizeof(size_t) == sizeof(int64_t), "strides are shown as size_t");
    PROPERTY(arr, NULL, (const size_t *)a->strides); /* the unsigned type of the same kind */
}

int mlx_array_dim(const mlx_array arr, int dim)
{
    struct call c = CALL_BARE;
    struct arr *a = call_arr(&c, arr, "arr");
    int axis = 0;

    if (call_ok(&c))
        c.err = shp_axis(&axis, dim, a->ndim, c.fn);
    return CALL_END(&c) ? 0 : a->shape[axis];
}

mlx_dtype mlx_array_dtype(const mlx_array arr)
{
    PROPERTY(arr, MLX_BOOL, (mlx_dtype)a->dtype);
}

/* ---- state ---- */

int mlx_array_eval(mlx_array arr)
{
    struct call c = CALL_BARE;
    struct arr *a = call_arr(&c, arr, "arr");

    if (call_ok(&c))
        c.err = arr_is_scheduled(a) ? arr_wait(a) : eval_arrays(&a, 1, false);
    return CALL_END(&c);
}

int _mlx_array_wait(const mlx_array arr)
{
    struct call c = CALL_BARE;
    struct arr *a = call_arr(&c, arr, "arr");

    if (call_ok(&c))
        c.err = arr_wait(a);
    return CALL_END(&c);
}

int _mlx_array_is_available(bool *res, const mlx_array arr)
{
    struct call c = CALL(res);
    struct arr *a = call_arr(&c, arr, "arr");

    if (call_ok(&c))
        c.err = arr_is_available(res, a);
    return CALL_END(&c);
}

#define LAYOUT_TEST(name, flag)                                                                    \
    int _mlx_array_is_##name(bool *res, const mlx_array arr)                                       \
    {                                                                                              \
        struct call c = CALL(res);                                                                 \
        struct arr *a = call_arr(&c, arr, "arr");                                                  \
        if (call_ok(&c))                                                                           \
            *res = (a->flags & (flag)) != 0;                                                       \
        return CALL_END(&c);                                                                       \
    }
LAYOUT_TEST(contiguous, LAYOUT_CONTIGUOUS)
LAYOUT_TEST(row_contiguous, LAYOUT_ROW)
LAYOUT_TEST(col_contiguous, LAYOUT_COL)
