/* Gradients of binary ops. */
#include "ops/build.h"
#include "ops/rules.h"

enum err op_vjp_add(struct vjp_call *c)
{
    for (size_t i = 0; i < c->n_wanted; i++)
        c->result[i] = arr_ref(c->cotan[0]);
    return ERR_OK;
}

enum err op_jvp_add(struct jvp_call *c)
{
    return op_sum_of_two(&c->result[0], c->tan, c->f.strm);
}
