/* The rows of mlxfn.def, for reader and writer. */
#pragma once

#include "graph/op.h"
#include "io/mlxfn.h"

/* ---- what rows say ---- */

/* Parameters that no op has. */
struct no_params {
    int32_t none;
};

struct search_params {
    int32_t is_right;
};

/* Room for the parameters of any row. */
union prim_params {
    struct no_params no;
    struct search_params search;
#define WORDS(...)
#define PARAMS(name, fields) struct name##_params name;
#include "graph/op_params.def"
};

enum prim_kind {
    PRIM_END,
    PRIM_NUMBER, /* an int of `width` bytes */
    PRIM_FLOAT,  /* likewise */
    PRIM_BOOL,
    PRIM_DTYPE,
    PRIM_ENUM,
    PRIM_EITHER,
    PRIM_LETTER,
    PRIM_LIST,
    PRIM_IS,
    PRIM_IS_BOOL,
    PRIM_ANY_BOOL,
};

struct prim_field {
    uint8_t kind;
    uint8_t width;                /* of a number, or of those of a list */
    uint8_t above;                /* of a list: zeros behind each of its numbers in the file */
    uint16_t at;                  /* in the params */
    uint16_t count, step;         /* of a list: where its length is, and from entry to entry */
    int32_t value;                /* of a constant; of a letter or one of two: where it is set */
    char unset;                   /* of these: what it is else */
    const struct op_words *words; /* of an enum */
};

struct prim_call;
struct prim_inputs;
struct bytes_in;
typedef VEC(char) bytes_out;

struct prim {
    const char *name;
    uint16_t op; /* enum op_id */
    uint16_t params_size;
    const struct prim_field *(*fields)(void); /* up to PRIM_END */
    enum err (*make)(struct prim_call *c);
    enum err (*adapt)(struct prim_inputs *in, const struct node *n);
    /* Behind the fields, of nodes with a state; NULL: they have none. */
    enum err (*read_state)(struct op_state **out, struct bytes_in *b);
    enum err (*write_state)(bytes_out *b, const struct op_state *s);
};

extern const struct prim prim_table[];
extern const size_t prim_count;

/* ---- reading ---- */

/* A file from front to back; positions may be set back. */
struct bytes_in {
    struct source *src;
    uint64_t at;
    uint64_t have; /* where what is in buf begins */
    size_t n;
    char buf[16384];
};
MUST_CHECK enum err bytes_get(struct bytes_in *b, void *out, size_t n);
/* A length of what takes at least `each` bytes in the file. */
MUST_CHECK enum err bytes_get_count(struct bytes_in *b, size_t *out, size_t each);
MUST_CHECK enum err bytes_get_bool(struct bytes_in *b, bool *out);
MUST_CHECK enum err bytes_get_dtype(struct bytes_in *b, enum dtype *out);
/* ERR_RUNTIME: "[import_function] FILE ..." */
MUST_CHECK enum err bytes_fail(const struct bytes_in *b, const char *what);

/* The row of that name whose constants are what comes next, and its parameters. */
MUST_CHECK enum err prim_read(const struct prim **out, union prim_params *params,
                              struct bytes_in *b, const char *name);

/* An application of a row; params are the call's own. make writes a reference to each result, of
 * which there are n_made. */
struct prim_call {
    enum op_id op;
    union prim_params *params;
    struct op_state *state; /* of rows that have one, borrowed */
    struct arr *const *in;
    size_t n_in;
    const struct shp *const *was; /* sizes that the inputs had; NULL: they have them */
    const struct out_desc *made;  /* what the file says */
    size_t n_made;
    struct strm *strm;
    struct arr **result;
};
#define MAKE(name) enum err make_##name(struct prim_call *c)
MAKE(node);
MAKE(arange);
MAKE(broadcast);
MAKE(broadcast_axes);
MAKE(depends);
MAKE(elements);
MAKE(floor_divide);
MAKE(kernel);
MAKE(norm);
MAKE(quantize);
MAKE(reshape);
MAKE(rope);
MAKE(scan);
MAKE(sdpa);
MAKE(search_sorted);
MAKE(sized);
MAKE(slice);
MAKE(slice_update);
MAKE(unflatten);

/* Sizes among the params of inputs that have others than in the file (was). ERR_ARG where they
 * cannot be known. */
MUST_CHECK enum err prim_follow(struct prim_call *c);

/* ---- writing ---- */

MUST_CHECK enum err bytes_put(bytes_out *b, const void *v, size_t n);

/* States: mlxfn_kernel.c. */
MUST_CHECK enum err read_kernel(struct op_state **out, struct bytes_in *b);
MUST_CHECK enum err write_kernel(bytes_out *b, const struct op_state *s);

/* The fields of a node's state, of which there are at most MLXFN_ARGS. */
size_t prim_args(struct mlxfn_arg args[MLXFN_ARGS], const struct prim *p, const void *params);
MUST_CHECK enum err bytes_put_dtype(bytes_out *b, enum dtype t);

/* The row that a node is written as; NULL if there is none. */
const struct prim *prim_of(const struct node *n);
MUST_CHECK enum err prim_write(bytes_out *b, const struct prim *p, const void *params);

/* The inputs of a node as the file has them: adapt writes references to at most PRIM_ADAPTED. */
#define PRIM_ADAPTED 3
struct prim_inputs {
    struct arr *v[PRIM_ADAPTED]; /* owned */
    size_t n;
};
#define ADAPT(name) enum err adapt_##name(struct prim_inputs *in, const struct node *n)
ADAPT(elements);
ADAPT(norm);
ADAPT(rope);
#define adapt_none NULL
