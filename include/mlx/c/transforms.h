/* Evaluation and transformation of functions. Conventions: see mlx.h.
 *
 * A transformation calls the function, which builds a graph as it always does, and makes another
 * graph of it. Nothing is computed before the results are evaluated. A function that evaluates an
 * array of the graph is fine for gradients, and an error where the function is only traced
 * (mlx_detail_vmap_trace, compile). Transformations nest: gradients of gradients, of batches, and
 * so on. Thread-safety: safe; a function is transformed on the thread that calls it. */
#ifndef MLX_TRANSFORMS_H
#define MLX_TRANSFORMS_H

#include "mlx/c/closure.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- evaluation ---- */

/* Computes every array of outputs and all that they depend on, and returns when the results are
 * there. Arrays that are evaluated already cost nothing. An error of an op that ran earlier on one
 * of the streams, asynchronously, is reported here too. Thread-safety: safe. Threads may evaluate
 * graphs that share arrays: each is computed once, by whoever comes first, and the others wait for
 * as long as that takes. */
int mlx_eval(const mlx_vector_array outputs);

/* Like mlx_eval, but returns as soon as the work is handed to the streams. Reading one of the
 * arrays, or mlx_synchronize, waits for it. */
int mlx_async_eval(const mlx_vector_array outputs);

/* ---- gradients ---- */

/* res_0: what fun gives for primals; res_1: the cotangents of all primals, from those of the
 * outputs. An output of mlx_stop_gradient has no cotangent. What does not depend on a primal has
 * zeros. */
int mlx_vjp(mlx_vector_array *res_0, mlx_vector_array *res_1, const mlx_closure fun,
            const mlx_vector_array primals, const mlx_vector_array cotangents);

/* res_0: what fun gives for primals; res_1: the tangents of the outputs, from those of all primals.
 */
int mlx_jvp(mlx_vector_array *res_0, mlx_vector_array *res_1, const mlx_closure fun,
            const mlx_vector_array primals, const mlx_vector_array tangents);

/* A function that gives what fun gives, and the gradients of its first result, a scalar, with
 * respect to the arguments whose numbers are in argnums (negative: counted from the end). */
int mlx_value_and_grad(mlx_closure_value_and_grad *res, const mlx_closure fun, const int *argnums,
                       size_t argnums_num);

/* ---- functions with rules of their own ---- */

/* fun, of whose graph gradients keep nothing but the inputs: it is computed again for them. */
int mlx_checkpoint(mlx_closure *res, const mlx_closure fun);

/* fun, with the given rules in the place of those that follow from its graph; each may be empty. */
int mlx_custom_function(mlx_closure *res, const mlx_closure fun, const mlx_closure_custom fun_vjp,
                        const mlx_closure_custom_jvp fun_jvp,
                        const mlx_closure_custom_vmap fun_vmap);

/* The same with the rule for cotangents alone. */
int mlx_custom_vjp(mlx_closure *res, const mlx_closure fun, const mlx_closure_custom fun_vjp);

#ifdef __cplusplus
}
#endif

#endif
