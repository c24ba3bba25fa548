/* Open MPI: handles are addresses of objects that the library exports. */
#include "dist/mpi.h"

#define HANDLE void *
#define STATUS struct status
#define IN_PLACE ((const void *)1)
#define OBJECTS objects
#define MPI_TABLE mpi_open_mpi
#define IDENTITY .name = "Open MPI", .mark = "ompi_mpi_comm_world"

struct status {
    int source, MPI_TAG, error, cancelled;
    size_t count;
};

static void *objects[MPI_OBJECT_COUNT];
static bool find_objects(void *library, const char **missing);

#include "dist/mpi_body.h"

static bool find_objects(void *library, const char **missing)
{
    static const char *const names[] = {
#define OBJECT(id, symbol, number) #symbol,
#include "dist/mpi_objects.def"
    };

    for (int i = 0; i < MPI_OBJECT_COUNT; i++)
        if (!(objects[i] = dlsym(library, *missing = names[i])))
            return false;
    return true;
}
