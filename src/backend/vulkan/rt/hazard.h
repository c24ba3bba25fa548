/* Which bytes have been read and written since the last barrier, by device address.
 *
 * The accesses of the next dispatch are declared first; hazard_needs_barrier then says whether they
 * conflict with earlier ones, and hazard_advance makes them earlier ones. Fixed memory: when a set
 * is full, a barrier is asked for, which empties it. Thread-safety: the stream's owner thread only.
 */
#pragma once

#include "base/common.h"

struct hz_range {
    uint64_t lo, hi; /* [lo, hi) */
};

/* Keeping a set of this size in order costs a dispatch 0.1 us in the worst case, twice as many 0.6;
 * a barrier every few hundred dispatches is not noticed. */
#define HZ_SET_MAX 512
/* Disjoint ranges in ascending order; touching ones are merged. */
struct hz_set {
    uint32_t n;
    struct hz_range v[HZ_SET_MAX];
};

/* Accesses of one dispatch; more than this fall together into their common hull. */
#define HZ_PENDING_MAX 64

struct hazard {
    struct hz_set reads, writes;
    struct hz_set part; /* writes of the current group: unordered among themselves */
    uint32_t part_group;
    uint32_t n_read, n_write; /* pending */
    struct hz_range read[HZ_PENDING_MAX], write[HZ_PENDING_MAX];
    uint32_t group[HZ_PENDING_MAX]; /* of the pending writes; 0: none */
    bool conflict;                  /* the pending accesses need a barrier */
    bool forced;                    /* the next dispatch needs one, whatever it touches */
};

/* Soon after a barrier there is nothing, and what is new mostly lies behind what there is. */
static inline bool hz_is_behind(const struct hz_set *s, uint64_t addr)
{
    return s->n == 0 || s->v[s->n - 1].hi < addr;
}

bool hz_overlaps_within(const struct hz_set *s, struct hz_range r);
static inline bool hz_overlaps(const struct hz_set *s, struct hz_range r)
{
    return !hz_is_behind(s, r.lo) && hz_overlaps_within(s, r);
}

/* Puts r into the last of a full list. */
void hz_join_last(struct hz_range *list, struct hz_range r);

static inline void hazard_read(struct hazard *h, struct hz_range r)
{
    if (!h->conflict)
        h->conflict = hz_overlaps(&h->writes, r) || hz_overlaps(&h->part, r);
    if (h->n_read < HZ_PENDING_MAX)
        h->read[h->n_read++] = r;
    else
        hz_join_last(h->read, r);
}

/* group 0: an ordinary write. */
static inline void hazard_write(struct hazard *h, struct hz_range r, uint32_t group)
{
    bool same_group = group && group == h->part_group;

    if (!h->conflict)
        h->conflict = hz_overlaps(&h->writes, r) || hz_overlaps(&h->reads, r) ||
                      (!same_group && hz_overlaps(&h->part, r));
    if (h->n_write < HZ_PENDING_MAX) {
        h->group[h->n_write] = group;
        h->write[h->n_write++] = r;
    } else {
        h->group[HZ_PENDING_MAX - 1] = 0;
        hz_join_last(h->write, r);
    }
}

/* The next dispatch must be ordered after everything before it. */
void hazard_force(struct hazard *h);

static inline bool hazard_needs_barrier(const struct hazard *h)
{
    return h->conflict || h->forced;
}

/* The pending accesses may not fit: the caller forces a barrier. */
static inline bool hazard_is_full(const struct hazard *h)
{
    return h->reads.n + h->n_read > HZ_SET_MAX || h->writes.n + h->part.n + h->n_write > HZ_SET_MAX;
}

/* A barrier was emitted: nothing earlier is unordered any more. */
void hazard_clear(struct hazard *h);
/* Everything so far is complete, seen from the host. Keeps a forced barrier. */
void hazard_forget(struct hazard *h);
/* The pending accesses were dispatched. */
void hazard_advance(struct hazard *h);
/* The pending accesses will not be dispatched. */
void hazard_drop(struct hazard *h);
