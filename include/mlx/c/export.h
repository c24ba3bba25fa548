/* Functions of arrays in files (.mlxfn), in the format of MLX: what MLX exports can be imported
 * here and the other way round. Conventions: see mlx.h.
 *
 * Exporting calls the function on placeholders of the arguments' shapes and dtypes and writes the
 * graph that it builds, with the arrays that it uses besides. A file holds as many graphs as the
 * function was exported for different arguments: numbers of arguments, dtypes, dimensions, names.
 * The graphs of a shapeless function take arguments whose dimensions have other sizes. Nodes name
 * the device, not the stream, on which they ran; imported they run on its default stream.
 * A call of an imported function with arguments that no graph takes is an error, whose text says
 * which there are. */
#ifndef MLX_EXPORT_H
#define MLX_EXPORT_H

#include "mlx/c/closure.h"
#include "mlx/c/map.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- exporting ---- */

/* A file with one graph. */
int mlx_export_function(const char *file, const mlx_closure fun, const mlx_vector_array args,
                        bool shapeless);
int mlx_export_function_kwargs(const char *file, const mlx_closure_kwargs fun,
                               const mlx_vector_array args, const mlx_map_string_to_array kwargs,
                               bool shapeless);

typedef struct mlx_function_exporter_ {
    void *ctx;
} mlx_function_exporter;

/* A file of graphs, to which every _apply adds one; it is complete after each. */
mlx_function_exporter mlx_function_exporter_new(const char *file, const mlx_closure fun,
                                                bool shapeless);
int mlx_function_exporter_free(mlx_function_exporter xfunc);
int mlx_function_exporter_apply(const mlx_function_exporter xfunc, const mlx_vector_array args);
/* The function does not see named arguments, but those who call it later must give them. */
int mlx_function_exporter_apply_kwargs(const mlx_function_exporter xfunc,
                                       const mlx_vector_array args,
                                       const mlx_map_string_to_array kwargs);

/* ---- importing ---- */

typedef struct mlx_imported_function_ {
    void *ctx;
} mlx_imported_function;

mlx_imported_function mlx_imported_function_new(const char *file);
int mlx_imported_function_free(mlx_imported_function xfunc);
int mlx_imported_function_apply(mlx_vector_array *res, const mlx_imported_function xfunc,
                                const mlx_vector_array args);
int mlx_imported_function_apply_kwargs(mlx_vector_array *res, const mlx_imported_function xfunc,
                                       const mlx_vector_array args,
                                       const mlx_map_string_to_array kwargs);

#ifdef __cplusplus
}
#endif

#endif
