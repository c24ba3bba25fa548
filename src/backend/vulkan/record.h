/* What the encoders did, for the hazard checker: every declared access and every barrier. Filled
 * only while the VK_RECORD setting is on. */
#pragma once

#include "core/common.h"

enum vk_rec_kind {
    VK_REC_READ,
    VK_REC_WRITE,
    VK_REC_DISPATCH,
    VK_REC_BARRIER, /* before the dispatch whose accesses were recorded last */
    VK_REC_SYNC,    /* everything before is complete, seen from the host */
    VK_REC_ORDER,   /* another stream's work comes first: the next dispatch needs a barrier */
};

struct vk_rec {
    enum vk_rec_kind kind;
    int stream;
    uint32_t group; /* of a write; 0: none */
    uint64_t addr, size;
    uint64_t dispatch; /* number of the dispatch that the access belongs to, per stream */
    uint64_t command;  /* number of the command buffer */
};

/* Appends; entries are dropped, with a warning, when host memory runs out. Thread-safety: safe. */
void vk_rec_add(const struct vk_rec *r);

/* The record so far, in order per stream. Valid until the next vk_rec_reset; no encoder may run. */
const struct vk_rec *vk_rec_get(size_t *n);
void vk_rec_reset(void);

/* Tests: the n-th barrier from now on is left out although it is needed; 0: none is. */
void vk_rec_drop_barrier(int n);
/* True if the encoder is to leave this barrier out. */
bool vk_rec_drops_this(void);
