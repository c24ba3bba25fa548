#include "backend/vulkan/rt/device.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/rt/alloc.h"
#include "backend/vulkan/rt/pipeline_cache.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/stat.h"
#include "base/trace.h"

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

/* Where spinning takes power from the GPU. */
#define SHARED_SPIN_US 50

struct vk_dev vk_dev;

static atomic_bool lost;
static atomic_bool ending; /* nothing is handed to a queue any more */

/* ---- results ---- */

static const struct result_row {
    VkResult result;
    enum err err;
    const char *text;
} result_rows[] = {
    { VK_ERROR_OUT_OF_HOST_MEMORY, ERR_NO_MEMORY, "out of host memory" },
    { VK_ERROR_OUT_OF_DEVICE_MEMORY, ERR_NO_MEMORY, "out of device memory" },
    { VK_ERROR_DEVICE_LOST, ERR_DEVICE, "the device was lost" },
    { VK_ERROR_INITIALIZATION_FAILED, ERR_DEVICE, "initialization failed" },
    { VK_ERROR_LAYER_NOT_PRESENT, ERR_UNSUPPORTED, "layer not present" },
    { VK_ERROR_EXTENSION_NOT_PRESENT, ERR_UNSUPPORTED, "extension not present" },
    { VK_ERROR_FEATURE_NOT_PRESENT, ERR_UNSUPPORTED, "feature not present" },
    { VK_ERROR_INCOMPATIBLE_DRIVER, ERR_UNSUPPORTED, "no compatible driver" },
};

enum err vk_check(VkResult r, const char *what)
{
    if (r >= 0)
        return ERR_OK;
    if (r == VK_ERROR_DEVICE_LOST)
        atomic_store(&lost, true);
    for (size_t i = 0; i < ARRAY_LEN(result_rows); i++)
        if (result_rows[i].result == r)
            return err_set(result_rows[i].err, "[vulkan] %s: %s", what, result_rows[i].text);
    return err_set(ERR_DEVICE, "[vulkan] %s failed with VkResult %d", what, (int)r);
}

bool vk_dev_is_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_acquire);
}

enum err vk_dev_check_lost(void)
{
    if (atomic_load(&ending))
        return err_set(ERR_DEVICE, "[vulkan] %s: the process is ending",
                       vk_dev.phys.props.deviceName);
    return vk_dev_is_lost() ? vk_check(VK_ERROR_DEVICE_LOST, vk_dev.phys.props.deviceName) : ERR_OK;
}

/* ---- instance ---- */

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                 void *user)
{
    (void)severity;
    (void)types;
    (void)user;
    stat_add(STAT_VALIDATION_MESSAGES, 1);
    log_warn("validation: %s", data->pMessage);
    return VK_FALSE;
}

static const VkDebugUtilsMessengerCreateInfoEXT messenger_info = {
    .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
    .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
    .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                   VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
    .pfnUserCallback = on_message,
};

static bool has_validation_layer(void)
{
    VkLayerProperties layers[64];
    uint32_t n = ARRAY_LEN(layers);

    if (vk.EnumerateInstanceLayerProperties(&n, layers) < 0)
        n = 0;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(layers[i].layerName, VALIDATION_LAYER) == 0)
            return true;
    log_warn("%s is set, but " VALIDATION_LAYER " is not installed",
             gate_table[GATE_VK_VALIDATE].variable);
    return false;
}

static enum err create_instance(void)
{
    static const char *const layers[] = { VALIDATION_LAYER };
    static const char *const extensions[] = { VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                              VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME };
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
    };
    static const VkApplicationInfo app = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pApplicationName = "mlx",
                                           .pEngineName = "mlx-vulkan",
                                           .apiVersion = VK_API_VERSION_1_3 };
    VkValidationFeaturesEXT validation = { .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                           .pNext = &messenger_info,
                                           .enabledValidationFeatureCount = ARRAY_LEN(enables),
                                           .pEnabledValidationFeatures = enables };
    VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                  .pApplicationInfo = &app };
    VkDebugUtilsMessengerEXT messenger;
    uint32_t version = 0;
    enum err err;

    if (vk.EnumerateInstanceVersion(&version) < 0 || version < VK_API_VERSION_1_2)
        return err_set(ERR_UNSUPPORTED, "the Vulkan loader is older than Vulkan 1.2");
    bool validate = gate_on(GATE_VK_VALIDATE) && has_validation_layer();
    if (validate) {
        info.pNext = &validation;
        info.enabledLayerCount = ARRAY_LEN(layers);
        info.ppEnabledLayerNames = layers;
        info.enabledExtensionCount = ARRAY_LEN(extensions);
        info.ppEnabledExtensionNames = extensions;
    }
    int64_t begin = clock_ns();
    TRY(vk_check(vk.CreateInstance(&info, NULL, &vk_dev.instance), "vkCreateInstance"));
    stat_add(STAT_DRIVER_OPEN_NANOSECONDS, (uint64_t)(clock_ns() - begin));
    TRY(vk_load_instance(vk_dev.instance));
    if (validate && vk.CreateDebugUtilsMessengerEXT)
        TRY(vk_check(
            vk.CreateDebugUtilsMessengerEXT(vk_dev.instance, &messenger_info, NULL, &messenger),
            "vkCreateDebugUtilsMessengerEXT"));
out:
    return err;
}

/* ---- choice of the physical device ---- */

#define MAX_PHYS 16
static struct vk_phys found[MAX_PHYS];
static uint32_t n_found;

static int type_rank(VkPhysicalDeviceType type)
{
    static const int ranks[] = { [VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = 4,
                                 [VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = 3,
                                 [VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = 2,
                                 [VK_PHYSICAL_DEVICE_TYPE_CPU] = 1 };

    return (size_t)type < ARRAY_LEN(ranks) ? ranks[type] : 0;
}

/* By index among all devices when the setting is a number, else by part of the name. */
static bool is_asked_for(uint32_t index)
{
    const char *asked = gate_text(GATE_VK_DEVICE);
    char *end;

    if (!asked)
        return true;
    unsigned long number = strtoul(asked, &end, 10);
    if (isdigit((unsigned char)*asked) && !*end)
        return number == index;
    return strcasestr(found[index].props.deviceName, asked) != NULL;
}

static enum err list_devices(void)
{
    VkPhysicalDevice handles[MAX_PHYS];
    uint32_t n = vk_fault_hit(VK_FAULT_NO_DEVICE) ? 0 : MAX_PHYS;

    if (n && vk.EnumeratePhysicalDevices(vk_dev.instance, &n, handles) < 0)
        n = 0;
    for (uint32_t i = 0; i < n; i++) {
        enum err err = vk_phys_query(&found[i], handles[i]);
        if (err)
            return err;
        n_found = i + 1;
    }
    return n ? ERR_OK : err_set(ERR_UNSUPPORTED, "the Vulkan driver lists no device");
}

static enum err choose_device(void)
{
    const struct vk_phys *best = NULL, *below = NULL;

    for (uint32_t i = 0; i < n_found; i++) {
        const struct vk_phys *p = &found[i];
        if (!is_asked_for(i))
            continue;
        if (*p->misses)
            below = p;
        else if (!best || type_rank(p->props.deviceType) > type_rank(best->props.deviceType))
            best = p;
    }
    if (!best && below)
        return err_set(ERR_UNSUPPORTED, "%s lacks %s", below->props.deviceName, below->misses);
    if (!best)
        return err_set(ERR_UNSUPPORTED, "no Vulkan device matches %s=%s",
                       gate_table[GATE_VK_DEVICE].variable, gate_text(GATE_VK_DEVICE));
    vk_dev.phys = *best;
    return ERR_OK;
}

/* ---- queues and device ---- */

#define MAX_FAMILIES 16
#define NO_FAMILY UINT32_MAX

/* The first family with all of `with` and none of `without`. */
static uint32_t find_family(const VkQueueFamilyProperties *f, uint32_t n, VkQueueFlags with,
                            VkQueueFlags without)
{
    for (uint32_t i = 0; i < n; i++)
        if ((f[i].queueFlags & with) == with && !(f[i].queueFlags & without) && f[i].queueCount)
            return i;
    return NO_FAMILY;
}

struct queue_plan {
    uint32_t compute, n_compute; /* family and queues for streams */
    uint32_t transfer;           /* family of the transfer queue; NO_FAMILY: shares queues[0] */
    uint32_t timestamp_bits;
};

/* Queues of a compute-only family overlap where those of a graphics family serialise, and a
 * transfer-only family copies beside both. */
static enum err plan_queues(struct queue_plan *out)
{
    VkQueueFamilyProperties f[MAX_FAMILIES];
    uint32_t n = MAX_FAMILIES;

    vk.GetPhysicalDeviceQueueFamilyProperties(vk_dev.phys.handle, &n, f);
    out->compute = find_family(f, n, VK_QUEUE_COMPUTE_BIT, VK_QUEUE_GRAPHICS_BIT);
    if (out->compute == NO_FAMILY)
        out->compute = find_family(f, n, VK_QUEUE_COMPUTE_BIT, 0);
    if (out->compute == NO_FAMILY)
        return err_set(ERR_UNSUPPORTED, "%s has no compute queue", vk_dev.phys.props.deviceName);
    out->n_compute = MIN(f[out->compute].queueCount, (uint32_t)VK_MAX_QUEUES);
    out->timestamp_bits = f[out->compute].timestampValidBits;
    out->transfer =
        find_family(f, n, VK_QUEUE_TRANSFER_BIT, VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT);
    return ERR_OK;
}

static void get_queue(struct vk_queue *q, uint32_t family, uint32_t index)
{
    q->family = family;
    pthread_mutex_init(&q->lock, NULL);
    vk.GetDeviceQueue(vk_dev.handle, family, index, &q->handle);
}

static void get_queues(const struct queue_plan *plan)
{
    vk_dev.n_queues = plan->n_compute;
    for (uint32_t i = 0; i < plan->n_compute; i++) {
        get_queue(&vk_dev.queues[i], plan->compute, i);
        vk_dev.queues[i].timestamp_bits = plan->timestamp_bits;
    }
    vk_dev.families[vk_dev.n_families++] = plan->compute;
    vk_dev.transfer = &vk_dev.queues[0];
    if (plan->transfer != NO_FAMILY) {
        vk_dev.families[vk_dev.n_families++] = plan->transfer;
        vk_dev.transfer = &vk_dev.transfer_queue;
        get_queue(vk_dev.transfer, plan->transfer, 0);
    } else if (vk_dev.n_queues > 1) { /* keeps copies off the streams' queues */
        vk_dev.transfer = &vk_dev.queues[--vk_dev.n_queues];
    }
}

static enum err create_device(void)
{
    static const float priorities[VK_MAX_QUEUES] = { 0 };
    const char *extensions[32];
    struct queue_plan plan = { 0 };
    enum err err;

    TRY(plan_queues(&plan));
    VkDeviceQueueCreateInfo queues[VK_MAX_FAMILIES] = {
        { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
          .queueFamilyIndex = plan.compute,
          .queueCount = plan.n_compute,
          .pQueuePriorities = priorities },
        { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
          .queueFamilyIndex = plan.transfer,
          .queueCount = 1,
          .pQueuePriorities = priorities },
    };
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &vk_dev.features.base,
        .queueCreateInfoCount = plan.transfer == NO_FAMILY ? 1 : 2,
        .pQueueCreateInfos = queues,
        .enabledExtensionCount =
            (uint32_t)vk_phys_enable(&vk_dev.features, extensions, &vk_dev.phys),
        .ppEnabledExtensionNames = extensions,
    };
    int64_t begin = clock_ns();
    TRY(vk_check(vk.CreateDevice(vk_dev.phys.handle, &info, NULL, &vk_dev.handle),
                 "vkCreateDevice"));
    stat_add(STAT_DRIVER_OPEN_NANOSECONDS, (uint64_t)(clock_ns() - begin));
    TRY(vk_load_device(vk_dev.handle));
    get_queues(&plan);
out:
    return err;
}

static enum err create_layout(void)
{
    static const VkPushConstantRange range = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                               .size = VK_PUSH_MAX };
    static const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range,
    };

    return vk_check(vk.CreatePipelineLayout(vk_dev.handle, &info, NULL, &vk_dev.layout),
                    "vkCreatePipelineLayout");
}

static void set_scope(void)
{
    vk_dev.work = (struct vk_scope){ VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                     VK_ACCESS_SHADER_READ_BIT, VK_ACCESS_SHADER_WRITE_BIT };
}

/* Larger than any block of arguments that may be absent. */
#define ABSENT_BYTES 4096

/* The lowest bit marks it; memory of the device is aligned. */
static enum err create_absent(void)
{
    enum err err = vk_mem_alloc(&vk_dev.zeros, VK_MEM_UPLOAD, ABSENT_BYTES);

    if (err)
        return err;
    memset(vk_dev.zeros->map, 0, ABSENT_BYTES);
    vk_dev.absent = vk_dev.zeros->base.addr | 1;
    return ERR_OK;
}

/* ---- opening ---- */

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static enum err open_err;
static char open_text[ERR_TEXT_MAX];

static void open_now(void)
{
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2
    };
    enum err err;

    TRY(vk_load_library());
    TRY(create_instance());
    TRY(list_devices());
    TRY(choose_device());
    TRY(create_device());
    process_watch(); /* the driver is loaded: its own exit handlers come after ours */
    vk.GetPhysicalDeviceMemoryProperties2(vk_dev.phys.handle, &memory);
    vk_dev.memory = memory.memoryProperties;
    TRY(create_layout());
    set_scope();
    TRY(vk_alloc_init());
    TRY(create_absent());
    vk_cache_load();
    log_info("Vulkan device: %s", vk_dev.phys.props.deviceName);
out:
    open_err = err;
    memcpy(open_text, err_text(), sizeof open_text);
}

enum err vk_dev_open(void)
{
    pthread_once(&open_once, open_now);
    return open_err ? err_set(open_err, "%.*s", ERR_TEXT_MAX - 1, open_text) : ERR_OK;
}

const struct vk_limits *vk_limits_get(void)
{
    return &vk_dev.phys.limits;
}

/* ---- queues, fences, names ---- */

struct vk_queue *vk_dev_queue_take(void)
{
    static atomic_uint next;

    return &vk_dev.queues[atomic_fetch_add(&next, 1) % vk_dev.n_queues];
}

enum err vk_queue_submit(struct vk_queue *q, const VkSubmitInfo *info, VkFence fence)
{
    VkResult r = VK_SUCCESS;

    enum err err = vk_dev_check_lost();

    if (err)
        return err;
    if (vk_fault_hit(VK_FAULT_LOST))
        r = VK_ERROR_DEVICE_LOST;
    else if (vk_fault_hit(VK_FAULT_SUBMIT))
        r = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (r == VK_SUCCESS) {
        int64_t begin = trace_span_begin();
        pthread_mutex_lock(&q->lock);
        if ((err = vk_dev_check_lost()) == ERR_OK) /* the end may have come meanwhile */
            r = vk.QueueSubmit(q->handle, 1, info, fence);
        pthread_mutex_unlock(&q->lock);
        trace_span_end("submit", begin);
    }
    if (err)
        return err;
    stat_add(STAT_SUBMITS, 1);
    return vk_check(r, "vkQueueSubmit");
}

void vk_dev_end(void)
{
    atomic_store(&ending, true);
    for (uint32_t i = 0; i < vk_dev.n_queues; i++) { /* whoever submits now is through after this */
        pthread_mutex_lock(&vk_dev.queues[i].lock);
        pthread_mutex_unlock(&vk_dev.queues[i].lock);
    }
}

void vk_dev_close(void)
{
    atomic_store(&lost, true);
}

/* Polling sees a short batch after about 11 us, a blocking wait after 36 to 48, and a thread that
 * slept finds caches and clock cold: it encodes the next token in up to twice the time. A software
 * device needs the core that a spinning thread would occupy. */
static int64_t spin_ns(void)
{
    int64_t us = gate_int(GATE_VK_SPIN_US);

    if (vk_limits_get()->is_software)
        return 0;
    if (vk_dev.phys.props.deviceType != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU)
        us = MIN(us, SHARED_SPIN_US);
    return us * 1000;
}

enum err vk_fence_wait(VkFence fence)
{
    int64_t until = clock_ns() + spin_ns();
    int64_t begin = trace_span_begin();
    const char *call = "vkGetFenceStatus";
    VkResult r;

    do {
        r = vk.GetFenceStatus(vk_dev.handle, fence);
    } while (r == VK_NOT_READY && clock_ns() < until);
    if (r == VK_NOT_READY) {
        stat_add(STAT_HOST_WAITS, 1);
        call = "vkWaitForFences";
        r = vk.WaitForFences(vk_dev.handle, 1, &fence, VK_TRUE, UINT64_MAX);
    }
    trace_span_end("wait for the GPU", begin);
    return vk_check(r, call);
}

void vk_name(VkObjectType type, uint64_t handle, const char *name)
{
    VkDebugUtilsObjectNameInfoEXT info = { .sType =
                                               VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                           .objectType = type,
                                           .objectHandle = handle,
                                           .pObjectName = name };

    if (vk.SetDebugUtilsObjectNameEXT && gate_on(GATE_VK_VALIDATE))
        vk.SetDebugUtilsObjectNameEXT(vk_dev.handle, &info);
}

/* ---- description ---- */

static const char *type_text(VkPhysicalDeviceType type)
{
    static const char *const texts[] = { "other", "integrated GPU", "discrete GPU", "virtual GPU",
                                         "software" };

    return (size_t)type < ARRAY_LEN(texts) ? texts[type] : "unknown";
}

static void describe_device(FILE *out, uint32_t index)
{
    const struct vk_phys *p = &found[index];
    uint32_t v = p->props.apiVersion;

    fprintf(out, "device %u: %s (%s), Vulkan %u.%u.%u\n", index, p->props.deviceName,
            type_text(p->props.deviceType), VK_API_VERSION_MAJOR(v), VK_API_VERSION_MINOR(v),
            VK_API_VERSION_PATCH(v));
    if (*p->misses)
        fprintf(out, "  below the floor, lacks: %s\n", p->misses);
}

static void describe_caps(FILE *out)
{
    for (size_t i = 0; i < vk_cap_count; i++) {
        const struct vk_cap_row *row = &vk_cap_rows[i];
        bool is_present = vk_dev.phys.present & row->cap;

        fprintf(out, "  %-8s %s (%s)%s\n", is_present ? "present" : "missing", row->text,
                row->extension, is_present && !row->is_used ? ", not used yet" : "");
    }
}

static void describe_limits(FILE *out)
{
    const struct vk_limits *l = &vk_dev.phys.limits;

    fprintf(out, "limits: subgroup %u (%u-%u), workgroup %u, shared memory %u KiB, %u units\n",
            l->subgroup_size, l->min_subgroup, l->max_subgroup, l->max_workgroup_size,
            l->shared_memory / 1024, l->compute_units);
    fprintf(out, "queues: family %u, %u for streams; copies on family %u%s\n",
            vk_dev.queues[0].family, vk_dev.n_queues, vk_dev.transfer->family,
            vk_dev.transfer == &vk_dev.queues[0] ? " (shared)" : "");
}

void vk_dev_describe(FILE *out)
{
    enum err err = vk_dev_open();

    for (uint32_t i = 0; i < n_found; i++)
        describe_device(out, i);
    if (err) {
        fprintf(out, "no usable Vulkan device: %s\n", err_text());
        return;
    }
    fprintf(out, "in use: %s, driver %s %s\n", vk_dev.phys.props.deviceName,
            vk_dev.phys.props12.driverName, vk_dev.phys.props12.driverInfo);
    describe_limits(out);
    vk_alloc_describe(out);
    vk_cache_describe(out);
    fprintf(out, "capabilities beyond the floor:\n");
    describe_caps(out);
}
