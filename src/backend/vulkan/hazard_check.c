#include "backend/vulkan/hazard_check.h"

#include <stdio.h>

#include "core/mem.h"

/* Epochs are the stretches between barriers, numbered from 1 over all streams; 0 marks entries that
 * do not take part (accesses that were never dispatched). */
struct check {
    const struct vk_rec *rec;
    size_t n;
    uint32_t *epoch;
    struct hazard_report *out;
};

static bool is_access(const struct vk_rec *r)
{
    return r->kind == VK_REC_READ || r->kind == VK_REC_WRITE;
}

static bool conflict(const struct vk_rec *a, const struct vk_rec *b)
{
    if (a->kind == VK_REC_READ && b->kind == VK_REC_READ)
        return false;
    if (a->kind == VK_REC_WRITE && b->kind == VK_REC_WRITE && a->group && a->group == b->group)
        return false;
    return a->addr < b->addr + b->size && b->addr < a->addr + a->size;
}

static void report(struct hazard_report *out, const char *what, const struct vk_rec *a,
                   const struct vk_rec *b)
{
    if (!out->text[0])
        snprintf(out->text, sizeof out->text,
                 "%s: stream %d, dispatches %llu and %llu, [%#llx + %llu) and [%#llx + %llu)", what,
                 b->stream, (unsigned long long)a->dispatch, (unsigned long long)b->dispatch,
                 (unsigned long long)a->addr, (unsigned long long)a->size,
                 (unsigned long long)b->addr, (unsigned long long)b->size);
}

/* An access belongs to the epoch in which its dispatch runs: barriers are recorded after the
 * accesses of the dispatch that they precede. */
static void number_epochs(struct check *c, int stream, uint32_t *epochs)
{
    uint32_t now = ++*epochs;
    size_t first = 0; /* where the accesses of the next dispatch may begin */

    for (size_t i = 0; i < c->n; i++) {
        const struct vk_rec *r = &c->rec[i];
        if (r->stream != stream)
            continue;
        if (r->kind == VK_REC_BARRIER || r->kind == VK_REC_SYNC) {
            now = ++*epochs;
            c->epoch[i] = now;
        } else if (r->kind == VK_REC_DISPATCH) {
            for (size_t j = first; j < i; j++)
                if (c->rec[j].stream == stream && is_access(&c->rec[j]) &&
                    c->rec[j].dispatch == r->dispatch)
                    c->epoch[j] = now;
            c->epoch[i] = now;
            first = i + 1;
        }
    }
}

static void find_hazards(struct check *c, size_t i)
{
    const struct vk_rec *b = &c->rec[i];

    for (size_t j = i; j-- > 0;) {
        const struct vk_rec *a = &c->rec[j];
        if (a->stream != b->stream || !is_access(a) || !c->epoch[j])
            continue;
        if (c->epoch[j] < c->epoch[i])
            break;
        if (a->dispatch == b->dispatch || !conflict(a, b))
            continue;
        if (a->kind == VK_REC_READ)
            c->out->war++;
        else if (b->kind == VK_REC_READ)
            c->out->raw++;
        else
            c->out->waw++;
        report(c->out, "hazard", a, b);
    }
}

/* True if the access at k conflicts with one of the epoch before its own. */
static bool conflicts_before(const struct check *c, size_t k)
{
    for (size_t j = k; j-- > 0;) {
        if (c->rec[j].stream != c->rec[k].stream || !is_access(&c->rec[j]) || !c->epoch[j])
            continue;
        if (c->epoch[j] + 1 < c->epoch[k])
            return false;
        if (c->epoch[j] + 1 == c->epoch[k] && conflict(&c->rec[j], &c->rec[k]))
            return true;
    }
    return false;
}

/* Entry i is a barrier. It was needed if the dispatch behind it, whose accesses stand before it,
 * conflicts with the epoch before, or if another stream's work had to come first. */
static void judge_barrier(struct check *c, size_t i)
{
    const struct vk_rec *barrier = &c->rec[i];

    for (size_t k = i; k-- > 0;) {
        const struct vk_rec *r = &c->rec[k];
        if (r->stream != barrier->stream)
            continue;
        if (r->kind == VK_REC_DISPATCH)
            break;
        if (r->kind == VK_REC_ORDER || (is_access(r) && c->epoch[k] && conflicts_before(c, k)))
            return;
    }
    c->out->needless++;
    report(c->out, "needless barrier", barrier, barrier);
}

static bool stream_seen(const struct check *c, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (c->rec[j].stream == c->rec[i].stream)
            return true;
    return false;
}

enum err hazard_check(struct hazard_report *out, const struct vk_rec *rec, size_t n)
{
    struct check c = { rec, n, mem_alloc_array(n, sizeof *c.epoch), out };
    uint32_t epochs = 0;

    *out = (struct hazard_report){ 0 };
    if (!c.epoch)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        if (!stream_seen(&c, i))
            number_epochs(&c, rec[i].stream, &epochs);
    for (size_t i = 0; i < n; i++) {
        out->dispatches += rec[i].kind == VK_REC_DISPATCH;
        out->barriers += rec[i].kind == VK_REC_BARRIER;
        if (is_access(&rec[i]) && c.epoch[i])
            find_hazards(&c, i);
        else if (rec[i].kind == VK_REC_BARRIER)
            judge_barrier(&c, i);
    }
    mem_free(c.epoch);
    return ERR_OK;
}
