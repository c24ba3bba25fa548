/* mlx-vulkan: MLX arrays in C, source compatible with mlx-c. This header includes all others.
 *
 * Conventions of every function, unless its comment says otherwise
 *
 * Results. Functions that can fail return int: 0 is success, 1 is failure, reported first to the
 * error handler (error.h) with a text that says why. 2 means "nothing there" (an absent key, the
 * end of an iteration) and is no error. Constructors (*_new*) return the handle itself, empty on
 * failure; accessors return their value, 0 or NULL on failure. No argument crashes the library:
 * a NULL pointer or an empty handle where a value is needed is a failure.
 *
 * Handles are structs with a pointer ctx, passed by value; ctx == NULL is the empty handle. What a
 * constructor returned, or an out-parameter turned from empty to live, is freed exactly once with
 * the matching *_free. Freeing an empty handle is allowed.
 *
 * Out-parameters come first (res, or res_0, res_1, ...) and must be initialised: empty, or live, in
 * which case the old content is released and the handle is reused. A handle may be input and
 * output of the same call: mlx_add(&a, a, b, s). After a failure an out-parameter is as before.
 *
 * Inputs are borrowed for the call and never changed. Arguments that may be absent are marked
 * "may be empty" or "may be NULL".
 *
 * Streams. The last argument of an op is the stream it will run on; empty means the default stream
 * of the default device.
 *
 * Numbers. Subnormal float32 numbers keep their values on the CPU; a GPU whose arithmetic takes
 * them for zeros (llvmpipe of Mesa 26 is one, of Mesa 25 not) does so in every op that computes
 * with them, and may do so in comparisons. Copies, abs, negative, sign, ceil, floor and remainders
 * see them as they are.
 *
 * Thread-safety: handles may be used by several threads, as long as none writes to the same handle
 * meanwhile. Arrays that are evaluated are shared freely. A stream belongs to the thread that made
 * it, and so does the evaluation of a graph built on it; each thread has its own default streams.
 */
#ifndef MLX_MLX_H
#define MLX_MLX_H

#include "mlx/c/array.h"
#include "mlx/c/closure.h"
#include "mlx/c/compile.h"
#include "mlx/c/cuda.h"
#include "mlx/c/device.h"
#include "mlx/c/distributed.h"
#include "mlx/c/distributed_group.h"
#include "mlx/c/error.h"
#include "mlx/c/export.h"
#include "mlx/c/fast.h"
#include "mlx/c/fft.h"
#include "mlx/c/graph_utils.h"
#include "mlx/c/half.h"
#include "mlx/c/io.h"
#include "mlx/c/io_types.h"
#include "mlx/c/linalg.h"
#include "mlx/c/map.h"
#include "mlx/c/memory.h"
#include "mlx/c/metal.h"
#include "mlx/c/ops.h"
#include "mlx/c/optional.h"
#include "mlx/c/random.h"
#include "mlx/c/stream.h"
#include "mlx/c/string.h"
#include "mlx/c/transforms.h"
#include "mlx/c/transforms_impl.h"
#include "mlx/c/vector.h"
#include "mlx/c/version.h"

#endif
