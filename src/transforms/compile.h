/* Functions whose graphs are built once (docs/runtime.md, Compiled functions). A compiled function
 * is traced when it is called with arguments of new shapes or dtypes; what it built is simplified
 * and kept as a program (eval/program.h), and further calls put copies of its nodes into the
 * caller's graph. A call whose arguments are traced by another transformation calls the function
 * itself. */
#pragma once

#include "transforms/fun.h"

enum compile_mode { COMPILE_DISABLED, COMPILE_NO_SIMPLIFY, COMPILE_NO_FUSE, COMPILE_ENABLED };

/* For functions compiled from now on, and whether further traces are simplified. Plans fuse as they
 * do with every graph, so that NO_FUSE is like ENABLED. Thread-safety: safe. */
void compile_set_mode(enum compile_mode mode);

/* What programs are kept by. */
struct compile_params {
    uint64_t id;       /* of the function, the caller's choice */
    bool is_own;       /* instead: an id that nobody else has, forgotten with the function */
    bool is_shapeless; /* one program for all sizes of arguments */
    const uint64_t *constants; /* others have other programs */
    size_t n_constants;
};
/* fun itself while compilation is disabled. */
MUST_CHECK enum err transform_compile(struct fun **out, struct fun *fun,
                                      const struct compile_params *p);

/* The calling thread's note: what a function sets while it is traced is kept with its program, and
 * a call that uses the program sets it again. */
void compile_set_note(uint64_t note);
uint64_t compile_get_note(void);

/* Forgets the programs of an id of callers, or all. Thread-safety: safe. */
void compile_erase(uint64_t id);
void compile_clear(void);
