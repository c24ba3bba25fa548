/* What happens to the others where one process does not do as they do: an error, and an end. The
 * first process reports; mpirun.sh looks at what becomes of all.
 * usage: failures PROCESSES WHAT */
#include "ranks.h"

#include <signal.h>
#include <unistd.h>

/* Sums up ones; its result must be right. */
static void assert_in_step(void)
{
    mlx_array one = number(1), y = mlx_array_new();

    assert_ok(mlx_distributed_all_sum(&y, one, everybody, cpu));
    assert_same(y, number((float)size));
    mlx_array_free(one);
}

/* y fails when it is evaluated, with this text. Frees it. */
static void assert_told(mlx_array y, const char *text)
{
    assert_fails(mlx_array_eval(y));
    if (!strstr(errors.text, text))
        fail_msg("process %d: \"%s\" is not in \"%s\"", rank, text, errors.text);
    mlx_array_free(y);
}

static mlx_array zeros(int n, mlx_dtype t)
{
    mlx_array x = mlx_array_new();

    assert_ok(mlx_zeros(&x, &n, 1, t, cpu));
    return x;
}

/* Of the last process's call the others learn, and it of theirs; then all go on. */
static void test_different(void **state)
{
    bool is_last = rank == size - 1;
    char text[256];

    (void)state;
    for (int i = 0; i < 3; i++) {
        static const char *const words[] = { "all_sum of 3 elements of float32",
                                             "all_sum of 2 elements of int32",
                                             "all_max of 2 elements of float32" };
        mlx_array x = zeros(is_last && i == 0 ? 3 : 2, is_last && i == 1 ? MLX_INT32 : MLX_FLOAT32);
        mlx_array y = mlx_array_new();
        if (is_last && i == 2)
            assert_ok(mlx_distributed_all_max(&y, x, everybody, cpu));
        else
            assert_ok(mlx_distributed_all_sum(&y, x, everybody, cpu));
        snprintf(text, sizeof text, "Process %d of the group takes part with %s", size - 1,
                 words[i]);
        assert_told(y, is_last ? "Process 0 of the group takes part with all_sum of 2 elements of "
                                 "float32"
                               : text);
        assert_in_step();
        mlx_array_free(x);
    }
}

/* What one process cannot compute the others do not wait for. */
static void test_failed_input(void **state)
{
    float v[4] = { 1, 2, 2, 4 }; /* has no inverse */
    bool is_last = rank == size - 1;
    mlx_array x = mlx_array_new_data(v, (int[]){ 2, 2 }, 2, MLX_FLOAT32), y = mlx_array_new();
    char text[64];

    (void)state;
    if (is_last)
        assert_ok(mlx_linalg_inv(&x, x, cpu));
    else
        x = zeros(2, MLX_FLOAT32);
    assert_ok(mlx_distributed_all_sum(&y, x, everybody, cpu));
    snprintf(text, sizeof text, "[all_sum] Process %d of the group has failed", size - 1);
    assert_told(y, is_last ? "[Inverse::eval_cpu]" : text);
    mlx_array_free(x);
    assert_in_step();
}

static void test_failed_message(void **state)
{
    float v[4] = { 1, 2, 2, 4 }; /* has no inverse */
    mlx_array x = mlx_array_new_data(v, (int[]){ 2, 2 }, 2, MLX_FLOAT32), y = mlx_array_new();

    (void)state;
    if (rank == 1) {
        assert_ok(mlx_linalg_inv(&x, x, cpu));
        assert_ok(mlx_distributed_send(&y, x, 0, everybody, cpu));
        assert_told(y, "[Inverse::eval_cpu]");
    } else if (rank == 0) {
        assert_ok(mlx_distributed_recv(&y, &(int){ 2 }, 1, MLX_FLOAT32, 1, everybody, cpu));
        assert_told(y, "[recv] Process 1 of the group has failed.");
    }
    mlx_array_free(x);
    assert_in_step();
}

/* What is sent is not what is received. */
static void test_wrong_message(void **state)
{
    static const struct {
        int n;
        mlx_dtype t;
        const char *text;
    } rows[] = { { 3, MLX_FLOAT32, "[recv] Process 1 of the group sent 3 elements, not 4." },
                 { 4, MLX_INT32, "[recv] Process 1 of the group sent int32, not float32." },
                 { 5, MLX_FLOAT32, "[recv] " } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mlx_array x = zeros(rows[i].n, rows[i].t), y = mlx_array_new();
        if (rank == 1) {
            assert_ok(mlx_distributed_send(&y, x, 0, everybody, cpu));
            assert_ok(mlx_array_eval(y));
            mlx_array_free(y);
        } else if (rank == 0) {
            assert_ok(mlx_distributed_recv(&y, &(int){ 4 }, 1, MLX_FLOAT32, 1, everybody, cpu));
            assert_told(y, rows[i].text);
        }
        mlx_array_free(x);
        assert_in_step();
    }
}

/* ---- ends, after which nobody returns from main with success but where it is said ---- */

static void wait_for_ever(void)
{
    mlx_array y = mlx_array_new(), one = number(1);

    mlx_distributed_all_sum(&y, one, everybody, cpu);
    mlx_array_eval(y);
    printf("process %d: %s\n", rank, errors.text);
    fflush(stdout);
}

/* The last process ends well, too early; the others are told, and end when they want. */
static int one_leaves(void)
{
    if (rank == size - 1)
        return 0;
    wait_for_ever();
    return strstr(errors.text, "has ended") ? 0 : 1;
}

static int one_exits(void)
{
    if (rank == size - 1)
        exit(3);
    wait_for_ever();
    return 0;
}

static int one_is_killed(void)
{
    if (rank == size - 1)
        raise(SIGKILL);
    wait_for_ever();
    return 0;
}

/* While its own work waits for the others, too. */
static int one_exits_at_work(void)
{
    mlx_array y = mlx_array_new(), one = number(1);

    if (rank == size - 1) {
        mlx_distributed_recv_like(&y, one, 0, everybody, cpu);
        mlx_vector_array list = ONE(y);
        mlx_async_eval(list);
        usleep(100000);
        exit(3);
    }
    wait_for_ever();
    return 0;
}

static int no_one_fails(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_different),
        cmocka_unit_test(test_failed_input),
        cmocka_unit_test(test_failed_message),
        cmocka_unit_test(test_wrong_message),
    };

    return cmocka_run_group_tests_name("dist_failures", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*fn)(void);
    } kinds[] = { { "errors", no_one_fails },
                  { "leaves", one_leaves },
                  { "exits", one_exits },
                  { "killed", one_is_killed },
                  { "at_work", one_exits_at_work } };
    int status = 2;

    if (argc < 3 || start(2, argv))
        return 2;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(argv[2], kinds[i].name) == 0)
            status = kinds[i].fn();
    finish();
    return status;
}
