#include "backend/vulkan/rt/pipeline.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/rt/device.h"
#include "backend/vulkan/rt/pipe.h"
#include "backend/vulkan/rt/pipeline_cache.h"
#include "backend/vulkan/rt/recording.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/stat.h"
#include "base/trace.h"

#define BUCKETS 1024
#define NAME_MAX_LEN 96
#define MAX_BUILDERS 16

enum entry_state { ENTRY_NEW, ENTRY_BUILDING, ENTRY_READY };

/* Made once per (key, spec) and kept for the life of the device. */
struct entry {
    struct vk_pipe pipe;
    struct entry *next;
    enum entry_state state;
    uint64_t hash, key;
    uint32_t spec[VK_MAX_SPEC];
    int n_spec;
    uint32_t subgroup_size;
    uint64_t reused; /* times it was there already */
    char name[NAME_MAX_LEN];
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the table and all states */
static pthread_cond_t built = PTHREAD_COND_INITIALIZER;
static struct entry *buckets[BUCKETS];

/* ---- the table; called with the lock held ---- */

static uint64_t hash_params(const struct vk_pipe_params *p)
{
    uint64_t h = hash_mix(hash_mix(HASH_SEED, p->key), p->subgroup_size);

    return hash_bytes(h, p->spec, (size_t)p->n_spec * sizeof *p->spec);
}

static bool matches(const struct entry *e, const struct vk_pipe_params *p, uint64_t hash)
{
    return e->hash == hash && e->key == p->key && e->n_spec == p->n_spec &&
           e->subgroup_size == p->subgroup_size &&
           (!p->n_spec || memcmp(e->spec, p->spec, (size_t)p->n_spec * sizeof *p->spec) == 0);
}

static struct entry *find_or_add(const struct vk_pipe_params *p)
{
    uint64_t hash = hash_params(p);
    struct entry **bucket = &buckets[hash % BUCKETS], *e = *bucket;

    while (e && !matches(e, p, hash))
        e = e->next;
    if (e || !(e = mem_alloc(sizeof *e)))
        return e;
    e->hash = hash;
    e->key = p->key;
    e->n_spec = p->n_spec;
    e->subgroup_size = p->subgroup_size;
    if (p->n_spec)
        memcpy(e->spec, p->spec, (size_t)p->n_spec * sizeof *p->spec);
    snprintf(e->name, sizeof e->name, "%s", p->name ? p->name : "kernel");
    e->pipe.name = e->name;
    e->pipe.n_addr = p->n_addr;
    e->pipe.layout = p->form ? p->form->layout : vk_dev.layout;
    e->pipe.set = p->form ? p->form->set : VK_NULL_HANDLE;
    e->next = *bucket;
    *bucket = e;
    return e;
}

/* ---- building ---- */

static enum err check_subgroup(uint32_t size)
{
    const struct vk_limits *l = vk_limits_get();

    if (!size ||
        (l->caps & VK_CAP_SUBGROUP_SIZE && size >= l->min_subgroup && size <= l->max_subgroup))
        return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "[vulkan] no subgroups of %u on this device", size);
}

static VkResult create_pipeline(struct entry *e, VkShaderModule module, const struct vk_form *form)
{
    VkSpecializationMapEntry map[VK_MAX_SPEC];

    for (int i = 0; i < e->n_spec; i++)
        map[i] = (VkSpecializationMapEntry){ .constantID =
                                                 form->spec_id ? form->spec_id[i] : (uint32_t)i,
                                             .offset = (uint32_t)i * 4,
                                             .size = 4 };
    VkSpecializationInfo spec = { .mapEntryCount = (uint32_t)e->n_spec,
                                  .pMapEntries = map,
                                  .dataSize = (size_t)e->n_spec * 4,
                                  .pData = e->spec };
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = e->subgroup_size
    };
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                   .pNext = e->subgroup_size ? &size : NULL,
                   .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                   .module = module,
                   .pName = form->entry,
                   .pSpecializationInfo = e->n_spec ? &spec : NULL },
        .layout = form->layout,
    };
    if (vk_fault_hit(VK_FAULT_PIPELINE))
        return VK_ERROR_INITIALIZATION_FAILED;
    return vk.CreateComputePipelines(vk_dev.handle, vk_cache_get(), 1, &info, NULL,
                                     &e->pipe.handle);
}

static enum err build(struct entry *e, const struct vk_pipe_params *p)
{
    VkShaderModuleCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                      .codeSize = p->n_words * sizeof *p->words,
                                      .pCode = p->words };
    VkShaderModule module = VK_NULL_HANDLE;
    struct vk_form own = { .layout = vk_dev.layout, .entry = "main" };
    const struct vk_form *form = p->form ? p->form : &own;
    int64_t begin = trace_span_begin();
    enum err err;

    TRY(vk_dev_check_lost());
    TRY(check_subgroup(p->subgroup_size));
    TRY(vk_check(vk.CreateShaderModule(vk_dev.handle, &info, NULL, &module), e->name));
    TRY(vk_check(create_pipeline(e, module, form), e->name));
    vk_name(VK_OBJECT_TYPE_PIPELINE, (uint64_t)e->pipe.handle, e->name);
    vk_cache_touch();
    stat_add(STAT_PIPELINE_BUILDS, 1);
out:
    if (module) /* else there may be no driver any more */
        vk.DestroyShaderModule(vk_dev.handle, module, NULL);
    trace_span_end("build pipeline", begin);
    return err;
}

/* vk_pipe_get for a recording that looks what is missing. */
static enum err note(const struct vk_pipe **out, const struct vk_pipe_params *p)
{
    pthread_mutex_lock(&table_lock);
    struct entry *e = find_or_add(p);
    bool is_missing = e && e->state != ENTRY_READY;
    pthread_mutex_unlock(&table_lock);
    if (!e)
        return ERR_NO_MEMORY;
    *out = &e->pipe;
    return is_missing ? vk_record_want(vk_recording_now, p) : ERR_OK;
}

enum err vk_pipe_get(const struct vk_pipe **out, const struct vk_pipe_params *p)
{
    enum err err = ERR_OK;

    if (p->n_spec > VK_MAX_SPEC)
        return err_set(ERR_ARG, "[vulkan] %s has too many specialization constants", p->name);
    if (vk_recording_now && vk_recording_now->only_looks)
        return note(out, p);
    pthread_mutex_lock(&table_lock);
    struct entry *e = find_or_add(p);
    while (e && e->state == ENTRY_BUILDING)
        pthread_cond_wait(&built, &table_lock);
    bool build_it = e && e->state == ENTRY_NEW;
    if (build_it)
        e->state = ENTRY_BUILDING;
    else if (e)
        e->reused++;
    pthread_mutex_unlock(&table_lock);
    if (!e)
        return ERR_NO_MEMORY;
    if (build_it) {
        err = build(e, p);
        pthread_mutex_lock(&table_lock);
        e->state = err ? ENTRY_NEW : ENTRY_READY; /* after a failure, the next caller tries again */
        pthread_cond_broadcast(&built);
        pthread_mutex_unlock(&table_lock);
    } else {
        stat_add(STAT_PIPELINE_HITS, 1);
    }
    if (!err)
        *out = &e->pipe;
    return err;
}

/* ---- several at once ---- */

struct prefetch {
    const struct vk_pipe_params *params;
    size_t n;
    atomic_size_t next;
    pthread_mutex_t lock; /* guards the note */
    struct err_note note;
};

static void *prefetch_some(void *arg)
{
    struct prefetch *f = arg;

    for (size_t i; (i = atomic_fetch_add(&f->next, 1)) < f->n;) {
        const struct vk_pipe *pipe;
        enum err err = vk_pipe_get(&pipe, &f->params[i]);
        if (!err)
            continue;
        pthread_mutex_lock(&f->lock);
        err_note_take(&f->note, err);
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

int vk_pipe_builders(void)
{
    int64_t asked = gate_int(GATE_VK_BUILD_THREADS);
    long cores = asked ? (long)asked : sysconf(_SC_NPROCESSORS_ONLN);

    return (int)MIN(MAX(cores, 1), MAX_BUILDERS);
}

enum err vk_pipe_prefetch(const struct vk_pipe_params *params, size_t n)
{
    struct prefetch f = { .params = params, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[MAX_BUILDERS];
    size_t want = MIN(n, (size_t)vk_pipe_builders()), started = 0;

    while (started + 1 < want && pthread_create(&threads[started], NULL, prefetch_some, &f) == 0)
        started++;
    prefetch_some(&f);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return err_note_raise(&f.note);
}

/* ---- statistics ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct entry *const *)a)->name, (*(const struct entry *const *)b)->name);
}

/* Lines of kernels, of which several entries in a row have the same name. */
static void print_entries(FILE *out, const struct entry *const *e, size_t n)
{
    uint64_t n_built = 0, n_reused = 0;

    for (size_t i = 0; i < n; i++) {
        n_built += e[i]->state == ENTRY_READY;
        n_reused += e[i]->reused;
        if (i + 1 < n && strcmp(e[i]->name, e[i + 1]->name) == 0)
            continue;
        fprintf(out, "%12" PRIu64 " built %12" PRIu64 " reused  PIPELINE: %s\n", n_built, n_reused,
                e[i]->name);
        n_built = n_reused = 0;
    }
}

void vk_pipe_print(FILE *out)
{
    VEC(const struct entry *) found = { 0 };
    enum err err = ERR_OK;

    pthread_mutex_lock(&table_lock);
    for (size_t b = 0; b < BUCKETS && !err; b++)
        for (const struct entry *e = buckets[b]; e && !err; e = e->next)
            err = VEC_PUSH(&found, e);
    if (found.n)
        qsort(found.v, found.n, sizeof found.v[0], by_name);
    print_entries(out, found.v, found.n);
    pthread_mutex_unlock(&table_lock);
    VEC_FINI(&found);
}
