/* The record sorted by streams: what both parts of the hazard checker work on. Private to it. */
#pragma once

#include "backend/vulkan/check/hazard_check.h"
#include "base/mem.h"

/* What one stream's encoder recorded, by index in the record. */
struct lane {
    int stream;
    VEC(size_t) at;
};

struct lanes {
    const struct vk_rec *rec;
    size_t n;
    VEC(struct lane) lane;
    VEC(int) of;     /* number of a stream's lane, -1: none */
    uint32_t *epoch; /* of every entry: the stretch between barriers that its dispatch runs in, from
                        1 in every lane; 0: an access that was never dispatched */
};

MUST_CHECK enum err lanes_init(struct lanes *l, const struct vk_rec *rec, size_t n);
void lanes_fini(struct lanes *l);

static inline bool rec_is_access(const struct vk_rec *r)
{
    return r->kind == VK_REC_READ || r->kind == VK_REC_WRITE;
}

/* The two accesses touch the same bytes, and at least one of them writes. */
bool rec_conflict(const struct vk_rec *a, const struct vk_rec *b);
/* Keeps the first finding as text. */
void hazard_found(struct hazard_report *out, const char *what, const struct vk_rec *a,
                  const struct vk_rec *b);

/* Accesses of different streams. */
MUST_CHECK enum err hazard_check_streams(struct hazard_report *out, const struct lanes *l);
