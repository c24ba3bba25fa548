/* MPICH's ABI, which is Intel MPI's, MVAPICH's and Cray MPICH's, too: handles are numbers. */
#include "dist/mpi.h"

#define HANDLE int
#define STATUS struct status
#define IN_PLACE ((const void *)-1)
#define OBJECTS objects
#define MPI_TABLE mpi_mpich
#define IDENTITY .name = "MPICH", .version = "MPI_Get_library_version"

struct status {
    int count_low, count_high, source, MPI_TAG, error;
};

static const int objects[MPI_OBJECT_COUNT] = {
#define OBJECT(id, symbol, number) number,
#include "dist/mpi_objects.def"
};

/* They are what they are. */
static bool find_objects(void *library, const char **missing)
{
    (void)library, (void)missing;
    return true;
}

#include "dist/mpi_body.h"
