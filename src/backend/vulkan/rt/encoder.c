#include "backend/vulkan/rt/encoder.h"

#include <stdatomic.h>

#include "backend/vulkan/check/record.h"
#include "backend/vulkan/rt/notes.h"
#include "backend/vulkan/rt/pipe.h"
#include "backend/vulkan/rt/rehearsal.h"
#include "backend/vulkan/rt/stream.h"
#include "backend/vulkan/rt/transfer.h"
#include "base/gate.h"
#include "base/stat.h"

/* Room for several hundred argument blocks of a command buffer. */
#define ARGS_CHUNK ((size_t)64 << 10)
#define ARGS_ALIGN 64

static struct vk_strm *stream_of(struct vk_enc *e)
{
    return (struct vk_strm *)((char *)e - offsetof(struct vk_strm, enc));
}

enum err vk_enc_get(struct vk_enc **out, struct strm *strm)
{
    struct vk_strm *s = vk_strm_of(strm);

    *out = &s->enc;
    if (s->enc.rehearses || (s->enc.slot && !strm_has_failed(strm)))
        return ERR_OK;
    enum err err = strm_raise_error(strm);
    return err ? err : vk_strm_open_slot(s);
}

/* ---- accesses ---- */

static void record(struct vk_enc *e, enum vk_rec_kind kind, struct hz_range r, uint32_t group)
{
    struct vk_strm *s = stream_of(e);

    vk_rec_add(&(struct vk_rec){ .kind = kind,
                                 .stream = atomic_load(&s->strm)->index,
                                 .group = group,
                                 .addr = r.lo,
                                 .size = r.hi - r.lo,
                                 .dispatch = e->dispatches,
                                 .ticket = atomic_load(&s->committed) + 1 });
}

/* Asked several times per dispatch, and nearly always off. */
#define RECORD(e, kind, r, group)                                                                  \
    do {                                                                                           \
        if (gate_int_read(GATE_VK_RECORD))                                                         \
            record(e, kind, r, group);                                                             \
    } while (0)
#define NO_RANGE ((struct hz_range){ 0, 0 })

void vk_enc_note_wait(struct vk_enc *e, const struct ev *ev, enum vk_rec_kind how)
{
    struct vk_strm *s = stream_of(e);

    if (gate_on(GATE_VK_RECORD))
        vk_rec_add(&(struct vk_rec){ .kind = how,
                                     .stream = atomic_load(&s->strm)->index,
                                     .dispatch = e->dispatches,
                                     .ticket = atomic_load(&s->committed) + 1,
                                     .other = ev->strm->index,
                                     .other_ticket = ev->ticket });
}

void vk_enc_forget(struct vk_enc *e)
{
    hazard_forget(&e->hazard);
    RECORD(e, VK_REC_SYNC, NO_RANGE, 0);
}

void vk_enc_order(struct vk_enc *e)
{
    hazard_force(&e->hazard);
    RECORD(e, VK_REC_ORDER, NO_RANGE, 0);
}

static inline void declare_read(struct vk_enc *e, struct hz_range r)
{
    hazard_read(&e->hazard, r);
    RECORD(e, VK_REC_READ, r, 0);
}

static inline void declare_write(struct vk_enc *e, struct hz_range r, uint32_t group)
{
    hazard_write(&e->hazard, r, group);
    RECORD(e, VK_REC_WRITE, r, group);
}

/* The bytes that a spans in a buffer that begins at base. */
static inline struct hz_range span(const struct arr *a, uint64_t base)
{
    struct span s = arr_span(a);

    return (struct hz_range){ base + s.lo, base + s.lo + s.size };
}

static inline void count_bytes(struct vk_enc *e, struct buf *b)
{
    struct vk_buf *v = vk_buf_of(b);

    if (atomic_load_explicit(&v->seen, memory_order_relaxed) == e->stamp)
        return;
    atomic_store_explicit(&v->seen, e->stamp, memory_order_relaxed);
    e->bytes += b->size;
}

/* The GPU's copy of a buffer that lives on the host. The command keeps it: the buffer may drop it
 * when it is reused. While the stream waits for the CPU the bytes may still be missing; then they
 * are copied when the command is handed over. */
static enum err resolve_mirror(struct vk_enc *e, struct buf **b)
{
    struct buf *src = *b, *copy;
    enum err err;

    if (e->notes)
        vk_notes_refuse(e->notes);
    TRY(buf_mirror(&copy, src, (struct span){ 0, src->size }, &be_vulkan));
    TRY(vk_slot_keep(e->slot, buf_ref(copy)));
    *b = copy;
    if (vk_upload_is_filled(copy))
        goto out;
    if (vk_strm_is_ready(stream_of(e))) {
        err = vk_upload_fill(copy, src);
    } else {
        TRY(VEC_PUSH(&e->slot->uploads, (struct vk_upload){ copy, src }));
        buf_ref(src);
    }
out:
    return err;
}

/* A buffer that lives on the host, or any in a rehearsal. */
static enum err read_elsewhere(struct vk_enc *e, uint64_t *addr, const struct arr *a)
{
    struct buf *b = a->buf;
    enum err err;

    if (e->rehearses) {
        *addr = (b->home == &be_vulkan ? b->addr : REHEARSAL_ADDR) + (uint64_t)a->offset;
        return ERR_OK;
    }
    TRY(resolve_mirror(e, &b));
    *addr = b->addr + (uint64_t)a->offset;
    count_bytes(e, b);
    declare_read(e, span(a, b->addr));
out:
    return err;
}

static inline enum err read_array(struct vk_enc *e, uint64_t *addr, const struct arr *a)
{
    struct buf *b = a->buf;

    *addr = 0;
    if (!a->size)
        return ERR_OK;
    if (e->rehearses || b->home != &be_vulkan)
        return read_elsewhere(e, addr, a);
    *addr = b->addr + (uint64_t)a->offset;
    count_bytes(e, b);
    declare_read(e, span(a, b->addr));
    return ERR_OK;
}

static inline enum err write_array(struct vk_enc *e, uint64_t *addr, const struct arr *a,
                                   uint32_t group)
{
    *addr = 0;
    if (!a->size)
        return ERR_OK;
    if (a->buf->home != &be_vulkan)
        return err_set(ERR_RUNTIME, "[vulkan] an output was not given GPU memory");
    *addr = a->buf->addr + (uint64_t)a->offset;
    if (e->rehearses)
        return ERR_OK;
    count_bytes(e, a->buf);
    declare_write(e, span(a, a->buf->addr), group);
    return ERR_OK;
}

enum err vk_enc_read(struct vk_enc *e, uint64_t *addr, const struct arr *a)
{
    return read_array(e, addr, a);
}

enum err vk_enc_write(struct vk_enc *e, uint64_t *addr, const struct arr *a)
{
    return write_array(e, addr, a, 0);
}

enum err vk_enc_write_part(struct vk_enc *e, uint64_t *addr, const struct arr *a, uint32_t group)
{
    return write_array(e, addr, a, group);
}

enum err vk_enc_step(struct vk_enc *e, uint64_t *addr, const struct exec *x)
{
    enum err err = ERR_OK;

    for (int i = 0; i < x->n_in; i++)
        TRY(read_array(e, addr++, x->in[i]));
    for (int o = 0; o < x->n_out; o++)
        TRY(write_array(e, addr++, x->out[o], 0));
out:
    return err;
}

enum err vk_enc_scratch(struct vk_enc *e, uint64_t *addr, size_t size)
{
    struct buf *b = NULL;
    enum err err = ERR_OK;

    *addr = REHEARSAL_ADDR;
    size = MAX(size, 1u);
    if (e->rehearses)
        goto out;
    if (e->notes) {
        TRY(vk_notes_scratch(e->notes, addr, size));
    } else {
        TRY(vk_buf_alloc(&b, size));
        *addr = b->addr;
        TRY(vk_slot_keep(e->slot, b));
    }
    declare_write(e, (struct hz_range){ *addr, *addr + size }, 0);
out:
    return err;
}

void vk_enc_scratch_read(struct vk_enc *e, uint64_t addr, size_t size)
{
    if (!e->rehearses)
        declare_read(e, (struct hz_range){ addr, addr + size });
}

void vk_enc_write_range(struct vk_enc *e, uint64_t addr, size_t size)
{
    declare_write(e, (struct hz_range){ addr, addr + size }, 0);
}

/* ---- arguments ---- */

/* A full chunk stays with the command; the slot goes on with a new one. */
static enum err new_args_chunk(struct vk_slot *slot, size_t size)
{
    struct vk_buf *chunk = NULL;
    enum err err;

    TRY(vk_mem_alloc(&chunk, VK_MEM_UPLOAD, MAX(size, ARGS_CHUNK)));
    if (slot->args) {
        struct vk_buf *full = slot->args;
        slot->args = NULL;
        TRY(vk_slot_keep(slot, &full->base));
    }
    slot->args = chunk;
    slot->args_used = 0;
    chunk = NULL;
out:
    if (chunk)
        buf_unref(&(struct buf *){ &chunk->base });
    return err;
}

enum err vk_enc_args(struct vk_enc *e, uint64_t *addr, const void *args, size_t size)
{
    struct vk_slot *slot = e->slot;

    *addr = REHEARSAL_ADDR;
    if (e->rehearses)
        return ERR_OK;
    if (e->notes)
        return vk_notes_args(e->notes, addr, args, size);
    if (!slot->args || slot->args_used + size > slot->args->base.size) {
        enum err err = new_args_chunk(slot, size);
        if (err)
            return err;
    }
    memcpy((char *)slot->args->map + slot->args_used, args, size);
    *addr = slot->args->base.addr + slot->args_used;
    slot->args_used += align_up(size, ARGS_ALIGN);
    return ERR_OK;
}

enum err vk_enc_args_once(struct vk_enc *e, struct vk_args_memo *memo, uint64_t *addr,
                          const void *args, size_t size)
{
    bool is_lasting = !e->rehearses && !e->notes; /* as long as the command */

    if (is_lasting && memo->command == e->stamp) {
        *addr = memo->addr;
        return ERR_OK;
    }
    enum err err = vk_enc_args(e, addr, args, size);
    if (!err && is_lasting)
        *memo = (struct vk_args_memo){ e->stamp, *addr };
    return err;
}

void vk_enc_absent(void *block, uint32_t n_addr)
{
    char *at = block;

    for (uint32_t i = 0; i < n_addr; i++, at += sizeof(uint64_t)) {
        uint64_t addr;
        memcpy(&addr, at, sizeof addr);
        if (!addr)
            memcpy(at, &vk_dev.absent, sizeof addr);
    }
}

/* ---- dispatch ---- */

/* An H200's driver takes 30 ns less for the younger function, llvmpipe 70. */
static void emit_barrier2(VkCommandBuffer cmd, const struct vk_scope *work)
{
    VkMemoryBarrier2KHR barrier = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2_KHR,
                                    .srcStageMask = work->stages,
                                    .srcAccessMask = work->writes,
                                    .dstStageMask = work->stages,
                                    .dstAccessMask = work->reads | work->writes };
    VkDependencyInfoKHR info = { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO_KHR,
                                 .memoryBarrierCount = 1,
                                 .pMemoryBarriers = &barrier };

    vk.CmdPipelineBarrier2KHR(cmd, &info);
}

static void emit_barrier1(VkCommandBuffer cmd, const struct vk_scope *work)
{
    VkMemoryBarrier barrier = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                .srcAccessMask = work->writes,
                                .dstAccessMask = work->reads | work->writes };

    vk.CmdPipelineBarrier(cmd, work->stages, work->stages, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static void emit_barrier(struct vk_enc *e)
{
    hazard_clear(&e->hazard);
    if (vk_rec_drops_barrier())
        return;
    /* Also the execution dependency that a write after a read needs. */
    if (vk_limits_get()->caps & VK_CAP_SYNC2)
        emit_barrier2(e->slot->cmd, &vk_dev.work);
    else
        emit_barrier1(e->slot->cmd, &vk_dev.work);
    stat_add(STAT_BARRIERS, 1);
    RECORD(e, VK_REC_BARRIER, NO_RANGE, 0);
}

static enum err check_dispatch(size_t push_size, struct vk_grid g)
{
    const uint32_t *max = vk_limits_get()->max_groups;

    if (push_size > VK_PUSH_MAX || push_size % 4)
        return err_set(ERR_RUNTIME, "[vulkan] %zu bytes of push constants", push_size);
    if (g.x > max[0] || g.y > max[1] || g.z > max[2])
        return err_set(ERR_RUNTIME, "[vulkan] a grid of %u x %u x %u workgroups is too large", g.x,
                       g.y, g.z);
    return ERR_OK;
}

/* Orders what comes next after what it depends on. */
static void begin_work(struct vk_enc *e)
{
    if (hazard_is_full(&e->hazard))
        vk_enc_order(e);
    if (hazard_needs_barrier(&e->hazard))
        emit_barrier(e);
    hazard_advance(&e->hazard);
}

static void end_work(struct vk_enc *e, const char *name, enum variant_id variant)
{
    struct timing_dispatch d = { name, variant };

    if (e->slot->timing.has_each)
        timing_dispatch_end(&e->slot->timing, e->slot->cmd, &d);
    RECORD(e, VK_REC_DISPATCH, NO_RANGE, 0);
    e->dispatches++;
    e->ops++;
    stat_add(STAT_DISPATCHES, 1);
}

void vk_enc_drop(struct vk_enc *e)
{
    if (e->rehearses)
        return;
    hazard_drop(&e->hazard);
    e->dispatches++; /* what was recorded for this one belongs to no later one */
}

/* The accesses are declared. */
static void emit(struct vk_enc *e, const struct vk_note *n)
{
    begin_work(e);
    if (e->bound != n->pipe->handle) {
        vk.CmdBindPipeline(e->slot->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, n->pipe->handle);
        e->bound = n->pipe->handle;
    }
    if (n->push_size)
        vk.CmdPushConstants(e->slot->cmd, vk_dev.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            n->push_size, n->push);
    if (e->slot->timing.has_each)
        timing_dispatch_begin(&e->slot->timing, e->slot->cmd);
    vk.CmdDispatch(e->slot->cmd, n->grid.x, n->grid.y, n->grid.z);
    end_work(e, n->pipe->name, n->variant);
}

enum err vk_enc_dispatch(struct vk_enc *e, struct vk_kernel k, const void *push, size_t push_size,
                         struct vk_grid grid)
{
    enum err err = check_dispatch(push_size, grid);

    if (e->rehearses)
        return err;
    if (err || !grid.x || !grid.y || !grid.z) {
        vk_enc_drop(e);
        return err;
    }
    struct vk_note n;
    n.pipe = k.pipe;
    n.grid = grid;
    n.variant = k.variant;
    n.push_size = (uint32_t)push_size;
    memcpy(n.push, push, push_size);
    vk_enc_absent(n.push, k.pipe->n_addr);
    if (e->notes)
        vk_notes_add(e->notes, &n, &e->hazard);
    emit(e, &n);
    return ERR_OK;
}

void vk_enc_repeat(struct vk_enc *e, const struct vk_note *n, const struct hz_range *ranges)
{
    for (uint32_t i = 0; i < n->n_read; i++)
        declare_read(e, ranges[i]);
    for (uint32_t i = 0; i < n->n_write; i++)
        declare_write(e, ranges[n->n_read + i], 0);
    emit(e, n);
}
