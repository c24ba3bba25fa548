/* Writing steps down. */
#include "backend/vulkan/rt/recording.h"

#include "backend/vulkan/rt/pipe.h"
#include "backend/vulkan/rt/stream.h"
#include "backend/vulkan/rt/suballoc.h"
#include "base/hash.h"
#include "base/stat.h"
#include "base/trace.h"

/* A step that is recorded again leaves its old dispatches and blocks where they are. When there are
 * so many times as many as in the beginning, all steps are recorded anew. */
#define GROWS_TO 32
#define LEAST_MOST 256
/* Equal blocks lie close to each other: those of the same step, and tables that all layers read. */
#define NEAR_BLOCKS 64

_Thread_local struct be_recording *vk_recording_now;

/* A pipeline that is missing, with copies of all that it is built from. */
struct vk_wanted {
    struct vk_wanted *next;
    struct vk_pipe_params params; /* n_words 0: a program whose pipeline is wanted already */
    uint64_t program;
    uint32_t spec[VK_MAX_SPEC];
    uint32_t *words;
    char *name;
};

static uint64_t addr_of(uint32_t place, int64_t offset)
{
    return RECORDED_ADDR | (((uint64_t)place << RECORDED_OFFSET_BITS) + (uint64_t)offset);
}

static bool is_recorded(uint64_t addr)
{
    return addr & RECORDED_ADDR;
}

static uint32_t target_of(uint64_t addr)
{
    return (uint32_t)((addr & ~(RECORDED_ADDR | RECORDED_BLOCK)) >> RECORDED_OFFSET_BITS);
}

static uint64_t offset_of(uint64_t addr)
{
    return addr & (((uint64_t)1 << RECORDED_OFFSET_BITS) - 1);
}

/* ---- places ---- */

static enum err add_place(struct be_recording *r, uint32_t *place, enum vk_place_kind kind,
                          size_t size)
{
    *place = (uint32_t)r->place.n;
    return VEC_PUSH(
        &r->place, (struct vk_place){
                       .kind = kind, .size = size, .made = (uint32_t)r->open, .left = UINT32_MAX });
}

/* A step that is recorded again gets the places that it made before. */
static enum err made_before(struct be_recording *r, uint32_t *place, size_t size)
{
    const struct vk_recorded_step *s = &r->step[r->open];

    if (r->next_made < s->n_made) {
        *place = r->made.v[s->first_made + r->next_made++];
        struct vk_place *p = &r->place.v[*place];
        if (p->kind == PLACE_KEPT)
            p->size = size;
        if (size <= align_up(p->size, SUBALLOC_GRANULE))
            return ERR_OK;
    }
    r->differs = true;
    return err_set(ERR_NO_MEMORY, "[vulkan] the step needs other memory than before");
}

static enum err make_place(struct be_recording *r, uint32_t *place, size_t size)
{
    enum err err;

    if (r->again)
        return made_before(r, place, size);
    TRY(add_place(r, place, PLACE_INSIDE, size));
    TRY(VEC_PUSH(&r->made, *place));
    r->step[r->open].n_made++;
out:
    return err;
}

enum err vk_recording_place(struct be_recording *r, struct buf **out, uint32_t place)
{
    struct vk_buf *b = mem_alloc(sizeof *b);

    if (!b)
        return ERR_NO_MEMORY;
    b->mem = VK_MEM_NONE;
    b->base = (struct buf){
        .home = &be_vulkan, .size = r->place.v[place].size, .addr = addr_of(place, 0), .priv = b
    };
    atomic_init(&b->base.refs, 1);
    *out = &b->base;
    return ERR_OK;
}

enum err vk_record_buf(struct buf **out, struct be_recording *r, size_t size)
{
    uint32_t place;
    enum err err = make_place(r, &place, size);

    return err ? err : vk_recording_place(r, out, place);
}

enum err vk_record_scratch(struct be_recording *r, uint64_t *addr, size_t size)
{
    uint32_t place;
    enum err err;

    TRY(make_place(r, &place, size));
    r->place.v[place].left = (uint32_t)r->open;
    *addr = addr_of(place, 0);
    err = vk_record_access(r, *addr, size, true, 0);
out:
    return err;
}

void vk_record_free(struct buf *b)
{
    struct be_recording *r = vk_recording_now;

    if (r && !r->again)
        r->place.v[target_of(b->addr)].left = (uint32_t)r->open;
    mem_free(b->priv);
}

/* ---- buffers from outside ---- */

static uint32_t bound_slot(const struct be_recording *r, const struct buf *b)
{
    uint32_t i = (uint32_t)hash_mix(HASH_SEED, (uintptr_t)b) & (r->cap_bound - 1);

    while (r->bound[i].buf && r->bound[i].buf != b)
        i = (i + 1) & (r->cap_bound - 1);
    return i;
}

static enum err grow_bound(struct be_recording *r)
{
    struct be_recording old = *r;
    uint32_t cap = MAX(2 * old.cap_bound, 64u);
    void *bound = mem_alloc_array(cap, sizeof *r->bound);

    if (!bound)
        return ERR_NO_MEMORY;
    r->bound = bound;
    r->cap_bound = cap;
    for (uint32_t i = 0; i < old.cap_bound; i++)
        if (old.bound[i].buf)
            r->bound[bound_slot(r, old.bound[i].buf)] = old.bound[i];
    mem_free(old.bound);
    return ERR_OK;
}

enum err vk_recording_bind(struct be_recording *r, uint32_t *place, struct buf *b)
{
    enum err err = ERR_OK;

    if (2 * r->n_bound >= r->cap_bound)
        TRY(grow_bound(r));
    uint32_t i = bound_slot(r, b);
    if (!r->bound[i].buf) {
        TRY(add_place(r, &r->bound[i].place, PLACE_OUTSIDE, 0));
        r->bound[i].buf = b;
        r->n_bound++;
    }
    *place = r->bound[i].place;
out:
    return err;
}

bool vk_recording_rebind(struct be_recording *r, struct buf *const *buf)
{
    if (r->cap_bound)
        memset(r->bound, 0, r->cap_bound * sizeof *r->bound);
    for (uint32_t place = 0; place < r->n_bound; place++) {
        uint32_t i = bound_slot(r, buf[place]);
        if (r->bound[i].buf)
            return false;
        r->bound[i].buf = buf[place];
        r->bound[i].place = place;
    }
    return true;
}

enum err vk_record_addr(struct be_recording *r, uint64_t *addr, struct buf *b, int64_t offset)
{
    if (buf_is_place(b)) {
        *addr = b->addr + (uint64_t)offset;
        return ERR_OK;
    }
    uint32_t i = r->cap_bound ? bound_slot(r, b) : 0;
    if (!r->cap_bound || !r->bound[i].buf)
        return err_set(ERR_RUNTIME, "[vulkan] a step reads an array that nobody named");
    *addr = addr_of(r->bound[i].place, offset);
    return ERR_OK;
}

/* ---- dispatches ---- */

enum err vk_record_access(struct be_recording *r, uint64_t addr, size_t size, bool is_write,
                          uint32_t group)
{
    uint64_t at = offset_of(addr);

    if (group && group != r->newest_group) {
        r->newest_group = group;
        r->n_groups++;
    }
    return VEC_PUSH(&r->access, (struct vk_access){ .range = { at, at + size },
                                                    .place = target_of(addr),
                                                    .group = group ? r->n_groups : 0,
                                                    .is_write = is_write });
}

void vk_record_read(struct be_recording *r, uint64_t addr, size_t size)
{
    r->is_short |= vk_record_access(r, addr, size, false, 0) != ERR_OK;
}

void vk_record_drop(struct be_recording *r)
{
    r->access.n = r->first_access;
    r->bind.n = r->first_bind;
}

enum err vk_record_bind(struct be_recording *r, uint32_t binding, uint64_t addr, uint64_t size)
{
    return VEC_PUSH(&r->bind, (struct vk_recorded_bind){ .binding = binding,
                                                         .place = size ? target_of(addr) : 0,
                                                         .offset = size ? offset_of(addr) : 0,
                                                         .size = size });
}

/* The recorded ones among n addresses at `data`, whose first is word `first`. */
static enum err add_relocs(struct be_recording *r, const char *data, uint32_t first, uint32_t n)
{
    enum err err = ERR_OK;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t addr;
        memcpy(&addr, data + (size_t)(first + i) * sizeof addr, sizeof addr);
        if (is_recorded(addr))
            TRY(VEC_PUSH(&r->reloc, (struct vk_reloc){ .at = first + i,
                                                       .target = target_of(addr),
                                                       .offset = offset_of(addr),
                                                       .is_block = addr & RECORDED_BLOCK }));
    }
out:
    return err;
}

enum err vk_record_dispatch(struct be_recording *r, const struct vk_dispatch *d)
{
    struct vk_recorded new = { .d = *d,
                               .first_reloc = (uint32_t)r->reloc.n,
                               .first_access = r->first_access,
                               .n_access = (uint32_t)r->access.n - r->first_access,
                               .first_bind = r->first_bind,
                               .n_bind = (uint32_t)r->bind.n - r->first_bind };
    enum err err;

    TRY(add_relocs(r, d->push, 0, d->kernel.pipe->n_addr));
    new.n_reloc = (uint32_t)r->reloc.n - new.first_reloc;
    TRY(VEC_PUSH(&r->dispatch, new));
    r->step[r->open].n++;
    r->first_access = (uint32_t)r->access.n;
    r->first_bind = (uint32_t)r->bind.n;
out:
    return err;
}

/* ---- argument blocks ---- */

/* A block of the same bytes without relocations; the number of blocks if there is none near. */
static uint32_t find_block(const struct be_recording *r, const struct vk_args *a)
{
    size_t first = r->block.n - MIN(r->block.n, NEAR_BLOCKS);

    for (size_t i = r->block.n; i-- > first;) {
        const struct vk_recorded_block *b = &r->block.v[i];
        if (b->size == a->size && !b->n_reloc && !b->is_written &&
            memcmp(r->bytes.v + b->first_byte, a->data, a->size) == 0)
            return (uint32_t)i;
    }
    return (uint32_t)r->block.n;
}

static enum err add_block(struct be_recording *r, const struct vk_args *a)
{
    struct vk_recorded_block b = { .first_byte = (uint32_t)align_up(r->bytes.n, 8),
                                   .size = (uint32_t)a->size,
                                   .first_reloc = (uint32_t)r->reloc.n,
                                   .is_written = a->is_written };
    size_t records = MAX(a->records, 1u), apart = a->size / records;
    enum err err;

    TRY(VEC_RESERVE(&r->bytes, b.first_byte + a->size - r->bytes.n));
    char *bytes = r->bytes.v + b.first_byte;
    memcpy(bytes, a->data, a->size);
    r->bytes.n = b.first_byte + a->size;
    for (size_t i = 0; i < records && a->n_addr; i++) {
        vk_enc_absent(bytes + i * apart, a->n_addr);
        TRY(add_relocs(r, bytes, (uint32_t)(i * apart / sizeof(uint64_t)), a->n_addr));
    }
    b.n_reloc = (uint32_t)r->reloc.n - b.first_reloc;
    err = VEC_PUSH(&r->block, b);
out:
    return err;
}

enum err vk_record_args(struct be_recording *r, uint64_t *addr, const struct vk_args *a)
{
    uint32_t i = a->n_addr || a->is_written ? (uint32_t)r->block.n : find_block(r, a);
    enum err err = ERR_OK;

    if (i == r->block.n)
        err = add_block(r, a);
    *addr = RECORDED_BLOCK | addr_of(i, 0);
    return err;
}

/* ---- pipelines that are missing ---- */

static void wanted_free(struct vk_wanted *w)
{
    if (!w)
        return;
    mem_free(w->words);
    mem_free(w->name);
    mem_free(w);
}

static void forget_wanted(struct be_recording *r)
{
    while (r->wanted) {
        struct vk_wanted *w = r->wanted;
        r->wanted = w->next;
        wanted_free(w);
    }
}

static bool is_wanted(const struct be_recording *r, const struct vk_pipe_params *p)
{
    for (const struct vk_wanted *w = r->wanted; w; w = w->next) {
        const struct vk_pipe_params *q = &w->params;
        if (q->n_words && q->key == p->key && q->n_spec == p->n_spec &&
            q->subgroup_size == p->subgroup_size &&
            (!p->n_spec || memcmp(q->spec, p->spec, (size_t)p->n_spec * sizeof *p->spec) == 0))
            return true;
    }
    return false;
}

static void push_wanted(struct be_recording *r, struct vk_wanted *w)
{
    w->next = r->wanted;
    r->wanted = w;
}

enum err vk_record_want(struct be_recording *r, const struct vk_pipe_params *p)
{
    struct vk_wanted *w = NULL;
    enum err err = ERR_OK;

    if (is_wanted(r, p))
        return ERR_OK;
    err = ERR_NO_MEMORY;
    if (!(w = mem_alloc(sizeof *w)) || !(w->words = mem_alloc_array(p->n_words, 4)) ||
        !(w->name = mem_strdup(p->name ? p->name : "")))
        goto out;
    memcpy(w->words, p->words, p->n_words * 4);
    if (p->n_spec)
        memcpy(w->spec, p->spec, (size_t)p->n_spec * sizeof *p->spec);
    w->params = *p;
    w->params.words = w->words;
    w->params.spec = w->spec;
    w->params.name = w->name;
    push_wanted(r, w);
    w = NULL;
    err = ERR_OK;
out:
    wanted_free(w);
    return err;
}

bool vk_record_is_new(struct be_recording *r, uint64_t program)
{
    struct vk_wanted *w;

    for (w = r->wanted; w; w = w->next)
        if (!w->params.n_words && w->program == program)
            return false;
    if ((w = mem_alloc(sizeof *w))) { /* else it is emitted once more */
        w->program = program;
        push_wanted(r, w);
    }
    return true;
}

/* What fails is built again, and told, when it is needed. */
static void build_wanted(struct be_recording *r)
{
    VEC(struct vk_pipe_params) params = { 0 };
    int64_t begin = trace_span_begin();
    enum err err = ERR_OK;

    for (const struct vk_wanted *w = r->wanted; w && !err; w = w->next)
        if (w->params.n_words)
            err = VEC_PUSH(&params, w->params);
    if (!err)
        err = vk_pipe_prefetch(params.v, params.n);
    stat_add(STAT_PIPELINES_AHEAD, params.n);
    trace_span_end_n("build pipelines", begin, params.n);
    VEC_FINI(&params);
}

/* ---- making, steps, closing ---- */

enum err vk_recording_new(struct be_recording **out, size_t n_steps)
{
    struct be_recording *r = mem_alloc(sizeof *r);

    if (!r || !(r->step = mem_alloc_array(n_steps, sizeof *r->step))) {
        mem_free(r);
        return ERR_NO_MEMORY;
    }
    r->n_step = n_steps;
    /* One thread that builds when a pipeline is first used is as fast. */
    r->only_looks = vk_pipe_builders() > 1 && !vk_dev_is_lost();
    *out = r;
    return ERR_OK;
}

void vk_recording_free(struct be_recording **pr)
{
    struct be_recording *r = *pr;

    *pr = NULL;
    if (!r)
        return;
    forget_wanted(r);
    VEC_FINI(&r->dispatch);
    VEC_FINI(&r->reloc);
    VEC_FINI(&r->access);
    VEC_FINI(&r->bind);
    VEC_FINI(&r->block);
    VEC_FINI(&r->bytes);
    VEC_FINI(&r->place);
    VEC_FINI(&r->made);
    VEC_FINI(&r->memory);
    mem_free(r->bound);
    mem_free(r->step);
    mem_free(r);
}

enum err vk_recording_begin(struct be_recording *r, struct strm *strm, size_t step)
{
    struct vk_recorded_step *s = &r->step[step];

    r->open = step;
    r->next_made = 0;
    r->differs = false;
    r->first_access = (uint32_t)r->access.n;
    r->first_bind = (uint32_t)r->bind.n;
    s->first = (uint32_t)r->dispatch.n;
    s->n = 0;
    if (!r->again) {
        s->first_made = (uint32_t)r->made.n;
        s->n_made = 0;
    }
    vk_recording_now = vk_strm_of(strm)->enc.recording = r;
    return ERR_OK;
}

bool vk_recording_end(struct be_recording *r, struct strm *strm)
{
    vk_recording_now = vk_strm_of(strm)->enc.recording = NULL;
    bool is_good = !r->differs;

    if (r->again) { /* closing asks the others whether they are short */
        is_good &= !r->is_short && r->next_made == r->step[r->open].n_made;
        r->is_short = false;
    }
    return is_good && (!r->again || (r->dispatch.n <= r->most && r->block.n <= r->most_blocks));
}

/* ---- steps that are moved ---- */

struct vk_recorded *vk_recorded_only(struct be_recording *r, size_t step)
{
    const struct vk_recorded_step *s = &r->step[step];

    return s->n == 1 && r->block.n <= r->most_blocks ? &r->dispatch.v[s->first] : NULL;
}

static struct vk_reloc *block_at(struct be_recording *r, const struct vk_recorded *d, uint32_t word)
{
    struct vk_reloc *reloc = &r->reloc.v[d->first_reloc];

    while (reloc->at != word)
        reloc++;
    return reloc;
}

void *vk_recorded_block(struct be_recording *r, const struct vk_recorded *d, uint32_t word)
{
    return r->bytes.v + r->block.v[block_at(r, d, word)->target].first_byte;
}

void vk_recorded_set_block(struct be_recording *r, const struct vk_recorded *d, uint32_t word,
                           uint64_t addr)
{
    block_at(r, d, word)->target = target_of(addr);
}

/* Everything but the buffers from outside, which keep their places. */
static void begin_anew(struct be_recording *r)
{
    r->dispatch.n = r->reloc.n = r->access.n = r->bind.n = r->block.n = 0;
    r->bytes.n = r->made.n = 0;
    r->place.n = r->n_bound; /* they were named before the first step */
    r->only_looks = false;
    forget_wanted(r);
}

uint32_t vk_recording_places(const struct be_recording *r)
{
    return (uint32_t)r->place.n;
}

enum err vk_recording_close(struct be_recording *r, const struct be_kept *kept, bool *again)
{
    bool is_missing = false;

    if (r->is_short)
        return ERR_NO_MEMORY;
    for (const struct vk_wanted *w = r->wanted; w; w = w->next)
        is_missing |= w->params.n_words > 0;
    if ((*again = r->only_looks && is_missing)) {
        build_wanted(r);
        begin_anew(r);
        return ERR_OK;
    }
    r->only_looks = false;
    forget_wanted(r);
    for (size_t i = 0; i < kept->n; i++)
        if (r->place.v[kept->place[i]].kind == PLACE_INSIDE)
            r->place.v[kept->place[i]].kind = PLACE_KEPT;
    r->again = true;
    r->most = GROWS_TO * r->dispatch.n + LEAST_MOST;
    r->most_blocks = GROWS_TO * r->block.n + LEAST_MOST;
    return vk_recording_pack(r);
}
