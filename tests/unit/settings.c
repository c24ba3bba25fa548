/* Random values for every setting, sensible and not: a graph gives a result or an error, never a
 * crash. Settings that are read once are drawn for a process of their own; the others are
 * overridden again and again in it.
 *
 * usage: unit_settings [processes [seed]] */
#include "base/gate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "mlx/c/mlx.h"
#include "support/testing.h"

#define ROUNDS 6
#define PATIENCE_S 120

static int processes = 12;
static uint64_t first_seed = 1;

/* ---- values ---- */

/* Not files, libraries and folders: those that text may name are refused or made. */
static bool is_path(enum gate id)
{
    return id == GATE_VK_LIBRARY || id == GATE_VK_CACHE_DIR || id == GATE_XDG_CACHE_HOME ||
           id == GATE_HOME || id == GATE_VK_PROFILE;
}

static long long any_number(struct rng *r)
{
    static const long long odd[] = { 0,   -1,        1,         2,         3,         7, 16,
                                     64,  1000,      1 << 30,   1ll << 31, 1ll << 32, 5, 32,
                                     128, INT32_MAX, INT64_MAX, INT64_MIN, UINT32_MAX };

    return rng_below(r, 2) ? odd[rng_below(r, ARRAY_LEN(odd))] : 1ll << rng_below(r, 12);
}

static void draw_text(char *out, size_t size, struct rng *r)
{
    static const char *const words[] = { "",       "cpu",   "gpu",  "llvm",   "x",     "unified",
                                         "staged", "bar",   "gemv", "tiled",  "coop",  "0",
                                         "1",      "99999", ",,,,", "-1,-1,", "%s%n%s" };
    size_t used = (size_t)snprintf(out, size, "%s", words[rng_below(r, ARRAY_LEN(words))]);

    if (rng_below(r, 2))
        used = (size_t)snprintf(out, size, "%s",
                                (const char *[]){ "tiled", "gemv", "coop" }[rng_below(r, 3)]);
    if (rng_below(r, 2))
        used = 0;
    char separator = used ? ':' : ',';
    for (int n = rng_below(r, 8); n > 0 && used + 24 < size; n--) {
        used += (size_t)snprintf(out + used, size - used, "%.*s%lld", used > 0, &separator,
                                 any_number(r));
        separator = ',';
    }
}

static void draw_value(char *out, size_t size, enum gate id, struct rng *r)
{
    const struct gate_info *g = &gate_table[id];
    int64_t span = MIN(g->max - g->min, 1 << 20) + 1;

    if (g->kind == GATE_KIND_TEXT || rng_one_in(r, 8))
        draw_text(out, size, r);
    else if (rng_one_in(r, 3))
        snprintf(out, size, "%lld", any_number(r));
    else
        snprintf(out, size, "%lld", (long long)(g->min + (int64_t)(rng_next(r) % (uint64_t)span)));
}

/* Thousands of threads are no crash, and slow. */
static bool is_left_out(enum gate id)
{
    return is_path(id) || id == GATE_CPU_THREADS || id == GATE_VK_VALIDATE;
}

/* ---- a graph with something of most families ---- */

static mlx_array numbers(int rows, int columns, mlx_dtype type, mlx_stream s)
{
    mlx_array a = mlx_array_new();
    int shape[] = { rows, columns };

    mlx_arange(&a, 0, rows * columns, 1, MLX_FLOAT32, s);
    mlx_reshape(&a, a, shape, 2, s);
    mlx_sin(&a, a, s);
    mlx_astype(&a, a, type, s);
    return a;
}

static void run_products(mlx_dtype type, mlx_stream s)
{
    mlx_array a = numbers(5, 64, type, s), b = numbers(64, 72, type, s), c = mlx_array_new();
    mlx_array row = numbers(1, 64, type, s), vector = mlx_array_new(), turned = mlx_array_new();

    mlx_matmul(&c, a, b, s);
    mlx_matmul(&vector, row, b, s);
    mlx_transpose(&turned, c, s);
    mlx_softmax_axis(&c, turned, -1, true, s);
    mlx_sum_axis(&c, c, 0, false, s);
    mlx_array_eval(c);
    mlx_array_eval(vector);
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(c);
    mlx_array_free(row);
    mlx_array_free(vector);
    mlx_array_free(turned);
}

static void run_quantized(int rows, int bits, mlx_stream s)
{
    mlx_optional_int group = { 64, true }, width = { bits, true };
    mlx_array w = numbers(96, 128, MLX_FLOAT16, s), x = numbers(rows, 128, MLX_FLOAT16, s);
    mlx_array y = mlx_array_new(), part[3] = { { NULL } };
    mlx_vector_array parts = mlx_vector_array_new();

    mlx_quantize(&parts, w, group, width, "affine", (mlx_array){ NULL }, s);
    for (int i = 0; i < 3; i++) {
        part[i] = mlx_array_new();
        mlx_vector_array_get(&part[i], parts, (size_t)i);
    }
    mlx_quantized_matmul(&y, x, part[0], part[1], part[2], true, group, width, "affine", s);
    mlx_array_eval(y);
    for (int i = 0; i < 3; i++)
        mlx_array_free(part[i]);
    mlx_vector_array_free(parts);
    mlx_array_free(w);
    mlx_array_free(x);
    mlx_array_free(y);
}

static void run_graph(struct rng *r, mlx_stream s)
{
    run_products(rng_below(r, 2) ? MLX_FLOAT32 : MLX_FLOAT16, s);
    run_quantized(1 + rng_below(r, 3), (int[]){ 2, 3, 4, 6, 8 }[rng_below(r, 5)], s);
}

/* ---- processes ---- */

static void ignore_error(const char *msg, void *data)
{
    (void)msg;
    (void)data;
}

static void ignore_line(enum log_level level, const char *line, void *data)
{
    (void)level;
    (void)line;
    (void)data;
}

/* Strings live for the process. */
static void override(enum gate id, struct rng *r)
{
    char text[200];
    int64_t value;

    draw_value(text, sizeof text, id, r);
    if (gate_table[id].kind == GATE_KIND_TEXT)
        gate_set_text(id, strdup(text));
    else
        gate_set_int(id, gate_parse(id, text, &value) ? value : any_number(r));
}

static void use_settings(uint64_t seed)
{
    struct rng r = { seed };
    char text[200];
    int n_gpus = 0;

    alarm(PATIENCE_S);
    log_set_sink(ignore_line, NULL);
    mlx_set_error_handler(ignore_error, NULL, NULL);
    for (int id = 0; id < GATE_COUNT; id++)
        if (!is_left_out((enum gate)id) && rng_one_in(&r, 6)) {
            draw_value(text, sizeof text, (enum gate)id, &r);
            setenv(gate_table[id].variable, text, 1);
        }
    mlx_device_count(&n_gpus, MLX_GPU);
    mlx_stream s = n_gpus ? mlx_default_gpu_stream_new() : mlx_default_cpu_stream_new();
    for (int i = 0; i < ROUNDS; i++) {
        run_graph(&r, s);
        for (int id = 0; id < GATE_COUNT; id++)
            if (!is_left_out((enum gate)id) && rng_one_in(&r, 6))
                override((enum gate)id, &r);
        override(GATE_VK_QMV_DESIGN, &r);
        override(GATE_VK_MATMUL_VARIANT, &r);
    }
    mlx_stream_free(s);
}

static void test_random_settings(void **state)
{
    (void)state;
    for (int i = 0; i < processes; i++) {
        uint64_t seed = first_seed + (uint64_t)i;
        int status;
        pid_t pid = fork(); /* nothing of the library was used here */
        if (pid == 0) {
            use_settings(seed);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFSIGNALED(status))
            fail_msg("seed %llu: signal %d", (unsigned long long)seed, WTERMSIG(status));
    }
}

/* What used to divide by zero. */
static void test_odd_designs(void **state)
{
    static const struct {
        enum gate id;
        const char *value;
    } rows[] = {
        { GATE_VK_QMV_DESIGN, "1,1,1,1,1" },
        { GATE_VK_QMV_DESIGN, "256,32,2,1,4,2" },
        { GATE_VK_QMV_DESIGN, "4294967296,1,1,1,8" },
        { GATE_VK_MATMUL_VARIANT, "tiled:64,64,16,1073741824,4" },
        { GATE_VK_MATMUL_VARIANT, "coop:65536,65536,1,1,1,1" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rng r = { i };
        int status, n_gpus = 0;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(PATIENCE_S);
            log_set_sink(ignore_line, NULL);
            gate_set_text(rows[i].id, rows[i].value);
            mlx_device_count(&n_gpus, MLX_GPU);
            if (n_gpus)
                run_graph(&r, mlx_default_gpu_stream_new());
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("%s: status %x", rows[i].value, (unsigned)status);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_odd_designs),
        cmocka_unit_test(test_random_settings),
    };

    if (argc > 1)
        processes = atoi(argv[1]);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
