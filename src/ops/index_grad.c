/* Gradients of gathers. */
#include "ops/build.h"
#include "ops/rules.h"

/* Elements of the tangent at the same places; indices have none. */
enum err op_jvp_gather(struct jvp_call *c)
{
    struct arr *in[SHP_MAX + 1];

    if (!c->tan[0])
        return ERR_OK;
    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    in[0] = c->tan[0];
    return ops_make(&c->result[0], c->f.op, c->f.params, (struct arrs){ in, c->f.n_in }, c->f.strm);
}
