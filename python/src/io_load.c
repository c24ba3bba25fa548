/* mx.load. */
#include "args.h"
#include "hand.h"
#include "io_file.h"
#include "io_table.h"

/* What mx.load was asked for. */
struct load {
    PyObject *file;
    mlx_stream stream;
    bool with_metadata;
};

static bool wrong_file(const char *what, const char *wanted)
{
    PyErr_Format(PyExc_ValueError, "[load%s] The file must be %s.", what, wanted);
    return false;
}

/* The result with what was asked for besides; takes both references. */
static PyObject *with_metadata(const struct load *l, PyObject *res, PyObject *metadata)
{
    PyObject *pair;

    if (!l->with_metadata || !res || !metadata) {
        if (!metadata)
            Py_CLEAR(res);
        Py_XDECREF(metadata);
        return res;
    }
    pair = PyTuple_Pack(2, res, metadata);
    Py_DECREF(res);
    Py_DECREF(metadata);
    return pair;
}

/* What the library says of a file that is not there, or no such file, as MLX raises it where it
 * asks Python. */
static void as_value_error(void)
{
    PyObject *type, *value, *trace;

    if (!PyErr_ExceptionMatches(PyExc_RuntimeError))
        return;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_Format(PyExc_ValueError, "%S", value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* The file object is the caller's, who may close it: what it has is read at once. */
static int evaluate(mlx_vector_array vec)
{
    int rc;

    Py_BEGIN_ALLOW_THREADS
    rc = mlx_eval(vec);
    Py_END_ALLOW_THREADS
    return rc;
}

/* ---- npy ---- */

static bool read_npy(const struct load *l, PyObject *file, mlx_array *res)
{
    mlx_io_reader r = io_reader(file);
    mlx_vector_array vec = mlx_vector_array_new();
    int rc = r.ctx ? mlx_load_reader(res, r, l->stream) : 1;

    if (!rc)
        rc = mlx_vector_array_append_value(vec, *res);
    if (!rc)
        rc = evaluate(vec);
    mlx_vector_array_free(vec);
    return r.ctx && io_reader_end(r, rc);
}

static PyObject *load_npy(const struct load *l)
{
    struct array_object *out = array_alloc();
    PyObject *path = NULL;
    bool ok = false;
    mlx_array at;

    if (!out)
        return NULL;
    at = mlx_array_at(&out->place);
    if (io_is_path(l->file)) {
        if ((path = io_path(l->file)))
            ok = error_check(mlx_load(&at, PyUnicode_AsUTF8AndSize(path, NULL), l->stream));
    } else if (io_is_reader(l->file)) {
        ok = read_npy(l, l->file, &at);
    } else {
        wrong_file("_npy", "a path or a file object");
    }
    Py_XDECREF(path);
    if (ok)
        return (PyObject *)out;
    Py_DECREF((PyObject *)out);
    return NULL;
}

/* ---- npz ---- */

/* "a" of "a.npy". */
static PyObject *member_name(PyObject *name)
{
    PyObject *suffix = PyUnicode_FromString(".npy"), *res = NULL;
    Py_ssize_t n = PyUnicode_GetLength(name);

    if (suffix && n > 4 && PyUnicode_Tailmatch(name, suffix, 0, n, 1) == 1)
        res = PyUnicode_Substring(name, 0, n - 4);
    else if (suffix)
        res = Py_NewRef(name);
    Py_XDECREF(suffix);
    return res;
}

static bool load_member(const struct load *l, PyObject *zip, PyObject *name, PyObject *res)
{
    PyObject *file = PyObject_CallMethod(zip, "open", "O", name), *key = NULL;
    struct array_object *out = file ? array_alloc() : NULL;
    bool ok = false;

    if (out && (key = member_name(name))) {
        mlx_array at = mlx_array_at(&out->place);
        ok = read_npy(l, file, &at) && PyDict_SetItem(res, key, (PyObject *)out) == 0;
    }
    Py_XDECREF(key);
    Py_XDECREF((PyObject *)out);
    Py_XDECREF(file);
    return ok;
}

/* Whether Python's zipfile takes the file, whose position stays. */
static bool is_zip(PyObject *module, PyObject *file)
{
    PyObject *at = PyObject_CallMethod(file, "tell", NULL), *res = NULL, *back;
    bool ok = false;

    if (at && (res = PyObject_CallMethod(module, "is_zipfile", "O", file))) {
        ok = PyObject_IsTrue(res) == 1;
        back = PyObject_CallMethod(file, "seek", "O", at);
        ok = back && ok;
        Py_XDECREF(back);
    }
    Py_XDECREF(at);
    Py_XDECREF(res);
    return ok || (!PyErr_Occurred() && wrong_file("_npz", "a zip archive"));
}

static PyObject *load_zip(const struct load *l)
{
    PyObject *module = PyImport_ImportModule("zipfile"), *zip = NULL, *names = NULL;
    PyObject *res = NULL;

    if (module && is_zip(module, l->file) &&
        (zip = PyObject_CallMethod(module, "ZipFile", "O", l->file)) &&
        (names = PyObject_CallMethod(zip, "namelist", NULL)))
        res = PyDict_New();
    for (Py_ssize_t i = 0; res && i < PyList_Size(names); i++)
        if (!load_member(l, zip, PyList_GetItem(names, i), res))
            Py_CLEAR(res);
    Py_XDECREF(names);
    Py_XDECREF(zip);
    Py_XDECREF(module);
    return res;
}

static PyObject *load_npz(const struct load *l)
{
    mlx_map_string_to_array map = { NULL };
    PyObject *path, *res = NULL;

    if (io_is_reader(l->file))
        return load_zip(l);
    if (!io_is_path(l->file)) {
        wrong_file("_npz", "a path or a file object");
        return NULL;
    }
    if (!(path = io_path(l->file)))
        return NULL;
    if (error_check(mlx_load_npz(&map, PyUnicode_AsUTF8AndSize(path, NULL), l->stream)))
        res = table_arrays(map);
    else
        as_value_error();
    mlx_map_string_to_array_free(map);
    Py_DECREF(path);
    return res;
}

/* ---- safetensors ---- */

static bool read_safetensors(const struct load *l, mlx_map_string_to_array *arrays,
                             mlx_map_string_to_string *texts)
{
    mlx_io_reader r = io_reader(l->file);
    mlx_vector_array vec = mlx_vector_array_new();
    int rc = r.ctx ? mlx_load_safetensors_reader(arrays, texts, r, l->stream) : 1;

    if (!rc)
        rc = table_collect(vec, *arrays) ? evaluate(vec) : 1;
    mlx_vector_array_free(vec);
    return r.ctx && io_reader_end(r, rc);
}

static PyObject *load_safetensors(const struct load *l)
{
    mlx_map_string_to_array arrays = { NULL };
    mlx_map_string_to_string texts = { NULL };
    PyObject *path = NULL, *res = NULL;
    bool ok = false;

    if (io_is_path(l->file)) {
        if ((path = io_path(l->file)))
            ok = error_check(mlx_load_safetensors(&arrays, &texts,
                                                  PyUnicode_AsUTF8AndSize(path, NULL), l->stream));
    } else if (io_is_reader(l->file)) {
        ok = read_safetensors(l, &arrays, &texts);
    } else {
        wrong_file("_safetensors", "a path or a file object");
    }
    if (ok)
        res = with_metadata(l, table_arrays(arrays), table_texts(texts));
    mlx_map_string_to_array_free(arrays);
    mlx_map_string_to_string_free(texts);
    Py_XDECREF(path);
    return res;
}

/* ---- GGUF ---- */

static PyObject *gguf_array(mlx_io_gguf g, const char *key,
                            int (*get)(mlx_array *, mlx_io_gguf, const char *))
{
    struct array_object *out = array_alloc();
    mlx_array at;

    if (!out)
        return NULL;
    at = mlx_array_at(&out->place);
    return array_done(out, get(&at, g, key));
}

static PyObject *gguf_texts(mlx_io_gguf g, const char *key)
{
    mlx_vector_string list = mlx_vector_string_new();
    PyObject *res = NULL;

    if (error_check(mlx_io_gguf_get_metadata_vector_string(&list, g, key)))
        res = PyList_New(0);
    for (size_t i = 0; res && i < mlx_vector_string_size(list); i++) {
        char *text = NULL;
        PyObject *o =
            mlx_vector_string_get(&text, list, i) == 0 ? PyUnicode_FromString(text) : NULL;
        if (!o || PyList_Append(res, o) < 0)
            Py_CLEAR(res);
        Py_XDECREF(o);
    }
    mlx_vector_string_free(list);
    return res;
}

static PyObject *gguf_text(mlx_io_gguf g, const char *key)
{
    mlx_string text = mlx_string_new();
    PyObject *res = NULL;

    if (error_check(mlx_io_gguf_get_metadata_string(&text, g, key)))
        res = PyUnicode_DecodeUTF8(mlx_string_data(text), (Py_ssize_t)strlen(mlx_string_data(text)),
                                   "replace");
    mlx_string_free(text);
    return res;
}

static PyObject *gguf_value(mlx_io_gguf g, const char *key)
{
    bool is_text = false, is_list = false;

    if (!error_check(mlx_io_gguf_has_metadata_string(&is_text, g, key)) ||
        !error_check(mlx_io_gguf_has_metadata_vector_string(&is_list, g, key)))
        return NULL;
    if (is_text)
        return gguf_text(g, key);
    return is_list ? gguf_texts(g, key) : gguf_array(g, key, mlx_io_gguf_get_metadata_array);
}

static PyObject *gguf_tensor(mlx_io_gguf g, const char *key)
{
    return gguf_array(g, key, mlx_io_gguf_get_array);
}

/* A dict of what item makes for the keys. */
static PyObject *gguf_dict(mlx_io_gguf g, int (*keys)(mlx_vector_string *, mlx_io_gguf),
                           PyObject *(*item)(mlx_io_gguf, const char *))
{
    mlx_vector_string names = mlx_vector_string_new();
    PyObject *res = NULL;

    if (error_check(keys(&names, g)))
        res = PyDict_New();
    for (size_t i = 0; res && i < mlx_vector_string_size(names); i++) {
        char *name = NULL;
        PyObject *o = mlx_vector_string_get(&name, names, i) == 0 ? item(g, name) : NULL;
        if (!o || PyDict_SetItemString(res, name, o) < 0)
            Py_CLEAR(res);
        Py_XDECREF(o);
    }
    mlx_vector_string_free(names);
    return res;
}

static PyObject *load_gguf(const struct load *l)
{
    mlx_io_gguf g = mlx_io_gguf_new();
    PyObject *path = NULL, *res = NULL;

    if (!io_is_path(l->file))
        wrong_file("_gguf", "a path");
    else if (!(path = io_path(l->file)))
        res = NULL;
    else if (!error_check(mlx_load_gguf(&g, PyUnicode_AsUTF8AndSize(path, NULL), l->stream)))
        as_value_error();
    else
        res = with_metadata(l, gguf_dict(g, mlx_io_gguf_get_keys, gguf_tensor),
                            gguf_dict(g, mlx_io_gguf_get_metadata_keys, gguf_value));
    mlx_io_gguf_free(g);
    Py_XDECREF(path);
    return res;
}

/* ---- formats ---- */

static const struct format {
    const char *name;
    PyObject *(*load)(const struct load *l);
    bool has_metadata;
} formats[] = {
    { "npy", load_npy, false },
    { "npz", load_npz, false },
    { "safetensors", load_safetensors, true },
    { "gguf", load_gguf, true },
};

/* What stands behind the last dot of the file's name, a new reference. */
static PyObject *format_of(PyObject *file)
{
    PyObject *name = NULL, *res = NULL;
    Py_ssize_t n, dot;

    if (io_is_path(file))
        name = io_path(file);
    else if (io_is_reader(file))
        name = PyObject_GetAttrString(file, "name");
    else
        wrong_file("", "a path or a file object opened in binary mode");
    if (!name || !PyUnicode_Check(name)) {
        if (name)
            wrong_file("", "one with a name, or the format given");
        Py_XDECREF(name);
        return NULL;
    }
    n = PyUnicode_GetLength(name);
    dot = PyUnicode_FindChar(name, '.', 0, n, -1);
    if (dot >= 0)
        res = PyUnicode_Substring(name, dot + 1, n);
    else if (dot == -1)
        PyErr_Format(PyExc_ValueError, "[load] The name %R does not say the format.", name);
    Py_DECREF(name);
    return res;
}

PyObject *hand_load(struct frame *f)
{
    struct load l = { .file = f->slot[0], .stream = f->v[3].stream, .with_metadata = f->v[2].b };
    PyObject *format = f->given[1] ? Py_NewRef(f->slot[1]) : format_of(l.file), *res = NULL;
    const struct format *found = NULL;

    if (!format)
        return NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (PyUnicode_CompareWithASCIIString(format, formats[i].name) == 0)
            found = &formats[i];
    if (!found)
        PyErr_Format(PyExc_ValueError, "[load] The file format %U is not known.", format);
    else if (l.with_metadata && !found->has_metadata)
        PyErr_Format(PyExc_ValueError, "[load] Files of the format %U have no metadata.", format);
    else
        res = found->load(&l);
    Py_DECREF(format);
    return res;
}
