/* mlx.core.array: an object with the room for a handle, so that a result costs one allocation. */
#pragma once

#include "core.h"

struct array_object {
    PyObject_HEAD mlx_array_place place;
    PyObject *weakrefs;
};

extern PyTypeObject *array_type;

/* Whether o is an array, and has been initialized. */
static inline bool is_array(PyObject *o)
{
    /* Numbers are told apart by their flags, without a look at what they derive from. */
    return (Py_TYPE(o) == array_type || (!PyLong_Check(o) && is_of(o, array_type))) &&
           ((struct array_object *)o)->place.array;
}

/* The same, with the exception where it is not. */
bool array_check(PyObject *self);

/* The handle of an array object, valid while the object lives. */
static inline mlx_array array_of(PyObject *o)
{
    return mlx_array_at(&((struct array_object *)o)->place);
}

/* An object without array, to be a result; nothing else may see it before it has one. */
struct array_object *array_alloc(void);

/* Ends a call with out as its result: out if rc is 0, else the exception. */
static inline PyObject *array_done(struct array_object *out, int rc)
{
    if (rc == 0)
        return (PyObject *)out;
    Py_XDECREF((PyObject *)out);
    return error_raise();
}

/* An array object that shares the array of a handle. */
PyObject *array_wrap(mlx_array a);

/* The arrays of a list as a Python list or tuple. */
PyObject *array_list(mlx_vector_array vec);
PyObject *array_tuple(mlx_vector_array vec);

/* Evaluates and waits, without the GIL. */
bool array_eval(mlx_array a);

bool array_init(PyObject *m);

/* ---- values: array_value.c ---- */

/* The elements of an array in host memory, which is evaluated for that: the address of element [0,
 * ..., 0], not NULL even where there are no elements. NULL with an exception. */
const void *array_bytes(mlx_array a);

/* The only element as a Python number. */
PyObject *array_item(PyObject *a);
PyObject *array_tolist(PyObject *a);
PyObject *array_repr(PyObject *a);
PyObject *array_as_int(PyObject *a);
PyObject *array_as_index(PyObject *a);
PyObject *array_as_float(PyObject *a);
int array_as_bool(PyObject *a);

/* ---- numbers and comparisons: array_number.c ---- */

/* Slots of the type, ended by { 0, NULL }. */
extern const PyType_Slot array_number_slots[];

/* ---- what others add to the type: subscripts, iteration, exchange ---- */

extern const PyType_Slot array_index_slots[];
extern const PyType_Slot array_exchange_slots[];
