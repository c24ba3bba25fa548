/* Functions of Python as closures of the library.
 *
 * A call of one of Python's functions from within the library happens on the thread that called the
 * library, with the GIL held. What an exception stops is said to have failed, and error_raise lets
 * the exception through where the library's call returns. */
#pragma once

#include "tree.h"

/* What a closure does: from a list of arrays to a list of arrays. NULL: an exception is set. */
typedef PyObject *closure_fn(PyObject *arrays, void *data);

/* A function for the time of a call, on the caller's stack. */
struct closure_call {
    closure_fn *fn;
    void *data;
};

/* A closure on c, to be freed before c ends. */
mlx_closure closure_of(struct closure_call *c);

/* Python objects that a closure keeps as long as the library keeps the closure. */
enum { CLOSURE_KEPT = 3 };
struct closure_kept;

/* New references to what v has, in a block for closures; NULL with an exception set. */
struct closure_kept *closure_keep(PyObject *const v[CLOSURE_KEPT]);

/* Object i of such a block, borrowed, and its place. */
PyObject **closure_place(void *kept, int i);
static inline PyObject *closure_object(void *kept, int i)
{
    return *closure_place(kept, i);
}

/* Releases them: with the GIL where the thread can have it, else when Python's main thread comes
 * round to it. Nothing is released once Python has ended. */
void closure_drop(void *kept);

/* The arrays of a Python list, or of what the library calls with, for results: 0, or 1 with an
 * exception set. */
int closure_result(mlx_vector_array *res, PyObject *leaves);

bool closure_init(PyObject *m);
