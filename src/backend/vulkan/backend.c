/* The table of the Vulkan backend. */
#include "backend/backend.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#include "backend/common/families.h"
#include "backend/vulkan/exit_report.h"
#include "backend/vulkan/ops/eager_read.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/group.h"
#include "backend/vulkan/ops/kernel.h"
#include "backend/vulkan/rt/alloc.h"
#include "backend/vulkan/rt/device.h"
#include "backend/vulkan/rt/recording.h"
#include "backend/vulkan/rt/stream.h"
#include "backend/vulkan/rt/transfer.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "eval/sched.h"

static const be_op_fn families[OP_FAMILY_COUNT] = {
#define COMMON(id, word) [OP_FAMILY_##id] = be_##word,
#define OWN(id, word) [OP_FAMILY_##id] = vk_##word,
#define GPU_ONLY(id, word) [OP_FAMILY_##id] = vk_##word,
#include "ops/families.def"
};

static void prepare(void)
{
    sched_set_reaper(vk_streams_retire);
    exit_report_register();
}

static enum err open_device(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, prepare);
    return vk_dev_open();
}

static int device_count(void)
{
    return open_device() == ERR_OK ? 1 : 0;
}

static bool is_hardware(void)
{
    return open_device() == ERR_OK && !vk_limits_get()->is_software;
}

static bool is_unified(void)
{
    return open_device() == ERR_OK && vk_is_unified();
}

static struct be_info_row info_rows[7];
static char driver[VK_MAX_DRIVER_NAME_SIZE + VK_MAX_DRIVER_INFO_SIZE];

static void fill_info(void)
{
    const struct vk_phys *p = &vk_dev.phys;
    const struct be_info_row rows[] = {
        { .key = "device_name", .text = p->props.deviceName },
        { .key = "architecture", .text = p->props12.driverName },
        { .key = "driver", .text = driver },
        { .key = "max_buffer_length", .number = vk_memory_max_buffer() },
        { .key = "max_recommended_working_set_size", .number = vk_memory_budget() },
        { .key = "memory_size", .number = vk_memory_size() },
        { .key = "resource_limit", .number = p->props.limits.maxMemoryAllocationCount },
    };

    static_assert(sizeof rows == sizeof info_rows, "one row each");
    snprintf(driver, sizeof driver, "%s %s", p->props12.driverName, p->props12.driverInfo);
    memcpy(info_rows, rows, sizeof rows);
}

static enum err device_info(const struct be_info_row **rows, size_t *n, int index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    enum err err = open_device();

    *n = 0;
    *rows = info_rows;
    if (err || index != 0)
        return err;
    pthread_once(&once, fill_info);
    *n = ARRAY_LEN(info_rows);
    return ERR_OK;
}

static enum err buf_alloc(struct buf **out, size_t size)
{
    enum err err = open_device();

    return err ? err : vk_buf_alloc(out, size);
}

static enum err strm_open(struct strm *s)
{
    enum err err = open_device();

    return err ? err : vk_strm_open(s);
}

const struct be be_vulkan = {
    .name = "vulkan",
    .type = DEV_GPU,
    .open = open_device,
    .device_count = device_count,
    .is_hardware = is_hardware,
    .device_info = device_info,
    .buf_alloc = buf_alloc,
    .buf_free = vk_buf_free,
    .buf_mirror = vk_buf_mirror,
    .buf_takes_host_writes = vk_buf_takes_host_writes,
    .buf_write = vk_buf_write,
    .buf_fill = vk_buf_fill,
    .is_unified = is_unified,
    .cache_clear = vk_alloc_clear,
    .memory_size = vk_memory_size,
    .strm_open = strm_open,
    .strm_close = vk_strm_close,
    .elementwise = vk_elementwise,
    .families = families,
    .groups = vk_groups,
    .kernel_check = vk_kernel_check,
    .copy = vk_copy,
    .hold = vk_strm_hold,
    .step_end = vk_strm_step_end,
    .flush = vk_strm_flush,
    .retire = vk_strm_retire,
    .sync = vk_strm_sync,
    .eager_read = vk_eager_read,
    .ev_record = vk_ev_record,
    .ev_wait = vk_ev_wait,
    .ev_query = vk_ev_query,
    .quiesce = vk_quiesce,
    .strm_wait = vk_strm_wait,
    .recording_new = vk_recording_new,
    .recording_free = vk_recording_free,
    .recording_bind = vk_recording_bind,
    .recording_rebind = vk_recording_rebind,
    .recording_place = vk_recording_place,
    .recording_begin = vk_recording_begin,
    .recording_end = vk_recording_end,
    .recording_move = vk_group_move,
    .recording_close = vk_recording_close,
    .recording_places = vk_recording_places,
    .recording_run = vk_recording_run,
    .describe = vk_dev_describe,
    .stats = vk_stats,
};
