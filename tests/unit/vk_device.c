/* Opening the device: what is there, what is missing, and that the process goes on either way.
 * Every case runs in a process of its own, because the device is opened once. */
#include "support/child.h"
#include "support/testing.h"
#include "support/vk.h"

#include <stdio.h>
#include <stdlib.h>

#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/rt/device.h"
#include "base/stat.h"

#define SETTINGS(...) ((const char *[]){ __VA_ARGS__, NULL })

static char *describe(void)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    be_vulkan.describe(f);
    fclose(f);
    return text;
}

static void assert_described(const char *what)
{
    char *text = describe();

    if (!strstr(text, what))
        fail_msg("'%s' is not in:\n%s", what, text);
    free(text);
}

/* The GPU is refused with a text that holds `why`, twice alike; the CPU works. */
static void assert_unusable(const char *why)
{
    struct strm *s = NULL;
    struct arr *a = NULL;

    for (int i = 0; i < 2; i++) {
        assert_fails(ERR_UNSUPPORTED, be_vulkan.open());
        if (!strstr(err_text(), why))
            fail_msg("'%s' is not in '%s'", why, err_text());
    }
    assert_int_equal(be_vulkan.device_count(), 0);
    assert_false(be_vulkan.is_hardware());
    assert_false(dev_is_available((struct dev){ DEV_GPU, 0 }));
    assert_int_equal(dev_default().type, DEV_CPU);
    assert_described(why);
    assert_fails(ERR_ARG, strm_new(&s, (struct dev){ DEV_GPU, 0 }));
    assert_ok(strm_new(&s, (struct dev){ DEV_CPU, 0 }));
    assert_ok(arr_new_number(&a, 1, DT_FLOAT32));
    arr_unref(&a);
}

/* ---- children ---- */

static void usable(void)
{
    const struct vk_limits *l = vk_limits_get();
    const struct be_info_row *rows;
    size_t n;

    assert_ok(be_vulkan.open());
    assert_ok(be_vulkan.open());
    assert_int_equal(be_vulkan.device_count(), 1);
    assert_true(l->min_subgroup <= l->subgroup_size && l->subgroup_size <= l->max_subgroup);
    assert_true(l->max_workgroup_size >= 128 && l->shared_memory >= 16384);
    assert_true(l->compute_units > 0);
    assert_true(be_vulkan.memory_size() > 0);
    assert_ok(be_vulkan.device_info(&rows, &n, 0));
    assert_int_equal(n, 7);
    assert_string_equal(rows[0].key, "device_name");
    assert_string_equal(rows[0].text, vk_dev.phys.props.deviceName);
    assert_ok(be_vulkan.device_info(&rows, &n, 1));
    assert_int_equal(n, 0);
    assert_described(vk_dev.phys.props.deviceName);
    assert_described("memory: ");
    assert_described("queues: ");
    assert_described("VK_KHR_cooperative_matrix");
    assert_int_equal(stat_get(STAT_VALIDATION_MESSAGES), 0);
}

static void no_library(void)
{
    assert_unusable("no Vulkan loader");
}

static void not_vulkan(void)
{
    assert_unusable("is not a Vulkan loader");
}

static void no_driver(void)
{
    assert_unusable("no compatible driver");
}

static void no_device(void)
{
    vk_fault_set(VK_FAULT_NO_DEVICE, -1);
    assert_unusable("lists no device");
}

static void below_floor(void)
{
    vk_fault_set(VK_FAULT_FLOOR, -1);
    assert_unusable("an injected feature");
}

static void no_match(void)
{
    assert_unusable("no Vulkan device matches MLX_VK_DEVICE=nonesuch");
}

static void test_open(void **state)
{
    (void)state;
    assert_true(test_in_child(usable, NULL));
    assert_true(test_in_child(usable, SETTINGS("MLX_VK_DEVICE", "0")));
}

static void test_validation_layer(void **state)
{
    (void)state;
    assert_true(test_in_child(usable, SETTINGS("MLX_VK_VALIDATE", "1")));
}

static void test_missing_parts(void **state)
{
    (void)state;
    assert_true(test_in_child(no_library, SETTINGS("MLX_VK_LIBRARY", "libnonesuch.so")));
    assert_true(test_in_child(not_vulkan, SETTINGS("MLX_VK_LIBRARY", "libc.so.6")));
    assert_true(test_in_child(no_driver, SETTINGS("VK_ICD_FILENAMES", "/nonexistent.json",
                                                  "VK_DRIVER_FILES", "/nonexistent.json")));
    assert_true(test_in_child(no_device, NULL));
    assert_true(test_in_child(below_floor, NULL));
    assert_true(test_in_child(no_match, SETTINGS("MLX_VK_DEVICE", "nonesuch")));
}

/* Every queue is handed out before one is shared. */
static void queues(void)
{
    assert_ok(be_vulkan.open());
    for (uint32_t i = 0; i < vk_dev.n_queues; i++)
        assert_ptr_equal(vk_dev_queue_take(), &vk_dev.queues[i]);
    assert_ptr_equal(vk_dev_queue_take(), &vk_dev.queues[0]);
    assert_non_null(vk_dev.transfer);
}

static void test_queues(void **state)
{
    (void)state;
    assert_true(test_in_child(queues, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_validation_layer),
        cmocka_unit_test(test_missing_parts),
        cmocka_unit_test(test_queues),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
