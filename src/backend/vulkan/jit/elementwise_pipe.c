#include "backend/vulkan/jit/elementwise_pipe.h"

#include <pthread.h>
#include <stdio.h>

#include "backend/vulkan/rt/recording.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/stat.h"
#include "graph/op.h"

struct kernel {
    uint64_t hash;
    struct elem_program program;
    struct elem_class c;
    const struct vk_pipe *pipe;
};

static struct {
    pthread_mutex_t lock;
    struct kernel **table; /* open addressing, a power of two, at most half full */
    size_t n, cap;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t kernel_hash(const struct elem_program *f, const struct elem_class *c)
{
    return hash_bytes(elem_program_hash(f), c, sizeof *c);
}

static bool is_kernel(const struct kernel *k, uint64_t hash, const struct elem_program *f,
                      const struct elem_class *c)
{
    return k->hash == hash && memcmp(&k->c, c, sizeof *c) == 0 &&
           elem_program_equal(&k->program, f);
}

/* Where the kernel is, or belongs. Caller locks. */
static struct kernel **cache_place(uint64_t hash, const struct elem_program *f,
                                   const struct elem_class *c)
{
    size_t i = hash & (cache.cap - 1);

    while (cache.table[i] && !is_kernel(cache.table[i], hash, f, c))
        i = (i + 1) & (cache.cap - 1);
    return &cache.table[i];
}

static enum err cache_grow(void)
{
    size_t cap = MAX(cache.cap * 2, 256), old = cache.cap;
    struct kernel **table = mem_alloc_array(cap, sizeof(struct kernel *)), **previous = cache.table;

    if (!table)
        return ERR_NO_MEMORY;
    cache.table = table;
    cache.cap = cap;
    for (size_t i = 0; i < old; i++)
        if (previous[i])
            *cache_place(previous[i]->hash, &previous[i]->program, &previous[i]->c) = previous[i];
    mem_free(previous);
    return ERR_OK;
}

static const struct vk_pipe *cache_find(uint64_t hash, const struct elem_program *f,
                                        const struct elem_class *c)
{
    const struct vk_pipe *pipe = NULL;

    pthread_mutex_lock(&cache.lock);
    if (cache.cap) {
        const struct kernel *k = *cache_place(hash, f, c);
        pipe = k ? k->pipe : NULL;
    }
    pthread_mutex_unlock(&cache.lock);
    return pipe;
}

/* Another thread may have been faster; vk_pipe_get gave both the same pipeline then. */
static enum err cache_add(struct kernel **made)
{
    enum err err = ERR_OK;

    pthread_mutex_lock(&cache.lock);
    if (cache.n * 2 >= cache.cap)
        TRY(cache_grow());
    struct kernel **place = cache_place((*made)->hash, &(*made)->program, &(*made)->c);
    if (!*place) {
        *place = *made;
        *made = NULL;
        cache.n++;
    }
out:
    pthread_mutex_unlock(&cache.lock);
    return err;
}

/* For labels and traces: the ops in order. */
static void kernel_name(char *name, size_t size, const struct elem_program *f)
{
    size_t used = (size_t)snprintf(name, size, "%s", f->n_ins ? "" : "Copy");

    for (int i = 0; i < f->n_ins && used < size; i++)
        used += (size_t)snprintf(name + used, size - used, "%s%s", i ? "+" : "",
                                 op_name((enum op_id)f->ins[i].op));
}

/* The step is recorded to learn which pipelines are missing. */
static bool only_looks(void)
{
    return vk_recording_now && vk_recording_now->only_looks;
}

static enum err build(const struct vk_pipe **pipe, const struct elem_program *f,
                      const struct elem_class *c)
{
    uint32_t *words = NULL;
    size_t n = 0;
    char name[64];
    enum err err;

    TRY(elem_emit(&words, &n, f, c));
    if (!only_looks())
        stat_add(STAT_MODULES_EMITTED, 1);
    kernel_name(name, sizeof name, f);
    TRY(vk_pipe_get(
        pipe, &(struct vk_pipe_params){
                  .name = name,
                  .key = hash_bytes(HASH_SEED, words, n * sizeof *words),
                  .words = words,
                  .n_words = n,
                  .n_addr = c->flags & ELEM_ARGS_IN_MEMORY ? 1u : (uint32_t)(f->n_in + f->n_out),
              }));
out:
    mem_free(words);
    return err;
}

enum err elem_pipe(const struct vk_pipe **pipe, const struct elem_program *f,
                   const struct elem_class *c)
{
    uint64_t hash = kernel_hash(f, c);
    struct kernel *made = NULL;
    enum err err = ERR_OK;

    if ((*pipe = cache_find(hash, f, c)))
        return ERR_OK;
    if (only_looks() && !vk_record_is_new(vk_recording_now, hash))
        return ERR_OK;
    TRY(build(pipe, f, c));
    if (only_looks()) /* the pipeline may not be there */
        goto out;
    if (!(made = mem_alloc(sizeof *made)))
        return ERR_NO_MEMORY;
    *made = (struct kernel){ .hash = hash, .program = *f, .c = *c, .pipe = *pipe };
    TRY(cache_add(&made));
out:
    mem_free(made);
    return err;
}
