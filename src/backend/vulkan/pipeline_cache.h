/* The VkPipelineCache and its file in the user's cache folder. A file that is missing, corrupt, of
 * another device or unwritable costs one log line, never an error. */
#pragma once

#include <stdio.h>

#include "backend/vulkan/loader.h"

/* Reads the file of the open device, if any; arranges for it to be written when the process ends.
 */
void vk_cache_load(void);
/* Writes the file now if pipelines were built since it was read. */
void vk_cache_save(void);
/* Handle for vkCreateComputePipelines; VK_NULL_HANDLE without a cache. */
VkPipelineCache vk_cache_get(void);
/* A pipeline was built: the file is out of date. */
void vk_cache_touch(void);
void vk_cache_describe(FILE *out);
