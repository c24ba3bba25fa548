/* A program that uses MPI itself: it begins MPI before the library does, and ends it. Its MPI is
 * the one that it is told, in which it knows no more than what takes no handle. usage: host
 * PROCESSES threads|serial|single LIBRARY */
#include "ranks.h"

#include <dlfcn.h>

typedef int (*begin_fn)(int *, char ***, int, int *);
typedef int (*end_fn)(void);

static void *symbol_of(void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    if (!symbol)
        exit(2);
    return symbol;
}

/* As one library after the other would: each call may come on another thread. */
static int use_threads(int argc, char **argv)
{
    mlx_array one, y = mlx_array_new();

    if (start(argc, argv))
        return 1;
    one = number(1);
    for (int i = 0; i < 3; i++) {
        assert_ok(mlx_distributed_all_sum(&y, one, everybody, cpu));
        assert_ok(mlx_array_eval(y));
        assert_ok(rank ? mlx_distributed_send(&y, y, 0, everybody, cpu)
                       : mlx_distributed_recv_like(&y, y, 1, everybody, cpu));
        assert_same(y, number((float)size));
        y = mlx_array_new();
    }
    mlx_array_free(one);
    finish();
    return 0;
}

static int refuse_single(void)
{
    mlx_distributed_group g = mlx_distributed_group_new();

    setup_cpu(NULL);
    assert_fails(mlx_distributed_init(&g, true, "mpi"));
    assert_non_null(strstr(errors.text, "MPI was begun for one thread only"));
    assert_ok(mlx_distributed_init(&g, false, "any"));
    assert_int_equal(mlx_distributed_group_size(g), 1);
    mlx_distributed_group_free(g);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int level; /* MPI_THREAD_... */
    } levels[] = { { "single", 0 }, { "serial", 2 }, { "threads", 3 } };
    void *library = argc == 4 ? dlopen(argv[3], RTLD_NOW | RTLD_GLOBAL) : NULL;
    size_t i = 0;
    int given = 0;
    begin_fn begin;
    end_fn end;

    if (!library)
        return 2;
    *(void **)&begin = symbol_of(library, "MPI_Init_thread");
    *(void **)&end = symbol_of(library, "MPI_Finalize");
    while (strcmp(argv[2], levels[i].name) != 0)
        i++;
    if (begin(NULL, NULL, levels[i].level, &given) != 0)
        return 2;
    int failed = levels[i].level ? use_threads(argc, argv) : refuse_single();
    return end() == 0 ? failed : 2;
}
