#include "backend/vulkan/rt/module.h"

#include <inttypes.h>
#include <pthread.h>

#include "backend/vulkan/rt/device.h"
#include "backend/vulkan/rt/pipe.h"
#include "base/hash.h"

struct vk_module {
    struct vk_module *next;
    struct spirv_module *spirv; /* owned */
    uint64_t key;
    struct vk_form form;
    uint32_t spec_id[SPIRV_MAX_SPEC];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct vk_module *modules;

/* ---- what the device must have ---- */

static const struct capability_row {
    uint32_t capability;
    size_t feature; /* of struct vk_features; 0: none */
    uint32_t subgroup;
} capability_rows[] = {
#define ALWAYS(name) { .capability = SPIRV_CAP_##name },
#define FEATURE(name, path)                                                                        \
    { .capability = SPIRV_CAP_##name, .feature = offsetof(struct vk_features, path) },
#define SUBGROUP(name, bits) { .capability = SPIRV_CAP_##name, .subgroup = (bits) },
#define EXTENSION(...)
#include "backend/vulkan/rt/modules.def"
};

static const struct extension_row {
    const char *name;
    uint32_t cap;
} extension_rows[] = {
#define ALWAYS(...)
#define FEATURE(...)
#define SUBGROUP(...)
#define EXTENSION(name, cap) { name, cap },
#include "backend/vulkan/rt/modules.def"
};

static bool has_capability(uint32_t capability)
{
    for (size_t i = 0; i < ARRAY_LEN(capability_rows); i++) {
        const struct capability_row *row = &capability_rows[i];
        VkBool32 is_on = VK_TRUE;
        if (row->capability != capability)
            continue;
        if (row->feature)
            memcpy(&is_on, (const char *)&vk_dev.features + row->feature, sizeof is_on);
        return is_on &&
               (vk_dev.phys.props11.subgroupSupportedOperations & row->subgroup) == row->subgroup;
    }
    return false;
}

static bool has_extension(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(extension_rows); i++)
        if (strcmp(extension_rows[i].name, name) == 0)
            return (vk_limits_get()->caps & extension_rows[i].cap) == extension_rows[i].cap;
    return false;
}

static enum err check_declared(const struct spirv_info *info)
{
    for (size_t i = 0; i < info->capability.n; i++) {
        uint32_t capability = info->capability.v[i];
        if (!has_capability(capability))
            return err_set(ERR_UNSUPPORTED,
                           "[vulkan_kernel] The module needs capability %u %s, which the device "
                           "does not have here.",
                           capability, spirv_capability_name(capability));
    }
    for (size_t i = 0; i < info->extension.n; i++)
        if (!has_extension(info->extension.v[i]))
            return err_set(
                ERR_UNSUPPORTED,
                "[vulkan_kernel] The module needs extension %.64s, which the device does "
                "not have here.",
                info->extension.v[i]);
    return ERR_OK;
}

static enum err check_limits(const struct spirv_info *info)
{
    const VkPhysicalDeviceLimits *limits = &vk_dev.phys.props.limits;
    bool is_13 = vk_dev.phys.props.apiVersion >= VK_API_VERSION_1_3;

    if (info->version > 0x00010500 && !is_13)
        return err_set(ERR_UNSUPPORTED, "[vulkan_kernel] The module is SPIR-V 1.6, for which the "
                                        "device's Vulkan is too old; 1.5 would do.");
    if (info->has_size_id && !(vk_limits_get()->caps & VK_CAP_MAINTENANCE4))
        return err_set(ERR_UNSUPPORTED, "[vulkan_kernel] The module says the size of workgroups by "
                                        "LocalSizeId, which needs VK_KHR_maintenance4.");
    if (info->push_size > VK_PUSH_MAX)
        return err_set(ERR_UNSUPPORTED,
                       "[vulkan_kernel] The module has %u bytes of push constants; %d are there.",
                       info->push_size, VK_PUSH_MAX);
    if (info->binding.n > limits->maxPerStageDescriptorStorageBuffers)
        return err_set(ERR_UNSUPPORTED,
                       "[vulkan_kernel] The module has %zu storage buffers, the device %u.",
                       info->binding.n, limits->maxPerStageDescriptorStorageBuffers);
    if (info->shared_size > limits->maxComputeSharedMemorySize)
        return err_set(ERR_UNSUPPORTED,
                       "[vulkan_kernel] Workgroups share %" PRIu64 " bytes, the device has %u.",
                       info->shared_size, limits->maxComputeSharedMemorySize);
    return ERR_OK;
}

enum err vk_check_groups(const uint32_t local[3], const uint32_t groups[3])
{
    const VkPhysicalDeviceLimits *limits = &vk_dev.phys.props.limits;
    uint64_t threads = 1;

    for (int i = 0; i < 3; i++) {
        if (local[i] > limits->maxComputeWorkGroupSize[i])
            return err_set(ERR_ARG,
                           "[vulkan_kernel] Workgroups of %u threads along axis %d: the device "
                           "allows %u.",
                           local[i], i, limits->maxComputeWorkGroupSize[i]);
        if (groups[i] > limits->maxComputeWorkGroupCount[i])
            return err_set(ERR_ARG,
                           "[vulkan_kernel] A grid of %u workgroups along axis %d: the device "
                           "allows %u.",
                           groups[i], i, limits->maxComputeWorkGroupCount[i]);
        threads *= local[i];
    }
    if (threads > limits->maxComputeWorkGroupInvocations)
        return err_set(ERR_ARG,
                       "[vulkan_kernel] Workgroups of %" PRIu64 " threads: the device allows %u.",
                       threads, limits->maxComputeWorkGroupInvocations);
    return ERR_OK;
}

enum err vk_check_range(bool *is_aligned, uint64_t offset, uint64_t size)
{
    const VkPhysicalDeviceLimits *limits = &vk_dev.phys.props.limits;

    if (size > limits->maxStorageBufferRange)
        return err_set(ERR_ARG,
                       "[vulkan_kernel] An array of %" PRIu64 " bytes is larger than a storage "
                       "buffer can be (maxStorageBufferRange, %u).",
                       size, limits->maxStorageBufferRange);
    *is_aligned = offset % limits->minStorageBufferOffsetAlignment == 0;
    return ERR_OK;
}

/* ---- layouts ---- */

static enum err create_set(struct vk_form *form, const struct spirv_info *info)
{
    VkDescriptorSetLayoutBinding binding[SPIRV_MAX_BINDINGS];
    VkDescriptorSetLayoutCreateInfo set = { .sType =
                                                VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                            .bindingCount = (uint32_t)info->binding.n,
                                            .pBindings = binding };

    for (size_t i = 0; i < info->binding.n; i++)
        binding[i] =
            (VkDescriptorSetLayoutBinding){ .binding = info->binding.v[i].binding,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .descriptorCount = 1,
                                            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT };
    return vk_check(vk.CreateDescriptorSetLayout(vk_dev.handle, &set, NULL, &form->set),
                    "vkCreateDescriptorSetLayout");
}

static enum err create_layout(struct vk_form *form, const struct spirv_info *info)
{
    VkPushConstantRange push = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                 .size = (uint32_t)align_up(info->push_size, 4) };
    VkPipelineLayoutCreateInfo layout = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                          .setLayoutCount = info->binding.n ? 1 : 0,
                                          .pSetLayouts = &form->set,
                                          .pushConstantRangeCount = info->push_size ? 1 : 0,
                                          .pPushConstantRanges = &push };
    enum err err = ERR_OK;

    if (info->binding.n)
        TRY(create_set(form, info));
    err = vk_check(vk.CreatePipelineLayout(vk_dev.handle, &layout, NULL, &form->layout),
                   "vkCreatePipelineLayout");
    if (err && form->set)
        vk.DestroyDescriptorSetLayout(vk_dev.handle, form->set, NULL);
out:
    return err;
}

static enum err make(struct vk_module **out, struct spirv_module *spirv)
{
    static uint64_t n_modules; /* guarded by the lock */
    const struct spirv_info *info = &spirv->info;
    struct vk_module *m = mem_alloc(sizeof *m);
    enum err err = ERR_NO_MEMORY;

    if (!m)
        return err;
    TRY(vk_dev_check_lost());
    TRY(check_declared(info));
    TRY(check_limits(info));
    TRY(create_layout(&m->form, info));
    for (size_t i = 0; i < info->spec.n; i++)
        m->spec_id[i] = info->spec.v[i].id;
    m->spirv = spirv_ref(spirv);
    m->form.entry = spirv->info.entry;
    m->form.spec_id = m->spec_id;
    m->key = hash_mix(hash_mix(HASH_SEED, ++n_modules), (uintptr_t)&modules);
    *out = m;
    m = NULL;
out:
    mem_free(m);
    return err;
}

enum err vk_module_get(const struct vk_module **out, struct spirv_module *spirv)
{
    enum err err = vk_dev_open();

    if (err)
        return err;
    pthread_mutex_lock(&lock);
    struct vk_module *m = modules;
    while (m && !spirv_equal(m->spirv, spirv))
        m = m->next;
    if (!m && !(err = make(&m, spirv))) {
        m->next = modules;
        modules = m;
    }
    pthread_mutex_unlock(&lock);
    *out = m;
    return err;
}

enum err vk_module_pipe(const struct vk_pipe **out, const struct vk_module *m,
                        const struct vk_module_pipe *p)
{
    return vk_pipe_get(out, &(struct vk_pipe_params){ .name = p->name,
                                                      .key = m->key,
                                                      .words = m->spirv->words,
                                                      .n_words = m->spirv->n_words,
                                                      .spec = p->spec,
                                                      .n_spec = (int)m->spirv->info.spec.n,
                                                      .n_addr = p->n_addr,
                                                      .form = &m->form });
}
