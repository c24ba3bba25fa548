/* Tables of the library as dicts of Python, and the other way round. */
#pragma once

#include "array.h"

/* A dict from str to arrays. */
PyObject *table_arrays(mlx_map_string_to_array map);
PyObject *table_texts(mlx_map_string_to_string map);

/* New tables of a dict. who: "save_safetensors". */
bool table_of_arrays(mlx_map_string_to_array *res, PyObject *dict, const char *who);
bool table_of_texts(mlx_map_string_to_string *res, PyObject *dict, const char *who);

/* Appends the arrays of a table to a list. */
bool table_collect(mlx_vector_array vec, mlx_map_string_to_array map);
