/* mx.vulkan. */
#include "args.h"
#include "hand.h"

PyObject *hand_vulkan_is_available(struct frame *f)
{
    mlx_device dev = mlx_device_new_type(MLX_GPU, 0);
    bool there = false;
    bool ok = dev.ctx && error_check(mlx_device_is_available(&there, dev));

    (void)f;
    mlx_device_free(dev);
    return ok ? PyBool_FromLong(there) : error_raise();
}

/* The value of a counter or a setting. */
typedef PyObject *value_fn(const char *name);

static PyObject *counter(const char *name)
{
    uint64_t v = 0;

    return error_check(mlx_stats_get(&v, name)) ? PyLong_FromUnsignedLongLong(v) : NULL;
}

static PyObject *setting(const char *name)
{
    mlx_string text = mlx_string_new();
    PyObject *res = NULL;

    if (error_check(mlx_setting_get(&text, name)))
        res = PyUnicode_FromString(mlx_string_data(text));
    mlx_string_free(text);
    return res;
}

/* A dict of the values of all names. */
static PyObject *dict_of(int (*list)(mlx_vector_string *), value_fn *value)
{
    mlx_vector_string names = mlx_vector_string_new();
    PyObject *res = error_check(list(&names)) ? PyDict_New() : NULL;

    for (size_t i = 0; res && i < mlx_vector_string_size(names); i++) {
        char *name = NULL;
        PyObject *v = mlx_vector_string_get(&name, names, i) == 0 ? value(name) : NULL;
        if (!v || PyDict_SetItemString(res, name, v) < 0)
            Py_CLEAR(res);
        Py_XDECREF(v);
    }
    mlx_vector_string_free(names);
    return res;
}

PyObject *hand_vulkan_statistics(struct frame *f)
{
    (void)f;
    return dict_of(mlx_stats_names, counter);
}

PyObject *hand_vulkan_settings(struct frame *f)
{
    (void)f;
    return dict_of(mlx_setting_names, setting);
}

static PyObject *set(const char *name, const char *value)
{
    int rc = mlx_setting_set(name, value);

    if (rc == 2)
        PyErr_Format(PyExc_KeyError, "There is no setting %s.", name);
    else if (error_check(rc))
        return Py_NewRef(Py_None);
    return NULL;
}

/* A str, or a number as text. */
PyObject *hand_vulkan_set_setting(struct frame *f)
{
    PyObject *text, *res = NULL;

    if (!f->given[1])
        return set(f->v[0].text, NULL);
    if (f->slot[1] == Py_True || f->slot[1] == Py_False)
        text = PyUnicode_FromString(f->slot[1] == Py_True ? "1" : "0");
    else
        text = PyObject_Str(f->slot[1]);
    if (text)
        res = set(f->v[0].text, PyUnicode_AsUTF8AndSize(text, NULL));
    Py_XDECREF(text);
    return res;
}

PyObject *hand_vulkan_trace(struct frame *f)
{
    return set("MLX_VK_PROFILE", f->given[0] ? f->v[0].text : NULL);
}
