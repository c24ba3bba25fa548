#include "backend/cpu/tile.h"

#include <string.h>

void nest_make(struct nest *n, const struct shp *s, const int64_t *strides)
{
    shp_collapse(n, s, &strides, 1);
    if (n->ndim == 0) {
        n->ndim = 1;
        n->dim[0] = n->stride[0][0] = 1;
    }
}

void tile_splat(char *dst, const char *element, size_t item, size_t n)
{
#define SPLAT(T)                                                                                   \
    {                                                                                              \
        T *d = (T *)dst, e;                                                                        \
        memcpy(&e, element, sizeof e);                                                             \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = e;                                                                              \
    }
    BY_ITEM(item, SPLAT)
#undef SPLAT
}

static void gather_run(char *dst, const char *src, int64_t stride, size_t item, size_t n)
{
    if (stride == 1) {
        memcpy(dst, src, n * item);
        return;
    }
    if (stride == 0) {
        tile_splat(dst, src, item, n);
        return;
    }
#define GATHER(T)                                                                                  \
    {                                                                                              \
        T *d = (T *)dst;                                                                           \
        const T *s = (const T *)src;                                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = s[(int64_t)i * stride];                                                         \
    }
    BY_ITEM(item, GATHER)
#undef GATHER
}

static void scatter_run(char *dst, const char *src, int64_t stride, size_t item, size_t n)
{
    if (stride == 1) {
        memcpy(dst, src, n * item);
        return;
    }
#define SCATTER(T)                                                                                 \
    {                                                                                              \
        T *d = (T *)dst;                                                                           \
        const T *s = (const T *)src;                                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            d[(int64_t)i * stride] = s[i];                                                         \
    }
    BY_ITEM(item, SCATTER)
#undef SCATTER
}

/* Where a walk stands: coordinates, and their offset in elements. */
struct position {
    int64_t c[SHP_MAX];
    int64_t offset;
};

static void position_at(struct position *p, const struct tile_walk *w, size_t first)
{
    const struct nest *n = w->nest;
    int64_t rest = (int64_t)first;

    p->offset = 0;
    for (int i = n->ndim - 1; i >= 0; i--) {
        p->c[i] = rest % n->dim[i];
        rest /= n->dim[i];
        p->offset += p->c[i] * n->stride[w->operand][i];
    }
}

/* Moves `run` elements ahead along the last dimension, which does not pass its end. */
static void position_advance(struct position *p, const struct tile_walk *w, int64_t run)
{
    const struct nest *n = w->nest;
    const int64_t *stride = n->stride[w->operand];
    int i = n->ndim - 1;

    p->c[i] += run;
    p->offset += run * stride[i];
    for (; i > 0 && p->c[i] == n->dim[i]; i--) {
        p->offset += stride[i - 1] - p->c[i] * stride[i];
        p->c[i] = 0;
        p->c[i - 1]++;
    }
}

const char *tile_gather(char *dst, const char *base, const struct tile_walk *w, size_t first,
                        size_t n)
{
    int last = w->nest->ndim - 1;
    int64_t stride = w->nest->stride[w->operand][last], row = w->nest->dim[last];
    struct position p;

    position_at(&p, w, first);
    if (stride == 1 && (int64_t)n <= row - p.c[last])
        return base + p.offset * (int64_t)w->item;
    for (size_t done = 0; done < n;) {
        size_t run = MIN(n - done, (size_t)(row - p.c[last]));
        gather_run(dst + done * w->item, base + p.offset * (int64_t)w->item, stride, w->item, run);
        position_advance(&p, w, (int64_t)run);
        done += run;
    }
    return dst;
}

void tile_scatter(char *base, const char *src, const struct tile_walk *w, size_t first, size_t n)
{
    int last = w->nest->ndim - 1;
    int64_t stride = w->nest->stride[w->operand][last], row = w->nest->dim[last];
    struct position p;

    position_at(&p, w, first);
    for (size_t done = 0; done < n;) {
        size_t run = MIN(n - done, (size_t)(row - p.c[last]));
        scatter_run(base + p.offset * (int64_t)w->item, src + done * w->item, stride, w->item, run);
        position_advance(&p, w, (int64_t)run);
        done += run;
    }
}

/* Columns that are turned at a time: a cache line of 4-byte elements. */
#define TURN_COLS 16

/* By way of a buffer, because with strides of a power of two the lines of both sides would push
 * each other out of the cache. */
#define TURN(T)                                                                                    \
    static inline void turn_##T(const struct tile_block *b, size_t first, size_t rows,             \
                                size_t cols)                                                       \
    {                                                                                              \
        T buffer[TILE_BLOCK_ROWS][TURN_COLS];                                                      \
        for (size_t j = 0; j < cols; j++) {                                                        \
            const T *src = (const T *)b->src + (int64_t)(first + j) * b->src_stride;               \
            for (size_t i = 0; i < rows; i++)                                                      \
                buffer[i][j] = src[i];                                                             \
        }                                                                                          \
        for (size_t i = 0; i < rows; i++)                                                          \
            memcpy((T *)b->dst + (int64_t)i * b->dst_stride + first, buffer[i], cols * sizeof(T)); \
    }
TURN(uint8_t)
TURN(uint16_t)
TURN(uint32_t)
TURN(uint64_t)
#undef TURN

void tile_transpose(const struct tile_block *b, size_t item)
{
    for (size_t first = 0; first < b->cols; first += TURN_COLS) {
        size_t cols = MIN(TURN_COLS, b->cols - first);
        /* Full blocks with constant bounds, which the compiler unrolls. */
        bool full = b->rows == TILE_BLOCK_ROWS && cols == TURN_COLS;
#define TURN(T)                                                                                    \
    {                                                                                              \
        if (full)                                                                                  \
            turn_##T(b, first, TILE_BLOCK_ROWS, TURN_COLS);                                        \
        else                                                                                       \
            turn_##T(b, first, b->rows, cols);                                                     \
    }
        BY_ITEM(item, TURN)
#undef TURN
    }
}
