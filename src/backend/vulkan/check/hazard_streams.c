/* Accesses of different streams. A commit is looked at when it goes to the queue: what it touches
 * must come after everything that conflicts in commits which went before it. There are three ways
 * to come after: a wait of the stream, for the commit itself or one that waited for it; the host
 * has waited, or found it over and went on without; the commit had ended when the memory was given
 * out anew or, if it only read, when the write was encoded: memory is written again only when
 * nobody holds it for reading any more.
 *
 * Order is kept as clocks: of each stream, the ticket up to which its commits have come before. */
#include "backend/vulkan/check/hazard_lanes.h"

/* A commit that went to the queue. */
struct commit {
    uint64_t ticket;
    uint64_t *clock; /* what is over when this commit is */
};

/* From an entry on, the commits of a stream up to a ticket are known to have ended. */
struct end {
    uint64_t ticket;
    size_t at;
};

struct state {
    size_t next;          /* in the lane: the first entry of a commit not looked at */
    uint64_t *clock;      /* what comes before the next dispatch */
    uint64_t *queued;     /* what will, after a barrier */
    uint64_t *over;       /* what had ended when the stream was to wait for it */
    VEC(size_t) accesses; /* of commits in the queue, in order */
    VEC(struct commit) commits;
    VEC(struct end) ends;
};

/* Memory in use since the entry with number `given`. */
struct life {
    uint64_t lo, hi;
    size_t given;
};

struct cross {
    const struct lanes *l;
    struct hazard_report *out;
    struct state *state; /* by lane */
    uint64_t *host;      /* what the host has waited for */
    size_t *given;       /* of every access: 1 + the entry that gave its memory out, 0: none did */
    struct arena arena;
};

/* ---- clocks ---- */

static uint64_t *new_clock(struct cross *c)
{
    return arena_alloc(&c->arena, (c->l->lane.n + 1) * sizeof(uint64_t));
}

static void clock_max(const struct cross *c, uint64_t *clock, const uint64_t *other)
{
    for (size_t i = 0; i < c->l->lane.n; i++)
        clock[i] = MAX(clock[i], other[i]);
}

/* Number of a stream's lane, or that of lanes if nothing was encoded on it. */
static size_t lane_number(const struct cross *c, int stream)
{
    bool has = (size_t)stream < c->l->of.n && c->l->of.v[stream] >= 0;

    return has ? (size_t)c->l->of.v[stream] : c->l->lane.n;
}

/* The newest of the lane's commits up to a ticket; NULL if there is none. */
static struct commit *commit_at(const struct cross *c, size_t lane, uint64_t ticket)
{
    struct state *s = &c->state[lane];

    for (size_t i = s->commits.n; i-- > 0;)
        if (s->commits.v[i].ticket <= ticket)
            return &s->commits.v[i];
    return NULL;
}

/* The stream's commits up to a ticket, and all that is over with them. An event of the stream is
 * recorded after what the stream found over, but needs no commit to hold it. */
static void clock_add(const struct cross *c, uint64_t *clock, int stream, uint64_t ticket)
{
    size_t lane = lane_number(c, stream);

    if (lane == c->l->lane.n)
        return;
    const struct commit *known = commit_at(c, lane, ticket);
    if (known)
        clock_max(c, clock, known->clock);
    clock_max(c, clock, c->state[lane].over);
    clock[lane] = MAX(clock[lane], ticket);
}

/* A commit has ended, and so has all that is over with it. */
static enum err take_end(const struct cross *c, size_t lane, uint64_t ticket, size_t at)
{
    const struct commit *known = commit_at(c, lane, ticket);
    enum err err = ERR_OK;

    for (size_t p = 0; known && p < c->l->lane.n; p++) {
        struct state *s = &c->state[p];
        if (known->clock[p] > (s->ends.n ? s->ends.v[s->ends.n - 1].ticket : 0))
            TRY(VEC_PUSH(&s->ends, (struct end){ known->clock[p], at }));
    }
out:
    return err;
}

/* True if the commit of an access had ended before an entry. */
static bool has_ended(const struct cross *c, const struct vk_rec *r, size_t before)
{
    const struct state *s = &c->state[lane_number(c, r->stream)];

    for (size_t i = s->ends.n; i-- > 0;)
        if (s->ends.v[i].at < before)
            return s->ends.v[i].ticket >= r->ticket;
    return false;
}

/* ---- memory ---- */

/* The range that holds addr; else where it belongs. */
static size_t life_find(const struct life *v, size_t n, uint64_t addr)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (v[mid].hi <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Walks the record once and notes which memory every access touches. */
static enum err find_given(struct cross *c)
{
    VEC(struct life) lives = { 0 };
    enum err err = ERR_OK;

    for (size_t i = 0; i < c->l->n; i++) {
        const struct vk_rec *r = &c->l->rec[i];
        size_t at = life_find(lives.v, lives.n, r->addr), end = at;
        if (rec_is_access(r)) {
            bool is_known = at < lives.n && lives.v[at].lo <= r->addr;
            c->given[i] = is_known ? lives.v[at].given + 1 : 0;
        }
        if (r->kind != VK_REC_ALLOC)
            continue;
        while (end < lives.n && lives.v[end].lo < r->addr + r->size)
            end++; /* what lay there before is over */
        TRY(VEC_RESERVE(&lives, 1));
        memmove(&lives.v[at + 1], &lives.v[end], (lives.n - end) * sizeof lives.v[0]);
        lives.n = lives.n - (end - at) + 1;
        lives.v[at] = (struct life){ r->addr, r->addr + r->size, i };
    }
out:
    VEC_FINI(&lives);
    return err;
}

/* ---- looking at a commit ---- */

/* a and b conflict, and no clock puts a before b. */
static void judge(struct cross *c, size_t a, size_t b)
{
    const struct vk_rec *ra = &c->l->rec[a], *rb = &c->l->rec[b];
    bool is_same = c->given[a] == c->given[b];

    if (ra->kind == VK_REC_READ ? has_ended(c, ra, b) : !is_same && has_ended(c, ra, c->given[b]))
        return;
    if (is_same)
        c->out->cross++;
    else
        c->out->reused++;
    hazard_found(c->out, is_same ? "no wait between streams" : "memory reused while in use", ra,
                 rb);
}

static void check_access(struct cross *c, size_t lane, size_t b)
{
    const struct state *self = &c->state[lane];

    for (size_t p = 0; p < c->l->lane.n; p++) {
        const struct state *other = &c->state[p];
        uint64_t over = MAX(self->clock[p], c->host[p]);
        if (p == lane)
            continue;
        for (size_t i = other->accesses.n; i-- > 0;) {
            size_t a = other->accesses.v[i];
            if (c->l->rec[a].ticket <= over)
                break;
            if (rec_conflict(&c->l->rec[a], &c->l->rec[b]))
                judge(c, a, b);
        }
    }
}

static enum err take_entry(struct cross *c, size_t lane, size_t i)
{
    const struct vk_rec *r = &c->l->rec[i];
    struct state *s = &c->state[lane];

    if (r->kind == VK_REC_WAIT || r->kind == VK_REC_OVER)
        clock_add(c, s->clock, r->other, r->other_ticket);
    else if (r->kind == VK_REC_QUEUED)
        clock_add(c, s->queued, r->other, r->other_ticket);
    if (!rec_is_access(r) || !c->l->epoch[i])
        return ERR_OK;
    check_access(c, lane, i);
    return VEC_PUSH(&s->accesses, i);
}

/* The accesses of a dispatch are recorded before the barrier that it needs: the barrier comes to
 * bear when the first of them is looked at. */
static bool has_barrier(const struct cross *c, const struct lane *lane, size_t p)
{
    for (; p < lane->at.n && c->l->rec[lane->at.v[p]].kind != VK_REC_DISPATCH; p++)
        if (c->l->rec[lane->at.v[p]].kind == VK_REC_BARRIER)
            return true;
    return false;
}

static enum err take_commit(struct cross *c, size_t number, uint64_t ticket)
{
    const struct lane *lane = &c->l->lane.v[number];
    struct state *s = &c->state[number];
    struct commit made = { .ticket = ticket, .clock = new_clock(c) };
    enum err err = ERR_NO_MEMORY;
    bool begins = true; /* the accesses of a dispatch */

    if (!made.clock)
        goto out;
    err = ERR_OK;
    for (; s->next < lane->at.n && c->l->rec[lane->at.v[s->next]].ticket <= ticket; s->next++) {
        size_t i = lane->at.v[s->next];
        if (c->l->rec[i].ticket < ticket)
            continue; /* of a commit that failed */
        if (begins && rec_is_access(&c->l->rec[i])) {
            if (has_barrier(c, lane, s->next))
                clock_max(c, s->clock, s->queued);
            begins = false;
        }
        begins |= c->l->rec[i].kind == VK_REC_DISPATCH;
        TRY(take_entry(c, number, i));
    }
    clock_max(c, made.clock, s->clock);
    clock_max(c, made.clock, s->queued); /* the queue finishes in order */
    clock_max(c, made.clock, c->host);
    made.clock[number] = ticket;
    TRY(VEC_PUSH(&s->commits, made));
out:
    return err;
}

static enum err take_record(struct cross *c)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < c->l->n; i++) {
        const struct vk_rec *r = &c->l->rec[i];
        size_t lane = lane_number(c, r->stream);
        if (lane == c->l->lane.n)
            continue;
        if (r->kind == VK_REC_SUBMIT)
            TRY(take_commit(c, lane, r->ticket));
        else if (r->kind == VK_REC_RETIRE)
            TRY(take_end(c, lane, r->ticket, i));
        else if (r->kind == VK_REC_SEEN)
            clock_add(c, c->host, r->stream, r->ticket);
        else if (r->kind == VK_REC_OVER)
            clock_add(c, c->state[lane].over, r->other, r->other_ticket);
    }
out:
    return err;
}

enum err hazard_check_streams(struct hazard_report *out, const struct lanes *l)
{
    struct cross c = { .l = l, .out = out };
    enum err err = ERR_NO_MEMORY;

    c.state = mem_alloc_array(l->lane.n + 1, sizeof *c.state);
    c.given = mem_alloc_array(l->n + 1, sizeof *c.given);
    c.host = new_clock(&c);
    if (!c.state || !c.given || !c.host)
        goto out;
    for (size_t i = 0; i < l->lane.n; i++) {
        c.state[i].clock = new_clock(&c);
        c.state[i].queued = new_clock(&c);
        c.state[i].over = new_clock(&c);
        if (!c.state[i].clock || !c.state[i].queued || !c.state[i].over)
            goto out;
    }
    TRY(find_given(&c));
    err = take_record(&c);
out:
    for (size_t i = 0; c.state && i < l->lane.n; i++) {
        VEC_FINI(&c.state[i].accesses);
        VEC_FINI(&c.state[i].commits);
        VEC_FINI(&c.state[i].ends);
    }
    mem_free(c.state);
    mem_free(c.given);
    arena_fini(&c.arena);
    return err;
}
