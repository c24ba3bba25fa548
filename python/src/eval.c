/* Evaluation of trees of arrays. */
#include "args.h"
#include "hand.h"

/* Appends the arrays of a tree: dicts, lists, tuples; everything else is ignored. */
static bool collect(mlx_vector_array vec, PyObject *o)
{
    bool ok = true;

    if (is_array(o))
        return error_check(mlx_vector_array_append_value(vec, array_of(o)));
    if (!is_list(o) && !PyDict_Check(o))
        return true;
    if (Py_EnterRecursiveCall(" while the arrays of a tree were collected"))
        return false;
    if (is_list(o)) {
        for (Py_ssize_t i = 0; ok && i < PySequence_Size(o); i++)
            ok = collect(vec, list_item(o, i));
    } else {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (ok && PyDict_Next(o, &at, &key, &value))
            ok = collect(vec, value);
    }
    Py_LeaveRecursiveCall();
    return ok;
}

static PyObject *eval(struct frame *f, int (*run)(const mlx_vector_array))
{
    mlx_vector_array vec = mlx_vector_array_new();
    bool ok = true;
    int rc = 0;

    for (Py_ssize_t k = 0; ok && k < f->n_rest; k++)
        ok = collect(vec, f->rest[k]);
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
    return eval(f, mlx_eval);
}

PyObject *hand_async_eval(struct frame *f)
{
    return eval(f, mlx_async_eval);
}
