/* The end of the process with work in flight, and its copies by fork. Each case is a process of its
 * own: this program again, with the name of the case and of the device.
 *
 * usage: api_exit [PROGRAM]; api_exit CASE cpu|gpu
 * PROGRAM runs this one by an emulator. That is slow, and every case is run once. */
#include "api_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDE 256
#define PRODUCTS 12
#define PATIENCE_S 60

static const char *self;
static int times = 6;
static bool on_gpu;

static mlx_stream a_stream(void)
{
    return on_gpu ? mlx_default_gpu_stream_new() : mlx_default_cpu_stream_new();
}

/* Products in a row, and an elementwise op that no other call has: more kernels to build. */
static mlx_array product(int variant)
{
    int shape[] = { SIDE, SIDE };
    mlx_stream s = a_stream();
    mlx_array a = mlx_array_new(), x = mlx_array_new(), scale = mlx_array_new_float32(1);

    mlx_ones(&a, shape, 2, MLX_FLOAT32, s);
    mlx_array_set(&x, a);
    for (int i = 0; i < PRODUCTS; i++) {
        mlx_matmul(&x, x, a, s);
        for (int k = 0; k < variant % 8; k++)
            mlx_add(&x, x, scale, s);
    }
    mlx_array_free(a);
    mlx_array_free(scale);
    mlx_stream_free(s);
    return x;
}

static void start_work(int variant)
{
    mlx_array x = product(variant);
    mlx_vector_array v = mlx_vector_array_new_value(x);

    mlx_async_eval(v);
    mlx_vector_array_free(v);
    mlx_array_free(x);
}

static void *work_for_ever(void *ready)
{
    for (int i = 0;; i++) {
        mlx_array x = product(i);
        mlx_array_eval(x);
        mlx_array_free(x);
        if (i == 0)
            pthread_barrier_wait(ready);
    }
    return NULL;
}

static void start_thread(void)
{
    static pthread_barrier_t ready;
    pthread_t thread;

    pthread_barrier_init(&ready, NULL, 2);
    if (pthread_create(&thread, NULL, work_for_ever, &ready) != 0)
        exit(2);
    pthread_barrier_wait(&ready);
}

/* ---- the cases; each is to end with status 0 ---- */

static void case_return(void)
{
    start_work(1);
}

static void case_return_again(void)
{
    mlx_array x = product(2);

    mlx_array_eval(x);
    mlx_array_free(x);
    start_work(3);
}

static void case_other_thread_works(void)
{
    start_thread();
    start_work(1);
}

static void *just_exit(void *unused)
{
    start_work(2);
    exit(0);
    return unused;
}

static void case_exit_in_a_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, just_exit, NULL);
    for (int i = 0;; i++) {
        mlx_array x = product(i);
        mlx_array_eval(x);
        mlx_array_free(x);
    }
}

static void exit_quietly(const char *msg, void *data)
{
    (void)msg;
    (void)data;
    exit(0);
}

static void case_error_handler(void)
{
    mlx_array empty = { NULL };

    mlx_set_error_handler(exit_quietly, NULL, NULL);
    start_work(1);
    mlx_array_eval(empty);
}

static mlx_array kept;

static void eval_late(void)
{
    mlx_array_eval(kept); /* fails or not: it returns */
    mlx_array_free(kept);
}

/* A handler that was registered before the library's runs after it. */
static void case_eval_in_a_handler(void)
{
    atexit(eval_late);
    kept = product(5);
    start_work(1);
}

static int child_errors;

static void count_child_error(const char *msg, void *data)
{
    (void)data;
    child_errors += strstr(msg, "[fork]") != NULL;
}

static void use_in_child(void)
{
    float one = 1;
    int shape[] = { 1 };
    bool is_there;

    mlx_set_error_handler(count_child_error, NULL, NULL);
    mlx_array x = product(1);
    mlx_array_eval(x);
    mlx_array_item_float32(&one, kept);
    _mlx_array_is_available(&is_there, kept);
    mlx_array made = mlx_array_new_data(&one, shape, 1, MLX_FLOAT32);
    mlx_synchronize(a_stream());
    mlx_array_free(x);
    mlx_array_free(made);
    mlx_array_free(kept);
    _exit(child_errors >= 3 ? 0 : 3); /* exit handlers of NVIDIA's driver crash in a child */
}

static void must_end_well(pid_t child)
{
    int status = 0;

    for (int ms = 0; waitpid(child, &status, WNOHANG) == 0; ms++) {
        if (ms > PATIENCE_S * 1000)
            kill(child, SIGKILL);
        usleep(1000);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        exit(4);
}

/* In the child every use is an error that says why, and its parent goes on. */
static void case_fork(void)
{
    kept = product(1);
    mlx_vector_array v = mlx_vector_array_new_value(kept);
    mlx_async_eval(v);
    pid_t child = fork();
    if (child == 0)
        use_in_child();
    must_end_well(child);
    case_return_again();
}

/* A child of a process that has not used the library yet may. */
static void case_fork_first(void)
{
    mlx_device gpu = mlx_device_new_type(MLX_GPU, 0);
    pid_t child = fork();

    mlx_device_free(gpu);
    if (child == 0) {
        case_return_again();
        exit(0);
    }
    case_return_again();
    must_end_well(child);
}

static const struct row {
    const char *name;
    void (*run)(void);
} rows[] = {
    { "return", case_return },
    { "return_again", case_return_again },
    { "other_thread_works", case_other_thread_works },
    { "exit_in_a_thread", case_exit_in_a_thread },
    { "error_handler", case_error_handler },
    { "eval_in_a_handler", case_eval_in_a_handler },
    { "fork", case_fork },
    { "fork_first", case_fork_first },
};
#define N_ROWS (sizeof rows / sizeof rows[0])

/* ---- the parent ---- */

static int run_child(const char *name, const char *device)
{
    int status = 0;
    pid_t child = fork(); /* nothing was used in this process */

    if (child == 0) {
        execl(self, self, name, device, NULL);
        _exit(127);
    }
    for (int ms = 0; waitpid(child, &status, WNOHANG) == 0; ms++) {
        if (ms == PATIENCE_S * 1000)
            kill(child, SIGKILL);
        usleep(1000);
    }
    return status;
}

static void run_rows(const char *device)
{
    for (int i = 0; i < times; i++)
        for (size_t k = 0; k < N_ROWS; k++) {
            int status = run_child(rows[k].name, device);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                fail_msg("%s on the %s, run %d: %s %d", rows[k].name, device, i,
                         WIFEXITED(status) ? "status" : "signal",
                         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        }
}

static void test_cpu(void **state)
{
    (void)state;
    run_rows("cpu");
}

/* The child says whether there is one, so that this process stays unused. */
static void test_gpu(void **state)
{
    (void)state;
    if (WEXITSTATUS(run_child("has_gpu", "gpu")) != 0)
        skip();
    run_rows("gpu");
}

static int as_child(const char *name, const char *device)
{
    int n_gpus = 0;

    on_gpu = strcmp(device, "gpu") == 0;
    if (strcmp(name, "has_gpu") == 0)
        return mlx_device_count(&n_gpus, MLX_GPU) != 0 || n_gpus == 0;
    for (size_t k = 0; k < N_ROWS; k++)
        if (strcmp(rows[k].name, name) == 0) {
            rows[k].run();
            return 0;
        }
    return 2;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_gpu),
    };

    if (argc == 3)
        return as_child(argv[1], argv[2]);
    self = argv[argc - 1];
    if (argc == 2)
        times = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
