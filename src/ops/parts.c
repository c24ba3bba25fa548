/* Ops that stand for several others. */
#include "ops/parts.h"

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
