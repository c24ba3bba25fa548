/* What a physical device can do: the floor that it must reach, and what is used beyond it where
 * present. Both are rows of caps.def. */
#pragma once

#include "backend/vulkan/rt/encoder.h"
#include "backend/vulkan/rt/loader.h"

/* Everything that is queried and enabled. */
struct vk_features {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat;
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV coopmat2;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
    VkPhysicalDeviceShaderIntegerDotProductFeatures int_dot;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size;
    VkPhysicalDeviceMaintenance4Features maintenance4;
    VkPhysicalDeviceSynchronization2Features sync2;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables;
};

struct vk_cap_row {
    enum vk_cap cap;
    bool is_used; /* else only looked for */
    const char *extension, *text;
    size_t base;  /* offset of the feature struct in vk_features; 0: none (base is never one) */
    size_t field; /* offset of the deciding VkBool32 */
    VkStructureType type;
};
extern const struct vk_cap_row vk_cap_rows[];
extern const size_t vk_cap_count;

#define VK_MISSES_MAX 256

struct vk_phys {
    VkPhysicalDevice handle;
    VkPhysicalDeviceProperties props;
    VkPhysicalDeviceVulkan11Properties props11;
    VkPhysicalDeviceVulkan12Properties props12;
    struct vk_limits limits;    /* caps: those present and used */
    uint32_t present;           /* enum vk_cap mask */
    char misses[VK_MISSES_MAX]; /* what the floor asks for and the device lacks; "" if nothing */
};

/* Fills out for a handle. Fails only for lack of memory. */
MUST_CHECK enum err vk_phys_query(struct vk_phys *out, VkPhysicalDevice handle);

/* The features to enable on a device that reached the floor, chained from out->base, and the
 * extensions that go with them (at least vk_cap_count entries; the count is returned). */
size_t vk_phys_enable(struct vk_features *out, const char **extensions, const struct vk_phys *p);
