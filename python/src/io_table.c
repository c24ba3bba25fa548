#include "io_table.h"

/* ---- dicts of tables ---- */

PyObject *table_arrays(mlx_map_string_to_array map)
{
    mlx_map_string_to_array_iterator it = mlx_map_string_to_array_iterator_new(map);
    PyObject *res = PyDict_New();
    const char *key;

    while (res) {
        struct array_object *value = array_alloc();
        mlx_array at = value ? mlx_array_at(&value->place) : (mlx_array){ NULL };
        int rc = value ? mlx_map_string_to_array_iterator_next(&key, &at, it) : 1;
        if (rc == 0)
            rc = PyDict_SetItemString(res, key, (PyObject *)value) < 0 ? 1 : 0;
        Py_XDECREF((PyObject *)value);
        if (rc == 2)
            break;
        if (!error_check(rc))
            Py_CLEAR(res);
    }
    mlx_map_string_to_array_iterator_free(it);
    return res;
}

PyObject *table_texts(mlx_map_string_to_string map)
{
    mlx_map_string_to_string_iterator it = mlx_map_string_to_string_iterator_new(map);
    const char *key, *value;
    PyObject *res = PyDict_New();

    while (res && mlx_map_string_to_string_iterator_next(&key, &value, it) == 0) {
        PyObject *text = PyUnicode_FromString(value);
        if (!text || PyDict_SetItemString(res, key, text) < 0)
            Py_CLEAR(res);
        Py_XDECREF(text);
    }
    mlx_map_string_to_string_iterator_free(it);
    return res;
}

bool table_collect(mlx_vector_array vec, mlx_map_string_to_array map)
{
    PyObject *dict = table_arrays(map), *key, *value;
    Py_ssize_t at = 0;
    bool ok = dict != NULL;

    while (ok && PyDict_Next(dict, &at, &key, &value))
        ok = error_check(mlx_vector_array_append_value(vec, array_of(value)));
    Py_XDECREF(dict);
    return ok;
}

/* ---- tables of dicts ---- */

static const char *text_of(PyObject *o)
{
    return PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
}

bool table_of_arrays(mlx_map_string_to_array *res, PyObject *dict, const char *who)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool ok = PyDict_Check(dict);

    *res = mlx_map_string_to_array_new();
    while (ok && PyDict_Next(dict, &at, &key, &value)) {
        const char *name = text_of(key);
        ok = name && is_array(value);
        if (ok && !error_check(mlx_map_string_to_array_insert(*res, name, array_of(value))))
            return false;
    }
    if (!ok && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s(): arrays come in a dict with names as keys.", who);
    return ok;
}

bool table_of_texts(mlx_map_string_to_string *res, PyObject *dict, const char *who)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    *res = mlx_map_string_to_string_new();
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "%s(): metadata must be a dict or None, not %s.", who,
                     error_type_name(dict));
        return false;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = text_of(key), *text = name ? text_of(value) : NULL;
        if (!text) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "[%s] Metadata are strings under strings.", who);
            return false;
        }
        if (!error_check(mlx_map_string_to_string_insert(*res, name, text)))
            return false;
    }
    return true;
}
