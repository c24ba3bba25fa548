/* mx.export_to_dot. */
#include <stdio.h>

#include "args.h"
#include "hand.h"
#include "io_file.h"
#include "tree.h"

/* Gives the keyword arguments their names; they are results as well. */
static bool name_arrays(mlx_node_namer namer, mlx_vector_array outputs, PyObject *names,
                        PyObject *const *values)
{
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
        if (!tree_append(outputs, values[i], true))
            return false;
        if (!is_array(values[i])) {
            PyErr_SetString(PyExc_TypeError, "export_to_dot(): only an array can have a name.");
            return false;
        }
        if (!name || !error_check(mlx_node_namer_set_name(namer, array_of(values[i]), name)))
            return false;
    }
    return true;
}

/* The graph as a str. */
static PyObject *dot_text(mlx_node_namer namer, mlx_vector_array outputs)
{
    char *text = NULL;
    size_t n = 0;
    FILE *stream = open_memstream(&text, &n);
    PyObject *res = NULL;
    int rc;

    if (!stream)
        return PyErr_NoMemory();
    rc = mlx_export_to_dot(stream, namer, outputs);
    if (fclose(stream) == 0 && error_check(rc))
        res = PyUnicode_FromStringAndSize(text, (Py_ssize_t)n);
    free(text);
    return res || PyErr_Occurred() ? res : PyErr_NoMemory();
}

/* Opens the file and writes, as Python does. */
static PyObject *write_path(PyObject *path, PyObject *text)
{
    PyObject *io = PyImport_ImportModule("io"), *file = NULL, *res = NULL, *done;

    if (io && (file = PyObject_CallMethod(io, "open", "Os", path, "w")) &&
        (res = PyObject_CallMethod(file, "write", "O", text))) {
        done = PyObject_CallMethod(file, "close", NULL);
        if (!done)
            Py_CLEAR(res);
        Py_XDECREF(done);
    }
    Py_XDECREF(file);
    Py_XDECREF(io);
    return res;
}

static bool write_text(PyObject *file, PyObject *text)
{
    PyObject *done = NULL;

    if (PyObject_HasAttrString(file, "write"))
        done = PyObject_CallMethod(file, "write", "O", text);
    else if (io_is_path(file))
        done = write_path(file, text);
    else
        PyErr_SetString(PyExc_ValueError,
                        "[export_to_dot] The file must be a path or have a method write.");
    Py_XDECREF(done);
    return done != NULL;
}

PyObject *core_export_to_dot(PyObject *self, PyObject *const *args, Py_ssize_t n,
                             PyObject *keywords)
{
    mlx_node_namer namer = mlx_node_namer_new();
    mlx_vector_array outputs = mlx_vector_array_new();
    PyObject *text = NULL;
    bool ok = n > 0;

    (void)self;
    if (!ok)
        PyErr_SetString(PyExc_TypeError, "export_to_dot(): the argument file is missing.");
    for (Py_ssize_t i = 1; ok && i < n; i++)
        ok = tree_append(outputs, args[i], true);
    ok = ok && name_arrays(namer, outputs, keywords, args + n) &&
         (text = dot_text(namer, outputs)) && write_text(args[0], text);
    Py_XDECREF(text);
    mlx_vector_array_free(outputs);
    mlx_node_namer_free(namer);
    return ok ? Py_NewRef(Py_None) : NULL;
}
