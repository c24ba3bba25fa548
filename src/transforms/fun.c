#include "transforms/fun.h"

enum err outs_init(struct outs *o, size_t n)
{
    *o = (struct outs){ mem_alloc_array(n, sizeof *o->v), n };
    if (o->v)
        return ERR_OK;
    o->n = 0;
    return ERR_NO_MEMORY;
}

enum err outs_copy(struct outs *o, struct arrs a)
{
    enum err err = outs_init(o, a.n);

    for (size_t i = 0; i < o->n; i++)
        o->v[i] = arr_ref(a.v[i]);
    return err;
}

void outs_fini(struct outs *o)
{
    for (size_t i = 0; i < o->n; i++)
        arr_unref(&o->v[i]);
    mem_free(o->v);
    *o = (struct outs){ 0 };
}
