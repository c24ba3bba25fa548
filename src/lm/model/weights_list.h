/* The tensors of a model's files by name, and which of them somebody asked for. */
#pragma once

#include "io/io.h"
#include "lm/model/config.h"

struct weights_list {
    struct io_arrays arrays; /* by name */
    bool *is_read;           /* for each of them */
};

/* Takes over the arrays, which must have different names, on success only. file: for errors. */
MUST_CHECK enum err weights_list_init(struct weights_list *l, struct io_arrays *arrays,
                                      const char *file);
void weights_list_fini(struct weights_list *l);

/* Borrowed, NULL if there is none. */
struct arr *weights_list_find(const struct weights_list *l, const char *name);
/* The same for the model: the tensor counts as read. */
struct arr *weights_list_take(struct weights_list *l, const char *name);

/* Fails with the names of tensors that were not taken, but for those that are known to be harmless.
 */
MUST_CHECK enum err weights_list_check_read(const struct weights_list *l, const struct lm_config *c,
                                            const char *file);
