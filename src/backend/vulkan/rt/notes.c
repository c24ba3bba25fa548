#include "backend/vulkan/rt/notes.h"

#include "backend/vulkan/rt/stream.h"

#define ARGS_CHUNK ((size_t)16 << 10)
#define ARGS_ALIGN 64

struct noted_step {
    uint32_t first, n; /* notes */
    size_t bytes;      /* of the buffers it touches */
};

struct be_notes {
    VEC(struct vk_note) note;
    VEC(struct hz_range) range;
    VEC(struct noted_step) step;
    VEC(struct buf *) kept; /* argument blocks and scratch memory, owned */
    struct vk_buf *args;    /* the newest block, among them */
    size_t args_used;
    size_t bytes_before; /* of the encoder, when the open step began, */
    uint64_t stamp;      /* in the command buffer of this stamp */
    uint32_t first_note, first_range;
    bool is_refused; /* the open step */
};

enum err vk_notes_new(struct be_notes **out)
{
    *out = mem_alloc(sizeof **out);
    return *out ? ERR_OK : ERR_NO_MEMORY;
}

void vk_notes_free(struct be_notes **pb, struct strm *s)
{
    struct be_notes *b = *pb;

    *pb = NULL;
    if (!b)
        return;
    /* Who writes constants now comes after those that read them without saying so. */
    vk_enc_order(&vk_strm_of(s)->enc);
    strm_hold(s, b->kept.v, b->kept.n);
    for (size_t i = 0; i < b->kept.n; i++)
        buf_unref(&b->kept.v[i]);
    VEC_FINI(&b->kept);
    VEC_FINI(&b->note);
    VEC_FINI(&b->range);
    VEC_FINI(&b->step);
    mem_free(b);
}

/* ---- writing down ---- */

enum err vk_notes_begin(struct be_notes *b, struct strm *s)
{
    struct vk_enc *e;
    enum err err;

    TRY(vk_enc_get(&e, s)); /* opens a command buffer now, so that bytes are counted from here */
    b->first_note = (uint32_t)b->note.n;
    b->first_range = (uint32_t)b->range.n;
    b->bytes_before = e->bytes;
    b->stamp = e->stamp;
    b->is_refused = false;
    e->notes = b;
out:
    return err;
}

static enum err add_ranges(struct be_notes *b, const struct hz_range *r, uint32_t n)
{
    enum err err = VEC_RESERVE(&b->range, n);

    for (uint32_t i = 0; i < n && !err; i++)
        b->range.v[b->range.n++] = r[i];
    return err;
}

/* Parts of a group of writes are told apart by numbers that are not repeated. */
static bool has_groups(const struct hazard *h)
{
    for (uint32_t i = 0; i < h->n_write; i++)
        if (h->group[i])
            return true;
    return false;
}

void vk_notes_add(struct be_notes *b, const struct vk_note *n, const struct hazard *h)
{
    struct vk_note note = *n;

    note.first_range = (uint32_t)b->range.n;
    note.n_read = h->n_read;
    note.n_write = h->n_write;
    if (has_groups(h) || add_ranges(b, h->read, h->n_read) != ERR_OK ||
        add_ranges(b, h->write, h->n_write) != ERR_OK || VEC_PUSH(&b->note, note) != ERR_OK)
        b->is_refused = true;
}

void vk_notes_refuse(struct be_notes *b)
{
    b->is_refused = true;
}

static enum err keep(struct be_notes *b, struct buf *buf)
{
    enum err err = VEC_PUSH(&b->kept, buf);

    if (err)
        buf_unref(&buf);
    return err;
}

void vk_notes_keep(struct be_notes *b, struct buf *const *bufs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (keep(b, buf_ref(bufs[i])) != ERR_OK)
            b->is_refused = true;
}

enum err vk_notes_args(struct be_notes *b, uint64_t *addr, const void *args, size_t size)
{
    struct vk_buf *chunk = NULL;
    enum err err = ERR_OK;

    if (!b->args || b->args_used + size > b->args->base.size) {
        TRY(vk_mem_alloc(&chunk, VK_MEM_UPLOAD, MAX(size, ARGS_CHUNK)));
        TRY(keep(b, &chunk->base));
        b->args = chunk;
        b->args_used = 0;
    }
    memcpy((char *)b->args->map + b->args_used, args, size);
    *addr = b->args->base.addr + b->args_used;
    b->args_used += align_up(size, ARGS_ALIGN);
out:
    return err;
}

enum err vk_notes_scratch(struct be_notes *b, uint64_t *addr, size_t size)
{
    struct buf *buf = NULL;
    enum err err;

    TRY(vk_buf_alloc(&buf, size));
    *addr = buf->addr;
    err = keep(b, buf);
out:
    return err;
}

static bool is_constant(struct hz_range r, const struct buf *const *constants, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (constants[i]->addr <= r.lo && r.hi <= constants[i]->addr + constants[i]->size)
            return true;
    return false;
}

/* What was ordered after the writes of constants once, as the first runs were, need not be again.
 */
static void drop_constants(struct be_notes *b, const struct buf *const *constants, size_t n)
{
    for (size_t i = b->first_note; i < b->note.n; i++) {
        struct vk_note *note = &b->note.v[i];
        struct hz_range *r = b->range.v + note->first_range;
        uint32_t kept = 0, all = note->n_read + note->n_write;
        for (uint32_t k = 0; k < all; k++)
            if (k >= note->n_read || !is_constant(r[k], constants, n))
                r[kept++] = r[k];
        note->n_read -= all - kept;
    }
}

int32_t vk_notes_end(struct be_notes *b, struct strm *s, const struct buf *const *constants,
                     size_t n)
{
    struct vk_enc *e = &vk_strm_of(s)->enc;
    struct noted_step step = { .first = b->first_note,
                               .n = (uint32_t)b->note.n - b->first_note,
                               .bytes = e->bytes };

    if (e->stamp == b->stamp)
        step.bytes -= b->bytes_before;

    e->notes = NULL;
    drop_constants(b, constants, n);
    if (!b->is_refused && VEC_PUSH(&b->step, step) == ERR_OK)
        return (int32_t)b->step.n - 1;
    b->note.n = b->first_note;
    b->range.n = b->first_range;
    return -1;
}

/* ---- encoding again ---- */

enum err vk_notes_repeat(const struct be_notes *b, struct strm *s, int32_t number)
{
    const struct noted_step *step = &b->step.v[number];
    struct vk_enc *e;
    enum err err = ERR_OK;

    if (!step->n)
        return ERR_OK;
    TRY(vk_enc_get(&e, s));
    for (uint32_t i = step->first; i < step->first + step->n; i++)
        vk_enc_repeat(e, &b->note.v[i], b->range.v + b->note.v[i].first_range);
    e->bytes += step->bytes;
out:
    return err;
}
