#include "dtype.h"

PyTypeObject *dtype_type;

/* name, size in bits, constants of what is floating: see finfo */
static const struct dtype_row {
    const char *name;
    const char *attribute; /* in mlx.core, where it differs */
} rows[DTYPE_COUNT] = {
    [MLX_BOOL] = { "bool", "bool_" },      [MLX_UINT8] = { "uint8", NULL },
    [MLX_UINT16] = { "uint16", NULL },     [MLX_UINT32] = { "uint32", NULL },
    [MLX_UINT64] = { "uint64", NULL },     [MLX_INT8] = { "int8", NULL },
    [MLX_INT16] = { "int16", NULL },       [MLX_INT32] = { "int32", NULL },
    [MLX_INT64] = { "int64", NULL },       [MLX_FLOAT16] = { "float16", NULL },
    [MLX_FLOAT32] = { "float32", NULL },   [MLX_FLOAT64] = { "float64", NULL },
    [MLX_BFLOAT16] = { "bfloat16", NULL }, [MLX_COMPLEX64] = { "complex64", NULL },
};

static PyObject *objects[DTYPE_COUNT];

PyObject *dtype_wrap(mlx_dtype t)
{
    return Py_NewRef(objects[t]);
}

const char *dtype_name(mlx_dtype t)
{
    return rows[t].name;
}

/* ---- the type ---- */

static PyObject *dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("mlx.core.%s", dtype_name(dtype_of(self)));
}

static Py_hash_t dtype_hash(PyObject *self)
{
    return (Py_hash_t)dtype_of(self);
}

static PyObject *dtype_compare(PyObject *a, PyObject *b, int how)
{
    bool same = is_dtype(a) && is_dtype(b) && dtype_of(a) == dtype_of(b);

    if (how != Py_EQ && how != Py_NE)
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong(same == (how == Py_EQ));
}

static PyObject *dtype_get_size(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(mlx_dtype_size(dtype_of(self)));
}

/* Copies and pickles are by name. */
static PyObject *dtype_reduce(PyObject *self, PyObject *unused)
{
    const struct dtype_row *row = &rows[dtype_of(self)];

    (void)unused;
    return PyUnicode_FromString(row->attribute ? row->attribute : row->name);
}

static PyGetSetDef dtype_properties[] = {
    { "size", dtype_get_size, NULL, "The bytes of an element.", NULL },
    { 0 },
};

static PyMethodDef dtype_methods[] = {
    { "__reduce__", dtype_reduce, METH_NOARGS, NULL },
    { 0 },
};

static bool add_dtypes(PyObject *m)
{
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"The type of the elements of an array." },
        { Py_tp_repr, dtype_repr },
        { Py_tp_hash, dtype_hash },
        { Py_tp_richcompare, dtype_compare },
        { Py_tp_getset, dtype_properties },
        { Py_tp_methods, dtype_methods },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.Dtype",
                         .basicsize = sizeof(struct dtype_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };

    if (!(dtype_type = type_add(m, &spec)))
        return false;
    for (int t = 0; t < DTYPE_COUNT; t++) {
        struct dtype_object *o = PyObject_New(struct dtype_object, dtype_type);

        if (!o)
            return false;
        o->value = (mlx_dtype)t;
        objects[t] = (PyObject *)o;
        if (PyModule_AddObjectRef(m, rows[t].attribute ? rows[t].attribute : rows[t].name,
                                  objects[t]) < 0)
            return false;
    }
    return true;
}

/* ---- promotion ---- */

static bool is_signed(mlx_dtype t)
{
    return t >= MLX_INT8 && t <= MLX_INT64;
}

static mlx_dtype promote_integers(mlx_dtype a, mlx_dtype b)
{
    size_t size_a = mlx_dtype_size(a), size_b = mlx_dtype_size(b);

    if (is_signed(a) == is_signed(b))
        return size_a >= size_b ? a : b;
    size_t size_u = is_signed(a) ? size_b : size_a, size_s = is_signed(a) ? size_a : size_b;
    if (size_u == 8)
        return MLX_FLOAT32;
    size_t size = size_s > size_u ? size_s : 2 * size_u;
    return size == 2 ? MLX_INT16 : size == 4 ? MLX_INT32 : MLX_INT64;
}

mlx_dtype dtype_promote(mlx_dtype a, mlx_dtype b)
{
    bool float_a = dtype_is_float(a), float_b = dtype_is_float(b);

    if (a == b || a == MLX_COMPLEX64 || b == MLX_COMPLEX64)
        return a == b ? a : MLX_COMPLEX64;
    if (a == MLX_BOOL || b == MLX_BOOL)
        return a == MLX_BOOL ? b : a;
    if (float_a && float_b)
        return a == MLX_FLOAT64 || b == MLX_FLOAT64 ? MLX_FLOAT64 : MLX_FLOAT32;
    if (float_a || float_b)
        return float_a ? a : b;
    return promote_integers(a, b);
}

bool dtype_init(PyObject *m)
{
    return add_dtypes(m);
}
