/* The trace file: GPU dispatches by kernel name, CPU spans, loadable as JSON. */
#include "support/testing.h"
#include "support/vk.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/vulkan/trace.h"

static char path[] = "vk_trace_XXXXXX";

static void traced(void)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 1000);
    int64_t begin = trace_span_begin();

    assert_true(trace_is_on());
    for (int i = 0; i < 5; i++)
        vkt_encode(s, &(struct vkt_probe){ .in = i ? a : NULL, .out = a, .mul = 1, .add = 1 });
    assert_int_equal(vkt_read(s, a)[0], 5);
    trace_span_end("the test's span", begin);
    arr_unref(&a);
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static void test_trace(void **state)
{
    static char text[65536];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_true(vkt_in_child(traced, (const char *[]){ "MLX_VK_PROFILE", path, NULL }));
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    unlink(path);
    assert_true(n > 0);
    assert_int_equal(count(text, "\"name\":\"probe\""), 5);
    assert_int_equal(count(text, "the test's span"), 1);
    assert_int_equal(count(text, "build pipeline"), 1);
    assert_int_equal(count(text, "{"), count(text, "}"));
    assert_int_equal(strncmp(text, "{\"displayTimeUnit\"", 18), 0);
    assert_string_equal(text + n - 3, "]}\n");
}

static void untraced(void)
{
    assert_false(trace_is_on());
    assert_int_equal(trace_span_begin(), 0);
    trace_span_end("nothing", 0);
}

static void test_off(void **state)
{
    (void)state;
    assert_true(vkt_in_child(untraced, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_trace), cmocka_unit_test(test_off) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
