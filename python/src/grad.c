/* mx.grad, mx.value_and_grad. */
#include "args.h"
#include "closure.h"
#include "function.h"
#include "hand.h"

/* What a function of this kind keeps: the numbers of arguments, sorted, and the set of names. */
enum { NUMBERS, NAMES };

/* A call under way. */
struct grad_call {
    const char *tag; /* "[grad]" */
    bool only_scalar;
    PyObject *fun;
    PyObject *tree;   /* a list of the arguments and the dict of the named ones */
    PyObject *leaves; /* their arrays */
    PyObject *value;  /* what the function returned */
    PyObject *start;  /* where the gradients of each argument that has some begin */
    int *argnums;     /* the numbers of the arrays that have one */
    size_t n_argnums;
};

/* ---- what the function returns ---- */

static bool value_error(const struct grad_call *g, const char *got)
{
    PyErr_Format(PyExc_ValueError, "%s The function must return a scalar array%s, not %s.", g->tag,
                 g->only_scalar ? "" : ", alone or as the first item of a tuple", got);
    return false;
}

static bool check_value(const struct grad_call *g)
{
    PyObject *v = g->value;

    if (is_array(v))
        return true;
    if (g->only_scalar || !PyTuple_Check(v))
        return value_error(g, error_type_name(v));
    if (PyTuple_Size(v) == 0)
        return value_error(g, "an empty tuple");
    if (is_array(PyTuple_GetItem(v, 0)))
        return true;
    return value_error(g, error_type_name(PyTuple_GetItem(v, 0)));
}

/* ---- the call with tracers ---- */

static PyObject *call_traced(PyObject *tracers, void *data)
{
    struct grad_call *g = data;
    struct tree_swap swap = { .from = tracers, .to = g->leaves };
    PyObject *leaves = NULL;

    if (!tree_fill(&g->tree, tracers))
        return NULL;
    g->value = PyObject_Call(g->fun, PyList_GetItem(g->tree, 0), PyList_GetItem(g->tree, 1));
    /* Lists and dicts of the caller get their arrays back, whatever happened. */
    if (!tree_put_back(&g->tree, &swap) || !check_value(g) || !(leaves = PyList_New(0)))
        return NULL;
    if (!tree_flatten(leaves, g->value, false))
        Py_CLEAR(leaves);
    return leaves;
}

/* ---- which arrays have gradients ---- */

static bool append_number(PyObject *list, Py_ssize_t n)
{
    PyObject *o = PyLong_FromSsize_t(n);
    bool ok = o && PyList_Append(list, o) == 0;

    Py_XDECREF(o);
    return ok;
}

static bool add_argument(struct grad_call *g, PyObject *arg, bool wanted)
{
    Py_ssize_t before = PyList_Size(g->leaves), n;
    int *argnums;

    if (!tree_flatten(g->leaves, arg, wanted))
        return false;
    if (!wanted)
        return true;
    n = PyList_Size(g->leaves);
    argnums = PyMem_Realloc(g->argnums, (size_t)(n + 1) * sizeof *argnums);
    if (!argnums) {
        PyErr_NoMemory();
        return false;
    }
    g->argnums = argnums;
    if (!append_number(g->start, (Py_ssize_t)g->n_argnums))
        return false;
    for (Py_ssize_t i = before; i < n; i++)
        argnums[g->n_argnums++] = (int)i;
    return true;
}

static bool add_arguments(struct grad_call *g, const struct function_object *f, PyObject *args,
                          PyObject *keywords)
{
    Py_ssize_t next = 0, n_wanted = PyTuple_Size(f->data[NUMBERS]), at = 0;
    PyObject *name, *value;

    for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++) {
        bool wanted =
            next < n_wanted && PyLong_AsSsize_t(PyTuple_GetItem(f->data[NUMBERS], next)) == i;
        next += wanted;
        if (!add_argument(g, PyTuple_GetItem(args, i), wanted))
            return false;
    }
    while (PyDict_Next(keywords, &at, &name, &value)) {
        int wanted = PySet_Contains(f->data[NAMES], name);
        if (wanted < 0 || !add_argument(g, value, wanted))
            return false;
    }
    return true;
}

static bool names_given(const struct grad_call *g, PyObject *names, PyObject *keywords)
{
    PyObject *it = PyObject_GetIter(names), *name;
    bool ok = it != NULL;

    while (ok && (name = PyIter_Next(it))) {
        int has = PyDict_Contains(keywords, name);
        if (!has)
            PyErr_Format(
                PyExc_ValueError,
                "%s The gradient of the argument %R is wanted, but no such keyword is given.",
                g->tag, name);
        ok = has > 0;
        Py_DECREF(name);
    }
    Py_XDECREF(it);
    return ok && !PyErr_Occurred();
}

static bool check_arguments(const struct grad_call *g, const struct function_object *f,
                            PyObject *args, PyObject *keywords)
{
    Py_ssize_t n = PyTuple_Size(f->data[NUMBERS]);
    Py_ssize_t last = n ? PyLong_AsSsize_t(PyTuple_GetItem(f->data[NUMBERS], n - 1)) : -1;

    if (last >= PyTuple_Size(args)) {
        PyErr_Format(
            PyExc_ValueError,
            "%s The gradient of argument %zd is wanted, but only %zd are given by position.",
            g->tag, last, PyTuple_Size(args));
        return false;
    }
    return names_given(g, f->data[NAMES], keywords);
}

/* ---- gradients in the containers of the arguments ---- */

static PyObject *gradient_of(const struct grad_call *g, PyObject *arg, PyObject *grads,
                             Py_ssize_t which)
{
    Py_ssize_t next = PyLong_AsSsize_t(PyList_GetItem(g->start, which));

    return tree_unflatten(arg, grads, &next);
}

/* None, the gradient of the only argument, or a tuple of them. */
static PyObject *positional(const struct grad_call *g, const struct function_object *f,
                            PyObject *args, PyObject *grads)
{
    Py_ssize_t n = PyTuple_Size(f->data[NUMBERS]);
    PyObject *res = n ? PyTuple_New(n) : Py_NewRef(Py_None), *only;

    for (Py_ssize_t k = 0; res && k < n; k++) {
        Py_ssize_t i = PyLong_AsSsize_t(PyTuple_GetItem(f->data[NUMBERS], k));
        PyObject *grad = gradient_of(g, PyTuple_GetItem(args, i), grads, k);
        if (!grad || PyTuple_SetItem(res, k, grad) < 0)
            Py_CLEAR(res);
    }
    if (n != 1 || !res)
        return res;
    only = Py_NewRef(PyTuple_GetItem(res, 0));
    Py_DECREF(res);
    return only;
}

static PyObject *named(const struct grad_call *g, const struct function_object *f,
                       PyObject *keywords, PyObject *grads)
{
    Py_ssize_t which = PyTuple_Size(f->data[NUMBERS]), at = 0;
    PyObject *res = PyDict_New(), *name, *value;

    while (res && PyDict_Next(keywords, &at, &name, &value)) {
        int wanted = PySet_Contains(f->data[NAMES], name);
        PyObject *grad = wanted > 0 ? gradient_of(g, value, grads, which++) : NULL;
        if (wanted < 0 || (wanted && (!grad || PyDict_SetItem(res, name, grad) < 0)))
            Py_CLEAR(res);
        Py_XDECREF(grad);
    }
    return res;
}

static PyObject *gradients(const struct grad_call *g, const struct function_object *f,
                           PyObject *args, PyObject *keywords, PyObject *grads)
{
    PyObject *by_position = positional(g, f, args, grads), *by_name, *res = NULL;

    if (!by_position || PySet_Size(f->data[NAMES]) == 0)
        return by_position;
    by_name = named(g, f, keywords, grads);
    if (by_name)
        res = PyTuple_Pack(2, by_position, by_name);
    Py_DECREF(by_position);
    Py_XDECREF(by_name);
    return res;
}

/* ---- the call ---- */

/* Lists of values and of gradients. */
static bool differentiate(struct grad_call *g, PyObject *lists[2])
{
    struct closure_call call = { call_traced, g };
    mlx_closure closure = closure_of(&call);
    mlx_closure_value_and_grad both = mlx_closure_value_and_grad_new();
    mlx_vector_array in = { NULL }, values = { NULL }, grads = { NULL };
    bool ok = tree_vector(&in, g->leaves, true) &&
              error_check(mlx_value_and_grad(&both, closure, g->argnums, g->n_argnums)) &&
              error_check(mlx_closure_value_and_grad_apply(&values, &grads, both, in)) &&
              (lists[0] = array_list(values)) && (lists[1] = array_list(grads));

    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_closure_value_and_grad_free(both);
    mlx_closure_free(closure);
    return ok;
}

/* The pair of value and gradients, or the latter alone. */
static PyObject *results(const struct grad_call *g, const struct function_object *f, PyObject *args,
                         PyObject *keywords, PyObject *const lists[2])
{
    PyObject *grads = gradients(g, f, args, keywords, lists[1]), *value, *res = NULL;
    Py_ssize_t next = 0;

    if (!grads || g->only_scalar)
        return grads;
    value = tree_unflatten(g->value, lists[0], &next);
    if (value)
        res = PyTuple_Pack(2, value, grads);
    Py_XDECREF(value);
    Py_DECREF(grads);
    return res;
}

static PyObject *grad_call(struct function_object *f, PyObject *args, PyObject *keywords)
{
    struct grad_call g = { .tag = f->flag ? "[grad]" : "[value_and_grad]",
                           .only_scalar = f->flag,
                           .fun = f->fun };
    PyObject *lists[2] = { NULL, NULL }, *res = NULL;

    if (!check_arguments(&g, f, args, keywords))
        return NULL;
    g.leaves = PyList_New(0);
    g.start = PyList_New(0);
    g.tree = Py_BuildValue("[OO]", args, keywords);
    if (g.leaves && g.start && g.tree && add_arguments(&g, f, args, keywords) &&
        differentiate(&g, lists))
        res = results(&g, f, args, keywords, lists);
    Py_XDECREF(lists[0]);
    Py_XDECREF(lists[1]);
    Py_XDECREF(g.leaves);
    Py_XDECREF(g.start);
    Py_XDECREF(g.tree);
    Py_XDECREF(g.value);
    PyMem_Free(g.argnums);
    return res;
}

/* ---- making the function ---- */

static PyObject *wrong(struct frame *f, const char *param, const char *wanted, PyObject *got)
{
    args_type_error(f->sig, param, wanted, got);
    return NULL;
}

/* A sorted tuple of different numbers, none below 0. */
static PyObject *check_numbers(PyObject *list, const char *tag)
{
    PyObject *res = NULL;

    if (PyList_Sort(list) < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        long v = PyLong_AsLong(PyList_GetItem(list, i));
        if (v < 0)
            PyErr_Format(PyExc_ValueError, "%s The number of an argument is negative: %ld.", tag,
                         v);
        else if (i && v == PyLong_AsLong(PyList_GetItem(list, i - 1)))
            PyErr_Format(PyExc_ValueError, "%s Argument %ld is named twice.", tag, v);
        if (PyErr_Occurred())
            return NULL;
    }
    res = PyList_AsTuple(list);
    return res;
}

static PyObject *read_numbers(struct frame *f, PyObject *o, bool has_names)
{
    static const char tag[] = "an int or a sequence of ints";
    const char *who = f->sig->name[0] == 'g' ? "[grad]" : "[value_and_grad]";
    PyObject *list = PyList_New(0), *res = NULL;
    bool ok = list != NULL;

    if (o == NULL || o == Py_None) {
        ok = ok && (has_names || append_number(list, 0));
    } else if (PyLong_Check(o)) {
        int v = 0;
        ok = ok && int_from(o, &v) && append_number(list, v);
    } else if (!PySequence_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || is_array(o)) {
        ok = wrong(f, "argnums", tag, o) != NULL;
    } else {
        for (Py_ssize_t i = 0, n = PySequence_Size(o); ok && i < n; i++) {
            PyObject *item = PySequence_GetItem(o, i);
            int v = 0;
            ok = item && (is_intlike(item) || wrong(f, "argnums", tag, o)) && int_from(item, &v) &&
                 append_number(list, v);
            Py_XDECREF(item);
        }
    }
    if (ok)
        res = check_numbers(list, who);
    Py_XDECREF(list);
    if (res && PyTuple_Size(res) == 0 && !has_names) {
        PyErr_Format(PyExc_ValueError, "%s No argument is named to have a gradient.", who);
        Py_CLEAR(res);
    }
    return res;
}

/* A set of texts: of one, or of those of a sequence or a set. */
static PyObject *read_names(struct frame *f, PyObject *o)
{
    PyObject *res = PyFrozenSet_New(NULL), *it = NULL, *name;

    if (!o)
        return res;
    if (PyUnicode_Check(o)) {
        Py_XDECREF(res);
        PyObject *one = PyTuple_Pack(1, o);
        res = one ? PyFrozenSet_New(one) : NULL;
        Py_XDECREF(one);
        return res;
    }
    Py_XDECREF(res);
    if (!(res = PyFrozenSet_New(o)))
        return wrong(f, "argnames", "a str or a sequence of them", o);
    it = PyObject_GetIter(res);
    while (it && (name = PyIter_Next(it))) {
        if (!PyUnicode_Check(name))
            wrong(f, "argnames", "a str or a sequence of them", o);
        Py_DECREF(name);
        if (PyErr_Occurred())
            break;
    }
    Py_XDECREF(it);
    if (PyErr_Occurred())
        Py_CLEAR(res);
    return res;
}

static PyObject *make(struct frame *f, bool only_grad)
{
    static const struct function_kind kind = { grad_call, NULL };
    struct function_object *res;
    PyObject *numbers, *names;

    if (!function_check(f->slot[0], f->sig->name) || !(names = read_names(f, f->slot[2])))
        return NULL;
    numbers = read_numbers(f, f->slot[1], PySet_Size(names) > 0);
    res = numbers ? function_make(&kind, f->slot[0]) : NULL;
    if (!res) {
        Py_XDECREF(numbers);
        Py_DECREF(names);
        return NULL;
    }
    res->data[NUMBERS] = numbers;
    res->data[NAMES] = names;
    res->flag = only_grad;
    return (PyObject *)res;
}

PyObject *hand_grad(struct frame *f)
{
    return make(f, true);
}

PyObject *hand_value_and_grad(struct frame *f)
{
    return make(f, false);
}
