/* mx.fast.vulkan_kernel: kernels of callers. What it returns calls mx.fast._vulkan_kernel_call,
 * whose arguments the common parser takes. */
#include "args.h"
#include "function.h"
#include "hand.h"

/* ---- making one ---- */

static bool add_name(mlx_vector_string out, PyObject *item, const char *what)
{
    const char *text = item && PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;

    if (text)
        return error_check(mlx_vector_string_append_value(out, text));
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "vulkan_kernel(): %s must be a list of str.", what);
    return false;
}

static bool names_of(mlx_vector_string out, PyObject *list, const char *what)
{
    if (!list || !is_list(list)) {
        PyErr_Format(PyExc_TypeError, "vulkan_kernel(): %s must be a list of str.", what);
        return false;
    }
    for (Py_ssize_t i = 0; i < PySequence_Size(list); i++)
        if (!add_name(out, list_item(list, i), what))
            return false;
    return true;
}

static mlx_fast_vulkan_kernel of_glsl(struct frame *f)
{
    mlx_vector_string in = mlx_vector_string_new(), out = mlx_vector_string_new();
    mlx_fast_vulkan_kernel k = { NULL };

    if (names_of(in, f->slot[1], "input_names") && names_of(out, f->slot[2], "output_names")) {
        k = mlx_fast_vulkan_kernel_new(f->v[0].text, in, out, f->v[3].text, f->v[4].text, f->v[5].b,
                                       f->v[6].b);
        if (!k.ctx)
            error_raise();
    }
    mlx_vector_string_free(in);
    mlx_vector_string_free(out);
    return k;
}

/* Bytes, or else the path of a file. */
static mlx_fast_vulkan_kernel of_spirv(struct frame *f, PyObject *spirv)
{
    mlx_fast_vulkan_kernel k = { NULL };
    PyObject *path = NULL;
    Py_buffer bytes;

    if (PyObject_CheckBuffer(spirv)) {
        if (PyObject_GetBuffer(spirv, &bytes, PyBUF_SIMPLE) < 0)
            return k;
        k = mlx_fast_vulkan_kernel_new_spirv(f->v[0].text, bytes.buf, (size_t)bytes.len, f->v[5].b);
        PyBuffer_Release(&bytes);
    } else {
        if (!PyUnicode_FSConverter(spirv, &path))
            return k;
        k = mlx_fast_vulkan_kernel_new_file(f->v[0].text, PyBytes_AsString(path), f->v[5].b);
        Py_DECREF(path);
    }
    if (!k.ctx)
        error_raise();
    return k;
}

static PyObject *kernel_call(struct function_object *f, PyObject *args, PyObject *keywords)
{
    PyObject *fast = PyObject_GetAttrString(core_module, "fast"), *call = NULL, *all = NULL,
             *res = NULL;

    if (fast)
        call = PyObject_GetAttrString(fast, "_vulkan_kernel_call");
    if (call && PyTuple_Size(args) == 0)
        all = PyTuple_Pack(1, (PyObject *)f);
    else if (call)
        PyErr_SetString(PyExc_TypeError, "A kernel is called with named arguments only.");
    if (all)
        res = PyObject_Call(call, all, keywords);
    Py_XDECREF(all);
    Py_XDECREF(call);
    Py_XDECREF(fast);
    return res;
}

static void kernel_end(struct function_object *f)
{
    mlx_fast_vulkan_kernel_free((mlx_fast_vulkan_kernel){ f->handle });
}

static const struct function_kind kernel_kind = { kernel_call, kernel_end };

PyObject *hand_fast_vulkan_kernel(struct frame *f)
{
    struct function_object *res;
    mlx_fast_vulkan_kernel k;

    if (f->given[3] == f->given[7]) {
        PyErr_SetString(PyExc_ValueError, "[vulkan_kernel] Either source or spirv is given.");
        return NULL;
    }
    k = f->given[3] ? of_glsl(f) : of_spirv(f, f->slot[7]);
    if (!k.ctx)
        return NULL;
    if (!(res = function_make(&kernel_kind, NULL))) {
        mlx_fast_vulkan_kernel_free(k);
        return NULL;
    }
    res->handle = k.ctx;
    return (PyObject *)res;
}

/* ---- calling it ---- */

enum {
    KERNEL,
    INPUTS,
    TEMPLATE,
    GRID,
    THREADGROUP,
    SHAPES,
    DTYPES,
    INIT,
    VERBOSE,
    GROUPS,
    PUSH,
    SPECIALIZATION,
    STREAM,
};

typedef int set_three_fn(mlx_fast_vulkan_kernel_config config, int a, int b, int c);

/* Up to three numbers; those that are missing are 1. */
static bool set_three(struct frame *f, int i, mlx_fast_vulkan_kernel_config config,
                      set_three_fn *set)
{
    int v[] = { 1, 1, 1 };
    struct int_list list;

    if (!f->given[i])
        return true;
    if (!frame_ints(f, &list, f->slot[i], f->sig->params[i].name, false))
        return false;
    if (list.n > 3 || !list.n) {
        PyErr_Format(PyExc_ValueError, "[vulkan_kernel] %s has %zu numbers, not one to three.",
                     f->sig->params[i].name, list.n);
        return false;
    }
    memcpy(v, list.v, list.n * sizeof *v);
    return error_check(set(config, v[0], v[1], v[2]));
}

static bool set_outputs(struct frame *f, mlx_fast_vulkan_kernel_config config)
{
    PyObject *shapes = f->slot[SHAPES], *dtypes = f->slot[DTYPES];

    if (!is_list(shapes) || !is_list(dtypes))
        return args_type_error(f->sig, is_list(shapes) ? "output_dtypes" : "output_shapes",
                               "a list", is_list(shapes) ? dtypes : shapes);
    if (PySequence_Size(shapes) != PySequence_Size(dtypes)) {
        PyErr_Format(PyExc_ValueError, "[vulkan_kernel] %zd output_shapes, but %zd output_dtypes.",
                     PySequence_Size(shapes), PySequence_Size(dtypes));
        return false;
    }
    for (Py_ssize_t i = 0; i < PySequence_Size(shapes); i++) {
        PyObject *dtype = list_item(dtypes, i);
        struct int_list shape;
        if (!is_dtype(dtype))
            return args_type_error(f->sig, "output_dtypes", "a list of dtypes", dtype);
        if (!frame_ints(f, &shape, list_item(shapes, i), "output_shapes", false) ||
            !error_check(mlx_fast_vulkan_kernel_config_add_output_arg(config, shape.v, shape.n,
                                                                      dtype_of(dtype))))
            return false;
    }
    return true;
}

static bool add_template(mlx_fast_vulkan_kernel_config config, PyObject *pair)
{
    bool is_pair = is_list(pair) && PySequence_Size(pair) == 2;
    PyObject *value = is_pair ? list_item(pair, 1) : NULL;
    const char *name = is_pair && PyUnicode_Check(list_item(pair, 0))
                           ? PyUnicode_AsUTF8AndSize(list_item(pair, 0), NULL)
                           : NULL;
    int number;

    if (name && is_dtype(value))
        return error_check(
            mlx_fast_vulkan_kernel_config_add_template_arg_dtype(config, name, dtype_of(value)));
    if (name && PyBool_Check(value))
        return error_check(
            mlx_fast_vulkan_kernel_config_add_template_arg_bool(config, name, value == Py_True));
    if (name && is_intlike(value))
        return int_from(value, &number) &&
               error_check(
                   mlx_fast_vulkan_kernel_config_add_template_arg_int(config, name, number));
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "[vulkan_kernel] Invalid template argument. Must be a "
                                          "pair of a name and a dtype, an int or a bool.");
    return false;
}

static bool set_templates(struct frame *f, mlx_fast_vulkan_kernel_config config)
{
    PyObject *list = f->slot[TEMPLATE];

    if (!f->given[TEMPLATE])
        return true;
    if (!is_list(list))
        return args_type_error(f->sig, "template", "a list of pairs", list);
    for (Py_ssize_t i = 0; i < PySequence_Size(list); i++)
        if (!add_template(config, list_item(list, i)))
            return false;
    return true;
}

/* The 32 bits that a number has as a constant: a float those of a float, else an integer's. */
static bool bits_of(uint32_t *out, PyObject *value)
{
    if (PyFloat_Check(value)) {
        float v = (float)PyFloat_AsDouble(value);
        memcpy(out, &v, sizeof v);
        return true;
    }
    long long v = PyLong_AsLongLong(value);
    if (PyErr_Occurred())
        return false;
    if (v < INT32_MIN || v > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "[vulkan_kernel] A constant has 32 bits.");
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

static bool set_constants(struct frame *f, mlx_fast_vulkan_kernel_config config)
{
    PyObject *key, *value, *dict = f->slot[SPECIALIZATION];
    Py_ssize_t at = 0;

    if (!f->given[SPECIALIZATION])
        return true;
    if (!PyDict_Check(dict))
        return args_type_error(f->sig, "specialization", "a dict", dict);
    while (PyDict_Next(dict, &at, &key, &value)) {
        uint32_t id, bits;
        if (!bits_of(&id, key) || !bits_of(&bits, value) ||
            !error_check(mlx_fast_vulkan_kernel_config_set_specialization(config, id, bits)))
            return false;
    }
    return true;
}

static bool set_push(struct frame *f, mlx_fast_vulkan_kernel_config config)
{
    Py_buffer bytes;

    if (!f->given[PUSH])
        return true;
    if (PyObject_GetBuffer(f->slot[PUSH], &bytes, PyBUF_SIMPLE) < 0)
        return false;
    int rc = mlx_fast_vulkan_kernel_config_set_push_constants(config, bytes.buf, (size_t)bytes.len);
    PyBuffer_Release(&bytes);
    return error_check(rc);
}

static bool set_others(struct frame *f, mlx_fast_vulkan_kernel_config config)
{
    double init = f->given[INIT] ? PyFloat_AsDouble(f->slot[INIT]) : 0;

    if (PyErr_Occurred() ||
        (f->given[INIT] &&
         !error_check(mlx_fast_vulkan_kernel_config_set_init_value(config, (float)init))))
        return false;
    return error_check(mlx_fast_vulkan_kernel_config_set_verbose(config, f->v[VERBOSE].b));
}

static bool configure(struct frame *f, mlx_fast_vulkan_kernel_config config)
{
    if (f->given[GRID] == f->given[GROUPS]) {
        PyErr_SetString(PyExc_ValueError, "[vulkan_kernel] Either grid or groups is given.");
        return false;
    }
    return set_three(f, GRID, config, mlx_fast_vulkan_kernel_config_set_grid) &&
           set_three(f, GROUPS, config, mlx_fast_vulkan_kernel_config_set_groups) &&
           set_three(f, THREADGROUP, config, mlx_fast_vulkan_kernel_config_set_thread_group) &&
           set_outputs(f, config) && set_templates(f, config) && set_constants(f, config) &&
           set_push(f, config) && set_others(f, config);
}

/* Arrays, and numbers that become such. */
static bool take_inputs(struct frame *f, mlx_vector_array in)
{
    PyObject *list = f->slot[INPUTS];

    if (!is_list(list))
        return args_type_error(f->sig, "inputs", "a list of arrays", list);
    for (Py_ssize_t i = 0; i < PySequence_Size(list); i++) {
        PyObject *item = list_item(list, i);
        mlx_array_place room = { NULL };
        mlx_array a = mlx_array_at(&room);
        bool ok = true;
        if (is_array(item))
            a = array_of(item);
        else
            ok = create_array(&a, item, WANT_ANY);
        ok = ok && error_check(mlx_vector_array_append_value(in, a));
        mlx_array_place_clear(&room);
        if (!ok)
            return false;
    }
    return true;
}

static bool is_kernel(PyObject *o)
{
    return function_is(o, &kernel_kind);
}

PyObject *hand_fast_vulkan_call(struct frame *f)
{
    mlx_fast_vulkan_kernel_config config;
    mlx_vector_array in, out;
    PyObject *res = NULL;

    if (!is_kernel(f->slot[KERNEL])) {
        args_type_error(f->sig, "kernel", "what vulkan_kernel() made", f->slot[KERNEL]);
        return NULL;
    }
    config = mlx_fast_vulkan_kernel_config_new();
    in = mlx_vector_array_new();
    out = mlx_vector_array_new();
    if (configure(f, config) && take_inputs(f, in) &&
        error_check(mlx_fast_vulkan_kernel_apply(
            &out, (mlx_fast_vulkan_kernel){ ((struct function_object *)f->slot[KERNEL])->handle },
            in, config, f->v[STREAM].stream)))
        res = array_list(out);
    mlx_vector_array_free(out);
    mlx_vector_array_free(in);
    mlx_fast_vulkan_kernel_config_free(config);
    return res;
}
