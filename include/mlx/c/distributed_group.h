/* Groups of processes that compute together (distributed.h), over MPI. Conventions: see mlx.h.
 *
 * The processes are started by mpirun of Open MPI or of MPICH, whose library is opened when it is
 * first asked for; MLX_MPI_LIBNAME names another. MPI begins with the first group and ends with the
 * process. One that ends with a status other than 0 takes the others with it: they would wait for
 * it for ever. A program may also begin and end MPI itself, by MPI_Init_thread with
 * MPI_THREAD_MULTIPLE. Thread-safety: safe; processes call what concerns a group in the same
 * order. */
#ifndef MLX_DISTRIBUTED_GROUP_H
#define MLX_DISTRIBUTED_GROUP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlx_distributed_group_ {
    void *ctx;
} mlx_distributed_group;

/* The empty handle. Cannot fail. */
mlx_distributed_group mlx_distributed_group_new(void);

/* Releases the handle; the empty handle is allowed. */
int mlx_distributed_group_free(mlx_distributed_group group);

/* The group of all processes. bk: "any" or "mpi"; MLX's others ("ring", "nccl", "jaccl") are known
 * but not there; NULL: any. Without processes to talk to the result is a group of one, or with
 * strict an error. "mpi" and strict begin MPI in any case, "any" only where a launcher of MPI has
 * started the process. */
int mlx_distributed_init(mlx_distributed_group *res, bool strict, const char *bk);

/* The number of this process in the group, from 0 on; */
int mlx_distributed_group_rank(mlx_distributed_group group);

/* and how many there are. */
int mlx_distributed_group_size(mlx_distributed_group group);

/* Groups of those processes that give the same color (0 or more), in the order of their keys, or
 * where key is negative of their ranks. All processes of the group call it. A group of one that is
 * not MPI's cannot be split. */
int mlx_distributed_group_split(mlx_distributed_group *res, mlx_distributed_group group, int color,
                                int key);

/* Whether there is an MPI library, for "any", "mpi" and NULL; false for other names. */
bool mlx_distributed_is_available(const char *bk);

#ifdef __cplusplus
}
#endif

#endif
