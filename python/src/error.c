#include "core.h"

static void keep_quiet(const char *msg, void *data)
{
    (void)msg; /* error_raise reads it where the failing call returns */
    (void)data;
}

/* IndexError and ValueError at once: releases of MLX differ in which of the two an axis out of
 * range is, and programs catch either. */
PyObject *error_range;

bool error_init(void)
{
    PyObject *bases = PyTuple_Pack(2, PyExc_IndexError, PyExc_ValueError);

    if (bases)
        error_range = PyErr_NewException("mlx.core.AxisError", bases, NULL);
    Py_XDECREF(bases);
    mlx_set_error_handler(keep_quiet, NULL, NULL);
    return error_range != NULL;
}

PyObject *error_raise(void)
{
    PyObject *class = PyExc_RuntimeError;

    if (PyErr_Occurred())
        return NULL;
    switch (mlx_last_error_kind()) {
    case MLX_ERROR_ARGUMENT:
        class = PyExc_ValueError;
        break;
    case MLX_ERROR_RANGE:
        class = error_range;
        break;
    case MLX_ERROR_OVERFLOW:
        class = PyExc_OverflowError;
        break;
    case MLX_ERROR_NO_MEMORY:
        class = PyExc_MemoryError;
        break;
    case MLX_ERROR_NONE:
    case MLX_ERROR_RUNTIME:
    case MLX_ERROR_UNSUPPORTED:
    case MLX_ERROR_DEVICE:
        break;
    }
    PyErr_SetString(class, mlx_last_error());
    return NULL;
}

const char *error_type_name(PyObject *o)
{
    static char text[128];
    PyObject *name;
    const char *utf8 = NULL;

    if (o == Py_None)
        return "None";
    name = PyType_GetName(Py_TYPE(o));
    if (name)
        utf8 = PyUnicode_AsUTF8AndSize(name, NULL);
    PyOS_snprintf(text, sizeof text, "%s", utf8 ? utf8 : "an object");
    Py_XDECREF(name);
    PyErr_Clear();
    return text;
}

PyTypeObject *type_add(PyObject *m, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(spec);

    if (type && PyModule_AddObjectRef(m, strrchr(spec->name, '.') + 1, (PyObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}

bool module_add(PyObject *m, const char *name, PyObject *v)
{
    int rc = v ? PyModule_AddObjectRef(m, name, v) : -1;

    Py_XDECREF(v);
    return rc == 0;
}
