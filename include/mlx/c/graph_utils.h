/* Looking at graphs. Conventions: see mlx.h. */
#ifndef MLX_GRAPH_UTILS_H
#define MLX_GRAPH_UTILS_H

#include <stdio.h>

#include "mlx/c/array.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names for the arrays of a graph: those given with set_name, and generated ones ("A", "B", ...,
 * "AA") for the rest. */
typedef struct mlx_node_namer_ {
    void *ctx;
} mlx_node_namer;

/* A live namer without names, to be freed. The empty handle on failure. */
mlx_node_namer mlx_node_namer_new(void);

/* Releases the namer; the empty handle is allowed. */
int mlx_node_namer_free(mlx_node_namer namer);

/* Gives arr a name, which is copied. The array is known by its identity, not by its value. */
int mlx_node_namer_set_name(mlx_node_namer namer, const mlx_array arr, const char *name);

/* The name of arr; generated now if it has none. *name is borrowed from the namer. */
int mlx_node_namer_get_name(const char **name, mlx_node_namer namer, const mlx_array arr);

/* Writes the graph that leads to outputs in Graphviz's dot language. namer may be empty: all names
 * are then generated. Nothing is evaluated. os stays open. */
int mlx_export_to_dot(FILE *os, const mlx_node_namer namer, const mlx_vector_array outputs);

/* Writes one line per op of the graph that leads to outputs, inputs first: op, names, shapes and
 * dtypes. namer may be empty. Nothing is evaluated. os stays open. */
int mlx_print_graph(FILE *os, const mlx_node_namer namer, const mlx_vector_array outputs);

#ifdef __cplusplus
}
#endif

#endif
