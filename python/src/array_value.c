/* The values of arrays as numbers, lists and texts of Python. */
#include "array.h"

#include "args.h"
#include "hand.h"

/* Values of 16 bits as floats. */
static float half_value(uint16_t bits, mlx_dtype t)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = (bits >> 10) & 31;
    uint32_t fraction = bits & 0x3ff, u = (uint32_t)bits << 16;
    float f;

    if (t == MLX_FLOAT16 && exponent == 31)
        u = sign | 0x7f800000 | fraction << 13;
    else if (t == MLX_FLOAT16 && exponent)
        u = sign | (exponent + 112) << 23 | fraction << 13;
    else if (t == MLX_FLOAT16) /* 2^-24 is the unit of what is below the normal numbers */
        return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* The element at p as a number of Python. */
static PyObject *number_at(const void *p, mlx_dtype t)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32, c64[2];
        double f64;
    } v;

    memcpy(&v, p, mlx_dtype_size(t));
    switch (t) {
    case MLX_BOOL:
        return PyBool_FromLong(v.u8);
    case MLX_UINT8:
        return PyLong_FromLong(v.u8);
    case MLX_UINT16:
        return PyLong_FromLong(v.u16);
    case MLX_UINT32:
        return PyLong_FromUnsignedLong(v.u32);
    case MLX_UINT64:
        return PyLong_FromUnsignedLongLong(v.u64);
    case MLX_INT8:
        return PyLong_FromLong(v.i8);
    case MLX_INT16:
        return PyLong_FromLong(v.i16);
    case MLX_INT32:
        return PyLong_FromLong(v.i32);
    case MLX_INT64:
        return PyLong_FromLongLong(v.i64);
    case MLX_FLOAT16:
    case MLX_BFLOAT16:
        return PyFloat_FromDouble(half_value(v.u16, t));
    case MLX_FLOAT32:
        return PyFloat_FromDouble(v.f32);
    case MLX_FLOAT64:
        return PyFloat_FromDouble(v.f64);
    case MLX_COMPLEX64:
        return PyComplex_FromDoubles(v.c64[0], v.c64[1]);
    }
    return NULL;
}

/* So many bytes are copied from a device before other threads would have got going. */
enum { KEEP_GIL = 1 << 16 };

const void *array_bytes(mlx_array a)
{
    static const char nothing[16];
    const void *p = NULL;

    if (!array_eval(a))
        return NULL;
    if (mlx_array_size(a) == 0)
        return nothing;
    PyThreadState *others = mlx_array_nbytes(a) > KEEP_GIL ? PyEval_SaveThread() : NULL;
    p = mlx_array_data_uint8(a); /* the bytes, whatever they mean */
    if (others)
        PyEval_RestoreThread(others);
    if (!p)
        error_raise();
    return p;
}

/* Reads an array while another thread may give the object another one. */
static PyObject *read_held(PyObject *self, PyObject *(*read)(mlx_array))
{
    mlx_array_place room = { NULL };
    mlx_array a = mlx_array_at(&room);
    PyObject *res = NULL;

    if (array_check(self) && error_check(mlx_array_set(&a, array_of(self))))
        res = read(a);
    mlx_array_place_clear(&room);
    return res;
}

static PyObject *item_of(mlx_array a)
{
    const void *p;

    if (mlx_array_size(a) != 1) {
        PyErr_SetString(PyExc_ValueError,
                        "[convert] Only length-1 arrays can be converted to Python scalars.");
        return NULL;
    }
    p = array_bytes(a);
    return p ? number_at(p, mlx_array_dtype(a)) : NULL;
}

PyObject *array_item(PyObject *self)
{
    return read_held(self, item_of);
}

/* ---- lists ---- */

struct walk {
    const int *shape;
    const size_t *strides;
    int ndim;
    mlx_dtype dtype;
    size_t itemsize;
};

static PyObject *list_dim(const struct walk *w, const char *at, int dim)
{
    Py_ssize_t n = w->shape[dim];
    ptrdiff_t step = (ptrdiff_t)(w->strides[dim] * w->itemsize);
    PyObject *res = PyList_New(n);

    for (Py_ssize_t i = 0; res && i < n; i++) {
        PyObject *v = dim == w->ndim - 1 ? number_at(at + i * step, w->dtype)
                                         : list_dim(w, at ? at + i * step : NULL, dim + 1);
        if (!v || PyList_SetItem(res, i, v) < 0)
            Py_CLEAR(res);
    }
    return res;
}

static PyObject *list_of(mlx_array a)
{
    const void *p = NULL;

    if (mlx_array_ndim(a) == 0)
        return item_of(a);
    if (!(p = array_bytes(a)))
        return NULL;
    struct walk w = { mlx_array_shape(a), mlx_array_strides(a), (int)mlx_array_ndim(a),
                      mlx_array_dtype(a), mlx_array_itemsize(a) };
    return list_dim(&w, p, 0);
}

PyObject *array_tolist(PyObject *self)
{
    return read_held(self, list_of);
}

/* ---- numbers ---- */

int array_as_bool(PyObject *self)
{
    PyObject *v = array_item(self);
    int res = v ? PyObject_IsTrue(v) : -1;

    Py_XDECREF(v);
    return res;
}

PyObject *array_as_int(PyObject *self)
{
    PyObject *v = array_item(self);
    PyObject *res = NULL;

    if (v && PyComplex_Check(v))
        PyErr_SetString(PyExc_TypeError, "A complex number is no int.");
    else if (v)
        res = PyNumber_Long(v);
    Py_XDECREF(v);
    return res;
}

PyObject *array_as_index(PyObject *self)
{
    if (is_array(self) && mlx_array_ndim(array_of(self)) == 0 &&
        (dtype_is_integer(mlx_array_dtype(array_of(self))) ||
         mlx_array_dtype(array_of(self)) == MLX_BOOL))
        return array_as_int(self);
    PyErr_SetString(PyExc_TypeError, "Only integer arrays without dimensions are an index.");
    return NULL;
}

PyObject *array_as_float(PyObject *self)
{
    PyObject *v = array_item(self);
    PyObject *res = NULL;

    if (v && PyComplex_Check(v))
        PyErr_SetString(PyExc_TypeError,
                        "float() argument must be a string or a real number, not 'complex'");
    else if (v)
        res = PyNumber_Float(v);
    Py_XDECREF(v);
    return res;
}

PyObject *hand_array_complex(struct frame *f)
{
    PyObject *v = array_item(f->slot[0]);
    PyObject *res = v ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, v, NULL) : NULL;

    Py_XDECREF(v);
    return res;
}

/* ---- texts ---- */

PyObject *array_repr(PyObject *self)
{
    mlx_string text = mlx_string_new();
    PyObject *res = NULL;

    if (!is_array(self))
        return PyUnicode_FromString("array(not initialized)");
    if (array_eval(array_of(self)) && error_check(mlx_array_tostring(&text, array_of(self))))
        res = PyUnicode_FromString(mlx_string_data(text));
    mlx_string_free(text);
    return res;
}

PyObject *hand_array_format(struct frame *f)
{
    PyObject *self = f->slot[0], *spec = f->slot[1], *v, *res;

    if (!PyUnicode_Check(spec)) {
        args_type_error(f->sig, "format_spec", "a str", spec);
        return NULL;
    }
    if (is_array(self) && mlx_array_ndim(array_of(self)) > 0) {
        if (PyUnicode_GetLength(spec) == 0)
            return array_repr(self);
        PyErr_SetString(PyExc_TypeError, "unsupported format string passed to mx.array.__format__");
        return NULL;
    }
    if (!(v = array_item(self)))
        return NULL;
    res = PyObject_Format(v, spec);
    Py_DECREF(v);
    return res;
}

/* ---- methods ---- */

PyObject *hand_array_item(struct frame *f)
{
    return array_item(f->slot[0]);
}

PyObject *hand_array_tolist(struct frame *f)
{
    return array_tolist(f->slot[0]);
}
