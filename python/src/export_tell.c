#include "export_tell.h"

#include "array.h"
#include "dtype.h"

static PyObject *shape_of(mlx_array a)
{
    Py_ssize_t n = (Py_ssize_t)mlx_array_ndim(a);
    PyObject *res = PyTuple_New(n);

    for (Py_ssize_t i = 0; res && i < n; i++) {
        PyObject *dim = PyLong_FromLong(mlx_array_shape(a)[i]);
        if (!dim || PyTuple_SetItem(res, i, dim) < 0)
            Py_CLEAR(res);
    }
    return res;
}

/* What an event says of array i of a list. */
typedef PyObject *entry_fn(const struct export_teller *t, const mlx_export_event *e, mlx_array a,
                           size_t i);

static const char *name_of(const struct export_teller *t, mlx_array a)
{
    const char *name = NULL;

    return error_check(mlx_node_namer_get_name(&name, t->namer, a)) ? name : NULL;
}

/* (name, shape, dtype) */
static PyObject *described(const struct export_teller *t, const mlx_export_event *e, mlx_array a,
                           size_t i)
{
    const char *name = name_of(t, a);

    (void)e;
    (void)i;
    return name ? Py_BuildValue("(sNN)", name, shape_of(a), dtype_wrap(mlx_array_dtype(a))) : NULL;
}

/* (keyword, name) */
static PyObject *keyword(const struct export_teller *t, const mlx_export_event *e, mlx_array a,
                         size_t i)
{
    const char *name = name_of(t, a);

    return name ? Py_BuildValue("(ss)", e->names[i], name) : NULL;
}

/* (name, array) */
static PyObject *constant(const struct export_teller *t, const mlx_export_event *e, mlx_array a,
                          size_t i)
{
    const char *name = name_of(t, a);

    (void)e;
    (void)i;
    return name ? Py_BuildValue("(sN)", name, array_wrap(a)) : NULL;
}

static PyObject *entries(const struct export_teller *t, const mlx_export_event *e,
                         mlx_vector_array list, entry_fn *entry)
{
    mlx_array a = mlx_array_new();
    PyObject *res = PyList_New(0);

    for (size_t i = 0; res && i < mlx_vector_array_size(list); i++) {
        PyObject *o = error_check(mlx_vector_array_get(&a, list, i)) ? entry(t, e, a, i) : NULL;
        if (!o || PyList_Append(res, o) < 0)
            Py_CLEAR(res);
        Py_XDECREF(o);
    }
    mlx_array_free(a);
    return res;
}

/* ---- the state of a primitive ---- */

static PyObject *ints(const mlx_export_argument *a)
{
    PyObject *res = PyTuple_New((Py_ssize_t)a->ints_num);

    for (size_t i = 0; res && i < a->ints_num; i++) {
        PyObject *o = PyLong_FromLongLong(a->ints[i]);
        if (!o || PyTuple_SetItem(res, (Py_ssize_t)i, o) < 0)
            Py_CLEAR(res);
    }
    return res;
}

static PyObject *argument(const mlx_export_argument *a)
{
    switch (a->kind) {
    case MLX_EXPORT_BOOL:
        return PyBool_FromLong(a->number != 0);
    case MLX_EXPORT_INT:
        return PyLong_FromLongLong(a->number);
    case MLX_EXPORT_FLOAT:
        return PyFloat_FromDouble(a->real);
    case MLX_EXPORT_DTYPE:
        return dtype_wrap((mlx_dtype)a->number);
    case MLX_EXPORT_TEXT:
        return PyUnicode_FromString(a->text);
    case MLX_EXPORT_INTS:
        break;
    }
    return ints(a);
}

static PyObject *arguments(const mlx_export_event *e)
{
    PyObject *res = PyList_New(0);

    for (size_t i = 0; res && i < e->arguments_num; i++) {
        PyObject *o = argument(&e->arguments[i]);
        if (!o || PyList_Append(res, o) < 0)
            Py_CLEAR(res);
        Py_XDECREF(o);
    }
    return res;
}

/* ---- events ---- */

static PyObject *primitive(const struct export_teller *t, const mlx_export_event *e)
{
    return Py_BuildValue("{s:s,s:s,s:N,s:N,s:N}", "type", "primitive", "name", e->name, "inputs",
                         entries(t, e, e->inputs, described), "outputs",
                         entries(t, e, e->outputs, described), "arguments", arguments(e));
}

static PyObject *event_dict(const struct export_teller *t, const mlx_export_event *e)
{
    static const struct {
        const char *type, *key;
        entry_fn *entry;
    } kinds[] = {
        [MLX_EXPORT_INPUTS] = { "inputs", "inputs", described },
        [MLX_EXPORT_KEYWORDS] = { "keyword_inputs", "keywords", keyword },
        [MLX_EXPORT_OUTPUTS] = { "outputs", "outputs", described },
        [MLX_EXPORT_CONSTANTS] = { "constants", "constants", constant },
    };

    if (e->kind == MLX_EXPORT_PRIMITIVE)
        return primitive(t, e);
    return Py_BuildValue("{s:s,s:N}", "type", kinds[e->kind].type, kinds[e->kind].key,
                         entries(t, e, e->inputs, kinds[e->kind].entry));
}

int export_tell(void *payload, const mlx_export_event *event)
{
    const struct export_teller *t = payload;
    PyObject *dict = event_dict(t, event), *res = NULL;

    if (dict)
        res = PyObject_CallFunctionObjArgs(t->callback, dict, NULL);
    Py_XDECREF(dict);
    Py_XDECREF(res);
    return res ? 0 : 1;
}
