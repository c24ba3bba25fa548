/* Arguments of the functions of the tables: one parser for all of them.
 *
 * A function of python/functions becomes a C function that opens a frame, which binds and converts
 * all arguments, calls the library with the converted values, and closes the frame. */
#pragma once

#include "array.h"
#include "create.h"

enum {
    MAX_PARAMS = 16,
    FRAME_ARRAYS = 16,  /* arrays made of other arguments */
    FRAME_NUMBERS = 48, /* of lists, before memory is allocated */
    FRAME_KEPT = 8,     /* objects, lists of arrays, blocks of memory */
};

/* What a parameter takes; a question mark in the tables: None as well. */
enum kind {
    KIND_ARRAY,   /* an array, or what becomes one */
    KIND_OPERAND, /* an array or a number; of two in a row, each sees the other's dtype */
    KIND_WEAK,    /* an array or a number, which sees the dtype of the first parameter */
    KIND_KEY,     /* an array; without one the next key of the random state */
    KIND_ARRAYS,  /* a list of arrays */
    KIND_INT,
    KIND_SIZE, /* an int that is not negative, of any size */
    KIND_FLOAT,
    KIND_BOOL,
    KIND_STR,
    KIND_DTYPE,
    KIND_AXES, /* an int or a list of ints */
    KIND_INTS, /* a list of ints */
    KIND_INT2, /* an int for both or a list of two */
    KIND_INT3,
    KIND_STREAM,
    KIND_OBJECT, /* anything */
};

struct int_list {
    const int *v;
    size_t n;
};

union value {
    mlx_array array;
    mlx_vector_array arrays;
    int i;
    size_t size;
    double f;
    bool b;
    const char *text;
    mlx_dtype dtype;
    struct int_list ints;
    int tuple[3];
    mlx_stream stream;
};

struct param {
    const char *name;
    uint8_t kind;
    bool nullable;    /* None is allowed, and means absent */
    bool has_default; /* of a value; absent otherwise */
    union value value;
};

struct signature {
    const char *name;
    const struct param *params;
    PyObject **names;   /* interned, filled by args_init */
    uint8_t n;          /* parameters */
    uint8_t n_pos_only; /* that have no keyword */
    uint8_t n_pos;      /* that may stand by position */
    uint8_t n_required;
    bool rest; /* *args: what is left of the positions */
};

struct frame {
    const struct signature *sig;
    mlx_array out;              /* place of the result */
    PyObject *slot[MAX_PARAMS]; /* borrowed; NULL: not given */
    union value v[MAX_PARAMS];
    bool given[MAX_PARAMS]; /* neither absent nor None */
    uint8_t n_by_position;
    PyObject *const *rest;
    Py_ssize_t n_rest;
    /* What closing the frame releases. */
    mlx_array_place arrays[FRAME_ARRAYS];
    PyObject *objects[FRAME_KEPT];
    mlx_vector_array vecs[FRAME_KEPT];
    void *blocks[FRAME_KEPT];
    mlx_stream stream;
    int numbers[FRAME_NUMBERS];
    uint8_t n_arrays, n_objects, n_vecs, n_blocks, n_numbers;
};

/* ---- frames, for generated code ---- */

/* What Python calls a function with; self is the first parameter of a method, NULL for a function.
 */
struct passed {
    PyObject *self;
    PyObject *const *args;
    Py_ssize_t n;
    PyObject *keywords;
};

/* Binds and converts. False with an exception set, and nothing to close. */
bool frame_open(struct frame *f, const struct signature *sig, const struct passed *p);
void frame_close(struct frame *f);

/* Opens it for a result that is one array; NULL on failure. */
struct array_object *frame_begin(struct frame *f, const struct signature *sig,
                                 const struct passed *p);

/* Ends the call: releases what the frame holds, and hands over out or the exception. */
static inline PyObject *frame_array(struct frame *f, struct array_object *out, int rc)
{
    frame_close(f);
    return array_done(out, rc);
}
/* The same for several results. */
PyObject *frame_arrays(struct frame *f, mlx_vector_array vec, bool tuple, int rc);
PyObject *frame_pair(struct frame *f, struct array_object *const out[2], int rc);
/* For a result that is made already, or NULL. */
static inline PyObject *frame_object(struct frame *f, PyObject *res)
{
    frame_close(f);
    return res;
}

/* ---- for functions by hand ---- */

/* Returns from a function by hand with the array that a call writes to f->out. */
#define FRAME_RETURN(f, call)                                                                      \
    do {                                                                                           \
        struct array_object *out_ = array_alloc();                                                 \
        if (!out_)                                                                                 \
            return NULL;                                                                           \
        (f)->out = mlx_array_at(&out_->place);                                                     \
        return array_done(out_, call);                                                             \
    } while (0)

/* A list of ints in the frame: of an int where one is allowed, of a list, a tuple, a shape. name is
 * the parameter's. */
bool frame_ints(struct frame *f, struct int_list *out, PyObject *o, const char *name, bool one);
/* n times v, in the frame. */
bool frame_repeat(struct frame *f, struct int_list *out, int v, size_t n);
/* The ints behind the named arguments, or the one sequence there; *none if there is nothing, or
 * None. */
bool frame_rest_ints(struct frame *f, struct int_list *out, const char *name, bool *none);
/* A handle in the frame for an array in between; NULL ctx with an exception set if there are too
 * many. */
mlx_array frame_temp(struct frame *f);
/* An array in the frame, of anything that becomes one. */
bool frame_to_array(struct frame *f, mlx_array *out, PyObject *o, struct want want);
/* A list of arrays in the frame, of a list or tuple. */
bool frame_to_arrays(struct frame *f, mlx_vector_array *out, PyObject *o, const char *name);
/* The same of the arguments behind the named ones. */
bool frame_rest_arrays(struct frame *f, mlx_vector_array *out);

/* An int as MLX takes it: an int, or what has __index__. */
bool int_from(PyObject *o, int *out);
bool is_intlike(PyObject *o);

/* TypeError: "sum(): axis must be ..., not ...". */
bool args_type_error(const struct signature *sig, const char *param, const char *wanted,
                     PyObject *got);

/* Interns the names of all parameters. */
bool args_init(void);

/* ---- tables that the generator writes ---- */

struct function_table {
    const char *module; /* "mlx.core.random" */
    PyMethodDef *methods;
};
struct function_alias {
    const char *module, *name, *target_module, *target;
};
extern const struct function_table function_tables[];
extern const struct function_alias function_aliases[];
extern const struct signature *const all_signatures[];
extern PyMethodDef array_methods[];
