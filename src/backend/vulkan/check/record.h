/* What the encoders and streams did, for the hazard checker: every declared access and every
 * barrier, what streams wait for, when commits reach the queue and end, and when memory is given
 * out. Filled only while the VK_RECORD setting is on. */
#pragma once

#include "base/common.h"

enum vk_rec_kind {
    /* by the encoder of a stream */
    VK_REC_READ,
    VK_REC_WRITE,
    VK_REC_DISPATCH,
    VK_REC_BARRIER, /* before the dispatch whose accesses were recorded last */
    VK_REC_SYNC,    /* everything before is complete, seen from the host */
    VK_REC_ORDER,   /* another stream's work comes first: the next dispatch needs a barrier */
    VK_REC_WAIT,    /* later dispatches come after the other stream's commits up to a ticket */
    VK_REC_QUEUED, /* the same, once a barrier follows: the other's commits are in the same queue */
    VK_REC_OVER,   /* the same without a wait: those commits had ended. What waits for this stream
                      from now on comes after them too, even if its ticket is an earlier one */
    /* about a commit of a stream, by any thread */
    VK_REC_SUBMIT, /* it goes to the queue */
    VK_REC_RETIRE, /* it and those before it are complete; what they held is let go */
    VK_REC_SEEN,   /* the host waited for it and those before it */
    /* about memory, by any thread */
    VK_REC_ALLOC, /* given out: earlier uses are over */
};

struct vk_rec {
    enum vk_rec_kind kind;
    int stream;
    uint32_t group; /* of a write; 0: none */
    uint64_t addr, size;
    uint64_t dispatch; /* number of the dispatch that the access belongs to, per stream */
    uint64_t ticket;   /* of the commit, per stream */
    int other;         /* the stream that is waited for */
    uint64_t other_ticket;
};

/* Appends; entries are dropped, with a warning, when host memory runs out. Thread-safety: safe. */
void vk_rec_add(const struct vk_rec *r);
/* SUBMIT, RETIRE, SEEN, while recording is on. */
void vk_rec_commit(enum vk_rec_kind kind, int stream, uint64_t ticket);

/* The record so far, in order. Valid until the next vk_rec_reset; no encoder may run. */
const struct vk_rec *vk_rec_get(size_t *n);
void vk_rec_reset(void);

/* Tests: the n-th barrier, or wait of a stream for another, from now on is left out although it is
 * needed; 0: none is. */
void vk_rec_drop_barrier(int n);
void vk_rec_drop_wait(int n);
/* True if this one is to be left out. */
bool vk_rec_drops_barrier(void);
bool vk_rec_drops_wait(void);
