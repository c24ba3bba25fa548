/* Files of arrays: safetensors, npy, npz; gguf.h has the rest.
 *
 * Loading reads headers only. Arrays are Load nodes, whose bytes are read when they are evaluated,
 * on a GPU stream straight into the memory of the GPU; with MLX_IO_MAP=1 a CPU stream uses large
 * ones in place in the mapped file. Members of an npz archive are unpacked and checked at once.
 *
 * Every file may lie. What its header says is checked against the size of the file before anything
 * is read or allocated; errors are ERR_RUNTIME unless noted and name file and tensor. On failure
 * nothing is returned and nothing is kept. */
#pragma once

#include "graph/array.h"
#include "graph/source.h"
#include "io/sink.h"
#include "ops/ops.h"

/* Arrays with names, in the order of the file. */
struct io_array {
    char *name;
    struct arr *arr;
};
struct io_arrays {
    VEC(struct io_array) list;
};
/* Takes the reference, also on failure. */
MUST_CHECK enum err io_arrays_add(struct io_arrays *l, const char *name, struct arr *a);
/* A name that occurs more than once, or NULL; sorts the names. */
const char *io_find_duplicate(const char **names, size_t n);
/* Fails with the text "... holds tensor 'x' twice". */
MUST_CHECK enum err io_arrays_check_unique(const struct io_arrays *l, const char *file);
void io_arrays_fini(struct io_arrays *l);

/* Texts with keys. */
struct io_text {
    char *key, *value;
};
struct io_texts {
    VEC(struct io_text) list;
};
MUST_CHECK enum err io_texts_add(struct io_texts *l, const char *key, const char *value);
void io_texts_fini(struct io_texts *l);

/* ---- formats; out-lists are empty on entry ---- */

/* safetensors: tensors and the texts of __metadata__. F8 types load as uint8; F64 is refused.
 * As the format demands, tensors cover the data without gaps or overlaps. */
MUST_CHECK enum err io_load_safetensors(struct io_arrays *out, struct io_texts *metadata,
                                        struct source *src, struct strm *s);
/* Tensors in the order of their sizes of element, then names, so that all of them are aligned. */
MUST_CHECK enum err io_save_safetensors(struct sink *out, const struct io_arrays *a,
                                        const struct io_texts *metadata);

/* npy, versions 1 to 3, both byte orders, both memory orders. V2 is bfloat16, as MLX writes it. A
 * file that is too short for its shape fails when the array is evaluated. ERR_ARG for dtypes that
 * MLX does not have. */
MUST_CHECK enum err io_load_npy(struct arr **out, struct source *src, struct strm *s);
MUST_CHECK enum err io_save_npy(struct sink *out, struct arr *a);

/* npz: zip archives of npy files, stored or deflated. Names are those of the members without
 * ".npy". */
MUST_CHECK enum err io_load_npz(struct io_arrays *out, struct source *src, struct strm *s);
MUST_CHECK enum err io_save_npz(struct sink *out, const struct io_arrays *a, bool compressed);

/* ---- for the writers ---- */

/* Row-major copies where needed, evaluated together; column-major arrays may stay. out: in.n empty
 * places. */
MUST_CHECK enum err io_make_dense(struct arr **out, struct arrs in, bool allow_col_major);
/* Writes the bytes of a dense, evaluated array. A copy that has to be fetched from the GPU is let
 * go at once, so that saving a model does not hold it twice. */
MUST_CHECK enum err io_write_bytes(struct sink *out, struct arr *a);
