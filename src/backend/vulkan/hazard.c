#include "backend/vulkan/hazard.h"

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

/* Soon after a barrier there is nothing, and what is new mostly lies behind what there is. */
static inline bool is_behind(const struct hz_set *s, uint64_t addr)
{
    return s->n == 0 || s->v[s->n - 1].hi < addr;
}

static inline bool overlaps(const struct hz_set *s, struct hz_range r)
{
    if (is_behind(s, r.lo))
        return false;
    uint32_t i = first_after(s, r.lo);
    return i < s->n && s->v[i].lo < r.hi;
}

/* Adds r among the others, merging everything it touches. */
static void insert(struct hz_set *s, struct hz_range r)
{
    uint32_t i = first_after(s, r.lo), end = i;

    if (i > 0 && s->v[i - 1].hi == r.lo)
        i--;
    for (end = i; end < s->n && s->v[end].lo <= r.hi; end++) {
        r.lo = MIN(r.lo, s->v[end].lo);
        r.hi = MAX(r.hi, s->v[end].hi);
    }
    if (end == i)
        memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof r);
    else if (end > i + 1)
        memmove(&s->v[i + 1], &s->v[end], (s->n - end) * sizeof r);
    s->n = s->n - (end - i) + 1;
    s->v[i] = r;
}

/* The caller made sure of room. */
static inline void add(struct hz_set *s, struct hz_range r)
{
    if (is_behind(s, r.lo))
        s->v[s->n++] = r;
    else
        insert(s, r);
}

/* Notes a pending access and returns its index. */
static uint32_t declare(struct hz_range *list, uint32_t *n, struct hz_range r)
{
    if (*n < HZ_PENDING_MAX) {
        list[*n] = r;
        return (*n)++;
    }
    struct hz_range *last = &list[HZ_PENDING_MAX - 1];
    last->lo = MIN(last->lo, r.lo);
    last->hi = MAX(last->hi, r.hi);
    return HZ_PENDING_MAX - 1;
}

void hazard_read(struct hazard *h, struct hz_range r)
{
    h->conflict = h->conflict || overlaps(&h->writes, r) || overlaps(&h->part, r);
    declare(h->read, &h->n_read, r);
}

void hazard_write(struct hazard *h, struct hz_range r, uint32_t group)
{
    bool same_group = group && group == h->part_group;

    h->conflict = h->conflict || overlaps(&h->writes, r) || overlaps(&h->reads, r) ||
                  (!same_group && overlaps(&h->part, r));
    bool full = h->n_write == HZ_PENDING_MAX;
    h->group[declare(h->write, &h->n_write, r)] = full ? 0 : group;
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
