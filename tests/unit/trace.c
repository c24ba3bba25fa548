/* The trace file of work on the CPU, spans of a device's clock, and the report at exit. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gate.h"
#include "base/times.h"
#include "base/trace.h"
#include "eval/eval.h"
#include "support/arrays.h"
#include "support/child.h"

static char text[1 << 16];

/* What a child without a report writes to stderr: cmocka's own line. */
#define NOTHING "[  PASSED  ] 1 test(s).\n"

/* ---- work ---- */

/* sqrt(a + a) */
static void evaluate(void)
{
    const double complex v[] = { 2, 8, 18, 32 };
    struct arr *a = arr_of(v, SHAPE(4), DT_FLOAT32), *b = NULL, *c = NULL;
    struct strm *s = test_stream();

    assert_ok(ops_binary(&b, OP_ADD, a, a, s));
    assert_ok(ops_unary(&c, OP_SQRT, b, s));
    double complex *got = arr_values(c);
    assert_float_equal(creal(got[3]), 8, 0);
    mem_free(got);
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&c);
}

/* A device whose clock runs 5 s behind, and whose first span is seen late. */
static void device_spans(void)
{
    int64_t now = clock_ns(), lag = 5000000000;
    struct trace_device_span s = { .name = "late", .track = 3, .begin = now - lag };

    assert_true(trace_is_on());
    s.end = s.begin + 1000;
    s.seen = s.end + lag + 900000;
    trace_device_span(&s);
    s.name = "soon";
    s.detail = "SOME_VARIANT";
    s.seen = s.end + lag;
    trace_device_span(&s);
    trace_span_end("the CPU's", now);
}

static void nothing_is_on(void)
{
    assert_false(trace_is_on());
    assert_false(times_are_on());
    assert_int_equal(trace_span_begin(), 0);
    trace_span_end("nothing", 0);
    times_op_set("Add");
    assert_null(times_op());
    evaluate();
}

/* ---- the file ---- */

/* The trace that fn leaves. */
static void trace_of(void (*fn)(void))
{
    char path[] = "/tmp/trace_XXXXXX"; /* for mkstemp */
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_true(test_in_child(fn, (const char *[]){ "MLX_VK_PROFILE", path, NULL }));
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    unlink(path);
    assert_true(n > 0);
    text[n] = '\0';
    assert_int_equal(strncmp(text, "{\"displayTimeUnit\"", 18), 0);
    assert_string_equal(text + n - 3, "]}\n");
    assert_int_equal(test_count(text, "{"), test_count(text, "}"));
}

static double number_after(const char *event, const char *field)
{
    char *at = strstr(text, event);

    assert_non_null(at);
    assert_non_null(at = strstr(at, field));
    return strtod(at + strlen(field), NULL);
}

static void test_cpu_work(void **state)
{
    (void)state;
    trace_of(evaluate);
    assert_int_equal(test_count(text, "\"name\":\"eval\""), 1);
    assert_int_equal(test_count(text, "\"name\":\"tape\""), 1);
    assert_int_equal(test_count(text, "\"name\":\"plan\""), 1);
    assert_int_equal(test_count(text, "\"name\":\"build plan\""), 1);
    assert_int_equal(test_count(text, "\"name\":\"encode\""), 1);
    assert_int_equal(test_count(text, "\"name\":\"fused elementwise\""), 1);
    assert_int_equal(test_count(text, "\"name\":\"CPU stream "), 1);
    assert_int_equal(number_after("\"name\":\"eval\"", "\"n\":"), 2);
    assert_true(number_after("\"name\":\"eval\"", "\"dur\":") >=
                number_after("\"name\":\"encode\"", "\"dur\":"));
    /* The op runs on the stream's thread. */
    assert_true(number_after("\"name\":\"fused elementwise\"", "\"tid\":") !=
                number_after("\"name\":\"eval\"", "\"tid\":"));
}

static void test_device_clock(void **state)
{
    double us;

    (void)state;
    trace_of(device_spans);
    us = number_after("\"name\":\"the CPU's\"", "\"ts\":");
    assert_float_equal(number_after("\"name\":\"late\"", "\"ts\":"), us, 0.01);
    assert_float_equal(number_after("\"name\":\"soon\"", "\"ts\":"), us, 0.01);
    assert_float_equal(number_after("\"name\":\"late\"", "\"dur\":"), 1, 0.01);
    assert_int_equal(number_after("\"name\":\"late\"", "\"tid\":"), 3);
    assert_int_equal(test_count(text, "\"variant\":\"SOME_VARIANT\""), 1);
}

static void test_unwritable_file(void **state)
{
    (void)state;
    assert_true(test_in_child_text(
        evaluate, (const char *[]){ "MLX_VK_PROFILE", "no/such/folder/t.json", NULL }, text,
        sizeof text));
    assert_int_equal(test_count(text, "the trace no/such/folder/t.json cannot be written"), 1);
}

static void test_off(void **state)
{
    (void)state;
    assert_true(test_in_child_text(nothing_is_on, NULL, text, sizeof text));
    assert_string_equal(text, NOTHING);
}

/* ---- times ---- */

static const struct times_key gemv = { "gpu", "gemv", "MATMUL", "GEMV_X" };
static const struct times_key gemm = { "gpu", "gemm", "MATMUL", NULL };
static const struct times_key fill = { "cpu", "Full", NULL, NULL };

static void print_times(const char *family)
{
    FILE *f = fmemopen(text, sizeof text, "w");

    assert_non_null(f);
    times_print(f, family);
    fclose(f);
}

static void test_times(void **state)
{
    struct times_key copy = gemv;
    char name[] = "gemv";
    uint64_t calls, ns;

    (void)state;
    times_reset();
    memset(text, 0, sizeof text);
    print_times(NULL);
    assert_string_equal(text, "");
    copy.name = name;
    times_add(&gemv, 1000);
    times_add(&copy, 5000);
    times_add(&gemm, 18000);
    times_add(&fill, 4000);
    times_get(&calls, &ns, &gemv);
    assert_int_equal(calls, 2);
    assert_int_equal(ns, 6000);
    print_times(NULL);
    assert_non_null(strstr(text, "1           18.0        18.00   75.0%  gpu gemm\n"
                                 "           2            6.0         3.00   25.0%  gpu gemv "
                                 "(GEMV_X)\n"
                                 "           1            4.0         4.00  100.0%  cpu Full\n"));
    memset(text, 0, sizeof text);
    print_times("MAT");
    assert_int_equal(test_count(text, "gpu"), 2);
    assert_int_equal(test_count(text, "cpu"), 0);
    times_reset();
}

/* More kernels than rows: none is lost. */
static void test_too_many_times(void **state)
{
    static char names[5000][8];

    (void)state;
    times_reset();
    for (int i = 0; i < 5000; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        times_add(&(struct times_key){ .device = "gpu", .name = names[i] }, 1);
    }
    FILE *f = tmpfile();
    char line[256];
    unsigned long long n, sum = 0;
    assert_non_null(f);
    times_print(f, NULL);
    rewind(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%llu", &n) == 1)
            sum += n;
    fclose(f);
    assert_int_equal(sum, 5000);
    times_reset();
}

/* ---- the report ---- */

static void report_of(const char *const *settings)
{
    assert_true(test_in_child_text(evaluate, settings, text, sizeof text));
}

static void test_report(void **state)
{
    (void)state;
    report_of((const char *[]){ "MLX_VK_STATS", "1", NULL });
    assert_int_equal(test_count(text, "1  evals\n"), 1);
    assert_int_equal(test_count(text, "1  CPU tasks\n"), 1);
    assert_int_equal(test_count(text, "total us"), 0);
    report_of((const char *[]){ "MLX_VK_STATS", "1", "MLX_VK_TIMING", "1", NULL });
    assert_int_equal(test_count(text, "total us"), 1);
    assert_int_equal(test_count(text, "100.0%  cpu fused elementwise\n"), 1);
    /* A filter that nothing falls into. */
    report_of((const char *[]){ "MLX_VK_QMM_STATS", "1", "MLX_VK_TIMING", "1", NULL });
    assert_string_equal(text, NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_work),        cmocka_unit_test(test_device_clock),
        cmocka_unit_test(test_unwritable_file), cmocka_unit_test(test_off),
        cmocka_unit_test(test_times),           cmocka_unit_test(test_too_many_times),
        cmocka_unit_test(test_report),
    };

    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
