/* GGUF files: tensors and typed metadata in one file.
 *
 * Tensors of types that arrays have are loaded as they are (F64 as float32). Q4_0, Q4_1 and Q8_0
 * become MLX's quantized layout: "x.weight" is uint32, "x.scales" and "x.biases" are float16,
 * groups of 32. Other quantizations are written out as float16; those that are not known give an
 * error with their name. Shapes are in MLX's order, the last dimension first in memory.
 *
 * Files of version 2 and 3, little-endian. */
#pragma once

#include "io/io.h"

enum gguf_kind { GGUF_ARRAY, GGUF_STRING, GGUF_STRINGS };

/* Terminated, but may hold zero bytes of its own. */
struct gguf_text {
    char *s;
    size_t n;
};

/* One entry of the metadata. */
struct gguf_value {
    char *key;
    enum gguf_kind kind;
    struct arr *arr;         /* GGUF_ARRAY: a number (0-d) or a list (1-d); host memory */
    struct gguf_text *texts; /* else: one text, or the list */
    size_t n_texts;
};

struct gguf {
    struct io_arrays arrays;
    VEC(struct gguf_value) metadata;
};

/* out is zero on entry. ERR_ARG for nested lists, ERR_RUNTIME else. */
MUST_CHECK enum err gguf_load(struct gguf *out, struct source *src, struct strm *s);
/* F32, F16, I8, I16 and I32 tensors; metadata of any kind that MLX saves. */
MUST_CHECK enum err gguf_save(struct sink *out, const struct gguf *g);
void gguf_fini(struct gguf *g);

/* The entry under key, or NULL. Borrowed. */
struct gguf_value *gguf_find(const struct gguf *g, const char *key);
/* Puts an entry in place of one with the same key. Takes v's content, also on failure. */
MUST_CHECK enum err gguf_set(struct gguf *g, struct gguf_value *v);
void gguf_value_fini(struct gguf_value *v);
/* Appends a copy of n bytes. */
MUST_CHECK enum err gguf_value_add_text(struct gguf_value *v, const char *s, size_t n);

/* The number under key, of any numeric type; ERR_ARG if it is missing or something else. */
MUST_CHECK enum err gguf_get_number(double *out, const struct gguf *g, const char *key);
/* The text under key; ERR_ARG if it is missing or something else. Borrowed. */
MUST_CHECK enum err gguf_get_string(const char **out, const struct gguf *g, const char *key);

/* The value of general.alignment, or the default. ERR_ARG unless it is a power of two. */
MUST_CHECK enum err gguf_alignment(uint64_t *out, const struct gguf *g);

/* ---- the format, shared by reader and writer ---- */

#define GGUF_MAGIC 0x46554747u
#define GGUF_VERSION 3u
#define GGUF_ALIGNMENT 32u
#define GGUF_ALIGNMENT_KEY "general.alignment"
#define GGUF_MAX_DIMS 8 /* of a tensor, in MLX; the format itself stops at 4 */

/* Types of metadata values. */
enum gguf_value_type {
    GGUF_UINT8,
    GGUF_INT8,
    GGUF_UINT16,
    GGUF_INT16,
    GGUF_UINT32,
    GGUF_INT32,
    GGUF_FLOAT32,
    GGUF_BOOL,
    GGUF_TEXT,
    GGUF_LIST,
    GGUF_UINT64,
    GGUF_INT64,
    GGUF_FLOAT64,
    GGUF_VALUE_TYPES
};
