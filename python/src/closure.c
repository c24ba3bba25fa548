#include "closure.h"

#include <stdatomic.h>

static bool python_ended; /* set when the interpreter begins to end */

int closure_result(mlx_vector_array *res, PyObject *leaves)
{
    mlx_vector_array vec = { NULL };

    if (!leaves || !tree_vector(&vec, leaves, true))
        return 1;
    mlx_vector_array_free(*res);
    *res = vec;
    return 0;
}

static int run(mlx_vector_array *res, const mlx_vector_array in, void *data)
{
    const struct closure_call *c = data;
    PyObject *arrays = array_list(in), *leaves = arrays ? c->fn(arrays, c->data) : NULL;
    int rc = closure_result(res, leaves);

    Py_XDECREF(arrays);
    Py_XDECREF(leaves);
    return rc;
}

mlx_closure closure_of(struct closure_call *c)
{
    return mlx_closure_new_func_payload(run, c, NULL);
}

/* ---- objects that the library keeps ---- */

struct closure_kept {
    PyObject *v[CLOSURE_KEPT];
    struct closure_kept *next; /* among those that wait for the GIL */
};

static _Atomic(struct closure_kept *) waiting;

static void release(struct closure_kept *k)
{
    for (int i = 0; i < CLOSURE_KEPT; i++)
        Py_XDECREF(k->v[i]);
    PyMem_Free(k);
}

static int release_waiting(void *unused)
{
    struct closure_kept *k = atomic_exchange(&waiting, NULL);

    (void)unused;
    while (k) {
        struct closure_kept *next = k->next;
        release(k);
        k = next;
    }
    return 0;
}

struct closure_kept *closure_keep(PyObject *const v[CLOSURE_KEPT])
{
    struct closure_kept *k = PyMem_Malloc(sizeof *k);

    if (!k) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int i = 0; i < CLOSURE_KEPT; i++)
        k->v[i] = Py_XNewRef(v[i]);
    if (atomic_load(&waiting))
        release_waiting(NULL);
    return k;
}

PyObject **closure_place(void *kept, int i)
{
    return &((struct closure_kept *)kept)->v[i];
}

/* A worker of the library must not wait for the GIL: who has it may wait for the worker. */
static void release_later(struct closure_kept *k)
{
    k->next = atomic_load(&waiting);
    while (!atomic_compare_exchange_weak(&waiting, &k->next, k))
        ;
    Py_AddPendingCall(release_waiting, NULL); /* if there is no room the next closure does it */
}

void closure_drop(void *kept)
{
    PyObject *type, *value, *trace;

    if (python_ended || !kept)
        return;
    if (!PyGILState_GetThisThreadState()) {
        release_later(kept);
        return;
    }
    PyGILState_STATE gil = PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &trace);
    release(kept);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(gil);
}

/* ---- the end ---- */

static PyObject *note_end(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    python_ended = true;
    Py_RETURN_NONE;
}

bool closure_init(PyObject *m)
{
    static PyMethodDef method = { "_note_end", note_end, METH_NOARGS, NULL };
    PyObject *atexit = PyImport_ImportModule("atexit"), *function = NULL, *res = NULL;

    (void)m;
    if (atexit && (function = PyCFunction_NewEx(&method, NULL, NULL)))
        res = PyObject_CallMethod(atexit, "register", "O", function);
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    Py_XDECREF(res);
    return res != NULL;
}
