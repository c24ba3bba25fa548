/* Evaluation of trees, mx.vjp, mx.jvp. */
#include "args.h"
#include "closure.h"
#include "function.h"
#include "hand.h"

/* ---- evaluation ---- */

/* The arrays of all arguments. */
static bool append_all(mlx_vector_array vec, const struct frame *f)
{
    bool ok = true;

    for (Py_ssize_t k = 0; ok && k < f->n_rest; k++)
        ok = tree_append(vec, f->rest[k], false);
    return ok;
}

static PyObject *evaluate(struct frame *f, int (*run)(const mlx_vector_array))
{
    mlx_vector_array vec = mlx_vector_array_new();
    bool ok = append_all(vec, f);
    int rc = 0;

    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        rc = run(vec);
        Py_END_ALLOW_THREADS
        ok = error_check(rc);
    }
    mlx_vector_array_free(vec);
    return ok ? Py_NewRef(Py_None) : NULL;
}

PyObject *hand_eval(struct frame *f)
{
    return evaluate(f, mlx_eval);
}

PyObject *hand_async_eval(struct frame *f)
{
    return evaluate(f, mlx_async_eval);
}

PyObject *hand_get_array_buffer_size(struct frame *f)
{
    mlx_vector_array vec = mlx_vector_array_new();
    size_t size = 0;
    bool ok = append_all(vec, f) && error_check(mlx_get_array_buffer_size(&size, vec));

    mlx_vector_array_free(vec);
    return ok ? PyLong_FromSize_t(size) : NULL;
}

/* ---- products with the Jacobian ---- */

static bool append_item(PyObject *list, PyObject *o)
{
    if (!is_array(o)) {
        PyErr_Format(PyExc_TypeError, "An array or a list of arrays is wanted, not %s.",
                     error_type_name(o));
        return false;
    }
    return PyList_Append(list, o) == 0;
}

/* The list of the arrays of a sequence. */
static PyObject *items_of(PyObject *o)
{
    PyObject *res = PyList_New(0), *it = res ? PyObject_GetIter(o) : NULL, *item;

    while (it && (item = PyIter_Next(it))) {
        bool ok = append_item(res, item);
        Py_DECREF(item);
        if (!ok)
            break;
    }
    Py_XDECREF(it);
    if (PyErr_Occurred())
        Py_CLEAR(res);
    return res;
}

/* The same, or the list of an array. */
static PyObject *arrays_of(PyObject *o)
{
    return is_array(o) ? Py_BuildValue("[O]", o) : items_of(o);
}

/* The function takes arrays one by one, and gives an array or a list of them. */
static PyObject *call_plain(PyObject *tracers, void *fun)
{
    PyObject *args = PyList_AsTuple(tracers), *value = NULL, *res = NULL;

    if (args)
        value = PyObject_CallObject(fun, args);
    if (value)
        res = arrays_of(value);
    Py_XDECREF(args);
    Py_XDECREF(value);
    return res;
}

typedef int product_fn(mlx_vector_array *, mlx_vector_array *, const mlx_closure,
                       const mlx_vector_array, const mlx_vector_array);

static PyObject *product(struct frame *f, product_fn *fn)
{
    struct closure_call call = { call_plain, f->slot[0] };
    mlx_closure closure = closure_of(&call);
    mlx_vector_array v[4] = { { NULL }, { NULL }, { NULL }, { NULL } };
    PyObject *lists[4] = { NULL, NULL, NULL, NULL }, *res = NULL;

    bool ok = function_check(f->slot[0], f->sig->name);
    for (int i = 0; ok && i < 2; i++)
        ok = (lists[i] = items_of(f->slot[i + 1])) && tree_vector(&v[i], lists[i], true);
    if (ok && error_check(fn(&v[2], &v[3], closure, v[0], v[1])) && (lists[2] = array_list(v[2])) &&
        (lists[3] = array_list(v[3])))
        res = PyTuple_Pack(2, lists[2], lists[3]);
    for (int i = 0; i < 4; i++) {
        mlx_vector_array_free(v[i]);
        Py_XDECREF(lists[i]);
    }
    mlx_closure_free(closure);
    return res;
}

PyObject *hand_vjp(struct frame *f)
{
    return product(f, mlx_vjp);
}

PyObject *hand_jvp(struct frame *f)
{
    return product(f, mlx_jvp);
}
