/* What the files of the extension mlx.core share: Python's limited API, the public headers, errors.
 *
 * The extension stands on the public headers alone. Functions that return PyObject * return a new
 * reference, or NULL with an exception set; those that return bool say whether they succeeded, and
 * have set an exception where they did not. All of them need the GIL. */
#pragma once

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mlx/c/ext.h"
#include "mlx/c/mlx.h"

/* ---- errors: error.c ---- */

/* Turns the library's last failure on this thread into the exception that MLX raises. An exception
 * that is set already stays: the failure came out of a callback. Returns NULL. */
PyObject *error_raise(void);

/* What an index or an axis out of range raises. */
extern PyObject *error_range;

/* Sets the exception unless rc is 0. */
static inline bool error_check(int rc)
{
    if (rc)
        error_raise();
    return rc == 0;
}

/* Takes the library's failures from here on; nothing is printed and nothing exits. */
bool error_init(void);

/* "an int", "None": what o is, for texts. Borrowed; valid until the next call. */
const char *error_type_name(PyObject *o);

/* ---- types ---- */

/* Makes a type of the extension and adds it to m under the name behind the last dot. */
PyTypeObject *type_add(PyObject *m, PyType_Spec *spec);

/* Adds v, whose reference it takes, to m. v may be NULL: the exception is set then. */
bool module_add(PyObject *m, const char *name, PyObject *v);

/* Where a type of ours may be subclassed, types are compared this way. */
static inline bool is_of(PyObject *o, PyTypeObject *type)
{
    return Py_TYPE(o) == type || PyType_IsSubtype(Py_TYPE(o), type);
}

/* A list or tuple, which o must be. Subclasses may say another length than what there is to read.
 */
static inline Py_ssize_t list_size(PyObject *o)
{
    return PyList_Check(o) ? PyList_Size(o) : PyTuple_Size(o);
}

/* A borrowed item of it; NULL and IndexError if there is none. */
static inline PyObject *list_item(PyObject *o, Py_ssize_t i)
{
    return PyList_Check(o) ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i);
}

/* A new reference to an item, for those who run code of the caller's, which may change the list. */
static inline PyObject *list_get(PyObject *o, Py_ssize_t i)
{
    return Py_XNewRef(list_item(o, i));
}

static inline bool is_list(PyObject *o)
{
    return PyList_Check(o) || PyTuple_Check(o);
}

/* ---- modules: module.c ---- */

/* mlx.core itself, borrowed. */
extern PyObject *core_module;

/* ---- print.c ---- */

bool print_init(PyObject *m);
