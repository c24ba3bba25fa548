/* The Vulkan library, opened at run time: the process starts and runs on the CPU without it.
 *
 * Every Vulkan call of the project goes through the table `vk`. */
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "backend/vulkan/rt/vk_ext.h"
#include "base/common.h"
#include "base/err.h"

struct vk_table {
#define VK_GLOBAL(name) PFN_vk##name name;
#define VK_INSTANCE(name) PFN_vk##name name;
#define VK_INSTANCE_OPT(name) PFN_vk##name name;
#define VK_DEVICE(name) PFN_vk##name name;
#define VK_DEVICE_OPT(name) PFN_vk##name name;
#include "backend/vulkan/rt/loader.def"
#undef VK_GLOBAL
#undef VK_INSTANCE
#undef VK_INSTANCE_OPT
#undef VK_DEVICE
#undef VK_DEVICE_OPT
};

extern struct vk_table vk;

/* Opens the library and fills the global functions. ERR_UNSUPPORTED names the library or the
 * function that is missing. Thread-safety: the three calls run once each, in this order, from the
 * thread that opens the device. */
MUST_CHECK enum err vk_load_library(void);
MUST_CHECK enum err vk_load_instance(VkInstance instance);
MUST_CHECK enum err vk_load_device(VkDevice device);
