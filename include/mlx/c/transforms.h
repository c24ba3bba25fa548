/* Evaluation of graphs. Conventions: see mlx.h. */
#ifndef MLX_TRANSFORMS_H
#define MLX_TRANSFORMS_H

#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes every array of outputs and all that they depend on, and returns when the results are
 * there. Arrays that are evaluated already cost nothing. An error of an op that ran earlier on one
 * of the streams, asynchronously, is reported here too. Thread-safety: safe. Threads may evaluate
 * graphs that share arrays: each is computed once, by whoever comes first, and the others wait for
 * as long as that takes. */
int mlx_eval(const mlx_vector_array outputs);

/* Like mlx_eval, but returns as soon as the work is handed to the streams. Reading one of the
 * arrays, or mlx_synchronize, waits for it. */
int mlx_async_eval(const mlx_vector_array outputs);

#ifdef __cplusplus
}
#endif

#endif
