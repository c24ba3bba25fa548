/* What the rules of vmap share: inputs with the batch as their first axis. Private to ops. */
#pragma once

#include "graph/op_call.h"

/* How many elements the batch has. */
int32_t vmap_batch(const struct vmap_call *c);
/* Input i with the batch in front: its axis moved there or, where it has none, copies. */
MUST_CHECK enum err vmap_front(struct arr **out, const struct vmap_call *c, size_t i);
/* Inputs from `first` on, all in this form. On failure none. */
MUST_CHECK enum err vmap_fronts(struct arr **in, const struct vmap_call *c, size_t first);
/* The op with other parameters over inputs with the batch in front, which all results have there,
 * too: a whole rule. */
MUST_CHECK enum err vmap_over_fronts(struct vmap_call *c, const void *params);
/* The error for a batch of arrays that have as many dimensions as there can be. */
enum err vmap_no_room(void);
/* The same region of every element of the batch. */
void vmap_region(struct slice_params *out, const struct slice_params *from,
                 const struct vmap_call *c);
