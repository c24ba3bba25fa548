#include "base/mem.h"

#include <pthread.h>

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

/* ---- pools: free blocks of a thread by size ---- */

#define POOL_STEP 64
#define POOL_CLASSES (SMALL / POOL_STEP)
/* Blocks kept of a size: those of one large graph. */
#define POOL_KEPT 4096

/* Address sanitizer sees what is used after it was freed only if it is. */
#if defined(__SANITIZE_ADDRESS__)
#define POOL_ON 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_ON 0
#endif
#endif
#ifndef POOL_ON
#define POOL_ON 1
#endif

struct pool_block {
    struct pool_block *next;
};

struct pool {
    struct pool_block *free[POOL_CLASSES];
    uint32_t n[POOL_CLASSES];
    bool is_closed; /* the thread is ending */
};

static _Thread_local struct pool pool;
static pthread_key_t pool_key;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

static void pool_close(void *p)
{
    struct pool *own = p;

    own->is_closed = true;
    for (int c = 0; c < POOL_CLASSES; c++)
        while (own->free[c]) {
            struct pool_block *b = own->free[c];
            own->free[c] = b->next;
            free(b);
        }
}

static void pool_setup(void)
{
    pthread_key_create(&pool_key, pool_close);
}

static size_t pool_class(size_t size)
{
    return size ? (size - 1) / POOL_STEP : 0;
}

void *mem_pool_alloc(size_t size)
{
    size_t c = pool_class(size);

    if (!POOL_ON || c >= POOL_CLASSES || !pool.free[c])
        return mem_alloc(c < POOL_CLASSES ? (c + 1) * POOL_STEP : size);
    if (injected_failure())
        return checked(NULL, size);
    struct pool_block *b = pool.free[c];
    pool.free[c] = b->next;
    pool.n[c]--;
    return memset(b, 0, size);
}

void mem_pool_free(void *p, size_t size)
{
    size_t c = pool_class(size);
    struct pool_block *b = p;

    if (!POOL_ON || !p || c >= POOL_CLASSES || pool.is_closed || pool.n[c] == POOL_KEPT) {
        free(p);
        return;
    }
    if (pool.n[c] == 0) { /* now and then, so that the thread's end is noticed */
        pthread_once(&pool_once, pool_setup);
        pthread_setspecific(pool_key, &pool);
    }
    b->next = pool.free[c];
    pool.free[c] = b;
    pool.n[c]++;
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

enum err vec_grow_(void *pv, size_t *cap, size_t n, size_t extra, size_t elem)
{
    size_t need, bytes;
    void *old, *grown = NULL;

    if (ADD_OVERFLOWS(n, extra, &need))
        need = SIZE_MAX;
    size_t new_cap = MAX(need, *cap + *cap / 2 + 8);
    memcpy(&old, pv, sizeof old); /* pv is a T **; void ** would alias it */
    if (!MUL_OVERFLOWS(new_cap, elem, &bytes) && bytes <= PTRDIFF_MAX && !injected_failure())
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
    if (size > SIZE_MAX / 2) /* the sums below cannot overflow */
        return checked(NULL, size);
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
