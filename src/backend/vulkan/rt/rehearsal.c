#include "backend/vulkan/rt/rehearsal.h"

#include "backend/vulkan/rt/stream.h"
#include "backend/vulkan/rt/suballoc.h"
#include "base/mem.h"
#include "base/stat.h"
#include "base/trace.h"

struct wanted {
    struct vk_pipe_params params;
    uint32_t spec[VK_MAX_SPEC];
    uint32_t *words;
    char *name;
};

/* Where buffers without memory pretend to lie. */
#define BUFFERS ((uint64_t)1 << 41)

static _Thread_local struct {
    bool is_on;
    uint64_t next; /* offset of the next buffer */
    VEC(struct wanted *) wanted;
    VEC(uint64_t) emitted; /* hashes of programs whose modules have been noted */
} mine;

bool rehearsal_is_on(void)
{
    return mine.is_on;
}

/* ---- buffers ---- */

enum err rehearsal_buf(struct buf **out, size_t size)
{
    struct vk_buf *b = mem_alloc(sizeof *b);

    if (!b)
        return ERR_NO_MEMORY;
    b->mem = VK_MEM_NONE;
    b->base =
        (struct buf){ .home = &be_vulkan, .size = size, .addr = BUFFERS + mine.next, .priv = b };
    atomic_init(&b->base.refs, 1);
    mine.next += align_up(size, SUBALLOC_GRANULE);
    *out = &b->base;
    return ERR_OK;
}

bool rehearsal_owns(const struct buf *b)
{
    return b->home == &be_vulkan && ((const struct vk_buf *)b->priv)->mem == VK_MEM_NONE;
}

void rehearsal_buf_free(struct buf *b)
{
    mem_free(b->priv);
}

/* ---- pipelines ---- */

static void wanted_free(struct wanted *w)
{
    if (!w)
        return;
    mem_free(w->words);
    mem_free(w->name);
    mem_free(w);
}

static bool is_noted(const struct vk_pipe_params *p)
{
    for (size_t i = 0; i < mine.wanted.n; i++) {
        const struct vk_pipe_params *w = &mine.wanted.v[i]->params;
        if (w->key == p->key && w->n_spec == p->n_spec && w->subgroup_size == p->subgroup_size &&
            (!p->n_spec || memcmp(w->spec, p->spec, (size_t)p->n_spec * sizeof *p->spec) == 0))
            return true;
    }
    return false;
}

enum err rehearsal_want(const struct vk_pipe_params *p)
{
    struct wanted *w = NULL;
    enum err err = ERR_OK;

    if (is_noted(p))
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
    TRY(VEC_PUSH(&mine.wanted, w));
    w = NULL;
out:
    wanted_free(w);
    return err;
}

bool rehearsal_is_new(uint64_t program)
{
    for (size_t i = 0; i < mine.emitted.n; i++)
        if (mine.emitted.v[i] == program)
            return false;
    enum err err = VEC_PUSH(&mine.emitted, program);
    (void)err; /* then it is emitted once more */
    return true;
}

/* ---- begin and end ---- */

bool vk_rehearse_begin(struct strm *s)
{
    /* One thread that builds when a pipeline is first used is as fast. */
    mine.is_on = vk_pipe_builders() > 1 && !vk_dev_is_lost();
    mine.next = 0;
    vk_strm_of(s)->enc.rehearses = mine.is_on;
    if (mine.is_on)
        stat_add(STAT_REHEARSALS, 1);
    return mine.is_on;
}

/* What fails is built again, and told, when it is needed. */
static void build_wanted(void)
{
    size_t n = mine.wanted.n;
    struct vk_pipe_params *params = mem_alloc_array(n, sizeof *params);
    int64_t begin = trace_span_begin();

    if (!params)
        return;
    for (size_t i = 0; i < n; i++)
        params[i] = mine.wanted.v[i]->params;
    enum err err = vk_pipe_prefetch(params, n);
    (void)err;
    stat_add(STAT_PIPELINES_AHEAD, n);
    trace_span_end_n("build pipelines", begin, n);
    mem_free(params);
}

void vk_rehearse_end(struct strm *s)
{
    mine.is_on = vk_strm_of(s)->enc.rehearses = false;
    if (mine.wanted.n)
        build_wanted();
    for (size_t i = 0; i < mine.wanted.n; i++)
        wanted_free(mine.wanted.v[i]);
    VEC_FINI(&mine.wanted);
    VEC_FINI(&mine.emitted);
}
