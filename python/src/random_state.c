#include "random_state.h"

#include <time.h>

#include "args.h"
#include "hand.h"

/* Under this name the dict of each thread has a list with its key. Python drops it with the
 * thread. */
static PyObject *slot_name;

PyObject *random_state;

/* Threads that never said a number begin with the same key, as in MLX. */
static uint64_t time_seed(void)
{
    static uint64_t seed;
    struct timespec now;

    if (!seed) {
        timespec_get(&now, TIME_UTC);
        seed = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    }
    return seed;
}

static PyObject *key_object(uint64_t seed)
{
    struct array_object *out = array_alloc();
    mlx_array at;

    if (!out)
        return NULL;
    at = mlx_array_at(&out->place);
    return array_done(out, mlx_random_key(&at, seed));
}

/* The list of the calling thread, borrowed. */
static PyObject *state_list(void)
{
    PyObject *dict = PyThreadState_GetDict(), *list, *key;

    if (!dict) {
        PyErr_SetString(PyExc_RuntimeError,
                        "A thread that Python does not know has no random state.");
        return NULL;
    }
    list = PyDict_GetItemWithError(dict, slot_name);
    if (list || PyErr_Occurred())
        return list;
    key = key_object(time_seed());
    list = key ? PyList_New(0) : NULL;
    if (!list || PyList_Append(list, key) < 0 || PyDict_SetItem(dict, slot_name, list) < 0)
        Py_CLEAR(list);
    Py_XDECREF(key);
    Py_XDECREF(list); /* the dict has it */
    return list;
}

PyObject *random_state_get(void)
{
    PyObject *list = state_list();

    return list ? Py_XNewRef(PyList_GetItem(list, 0)) : NULL;
}

bool random_state_set(PyObject *key)
{
    PyObject *list = state_list();

    return list && PyList_SetItem(list, 0, Py_NewRef(key)) == 0;
}

bool random_state_next(mlx_array *res)
{
    PyObject *now = random_state_get();
    struct array_object *next = now ? array_alloc() : NULL;
    bool ok = false;

    if (next) {
        mlx_array at = mlx_array_at(&next->place);
        ok = error_check(mlx_random_split(&at, res, array_of(now), (mlx_stream){ NULL })) &&
             random_state_set((PyObject *)next);
    }
    Py_XDECREF((PyObject *)next);
    Py_XDECREF(now);
    return ok;
}

bool random_state_seed(uint64_t seed)
{
    PyObject *key = key_object(seed);
    bool ok = key && random_state_set(key);

    Py_XDECREF(key);
    return ok;
}

void random_state_forget(void)
{
    PyObject *dict = PyThreadState_GetDict();

    if (dict && PyDict_DelItem(dict, slot_name) < 0)
        PyErr_Clear();
}

/* ---- the object ---- */

static Py_ssize_t state_length(PyObject *self)
{
    (void)self;
    return 1;
}

static PyObject *state_item(PyObject *self, Py_ssize_t i)
{
    (void)self;
    if (i == 0)
        return random_state_get();
    PyErr_SetString(PyExc_IndexError, "The random state has one key.");
    return NULL;
}

static PyObject *state_iter(PyObject *self)
{
    PyObject *list = state_list();

    (void)self;
    return list ? PyObject_GetIter(list) : NULL;
}

bool random_state_init(PyObject *m)
{
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"The key of the calling thread, as a list of one item." },
        { Py_sq_length, state_length },
        { Py_sq_item, state_item },
        { Py_tp_iter, state_iter },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.random._RandomState",
                         .basicsize = sizeof(PyObject),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };
    PyObject *random = PyImport_AddModule("mlx.core.random");
    PyTypeObject *type = random ? type_add(random, &spec) : NULL;

    (void)m;
    slot_name = PyUnicode_InternFromString("mlx.core.random.state");
    if (type && slot_name)
        random_state = (PyObject *)PyObject_New(PyObject, type);
    Py_XDECREF((PyObject *)type);
    return random_state && PyModule_AddObjectRef(random, "state", random_state) == 0;
}
