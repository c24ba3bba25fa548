/* A program that finds the library at run time, as plug-ins and other languages do: it opens it,
 * computes in several threads, closes it while some of them live on, and opens it again. At the end
 * threads that used it are alive and work is under way.
 *
 * usage: host_open libmlxc.so */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mlx/c/mlx.h"

#define ROUNDS 4
#define THREADS 4
#define LENGTH 1000

#define FUNCTIONS(X)                                                                               \
    X(mlx_add)                                                                                     \
    X(mlx_array_data_float32)                                                                      \
    X(mlx_array_eval)                                                                              \
    X(mlx_array_free)                                                                              \
    X(mlx_array_new)                                                                               \
    X(mlx_array_new_float32)                                                                       \
    X(mlx_async_eval)                                                                              \
    X(mlx_default_cpu_stream_new)                                                                  \
    X(mlx_default_gpu_stream_new)                                                                  \
    X(mlx_device_count)                                                                            \
    X(mlx_matmul)                                                                                  \
    X(mlx_ones)                                                                                    \
    X(mlx_stream_free)                                                                             \
    X(mlx_vector_array_free)                                                                       \
    X(mlx_vector_array_new_value)

#define MEMBER(name) __typeof__(name) *name;
static struct {
    FUNCTIONS(MEMBER)
} lib;

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "host_open: %s\n", what);
    exit(1);
}

static void must(int status, const char *what)
{
    if (status)
        give_up(what);
}

static void *open_library(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        give_up(dlerror());
#define FIND(name)                                                                                 \
    if (!(*(void **)&lib.name = dlsym(handle, #name)))                                             \
        give_up(dlerror());
    FUNCTIONS(FIND)
    return handle;
}

static void compute(mlx_stream s)
{
    int shape[] = { LENGTH };
    mlx_array a = lib.mlx_array_new(), sum = lib.mlx_array_new();
    mlx_array three = lib.mlx_array_new_float32(3);

    must(lib.mlx_ones(&a, shape, 1, MLX_FLOAT32, s), "ones");
    must(lib.mlx_add(&sum, a, three, s), "add");
    must(lib.mlx_array_eval(sum), "eval");
    const float *v = lib.mlx_array_data_float32(sum);
    for (int i = 0; i < LENGTH; i++)
        if (!v || v[i] != 4)
            give_up("1 + 3 is not 4");
    lib.mlx_array_free(a);
    lib.mlx_array_free(sum);
    lib.mlx_array_free(three);
}

static void compute_everywhere(void)
{
    mlx_stream s = lib.mlx_default_cpu_stream_new();
    int n_gpus = 0;

    compute(s);
    lib.mlx_stream_free(s);
    must(lib.mlx_device_count(&n_gpus, MLX_GPU), "device count");
    if (!n_gpus)
        return;
    s = lib.mlx_default_gpu_stream_new();
    compute(s);
    lib.mlx_stream_free(s);
}

static void *use_and_end(void *unused)
{
    compute_everywhere();
    return unused;
}

static pthread_barrier_t used, closed;

/* Ends when the library has been closed: what the thread has of it must be given back then. */
static void *use_and_stay(void *unused)
{
    compute_everywhere();
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    return unused;
}

static void *use_for_ever(void *unused)
{
    compute_everywhere();
    pthread_barrier_wait(&used);
    pause();
    return unused;
}

static pthread_t start(void *(*fn)(void *))
{
    pthread_t thread;

    must(pthread_create(&thread, NULL, fn, NULL), "pthread_create");
    return thread;
}

static void one_round(const char *path)
{
    void *handle = open_library(path);
    pthread_t stays[THREADS], ends[THREADS];

    must(pthread_barrier_init(&used, NULL, THREADS + 1), "barrier");
    must(pthread_barrier_init(&closed, NULL, THREADS + 1), "barrier");
    for (int i = 0; i < THREADS; i++) {
        stays[i] = start(use_and_stay);
        ends[i] = start(use_and_end);
    }
    compute_everywhere();
    for (int i = 0; i < THREADS; i++)
        pthread_join(ends[i], NULL);
    pthread_barrier_wait(&used);
    must(dlclose(handle), "dlclose");
    pthread_barrier_wait(&closed);
    for (int i = 0; i < THREADS; i++)
        pthread_join(stays[i], NULL);
    pthread_barrier_destroy(&used);
    pthread_barrier_destroy(&closed);
}

/* Returns from main with a thread that used the library, with work under way and the library
 * closed. */
static void leave_in_a_mess(const char *path)
{
    int shape[] = { 700, 700 };
    void *handle = open_library(path);
    mlx_stream s = lib.mlx_default_cpu_stream_new();
    mlx_array a = lib.mlx_array_new(), product = lib.mlx_array_new();

    must(pthread_barrier_init(&used, NULL, 2), "barrier");
    start(use_for_ever);
    pthread_barrier_wait(&used);
    must(lib.mlx_ones(&a, shape, 2, MLX_FLOAT32, s), "ones");
    must(lib.mlx_matmul(&product, a, a, s), "matmul");
    mlx_vector_array outputs = lib.mlx_vector_array_new_value(product);
    must(lib.mlx_async_eval(outputs), "async_eval");
    lib.mlx_vector_array_free(outputs);
    must(dlclose(handle), "dlclose");
}

int main(int argc, char **argv)
{
    if (argc != 2)
        give_up("usage: host_open libmlxc.so");
    for (int i = 0; i < ROUNDS; i++)
        one_round(argv[1]);
    leave_in_a_mess(argv[1]);
    return 0;
}
