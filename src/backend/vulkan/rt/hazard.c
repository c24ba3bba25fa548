#include "backend/vulkan/rt/hazard.h"

#include <string.h>

/* Index of the first range that ends after addr. */
static uint32_t first_after(const struct hz_set *s, uint64_t addr)
{
    uint32_t lo = 0, hi = s->n;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->v[mid].hi <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool hz_overlaps_within(const struct hz_set *s, struct hz_range r)
{
    uint32_t i = first_after(s, r.lo);

    return i < s->n && s->v[i].lo < r.hi;
}

/* Moves the ranges from index `from` on to index `to`; few of them without a call. */
static inline void move_tail(struct hz_set *s, uint32_t to, uint32_t from)
{
    if (to > from && s->n - from <= 4)
        for (uint32_t i = s->n; i-- > from;)
            s->v[i + (to - from)] = s->v[i];
    else
        memmove(&s->v[to], &s->v[from], (s->n - from) * sizeof s->v[0]);
}

/* Adds r among the others, merging everything it touches. */
static void insert(struct hz_set *s, struct hz_range r)
{
    uint32_t i = first_after(s, r.lo), end = i;

    if (i < s->n && s->v[i].lo <= r.lo && r.hi <= s->v[i].hi)
        return; /* what many dispatches read */
    if (i > 0 && s->v[i - 1].hi == r.lo)
        i--;
    for (end = i; end < s->n && s->v[end].lo <= r.hi; end++) {
        r.lo = MIN(r.lo, s->v[end].lo);
        r.hi = MAX(r.hi, s->v[end].hi);
    }
    if (end != i + 1)
        move_tail(s, i + 1, end);
    s->n = s->n - (end - i) + 1;
    s->v[i] = r;
}

/* The caller made sure of room. */
static inline void add(struct hz_set *s, struct hz_range r)
{
    if (hz_is_behind(s, r.lo))
        s->v[s->n++] = r;
    else
        insert(s, r);
}

void hz_join_last(struct hz_range *list, struct hz_range r)
{
    struct hz_range *last = &list[HZ_PENDING_MAX - 1];

    last->lo = MIN(last->lo, r.lo);
    last->hi = MAX(last->hi, r.hi);
}

void hazard_force(struct hazard *h)
{
    h->forced = true;
}

void hazard_forget(struct hazard *h)
{
    h->reads.n = h->writes.n = h->part.n = 0;
    h->part_group = 0;
}

void hazard_clear(struct hazard *h)
{
    hazard_forget(h);
    h->conflict = h->forced = false;
}

/* The group is over: its writes are ordinary ones for whoever comes next. */
static void end_group(struct hazard *h)
{
    for (uint32_t i = 0; i < h->part.n; i++)
        add(&h->writes, h->part.v[i]);
    h->part.n = 0;
}

void hazard_advance(struct hazard *h)
{
    for (uint32_t i = 0; i < h->n_read; i++)
        add(&h->reads, h->read[i]);
    for (uint32_t i = 0; i < h->n_write; i++) {
        if (!h->group[i]) {
            add(&h->writes, h->write[i]);
            continue;
        }
        if (h->group[i] != h->part_group)
            end_group(h);
        h->part_group = h->group[i];
        add(&h->part, h->write[i]);
    }
    hazard_drop(h);
}

void hazard_drop(struct hazard *h)
{
    h->n_read = h->n_write = 0;
    h->conflict = false;
}
