/* Processes that compute together.
 *
 * Each of them calls the same functions in the same order. A group is what a process knows of the
 * others: their number, its own, and the way to them, which is MPI. A process that was started
 * alone is a group of one. */
#pragma once

#include "base/err.h"
#include "base/mem.h"

struct world;

struct dist_group {
    refcount rc;
    int rank, size;
    bool is_mpi; /* false: a group of one, which has nothing behind it */
};

/* The group of all processes. backend: "any", "mpi" or another name of MLX's, of which there is
 * none here; NULL: any. Where that cannot be had: strict is an error, else a group of one. The
 * answer is the same for the life of the process. Thread-safety: safe. */
MUST_CHECK enum err dist_init(struct dist_group **out, const char *backend, bool strict);
/* Whether there is a library for it, which says nothing about other processes. Never an error. */
bool dist_is_available(const char *backend);

/* One group for each color, ordered by key, or where that is negative by rank. All processes of g
 * call it. */
MUST_CHECK enum err dist_split(struct dist_group **out, struct dist_group *g, int color, int key);

static inline struct dist_group *dist_ref(struct dist_group *g)
{
    ref_inc(&g->rc);
    return g;
}
/* Accepts NULL. Thread-safety: safe. */
void dist_unref(struct dist_group **g);
