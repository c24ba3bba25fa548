/* Index arrays on the CPU. */
#pragma once

#include "backend/cpu/cpu.h"
#include "backend/cpu/tile.h"

#define INDEX_TILE 1024

/* One index array and the axis that it steps along. */
struct cpu_index {
    struct cpu_src src;
    struct nest nest;
    uint8_t type;
    int64_t stride;      /* of the axis, in elements of what is indexed */
    int64_t size, limit; /* of the axis; the last start at which a slice fits */
};

/* Numbers first .. first + n of an index array at src, n being at most INDEX_TILE: negative ones of
 * signed types count from the end, what does not fit is the largest number. */
void cpu_index_read(int64_t *out, const struct cpu_index *x, const char *src, size_t first,
                    size_t n);
