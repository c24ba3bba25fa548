/* Rules of norms. */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

/* Rows of x are normed one by one, whatever they are numbered by. */
enum err op_vmap_norm(struct vmap_call *c)
{
    struct arr *in[3];
    enum err err;

    for (size_t i = 1; i < c->f.n_in; i++)
        if (c->axis[i] != VMAP_NONE)
            return c->f.by_parts->vmap(c);
    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    in[0] = NULL;
    TRY(vmap_front(&in[0], c, 0));
    TRY(ops_make(c->result, c->f.op, c->f.params, (struct arrs){ in, c->f.n_in }, c->f.strm));
    c->out_axis[0] = 0;
out:
    arr_unref(&in[0]);
    return err;
}
