/* Moving elements between strided memory and dense tiles, by item size. */
#pragma once

#include "graph/shape.h"

/* Calls LOOP(type) with the unsigned type of `item` bytes. */
#define BY_ITEM(item, LOOP)                                                                        \
    switch (item) {                                                                                \
    case 1:                                                                                        \
        LOOP(uint8_t) break;                                                                       \
    case 2:                                                                                        \
        LOOP(uint16_t) break;                                                                      \
    case 4:                                                                                        \
        LOOP(uint32_t) break;                                                                      \
    default:                                                                                       \
        LOOP(uint64_t) break;                                                                      \
    }

/* Operand `operand` of a loop nest, with elements of `item` bytes (1, 2, 4 or 8). */
struct tile_walk {
    const struct nest *nest;
    int operand;
    size_t item;
};

/* A nest over one operand that has at least one dimension, for the walks below. */
void nest_make(struct nest *n, const struct shp *s, const int64_t *strides);

/* Offset of position i (in row-major order) of an operand, in elements. */
static inline int64_t nest_offset(const struct nest *n, int operand, size_t i)
{
    int64_t offset = 0, rest = (int64_t)i;

    for (int d = n->ndim - 1; d > 0; d--) {
        offset += rest % n->dim[d] * n->stride[operand][d];
        rest /= n->dim[d];
    }
    return offset + rest * n->stride[operand][0];
}

/* The elements [first, first + n) of the nest in row-major order, taken from base: copied to dst,
 * or in place when they lie side by side. Returns where they are. */
const char *tile_gather(char *dst, const char *base, const struct tile_walk *w, size_t first,
                        size_t n);

/* The reverse: writes a dense tile to strided memory. */
void tile_scatter(char *base, const char *src, const struct tile_walk *w, size_t first, size_t n);

/* A block of a matrix that is dense along its rows in src and along its columns in dst: element
 * (row, col) lies at src[row + col * src_stride] and goes to dst[row * dst_stride + col]. */
struct tile_block {
    const char *src;
    char *dst;
    int64_t src_stride, dst_stride; /* in elements */
    size_t rows, cols;
};
/* A good number of rows for a block: four cache lines side by side, because with large strides
 * every column is in a page of its own. */
#define TILE_BLOCK_ROWS 64
void tile_transpose(const struct tile_block *b, size_t item);

/* dst[0..n) = *element; element may be dst. */
void tile_splat(char *dst, const char *element, size_t item, size_t n);
