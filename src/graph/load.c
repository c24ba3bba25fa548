#include "graph/load.h"

#include <pthread.h>

#include "base/mem.h"
#include "graph/memory.h"

/* Bytes of the file that are read and decoded at a time; fits the second-level cache. */
#define CHUNK 65536

/* Threads that read one array, and what makes another one worth starting. Their parts end between
 * blocks of any codec. */
#define READERS ((size_t)4)
#define SHARE ((size_t)2 << 20)
#define BLOCK_MULTIPLE 65536

/* Smaller arrays are copied: a mapping costs page faults, and mapped bytes are never donated. */
#define SMALL 65536

static void part_free(void *arg)
{
    struct load_part *p = arg;

    source_unref(&p->source);
    mem_free(p);
}

static struct load_part *part_copy(const struct load_part *p)
{
    size_t length = strlen(p->name) + 1;
    struct load_part *copy = mem_alloc(sizeof *copy + length);

    if (!copy)
        return NULL;
    *copy = *p;
    copy->name = memcpy(copy + 1, p->name, length);
    source_ref(copy->source);
    return copy;
}

enum err load_leaf_new(struct arr **out, const struct load_part *p)
{
    struct load_part *copy = part_copy(p);
    struct arr *leaf = NULL;
    enum err err = ERR_NO_MEMORY;

    if (!copy)
        return ERR_NO_MEMORY;
    TRY(arr_new_empty(&leaf, &(struct shp){ .ndim = 0 }, DT_UINT8));
    TRY(memory_adopt(&leaf->buf, copy, 0, part_free, copy));
    atomic_store(&leaf->status, ARR_AVAILABLE);
    *out = leaf;
    return ERR_OK;
out:
    part_free(copy);
    arr_unref(&leaf);
    return err;
}

bool load_is_leaf(const struct arr *a)
{
    return a->buf && a->buf->dtor == part_free;
}

const struct load_part *load_part_get(const struct arr *leaf)
{
    return leaf->buf->dtor_arg;
}

/* ---- reading ---- */

/* Gives the error that was just set the name of the tensor. */
static enum err fail(const struct load_part *p, enum err err)
{
    if (!p->name[0])
        return err_set(err, "[load] %s", err_text());
    return err_set(err, "[load] Tensor '%s' of %s", p->name, err_text());
}

enum err load_check(const struct load_part *p, size_t nbytes)
{
    const struct codec_info *c = &codec_table[p->codec];
    uint64_t need;

    if (!MUL_OVERFLOWS((uint64_t)(nbytes / c->out), (uint64_t)c->in, &need) &&
        source_holds(p->source, p->offset, need))
        return ERR_OK;
    (void)err_set(ERR_RUNTIME, "%s: the data end at %llu, but %zu bytes begin at %llu",
                  source_name(p->source), (unsigned long long)source_size(p->source), nbytes,
                  (unsigned long long)p->offset);
    return fail(p, ERR_RUNTIME);
}

static enum err read_blocks(const struct load_part *p, char *dst, size_t first, size_t n)
{
    const struct codec_info *c = &codec_table[p->codec];
    size_t per_chunk = CHUNK / c->in;
    char *raw = mem_alloc_aligned(MIN(n, per_chunk) * c->in);
    enum err err = ERR_OK;

    if (!raw)
        return ERR_NO_MEMORY;
    for (size_t done = 0, now; done < n; done += now) {
        now = MIN(n - done, per_chunk);
        TRY(source_read(p->source, raw, now * c->in, p->offset + (first + done) * c->in));
        c->decode(dst + done * c->out, raw, now);
    }
out:
    mem_free(raw);
    return err;
}

static enum err read_range(const struct load_part *p, char *dst, size_t offset, size_t n)
{
    const struct codec_info *c = &codec_table[p->codec];

    return c->decode ? read_blocks(p, dst, offset / c->out, n / c->out)
                     : source_read(p->source, dst, n, p->offset + offset);
}

/* ---- several threads ---- */

struct share {
    const struct load_part *p;
    char *dst;
    size_t offset, n;
    pthread_t thread;
    bool started;
    struct err_note failure;
};

static void *read_share(void *arg)
{
    struct share *s = arg;
    enum err err = read_range(s->p, s->dst, s->offset, s->n);

    if (err)
        err_note_take(&s->failure, err);
    return NULL;
}

/* The caller reads the first share itself, and those that find no thread. */
static enum err read_shares(const struct load_part *p, char *dst, size_t offset, size_t n)
{
    struct share shares[READERS] = { 0 };
    size_t count = MIN(n / SHARE, READERS), each = n / count / BLOCK_MULTIPLE * BLOCK_MULTIPLE;
    enum err err = ERR_OK;

    for (size_t i = 0; i < count; i++) {
        struct share *s = &shares[i];
        size_t at = i * each;
        s->p = p;
        s->dst = dst + at;
        s->offset = offset + at;
        s->n = i + 1 < count ? each : n - at;
        s->started = i && pthread_create(&s->thread, NULL, read_share, s) == 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (shares[i].started)
            pthread_join(shares[i].thread, NULL);
        else
            read_share(&shares[i]);
        if (!err)
            err = err_note_raise(&shares[i].failure);
    }
    return err;
}

enum err load_read(const struct load_part *p, void *dst, size_t offset, size_t n)
{
    enum err err = n >= 2 * SHARE && source_is_parallel(p->source) ? read_shares(p, dst, offset, n)
                                                                   : read_range(p, dst, offset, n);

    return err ? fail(p, err) : ERR_OK;
}

void *load_in_place(const struct load_part *p, size_t nbytes, size_t align)
{
    /* Mappings and memory begin aligned. */
    return p->codec == CODEC_RAW && p->offset % align == 0
               ? source_in_place(p->source, p->offset, nbytes, SMALL)
               : NULL;
}
