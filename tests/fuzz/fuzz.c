#include "fuzz/fuzz.h"
#include "eval/wait.h"

#include "graph/load.h"
#include "support/io_content.h"

/* Larger results of small files are true, and slow to make. */
#define MAX_BYTES ((size_t)16 << 20)

/* Somewhere to put what was read, so that it is. */
extern volatile unsigned char fuzz_sum;
volatile unsigned char fuzz_sum;

static void read_all(struct arr *a)
{
    const void *p;
    int64_t size;
    struct shp shape;

    arr_shape(&shape, a);
    if (!shp_size_checked(&shape, &size) || arr_nbytes(a) > MAX_BYTES || arr_host(&p, a) != ERR_OK)
        return;
    for (size_t i = 0; i < arr_nbytes(a) && a->flags & LAYOUT_ROW; i++)
        fuzz_sum ^= ((const unsigned char *)p)[i];
}

int fuzz_load(const char *file, const uint8_t *data, size_t size)
{
    struct io_content c = { .arrays = { { 0 } } };
    struct source *src = NULL;
    struct strm *cpu = NULL;
    void *copy = mem_alloc(size); /* of exactly this size, so that a sanitizer sees its end */

    if (!copy || strm_default(&cpu, (struct dev){ DEV_CPU, 0 }) != ERR_OK)
        return 0;
    memcpy(copy, data, size);
    if (source_new_memory(&src, copy, size, file) != ERR_OK)
        return 0;
    if (io_content_load(&c, file, src, cpu) == ERR_OK)
        for (size_t i = 0; i < c.arrays.list.n; i++)
            read_all(c.arrays.list.v[i].arr);
    io_content_fini(&c);
    source_unref(&src);
    return 0;
}
