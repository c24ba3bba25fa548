#include "array.h"

#include <structmember.h>

#include "args.h"
#include "index.h"

PyTypeObject *array_type;

/* ---- objects ----
 * Objects of the type itself that died wait here for the next ones: most arrays are short-lived. */

enum { SPARE_MAX = 64 };
static struct array_object *spare[SPARE_MAX];
static int n_spare;

struct array_object *array_alloc(void)
{
    struct array_object *a;

    if (n_spare)
        a = (struct array_object *)PyObject_Init((PyObject *)spare[--n_spare], array_type);
    else
        a = PyObject_New(struct array_object, array_type);
    if (a) {
        a->place.array = NULL;
        a->weakrefs = NULL;
    }
    return a;
}

static void array_dealloc(PyObject *self)
{
    struct array_object *a = (struct array_object *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (a->weakrefs)
        PyObject_ClearWeakRefs(self);
    mlx_array_place_clear(&a->place);
    if (type == array_type && n_spare < SPARE_MAX)
        spare[n_spare++] = a;
    else
        ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args;
    (void)keywords;
    if (type == array_type)
        return (PyObject *)array_alloc();
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

static int array_fill(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "val", "dtype", NULL };
    PyObject *val, *dtype = Py_None;
    struct want want = WANT_ANY;
    mlx_array_place room = { NULL };
    mlx_array res = mlx_array_at(&room);

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:array", names, &val, &dtype))
        return -1;
    if (val == Py_None || (dtype != Py_None && !is_dtype(dtype))) {
        PyErr_Format(PyExc_TypeError, "array(): %s must be %s, not %s.",
                     val == Py_None ? "val" : "dtype",
                     val == Py_None ? "a number, a list or an array" : "a Dtype",
                     error_type_name(val == Py_None ? val : dtype));
        return -1;
    }
    if (dtype != Py_None)
        want = WANT(dtype_of(dtype));
    bool ok = create_array(&res, val, want);
    if (ok) { /* what was there goes last: it may be part of val */
        mlx_array_place old = ((struct array_object *)self)->place;
        ((struct array_object *)self)->place = room;
        room = old;
    }
    mlx_array_place_clear(&room);
    return ok ? 0 : -1;
}

PyObject *array_wrap(mlx_array a)
{
    struct array_object *out = array_alloc();
    mlx_array at;

    if (!out)
        return NULL;
    at = mlx_array_at(&out->place);
    return array_done(out, mlx_array_set(&at, a));
}

static PyObject *array_nth(mlx_vector_array vec, size_t i)
{
    struct array_object *out = array_alloc();
    mlx_array at;

    if (!out)
        return NULL;
    at = mlx_array_at(&out->place);
    return array_done(out, mlx_vector_array_get(&at, vec, i));
}

PyObject *array_list(mlx_vector_array vec)
{
    size_t n = mlx_vector_array_size(vec);
    PyObject *res = PyList_New((Py_ssize_t)n);

    for (size_t i = 0; res && i < n; i++) {
        PyObject *a = array_nth(vec, i);
        if (!a || PyList_SetItem(res, (Py_ssize_t)i, a) < 0)
            Py_CLEAR(res);
    }
    return res;
}

PyObject *array_tuple(mlx_vector_array vec)
{
    PyObject *list = array_list(vec);
    PyObject *res = list ? PyList_AsTuple(list) : NULL;

    Py_XDECREF(list);
    return res;
}

bool array_eval(mlx_array a)
{
    mlx_array_place room = { NULL }; /* another thread may give an object another array meanwhile */
    mlx_array held = mlx_array_at(&room);
    bool there = false;
    int rc = 0;

    if (_mlx_array_is_available(&there, a) == 0 && there)
        return true;
    rc = mlx_array_set(&held, a);
    if (rc == 0) {
        Py_BEGIN_ALLOW_THREADS
        rc = mlx_array_eval(held);
        Py_END_ALLOW_THREADS
    }
    bool ok = error_check(rc);
    mlx_array_place_clear(&room);
    return ok;
}

/* ---- properties ---- */

bool array_check(PyObject *self)
{
    if (!is_array(self))
        PyErr_SetString(PyExc_ValueError, "The array was not initialized.");
    return is_array(self);
}

static PyObject *array_shape(PyObject *self, void *closure)
{
    (void)closure;
    if (!array_check(self))
        return NULL;
    mlx_array a = array_of(self);
    Py_ssize_t n = (Py_ssize_t)mlx_array_ndim(a);
    const int *shape = mlx_array_shape(a);
    PyObject *res = PyTuple_New(n);

    for (Py_ssize_t i = 0; res && i < n; i++) {
        PyObject *dim = PyLong_FromLong(shape[i]);
        if (!dim || PyTuple_SetItem(res, i, dim) < 0)
            Py_CLEAR(res);
    }
    return res;
}

static PyObject *array_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return array_check(self) ? dtype_wrap(mlx_array_dtype(array_of(self))) : NULL;
}

/* name, what the library says */
#define SIZE_PROPERTY(name, function)                                                              \
    static PyObject *array_##name(PyObject *self, void *closure)                                   \
    {                                                                                              \
        (void)closure;                                                                             \
        return array_check(self) ? PyLong_FromSize_t(function(array_of(self))) : NULL;             \
    }
SIZE_PROPERTY(ndim, mlx_array_ndim)
SIZE_PROPERTY(size, mlx_array_size)
SIZE_PROPERTY(itemsize, mlx_array_itemsize)
SIZE_PROPERTY(nbytes, mlx_array_nbytes)

/* name, the op */
#define ARRAY_PROPERTY(name, op)                                                                   \
    static PyObject *array_##name(PyObject *self, void *closure)                                   \
    {                                                                                              \
        struct array_object *out = array_check(self) ? array_alloc() : NULL;                       \
        mlx_array at;                                                                              \
        (void)closure;                                                                             \
        if (!out)                                                                                  \
            return NULL;                                                                           \
        at = mlx_array_at(&out->place);                                                            \
        return array_done(out, op(&at, array_of(self), (mlx_stream){ NULL }));                     \
    }
ARRAY_PROPERTY(real, mlx_real)
ARRAY_PROPERTY(imag, mlx_imag)
ARRAY_PROPERTY(T, mlx_transpose)

static PyObject *array_transposed(PyObject *self, void *closure)
{
    struct array_object *out;
    mlx_array at;

    (void)closure;
    if (array_check(self) && mlx_array_ndim(array_of(self)) < 2)
        PyErr_SetString(PyExc_ValueError,
                        "[matrix_transpose] Input array must have at least 2 dimensions.");
    if (PyErr_Occurred() || !(out = array_alloc()))
        return NULL;
    at = mlx_array_at(&out->place);
    return array_done(out, mlx_swapaxes(&at, array_of(self), -1, -2, (mlx_stream){ NULL }));
}

static PyGetSetDef properties[] = {
    { "shape", array_shape, NULL, "The sizes of the dimensions, as a tuple of ints.", NULL },
    { "ndim", array_ndim, NULL, "The number of dimensions.", NULL },
    { "size", array_size, NULL, "The number of elements.", NULL },
    { "itemsize", array_itemsize, NULL, "The bytes of an element.", NULL },
    { "nbytes", array_nbytes, NULL, "The bytes of all elements.", NULL },
    { "dtype", array_dtype, NULL, "The type of the elements.", NULL },
    { "real", array_real, NULL, "The real part.", NULL },
    { "imag", array_imag, NULL, "The imaginary part.", NULL },
    { "at", array_at, NULL, "Updates of elements: x.at[index].add(value).", NULL },
    { "T", array_T, NULL, "The array with its dimensions in reverse order.", NULL },
    { "mT", array_transposed, NULL, "The array with its last two dimensions exchanged.", NULL },
    { 0 },
};

/* ---- protocols ---- */

static Py_ssize_t array_length(PyObject *self)
{
    if (!array_check(self))
        return -1;
    mlx_array a = array_of(self);
    if (mlx_array_ndim(a) == 0) {
        PyErr_SetString(PyExc_TypeError, "len() 0-dimensional array.");
        return -1;
    }
    return mlx_array_shape(a)[0];
}

static Py_hash_t array_hash(PyObject *self)
{
    Py_hash_t h = (Py_hash_t)((uintptr_t)self >> 4);

    return h == -1 ? -2 : h;
}

static PyMemberDef members[] = {
    { "__weaklistoffset__", T_PYSSIZET, offsetof(struct array_object, weakrefs), READONLY, NULL },
    { 0 },
};

static const char doc[] =
    "array(val, dtype=None)\n--\n\n"
    "An array of numbers of one dtype, whose values are computed when they are needed.\n\n"
    "val may be a number, nested lists or tuples of numbers and arrays, another array, or an\n"
    "object with a buffer, such as an array of NumPy.";

static const PyType_Slot own_slots[] = {
    { Py_tp_doc, (void *)doc },       { Py_tp_new, array_new },       { Py_tp_init, array_fill },
    { Py_tp_dealloc, array_dealloc }, { Py_tp_getset, properties },   { Py_tp_members, members },
    { Py_tp_methods, array_methods }, { Py_tp_repr, array_repr },     { Py_tp_str, array_repr },
    { Py_tp_hash, array_hash },       { Py_mp_length, array_length }, { 0, NULL },
};

bool array_init(PyObject *m)
{
    static PyType_Slot slots[128];
    const PyType_Slot *const parts[] = { own_slots, array_number_slots, array_index_slots,
                                         array_exchange_slots };
    int n = 0;

    for (int p = 0; p < 4; p++)
        for (const PyType_Slot *s = parts[p]; s->slot; s++)
            slots[n++] = *s;
    slots[n] = (PyType_Slot){ 0, NULL };
    PyType_Spec spec = { .name = "mlx.core.array",
                         .basicsize = sizeof(struct array_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         .slots = slots };
    array_type = type_add(m, &spec);
    return array_type != NULL;
}
