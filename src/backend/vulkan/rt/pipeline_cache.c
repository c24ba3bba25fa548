#include "backend/vulkan/rt/pipeline_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/vulkan/rt/device.h"
#include "base/file.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"

/* Changes when the file's own format does. */
#define FILE_VERSION "1"
#define FILE_MAGIC "MLXVKPC" FILE_VERSION
#define FOLDER "mlx-vulkan"
/* A cache beyond this is not ours. */
#define FILE_MAX ((size_t)1 << 30)

/* Before the driver's data: drivers trust what they are given, so a torn or foreign file must be
 * found here. */
struct file_header {
    char magic[8];
    uint64_t size; /* of the data that follows */
    uint64_t hash; /* over it */
};

static VkPipelineCache handle;
static atomic_bool dirty;
static char path[PATH_MAX];

/* ---- where ---- */

static bool make_folders(char *folder)
{
    for (char *slash = folder + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
            *slash = '/';
            return false;
        }
    }
    return mkdir(folder, 0700) == 0 || errno == EEXIST;
}

static bool find_folder(char *out, size_t size)
{
    const char *own = gate_text(GATE_VK_CACHE_DIR);
    const char *xdg = gate_text(GATE_XDG_CACHE_HOME), *home = gate_text(GATE_HOME);
    int n = -1;

    if (own)
        n = snprintf(out, size, "%s", own);
    else if (xdg)
        n = snprintf(out, size, "%s/" FOLDER, xdg);
    else if (home)
        n = snprintf(out, size, "%s/.cache/" FOLDER, home);
    return n > 0 && (size_t)n < size;
}

static bool find_path(void)
{
    const VkPhysicalDeviceProperties *p = &vk_dev.phys.props;
    char folder[PATH_MAX - 128], uuid[2 * VK_UUID_SIZE + 1];

    if (!find_folder(folder, sizeof folder))
        return false;
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        snprintf(uuid + 2 * i, 3, "%02x", p->pipelineCacheUUID[i]);
    snprintf(path, sizeof path, "%s/v" FILE_VERSION "-%08x-%08x-%08x-%s.bin", folder, p->vendorID,
             p->deviceID, p->driverVersion, uuid);
    return true;
}

/* ---- reading ---- */

static bool read_all(int fd, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, (char *)data + done, size - done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* The driver's own header names the device that the data is for. */
static bool is_for_this_device(const void *data, size_t size)
{
    const VkPhysicalDeviceProperties *p = &vk_dev.phys.props;
    VkPipelineCacheHeaderVersionOne h;

    if (size < sizeof h)
        return false;
    memcpy(&h, data, sizeof h);
    return h.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && h.vendorID == p->vendorID &&
           h.deviceID == p->deviceID &&
           memcmp(h.pipelineCacheUUID, p->pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

/* The file's data, or NULL with *why set (NULL when there simply is no file). */
static void *read_file(size_t *size, const char **why)
{
    struct file_header h;
    void *data = NULL;
    uint64_t length;
    int fd;

    *why = NULL;
    if (file_open(&fd, &length, path) != ERR_OK) {
        if (errno != ENOENT && errno != ENOTDIR)
            *why = "cannot be read";
        return NULL;
    }
    *why = "is not a pipeline cache";
    if (!read_all(fd, &h, sizeof h) || memcmp(h.magic, FILE_MAGIC, sizeof h.magic) != 0 ||
        h.size > FILE_MAX || h.size > length)
        goto out;
    *why = "is damaged";
    data = mem_alloc(h.size);
    if (!data || !read_all(fd, data, h.size) || hash_bytes(HASH_SEED, data, h.size) != h.hash)
        goto out;
    *why = is_for_this_device(data, h.size) ? NULL : "is of another device";
    *size = h.size;
out:
    close(fd);
    if (*why) {
        mem_free(data);
        data = NULL;
    }
    return data;
}

static void create(const void *data, size_t size)
{
    VkPipelineCacheCreateInfo info = { .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                       .initialDataSize = size,
                                       .pInitialData = data };

    if (vk.CreatePipelineCache(vk_dev.handle, &info, NULL, &handle) < 0)
        handle = VK_NULL_HANDLE;
}

void vk_cache_load(void)
{
    const char *why = NULL;
    size_t size = 0;
    void *data = NULL;

    if (gate_on(GATE_VK_PIPELINE_CACHE) && find_path()) {
        data = read_file(&size, &why);
        if (why)
            log_warn("pipeline cache %s %s, ignored", path, why);
        atexit(vk_cache_save);
    }
    create(data, size);
    if (!handle && data)
        create(NULL, 0);
    mem_free(data);
}

/* ---- writing ---- */

static bool write_all(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)data + done, size - done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* To a file beside it first: a reader sees the old file or the new one, never half of one. */
static bool write_file(const void *data, size_t size)
{
    struct file_header h = { .magic = FILE_MAGIC,
                             .size = size,
                             .hash = hash_bytes(HASH_SEED, data, size) };
    char folder[PATH_MAX], temp[PATH_MAX + 8];

    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    if (!make_folders(folder))
        return false;
    int fd = mkstemp(temp);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, &h, sizeof h) && write_all(fd, data, size);
    ok = close(fd) == 0 && ok && rename(temp, path) == 0;
    if (!ok)
        unlink(temp);
    return ok;
}

void vk_cache_save(void)
{
    size_t size = 0;
    void *data = NULL;

    if (process_is_child() || !handle || !*path || vk_dev_is_lost() ||
        !atomic_exchange(&dirty, false))
        return;
    if (vk.GetPipelineCacheData(vk_dev.handle, handle, &size, NULL) < 0 || !size ||
        !(data = mem_alloc(size)))
        return;
    if (vk.GetPipelineCacheData(vk_dev.handle, handle, &size, data) == VK_SUCCESS &&
        !write_file(data, size))
        log_warn("pipeline cache %s cannot be written", path);
    mem_free(data);
}

VkPipelineCache vk_cache_get(void)
{
    return handle;
}

static atomic_uint n_built, n_watched; /* pipelines; of those, how many have run */

void vk_cache_touch(void)
{
    atomic_store(&dirty, true);
    atomic_fetch_add(&n_built, 1);
}

void vk_cache_watch(void)
{
    unsigned built = atomic_load(&n_built);

    if (vk_limits_get()->is_software && atomic_exchange(&n_watched, built) != built)
        process_watch();
}

bool vk_cache_is_cold(void)
{
    return vk_limits_get()->is_software && atomic_load(&n_built) && !atomic_load(&n_watched);
}

void vk_cache_describe(FILE *out)
{
    fprintf(out, "pipeline cache: %s\n", *path ? path : "off");
}
