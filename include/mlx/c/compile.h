/* Functions whose graphs are built once. Conventions: see mlx.h.
 *
 * A compiled function calls the function it is made of only to trace it: on placeholders, for every
 * new combination of shapes and dtypes of its arguments. What the function built is simplified
 * (equal nodes become one, what nothing reads goes) and kept; further calls put copies of it into
 * the caller's graph, which costs a part of building it. The results are lazy arrays as those of
 * the function itself, with the same bits. So a function should do the same each time: it may read
 * arrays from outside, which are constants of what was traced, but it can neither evaluate what
 * depends on its arguments nor see later changes of anything else. What changes from call to call
 * goes in as arguments and comes out as results.
 *
 * Other transformations take the function as it is: gradients, batches and compiled functions of a
 * compiled one are made of the graph of the function itself, and what is compiled last counts.
 * Thread-safety: safe; every thread traces for itself, as its default streams are its own. */
#ifndef MLX_COMPILE_H
#define MLX_COMPILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx/c/closure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NO_SIMPLIFY traces, and keeps the graph as it was built. NO_FUSE is like ENABLED: elementwise
 * nodes are fused when a graph is evaluated, compiled or not, with the same bits
 * (MLX_VK_ENABLE_FUSE_ELEMENTWISE turns it off). */
typedef enum mlx_compile_mode_ {
    MLX_COMPILE_MODE_DISABLED,
    MLX_COMPILE_MODE_NO_SIMPLIFY,
    MLX_COMPILE_MODE_NO_FUSE,
    MLX_COMPILE_MODE_ENABLED
} mlx_compile_mode;

/* shapeless: arguments are expected in ever new sizes. Each traces the function, as without it, and
 * what was traced for the last few is kept; nothing that follows from sizes is out of date, where
 * real MLX goes on with the first trace. While compilation is disabled, *res is fun itself. */
int mlx_compile(mlx_closure *res, const mlx_closure fun, bool shapeless);

/* The same for a function that the caller knows by a number: what was traced for fun_id and these
 * constants is used for every function with the same ones, until it is erased. */
int mlx_detail_compile(mlx_closure *res, const mlx_closure fun, uintptr_t fun_id, bool shapeless,
                       const uint64_t *constants, size_t constants_num);

/* Forgets what was traced: everything, or for one number. */
int mlx_detail_compile_clear_cache(void);
int mlx_detail_compile_erase(uintptr_t fun_id);

/* Whether functions are compiled from now on. Those that were compiled stay as they are.
 * Compilation begins enabled, disabled if the environment has MLX_DISABLE_COMPILE. */
int mlx_disable_compile(void);
int mlx_enable_compile(void);
int mlx_set_compile_mode(mlx_compile_mode mode);

#ifdef __cplusplus
}
#endif

#endif
