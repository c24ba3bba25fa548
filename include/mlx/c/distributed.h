/* Arrays of several processes (distributed_group.h). Conventions: see mlx.h.
 *
 * group may be empty: then it is that of all processes. In a group of one the result is x, and
 * sending and receiving are errors.
 *
 * These are ops like all others: they happen when their result is evaluated, also that of a send.
 * They run on the stream S or s if that is one of the CPU, else on the default stream of the CPU;
 * arrays of a GPU come and go by themselves. All processes of a group evaluate the same of them in
 * the same order; of several in one graph the graph decides, which is built in the same way
 * everywhere, and mlx_depends adds order where it says too little. Before a collective the
 * processes compare what they are about to do: another op, dtype or size is an error in all of
 * them, and so is a process that cannot take part because something failed there. What is received
 * in another dtype or size than expected is an error of the receiver.
 *
 * Every dtype can be used; of bool the sum and the maximum are "or", the minimum is "and". Sums of
 * half precision are rounded after each process's part.
 *
 * Gradients are MLX's: that of all_sum, all_max and all_min is the cotangent as it is, that of
 * all_gather this process's part of it; the others have none. */
#ifndef MLX_DISTRIBUTED_H
#define MLX_DISTRIBUTED_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/distributed_group.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arrays of all processes, joined along the first axis; numbers become a vector. */
int mlx_distributed_all_gather(mlx_array *res, const mlx_array x, const mlx_distributed_group group,
                               const mlx_stream S);

/* The sum, maximum or minimum of the arrays of all processes, element by element. */
int mlx_distributed_all_max(mlx_array *res, const mlx_array x, const mlx_distributed_group group,
                            const mlx_stream s);
int mlx_distributed_all_min(mlx_array *res, const mlx_array x, const mlx_distributed_group group,
                            const mlx_stream s);
int mlx_distributed_all_sum(mlx_array *res, const mlx_array x, const mlx_distributed_group group,
                            const mlx_stream s);

/* What process src sends. It must have this shape's size and this dtype. */
int mlx_distributed_recv(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
                         int src, const mlx_distributed_group group, const mlx_stream s);

/* The same, in shape and dtype of x. */
int mlx_distributed_recv_like(mlx_array *res, const mlx_array x, int src,
                              const mlx_distributed_group group, const mlx_stream s);

/* Sends x to process dst; the result is x. */
int mlx_distributed_send(mlx_array *res, const mlx_array x, int dst,
                         const mlx_distributed_group group, const mlx_stream s);

/* The sum of the arrays of all processes, of which each has a part: the first axis is cut into as
 * many as there are processes. */
int mlx_distributed_sum_scatter(mlx_array *res, const mlx_array x,
                                const mlx_distributed_group group, const mlx_stream s);

#ifdef __cplusplus
}
#endif

#endif
