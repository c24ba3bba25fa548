/* Functions in files, in the format of MLX's export (.mlxfn).
 *
 * A file holds traces of one function, one for each signature, and the constants that they share. A
 * trace is a list of nodes on numbered values: first the inputs, then constants and what nodes
 * make, in the order of the file. The numbers of a file's streams say no more than a device; nodes
 * run on the default streams of the thread that applies the function.
 *
 * Files may lie. Sizes are checked against what is left of the file before memory is taken for
 * them, every node goes through the infer rule of its op, and what it makes must be what the file
 * says. Constants are read when they are needed. */
#pragma once

#include "graph/source.h"
#include "io/io.h"
#include "io/sink.h"

/* ---- reading ---- */

struct mlxfn_node;

struct mlxfn_trace {
    VEC(char *) names;       /* of the last inputs, sorted */
    VEC(struct out_desc) in; /* all inputs */
    VEC(uint32_t) out;       /* values */
    VEC(struct mlxfn_node) node;
    VEC(uint32_t) arg;         /* values that nodes read, node by node */
    VEC(struct out_desc) made; /* outputs of nodes, likewise */
    VEC(struct arr *) value;   /* owned constants; NULL: an input, or what a node makes */
};

struct mlxfn {
    bool shapeless; /* inputs may have other sizes than in the trace */
    VEC(struct mlxfn_trace) trace;
    struct arena params; /* of all nodes */
};

/* ERR_RUNTIME for what is no such file, ERR_ARG for a primitive that is not known or does not fit
 * its inputs. */
MUST_CHECK enum err mlxfn_read(struct mlxfn **out, struct source *src);
void mlxfn_destroy(struct mlxfn **f);

/* Nodes of the trace on inputs that have the dtypes and numbers of dimensions of its own, and, but
 * for a shapeless function, their sizes; out has room for what the trace gives. */
MUST_CHECK enum err mlxfn_apply(struct arr **out, const struct mlxfn *f,
                                const struct mlxfn_trace *t, struct arrs in);

/* ---- writing ---- */

struct mlxfn_writer;

/* What a file begins with. metadata: any text, for whoever reads the file; may be NULL. */
struct mlxfn_header {
    bool shapeless;
    const char *metadata;
};
/* Opens the file and writes its beginning. */
MUST_CHECK enum err mlxfn_writer_new(struct mlxfn_writer **out, const char *path,
                                     const struct mlxfn_header *h);
/* A graph on placeholders. The file is complete, and has its name, after each. After a failure to
 * write it takes no more. ERR_ARG for nodes that the format does not know. */
struct mlxfn_graph {
    struct arrs in; /* placeholders */
    struct arrs out;
    struct arrs captured; /* what the placeholders stand for: not to be in the graph (ERR_ARG) */
    const char *const *names; /* of the last inputs, sorted */
    size_t n_names;
};
MUST_CHECK enum err mlxfn_write(struct mlxfn_writer *w, const struct mlxfn_graph *g);
void mlxfn_writer_destroy(struct mlxfn_writer **w);
