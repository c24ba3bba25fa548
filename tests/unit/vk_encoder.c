/* Command encoding: results, barriers only for hazards, thresholds, lifetimes, events. */
#include "support/testing.h"
#include "support/vk.h"

#include "backend/vulkan/fault.h"
#include "backend/vulkan/hazard_check.h"
#include "backend/vulkan/record.h"
#include "backend/vulkan/stream.h"
#include "core/gate.h"
#include "core/memory.h"
#include "core/stat.h"

#define N 1000

static void first_dispatch(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);
    uint64_t before = stat_get(STAT_DISPATCHES);

    (void)state;
    vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 3, .add = 7 });
    const uint32_t *v = vkt_read(s, a);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(v[i], i * 3 + 7);
    assert_int_equal(stat_get(STAT_DISPATCHES) - before, 1);
    arr_unref(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_dispatch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
