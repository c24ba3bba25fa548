/* Files of arrays: npy, safetensors, GGUF. Conventions: see mlx.h; npz is in ext.h.
 *
 * Loading reads headers only. The bytes of an array are read when it is evaluated, on the stream
 * given: on a GPU stream straight into the memory of the GPU. Until then the file is kept open; if
 * another program truncates it meanwhile, the evaluation fails. With MLX_IO_MAP=1 large arrays on a
 * CPU stream use the mapped file in place; truncating it while such an array is alive can end the
 * process.
 *
 * Saving evaluates the arrays. A file is written under another name and takes its own when it is
 * complete, so that a failure leaves an older file as it was; the extension of the format is added
 * to names without it. */
#ifndef MLX_IO_H
#define MLX_IO_H

#include "mlx/c/array.h"
#include "mlx/c/io_types.h"
#include "mlx/c/map.h"
#include "mlx/c/stream.h"
#include "mlx/c/string.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One array in NumPy's format, versions 1 to 3, of either byte order and memory order. Data that
 * are too short for the shape are an error of the evaluation. */
int mlx_load_reader(mlx_array *res, mlx_io_reader in_stream, const mlx_stream s);
int mlx_load(mlx_array *res, const char *file, const mlx_stream s);

/* A GGUF file. Q4_0, Q4_1 and Q8_0 tensors become quantized weights with scales and biases in
 * groups of 32 ("x.weight", "x.scales", "x.biases"); other quantized types become float16. */
int mlx_load_gguf(mlx_io_gguf *gguf, const char *file, const mlx_stream s);

/* A safetensors file: its tensors, and the texts of its metadata. */
int mlx_load_safetensors_reader(mlx_map_string_to_array *res_0, mlx_map_string_to_string *res_1,
                                mlx_io_reader in_stream, const mlx_stream s);
int mlx_load_safetensors(mlx_map_string_to_array *res_0, mlx_map_string_to_string *res_1,
                         const char *file, const mlx_stream s);

int mlx_save_writer(mlx_io_writer out_stream, const mlx_array a);
int mlx_save(const char *file, const mlx_array a);

/* Tensors of float32, float16, int8, int16 and int32. */
int mlx_save_gguf(const char *file, mlx_io_gguf gguf);

/* Tensors of every dtype but float64. */
int mlx_save_safetensors_writer(mlx_io_writer in_stream, const mlx_map_string_to_array param,
                                const mlx_map_string_to_string metadata);
int mlx_save_safetensors(const char *file, const mlx_map_string_to_array param,
                         const mlx_map_string_to_string metadata);

#ifdef __cplusplus
}
#endif

#endif
