/* Handles of functions: what closures, transformations and exported functions share. */
#pragma once

#include "api/handle.h"
#include "transforms/fun.h"

/* The box behind every kind of closure. */
struct fun_box {
    struct counted *fun; /* owned */
};

/* The function of a closure; NULL after a failure. _opt: NULL without one, too. */
void *call_fun(struct call *c, const void *ctx, const char *name);
void *call_fun_opt(struct call *c, const void *ctx);

/* Takes the reference, also on failure. */
MUST_CHECK enum err box_set_fun(void **ctx, void *fun);
/* Takes what is in o, also on failure. */
MUST_CHECK enum err box_set_outs(mlx_vector_array *res, struct outs *o);
/* The same for two results of a call. */
MUST_CHECK enum err box_set_outs_pair(mlx_vector_array *res_0, mlx_vector_array *res_1,
                                      struct outs *first, struct outs *second);
