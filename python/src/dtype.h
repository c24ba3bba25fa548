/* Dtypes, their categories, and what a number of Python means beside an array of a dtype. */
#pragma once

#include "core.h"

struct dtype_object {
    PyObject_HEAD mlx_dtype value;
};

extern PyTypeObject *dtype_type;

enum { DTYPE_COUNT = MLX_COMPLEX64 + 1 };

static inline bool is_dtype(PyObject *o)
{
    return is_of(o, dtype_type);
}

static inline mlx_dtype dtype_of(PyObject *o)
{
    return ((struct dtype_object *)o)->value;
}

/* The object of a dtype, a new reference to what lives for the process. */
PyObject *dtype_wrap(mlx_dtype t);

/* "float32" */
const char *dtype_name(mlx_dtype t);

static inline bool dtype_is_float(mlx_dtype t)
{
    return t == MLX_FLOAT16 || t == MLX_FLOAT32 || t == MLX_FLOAT64 || t == MLX_BFLOAT16;
}

static inline bool dtype_is_integer(mlx_dtype t)
{
    return t >= MLX_UINT8 && t <= MLX_INT64;
}

/* The dtype that both convert to without loss, as ops do. */
mlx_dtype dtype_promote(mlx_dtype a, mlx_dtype b);

bool dtype_init(PyObject *m);

/* ---- dtype_query.c: categories and limits ---- */

/* Adds to m an Enum of Python with these members, ended by NULL, whose values count from 0, and the
 * members themselves, which objects[] keeps. Returns the class. */
PyObject *enum_add(PyObject *m, const char *name, const char *const *members, PyObject **objects);

bool dtype_query_init(PyObject *m);
