/* A built pipeline, for those who record commands with it. */
#pragma once

#include "backend/vulkan/rt/loader.h"
#include "backend/vulkan/rt/pipeline.h"

struct vk_pipe {
    VkPipeline handle;
    const char *name; /* of the kernel; lives as long as the pipeline */
    uint32_t n_addr;  /* vk_pipe_params */
};
