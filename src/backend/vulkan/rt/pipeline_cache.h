/* The VkPipelineCache and its file in the user's cache folder. A file that is missing, corrupt, of
 * another device or unwritable costs one log line, never an error. */
#pragma once

#include <stdio.h>

#include "backend/vulkan/rt/loader.h"

/* Reads the file of the open device, if any; arranges for it to be written when the process ends.
 */
void vk_cache_load(void);
/* Writes the file now if pipelines were built since it was read. */
void vk_cache_save(void);
/* Handle for vkCreateComputePipelines; VK_NULL_HANDLE without a cache. */
VkPipelineCache vk_cache_get(void);
/* A pipeline was built: the file is out of date. */
void vk_cache_touch(void);
/* llvmpipe compiles a kernel where it first runs, in a thread of its own, and LLVM makes static
 * objects on the way, which exit handlers destroy: ours has to come before those. So it is told
 * when work has completed, and the very first is waited for, which makes most of these objects. */
void vk_cache_watch(void);
bool vk_cache_is_cold(void);
void vk_cache_describe(FILE *out);
