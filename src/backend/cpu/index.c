#include "backend/cpu/index.h"

#include "backend/cpu/kernels.h"

void cpu_index_read(int64_t *out, const struct cpu_index *x, const char *src, size_t first,
                    size_t n)
{
    enum dtype type = (enum dtype)x->type;
    int64_t wrap = dt_table[type].kind == DT_KIND_I ? x->size : INT64_MAX;
    char raw[INDEX_TILE * 8] __attribute__((aligned(64)));
    const char *from =
        tile_gather(raw, src, &(struct tile_walk){ &x->nest, 0, dt_size(type) }, first, n);

    cpu_convert((struct cpu_vec){ out, DT_INT64 }, (struct cpu_vec){ (char *)from, type }, n);
    for (size_t i = 0; i < n; i++)
        if (out[i] < 0)
            out[i] = wrap == INT64_MAX ? wrap : out[i] + wrap;
}
