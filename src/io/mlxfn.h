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
    char *metadata; /* a text of whoever exported it, may be "" */
    VEC(struct mlxfn_trace) trace;
    struct arena params; /* of all nodes */
};

/* ERR_RUNTIME for what is no such file, ERR_ARG for a primitive that is not known or does not fit
 * its inputs. */
MUST_CHECK enum err mlxfn_read(struct mlxfn **out, struct source *src);
void mlxfn_destroy(struct mlxfn **f);

/* Nodes of the trace on inputs that have the dtypes and numbers of dimensions of its own, and, but
 * for a shapeless function, their sizes; out has room for what the trace gives. ERR_ARG where the
 * file does not say what becomes of other sizes (mlxfn_sizes.c). */
MUST_CHECK enum err mlxfn_apply(struct arr **out, const struct mlxfn *f,
                                const struct mlxfn_trace *t, struct arrs in);

/* ---- telling: what would be written, to whoever listens ---- */

enum mlxfn_kind {
    MLXFN_INPUTS,    /* in: all inputs */
    MLXFN_KEYWORDS,  /* in: the named ones, names: theirs */
    MLXFN_OUTPUTS,   /* in: what the function gives */
    MLXFN_CONSTANTS, /* in: arrays that it reads besides */
    MLXFN_PRIMITIVE, /* name, in, out, args: a node, each behind those that it reads */
};

enum mlxfn_arg_kind { ARG_BOOL, ARG_INT, ARG_FLOAT, ARG_DTYPE, ARG_TEXT, ARG_INTS };
enum { MLXFN_ARGS = 16, MLXFN_ARG_INTS = 64 };

/* A field of a primitive's state. */
struct mlxfn_arg {
    enum mlxfn_arg_kind kind;
    int64_t number; /* of a bool, an int, a dtype */
    double real;
    char text[2];
    size_t n;
    int64_t ints[MLXFN_ARG_INTS];
};

struct mlxfn_event {
    enum mlxfn_kind kind;
    struct arrs in, out;
    const char *const *names;
    const char *name;
    const struct mlxfn_arg *args;
    size_t n_args;
};

struct mlxfn_listener {
    enum err (*tell)(void *data, const struct mlxfn_event *e);
    void *data;
};

struct mlxfn_graph;
MUST_CHECK enum err mlxfn_tell(const struct mlxfn_listener *l, const struct mlxfn_graph *g);

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
/* mlxfn_write fails from then on with ERR_RUNTIME. */
void mlxfn_writer_close(struct mlxfn_writer *w);
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
