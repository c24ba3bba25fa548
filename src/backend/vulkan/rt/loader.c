#include "backend/vulkan/rt/loader.h"

#include <dlfcn.h>
#include <string.h>

#include "base/gate.h"

#define DEFAULT_LIBRARY "libvulkan.so.1"

struct vk_table vk;

static PFN_vkGetInstanceProcAddr get_instance_proc;

enum load_stage { STAGE_GLOBAL, STAGE_INSTANCE, STAGE_DEVICE };

static const struct load_row {
    const char *name;
    size_t offset; /* in struct vk_table */
    enum load_stage stage;
    bool optional;
} load_rows[] = {
#define ROW(name, stage, optional) { "vk" #name, offsetof(struct vk_table, name), stage, optional },
#define VK_GLOBAL(name) ROW(name, STAGE_GLOBAL, false)
#define VK_INSTANCE(name) ROW(name, STAGE_INSTANCE, false)
#define VK_INSTANCE_OPT(name) ROW(name, STAGE_INSTANCE, true)
#define VK_DEVICE(name) ROW(name, STAGE_DEVICE, false)
#define VK_DEVICE_OPT(name) ROW(name, STAGE_DEVICE, true)
#include "backend/vulkan/rt/loader.def"
#undef ROW
#undef VK_GLOBAL
#undef VK_INSTANCE
#undef VK_INSTANCE_OPT
#undef VK_DEVICE
#undef VK_DEVICE_OPT
};

static enum err load(enum load_stage stage, VkInstance instance, VkDevice device)
{
    for (size_t i = 0; i < ARRAY_LEN(load_rows); i++) {
        const struct load_row *row = &load_rows[i];
        if (row->stage != stage)
            continue;
        PFN_vkVoidFunction fn = stage == STAGE_DEVICE ? vk.GetDeviceProcAddr(device, row->name)
                                                      : get_instance_proc(instance, row->name);
        if (!fn && !row->optional)
            return err_set(ERR_UNSUPPORTED, "the Vulkan driver has no function %s", row->name);
        /* All function pointers have one size here; memcpy avoids an aliasing store. */
        memcpy((char *)&vk + row->offset, &fn, sizeof fn);
    }
    return ERR_OK;
}

enum err vk_load_library(void)
{
    const char *name = gate_text(GATE_VK_LIBRARY);

    if (!name)
        name = DEFAULT_LIBRARY;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_set(ERR_UNSUPPORTED, "no Vulkan loader: %s", dlerror());
    void *symbol = dlsym(library, "vkGetInstanceProcAddr");
    if (!symbol)
        return err_set(ERR_UNSUPPORTED, "%s is not a Vulkan loader: no vkGetInstanceProcAddr",
                       name);
    memcpy(&get_instance_proc, &symbol, sizeof symbol);
    return load(STAGE_GLOBAL, VK_NULL_HANDLE, VK_NULL_HANDLE);
}

enum err vk_load_instance(VkInstance instance)
{
    return load(STAGE_INSTANCE, instance, VK_NULL_HANDLE);
}

enum err vk_load_device(VkDevice device)
{
    return load(STAGE_DEVICE, VK_NULL_HANDLE, device);
}
