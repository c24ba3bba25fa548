#include "backend/common/buffer_cache.h"

#include "graph/memory.h"

struct cache_node {
    struct buf *buf;
    struct cache_node *newer, *older; /* by age, all sizes */
    struct cache_node *bin_next, *bin_prev;
};

/* ---- bins; called with the lock held ---- */

/* Index of the first bin with at least size bytes. */
static size_t bin_lower_bound(const struct buf_cache *c, size_t size)
{
    size_t lo = 0, hi = c->bins.n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c->bins.v[mid].size < size)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static enum err bin_add(struct buf_cache *c, struct cache_node *n)
{
    size_t i = bin_lower_bound(c, n->buf->size);

    if (i == c->bins.n || c->bins.v[i].size != n->buf->size) {
        enum err err = VEC_RESERVE(&c->bins, 1);
        if (err)
            return err;
        memmove(&c->bins.v[i + 1], &c->bins.v[i], (c->bins.n - i) * sizeof *c->bins.v);
        c->bins.v[i] = (struct cache_bin){ .size = n->buf->size };
        c->bins.n++;
    }
    n->bin_prev = NULL;
    n->bin_next = c->bins.v[i].head;
    if (n->bin_next)
        n->bin_next->bin_prev = n;
    c->bins.v[i].head = n;
    return ERR_OK;
}

static void bin_remove(struct buf_cache *c, struct cache_node *n)
{
    if (n->bin_next)
        n->bin_next->bin_prev = n->bin_prev;
    if (n->bin_prev) {
        n->bin_prev->bin_next = n->bin_next;
        return;
    }
    size_t i = bin_lower_bound(c, n->buf->size);
    c->bins.v[i].head = n->bin_next;
    if (!n->bin_next) {
        c->bins.n--;
        memmove(&c->bins.v[i], &c->bins.v[i + 1], (c->bins.n - i) * sizeof *c->bins.v);
    }
}

static void age_add(struct buf_cache *c, struct cache_node *n)
{
    n->newer = NULL;
    n->older = c->newest;
    if (c->newest)
        c->newest->newer = n;
    else
        c->oldest = n;
    c->newest = n;
}

static void age_remove(struct buf_cache *c, struct cache_node *n)
{
    if (n->newer)
        n->newer->older = n->older;
    else
        c->newest = n->older;
    if (n->older)
        n->older->newer = n->newer;
    else
        c->oldest = n->newer;
}

static void count(struct buf_cache *c, int64_t delta)
{
    c->bytes += (size_t)delta;
    if (!c->own_limit)
        memory_cached(delta);
}

/* Unlinks a node; the caller owns node and buffer. */
static void unlink_node(struct buf_cache *c, struct cache_node *n)
{
    bin_remove(c, n);
    age_remove(c, n);
    count(c, -(int64_t)n->buf->size);
}

/* ---- interface ---- */

struct buf *buf_cache_take(struct buf_cache *c, size_t size)
{
    size_t below = MIN(2 * size, size + 2 * BUF_CACHE_PAGE);
    struct buf *b = NULL;

    pthread_mutex_lock(&c->lock);
    size_t i = bin_lower_bound(c, size);
    if (i < c->bins.n && c->bins.v[i].size < below) {
        struct cache_node *n = c->bins.v[i].head;
        unlink_node(c, n);
        b = n->buf;
        n->older = c->spare;
        c->spare = n;
    }
    pthread_mutex_unlock(&c->lock);
    return b;
}

static size_t limit_of(const struct buf_cache *c)
{
    return c->own_limit ? c->own_limit : memory_cache_limit();
}

static size_t in_use(struct buf_cache *c)
{
    return c->own_limit ? c->bytes : memory_cache();
}

static bool keep(struct buf_cache *c, struct buf *b)
{
    if (in_use(c) >= limit_of(c))
        return false;
    struct cache_node *n = c->spare;
    if (n)
        c->spare = n->older;
    else if (!(n = mem_alloc(sizeof *n)))
        return false;
    n->buf = b;
    if (bin_add(c, n) != ERR_OK) {
        n->older = c->spare;
        c->spare = n;
        return false;
    }
    age_add(c, n);
    count(c, (int64_t)b->size);
    return true;
}

void buf_cache_put(struct buf_cache *c, struct buf *b)
{
    pthread_mutex_lock(&c->lock);
    bool kept = keep(c, b);
    pthread_mutex_unlock(&c->lock);
    if (!kept)
        c->release(b);
}

/* Releases the oldest buffers until `bytes` are free. */
static void trim(struct buf_cache *c, size_t bytes)
{
    struct cache_node *dead = NULL;

    pthread_mutex_lock(&c->lock);
    if (bytes >= c->bytes / 10 * 9) /* nearly all of it: then all, as MLX does */
        bytes = SIZE_MAX;
    for (size_t freed = 0; c->oldest && freed < bytes;) {
        struct cache_node *n = c->oldest;
        freed += n->buf->size;
        unlink_node(c, n);
        n->older = dead;
        dead = n;
    }
    pthread_mutex_unlock(&c->lock);
    while (dead) {
        struct cache_node *n = dead;
        dead = n->older;
        c->release(n->buf);
        mem_free(n);
    }
}

void buf_cache_make_room(struct buf_cache *c, size_t size)
{
    size_t wanted = memory_active() + memory_cache() + size, limit = memory_gc_limit();

    if (wanted >= limit)
        trim(c, wanted - limit);
}

void buf_cache_enforce_limit(struct buf_cache *c)
{
    pthread_mutex_lock(&c->lock);
    size_t used = in_use(c), limit = limit_of(c);
    pthread_mutex_unlock(&c->lock);
    if (used > limit)
        trim(c, used - limit);
}

void buf_cache_clear(struct buf_cache *c)
{
    trim(c, SIZE_MAX);
}

size_t buf_cache_bytes(struct buf_cache *c)
{
    pthread_mutex_lock(&c->lock);
    size_t n = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return n;
}
