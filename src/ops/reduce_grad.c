/* Gradients of reductions. */
#include "ops/build.h"
#include "ops/rules.h"

/* Only sums have them yet. */
static bool is_sum(const struct op_apply *f)
{
    return ((const struct reduce_params *)f->params)->kind == REDUCE_SUM;
}

enum err op_vjp_reduce(struct vjp_call *c)
{
    if (!is_sum(&c->f))
        return op_no_rule(c->f.op, "vjp");
    /* The reduced axes are there, with size 1. */
    return ops_broadcast_to(&c->result[0], c->cotan[0], shape_of(c->f.in[0]), c->f.strm);
}

enum err op_jvp_reduce(struct jvp_call *c)
{
    if (!is_sum(&c->f))
        return op_no_rule(c->f.op, "jvp");
    return ops_make_one(&c->result[0], c->f.op, c->f.params, c->tan[0], c->f.strm);
}
