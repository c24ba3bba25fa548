#include "dist/comm.h"

#include <stdatomic.h>
#include <string.h>

#include "base/gate.h"
#include "dist/world.h"

/* Instead of a kind. */
enum { HAS_FAILED = COMM_KINDS, IS_LEAVING };

static const char *const kind_names[COMM_KINDS] = {
    [COMM_SUM] = "all_sum",       [COMM_MAX] = "all_max",         [COMM_MIN] = "all_min",
    [COMM_GATHER] = "all_gather", [COMM_SCATTER] = "sum_scatter", [COMM_SEND] = "send",
    [COMM_RECV] = "recv",
};

const char *comm_name(enum comm_kind kind)
{
    return kind_names[kind];
}

static atomic_bool is_broken;

bool comm_is_broken(void)
{
    return atomic_load(&is_broken);
}

static struct mpi_group *mpi_of(struct dist_group *g)
{
    return (struct mpi_group *)g;
}

/* ---- reductions of our own ---- */

static _Atomic comm_combine_fn combine;

void mpi_combine(enum mpi_reduction r, struct mpi_handle type, void *acc, const void *in, int n)
{
    static const uint8_t kinds[] = {
        [MPI_REDUCE_SUM] = COMM_SUM, [MPI_REDUCE_MAX] = COMM_MAX, [MPI_REDUCE_MIN] = COMM_MIN
    };
    const struct world *w = world_get();
    int t = 0;

    while (t < DT_COUNT - 1 && w->type[t].v != type.v)
        t++;
    if (n > 0)
        atomic_load (&combine)((enum comm_kind)kinds[r], (enum dtype)t, acc, in, (size_t)n);
}

/* MPI's own where it says what the result is: integers, and sums. */
static struct mpi_handle op_of(const struct world *w, const struct comm_call *c)
{
    static const uint8_t objects[] = { [MPI_REDUCE_SUM] = MPI_OBJECT_SUM,
                                       [MPI_REDUCE_MAX] = MPI_OBJECT_MAX,
                                       [MPI_REDUCE_MIN] = MPI_OBJECT_MIN };
    enum mpi_reduction r = c->kind == COMM_MAX   ? MPI_REDUCE_MAX
                           : c->kind == COMM_MIN ? MPI_REDUCE_MIN
                                                 : MPI_REDUCE_SUM;
    bool is_wide = c->dtype == DT_FLOAT32 || c->dtype == DT_FLOAT64;

    if (dt_is_integer(c->dtype) || (is_wide && r == MPI_REDUCE_SUM))
        return w->mpi->object((enum mpi_object)objects[r]);
    return w->op[r];
}

/* ---- agreement ---- */

static enum err has_failed(const struct comm_call *c)
{
    return err_set(ERR_RUNTIME, "[%s] What it depends on has failed.", comm_name(c->kind));
}

static enum err differs(const struct mpi_group *g, const struct comm_call *c, int other)
{
    const struct comm_word *w = &g->words[other];
    const char *op = comm_name(c->kind);

    if (w->what == HAS_FAILED)
        return err_set(ERR_RUNTIME, "[%s] Process %d of the group has failed.", op, other);
    if (w->what == IS_LEAVING)
        return err_set(ERR_RUNTIME, "[%s] Process %d of the group has ended.", op, other);
    return err_set(ERR_RUNTIME,
                   "[%s] Process %d of the group takes part with %s of %lld elements of %s, this "
                   "one with %s of %zu of %s.",
                   op, other, kind_names[w->what], (long long)w->n, dt_name((enum dtype)w->dtype),
                   op, c->n, dt_name(c->dtype));
}

static int exchange(struct mpi_group *g, const struct comm_word *mine)
{
    const struct mpi *m = g->world->mpi;

    return m->all_gather(&(struct mpi_move){ .in = mine,
                                             .out = g->words,
                                             .n = sizeof *mine,
                                             .type = m->object(MPI_OBJECT_BYTE),
                                             .comm = g->comm });
}

/* ERR_OK if all are about to do the same. */
static enum err agree(struct mpi_group *g, const struct comm_call *c)
{
    struct comm_word mine = { c->kind, (int32_t)c->dtype, (int64_t)c->n };

    if (!gate_on(GATE_DIST_CHECK))
        return ERR_OK;
    if (c->has_failed)
        mine.what = HAS_FAILED;
    int code = exchange(g, &mine);
    if (code != MPI_OK) {
        atomic_store(&is_broken, true);
        return world_failed(g->world, comm_name(c->kind), code);
    }
    if (c->has_failed)
        return has_failed(c);
    for (int i = 0; i < g->base.size; i++)
        if (memcmp(&g->words[i], &mine, sizeof mine) != 0)
            return differs(g, c, i);
    return ERR_OK;
}

bool comm_leave(struct dist_group *group)
{
    const struct comm_word mine = { .what = IS_LEAVING };
    struct mpi_group *g = mpi_of(group);
    int left = gate_on(GATE_DIST_CHECK) ? 0 : group->size;

    pthread_mutex_lock(&g->comm_lock);
    while (left < group->size && exchange(g, &mine) == MPI_OK)
        for (left = 0; left < group->size && g->words[left].what == IS_LEAVING;)
            left++;
    pthread_mutex_unlock(&g->comm_lock);
    return left == group->size;
}

/* ---- data, in pieces that MPI can count ---- */

struct pieces {
    const struct mpi *mpi;
    struct mpi_move move; /* without data */
    size_t item, most;    /* bytes of an element, elements of a piece */
};

static struct pieces pieces_of(const struct comm_call *c)
{
    const struct mpi_group *g = mpi_of(c->group);
    const struct world *w = g->world;

    return (struct pieces){ .mpi = w->mpi,
                            .move = { .type = w->type[c->dtype],
                                      .op = op_of(w, c),
                                      .comm = g->comm,
                                      .peer = c->peer,
                                      .tag = (int32_t)c->dtype },
                            .item = dt_size(c->dtype),
                            .most = (size_t)gate_int(GATE_DIST_CHUNK) };
}

typedef int (*move_fn)(const struct mpi_move *);

/* n elements from in and to out, each of which may be NULL. */
static int in_pieces(struct pieces *p, move_fn move, const char *in, char *out, size_t n)
{
    int code = MPI_OK;

    for (size_t i = 0; i < n && code == MPI_OK; i += p->most) {
        p->move.in = in ? in + i * p->item : NULL;
        p->move.out = out ? out + i * p->item : NULL;
        p->move.n = (int)MIN(p->most, n - i);
        code = move(&p->move);
    }
    return code;
}

static int reduce(struct pieces *p, const struct comm_call *c)
{
    return in_pieces(p, p->mpi->all_reduce, c->in == c->out ? NULL : c->in, c->out, c->n);
}

static int gather(struct pieces *p, const struct comm_call *c)
{
    size_t bytes = c->n * p->item;
    int code = MPI_OK;

    if (c->n <= p->most)
        return in_pieces(p, p->mpi->all_gather, c->in, c->out, c->n);
    memcpy((char *)c->out + (size_t)c->group->rank * bytes, c->in, bytes);
    for (int i = 0; i < c->group->size && code == MPI_OK; i++) {
        p->move.peer = i;
        code = in_pieces(p, p->mpi->broadcast, NULL, (char *)c->out + (size_t)i * bytes, c->n);
    }
    return code;
}

static int scatter(struct pieces *p, const struct comm_call *c)
{
    size_t part = c->n / (size_t)c->group->size;
    int code = MPI_OK;

    if (c->n <= p->most)
        return in_pieces(p, p->mpi->scatter, c->in, c->out, part);
    for (int i = 0; i < c->group->size && code == MPI_OK; i++) {
        p->move.peer = i;
        code = in_pieces(p, p->mpi->reduce, (const char *)c->in + (size_t)i * part * p->item,
                         c->out, part);
    }
    return code;
}

static enum err collective(const struct comm_call *c)
{
    static int (*const fns[])(struct pieces *, const struct comm_call *) = {
        [COMM_SUM] = reduce,    [COMM_MAX] = reduce,      [COMM_MIN] = reduce,
        [COMM_GATHER] = gather, [COMM_SCATTER] = scatter,
    };
    struct mpi_group *g = mpi_of(c->group);
    struct pieces p = pieces_of(c);
    enum err err;

    TRY(agree(g, c));
    if (c->has_failed)
        return has_failed(c);
    int code = fns[c->kind](&p, c);
    if (code != MPI_OK) {
        atomic_store(&is_broken, true);
        err = world_failed(g->world, comm_name(c->kind), code);
    }
out:
    return err;
}

/* ---- from one process to another ---- */

/* Instead of the tag of a dtype: there is nothing to send, and the other need not wait. */
#define TAG_FAILED DT_COUNT

static enum err send(const struct comm_call *c)
{
    struct pieces p = pieces_of(c);
    int code;

    if (c->has_failed) {
        p.move.tag = TAG_FAILED;
        p.move.in = c->group; /* of which nothing is read */
        code = p.mpi->send(&p.move);
        return has_failed(c);
    }
    code = in_pieces(&p, p.mpi->send, c->in, NULL, c->n);
    return code == MPI_OK ? ERR_OK : world_failed(mpi_of(c->group)->world, "send", code);
}

static enum err receive(const struct comm_call *c)
{
    struct pieces p = pieces_of(c);
    struct mpi_move *m = &p.move;

    m->tag = MPI_ANY;
    for (size_t i = 0; i < c->n; i += p.most) {
        struct mpi_came came = { 0 };
        m->out = (char *)c->out + i * p.item;
        m->n = (int)MIN(p.most, c->n - i);
        int code = p.mpi->receive(m, &came);
        if (code != MPI_OK)
            return world_failed(mpi_of(c->group)->world, "recv", code);
        if (came.tag == TAG_FAILED)
            return err_set(ERR_RUNTIME, "[recv] Process %d of the group has failed.", c->peer);
        if (came.tag != (int)c->dtype)
            return err_set(ERR_RUNTIME, "[recv] Process %d of the group sent %s, not %s.", c->peer,
                           dt_name((enum dtype)came.tag), dt_name(c->dtype));
        if (came.n != m->n)
            return err_set(ERR_RUNTIME, "[recv] Process %d of the group sent %d elements, not %d.",
                           c->peer, came.n, m->n);
    }
    return ERR_OK;
}

enum err comm_run(const struct comm_call *c)
{
    struct mpi_group *g = mpi_of(c->group);
    bool is_pair = c->kind == COMM_SEND || c->kind == COMM_RECV;
    enum err err;

    atomic_store(&combine, c->combine);
    if (!is_pair)
        pthread_mutex_lock(&g->comm_lock);
    world_lock(g->world);
    err = !is_pair ? collective(c) : c->kind == COMM_SEND ? send(c) : receive(c);
    world_unlock(g->world);
    if (!is_pair)
        pthread_mutex_unlock(&g->comm_lock);
    return err;
}
