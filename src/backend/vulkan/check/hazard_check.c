#include "backend/vulkan/check/hazard_check.h"

#include <stdio.h>

#include "backend/vulkan/check/hazard_lanes.h"

bool rec_conflict(const struct vk_rec *a, const struct vk_rec *b)
{
    if (a->kind == VK_REC_READ && b->kind == VK_REC_READ)
        return false;
    if (a->kind == VK_REC_WRITE && b->kind == VK_REC_WRITE && a->group && a->group == b->group)
        return false;
    return a->addr < b->addr + b->size && b->addr < a->addr + a->size;
}

void hazard_found(struct hazard_report *out, const char *what, const struct vk_rec *a,
                  const struct vk_rec *b)
{
    if (!out->text[0])
        snprintf(out->text, sizeof out->text,
                 "%s: stream %d dispatch %llu [%#llx + %llu), stream %d dispatch %llu [%#llx + "
                 "%llu)",
                 what, a->stream, (unsigned long long)a->dispatch, (unsigned long long)a->addr,
                 (unsigned long long)a->size, b->stream, (unsigned long long)b->dispatch,
                 (unsigned long long)b->addr, (unsigned long long)b->size);
}

/* ---- lanes ---- */

static enum err lane_of(struct lane **out, struct lanes *l, int stream)
{
    enum err err = ERR_OK;

    while (l->of.n <= (size_t)stream)
        TRY(VEC_PUSH(&l->of, -1));
    if (l->of.v[stream] < 0) {
        TRY(VEC_PUSH(&l->lane, (struct lane){ .stream = stream }));
        l->of.v[stream] = (int)l->lane.n - 1;
    }
    *out = &l->lane.v[l->of.v[stream]];
out:
    return err;
}

/* An access belongs to the epoch in which its dispatch runs: barriers are recorded after the
 * accesses of the dispatch that they precede. */
static void number_epochs(struct lanes *l, const struct lane *lane)
{
    uint32_t now = 1;
    size_t first = 0; /* where the accesses of the next dispatch may begin */

    for (size_t p = 0; p < lane->at.n; p++) {
        size_t i = lane->at.v[p];
        const struct vk_rec *r = &l->rec[i];
        if (r->kind == VK_REC_BARRIER || r->kind == VK_REC_SYNC) {
            l->epoch[i] = ++now;
        } else if (r->kind == VK_REC_DISPATCH) {
            for (size_t q = first; q < p; q++) {
                const struct vk_rec *a = &l->rec[lane->at.v[q]];
                if (rec_is_access(a) && a->dispatch == r->dispatch)
                    l->epoch[lane->at.v[q]] = now;
            }
            l->epoch[i] = now;
            first = p + 1;
        }
    }
}

enum err lanes_init(struct lanes *l, const struct vk_rec *rec, size_t n)
{
    enum err err = ERR_OK;

    *l = (struct lanes){ .rec = rec, .n = n, .epoch = mem_alloc_array(n, sizeof *l->epoch) };
    if (!l->epoch)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        struct lane *lane;
        if (rec[i].kind >= VK_REC_SUBMIT)
            continue;
        TRY(lane_of(&lane, l, rec[i].stream));
        TRY(VEC_PUSH(&lane->at, i));
    }
    for (size_t i = 0; i < l->lane.n; i++)
        number_epochs(l, &l->lane.v[i]);
out:
    return err;
}

void lanes_fini(struct lanes *l)
{
    for (size_t i = 0; i < l->lane.n; i++)
        VEC_FINI(&l->lane.v[i].at);
    VEC_FINI(&l->lane);
    VEC_FINI(&l->of);
    mem_free(l->epoch);
}

/* ---- within a stream ---- */

struct check {
    const struct lanes *l;
    const struct lane *lane;
    struct hazard_report *out;
};

static const struct vk_rec *entry(const struct check *c, size_t p)
{
    return &c->l->rec[c->lane->at.v[p]];
}

static uint32_t epoch_at(const struct check *c, size_t p)
{
    return c->l->epoch[c->lane->at.v[p]];
}

static void find_hazards(const struct check *c, size_t p)
{
    const struct vk_rec *b = entry(c, p);

    for (size_t q = p; q-- > 0;) {
        const struct vk_rec *a = entry(c, q);
        if (!rec_is_access(a) || !epoch_at(c, q))
            continue;
        if (epoch_at(c, q) < epoch_at(c, p))
            break;
        if (a->dispatch == b->dispatch || !rec_conflict(a, b))
            continue;
        if (a->kind == VK_REC_READ)
            c->out->war++;
        else if (b->kind == VK_REC_READ)
            c->out->raw++;
        else
            c->out->waw++;
        hazard_found(c->out, "hazard", a, b);
    }
}

/* True if the access at p conflicts with one of the epoch before its own. */
static bool conflicts_before(const struct check *c, size_t p)
{
    for (size_t q = p; q-- > 0;) {
        if (!rec_is_access(entry(c, q)) || !epoch_at(c, q))
            continue;
        if (epoch_at(c, q) + 1 < epoch_at(c, p))
            return false;
        if (epoch_at(c, q) + 1 == epoch_at(c, p) && rec_conflict(entry(c, q), entry(c, p)))
            return true;
    }
    return false;
}

/* The barrier at p was needed if the dispatch behind it, whose accesses stand before it, conflicts
 * with the epoch before, or if another stream's work had to come first. */
static void judge_barrier(const struct check *c, size_t p)
{
    for (size_t q = p; q-- > 0;) {
        const struct vk_rec *r = entry(c, q);
        if (r->kind == VK_REC_DISPATCH)
            break;
        if (r->kind == VK_REC_ORDER ||
            (rec_is_access(r) && epoch_at(c, q) && conflicts_before(c, q)))
            return;
    }
    c->out->needless++;
    hazard_found(c->out, "needless barrier", entry(c, p), entry(c, p));
}

static void check_lane(const struct check *c)
{
    for (size_t p = 0; p < c->lane->at.n; p++) {
        const struct vk_rec *r = entry(c, p);
        c->out->dispatches += r->kind == VK_REC_DISPATCH;
        c->out->barriers += r->kind == VK_REC_BARRIER;
        if (rec_is_access(r) && epoch_at(c, p))
            find_hazards(c, p);
        else if (r->kind == VK_REC_BARRIER)
            judge_barrier(c, p);
    }
}

enum err hazard_check(struct hazard_report *out, const struct vk_rec *rec, size_t n)
{
    struct lanes l;
    enum err err;

    *out = (struct hazard_report){ 0 };
    TRY(lanes_init(&l, rec, n));
    for (size_t i = 0; i < l.lane.n; i++)
        check_lane(&(struct check){ &l, &l.lane.v[i], out });
    err = hazard_check_streams(out, &l);
out:
    lanes_fini(&l);
    return err;
}
