/* Readers and writers of the caller, and the content of a GGUF file. Conventions: see mlx.h. */
#ifndef MLX_IO_TYPES_H
#define MLX_IO_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx/c/array.h"
#include "mlx/c/string.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- readers and writers ---- */

/* Something to read from. ctx == NULL is the empty handle. */
typedef struct mlx_io_reader_ {
    void *ctx;
} mlx_io_reader;

/* Something to write to. ctx == NULL is the empty handle. */
typedef struct mlx_io_writer_ {
    void *ctx;
} mlx_io_writer;

/* What a reader or writer can do, on the caller's descriptor. A reader needs seek, tell, and read
 * or read_at_offset; a writer needs write; the rest may be NULL.
 *
 * is_open, good: false is a failure, asked before the first and after every transfer.
 * seek: whence is SEEK_SET, SEEK_CUR or SEEK_END of stdio.h.
 * read, write: at the current position, all n bytes.
 * read_at_offset: n bytes at off, without regard to the position.
 * label: what errors call it.
 * free: called with the descriptor once, when nothing needs it any more.
 *
 * Calls for one reader are made one at a time, on the thread that loads or evaluates. */
typedef struct mlx_io_vtable_ {
    bool (*is_open)(void *);
    bool (*good)(void *);
    size_t (*tell)(void *);
    void (*seek)(void *, int64_t off, int whence);
    void (*read)(void *, char *data, size_t n);
    void (*read_at_offset)(void *, char *data, size_t n, size_t off);
    void (*write)(void *, const char *data, size_t n);
    const char *(*label)(void *);
    void (*free)(void *);
} mlx_io_vtable;

/* A reader on desc. The empty handle on failure, and then desc stays with the caller. */
mlx_io_reader mlx_io_reader_new(void *desc, mlx_io_vtable vtable);

/* The descriptor it was made with. */
int mlx_io_reader_descriptor(void **desc_, mlx_io_reader io);

/* Its label. */
int mlx_io_reader_tostring(mlx_string *str_, mlx_io_reader io);

/* Releases the handle. Arrays that were loaded from the reader and are not evaluated yet keep it:
 * free of the vtable is called when the last of them is done. */
int mlx_io_reader_free(mlx_io_reader io);

/* A writer on desc. The empty handle on failure, and then desc stays with the caller. */
mlx_io_writer mlx_io_writer_new(void *desc, mlx_io_vtable vtable);

/* The descriptor it was made with. */
int mlx_io_writer_descriptor(void **desc_, mlx_io_writer io);

/* Its label. */
int mlx_io_writer_tostring(mlx_string *str_, mlx_io_writer io);

/* Releases the handle and calls free of the vtable. */
int mlx_io_writer_free(mlx_io_writer io);

/* ---- GGUF ---- */

/* Tensors and metadata of a GGUF file. ctx == NULL is the empty handle. Getters give 2 where there
 * is no such key and 3 where its value is of another kind; neither is reported as an error, and the
 * result is as before. */
typedef struct mlx_io_gguf_ {
    void *ctx;
} mlx_io_gguf;

/* Live, without content. The empty handle on failure. */
mlx_io_gguf mlx_io_gguf_new(void);

/* Releases it; the empty handle is allowed. */
int mlx_io_gguf_free(mlx_io_gguf io);

/* The names of all tensors, in the order of the file. */
int mlx_io_gguf_get_keys(mlx_vector_string *keys, mlx_io_gguf io);

/* A new reference to the tensor under key. */
int mlx_io_gguf_get_array(mlx_array *arr, mlx_io_gguf io, const char *key);

/* Metadata: a number (0-d) or a list of numbers (1-d). */
int mlx_io_gguf_get_metadata_array(mlx_array *arr, mlx_io_gguf io, const char *key);

/* Metadata: a text. */
int mlx_io_gguf_get_metadata_string(mlx_string *str, mlx_io_gguf io, const char *key);

/* Metadata: a list of texts. */
int mlx_io_gguf_get_metadata_vector_string(mlx_vector_string *vstr, mlx_io_gguf io,
                                           const char *key);

/* Whether the metadata under key are of that kind; false and 2 where there are none. */
int mlx_io_gguf_has_metadata_array(bool *flag, mlx_io_gguf io, const char *key);
int mlx_io_gguf_has_metadata_string(bool *flag, mlx_io_gguf io, const char *key);
int mlx_io_gguf_has_metadata_vector_string(bool *flag, mlx_io_gguf io, const char *key);

/* Put a tensor or an entry of the metadata under key, in place of what was there. */
int mlx_io_gguf_set_array(mlx_io_gguf io, const char *key, const mlx_array arr);
int mlx_io_gguf_set_metadata_array(mlx_io_gguf io, const char *key, const mlx_array marr);
int mlx_io_gguf_set_metadata_string(mlx_io_gguf io, const char *key, const char *mstr);
int mlx_io_gguf_set_metadata_vector_string(mlx_io_gguf io, const char *key,
                                           const mlx_vector_string mvstr);

#ifdef __cplusplus
}
#endif

#endif
