/* What the tests of the public interface share: cmocka, an error handler that counts, short ways to
 * make and read arrays. They link the library as a user's program does. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mlx/c/mlx.h"

struct errors {
    int count;
    char text[1024];
};

static struct errors errors;

static inline void count_error(const char *msg, void *data)
{
    struct errors *e = data;

    e->count++;
    snprintf(e->text, sizeof e->text, "%s", msg);
}

/* The call succeeds, and no error was reported. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        errors.count = 0;                                                                          \
        int status_ = (call);                                                                      \
        if (status_ != 0 || errors.count != 0)                                                     \
            fail_msg("%s: status %d: %s", #call, status_, errors.text);                            \
    } while (0)

/* The call fails with status 1, and exactly one error was reported. */
#define assert_fails(call)                                                                         \
    do {                                                                                           \
        errors.count = 0;                                                                          \
        assert_int_equal(call, 1);                                                                 \
        assert_int_equal(errors.count, 1);                                                         \
    } while (0)

/* Before every test: errors are counted, work runs on the CPU. */
static inline int setup_cpu(void **state)
{
    mlx_device cpu = mlx_device_new_type(MLX_CPU, 0);

    (void)state;
    memset(&errors, 0, sizeof errors);
    mlx_set_error_handler(count_error, &errors, NULL);
    int status = mlx_set_default_device(cpu);
    mlx_device_free(cpu);
    return status;
}

static inline mlx_array vector_of(const float *values, int n)
{
    return mlx_array_new_data(values, &n, 1, MLX_FLOAT32);
}

static inline void assert_floats(mlx_array a, const float *expected, size_t n)
{
    assert_ok(mlx_array_eval(a));
    assert_int_equal(mlx_array_size(a), n);
    const float *found = mlx_array_data_float32(a);
    for (size_t i = 0; i < n; i++)
        assert_true(found[i] == expected[i]);
}

static inline void assert_text(mlx_string s, const char *expected)
{
    assert_string_equal(mlx_string_data(s), expected);
    mlx_string_free(s);
}
