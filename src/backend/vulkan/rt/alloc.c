#include "backend/vulkan/rt/alloc.h"

#include <stdatomic.h>
#include <strings.h>

#include "backend/common/buffer_cache.h"
#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/check/record.h"
#include "backend/vulkan/rt/device.h"
#include "backend/vulkan/rt/recording.h"
#include "backend/vulkan/rt/stream.h"
#include "backend/vulkan/rt/suballoc.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/stat.h"
#include "graph/memory.h"

/* vkAllocateMemory takes 130 us to milliseconds, so device blocks are large, and larger the more
 * there are. Host memory costs 0.3 ms per MiB to allocate, hence the small blocks there. */
#define DEVICE_BLOCK ((uint64_t)64 << 20)
#define HOST_BLOCK ((uint64_t)4 << 20)
#define BLOCKS_PER_SIZE 8u
#define MAX_DOUBLINGS 4u

/* Read-back and upload buffers kept for reuse. */
#define HOST_CACHE ((size_t)1 << 30)

struct vk_block {
    struct vk_block *next;
    VkDeviceMemory memory;
    VkBuffer handle;
    uint64_t size, addr;
    char *map;
    struct suballoc *sub; /* NULL: the block is one buffer */
};

static void release(struct buf *b);

static struct heap {
    uint32_t type; /* memory type index */
    uint64_t max;  /* largest allocation */
    uint64_t block_size;
    pthread_mutex_t lock;    /* guards the blocks and their ranges */
    struct vk_block *blocks; /* those that are split */
    uint32_t n_blocks;
    struct buf_cache cache;
} heaps[VK_MEM_COUNT] = {
    [VK_MEM_DEVICE] = { .block_size = DEVICE_BLOCK,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .cache = BUF_CACHE_INIT(release, 0) },
    [VK_MEM_READBACK] = { .block_size = HOST_BLOCK,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .cache = BUF_CACHE_INIT(release, HOST_CACHE) },
    [VK_MEM_UPLOAD] = { .block_size = HOST_BLOCK,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .cache = BUF_CACHE_INIT(release, HOST_CACHE) },
};

static enum vk_strategy strategy;
static const char *const strategy_names[] = { "unified", "bar", "staged" };

/* ---- memory types and strategy ---- */

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define VISIBLE (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define NO_TYPE UINT32_MAX

/* Types that need features we do not enable, or that are slower than plain ones. */
#define UNWANTED                                                                                   \
    (VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |                  \
     VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD)

static uint64_t type_bytes(uint32_t type)
{
    return vk_dev.memory.memoryHeaps[vk_dev.memory.memoryTypes[type].heapIndex].size;
}

/* The type with all of `with` and none of `without` on the largest heap. */
static uint32_t find_type(VkMemoryPropertyFlags with, VkMemoryPropertyFlags without)
{
    uint32_t best = NO_TYPE;

    for (uint32_t i = 0; i < vk_dev.memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags f = vk_dev.memory.memoryTypes[i].propertyFlags;
        if ((f & with) != with || f & (without | UNWANTED))
            continue;
        if (best == NO_TYPE || type_bytes(i) > type_bytes(best))
            best = i;
    }
    return best;
}

static uint32_t first_type(const VkMemoryPropertyFlags (*wishes)[2], size_t n)
{
    uint32_t type = NO_TYPE;

    for (size_t i = 0; i < n && type == NO_TYPE; i++)
        type = find_type(wishes[i][0], wishes[i][1]);
    return type;
}

/* A small window into GPU memory does not make a bar device: it must reach (nearly) all of it. */
static bool has_full_bar(void)
{
    uint32_t bar = find_type(LOCAL | VISIBLE, 0), local = find_type(LOCAL, 0);

    return bar != NO_TYPE && type_bytes(bar) >= type_bytes(local) / 10 * 9;
}

static enum vk_strategy natural_strategy(void)
{
    VkPhysicalDeviceType type = vk_dev.phys.props.deviceType;
    bool shares_memory =
        type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || type == VK_PHYSICAL_DEVICE_TYPE_CPU;

    if (shares_memory && find_type(LOCAL | VISIBLE | CACHED, 0) != NO_TYPE)
        return VK_UNIFIED;
    return has_full_bar() ? VK_BAR : VK_STAGED;
}

static enum vk_strategy choose_strategy(void)
{
    const char *asked = gate_text(GATE_VK_MEMORY);
    enum vk_strategy natural = natural_strategy();

    if (!asked)
        return natural;
    for (size_t i = 0; i < ARRAY_LEN(strategy_names); i++)
        if (strcasecmp(asked, strategy_names[i]) == 0) {
            if (i == VK_STAGED || find_type(LOCAL | VISIBLE, 0) != NO_TYPE)
                return (enum vk_strategy)i;
            break;
        }
    log_warn("%s=%s is not possible here, using %s", gate_table[GATE_VK_MEMORY].variable, asked,
             strategy_names[natural]);
    return natural;
}

static enum err heap_init(enum vk_mem mem, uint32_t type)
{
    struct heap *h = &heaps[mem];

    if (type == NO_TYPE)
        return err_set(ERR_UNSUPPORTED, "%s has no usable memory type",
                       vk_dev.phys.props.deviceName);
    h->type = type;
    h->max = MIN(vk_dev.phys.props11.maxMemoryAllocationSize, type_bytes(type));
    h->block_size = MIN(h->block_size, align_up(type_bytes(type) / 16, SUBALLOC_GRANULE));
    return ERR_OK;
}

enum err vk_alloc_init(void)
{
    static const VkMemoryPropertyFlags device_types[][2] = { { LOCAL, VISIBLE }, { LOCAL, 0 } };
    static const VkMemoryPropertyFlags unified_types[][2] = { { LOCAL | VISIBLE | CACHED, 0 },
                                                              { LOCAL | VISIBLE, 0 } };
    static const VkMemoryPropertyFlags bar_types[][2] = { { LOCAL | VISIBLE, 0 } };
    static const VkMemoryPropertyFlags read_types[][2] = { { VISIBLE | CACHED, LOCAL },
                                                           { VISIBLE | CACHED, 0 },
                                                           { VISIBLE, 0 } };
    static const VkMemoryPropertyFlags write_types[][2] = { { LOCAL | VISIBLE, 0 },
                                                            { VISIBLE, 0 } };
    uint32_t type;
    enum err err;

    strategy = choose_strategy();
    if (strategy == VK_UNIFIED)
        type = first_type(unified_types, ARRAY_LEN(unified_types));
    else if (strategy == VK_BAR)
        type = first_type(bar_types, ARRAY_LEN(bar_types));
    else
        type = first_type(device_types, ARRAY_LEN(device_types));
    TRY(heap_init(VK_MEM_DEVICE, type));
    TRY(heap_init(VK_MEM_READBACK, first_type(read_types, ARRAY_LEN(read_types))));
    TRY(heap_init(VK_MEM_UPLOAD, first_type(write_types, ARRAY_LEN(write_types))));
out:
    return err;
}

enum vk_strategy vk_alloc_strategy(void)
{
    return strategy;
}

/* ---- blocks ---- */

static void block_destroy(struct vk_block *b)
{
    if (!b)
        return;
    suballoc_destroy(&b->sub);
    vk.DestroyBuffer(vk_dev.handle, b->handle, NULL);
    vk.FreeMemory(vk_dev.handle, b->memory, NULL);
    mem_free(b);
}

static enum err block_buffer(struct vk_block *b)
{
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = b->size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
        .sharingMode =
            vk_dev.n_families > 1 ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
        .queueFamilyIndexCount = vk_dev.n_families,
        .pQueueFamilyIndices = vk_dev.families,
    };

    return vk_check(vk.CreateBuffer(vk_dev.handle, &info, NULL, &b->handle), "vkCreateBuffer");
}

static enum err block_memory(struct vk_block *b, uint32_t type)
{
    VkMemoryRequirements need;
    VkMemoryAllocateFlagsInfo flags = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT };

    vk.GetBufferMemoryRequirements(vk_dev.handle, b->handle, &need);
    if (!(need.memoryTypeBits & 1u << type))
        return err_set(ERR_DEVICE, "[vulkan] buffers cannot use memory type %u", type);
    VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .pNext = &flags,
                                  .allocationSize = need.size,
                                  .memoryTypeIndex = type };
    VkResult r = vk_fault_hit(VK_FAULT_MEMORY)
                     ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                     : vk.AllocateMemory(vk_dev.handle, &info, NULL, &b->memory);
    stat_add(STAT_BLOCK_ALLOCS, 1);
    return vk_check(r, "vkAllocateMemory");
}

static enum err block_create(struct vk_block **out, const struct heap *h, uint64_t size)
{
    struct vk_block *b = mem_alloc(sizeof *b);
    enum err err = ERR_NO_MEMORY;

    if (!b)
        goto out;
    b->size = size;
    TRY(block_buffer(b));
    TRY(block_memory(b, h->type));
    TRY(vk_check(vk.BindBufferMemory(vk_dev.handle, b->handle, b->memory, 0),
                 "vkBindBufferMemory"));
    if (vk_dev.memory.memoryTypes[h->type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
        TRY(vk_check(vk.MapMemory(vk_dev.handle, b->memory, 0, VK_WHOLE_SIZE, 0, (void **)&b->map),
                     "vkMapMemory"));
    VkBufferDeviceAddressInfo where = { .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                        .buffer = b->handle };
    b->addr = vk.GetBufferDeviceAddress(vk_dev.handle, &where);
    *out = b;
    b = NULL;
out:
    block_destroy(b);
    return err;
}

/* A range of one of the heap's blocks; false if none has room. */
static bool take_range(struct vk_buf *b, struct heap *h, size_t size)
{
    bool found = false;

    pthread_mutex_lock(&h->lock);
    for (struct vk_block *k = h->blocks; k && !found; k = k->next)
        if ((found = suballoc_take(k->sub, size, &b->offset, &b->range)))
            b->block = k;
    pthread_mutex_unlock(&h->lock);
    return found;
}

/* The more blocks there are, the larger is the next one, unless there is only memory for a smaller
 * one, of `least` bytes or more. */
static enum err grow_block(struct vk_block **out, struct heap *h, uint64_t least)
{
    enum err err;

    pthread_mutex_lock(&h->lock);
    uint32_t doublings = MIN(h->n_blocks / BLOCKS_PER_SIZE, MAX_DOUBLINGS);
    pthread_mutex_unlock(&h->lock);
    uint64_t size = MIN(h->block_size << doublings, h->max);
    do {
        err = block_create(out, h, size / SUBALLOC_GRANULE * SUBALLOC_GRANULE);
        size /= 2;
    } while (err == ERR_NO_MEMORY && size >= least);
    return err;
}

static enum err add_block(struct heap *h, uint64_t least)
{
    struct vk_block *b = NULL;
    enum err err;

    TRY(grow_block(&b, h, least));
    TRY(suballoc_create(&b->sub, b->size));
    pthread_mutex_lock(&h->lock);
    b->next = h->blocks;
    h->blocks = b;
    h->n_blocks++;
    pthread_mutex_unlock(&h->lock);
    b = NULL;
out:
    block_destroy(b);
    return err;
}

/* Unlinks empty blocks; `keep` of them stay, so that a buffer that comes and goes does not cost a
 * block each time. */
static void drop_empty_blocks(struct heap *h, int keep)
{
    struct vk_block *dead = NULL;

    pthread_mutex_lock(&h->lock);
    for (struct vk_block **p = &h->blocks; *p;) {
        struct vk_block *b = *p;
        if (!suballoc_is_empty(b->sub) || keep-- > 0) {
            p = &b->next;
            continue;
        }
        *p = b->next;
        b->next = dead;
        dead = b;
        h->n_blocks--;
    }
    pthread_mutex_unlock(&h->lock);
    while (dead) {
        struct vk_block *b = dead;
        dead = b->next;
        block_destroy(b);
    }
}

/* ---- buffers ---- */

static void release(struct buf *base)
{
    struct vk_buf *b = vk_buf_of(base);
    struct heap *h = &heaps[b->mem];

    if (!b->block->sub) {
        block_destroy(b->block);
    } else {
        pthread_mutex_lock(&h->lock);
        suballoc_give(b->block->sub, b->range);
        bool empty = suballoc_is_empty(b->block->sub);
        pthread_mutex_unlock(&h->lock);
        if (empty)
            drop_empty_blocks(h, 1);
    }
    mem_free(b);
}

/* is_last: there is nothing more to give back, so that any block that holds the buffer will do. */
static enum err place(struct vk_buf *b, struct heap *h, size_t size, bool is_last)
{
    if (size > h->block_size / 2)
        return block_create(&b->block, h, align_up(size, SUBALLOC_GRANULE));
    while (!take_range(b, h, size)) { /* another thread may fill the new block first */
        enum err err = add_block(h, is_last ? align_up(size, SUBALLOC_GRANULE) : h->block_size);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* Gives back what cached buffers, completed work and, as a last resort, work in flight occupy. */
static void relieve_pressure(bool wait)
{
    if (wait)
        vk_streams_drain();
    else
        vk_streams_retire();
    vk_alloc_clear();
}

static enum err buf_create(struct vk_buf **out, enum vk_mem mem, size_t size)
{
    struct heap *h = &heaps[mem];
    struct vk_buf *b = NULL;
    enum err err;

    if (size > h->max)
        return err_set(
            ERR_RUNTIME,
            "[malloc] Attempting to allocate %zu bytes which is greater than the maximum "
            "allowed buffer size of %llu bytes.",
            size, (unsigned long long)h->max);
    if (!(b = mem_alloc(sizeof *b)))
        return ERR_NO_MEMORY;
    err = place(b, h, size, false);
    for (int i = 0; i < 2 && err == ERR_NO_MEMORY; i++) {
        relieve_pressure(i > 0);
        err = place(b, h, size, i > 0);
    }
    if (err) {
        mem_free(b);
        return err != ERR_NO_MEMORY
                   ? err
                   : err_set(ERR_NO_MEMORY, "[malloc] Unable to allocate %zu bytes on %s.", size,
                             vk_dev.phys.props.deviceName);
    }
    b->mem = mem;
    b->handle = b->block->handle;
    b->map = b->block->map ? b->block->map + b->offset : NULL;
    b->base = (struct buf){
        .home = &be_vulkan, .size = size, .addr = b->block->addr + b->offset, .priv = b
    };
    if (mem == VK_MEM_READBACK || (mem == VK_MEM_DEVICE && strategy == VK_UNIFIED))
        b->base.host = b->map;
    *out = b;
    return ERR_OK;
}

static enum err alloc(struct vk_buf **out, enum vk_mem mem, size_t size, bool counted)
{
    struct buf_cache *cache = &heaps[mem].cache;
    size_t rounded = buf_cache_round(size);
    struct buf *cached = buf_cache_take(cache, rounded);
    struct vk_buf *b = cached ? vk_buf_of(cached) : NULL;

    if (!b) {
        if (mem == VK_MEM_DEVICE)
            buf_cache_make_room(cache, rounded);
        enum err err = buf_create(&b, mem, rounded);
        if (err)
            return err;
    }
    stat_add(cached ? STAT_ALLOC_CACHE_HITS : STAT_ALLOC_CACHE_MISSES, 1);
    atomic_init(&b->base.refs, 1);
    b->counted = counted;
    if (counted)
        memory_acquire(b->base.size);
    if (!cached)
        buf_cache_enforce_limit(cache);
    if (mem == VK_MEM_DEVICE && gate_on(GATE_VK_RECORD))
        vk_rec_add(
            &(struct vk_rec){ .kind = VK_REC_ALLOC, .addr = b->base.addr, .size = b->base.size });
    *out = b;
    return ERR_OK;
}

enum err vk_mem_alloc(struct vk_buf **out, enum vk_mem mem, size_t size)
{
    return alloc(out, mem, size, false);
}

enum err vk_buf_alloc(struct buf **out, size_t size)
{
    struct vk_buf *b;

    if (vk_recording_now)
        return vk_record_buf(out, vk_recording_now, size);
    enum err err = alloc(&b, VK_MEM_DEVICE, size, true);

    if (!err)
        *out = &b->base;
    return err;
}

void vk_buf_free(struct buf *base)
{
    struct vk_buf *b = vk_buf_of(base);

    if (buf_is_place(base)) {
        vk_record_free(base);
        return;
    }
    if (b->counted)
        memory_release(base->size);
    buf_cache_put(&heaps[b->mem].cache, base);
}

bool vk_is_unified(void)
{
    return strategy == VK_UNIFIED;
}

void vk_alloc_clear(void)
{
    for (int i = 0; i < VK_MEM_COUNT; i++) {
        buf_cache_clear(&heaps[i].cache);
        drop_empty_blocks(&heaps[i], 0);
    }
}

size_t vk_memory_size(void)
{
    return type_bytes(heaps[VK_MEM_DEVICE].type);
}

size_t vk_memory_budget(void)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT
    };
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget
    };

    if (!(vk_limits_get()->caps & VK_CAP_MEMORY_BUDGET))
        return vk_memory_size();
    vk.GetPhysicalDeviceMemoryProperties2(vk_dev.phys.handle, &memory);
    return budget.heapBudget[vk_dev.memory.memoryTypes[heaps[VK_MEM_DEVICE].type].heapIndex];
}

size_t vk_memory_max_buffer(void)
{
    return heaps[VK_MEM_DEVICE].max;
}

/* ---- description ---- */

static void describe_type(FILE *out, uint32_t type)
{
    static const struct {
        VkMemoryPropertyFlags bit;
        const char *text;
    } flags[] = {
        { VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, " device-local" },
        { VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, " host-visible" },
        { VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, " coherent" },
        { VK_MEMORY_PROPERTY_HOST_CACHED_BIT, " cached" },
    };
    static const char *const uses[VK_MEM_COUNT] = { "arrays", "read-back", "arguments" };

    fprintf(out, "  type %u, heap %u (%llu MiB):", type, vk_dev.memory.memoryTypes[type].heapIndex,
            (unsigned long long)type_bytes(type) >> 20);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (vk_dev.memory.memoryTypes[type].propertyFlags & flags[i].bit)
            fputs(flags[i].text, out);
    for (int i = 0; i < VK_MEM_COUNT; i++)
        if (heaps[i].type == type)
            fprintf(out, " <- %s", uses[i]);
    fputc('\n', out);
}

void vk_alloc_describe(FILE *out)
{
    fprintf(out, "memory: %s, largest buffer %llu MiB\n", strategy_names[strategy],
            (unsigned long long)heaps[VK_MEM_DEVICE].max >> 20);
    for (uint32_t i = 0; i < vk_dev.memory.memoryTypeCount; i++)
        if (vk_dev.memory.memoryTypes[i].propertyFlags)
            describe_type(out, i);
}
