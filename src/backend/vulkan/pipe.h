/* A built pipeline, for those who record commands with it. */
#pragma once

#include "backend/vulkan/loader.h"
#include "backend/vulkan/pipeline.h"

struct vk_pipe {
    VkPipeline handle;
    const char *name; /* of the kernel; lives as long as the pipeline */
    uint32_t n_addr;  /* vk_pipe_params */
};
