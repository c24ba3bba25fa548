#include "core/load.h"

#include "ops/build.h"

enum err ops_load(struct arr **out, const struct load_part *p, const struct shp *shape,
                  enum dtype t, struct strm *s)
{
    struct arr *leaf = NULL;
    enum err err;

    TRY(load_leaf_new(&leaf, p));
    err = ops_node(out, leaf, &(struct ops_node){ OP_LOAD, t, shape, NULL }, s);
out:
    arr_unref(&leaf);
    return err;
}
