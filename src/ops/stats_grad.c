/* Gradients of softmax and logsumexp. */
#include "ops/build.h"
#include "ops/rules.h"

/* y * (t - sum(y * t)): the Jacobian of softmax is its own transpose. */
static enum err softmax_jacobian(struct arr **out, struct arr *y, struct arr *t, struct strm *s)
{
    static const int32_t last = -1;
    struct arr *x = NULL;
    enum err err;

    TRY(ops_binary(&x, OP_MULTIPLY, y, t, s));
    STEP(x, ops_reduce(&next, REDUCE_SUM, x, &(struct ops_axes){ { &last, 1 }, true }, s));
    STEP(x, ops_binary(&next, OP_SUBTRACT, t, x, s));
    TRY(ops_binary(out, OP_MULTIPLY, y, x, s));
out:
    arr_unref(&x);
    return err;
}

enum err op_vjp_softmax(struct vjp_call *c)
{
    return softmax_jacobian(&c->result[0], c->out[0], c->cotan[0], c->f.strm);
}

enum err op_jvp_softmax(struct jvp_call *c)
{
    return softmax_jacobian(&c->result[0], c->out[0], c->tan[0], c->f.strm);
}

/* ---- logsumexp ---- */

static enum err weights(struct arr **out, const struct op_apply *f)
{
    static const int32_t last = -1;

    return ops_softmax(out, f->in[0], (struct ints){ &last, 1 }, true, f->strm);
}

enum err op_vjp_logsumexp(struct vjp_call *c)
{
    struct arr *x = NULL;
    enum err err;

    TRY(weights(&x, &c->f));
    err = ops_binary(&c->result[0], OP_MULTIPLY, c->cotan[0], x, c->f.strm);
out:
    arr_unref(&x);
    return err;
}

enum err op_jvp_logsumexp(struct jvp_call *c)
{
    static const int32_t last = -1;
    struct arr *x = NULL;
    enum err err;

    TRY(weights(&x, &c->f));
    STEP(x, ops_binary(&next, OP_MULTIPLY, c->tan[0], x, c->f.strm));
    err = ops_reduce(&c->result[0], REDUCE_SUM, x, &(struct ops_axes){ { &last, 1 }, true },
                     c->f.strm);
out:
    arr_unref(&x);
    return err;
}
