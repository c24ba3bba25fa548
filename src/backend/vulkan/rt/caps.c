#include "backend/vulkan/rt/caps.h"

#include <stdio.h>
#include <unistd.h>

#include "backend/vulkan/check/fault.h"
#include "base/mem.h"

#define FLOOR_VERSION VK_API_VERSION_1_2

enum { CAP_SEEN, CAP_USED };

const struct vk_cap_row vk_cap_rows[] = {
#define FLOOR(...)
#define NICE(...)
#define CAP(id, use, ext, member, flag, stype, text_)                                              \
    { .cap = VK_CAP_##id,                                                                          \
      .is_used = CAP_##use,                                                                        \
      .extension = ext,                                                                            \
      .text = text_,                                                                               \
      .base = offsetof(struct vk_features, member),                                                \
      .field = offsetof(struct vk_features, member.flag),                                          \
      .type = VK_STRUCTURE_TYPE_##stype },
#define CAP_PLAIN(id, use, ext, text_)                                                             \
    { .cap = VK_CAP_##id, .is_used = CAP_##use, .extension = ext, .text = text_ },
#include "backend/vulkan/rt/caps.def"
#undef FLOOR
#undef NICE
#undef CAP
#undef CAP_PLAIN
};
const size_t vk_cap_count = ARRAY_LEN(vk_cap_rows);

static const struct feature_row {
    size_t field;
    const char *text; /* NULL: enabled where present, not required */
} feature_rows[] = {
#define FLOOR(path, text_) { offsetof(struct vk_features, path), text_ },
#define NICE(path) { offsetof(struct vk_features, path), NULL },
#define CAP(...)
#define CAP_PLAIN(...)
#include "backend/vulkan/rt/caps.def"
#undef FLOOR
#undef NICE
#undef CAP
#undef CAP_PLAIN
};

static const struct subgroup_row {
    VkSubgroupFeatureFlags bit;
    const char *text;
} subgroup_rows[] = {
    { VK_SUBGROUP_FEATURE_BASIC_BIT, "subgroup basic" },
    { VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, "subgroup arithmetic" },
    { VK_SUBGROUP_FEATURE_SHUFFLE_BIT, "subgroup shuffle" },
};

static VkBool32 *feature_at(struct vk_features *f, size_t offset)
{
    return (VkBool32 *)((char *)f + offset);
}

/* ---- extensions ---- */

struct extensions {
    VkExtensionProperties *v;
    uint32_t n;
};

static enum err extensions_list(struct extensions *out, VkPhysicalDevice handle)
{
    if (vk.EnumerateDeviceExtensionProperties(handle, NULL, &out->n, NULL) < 0)
        out->n = 0;
    if (!(out->v = mem_alloc_array(out->n, sizeof *out->v)))
        return ERR_NO_MEMORY;
    if (vk.EnumerateDeviceExtensionProperties(handle, NULL, &out->n, out->v) < 0)
        out->n = 0;
    return ERR_OK;
}

static bool has_extension(const struct extensions *e, const char *name)
{
    for (uint32_t i = 0; i < e->n; i++)
        if (strcmp(e->v[i].extensionName, name) == 0)
            return true;
    return false;
}

/* ---- features ---- */

/* Chains the feature structs of the capabilities in mask behind base, v11 and v12. */
static void chain_features(struct vk_features *f, uint32_t mask)
{
    f->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->base.pNext = &f->v11;
    f->v11.pNext = &f->v12;
    void **tail = &f->v12.pNext;
    *tail = NULL;
    for (size_t i = 0; i < vk_cap_count; i++) {
        const struct vk_cap_row *row = &vk_cap_rows[i];
        if (!row->base || !(mask & row->cap))
            continue;
        VkBaseOutStructure *s = (VkBaseOutStructure *)((char *)f + row->base);
        s->sType = row->type;
        s->pNext = NULL;
        *tail = s;
        tail = (void **)&s->pNext;
    }
}

static uint32_t caps_by_extension(const struct extensions *e)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < vk_cap_count; i++)
        if (has_extension(e, vk_cap_rows[i].extension))
            mask |= vk_cap_rows[i].cap;
    return mask;
}

static uint32_t caps_by_feature(struct vk_features *f, uint32_t mask)
{
    for (size_t i = 0; i < vk_cap_count; i++)
        if (vk_cap_rows[i].base && !*feature_at(f, vk_cap_rows[i].field))
            mask &= ~(uint32_t)vk_cap_rows[i].cap;
    return mask;
}

static uint32_t used_caps(void)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < vk_cap_count; i++)
        if (vk_cap_rows[i].is_used)
            mask |= vk_cap_rows[i].cap;
    return mask;
}

static void add_miss(char *misses, const char *text)
{
    size_t used = strlen(misses);

    snprintf(misses + used, VK_MISSES_MAX - used, "%s%s", used ? ", " : "", text);
}

static void find_misses(struct vk_phys *p, struct vk_features *f)
{
    for (size_t i = 0; i < ARRAY_LEN(feature_rows); i++)
        if (feature_rows[i].text && !*feature_at(f, feature_rows[i].field))
            add_miss(p->misses, feature_rows[i].text);
    bool in_compute = p->props11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
    for (size_t i = 0; i < ARRAY_LEN(subgroup_rows); i++)
        if (!in_compute || !(p->props11.subgroupSupportedOperations & subgroup_rows[i].bit))
            add_miss(p->misses, subgroup_rows[i].text);
    if (vk_fault_hit(VK_FAULT_FLOOR))
        add_miss(p->misses, "an injected feature");
}

size_t vk_phys_enable(struct vk_features *out, const char **extensions, const struct vk_phys *p)
{
    struct vk_features have = { 0 };
    size_t n = 0;

    chain_features(&have, p->limits.caps);
    vk.GetPhysicalDeviceFeatures2(p->handle, &have.base);
    *out = have;
    memset(&out->base.features, 0, sizeof out->base.features);
    memset(&out->v11, 0, sizeof out->v11);
    memset(&out->v12, 0, sizeof out->v12);
    chain_features(out, p->limits.caps);
    for (size_t i = 0; i < ARRAY_LEN(feature_rows); i++)
        *feature_at(out, feature_rows[i].field) = *feature_at(&have, feature_rows[i].field);
    for (size_t i = 0; i < vk_cap_count; i++)
        if (p->limits.caps & vk_cap_rows[i].cap)
            extensions[n++] = vk_cap_rows[i].extension;
    return n;
}

/* ---- limits ---- */

struct coopmat_rows {
    VkCooperativeMatrixPropertiesKHR v[128];
    uint32_t n;
};

static void list_coopmats(struct coopmat_rows *r, VkPhysicalDevice handle)
{
    r->n = ARRAY_LEN(r->v);
    for (size_t i = 0; i < ARRAY_LEN(r->v); i++)
        r->v[i] = (VkCooperativeMatrixPropertiesKHR){
            .sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR
        };
    if (!vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR ||
        vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(handle, &r->n, r->v) < 0)
        r->n = 0;
}

/* Products of two cubes of `type` with sums in f32, over a subgroup. */
static bool has_coopmat(const struct coopmat_rows *r, VkComponentTypeKHR type, uint32_t edge)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const VkCooperativeMatrixPropertiesKHR *v = &r->v[i];
        if (v->MSize == edge && v->NSize == edge && v->KSize == edge && v->AType == type &&
            v->BType == type && v->CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            v->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR && v->scope == VK_SCOPE_SUBGROUP_KHR)
            return true;
    }
    return false;
}

/* Cooperative matrices come in many shapes; kernels are written for cubes. Hardware has those of
 * 16, software devices those of 8. Their modules are those of Vulkan 1.3. */
static void fill_coopmat(struct vk_phys *p)
{
    struct vk_limits *l = &p->limits;
    struct coopmat_rows rows;

    if (!(l->caps & VK_CAP_COOPMAT))
        return;
    list_coopmats(&rows, p->handle);
    if (p->props.apiVersion < VK_API_VERSION_1_3 || !(l->caps & VK_CAP_MAINTENANCE4))
        rows.n = 0;
    for (uint32_t edge = 16; edge >= 8 && !l->coopmat_edge; edge /= 2)
        if (has_coopmat(&rows, VK_COMPONENT_TYPE_FLOAT16_KHR, edge))
            l->coopmat_edge = edge;
    if (!l->coopmat_edge)
        l->caps &= ~(uint32_t)(VK_CAP_COOPMAT | VK_CAP_COOPMAT2);
    if (!has_coopmat(&rows, VK_COMPONENT_TYPE_BFLOAT16_KHR, l->coopmat_edge))
        l->caps &= ~(uint32_t)VK_CAP_BFLOAT16;
}

/* Where no extension tells, a middling guess: it only decides how far work is split. */
#define DEFAULT_COMPUTE_UNITS 16

static uint32_t count_compute_units(const struct vk_phys *p, const struct extensions *e)
{
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nv = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV
    };
    VkPhysicalDeviceShaderCorePropertiesAMD amd = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD
    };
    VkPhysicalDeviceProperties2 props = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 };

    if (p->props.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        return cores > 0 ? (uint32_t)cores : 1;
    }
    if (has_extension(e, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
        props.pNext = &nv;
    else if (has_extension(e, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME))
        props.pNext = &amd;
    else
        return DEFAULT_COMPUTE_UNITS;
    vk.GetPhysicalDeviceProperties2(p->handle, &props);
    if (props.pNext == &nv)
        return MAX(nv.shaderSMCount, 1);
    return MAX(
        amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray, 1);
}

static void fill_subgroup_range(struct vk_phys *p)
{
    struct vk_limits *l = &p->limits;
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES
    };
    VkPhysicalDeviceProperties2 props = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                          .pNext = &sizes };

    l->subgroup_size = l->min_subgroup = l->max_subgroup = p->props11.subgroupSize;
    if (!(l->caps & VK_CAP_SUBGROUP_SIZE))
        return;
    vk.GetPhysicalDeviceProperties2(p->handle, &props);
    if (!(sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
        l->caps &= ~(uint32_t)VK_CAP_SUBGROUP_SIZE;
        return;
    }
    l->min_subgroup = sizes.minSubgroupSize;
    l->max_subgroup = sizes.maxSubgroupSize;
}

static void fill_limits(struct vk_phys *p, const struct extensions *e)
{
    struct vk_limits *l = &p->limits;

    fill_coopmat(p);
    fill_subgroup_range(p);
    l->max_workgroup_size = p->props.limits.maxComputeWorkGroupInvocations;
    memcpy(l->max_groups, p->props.limits.maxComputeWorkGroupCount, sizeof l->max_groups);
    l->shared_memory = p->props.limits.maxComputeSharedMemorySize;
    l->compute_units = count_compute_units(p, e);
    l->is_software = p->props.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

enum err vk_phys_query(struct vk_phys *out, VkPhysicalDevice handle)
{
    struct extensions ext = { 0 };
    struct vk_features f = { 0 };
    enum err err;

    *out = (struct vk_phys){ .handle = handle };
    vk.GetPhysicalDeviceProperties(handle, &out->props);
    if (out->props.apiVersion < FLOOR_VERSION) {
        add_miss(out->misses, "Vulkan 1.2");
        return ERR_OK;
    }
    TRY(extensions_list(&ext, handle));
    out->props11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    out->props12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    out->props11.pNext = &out->props12;
    VkPhysicalDeviceProperties2 props = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                          .pNext = &out->props11 };
    vk.GetPhysicalDeviceProperties2(handle, &props);
    uint32_t mask = caps_by_extension(&ext);
    chain_features(&f, mask);
    vk.GetPhysicalDeviceFeatures2(handle, &f.base);
    out->limits.caps = caps_by_feature(&f, mask);
    find_misses(out, &f);
    fill_limits(out, &ext);
    out->present = out->limits.caps;
    out->limits.caps &= used_caps();
    out->props11.pNext = out->props12.pNext = NULL; /* out may move */
out:
    mem_free(ext.v);
    return err;
}
