/* Ops that stand for several others. */
#include "ops/parts.h"

/* Of the gradients of attention, those of the sinks. */
#define SINKS_OUT 3

bool ops_gradient_of(struct op_apply *of, int *inputs, const struct op_apply *f)
{
    size_t behind = 1; /* inputs that the other op does not have */

    *of = *f;
    switch (f->op) {
    case OP_RMS_NORM_VJP:
    case OP_LAYER_NORM_VJP:
        of->op = f->op == OP_RMS_NORM_VJP ? OP_RMS_NORM : OP_LAYER_NORM;
        of->params = &((const struct norm_vjp_params *)f->params)->of;
        break;
    case OP_SDPA_VJP:
        of->op = OP_SDPA;
        behind = 2;
        break;
    default:
        return false;
    }
    of->n_in = f->n_in - behind;
    of->n_out = 1;
    for (size_t i = 0; i < f->n_out; i++)
        inputs[i] = (int)i;
    if (f->op == OP_SDPA_VJP && f->n_out > SINKS_OUT) /* a mask may be before the sinks */
        inputs[SINKS_OUT] = (int)of->n_in - 1;
    return true;
}

enum err ops_parts(struct arr **outs, const struct op_apply *f)
{
    switch (f->op) {
    case OP_RMS_NORM:
    case OP_LAYER_NORM:
        return norm_parts(outs, f);
    case OP_ROPE:
        return rope_parts(outs, f);
    case OP_SDPA:
        return sdpa_parts(outs, f);
    default:
        return err_set(ERR_UNSUPPORTED, "[%s] Not made of other ops.", op_name(f->op));
    }
}
