/* Graphs as text. */
#include "api_test.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static const mlx_stream s = { NULL };

/* What print writes, as a string of at most 4095 characters. */
static const char *written(int (*print)(FILE *, const mlx_node_namer, const mlx_vector_array),
                           mlx_node_namer namer, mlx_vector_array outputs)
{
    static char text[4096];
    FILE *f = tmpfile();

    assert_non_null(f);
    assert_ok(print(f, namer, outputs));
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

static void test_names(void **state)
{
    mlx_node_namer namer = mlx_node_namer_new();
    mlx_array a[30];
    const char *name = NULL;

    (void)state;
    for (int i = 0; i < 30; i++)
        a[i] = mlx_array_new_int(i);
    assert_ok(mlx_node_namer_set_name(namer, a[0], "weights"));
    assert_ok(mlx_node_namer_get_name(&name, namer, a[0]));
    assert_string_equal(name, "weights");
    assert_ok(mlx_node_namer_set_name(namer, a[0], "bias"));
    assert_ok(mlx_node_namer_get_name(&name, namer, a[0]));
    assert_string_equal(name, "bias");
    for (int i = 1; i < 30; i++)
        assert_ok(mlx_node_namer_get_name(&name, namer, a[i]));
    assert_string_equal(name, "AD"); /* the 30th name: Z is the 26th */
    assert_ok(mlx_node_namer_get_name(&name, namer, a[1]));
    assert_string_equal(name, "B");
    for (int i = 0; i < 30; i++)
        mlx_array_free(a[i]);
    mlx_node_namer_free(namer);
}

static void test_print(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 2 }, 2), b = mlx_array_new();
    mlx_node_namer namer = mlx_node_namer_new();

    (void)state;
    assert_ok(mlx_node_namer_set_name(namer, a, "x"));
    assert_ok(mlx_add(&b, a, a, s));
    assert_ok(mlx_exp(&b, b, s));
    mlx_vector_array outputs = mlx_vector_array_new_value(b);
    const char *expected = "Inputs: x [(2), float32]\n"
                           "Outputs: B [(2), float32]\n"
                           "Add x [(2), float32], x [(2), float32] -> C [(2), float32]\n"
                           "Exp C [(2), float32] -> B [(2), float32]\n";
    assert_string_equal(written(mlx_print_graph, namer, outputs), expected);
    assert_string_equal(written(mlx_print_graph, namer, outputs), expected); /* namer unchanged */
    assert_non_null(strstr(written(mlx_print_graph, (mlx_node_namer){ NULL }, outputs),
                           "Inputs: A [(2), float32]"));
    mlx_vector_array_free(outputs);
    mlx_node_namer_free(namer);
    mlx_array_free(a);
    mlx_array_free(b);
}

static void test_dot(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 2, 3, 4 }, 4);
    mlx_vector_array parts = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_split(&parts, a, 2, 0, s));
    assert_string_equal(written(mlx_export_to_dot, (mlx_node_namer){ NULL }, parts),
                        "digraph {\n"
                        "{ rank=source; \"A\"; }\n"
                        "{ 1 [label =\"Split\", shape=rectangle]; }\n"
                        "\"A\" -> 1\n"
                        "{ rank=sink; \"B\"; }\n"
                        "1 -> \"B\"\n"
                        "{ rank=sink; \"C\"; }\n"
                        "1 -> \"C\"\n"
                        "}");
    mlx_vector_array_free(parts);
    mlx_array_free(a);
}

/* Deeper than a stack would allow, and every node once. */
static void test_deep(void **state)
{
    mlx_array a = mlx_array_new_float(0);
    FILE *f = tmpfile();

    (void)state;
    assert_non_null(f);
    for (int i = 0; i < 100000; i++)
        assert_ok(mlx_add(&a, a, a, s));
    mlx_vector_array outputs = mlx_vector_array_new_value(a);
    assert_ok(mlx_print_graph(f, (mlx_node_namer){ NULL }, outputs));
    fclose(f);
    mlx_vector_array_free(outputs);
    mlx_array_free(a);
}

/* ---- a reader that waits for an eval ---- */

struct print {
    FILE *to;
    mlx_vector_array outputs;
    int (*fn)(FILE *, const mlx_node_namer, const mlx_vector_array);
};

static void *print_it(void *arg)
{
    struct print *p = arg;

    assert_ok(p->fn(p->to, (mlx_node_namer){ NULL }, p->outputs));
    fclose(p->to);
    return NULL;
}

static void wait_until_full(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };

    while (poll(&p, 1, 0) == 1 && p.revents & POLLOUT)
        usleep(1000);
}

/* Of a graph whose text is longer than a pipe. */
static void check_pipe(int (*fn)(FILE *, const mlx_node_namer, const mlx_vector_array))
{
    mlx_array a = mlx_array_new_float(0), b = mlx_array_new_float(1);
    char text[4096];
    pthread_t thread;
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    for (int i = 0; i < 10000; i++)
        assert_ok(mlx_add(&a, a, a, s));
    struct print p = { fdopen(dup(fd[1]), "w"), mlx_vector_array_new_value(a), fn };
    assert_int_equal(pthread_create(&thread, NULL, print_it, &p), 0);
    wait_until_full(fd[1]);
    assert_ok(mlx_add(&b, b, b, s));
    assert_ok(mlx_array_eval(b));
    close(fd[1]);
    while (read(fd[0], text, sizeof text) > 0)
        ;
    pthread_join(thread, NULL);
    close(fd[0]);
    mlx_vector_array_free(p.outputs);
    mlx_array_free(a);
    mlx_array_free(b);
}

static void test_full_pipe(void **state)
{
    (void)state;
    alarm(60); /* before a hang is noticed from outside */
    check_pipe(mlx_print_graph);
    check_pipe(mlx_export_to_dot);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_print),     cmocka_unit_test(test_dot),
        cmocka_unit_test(test_deep),  cmocka_unit_test(test_full_pipe),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
