#include "io_file.h"

#include "closure.h"

/* What a reader or writer keeps in its block. */
enum { FILE_OBJECT, EXCEPTION };

/* ---- names ---- */

bool io_is_path(PyObject *o)
{
    return PyUnicode_Check(o) || (PyObject_HasAttrString(o, "__fspath__") && !PyBytes_Check(o));
}

PyObject *io_path(PyObject *o)
{
    PyObject *res = PyOS_FSPath(o);

    if (res && !PyUnicode_Check(res)) {
        PyErr_SetString(PyExc_TypeError, "The path of a file is a str.");
        Py_CLEAR(res);
    }
    return res;
}

static bool has_all(PyObject *o, const char *method)
{
    return PyObject_HasAttrString(o, method) && PyObject_HasAttrString(o, "seek") &&
           PyObject_HasAttrString(o, "tell") && PyObject_HasAttrString(o, "closed");
}

bool io_is_reader(PyObject *o)
{
    return has_all(o, "readinto");
}

bool io_is_writer(PyObject *o)
{
    return has_all(o, "write");
}

/* ---- what the library calls, with or without the GIL ---- */

/* Keeps the first exception for the end, and takes every later one away. */
static void keep_exception(void *kept)
{
    PyObject *type, *value, *trace, **place = closure_place(kept, EXCEPTION);

    if (!PyErr_Occurred())
        return;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (*place)
        Py_XDECREF(value);
    else
        *place = value;
}

static bool is_open(void *kept)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *closed = PyObject_GetAttrString(closure_object(kept, FILE_OBJECT), "closed");
    bool res = closed && PyObject_IsTrue(closed) == 0;

    Py_XDECREF(closed);
    keep_exception(kept);
    PyGILState_Release(gil);
    return res;
}

static bool good(void *kept)
{
    return !closure_object(kept, EXCEPTION);
}

static size_t tell(void *kept)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *at = PyObject_CallMethod(closure_object(kept, FILE_OBJECT), "tell", NULL);
    size_t res = at ? PyLong_AsSize_t(at) : 0;

    Py_XDECREF(at);
    keep_exception(kept);
    PyGILState_Release(gil);
    return res;
}

static void seek(void *kept, int64_t off, int whence)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *at = PyObject_CallMethod(closure_object(kept, FILE_OBJECT), "seek", "Li",
                                       (long long)off, whence);

    Py_XDECREF(at);
    keep_exception(kept);
    PyGILState_Release(gil);
}

/* How many of n bytes a method moved; 0 at the end or after an exception. */
static size_t move(void *kept, const char *method, char *data, size_t n)
{
    bool reads = strcmp(method, "readinto") == 0;
    PyObject *view = PyMemoryView_FromMemory(data, (Py_ssize_t)n, reads ? PyBUF_WRITE : PyBUF_READ);
    PyObject *moved = NULL;
    size_t res = 0;

    if (view)
        moved = PyObject_CallMethod(closure_object(kept, FILE_OBJECT), method, "O", view);
    if (moved && moved != Py_None)
        res = PyLong_AsSize_t(moved);
    Py_XDECREF(moved);
    /* The memory is the library's: whoever kept the view must not reach it any more. */
    if (view) {
        PyObject *type, *value, *trace, *done;
        PyErr_Fetch(&type, &value, &trace);
        done = PyObject_CallMethod(view, "release", NULL);
        Py_XDECREF(done);
        if (type)
            PyErr_Restore(type, value, trace);
        Py_DECREF(view);
    }
    return PyErr_Occurred() || res > n ? 0 : res;
}

/* All n bytes, or an exception. */
static void move_all(void *kept, const char *method, char *data, size_t n)
{
    PyGILState_STATE gil = PyGILState_Ensure();

    while (n && !PyErr_Occurred()) {
        size_t moved = move(kept, method, data, n);
        if (!moved && !PyErr_Occurred())
            PyErr_Format(PyExc_RuntimeError, "[io] %s() of the file object moved too few bytes.",
                         method);
        data += moved;
        n -= moved;
    }
    keep_exception(kept);
    PyGILState_Release(gil);
}

static void read_next(void *kept, char *data, size_t n)
{
    move_all(kept, "readinto", data, n);
}

static void read_at(void *kept, char *data, size_t n, size_t off)
{
    seek(kept, (int64_t)off, SEEK_SET);
    if (good(kept))
        move_all(kept, "readinto", data, n);
}

static void write_next(void *kept, const char *data, size_t n)
{
    move_all(kept, "write", (char *)data, n);
}

static const char *label(void *kept)
{
    (void)kept;
    return "Python file object";
}

static const mlx_io_vtable table = {
    .is_open = is_open,
    .good = good,
    .tell = tell,
    .seek = seek,
    .read = read_next,
    .read_at_offset = read_at,
    .write = write_next,
    .label = label,
    .free = closure_drop,
};

/* ---- handles ---- */

mlx_io_reader io_reader(PyObject *file)
{
    void *kept = closure_keep((PyObject *const[]){ file, NULL, NULL });
    mlx_io_reader res = { NULL };

    if (kept && !(res = mlx_io_reader_new(kept, table)).ctx) {
        closure_drop(kept);
        error_raise();
    }
    return res;
}

mlx_io_writer io_writer(PyObject *file)
{
    void *kept = closure_keep((PyObject *const[]){ file, NULL, NULL });
    mlx_io_writer res = { NULL };

    if (kept && !(res = mlx_io_writer_new(kept, table)).ctx) {
        closure_drop(kept);
        error_raise();
    }
    return res;
}

/* The exception that a method raised, or the library's. */
static bool check(void *kept, int rc)
{
    PyObject *value = closure_object(kept, EXCEPTION);

    if (value)
        PyErr_SetObject((PyObject *)Py_TYPE(value), value);
    return !value && error_check(rc);
}

bool io_reader_end(mlx_io_reader r, int rc)
{
    void *kept = NULL;
    bool ok = mlx_io_reader_descriptor(&kept, r) == 0 && check(kept, rc);

    mlx_io_reader_free(r);
    return ok;
}

bool io_writer_end(mlx_io_writer w, int rc)
{
    void *kept = NULL;
    bool ok = mlx_io_writer_descriptor(&kept, w) == 0 && check(kept, rc);

    mlx_io_writer_free(w);
    return ok;
}
