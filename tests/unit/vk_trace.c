/* The trace file and the times of kernels: what the GPU adds to them. */
#include "support/child.h"
#include "support/testing.h"
#include "support/vk.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/stat.h"
#include "base/times.h"
#include "base/trace.h"

static char path[] = "/tmp/vk_trace_XXXXXX"; /* for mkstemp */

static void probe_five_times(void)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 1000);

    for (int i = 0; i < 5; i++)
        vkt_encode(s, &(struct vkt_probe){ .in = i ? a : NULL, .out = a, .mul = 1, .add = 1 });
    assert_int_equal(vkt_read(s, a)[0], 5);
    arr_unref(&a);
}

static void traced(void)
{
    int64_t begin = trace_span_begin();

    assert_true(trace_is_on());
    probe_five_times();
    trace_span_end("the test's span", begin);
}

/* The times of kernels add up to the time that the GPU was busy. */
static void timed(void)
{
    struct times_key key = { .device = "gpu", .name = "probe" };
    uint64_t calls, ns;

    assert_false(trace_is_on());
    assert_true(times_are_on());
    probe_five_times();
    times_get(&calls, &ns, &key);
    assert_int_equal(calls, 5);
    assert_true(ns > 0);
    assert_true(ns <= stat_get(STAT_GPU_NANOSECONDS));
}

/* Without statistics only command buffers have timestamps. */
static void busy_only(void)
{
    struct times_key key = { .device = "gpu", .name = "probe" };
    uint64_t calls, ns;

    probe_five_times();
    times_get(&calls, &ns, &key);
    assert_int_equal(calls, 0);
    assert_true(stat_get(STAT_GPU_NANOSECONDS) > 0);
}

static void test_trace(void **state)
{
    static char text[65536];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_true(test_in_child(traced, (const char *[]){ "MLX_VK_PROFILE", path, NULL }));
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    unlink(path);
    assert_true(n > 0);
    assert_int_equal(test_count(text, "\"name\":\"probe\""), 5);
    assert_int_equal(test_count(text, "the test's span"), 1);
    assert_int_equal(test_count(text, "build pipeline"), 1);
    assert_true(test_count(text, "\"name\":\"submit\"") >= 1);
    assert_true(test_count(text, "\"name\":\"wait for the GPU\"") >= 1);
    assert_int_equal(test_count(text, "{"), test_count(text, "}"));
    assert_int_equal(strncmp(text, "{\"displayTimeUnit\"", 18), 0);
    assert_string_equal(text + n - 3, "]}\n");
}

static void test_times(void **state)
{
    static char text[65536];

    (void)state;
    assert_true(test_in_child_text(
        timed, (const char *[]){ "MLX_VK_TIMING", "1", "MLX_VK_ALGO_STATS", "1", NULL }, text,
        sizeof text));
    assert_int_equal(test_count(text, "1 built            4 reused  PIPELINE: probe\n"), 1);
    assert_int_equal(test_count(text, "dispatches"), 0);
    assert_true(test_in_child_text(
        timed, (const char *[]){ "MLX_VK_TIMING", "1", "MLX_VK_STATS", "1", NULL }, text,
        sizeof text));
    assert_int_equal(test_count(text, "5  dispatches\n"), 1);
    assert_int_equal(test_count(text, "100.0%  gpu probe\n"), 1);
    assert_true(test_in_child(busy_only, (const char *[]){ "MLX_VK_TIMING", "1", NULL }));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_trace),
                                        cmocka_unit_test(test_times) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
