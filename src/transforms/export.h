/* Functions in files (io/mlxfn.h): traced and written, read and applied. Errors are MLX's. */
#pragma once

#include "io/mlxfn.h"
#include "transforms/fun.h"

struct imported;

MUST_CHECK enum err imported_new(struct imported **out, const char *path);
/* The same from a source, which it keeps as long as it needs it. */
MUST_CHECK enum err imported_read(struct imported **out, struct source *src);
void imported_destroy(struct imported **f);
/* The text of the file, borrowed. */
const char *imported_metadata(const struct imported *f);
/* The trace whose inputs are like these, on them; named ones are sorted, and may be NULL. ERR_ARG
 * if there is none. Thread-safety: safe. */
MUST_CHECK enum err imported_call(const struct imported *f, struct arrs in,
                                  const struct io_arrays *named, struct outs *out);

struct exporter;

/* fun: counted; either a function that takes named arguments, too, or one that does not see them.
 * shapeless: the file's function takes inputs of other sizes than it was traced on. */
struct exporter_params {
    const char *path;
    struct fun *fun;
    struct fun_named *named;
    bool shapeless;
    const char *metadata;                  /* of the file; may be NULL */
    const struct mlxfn_listener *listener; /* instead of a file */
};
MUST_CHECK enum err exporter_new(struct exporter **out, const struct exporter_params *p);
void exporter_destroy(struct exporter **x);
/* Further calls fail with ERR_RUNTIME. */
void exporter_close(struct exporter *x);
/* Adds a trace of the function on inputs like these. ERR_RUNTIME for a signature that the file
 * has. */
MUST_CHECK enum err exporter_call(struct exporter *x, struct arrs in,
                                  const struct io_arrays *named);
