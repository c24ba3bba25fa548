#include "graph/load.h"

#include "ops/build.h"
#include "ops/rules.h"

enum err op_infer_load(struct infer_call *c)
{
    const struct load_params *p = c->params;

    FITS(load_is_leaf(c->in[0]) && infer_is_shape(p->shape, p->n));
    c->out[0].dtype = (enum dtype)p->dtype;
    c->out[0].shape.ndim = p->n;
    memcpy(c->out[0].shape.d, p->shape, (size_t)p->n * sizeof p->shape[0]);
    return ERR_OK;
}

enum err ops_load(struct arr **out, const struct load_part *p, const struct shp *shape,
                  enum dtype t, struct strm *s)
{
    struct load_params params = { .dtype = (int32_t)t, .n = shape->ndim };
    struct arr *leaf = NULL;
    enum err err;

    TRY(load_leaf_new(&leaf, p));
    memcpy(params.shape, shape->d, (size_t)shape->ndim * sizeof shape->d[0]);
    err = ops_make_one(out, OP_LOAD, &params, leaf, s);
out:
    arr_unref(&leaf);
    return err;
}
