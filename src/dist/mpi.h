/* The part of MPI that groups use, whichever library provides it. Private to dist.
 *
 * MPI fixes what its functions do, not what its handles are: those of Open MPI are pointers to
 * objects of the library, those of MPICH (Intel MPI, MVAPICH and Cray MPICH have its ABI) are
 * numbers. mpi_body.h is compiled once for each; the rest of dist sees this table only. No header
 * of MPI is needed: what is used is declared here, as both ABIs have kept it since their first
 * release with that soname. */
#pragma once

#include "base/common.h"
#include "base/err.h"
#include "graph/dtype.h"

/* A handle as its library has it. */
struct mpi_handle {
    intptr_t v;
};

enum mpi_object {
#define OBJECT(id, ...) MPI_OBJECT_##id,
#include "dist/mpi_objects.def"
    MPI_OBJECT_COUNT
};

enum mpi_reduction { MPI_REDUCE_SUM, MPI_REDUCE_MAX, MPI_REDUCE_MIN, MPI_REDUCTIONS };

#define MPI_OK 0
#define MPI_LEVEL_SERIALIZED 2
#define MPI_LEVEL_MULTIPLE 3
#define MPI_ANY (-1)
#define MPI_NO_COLOR (-32766)
#define MPI_TEXT_MAX 512

/* What moves data is told. in NULL: it is in out already. */
struct mpi_move {
    const void *in;
    void *out;
    int n; /* elements; of all_gather and scatter those of one process */
    struct mpi_handle type, op, comm;
    int peer; /* or root */
    int tag;
};

/* What came. */
struct mpi_came {
    int n; /* elements; less than 0: no whole number of them */
    int tag;
};

/* Functions return MPI's codes. */
struct mpi {
    const char *name;
    /* The object that tells the library from others, NULL if nothing but its version does. */
    const char *mark, *version;
    /* Looks the functions and objects up; false and what is missing otherwise. */
    bool (*load)(void *library, const char **missing);
    struct mpi_handle (*object)(enum mpi_object o);
    int (*initialized)(int *flag);
    int (*finalized)(int *flag);
    int (*init)(int wanted, int *level);
    int (*level)(int *level);
    int (*finalize)(void);
    int (*abort)(int status);
    int (*comm_dup)(struct mpi_handle *out, struct mpi_handle comm); /* whose errors are returned */
    int (*comm_split)(struct mpi_handle *out, struct mpi_handle comm, int color, int key);
    int (*comm_free)(struct mpi_handle comm);
    int (*comm_place)(struct mpi_handle comm, int *rank, int *size);
    int (*type_new)(struct mpi_handle *out, int bytes);
    int (*type_free)(struct mpi_handle type);
    /* An operation that calls mpi_combine. */
    int (*op_new)(struct mpi_handle *out, enum mpi_reduction r);
    int (*op_free)(struct mpi_handle op);
    int (*all_reduce)(const struct mpi_move *m);
    int (*reduce)(const struct mpi_move *m);
    int (*scatter)(const struct mpi_move *m); /* of the reduced */
    int (*all_gather)(const struct mpi_move *m);
    int (*broadcast)(const struct mpi_move *m); /* of what is in out */
    int (*send)(const struct mpi_move *m);
    int (*receive)(const struct mpi_move *m, struct mpi_came *came);
    void (*error_text)(int code, char text[MPI_TEXT_MAX]);
};

extern const struct mpi mpi_open_mpi, mpi_mpich;

/* acc = acc combined with in; what operations of our own do. */
void mpi_combine(enum mpi_reduction r, struct mpi_handle type, void *acc, const void *in, int n);
