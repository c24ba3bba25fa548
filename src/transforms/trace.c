#include "transforms/trace.h"

enum err trace_placeholder(struct arr **out, const struct shp *shape, enum dtype t)
{
    enum err err = arr_new_empty(out, shape, t);

    if (!err)
        (*out)->tracer = true;
    return err;
}

enum err trace_call(struct outs *out, struct fun *fun, struct arrs in, enum trace_kind kind)
{
    tracing_begin(kind);
    enum err err = fun->call(fun, in, out);
    tracing_end(kind);
    return err;
}

enum err trace_fun(struct traced *t, struct fun *fun, struct arrs like, enum trace_kind kind)
{
    struct shp shape;
    enum err err;

    *t = (struct traced){ 0 };
    TRY(outs_init(&t->in, like.n));
    for (size_t i = 0; i < like.n; i++) {
        arr_shape(&shape, like.v[i]);
        TRY(trace_placeholder(&t->in.v[i], &shape, (enum dtype)like.v[i]->dtype));
    }
    err = trace_call(&t->out, fun, outs_arrs(&t->in), kind);
out:
    if (err)
        traced_fini(t);
    return err;
}

void traced_fini(struct traced *t)
{
    outs_fini(&t->in);
    outs_fini(&t->out);
}
