/* The order in which copies walk their operands. */
#include "backend/common/families.h"

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

void be_copy_nest(struct nest *out, const struct be_copy *c)
{
    int64_t src[SHP_MAX], dst[SHP_MAX];
    const int64_t *operands[] = { [BE_COPY_SRC] = src, [BE_COPY_DST] = dst };
    struct shp shape = { 0 };

    for (int i = 0; i < c->shape->ndim; i++) {
        int at = shape.ndim;
        if (c->shape->d[i] == 1)
            continue;
        for (; at > 0 && magnitude(dst[at - 1]) < magnitude(c->dst_strides[i]); at--) {
            shape.d[at] = shape.d[at - 1];
            src[at] = src[at - 1];
            dst[at] = dst[at - 1];
        }
        shape.d[at] = c->shape->d[i];
        src[at] = c->src_strides[i];
        dst[at] = c->dst_strides[i];
        shape.ndim++;
    }
    shp_collapse(out, &shape, operands, BE_COPY_OPERANDS);
}
