#include "dist/group.h"

#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "dist/comm.h"
#include "dist/world.h"

/* MLX's names. The first is served by those that are there, in order. */
enum backend { ANY, MPI, RING, NCCL, JACCL, BACKENDS };
static const char *const backend_names[BACKENDS] = { "any", "mpi", "ring", "nccl", "jaccl" };

static enum backend find_backend(const char *name)
{
    int i = 0;

    while (i < BACKENDS && strcmp(backend_names[i], name ? name : "any") != 0)
        i++;
    return (enum backend)i;
}

bool dist_is_available(const char *backend)
{
    enum backend b = find_backend(backend);

    return (b == ANY || b == MPI) && world_open() == ERR_OK;
}

/* ---- making groups ---- */

static enum err new_alone(struct dist_group **out)
{
    struct dist_group *g = mem_alloc(sizeof *g);

    if (!g)
        return ERR_NO_MEMORY;
    atomic_init(&g->rc, 1);
    g->size = 1;
    *out = g;
    return ERR_OK;
}

static void free_comm(const struct world *w, struct mpi_handle comm)
{
    if (!process_is_ending())
        w->mpi->comm_free(comm);
}

/* Around comm, which it takes over, also when it fails. */
static enum err new_mpi(struct dist_group **out, const struct world *w, struct mpi_handle comm)
{
    struct mpi_group *g = mem_alloc(sizeof *g);
    enum err err = ERR_NO_MEMORY;
    int code = MPI_OK;

    if (!g)
        goto out;
    g->comm = comm;
    code = w->mpi->comm_place(comm, &g->base.rank, &g->base.size);
    if (code == MPI_OK && !(g->words = mem_alloc_array((size_t)g->base.size, sizeof *g->words)))
        goto out;
    if (code == MPI_OK)
        code = w->mpi->comm_dup(&g->control, comm);
    if (code != MPI_OK) {
        err = world_failed(w, "mpi", code);
        goto out;
    }
    atomic_init(&g->base.rc, 1);
    g->base.is_mpi = true;
    g->world = w;
    pthread_mutex_init(&g->comm_lock, NULL);
    *out = &g->base;
    return ERR_OK;
out:
    free_comm(w, comm);
    if (g)
        mem_free(g->words);
    mem_free(g);
    return err;
}

void dist_unref(struct dist_group **pg)
{
    struct dist_group *g = *pg;

    *pg = NULL;
    if (!g || !ref_dec(&g->rc))
        return;
    if (g->is_mpi) {
        struct mpi_group *m = (struct mpi_group *)g;
        world_lock(m->world);
        free_comm(m->world, m->comm);
        free_comm(m->world, m->control);
        world_unlock(m->world);
        pthread_mutex_destroy(&m->comm_lock);
        mem_free(m->words);
    }
    mem_free(g);
}

enum err dist_split(struct dist_group **out, struct dist_group *group, int color, int key)
{
    struct mpi_group *g = (struct mpi_group *)group;
    struct mpi_handle comm;
    enum err err = process_check();

    if (err)
        return err;
    if (!group->is_mpi)
        return err_set(ERR_RUNTIME, "Cannot split the distributed group further.");
    const struct world *w = g->world;
    world_lock(w);
    int code = w->mpi->comm_split(&comm, g->control, color < 0 ? MPI_NO_COLOR : color,
                                  key < 0 ? group->rank : key);
    if (code != MPI_OK || color < 0)
        err = err_set(ERR_RUNTIME, "MPI could not split this group");
    else
        err = new_mpi(out, w, comm);
    world_unlock(w);
    return err;
}

/* ---- the group of all ---- */

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two */
static struct dist_group *known[BACKENDS];
static struct dist_group *everybody; /* where MPI is ours to end */
static const struct world *begun;

/* A process that fails takes the others with it: they would wait for it for ever. One that ends
 * well waits for them. */
static void farewell(int status)
{
    const struct mpi *m = begun->mpi;
    int over = 0;

    if (m->finalized(&over) != MPI_OK || over)
        return;
    if (!everybody || (status == 0 && !comm_is_broken() && comm_leave(everybody))) {
        world_end();
        return;
    }
    fflush(NULL); /* what was said last: MPI ends the process at once */
    m->abort(status ? status : 1);
}

static enum err begin(struct dist_group **out)
{
    const struct world *w;
    struct mpi_handle comm;
    enum err err;

    TRY(world_begin(&w));
    if (w->ours && !begun) {
        begun = w;
        process_set_farewell(farewell);
    }
    int rank, size = 1, code = w->mpi->comm_place(w->mpi->object(MPI_OBJECT_WORLD), &rank, &size);
    if (code == MPI_OK && size <= 1) {
        err = err_set(ERR_RUNTIME, "[mpi] The world has a single process. Launch with mpirun to "
                                   "initialize the mpi backend.");
        goto out;
    }
    /* A copy: what the program itself sends does not get in the way. */
    if (code == MPI_OK)
        code = w->mpi->comm_dup(&comm, w->mpi->object(MPI_OBJECT_WORLD));
    if (code != MPI_OK) {
        err = world_failed(w, "mpi", code);
        goto out;
    }
    TRY(new_mpi(out, w, comm));
    if (w->ours)
        everybody = *out;
out:
    return err;
}

/* "any" does not begin MPI in a process that was started by itself: that takes a while, and some
 * libraries end a process that is alone. */
static enum err find_group(struct dist_group **out, enum backend b, bool strict)
{
    if (b != ANY && b != MPI)
        return err_set(ERR_RUNTIME,
                       "Cannot initialize %s distributed backend. Of the backends this library "
                       "has mpi.",
                       backend_names[b]);
    if (b == ANY && !strict && !world_is_launched())
        return ERR_RUNTIME;
    enum err err = begin(out);
    if (err && b == ANY) {
        struct err_note why = { 0 };
        err_note_take(&why, err);
        return err_set(ERR_RUNTIME, "[distributed] Couldn't initialize any backend: %.400s",
                       why.text);
    }
    return err;
}

/* Of those that failed the group of one is kept as well, but for "any"; it is not what strict asks
 * for. */
static enum err init(struct dist_group **out, enum backend b, bool strict)
{
    struct dist_group *g = NULL;
    enum err err;

    if (known[b] && (known[b]->is_mpi || !strict)) {
        *out = dist_ref(known[b]);
        return ERR_OK;
    }
    err = find_group(&g, b, strict);
    if (err && !strict)
        err = new_alone(&g);
    if (err)
        return err;
    if (b != ANY && !known[b])
        known[b] = dist_ref(g);
    for (int i = ANY; i <= MPI && g->is_mpi; i++)
        if (!known[i])
            known[i] = dist_ref(g);
    *out = g;
    return ERR_OK;
}

enum err dist_init(struct dist_group **out, const char *backend, bool strict)
{
    enum backend b = find_backend(backend);
    enum err err = process_check();

    if (err)
        return err;
    if (b == BACKENDS)
        return err_set(ERR_ARG,
                       "[distributed] The only valid values for backend are 'any', 'mpi', 'nccl', "
                       "'jaccl' and 'ring' but '%s' was provided.",
                       backend);
    pthread_mutex_lock(&init_lock);
    err = init(out, b, strict);
    pthread_mutex_unlock(&init_lock);
    return err;
}
