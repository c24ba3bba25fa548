#include "backend/vulkan/rt/suballoc.h"

#include "base/mem.h"

#define NONE UINT32_MAX

/* Sizes are binned like small floating-point numbers: three bits of mantissa, so that a bin's
 * members differ by at most an eighth. */
#define MANTISSA 3
#define BINS_PER_GROUP (1u << MANTISSA)
#define GROUPS 32

struct range {
    uint32_t start, size;   /* in granules */
    uint32_t before, after; /* neighbours in the block */
    uint32_t prev, next;    /* in the bin, or in the list of unused records (next) */
    bool used;
};

struct suballoc {
    VEC(struct range) ranges;
    uint32_t unused;      /* records to recycle */
    uint32_t live;        /* ranges handed out */
    uint32_t groups;      /* bit g: group g has a non-empty bin */
    uint8_t bins[GROUPS]; /* bit b: bin b of the group is not empty */
    uint32_t head[GROUPS * BINS_PER_GROUP];
};

static uint32_t bin_floor(uint32_t n)
{
    if (n < BINS_PER_GROUP)
        return n;
    uint32_t e = 31u - (uint32_t)__builtin_clz(n);
    return ((e - MANTISSA + 1) << MANTISSA) | ((n >> (e - MANTISSA)) & (BINS_PER_GROUP - 1));
}

/* The first bin whose members all hold n. */
static uint32_t bin_ceil(uint32_t n)
{
    uint32_t bin = bin_floor(n);

    if (n < BINS_PER_GROUP)
        return bin;
    uint32_t e = 31u - (uint32_t)__builtin_clz(n);
    return bin + ((n & ((1u << (e - MANTISSA)) - 1)) != 0);
}

static void bin_add(struct suballoc *s, uint32_t i)
{
    struct range *r = &s->ranges.v[i];
    uint32_t bin = bin_floor(r->size);

    r->prev = NONE;
    r->next = s->head[bin];
    if (r->next != NONE)
        s->ranges.v[r->next].prev = i;
    s->head[bin] = i;
    s->bins[bin / BINS_PER_GROUP] |= (uint8_t)(1u << bin % BINS_PER_GROUP);
    s->groups |= 1u << bin / BINS_PER_GROUP;
}

static void bin_remove(struct suballoc *s, uint32_t i)
{
    struct range *r = &s->ranges.v[i];
    uint32_t bin = bin_floor(r->size);

    if (r->next != NONE)
        s->ranges.v[r->next].prev = r->prev;
    if (r->prev != NONE) {
        s->ranges.v[r->prev].next = r->next;
        return;
    }
    s->head[bin] = r->next;
    if (r->next != NONE)
        return;
    uint32_t group = bin / BINS_PER_GROUP;
    s->bins[group] &= (uint8_t) ~(1u << bin % BINS_PER_GROUP);
    if (!s->bins[group])
        s->groups &= ~(1u << group);
}

static uint32_t record_new(struct suballoc *s, struct range r)
{
    uint32_t i = s->unused;

    if (i != NONE) {
        s->unused = s->ranges.v[i].next;
        s->ranges.v[i] = r;
        return i;
    }
    if (VEC_PUSH(&s->ranges, r) != ERR_OK)
        return NONE;
    return (uint32_t)s->ranges.n - 1;
}

static void record_free(struct suballoc *s, uint32_t i)
{
    s->ranges.v[i].next = s->unused;
    s->unused = i;
}

enum err suballoc_create(struct suballoc **out, uint64_t size)
{
    struct suballoc *s = mem_alloc(sizeof *s);

    if (!s)
        return ERR_NO_MEMORY;
    s->unused = NONE;
    memset(s->head, 0xff, sizeof s->head);
    uint32_t i = record_new(s, (struct range){ .size = (uint32_t)(size / SUBALLOC_GRANULE),
                                               .before = NONE,
                                               .after = NONE });
    if (i == NONE) {
        mem_free(s);
        return ERR_NO_MEMORY;
    }
    bin_add(s, i);
    *out = s;
    return ERR_OK;
}

void suballoc_destroy(struct suballoc **ps)
{
    if (!*ps)
        return;
    VEC_FINI(&(*ps)->ranges);
    mem_free(*ps);
    *ps = NULL;
}

/* A free range of at least n granules, or NONE. The bin that n itself falls into may hold smaller
 * ranges, so only its head is looked at. */
static uint32_t find(const struct suballoc *s, uint32_t n)
{
    uint32_t i = s->head[bin_floor(n)];

    if (i != NONE && s->ranges.v[i].size >= n)
        return i;
    uint32_t bin = bin_ceil(n), group = bin / BINS_PER_GROUP;
    if (group >= GROUPS)
        return NONE;
    uint32_t bits = s->bins[group] & (0xffu << bin % BINS_PER_GROUP);
    if (!bits) {
        uint32_t groups = group + 1 < GROUPS ? s->groups & (~0u << (group + 1)) : 0;
        if (!groups)
            return NONE;
        group = (uint32_t)__builtin_ctz(groups);
        bits = s->bins[group];
    }
    return s->head[group * BINS_PER_GROUP + (uint32_t)__builtin_ctz(bits)];
}

bool suballoc_take(struct suballoc *s, uint64_t size, uint64_t *offset, uint32_t *range)
{
    uint64_t granules = (size + SUBALLOC_GRANULE - 1) / SUBALLOC_GRANULE;

    if (granules >= UINT32_MAX)
        return false;
    uint32_t n = MAX((uint32_t)granules, 1u), i = find(s, n);
    if (i == NONE)
        return false;
    uint32_t rest = s->ranges.v[i].size - n, split = NONE;
    if (rest) {
        split = record_new(s, (struct range){ .start = s->ranges.v[i].start + n,
                                              .size = rest,
                                              .before = i,
                                              .after = s->ranges.v[i].after });
        if (split == NONE)
            return false;
    }
    bin_remove(s, i);
    struct range *r = &s->ranges.v[i];
    if (rest) {
        if (r->after != NONE)
            s->ranges.v[r->after].before = split;
        r->after = split;
        r->size = n;
        bin_add(s, split);
    }
    r->used = true;
    s->live++;
    *offset = (uint64_t)r->start * SUBALLOC_GRANULE;
    *range = i;
    return true;
}

/* Appends the free range `gone`, which follows i, to i. */
static void absorb(struct suballoc *s, uint32_t i, uint32_t gone)
{
    struct range *r = &s->ranges.v[i], *g = &s->ranges.v[gone];

    r->size += g->size;
    r->after = g->after;
    if (g->after != NONE)
        s->ranges.v[g->after].before = i;
    record_free(s, gone);
}

void suballoc_give(struct suballoc *s, uint32_t i)
{
    uint32_t before = s->ranges.v[i].before, after = s->ranges.v[i].after;

    s->ranges.v[i].used = false;
    s->live--;
    if (after != NONE && !s->ranges.v[after].used) {
        bin_remove(s, after);
        absorb(s, i, after);
    }
    if (before != NONE && !s->ranges.v[before].used) {
        bin_remove(s, before);
        absorb(s, before, i);
        i = before;
    }
    bin_add(s, i);
}

bool suballoc_is_empty(const struct suballoc *s)
{
    return s->live == 0;
}
