/* Encoding what was recorded, with the memory of this run. */
#include "backend/vulkan/rt/recording.h"

#include "backend/vulkan/rt/stream.h"
#include "base/stat.h"

static enum err allocate(struct be_recording *r, struct buf **memory, struct buf **buf)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->memory.n; i++)
        TRY(vk_buf_alloc(&memory[i], r->memory.v[i]));
    for (size_t i = 0; i < r->place.n; i++)
        if (r->place.v[i].kind == PLACE_KEPT)
            TRY(vk_buf_alloc(&buf[i], r->place.v[i].size));
out:
    return err;
}

static enum err resolve(struct be_recording *r, struct vk_enc *e, struct buf *const *memory,
                        struct buf *const *buf)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->place.n; i++) {
        struct vk_place *p = &r->place.v[i];
        p->buf = p->kind == PLACE_INSIDE ? memory[p->block] : buf[i];
        p->held = 0;
        if (!p->buf)
            continue;
        if (p->kind == PLACE_OUTSIDE)
            TRY(vk_enc_resolve(e, &p->buf));
        p->base = p->buf->addr + (p->kind == PLACE_INSIDE ? p->offset : 0);
    }
out:
    return err;
}

/* ---- addresses ---- */

static enum err copy_block(struct be_recording *r, struct vk_enc *e, uint32_t number);

static enum err patch(struct be_recording *r, struct vk_enc *e, char *data,
                      const struct vk_reloc *reloc, uint32_t n)
{
    enum err err = ERR_OK;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t base;
        if (reloc[i].is_block) {
            TRY(copy_block(r, e, reloc[i].target));
            base = r->block.v[reloc[i].target].addr;
        } else {
            base = r->place.v[reloc[i].target].base;
        }
        base += reloc[i].offset;
        memcpy(data + (size_t)reloc[i].at * sizeof base, &base, sizeof base);
    }
out:
    return err;
}

/* Makes sure that the open command buffer has the block. Blocks name only blocks made before. */
static enum err copy_block(struct be_recording *r, struct vk_enc *e, uint32_t number)
{
    struct vk_recorded_block *b = &r->block.v[number];
    char *bytes = r->bytes.v + b->first_byte;
    enum err err = ERR_OK;

    if (b->run == r->runs && b->stamp == e->stamp)
        return ERR_OK;
    TRY(patch(r, e, bytes, r->reloc.v + b->first_reloc, b->n_reloc));
    TRY(vk_enc_put(e, &b->addr, bytes, b->size));
    b->run = r->runs;
    b->stamp = e->stamp;
out:
    return err;
}

/* ---- dispatches ---- */

static enum err declare(struct be_recording *r, struct vk_enc *e, const struct vk_recorded *d,
                        uint32_t group)
{
    enum err err = ERR_OK;

    for (uint32_t i = d->first_access; i < d->first_access + d->n_access; i++) {
        const struct vk_access *a = &r->access.v[i];
        struct vk_place *p = &r->place.v[a->place];
        struct hz_range range = { p->base + a->range.lo, p->base + a->range.hi };
        if (p->held != e->stamp)
            TRY(vk_enc_use(e, p->buf));
        p->held = e->stamp;
        vk_enc_declare(e, range, a->is_write, a->group ? group + a->group : 0);
    }
out:
    return err;
}

/* Places keep their offsets in the buffers behind them. */
static enum err bind(struct be_recording *r, struct vk_enc *e, const struct vk_recorded *d)
{
    struct vk_binding b[VK_MAX_BOUND];

    for (uint32_t i = 0; i < d->n_bind; i++) {
        const struct vk_recorded_bind *k = &r->bind.v[d->first_bind + i];
        const struct vk_place *p = &r->place.v[k->place];
        b[i] = (struct vk_binding){ .binding = k->binding };
        if (!k->size)
            continue;
        b[i].buf = p->buf;
        b[i].offset = p->base - p->buf->addr + k->offset;
        b[i].size = k->size;
    }
    return vk_cmdbuf_bind(e->cmdbuf, d->d.kernel.pipe, b, d->n_bind);
}

static enum err run_dispatch(struct be_recording *r, struct strm *s, struct vk_recorded *d,
                             uint32_t group)
{
    struct vk_enc *e;
    enum err err;

    TRY(vk_enc_get(&e, s));
    if (d->n_reloc) /* else there may be none at all */
        TRY(patch(r, e, d->d.push, r->reloc.v + d->first_reloc, d->n_reloc));
    TRY(declare(r, e, d, group));
    if (d->n_bind)
        TRY(bind(r, e, d));
    vk_enc_emit(e, &d->d);
    err = vk_strm_step_end(s);
out:
    return err;
}

enum err vk_recording_run(struct be_recording *r, struct strm *s, struct buf **buf, bool *begun)
{
    struct buf **memory = mem_alloc_array(r->memory.n, sizeof *memory);
    uint32_t group = vk_enc_groups(r->n_groups);
    struct vk_enc *e;
    enum err err = ERR_NO_MEMORY;

    *begun = false;
    if (!memory)
        return ERR_NO_MEMORY;
    r->runs++;
    TRY(allocate(r, memory, buf));
    TRY(vk_enc_get(&e, s));
    TRY(resolve(r, e, memory, buf));
    *begun = true;
    for (size_t i = 0; i < r->n_step; i++)
        for (uint32_t k = r->step[i].first; k < r->step[i].first + r->step[i].n; k++)
            TRY(run_dispatch(r, s, &r->dispatch.v[k], group));
out:
    if (err)
        vk_enc_drop(&vk_strm_of(s)->enc);
    for (size_t i = 0; i < r->memory.n; i++)
        buf_unref(&memory[i]); /* work in flight keeps it */
    mem_free(memory);
    return err;
}
