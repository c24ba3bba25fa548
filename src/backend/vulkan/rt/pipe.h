/* A built pipeline, for those who record commands with it. */
#pragma once

#include "backend/vulkan/rt/loader.h"
#include "backend/vulkan/rt/pipeline.h"

/* What differs from one module of a caller's to another; our own kernels have one form. */
struct vk_form {
    VkPipelineLayout layout;
    VkDescriptorSetLayout set;
    const char *entry;
    const uint32_t *spec_id; /* NULL: 0, 1, ... */
};

struct vk_pipe {
    VkPipeline handle;
    const char *name; /* of the kernel; lives as long as the pipeline */
    uint32_t n_addr;  /* vk_pipe_params */
    VkPipelineLayout layout;
    VkDescriptorSetLayout set; /* of its storage buffers, if it has some */
};
