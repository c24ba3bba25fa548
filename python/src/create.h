/* Arrays made of what Python has: numbers, lists, buffers, objects that know their array. */
#pragma once

#include "array.h"
#include "dtype.h"

/* What a conversion may be told: a dtype, or nothing. */
struct want {
    mlx_dtype dtype;
    bool given;
};

#define WANT_ANY ((struct want){ .given = false })
#define WANT(t) ((struct want){ .dtype = (t), .given = true })

/* Whether o is a number as MLX means it: bool, int, float, complex, or what converts like NumPy's
 * scalars. */
bool is_number(PyObject *o);

/* Makes *res an array of any o that mx.array() takes, of dtype want or the one that o suggests. */
bool create_array(mlx_array *res, PyObject *o, struct want want);

/* Makes *res a number's array: of dtype want where one is given, else of the number's own. */
bool create_number(mlx_array *res, PyObject *o, struct want want);

/* Makes *res the array of a number beside an array of dtype t: ints take the dtype, floats that of
 * floats or float32, complex numbers complex64. */
bool create_weak(mlx_array *res, PyObject *o, mlx_dtype t);

/* An operand of a function, beside an array of dtype want or by itself: arrays stay, numbers are
 * weak, what others know as arrays becomes want. *res is o's own handle, or one on room. False
 * without exception if o is nothing of that kind. */
bool create_operand(mlx_array *res, mlx_array_place *room, PyObject *o, struct want want);

/* Whether o has a buffer, or says how to make an array of itself; exchange.c. */
bool exchange_can(PyObject *o);
/* Makes *res an array of such an object. */
bool exchange_import(mlx_array *res, PyObject *o, struct want want);
