#include "backend/vulkan/ops/eager_read.h"

#include "backend/vulkan/ops/elementwise.h"
#include "backend/vulkan/rt/stream.h"
#include "base/gate.h"
#include "base/stat.h"

/* Where GPU memory is mapped, reading it costs about 17 us per KiB, a barrier and a small kernel 4
 * us. */
#define MAPPED_FROM 256

static bool wants_ahead(const struct buf *src, size_t size)
{
    size_t direct = vk_alloc_strategy() == VK_STAGED ? 0 : MAPPED_FROM;

    return !src->host && src->home == &be_vulkan && size > direct &&
           size <= (size_t)gate_int(GATE_VK_EAGER_READ) << 10;
}

/* Bytes as the largest words that size and address allow. */
static enum dtype word_of(uint64_t addr, size_t size)
{
    return (addr | size) % 4 == 0 ? DT_UINT32 : DT_UINT8;
}

static enum err encode_copy(struct vk_enc *e, const struct vk_buf *dst, uint64_t addr, size_t size)
{
    enum dtype t = word_of(addr, size);
    struct elem_program program = { .n_in = 1, .n_out = 1, .in_dtype = { (uint8_t)t } };
    struct elem_job job = { .program = &program, .n = size / dt_size(t), .owns_outputs = true };

    job.addr[0] = addr;
    job.addr[1] = dst->base.addr;
    vk_enc_scratch_read(e, addr, size);
    vk_enc_write_range(e, dst->base.addr, size);
    return elem_dispatch(e, &job);
}

enum err vk_eager_read(struct buf **out, struct strm *s, struct buf *src, struct span want)
{
    struct vk_buf *dst = NULL;
    struct vk_enc *e;
    enum err err = ERR_OK;

    *out = NULL;
    /* Where memory is short the bytes are copied when somebody asks for them. */
    if (!wants_ahead(src, want.size) || vk_mem_alloc(&dst, VK_MEM_READBACK, want.size))
        return ERR_OK;
    TRY(vk_enc_get(&e, s));
    dst->base.of = want;
    TRY(vk_cmdbuf_keep(e->cmdbuf, buf_ref(&dst->base)));
    TRY(encode_copy(e, dst, src->addr + want.lo, want.size));
    stat_add(STAT_BYTES_READ_BACK, want.size);
    *out = &dst->base;
    dst = NULL;
out:
    if (dst)
        buf_unref(&(struct buf *){ &dst->base });
    return err;
}
