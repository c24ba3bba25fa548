#include "dist/world.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/gate.h"

static struct world world;
static char why_not[ERR_TEXT_MAX]; /* "": it is open */

/* ---- the library ---- */

/* Open MPI 4 and 5, MPICH on Debian, MPICH elsewhere and its relatives. The name without a number
 * is that of any of them, where something to build with is installed. */
static const char *const names[] = { "libmpi.so.40", "libmpich.so.12", "libmpi.so.12",
                                     "libmpi.so" };
#define FIRST_OF_MPICH 1

/* The launcher's variables say whose processes these are; the library must be the same. */
static void *open_installed(void)
{
    bool is_mpich = gate_text(GATE_PMI_RANK) && !gate_text(GATE_OMPI_COMM_WORLD_SIZE);
    size_t first = is_mpich ? FIRST_OF_MPICH : 0;
    void *library = NULL;

    /* Plugins of Open MPI want to see its symbols. */
    for (size_t i = 0; i < ARRAY_LEN(names) && !library; i++)
        library = dlopen(names[(first + i) % ARRAY_LEN(names)], RTLD_NOW | RTLD_GLOBAL);
    return library;
}

/* A program that uses MPI itself has loaded it. */
static void *open_library(void)
{
    const char *name = gate_text(GATE_MPI_LIBRARY);
    void *program = dlopen(NULL, RTLD_NOW);

    if (name)
        return dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    return program && dlsym(program, "MPI_Init_thread") ? program : open_installed();
}

static bool is_of(const struct mpi *m, void *library)
{
    enum { LENGTH = 8192 }; /* MPICH's own limit */
    static char text[LENGTH];
    int (*get_version)(char *, int *);
    int n = 0;

    if (m->mark)
        return dlsym(library, m->mark);
    void *symbol = dlsym(library, m->version);
    if (!symbol)
        return false;
    memcpy(&get_version, &symbol, sizeof symbol);
    return get_version(text, &n) == MPI_OK &&
           (strstr(text, "MPICH") || strstr(text, "Intel") || strstr(text, "MVAPICH"));
}

static void open_once(void)
{
    static const struct mpi *const known[] = { &mpi_open_mpi, &mpi_mpich };
    void *library = open_library();
    const char *missing;

    if (!library) {
        snprintf(why_not, sizeof why_not, "no MPI library: %s", dlerror());
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(known) && !world.mpi; i++)
        if (is_of(known[i], library))
            world.mpi = known[i];
    if (!world.mpi)
        snprintf(why_not, sizeof why_not,
                 "the MPI library is neither Open MPI nor one of MPICH's ABI");
    else if (!world.mpi->load(library, &missing))
        snprintf(why_not, sizeof why_not, "the MPI library, %s, has no %s", world.mpi->name,
                 missing);
}

enum err world_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_once);
    return why_not[0] ? err_set(ERR_UNSUPPORTED, "%s", why_not) : ERR_OK;
}

const struct world *world_get(void)
{
    return &world;
}

bool world_is_launched(void)
{
    return gate_text(GATE_OMPI_COMM_WORLD_SIZE) || gate_text(GATE_PMI_RANK) ||
           gate_text(GATE_PMIX_RANK);
}

/* ---- calls ---- */

static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;

void world_lock(const struct world *w)
{
    if (w->serial)
        pthread_mutex_lock(&call_lock);
}

void world_unlock(const struct world *w)
{
    if (w->serial)
        pthread_mutex_unlock(&call_lock);
}

enum err world_failed(const struct world *w, const char *op, int code)
{
    char text[MPI_TEXT_MAX];

    w->mpi->error_text(code, text);
    return err_set(ERR_RUNTIME, "[%s] %s: %.400s", op, w->mpi->name, text);
}

/* ---- its beginning ---- */

static enum err begin_or_join(int *level)
{
    const struct mpi *m = world.mpi;
    int begun = 0, over = 0, code = m->initialized(&begun);

    if (code == MPI_OK)
        code = m->finalized(&over);
    if (code == MPI_OK && over)
        return err_set(ERR_RUNTIME, "[mpi] The program has ended MPI already.");
    if (code == MPI_OK)
        code = begun ? m->level(level) : m->init(MPI_LEVEL_MULTIPLE, level);
    if (code != MPI_OK)
        return world_failed(&world, "mpi", code);
    world.ours = !begun;
    return ERR_OK;
}

/* Types and reductions of our own are for where MPI has none, or none with our rules: NaN, complex
 * numbers, bool. */
static const uint8_t type_of_mpi[DT_COUNT] = {
#define ELEMENT(dtype, symbol, number) [DT_##dtype] = MPI_OBJECT_##dtype,
#include "dist/mpi_objects.def"
};

static enum err make_objects(void)
{
    const struct mpi *m = world.mpi;
    int code = MPI_OK;

    for (int t = 0; t < DT_COUNT && code == MPI_OK; t++)
        if (type_of_mpi[t])
            world.type[t] = m->object((enum mpi_object)type_of_mpi[t]);
        else
            code = m->type_new(&world.type[t], (int)dt_size((enum dtype)t));
    for (int r = 0; r < MPI_REDUCTIONS && code == MPI_OK; r++)
        code = m->op_new(&world.op[r], (enum mpi_reduction)r);
    return code == MPI_OK ? ERR_OK : world_failed(&world, "mpi", code);
}

enum err world_begin(const struct world **out)
{
    static bool has_begun;
    int level = 0;
    enum err err;

    TRY(world_open());
    if (!has_begun) {
        TRY(begin_or_join(&level));
        if (level < MPI_LEVEL_SERIALIZED) {
            err = err_set(ERR_UNSUPPORTED, "[mpi] MPI was begun for one thread only; it takes "
                                           "MPI_Init_thread with MPI_THREAD_MULTIPLE.");
            goto out;
        }
        world.serial = level < MPI_LEVEL_MULTIPLE;
        TRY(make_objects());
        has_begun = true;
    }
    *out = &world;
out:
    return err;
}

void world_end(void)
{
    const struct mpi *m = world.mpi;

    for (int t = 0; t < DT_COUNT; t++)
        if (!type_of_mpi[t])
            m->type_free(world.type[t]);
    for (int r = 0; r < MPI_REDUCTIONS; r++)
        m->op_free(world.op[r]);
    m->finalize();
}
