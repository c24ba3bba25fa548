/* What processes of a group do together, with bytes of the host.
 *
 * Before data moves each tells the others what it is about to do. What does not fit is an error in
 * all of them, and so is a process that cannot go on; none is left waiting. Messages from one
 * process to another are told apart by dtype and size when they arrive. */
#pragma once

#include "dist/group.h"
#include "graph/dtype.h"

enum comm_kind {
    COMM_SUM, /* of arrays of all, for all */
    COMM_MAX,
    COMM_MIN,
    COMM_GATHER,  /* arrays of all, one behind the other */
    COMM_SCATTER, /* of the sum each process has a part */
    COMM_SEND,
    COMM_RECV,
    COMM_KINDS
};

/* The public name, for error texts. */
const char *comm_name(enum comm_kind kind);

/* acc = acc combined with in, for n elements; kind: sum, max or min. Calls come on any thread. */
typedef void (*comm_combine_fn)(enum comm_kind kind, enum dtype t, void *acc, const void *in,
                                size_t n);

struct comm_call {
    struct dist_group *group;
    enum comm_kind kind;
    enum dtype dtype;
    size_t n;       /* elements of in; of what is received, of out */
    const void *in; /* a reduction's may be out */
    void *out;
    int peer;
    bool has_failed;         /* in is not what it should be: the others are to be told */
    comm_combine_fn combine; /* the same for all calls of the process */
};

/* Blocks. Thread-safety: safe; collectives of one group come one after the other. */
MUST_CHECK enum err comm_run(const struct comm_call *c);

/* This process is about to end: returns when all others of g are, too. Until then they are told so
 * where they wait for it. False if g is broken. */
bool comm_leave(struct dist_group *g);
/* True after a failure in MPI, behind which nobody knows where the others are. */
bool comm_is_broken(void);
