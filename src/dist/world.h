/* The MPI library of this process. Private to dist. */
#pragma once

#include <pthread.h>

#include "dist/group.h"
#include "dist/mpi.h"

struct world {
    const struct mpi *mpi;
    bool ours;                            /* nobody else began MPI, so that we end it */
    bool serial;                          /* takes one call at a time */
    struct mpi_handle type[DT_COUNT];     /* of elements */
    struct mpi_handle op[MPI_REDUCTIONS]; /* reductions of our own */
};

/* Finds and opens the library, once. ERR_UNSUPPORTED with the reason. Thread-safety: safe. */
MUST_CHECK enum err world_open(void);
/* Begins MPI, unless the program has; *out lives for the process. Thread-safety: caller locks. */
MUST_CHECK enum err world_begin(const struct world **out);
/* The same after it has begun. */
const struct world *world_get(void);
/* Ends it. */
void world_end(void);
/* Whether a launcher of MPI programs started the process. */
bool world_is_launched(void);

/* Around every call, for libraries that take one at a time. */
void world_lock(const struct world *w);
void world_unlock(const struct world *w);

/* ERR_RUNTIME with MPI's words. */
MUST_CHECK enum err world_failed(const struct world *w, const char *op, int code);

/* What a process says it is about to do. */
struct comm_word {
    int32_t what; /* enum comm_kind, or something else that happens */
    int32_t dtype;
    int64_t n;
};

/* A group of MPI's. */
struct mpi_group {
    struct dist_group base;
    const struct world *world;
    struct mpi_handle comm;    /* for data, under the lock unless it goes to one process */
    struct mpi_handle control; /* for splits, on which the order of data has no influence */
    pthread_mutex_t comm_lock; /* one collective at a time */
    struct comm_word *words;   /* one for each process; guarded by comm_lock */
};
