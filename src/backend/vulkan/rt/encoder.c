#include "backend/vulkan/rt/encoder.h"

#include <stdatomic.h>

#include "backend/vulkan/check/record.h"
#include "backend/vulkan/rt/pipe.h"
#include "backend/vulkan/rt/recording.h"
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
    if (s->enc.recording || (s->enc.cmdbuf && !strm_has_failed(strm)))
        return ERR_OK;
    enum err err = strm_raise_error(strm);
    return err ? err : vk_strm_open_cmdbuf(s);
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

    TRY(buf_mirror(&copy, src, (struct span){ 0, src->size }, &be_vulkan));
    TRY(vk_cmdbuf_keep(e->cmdbuf, buf_ref(copy)));
    *b = copy;
    if (vk_upload_is_filled(copy))
        goto out;
    if (vk_strm_is_ready(stream_of(e))) {
        err = vk_upload_fill(copy, src);
    } else {
        TRY(VEC_PUSH(&e->cmdbuf->uploads, (struct vk_upload){ copy, src }));
        buf_ref(src);
    }
out:
    return err;
}

enum err vk_enc_resolve(struct vk_enc *e, struct buf **b)
{
    return (*b)->home == &be_vulkan ? ERR_OK : resolve_mirror(e, b);
}

static enum err record_array(struct vk_enc *e, uint64_t *addr, const struct arr *a, bool is_write,
                             uint32_t group)
{
    struct span s = arr_span(a);
    uint64_t first;
    enum err err;

    TRY(vk_record_addr(e->recording, addr, a->buf, a->offset));
    TRY(vk_record_addr(e->recording, &first, a->buf, (int64_t)s.lo));
    err = vk_record_access(e->recording, first, s.size, is_write, group);
out:
    return err;
}

static inline enum err read_array(struct vk_enc *e, uint64_t *addr, const struct arr *a)
{
    struct buf *b = a->buf;
    enum err err = ERR_OK;

    *addr = 0;
    if (!a->size)
        return ERR_OK;
    if (e->recording)
        return record_array(e, addr, a, false, 0);
    TRY(vk_enc_resolve(e, &b));
    *addr = b->addr + (uint64_t)a->offset;
    count_bytes(e, b);
    declare_read(e, span(a, b->addr));
out:
    return err;
}

static inline enum err write_array(struct vk_enc *e, uint64_t *addr, const struct arr *a,
                                   uint32_t group)
{
    *addr = 0;
    if (!a->size)
        return ERR_OK;
    if (a->buf->home != &be_vulkan)
        return err_set(ERR_RUNTIME, "[vulkan] an output was not given GPU memory");
    if (e->recording)
        return record_array(e, addr, a, true, group);
    *addr = a->buf->addr + (uint64_t)a->offset;
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

    size = MAX(size, 1u);
    if (e->recording)
        return vk_record_scratch(e->recording, addr, size);
    TRY(vk_buf_alloc(&b, size));
    *addr = b->addr;
    TRY(vk_cmdbuf_keep(e->cmdbuf, b));
    declare_write(e, (struct hz_range){ *addr, *addr + size }, 0);
out:
    return err;
}

void vk_enc_scratch_read(struct vk_enc *e, uint64_t addr, size_t size)
{
    if (e->recording)
        vk_record_read(e->recording, addr, size);
    else
        declare_read(e, (struct hz_range){ addr, addr + size });
}

void vk_enc_declare(struct vk_enc *e, struct hz_range r, bool is_write, uint32_t group)
{
    if (is_write)
        declare_write(e, r, group);
    else
        declare_read(e, r);
}

void vk_enc_write_range(struct vk_enc *e, uint64_t addr, size_t size)
{
    declare_write(e, (struct hz_range){ addr, addr + size }, 0);
}

/* ---- arguments ---- */

/* A full chunk stays with the command; the command buffer goes on with a new one. */
static enum err new_args_chunk(struct vk_cmdbuf *cmdbuf, size_t size)
{
    struct vk_buf *chunk = NULL;
    enum err err;

    TRY(vk_mem_alloc(&chunk, VK_MEM_UPLOAD, MAX(size, ARGS_CHUNK)));
    if (cmdbuf->args) {
        struct vk_buf *full = cmdbuf->args;
        cmdbuf->args = NULL;
        TRY(vk_cmdbuf_keep(cmdbuf, &full->base));
    }
    cmdbuf->args = chunk;
    cmdbuf->args_used = 0;
    chunk = NULL;
out:
    if (chunk)
        buf_unref(&(struct buf *){ &chunk->base });
    return err;
}

enum err vk_enc_put(struct vk_enc *e, uint64_t *addr, const void *data, size_t size)
{
    struct vk_cmdbuf *cmdbuf = e->cmdbuf;

    if (!cmdbuf->args || cmdbuf->args_used + size > cmdbuf->args->base.size) {
        enum err err = new_args_chunk(cmdbuf, size);
        if (err)
            return err;
    }
    memcpy((char *)cmdbuf->args->map + cmdbuf->args_used, data, size);
    *addr = cmdbuf->args->base.addr + cmdbuf->args_used;
    cmdbuf->args_used += align_up(size, ARGS_ALIGN);
    return ERR_OK;
}

enum err vk_enc_args_as(struct vk_enc *e, uint64_t *addr, const struct vk_args *a)
{
    size_t records = MAX(a->records, 1u);

    if (e->recording)
        return vk_record_args(e->recording, addr, a);
    enum err err = vk_enc_put(e, addr, a->data, a->size);
    for (size_t i = 0; i < records && !err; i++)
        vk_enc_absent((char *)e->cmdbuf->args->map + (*addr - e->cmdbuf->args->base.addr) +
                          i * (a->size / records),
                      a->n_addr);
    return err;
}

void vk_enc_absent(void *block, uint32_t n)
{
    char *at = block;

    for (uint32_t i = 0; i < n; i++, at += sizeof(uint64_t)) {
        uint64_t addr;
        memcpy(&addr, at, sizeof addr);
        if (!addr)
            memcpy(at, &vk_dev.absent, sizeof addr);
    }
}

/* Copies of one op have numbers of their own (backend.h), from the other half. */
uint32_t vk_enc_groups(uint32_t n)
{
    static _Atomic uint32_t next;

    return atomic_fetch_add(&next, n + 1) | (uint32_t)1 << 31;
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
        emit_barrier2(e->cmdbuf->cmd, &vk_dev.work);
    else
        emit_barrier1(e->cmdbuf->cmd, &vk_dev.work);
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

    if (e->cmdbuf->timing.has_each)
        timing_dispatch_end(&e->cmdbuf->timing, e->cmdbuf->cmd, &d);
    RECORD(e, VK_REC_DISPATCH, NO_RANGE, 0);
    e->dispatches++;
    e->ops++;
    stat_add(STAT_DISPATCHES, 1);
}

void vk_enc_drop(struct vk_enc *e)
{
    if (e->recording) {
        vk_record_drop(e->recording);
        return;
    }
    hazard_drop(&e->hazard);
    e->dispatches++; /* what was recorded for this one belongs to no later one */
}

void vk_enc_emit(struct vk_enc *e, const struct vk_dispatch *d)
{
    const struct vk_pipe *pipe = d->kernel.pipe;

    begin_work(e);
    if (e->bound != pipe->handle) {
        vk.CmdBindPipeline(e->cmdbuf->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipe->handle);
        e->bound = pipe->handle;
    }
    if (d->push_size)
        vk.CmdPushConstants(e->cmdbuf->cmd, pipe->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            d->push_size, d->push);
    if (e->cmdbuf->timing.has_each)
        timing_dispatch_begin(&e->cmdbuf->timing, e->cmdbuf->cmd);
    vk.CmdDispatch(e->cmdbuf->cmd, d->grid.x, d->grid.y, d->grid.z);
    end_work(e, pipe->name, d->kernel.variant);
}

enum err vk_enc_dispatch(struct vk_enc *e, struct vk_kernel k, const void *push, size_t push_size,
                         struct vk_grid grid)
{
    enum err err = check_dispatch(push_size, grid);

    /* No pipeline: it is among those that a recording has found missing. */
    if (err || !grid.x || !grid.y || !grid.z || !k.pipe) {
        vk_enc_drop(e);
        return err;
    }
    struct vk_dispatch d = { .kernel = k, .grid = grid, .push_size = (uint32_t)push_size };
    memcpy(d.push, push, push_size);
    vk_enc_absent(d.push, k.pipe->n_addr);
    if (e->recording)
        return vk_record_dispatch(e->recording, &d);
    vk_enc_emit(e, &d);
    return ERR_OK;
}

/* ---- storage buffers ---- */

/* From its first element on, as far as it reaches. */
static uint64_t bound_size(const struct arr *a)
{
    struct span s = arr_span(a);

    return a->size ? s.lo + s.size - (uint64_t)a->offset : 0;
}

static enum err record_bound(struct be_recording *r, const struct vk_bound *b, uint32_t n)
{
    enum err err = ERR_OK;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t addr = 0;
        if (b[i].a->size)
            TRY(vk_record_addr(r, &addr, b[i].a->buf, b[i].a->offset));
        TRY(vk_record_bind(r, b[i].binding, addr, bound_size(b[i].a)));
    }
out:
    return err;
}

static enum err bind_now(struct vk_enc *e, const struct vk_pipe *pipe, const struct vk_bound *b,
                         uint32_t n)
{
    struct vk_binding binding[VK_MAX_BOUND];
    enum err err = ERR_OK;

    for (uint32_t i = 0; i < n; i++) {
        const struct arr *a = b[i].a;
        struct buf *buf = a->buf;
        binding[i] = (struct vk_binding){ .binding = b[i].binding };
        if (!a->size)
            continue;
        TRY(vk_enc_resolve(e, &buf));
        binding[i].buf = buf;
        binding[i].offset = (uint64_t)a->offset;
        binding[i].size = bound_size(a);
    }
    err = vk_cmdbuf_bind(e->cmdbuf, pipe, binding, n);
out:
    return err;
}

enum err vk_enc_dispatch_bound(struct vk_enc *e, const struct vk_dispatch *d,
                               const struct vk_bound *b, uint32_t n)
{
    enum err err;

    TRY(check_dispatch(d->push_size, d->grid));
    if (e->recording) {
        TRY(record_bound(e->recording, b, n));
        TRY(vk_record_dispatch(e->recording, d));
    } else {
        TRY(bind_now(e, d->kernel.pipe, b, n));
        vk_enc_emit(e, d);
    }
out:
    if (err)
        vk_enc_drop(e);
    return err;
}
