/* Streams: queues of work on a device. Conventions: see mlx.h.
 *
 * Ops of one stream run in order, ops of different streams may overlap; the library inserts the
 * waits that data dependencies need. Freeing a handle does not end a stream; the end of the thread
 * that made it does, and its stream may then become that of a new thread. Thread-safety: ops may be
 * built for any stream on any thread. Whoever evaluates them runs those of other threads' streams
 * on its own default stream of the same device. mlx_synchronize of another thread's stream is an
 * error. */
#ifndef MLX_STREAM_H
#define MLX_STREAM_H

#include <stdbool.h>

#include "mlx/c/device.h"
#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handle on a stream. ctx == NULL is the empty handle; as the last argument of an op it means the
 * default stream of the default device. */
typedef struct mlx_stream_ {
    void *ctx;
} mlx_stream;

/* The empty handle. Cannot fail. */
mlx_stream mlx_stream_new(void);

/* A new stream on dev. The empty handle on failure. */
mlx_stream mlx_stream_new_device(mlx_device dev);

/* Makes *stream name the same stream as src. */
int mlx_stream_set(mlx_stream *stream, const mlx_stream src);

/* Releases the handle; the empty handle is allowed. */
int mlx_stream_free(mlx_stream stream);

/* A text such as "Stream(Device(gpu, 0), 1)". */
int mlx_stream_tostring(mlx_string *str, mlx_stream stream);

/* Whether both handles name the same stream. False if one of them is empty. */
bool mlx_stream_equal(mlx_stream lhs, mlx_stream rhs);

/* The device of the stream. */
int mlx_stream_get_device(mlx_device *dev, mlx_stream stream);

/* The number of the stream, unique in the process. */
int mlx_stream_get_index(int *index, mlx_stream stream);

/* Waits until everything queued on the stream has finished, and reports its errors. */
int mlx_synchronize(mlx_stream stream);

/* The calling thread's default stream on dev. */
int mlx_get_default_stream(mlx_stream *stream, mlx_device dev);

/* Makes stream the calling thread's default on its device. */
int mlx_set_default_stream(mlx_stream stream);

/* A handle on the calling thread's default stream of the first CPU or GPU. The empty handle where
 * there is no such device, which is an error. */
mlx_stream mlx_default_cpu_stream_new(void);
mlx_stream mlx_default_gpu_stream_new(void);

#ifdef __cplusplus
}
#endif

#endif
