/* Subscripts of arrays: reading (index.c), writing (index_assign.c), array.at (at.c). */
#pragma once

#include "array.h"

/* What writing does with the elements that are there. */
enum write_kind {
    WRITE_SET,
    WRITE_ADD,
    WRITE_SUBTRACT,
    WRITE_MULTIPLY,
    WRITE_DIVIDE,
    WRITE_MAXIMUM,
    WRITE_MINIMUM,
};

/* Makes *res the array a with value written to, or combined with, the elements that index names.
 * *res may be a. */
bool index_write(mlx_array *res, mlx_array a, PyObject *index, PyObject *value,
                 enum write_kind kind);

/* a[index] = value, of which the object is another array afterwards. */
int array_write(PyObject *self, PyObject *index, PyObject *value);

/* array.at */
PyObject *array_at(PyObject *self, void *closure);

bool at_init(PyObject *m);
bool index_init(PyObject *m);
