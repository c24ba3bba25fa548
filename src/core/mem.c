#include "core/mem.h"

#define CACHE_LINE 64
#define ARENA_BLOCK 4096

/* 0 = injection off; otherwise the number of allocations that still succeed, plus one. */
static atomic_size_t fail_countdown;

void mem_fail_after(size_t n)
{
    atomic_store(&fail_countdown, n);
}

static bool injected_failure(void)
{
    size_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

    while (left > 1)
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
            return false;
    return left == 1;
}

static void *checked(void *p, size_t size)
{
    if (!p)
        err_set(ERR_NO_MEMORY, "out of host memory (%zu bytes)", size);
    return p;
}

/* glibc serves small malloc calls from a per-thread cache, calloc never does; large zeroed blocks
 * come from fresh pages that calloc need not touch. */
#define SMALL 1024

void *mem_alloc(size_t size)
{
    void *p = NULL;

    if (injected_failure())
        return checked(NULL, size);
    if (size > SMALL)
        return checked(calloc(1, size), size);
    p = checked(malloc(size ? size : 1), size);
    return p ? memset(p, 0, size) : NULL;
}

void *mem_alloc_array(size_t n, size_t size)
{
    size_t bytes;

    if (MUL_OVERFLOWS(n, size, &bytes))
        return checked(NULL, SIZE_MAX);
    return mem_alloc(bytes);
}

void *mem_alloc_aligned(size_t size)
{
    size_t bytes;

    if (ADD_OVERFLOWS(size, (size_t)CACHE_LINE, &bytes))
        return checked(NULL, size);
    return checked(injected_failure()
                       ? NULL
                       : aligned_alloc(CACHE_LINE, align_up(size ? size : 1, CACHE_LINE)),
                   size);
}

void mem_free(void *p)
{
    free(p);
}

char *mem_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = mem_alloc(n);

    if (copy)
        memcpy(copy, s, n);
    return copy;
}

enum err vec_grow_(void *pv, size_t *cap, size_t need, size_t elem)
{
    size_t new_cap = MAX(need, *cap + *cap / 2 + 8);
    size_t bytes;
    void *old, *grown = NULL;

    memcpy(&old, pv, sizeof old); /* pv is a T **; void ** would alias it */
    if (!MUL_OVERFLOWS(new_cap, elem, &bytes) && !injected_failure())
        grown = realloc(old, bytes);
    if (!checked(grown, need))
        return ERR_NO_MEMORY;
    memcpy(pv, &grown, sizeof grown);
    *cap = new_cap;
    return ERR_OK;
}

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

void *arena_alloc(struct arena *a, size_t size)
{
    size_t need = align_up(size ? size : 1, 16);

    if (!a->head || a->head->size - a->head->used < need) {
        size_t block_size = MAX(need, (size_t)ARENA_BLOCK);
        struct arena_block *b = mem_alloc(sizeof *b + block_size);
        if (!b)
            return NULL;
        b->size = block_size;
        b->next = a->head;
        a->head = b;
    }
    void *p = a->head->bytes + a->head->used;
    a->head->used += need;
    return p;
}

void arena_fini(struct arena *a)
{
    while (a->head) {
        struct arena_block *b = a->head;
        a->head = b->next;
        mem_free(b);
    }
}
