/* The calls of one ABI. Who includes this defines HANDLE, STATUS with a field MPI_TAG, IN_PLACE,
 * OBJECTS, an array of handles, find_objects, which fills it, and MPI_TABLE with the fields that
 * tell the library. */
#include <dlfcn.h>
#include <string.h>

#define CALL(name, parameters) static int(*call_##name) parameters;
#include "dist/mpi_calls.def"

static const struct call_row {
    const char *name;
    void *to;
} call_rows[] = {
#define CALL(name, parameters) { "MPI_" #name, &call_##name },
#include "dist/mpi_calls.def"
};

static bool load(void *library, const char **missing)
{
    for (size_t i = 0; i < ARRAY_LEN(call_rows); i++) {
        void *symbol = dlsym(library, *missing = call_rows[i].name);
        if (!symbol)
            return false;
        /* Function pointers have the size of others here; memcpy avoids an aliasing store. */
        memcpy(call_rows[i].to, &symbol, sizeof symbol);
    }
    return find_objects(library, missing);
}

static HANDLE own(struct mpi_handle h)
{
    return (HANDLE)h.v;
}

static struct mpi_handle neutral(HANDLE h)
{
    return (struct mpi_handle){ (intptr_t)h };
}

static struct mpi_handle object(enum mpi_object o)
{
    return neutral(OBJECTS[o]);
}

/* ---- beginning and end ---- */

static int initialized(int *flag)
{
    return call_Initialized(flag);
}

static int finalized(int *flag)
{
    return call_Finalized(flag);
}

static int init(int wanted, int *level)
{
    return call_Init_thread(NULL, NULL, wanted, level);
}

static int level(int *out)
{
    return call_Query_thread(out);
}

static int finalize(void)
{
    return call_Finalize();
}

static int abort_all(int status)
{
    return call_Abort(OBJECTS[MPI_OBJECT_WORLD], status);
}

/* ---- communicators ---- */

static int comm_dup(struct mpi_handle *out, struct mpi_handle comm)
{
    HANDLE made = own(comm);
    int code = call_Comm_dup(own(comm), &made);

    if (code == MPI_OK)
        code = call_Comm_set_errhandler(made, OBJECTS[MPI_OBJECT_ERRORS_RETURN]);
    *out = neutral(made);
    return code;
}

static int comm_split(struct mpi_handle *out, struct mpi_handle comm, int color, int key)
{
    HANDLE made = own(comm);
    int code = call_Comm_split(own(comm), color, key, &made);

    *out = neutral(made);
    return code;
}

static int comm_free(struct mpi_handle comm)
{
    return call_Comm_free(&(HANDLE){ own(comm) });
}

static int comm_place(struct mpi_handle comm, int *rank, int *size)
{
    int code = call_Comm_rank(own(comm), rank);

    return code == MPI_OK ? call_Comm_size(own(comm), size) : code;
}

/* ---- types and operations ---- */

static int type_new(struct mpi_handle *out, int bytes)
{
    HANDLE made = OBJECTS[MPI_OBJECT_BYTE];
    int code = call_Type_contiguous(bytes, OBJECTS[MPI_OBJECT_BYTE], &made);

    if (code == MPI_OK)
        code = call_Type_commit(&made);
    *out = neutral(made);
    return code;
}

static int type_free(struct mpi_handle type)
{
    return call_Type_free(&(HANDLE){ own(type) });
}

#define COMBINE(name, id)                                                                          \
    static void name(void *in, void *acc, int *n, HANDLE *type)                                    \
    {                                                                                              \
        mpi_combine(id, neutral(*type), acc, in, *n);                                              \
    }
COMBINE(combine_sum, MPI_REDUCE_SUM)
COMBINE(combine_max, MPI_REDUCE_MAX)
COMBINE(combine_min, MPI_REDUCE_MIN)
#undef COMBINE

static int op_new(struct mpi_handle *out, enum mpi_reduction r)
{
    static void (*const fns[])(void *, void *, int *, HANDLE *) = {
        [MPI_REDUCE_SUM] = combine_sum,
        [MPI_REDUCE_MAX] = combine_max,
        [MPI_REDUCE_MIN] = combine_min,
    };
    HANDLE made = OBJECTS[MPI_OBJECT_SUM];
    int code = call_Op_create(fns[r], 1, &made);

    *out = neutral(made);
    return code;
}

static int op_free(struct mpi_handle op)
{
    return call_Op_free(&(HANDLE){ own(op) });
}

/* ---- data ---- */

static const void *in_or_place(const struct mpi_move *m)
{
    return m->in ? m->in : IN_PLACE;
}

static int all_reduce(const struct mpi_move *m)
{
    return call_Allreduce(in_or_place(m), m->out, m->n, own(m->type), own(m->op), own(m->comm));
}

static int reduce(const struct mpi_move *m)
{
    return call_Reduce(m->in, m->out, m->n, own(m->type), own(m->op), m->peer, own(m->comm));
}

static int scatter(const struct mpi_move *m)
{
    return call_Reduce_scatter_block(m->in, m->out, m->n, own(m->type), own(m->op), own(m->comm));
}

static int all_gather(const struct mpi_move *m)
{
    HANDLE type = own(m->type);

    return call_Allgather(m->in, m->n, type, m->out, m->n, type, own(m->comm));
}

static int broadcast(const struct mpi_move *m)
{
    return call_Bcast(m->out, m->n, own(m->type), m->peer, own(m->comm));
}

static int send(const struct mpi_move *m)
{
    return call_Send(m->in, m->n, own(m->type), m->peer, m->tag, own(m->comm));
}

static int receive(const struct mpi_move *m, struct mpi_came *came)
{
    STATUS status;
    int code = call_Recv(m->out, m->n, own(m->type), m->peer, m->tag, own(m->comm), &status);

    if (code == MPI_OK)
        code = call_Get_count(&status, own(m->type), &came->n);
    came->tag = status.MPI_TAG;
    return code;
}

static void error_text(int code, char text[MPI_TEXT_MAX])
{
    int length = 0;

    text[0] = '\0';
    if (call_Error_string(code, text, &length) != MPI_OK)
        text[0] = '\0';
}

const struct mpi MPI_TABLE = {
    IDENTITY,
    .load = load,
    .object = object,
    .initialized = initialized,
    .finalized = finalized,
    .init = init,
    .level = level,
    .finalize = finalize,
    .abort = abort_all,
    .comm_dup = comm_dup,
    .comm_split = comm_split,
    .comm_free = comm_free,
    .comm_place = comm_place,
    .type_new = type_new,
    .type_free = type_free,
    .op_new = op_new,
    .op_free = op_free,
    .all_reduce = all_reduce,
    .reduce = reduce,
    .scatter = scatter,
    .all_gather = all_gather,
    .broadcast = broadcast,
    .send = send,
    .receive = receive,
    .error_text = error_text,
};
