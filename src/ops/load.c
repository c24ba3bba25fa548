#include "core/load.h"

#include "ops/build.h"

enum err ops_load(struct arr **out, const struct load_part *p, const struct shp *shape,
                  enum dtype t, struct strm *s)
{
    struct load_params params = { .dtype = (int32_t)t, .n = shape->ndim };
    struct arr *leaf = NULL;
    enum err err;

    TRY(load_leaf_new(&leaf, p));
    memcpy(params.shape, shape->d, (size_t)shape->ndim * sizeof shape->d[0]);
    err = ops_node(out, leaf, &(struct ops_node){ OP_LOAD, t, shape, &params }, s);
out:
    arr_unref(&leaf);
    return err;
}
