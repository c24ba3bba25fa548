/* Arrays of others: what has a buffer, such as NumPy's arrays and scalars, and what has an array of
 * ours to give. */
#include "create.h"

bool exchange_can(PyObject *o)
{
    return PyObject_CheckBuffer(o) || PyObject_HasAttrString(o, "__mlx_array__");
}

/* Formats of the struct module, and what they become. NumPy's native types have one letter. */
static bool format_dtype(const char *format, size_t itemsize, mlx_dtype *t)
{
    static const mlx_dtype by_size[3][9] = {
        { [1] = MLX_UINT8, [2] = MLX_UINT16, [4] = MLX_UINT32, [8] = MLX_UINT64 },
        { [1] = MLX_INT8, [2] = MLX_INT16, [4] = MLX_INT32, [8] = MLX_INT64 },
        { [2] = MLX_FLOAT16, [4] = MLX_FLOAT32, [8] = MLX_FLOAT64 },
    };
    static const char *const letters[] = { "BHILQ", "bhilq", "efd" };

    if (!format)
        format = "B";
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    if (strcmp(format, "?") == 0 || strcmp(format, "Zf") == 0 || strcmp(format, "Zd") == 0) {
        *t = *format == '?' ? MLX_BOOL : MLX_COMPLEX64;
        return true;
    }
    for (int k = 0; k < 3; k++)
        if (format[0] && !format[1] && strchr(letters[k], format[0]) && itemsize <= 8) {
            *t = by_size[k][itemsize];
            return true;
        }
    return false;
}

/* Row-major copies of the elements; complex numbers of two doubles become those of two floats. */
static void copy_elements(char *to, const Py_buffer *b, bool halve)
{
    size_t n = (size_t)b->len / (size_t)b->itemsize;

    for (size_t i = 0; halve && i < n; i++) {
        double parts[2];
        memcpy(parts, to + i * sizeof parts, sizeof parts);
        float half[2] = { (float)parts[0], (float)parts[1] };
        memcpy(to + i * sizeof half, half, sizeof half);
    }
}

static bool import_buffer(mlx_array *res, const Py_buffer *b, struct want want)
{
    bool wide = b->format && strchr(b->format, 'Z') && b->itemsize == 16;
    int shape[64];
    mlx_dtype t;

    if (!format_dtype(b->format, (size_t)b->itemsize, &t)) {
        PyErr_Format(PyExc_TypeError, "Cannot make an array of elements of the format %s.",
                     b->format);
        return false;
    }
    for (int d = 0; d < b->ndim; d++) {
        if (b->shape[d] > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "A dimension does not fit 32 bits.");
            return false;
        }
        shape[d] = (int)b->shape[d];
    }
    bool direct = PyBuffer_IsContiguous(b, 'C') && !wide;
    char *copy = direct ? NULL : PyMem_Malloc((size_t)(b->len ? b->len : 1));
    if (!direct && !copy) {
        PyErr_NoMemory();
        return false;
    }
    if (!direct) {
        if (PyBuffer_ToContiguous(copy, b, b->len, 'C') < 0) {
            PyMem_Free(copy);
            return false;
        }
        copy_elements(copy, b, wide);
    }
    int rc = mlx_array_set_data(res, direct ? b->buf : copy, shape, b->ndim, t);
    PyMem_Free(copy);
    /* NumPy's default is no wish for 64 bits. */
    mlx_dtype end = want.given ? want.dtype : t == MLX_FLOAT64 ? MLX_FLOAT32 : t;
    if (!rc && end != t)
        rc = mlx_astype(res, *res, end, (mlx_stream){ NULL });
    return error_check(rc);
}

static bool import_mlx(mlx_array *res, PyObject *o, struct want want)
{
    PyObject *a = PyObject_CallMethod(o, "__mlx_array__", NULL);
    bool ok = a != NULL;

    if (ok && !is_array(a)) {
        PyErr_SetString(PyExc_TypeError, "__mlx_array__() must return an array.");
        ok = false;
    }
    ok = ok && create_array(res, a, want);
    Py_XDECREF(a);
    return ok;
}

bool exchange_import(mlx_array *res, PyObject *o, struct want want)
{
    Py_buffer b;
    bool ok;

    if (!PyObject_CheckBuffer(o))
        return import_mlx(res, o, want);
    if (PyObject_GetBuffer(o, &b, PyBUF_FULL_RO) < 0)
        return false;
    ok = import_buffer(res, &b, want);
    PyBuffer_Release(&b);
    return ok;
}

const PyType_Slot array_exchange_slots[] = { { 0, NULL } };
