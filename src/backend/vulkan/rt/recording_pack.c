/* Where the places of a run lie: in a few buffers, one over another where their uses are apart.
 *
 * Steps between two barriers run side by side. So a place may lie where another one was only if a
 * barrier comes between the last use of that and its own first: then sharing memory costs no
 * barrier that would not be there anyway. */
#include "backend/vulkan/rt/recording.h"
#include "backend/vulkan/rt/suballoc.h"

/* A buffer is not made longer than this for the sake of small places. */
#define MEMORY_MAX ((uint64_t)256 << 20)

/* A piece of memory in use: up to the end of the interval. */
struct piece {
    uint64_t lo, hi;
    uint32_t memory, until;
};

struct packing {
    struct be_recording *r;
    uint32_t *interval; /* step -> the number of barriers before its end; [n_step]: at the end */
    VEC(struct piece) used;
    VEC(uint64_t) most; /* of each buffer: how long it may become */
};

/* ---- barriers between the steps, as if nothing had been encoded before ---- */

static void declare(struct hazard *h, const struct vk_access *a)
{
    uint64_t base = ((uint64_t)a->place + 1) << RECORDED_OFFSET_BITS;
    struct hz_range range = { base + a->range.lo, base + a->range.hi };

    if (a->is_write)
        hazard_write(h, range, a->group);
    else
        hazard_read(h, range);
}

static uint32_t count_barriers(const struct be_recording *r, const struct vk_recorded_step *s,
                               struct hazard *h)
{
    uint32_t n = 0;

    for (uint32_t i = s->first; i < s->first + s->n; i++) {
        const struct vk_recorded *d = &r->dispatch.v[i];
        for (uint32_t k = d->first_access; k < d->first_access + d->n_access; k++)
            declare(h, &r->access.v[k]);
        if (hazard_needs_barrier(h) || hazard_is_full(h)) {
            hazard_clear(h);
            n++;
        }
        hazard_advance(h);
    }
    return n;
}

static enum err find_intervals(struct packing *p)
{
    struct hazard *h = mem_alloc(sizeof *h);
    uint32_t n = 0;

    if (!h)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < p->r->n_step; i++)
        p->interval[i] = n += count_barriers(p->r, &p->r->step[i], h);
    mem_free(h);
    return ERR_OK;
}

/* ---- fitting ---- */

/* Before the first barrier of its step a place may be written already. */
static uint32_t first_interval(const struct packing *p, const struct vk_place *place)
{
    return place->made ? p->interval[place->made - 1] : 0;
}

static uint32_t last_interval(const struct packing *p, const struct vk_place *place)
{
    return place->left < p->r->n_step ? p->interval[place->left] : UINT32_MAX;
}

/* The lowest offset at which size bytes are free in that buffer. */
static uint64_t find_gap(const struct packing *p, uint32_t memory, uint64_t size)
{
    uint64_t at = 0;

    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < p->used.n; i++) {
            const struct piece *u = &p->used.v[i];
            if (u->memory == memory && at < u->hi && u->lo < at + size) {
                at = u->hi;
                moved = true;
            }
        }
    }
    return at;
}

static void drop_unused(struct packing *p, uint32_t now)
{
    size_t n = 0;

    for (size_t i = 0; i < p->used.n; i++)
        if (p->used.v[i].until >= now)
            p->used.v[n++] = p->used.v[i];
    p->used.n = n;
}

static enum err fit(struct packing *p, struct vk_place *place)
{
    struct be_recording *r = p->r;
    uint32_t memory = 0;
    uint64_t at = 0;
    enum err err = ERR_OK;

    uint64_t size = align_up(place->size, SUBALLOC_GRANULE);
    drop_unused(p, first_interval(p, place));
    for (; memory < r->memory.n; memory++)
        if ((at = find_gap(p, memory, size)) + size <= p->most.v[memory])
            break;
    if (memory == r->memory.n) {
        at = 0;
        TRY(VEC_PUSH(&r->memory, 0));
        TRY(VEC_PUSH(&p->most, MAX(MEMORY_MAX, size)));
    }
    place->block = memory;
    place->offset = at;
    r->memory.v[memory] = MAX(r->memory.v[memory], at + size);
    err = VEC_PUSH(&p->used, (struct piece){ at, at + size, memory, last_interval(p, place) });
out:
    return err;
}

enum err vk_recording_pack(struct be_recording *r)
{
    struct packing p = { .r = r, .interval = mem_alloc_array(r->n_step, sizeof *p.interval) };
    enum err err = ERR_NO_MEMORY;

    if (!p.interval)
        return ERR_NO_MEMORY;
    r->memory.n = 0;
    TRY(find_intervals(&p));
    for (size_t i = 0; i < r->place.n; i++)
        if (r->place.v[i].kind == PLACE_INSIDE)
            TRY(fit(&p, &r->place.v[i]));
out:
    VEC_FINI(&p.used);
    VEC_FINI(&p.most);
    mem_free(p.interval);
    return err;
}
