/* Storage buffers of kernels that have no addresses: descriptor sets.
 *
 * A set is made for a dispatch and written once, from pools that belong to the command buffer and
 * are emptied when it begins anew. That needs no extension and has no limit but memory; pushing
 * descriptors instead would save part of a microsecond where the extension is there, and be a
 * second way to test. Our own kernels have no sets at all. */
#include "backend/vulkan/rt/pipe.h"
#include "backend/vulkan/rt/stream.h"

#define SETS_OF_POOL 64
#define BUFFERS_OF_POOL 512 /* not less than one set may have */

static enum err add_pool(struct vk_cmdbuf *cmdbuf)
{
    VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BUFFERS_OF_POOL };
    VkDescriptorPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                        .maxSets = SETS_OF_POOL,
                                        .poolSizeCount = 1,
                                        .pPoolSizes = &size };
    VkDescriptorPool pool;
    enum err err;

    TRY(VEC_RESERVE(&cmdbuf->sets, 1));
    TRY(vk_check(vk.CreateDescriptorPool(vk_dev.handle, &info, NULL, &pool),
                 "vkCreateDescriptorPool"));
    cmdbuf->sets.v[cmdbuf->sets.n++] = pool;
out:
    return err;
}

enum err vk_cmdbuf_reset_sets(struct vk_cmdbuf *cmdbuf)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < cmdbuf->sets.n && i <= cmdbuf->set_pool; i++)
        TRY(vk_check(vk.ResetDescriptorPool(vk_dev.handle, cmdbuf->sets.v[i], 0),
                     "vkResetDescriptorPool"));
    cmdbuf->set_pool = 0;
out:
    return err;
}

/* From the pool that was used last, else the next; an empty one has room for every set. */
static enum err allocate(VkDescriptorSet *out, struct vk_cmdbuf *cmdbuf,
                         VkDescriptorSetLayout layout)
{
    VkDescriptorSetAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                         .descriptorSetCount = 1,
                                         .pSetLayouts = &layout };
    enum err err = ERR_OK;

    for (bool is_new = false;; cmdbuf->set_pool++) {
        if (cmdbuf->set_pool == cmdbuf->sets.n) {
            TRY(add_pool(cmdbuf));
            is_new = true;
        }
        info.descriptorPool = cmdbuf->sets.v[cmdbuf->set_pool];
        VkResult r = vk.AllocateDescriptorSets(vk_dev.handle, &info, out);
        bool is_full = r == VK_ERROR_OUT_OF_POOL_MEMORY || r == VK_ERROR_FRAGMENTED_POOL;
        if (!is_full || is_new)
            return vk_check(r, "vkAllocateDescriptorSets");
    }
out:
    return err;
}

enum err vk_cmdbuf_bind(struct vk_cmdbuf *cmdbuf, const struct vk_pipe *pipe,
                        const struct vk_binding *b, uint32_t n)
{
    VkDescriptorBufferInfo buffer[VK_MAX_BOUND];
    VkWriteDescriptorSet write[VK_MAX_BOUND];
    VkDescriptorSet set;
    enum err err;

    TRY(allocate(&set, cmdbuf, pipe->set));
    for (uint32_t i = 0; i < n; i++) {
        const struct vk_buf *v = b[i].buf ? vk_buf_of(b[i].buf) : vk_dev.zeros;
        buffer[i] = (VkDescriptorBufferInfo){ .buffer = v->handle,
                                              .offset = v->offset + b[i].offset,
                                              .range = b[i].buf ? b[i].size : v->base.size };
        write[i] = (VkWriteDescriptorSet){ .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = set,
                                           .dstBinding = b[i].binding,
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &buffer[i] };
    }
    vk.UpdateDescriptorSets(vk_dev.handle, n, write, 0, NULL);
    vk.CmdBindDescriptorSets(cmdbuf->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipe->layout, 0, 1, &set,
                             0, NULL);
out:
    return err;
}
