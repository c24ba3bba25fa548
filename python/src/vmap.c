/* mx.vmap. */
#include "args.h"
#include "closure.h"
#include "function.h"
#include "hand.h"

enum { IN_AXES, OUT_AXES };

/* ---- axes of the leaves ---- */

struct axes {
    int *v;
    size_t n, room;
    bool is_output;
    bool has_tuple; /* a tuple of one axis stood for an array */
};

static bool not_an_axis(void)
{
    PyErr_SetString(PyExc_ValueError, "[vmap] An axis is an int or None.");
    return false;
}

/* None, an int, or for the only argument a tuple of one of these. */
static bool read_axis(struct axes *x, PyObject *at, mlx_array a, int *axis)
{
    int ndim = (int)mlx_array_ndim(a) + x->is_output, given;

    if (PyTuple_Check(at) && PyTuple_Size(at) == 1 && !PyTuple_Check(PyTuple_GetItem(at, 0))) {
        x->has_tuple = true;
        at = PyTuple_GetItem(at, 0);
    }
    if (at == Py_None) {
        *axis = -1;
        return true;
    }
    if (!PyLong_Check(at))
        return not_an_axis();
    if (!int_from(at, &given))
        return false;
    *axis = given < 0 ? given + ndim : given;
    if (*axis < 0 || *axis >= ndim)
        PyErr_Format(error_range, "[vmap] There is no %saxis %d in an array of %d dimensions.",
                     x->is_output ? "output " : "", given, ndim);
    return *axis >= 0 && *axis < ndim;
}

static bool add_axis(PyObject *leaf, PyObject *at, void *data)
{
    struct axes *x = data;

    if (!is_array(leaf)) {
        PyErr_SetString(PyExc_ValueError, "[vmap] Arguments and results are trees of arrays.");
        return false;
    }
    if (x->n == x->room) {
        size_t room = x->room * 2 + 8;
        int *v = PyMem_Realloc(x->v, room * sizeof *v);
        if (!v) {
            PyErr_NoMemory();
            return false;
        }
        x->v = v;
        x->room = room;
    }
    return read_axis(x, at, array_of(leaf), &x->v[x->n++]);
}

static bool read_axes(struct axes *x, PyObject *tree, PyObject *axes)
{
    if (!tree_visit_pair(tree, axes, add_axis, x))
        return false;
    return !x->has_tuple || is_array(tree) || not_an_axis();
}

/* ---- the call ---- */

struct vmap_call {
    PyObject *fun;
    PyObject *args;
    PyObject *value; /* what the function returned */
};

static PyObject *call_traced(PyObject *tracers, void *data)
{
    struct vmap_call *m = data;
    Py_ssize_t next = 0;
    PyObject *args = tree_unflatten(m->args, tracers, &next), *leaves = NULL;

    if (args)
        m->value = PyObject_CallObject(m->fun, args);
    Py_XDECREF(args);
    if (!m->value || !(leaves = PyList_New(0)))
        return NULL;
    if (!tree_flatten(leaves, m->value, true))
        Py_CLEAR(leaves);
    return leaves;
}

/* The list of results over the batch. */
static PyObject *batch(struct vmap_call *m, const struct axes *in, struct axes *out,
                       PyObject *out_axes)
{
    struct closure_call call = { call_traced, m };
    mlx_closure closure = closure_of(&call);
    mlx_vector_array v[4] = { { NULL }, { NULL }, { NULL }, { NULL } };
    PyObject *res = NULL;

    if (tree_vector(&v[0], m->args, true) &&
        error_check(mlx_detail_vmap_trace(&v[1], &v[2], closure, v[0], in->v, in->n)) &&
        read_axes(out, m->value, out_axes) &&
        error_check(mlx_detail_vmap_replace(&v[3], v[0], v[1], v[2], in->v, in->n, out->v, out->n)))
        res = array_list(v[3]);
    for (int i = 0; i < 4; i++)
        mlx_vector_array_free(v[i]);
    mlx_closure_free(closure);
    return res;
}

static PyObject *vmap_call(struct function_object *f, PyObject *args, PyObject *keywords)
{
    struct vmap_call m = { .fun = f->fun, .args = args };
    struct axes in = { .v = NULL }, out = { .is_output = true };
    PyObject *tree = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : args;
    PyObject *results = NULL, *res = NULL;
    Py_ssize_t next = 0;

    if (PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "[vmap] The function takes no keyword arguments.");
        return NULL;
    }
    if (read_axes(&in, tree, f->data[IN_AXES]) &&
        (results = batch(&m, &in, &out, f->data[OUT_AXES])))
        res = tree_unflatten(m.value, results, &next);
    PyMem_Free(in.v);
    PyMem_Free(out.v);
    Py_XDECREF(results);
    Py_XDECREF(m.value);
    return res;
}

/* ---- making the function ---- */

static PyObject *axes_or_default(struct frame *f, int i)
{
    if (f->slot[i] == Py_None) {
        args_type_error(f->sig, f->sig->params[i].name, "an axis or a tree of them", Py_None);
        return NULL;
    }
    return f->slot[i] ? Py_NewRef(f->slot[i]) : PyLong_FromLong(0);
}

PyObject *hand_vmap(struct frame *f)
{
    static const struct function_kind kind = { vmap_call, NULL };
    struct function_object *res;

    if (!function_check(f->slot[0], "vmap") || !(res = function_make(&kind, f->slot[0])))
        return NULL;
    res->data[IN_AXES] = axes_or_default(f, 1);
    res->data[OUT_AXES] = res->data[IN_AXES] ? axes_or_default(f, 2) : NULL;
    if (!res->data[OUT_AXES]) {
        Py_DECREF((PyObject *)res);
        return NULL;
    }
    return (PyObject *)res;
}
