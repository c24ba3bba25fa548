/* The error handler, and what failing calls report. */
#include "api_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "mlx/c/ext.h"

static int dropped;

static void drop(void *data)
{
    ++*(int *)data;
}

static void handle(const char *msg, void *data)
{
    (void)msg;
    ++*(int *)data;
}

static void fail_once(void)
{
    mlx_array a = mlx_array_new();

    assert_int_equal(mlx_array_eval(a), 1);
}

/* data reaches the handler with and without a destructor, which runs when the handler goes. */
static void test_data_and_dtor(void **state)
{
    int calls = 0;

    (void)state;
    mlx_set_error_handler(handle, &calls, NULL);
    fail_once();
    assert_int_equal(calls, 1);
    dropped = 0;
    mlx_set_error_handler(handle, &dropped, drop);
    fail_once();
    assert_int_equal(dropped, 1);
    mlx_set_error_handler(count_error, &errors, NULL);
    assert_int_equal(dropped, 2);
    mlx_set_error_handler(count_error, &errors, NULL);
    assert_int_equal(dropped, 2);
}

static void test_message(void **state)
{
    mlx_array a = mlx_array_new(), b = mlx_array_new_float(1);
    mlx_stream s = mlx_stream_new();

    (void)state;
    assert_fails(mlx_add(&b, b, a, s));
    assert_true(strncmp(errors.text, "[mlx_add] Empty array handle b. at ops.c:", 41) == 0);
    assert_string_equal(mlx_last_error(), "[mlx_add] Empty array handle b.");
    assert_fails(mlx_reshape(&b, b, (int[]){ 3 }, 1, s));
    assert_non_null(
        strstr(errors.text, "[reshape] Cannot reshape array of size 1 into shape (3). at "));
    mlx_array_free(b);
}

/* A text with % is data, never a format. */
static void test_percent(void **state)
{
    mlx_array a = mlx_array_new_float(1), zero = mlx_array_new_float(0);
    mlx_stream s = mlx_stream_new();

    (void)state;
    assert_fails(mlx_pad_symmetric(&a, a, 0, zero, "%s%n%d", s));
    assert_non_null(strstr(errors.text, "(%s%n%d)"));
    mlx_array_free(a);
    mlx_array_free(zero);
}

static void test_public_error(void **state)
{
    char big[4096];

    (void)state;
    errors.count = 0;
    mlx_error("%d things went %s", 3, "wrong");
    assert_int_equal(errors.count, 1);
    assert_true(strncmp(errors.text, "3 things went wrong at ", 23) == 0);
    assert_non_null(strstr(errors.text, "error.c:"));
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\0';
    mlx_error("%s", big); /* cut, with its place */
    assert_non_null(strstr(errors.text, "error.c:"));
}

/* The default prints to stdout and exits with -1. */
static void test_default_handler(void **state)
{
    char text[256] = "";
    int channel[2], status = 0;

    (void)state;
    assert_int_equal(pipe(channel), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(channel[1], STDOUT_FILENO);
        mlx_set_error_handler(NULL, NULL, NULL);
        mlx_array_size(mlx_array_empty);
        _exit(0);
    }
    close(channel[1]);
    waitpid(child, &status, 0);
    ssize_t n = read(channel[0], text, sizeof text - 1);
    close(channel[0]);
    assert_true(n > 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 255);
    assert_non_null(
        strstr(text, "MLX error: [mlx_array_size] Empty array handle arr. at array.c:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_and_dtor),   cmocka_unit_test(test_message),
        cmocka_unit_test(test_percent),         cmocka_unit_test(test_public_error),
        cmocka_unit_test(test_default_handler),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
