/* mx.save, mx.savez, mx.savez_compressed, mx.save_safetensors, mx.save_gguf. */
#include "args.h"
#include "hand.h"
#include "io_file.h"
#include "io_table.h"

static PyObject *wrong_file(const char *who, const char *wanted)
{
    PyErr_Format(PyExc_ValueError, "[%s] The file must be %s.", who, wanted);
    return NULL;
}

static PyObject *none_if(bool ok)
{
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* ---- npy ---- */

static bool write_npy(PyObject *file, PyObject *a)
{
    mlx_io_writer w = io_writer(file);
    int rc = 1;

    if (w.ctx) {
        Py_BEGIN_ALLOW_THREADS
        rc = mlx_save_writer(w, array_of(a));
        Py_END_ALLOW_THREADS
    }
    return w.ctx && io_writer_end(w, rc);
}

PyObject *hand_save(struct frame *f)
{
    PyObject *file = f->slot[0], *a = f->slot[1], *path;
    int rc;

    if (!is_array(a)) {
        args_type_error(f->sig, "arr", "an array", a);
        return NULL;
    }
    if (io_is_writer(file))
        return none_if(write_npy(file, a));
    if (!io_is_path(file))
        return wrong_file("save", "a path or a file object");
    if (!(path = io_path(file)))
        return NULL;
    const char *name = PyUnicode_AsUTF8AndSize(path, NULL);
    Py_BEGIN_ALLOW_THREADS
    rc = mlx_save(name, array_of(a));
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return none_if(error_check(rc));
}

/* ---- npz ---- */

/* A dict of the named arrays, and of the others as arr_0 and so on. */
static PyObject *collect(PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    PyObject *res = PyDict_New();
    Py_ssize_t n_names = keywords ? PyTuple_Size(keywords) : 0;

    for (Py_ssize_t i = 0; res && i < n_names; i++)
        if (PyDict_SetItem(res, PyTuple_GetItem(keywords, i), args[n + i]) < 0)
            Py_CLEAR(res);
    for (Py_ssize_t i = 1; res && i < n; i++) {
        PyObject *name = PyUnicode_FromFormat("arr_%zd", i - 1);
        int taken = name ? PyDict_Contains(res, name) : -1;
        if (taken > 0)
            PyErr_Format(PyExc_ValueError, "[savez] The name %U is taken by a keyword.", name);
        if (taken || PyDict_SetItem(res, name, args[i]) < 0)
            Py_CLEAR(res);
        Py_XDECREF(name);
    }
    return res;
}

static bool write_member(PyObject *zip, PyObject *key, PyObject *value)
{
    PyObject *name = PyUnicode_FromFormat("%U.npy", key), *open = NULL, *how = NULL, *args = NULL;
    PyObject *file = NULL, *done = NULL;
    bool ok = false;

    if (name && (open = PyObject_GetAttrString(zip, "open")) && (args = PyTuple_Pack(1, name)) &&
        (how = Py_BuildValue("{s:s,s:O}", "mode", "w", "force_zip64", Py_True)) &&
        (file = PyObject_Call(open, args, how)) && write_npy(file, value) &&
        (done = PyObject_CallMethod(file, "close", NULL)))
        ok = true;
    Py_XDECREF(name);
    Py_XDECREF(open);
    Py_XDECREF(how);
    Py_XDECREF(args);
    Py_XDECREF(file);
    Py_XDECREF(done);
    return ok;
}

static bool write_zip(PyObject *file, PyObject *arrays, bool compressed)
{
    PyObject *module = PyImport_ImportModule("zipfile"), *kind = NULL, *zip = NULL, *done = NULL;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool ok = module &&
              (kind = PyObject_GetAttrString(module, compressed ? "ZIP_DEFLATED" : "ZIP_STORED")) &&
              (zip = PyObject_CallMethod(module, "ZipFile", "OsO", file, "w", kind));

    while (ok && PyDict_Next(arrays, &at, &key, &value))
        ok = write_member(zip, key, value);
    ok = ok && (done = PyObject_CallMethod(zip, "close", NULL));
    Py_XDECREF(done);
    Py_XDECREF(zip);
    Py_XDECREF(kind);
    Py_XDECREF(module);
    return ok;
}

static bool save_zip(PyObject *file, PyObject *arrays, bool compressed)
{
    mlx_map_string_to_array map = { NULL };
    bool ok = table_of_arrays(&map, arrays, "savez");
    PyObject *path = NULL;
    int rc = 1;

    if (ok && io_is_writer(file)) {
        ok = write_zip(file, arrays, compressed);
    } else if (ok && !io_is_path(file)) {
        ok = wrong_file("savez", "a path or a file object") != NULL;
    } else if (ok && (ok = (path = io_path(file)) != NULL)) {
        const char *name = PyUnicode_AsUTF8AndSize(path, NULL);
        Py_BEGIN_ALLOW_THREADS
        rc = mlx_save_npz(name, map, compressed);
        Py_END_ALLOW_THREADS
        ok = error_check(rc);
    }
    Py_XDECREF(path);
    mlx_map_string_to_array_free(map);
    return ok;
}

static PyObject *savez(PyObject *const *args, Py_ssize_t n, PyObject *keywords, bool compressed)
{
    PyObject *arrays;
    bool ok;

    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "savez(): the argument file is missing.");
        return NULL;
    }
    arrays = collect(args, n, keywords);
    ok = arrays && save_zip(args[0], arrays, compressed);
    Py_XDECREF(arrays);
    return none_if(ok);
}

PyObject *core_savez(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    (void)self;
    return savez(args, n, keywords, false);
}

PyObject *core_savez_compressed(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                PyObject *keywords)
{
    (void)self;
    return savez(args, n, keywords, true);
}

/* ---- safetensors ---- */

static bool write_safetensors(PyObject *file, mlx_map_string_to_array arrays,
                              mlx_map_string_to_string texts)
{
    mlx_io_writer w = io_writer(file);
    int rc = 1;

    if (w.ctx) {
        Py_BEGIN_ALLOW_THREADS
        rc = mlx_save_safetensors_writer(w, arrays, texts);
        Py_END_ALLOW_THREADS
    }
    return w.ctx && io_writer_end(w, rc);
}

static bool save_safetensors(PyObject *file, mlx_map_string_to_array arrays,
                             mlx_map_string_to_string texts)
{
    PyObject *path;
    int rc;

    if (io_is_writer(file))
        return write_safetensors(file, arrays, texts);
    if (!io_is_path(file))
        return wrong_file("save_safetensors", "a path or a file object") != NULL;
    if (!(path = io_path(file)))
        return false;
    const char *name = PyUnicode_AsUTF8AndSize(path, NULL);
    Py_BEGIN_ALLOW_THREADS
    rc = mlx_save_safetensors(name, arrays, texts);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return error_check(rc);
}

PyObject *hand_save_safetensors(struct frame *f)
{
    mlx_map_string_to_array arrays = { NULL };
    mlx_map_string_to_string texts = { NULL };
    bool ok = table_of_arrays(&arrays, f->slot[1], "save_safetensors");

    if (ok && f->given[2])
        ok = table_of_texts(&texts, f->slot[2], "save_safetensors");
    else if (ok)
        texts = mlx_map_string_to_string_new();
    ok = ok && save_safetensors(f->slot[0], arrays, texts);
    mlx_map_string_to_array_free(arrays);
    mlx_map_string_to_string_free(texts);
    return none_if(ok);
}

/* ---- GGUF ---- */

static bool wrong_value(PyObject *key)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "save_gguf(): metadata are arrays, strings and lists of strings; not so %R.",
                     key);
    return false;
}

static bool set_texts(mlx_io_gguf g, PyObject *key, PyObject *value)
{
    mlx_vector_string list = mlx_vector_string_new();
    Py_ssize_t n = list_size(value);
    bool ok = true;

    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *item = list_item(value, i);
        const char *text = PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
        ok = text ? error_check(mlx_vector_string_append_value(list, text)) : wrong_value(key);
    }
    ok = ok && error_check(mlx_io_gguf_set_metadata_vector_string(
                   g, PyUnicode_AsUTF8AndSize(key, NULL), list));
    mlx_vector_string_free(list);
    return ok;
}

static bool set_value(mlx_io_gguf g, PyObject *key, PyObject *value)
{
    const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL, *text;

    if (!name)
        return wrong_value(key);
    if (is_array(value))
        return error_check(mlx_io_gguf_set_metadata_array(g, name, array_of(value)));
    if (is_list(value))
        return set_texts(g, key, value);
    if (!PyUnicode_Check(value))
        return wrong_value(key);
    return (text = PyUnicode_AsUTF8AndSize(value, NULL)) &&
           error_check(mlx_io_gguf_set_metadata_string(g, name, text));
}

static bool fill_gguf(mlx_io_gguf g, PyObject *arrays, PyObject *metadata)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    if (!PyDict_Check(arrays) || (metadata && !PyDict_Check(metadata))) {
        PyErr_SetString(PyExc_TypeError, "save_gguf(): arrays and metadata come in dicts.");
        return false;
    }
    while (PyDict_Next(arrays, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        if (!name || !is_array(value)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError,
                                "save_gguf(): arrays come in a dict with names as keys.");
            return false;
        }
        if (!error_check(mlx_io_gguf_set_array(g, name, array_of(value))))
            return false;
    }
    at = 0;
    while (metadata && PyDict_Next(metadata, &at, &key, &value))
        if (!set_value(g, key, value))
            return false;
    return true;
}

PyObject *hand_save_gguf(struct frame *f)
{
    mlx_io_gguf g = mlx_io_gguf_new();
    PyObject *path = NULL;
    bool ok = false;
    int rc;

    if (!io_is_path(f->slot[0])) {
        wrong_file("save_gguf", "a path");
    } else if (fill_gguf(g, f->slot[1], f->given[2] ? f->slot[2] : NULL) &&
               (path = io_path(f->slot[0]))) {
        const char *name = PyUnicode_AsUTF8AndSize(path, NULL);
        Py_BEGIN_ALLOW_THREADS
        rc = mlx_save_gguf(name, g);
        Py_END_ALLOW_THREADS
        ok = error_check(rc);
    }
    Py_XDECREF(path);
    mlx_io_gguf_free(g);
    return none_if(ok);
}
