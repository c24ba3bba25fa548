#include "graph/op_call.h"

enum dtype op_reduce_dtype(enum reduce_kind kind, enum dtype t)
{
    enum { BOOL, SAME, WIDE };
    static const uint8_t results[] = {
#define REDUCTION(id, public, identity, result, ...) [REDUCE_##id] = result,
#include "ops/reduce.def"
    };
    bool is_small = dt_size(t) <= 4;

    if (results[kind] == BOOL)
        return DT_BOOL;
    if (results[kind] == SAME || dt_is_inexact(t))
        return t;
    if (dt_table[t].kind == DT_KIND_U)
        return is_small ? DT_UINT32 : DT_UINT64;
    return is_small ? DT_INT32 : DT_INT64;
}

enum err op_infer(struct infer_call *c)
{
    const struct op_info *o = &op_table[c->op];
    enum err err;

    if (!o->infer || c->n_in < o->least_in || c->n_in > o->most_in)
        return err_set(ERR_ARG, "[%s] The op does not take %zu inputs.", o->name, c->n_in);
    TRY(op_params_check((enum op_params_id)o->params, c->params));
    c->n_out = 1;
    err = o->infer(c);
out:
    return err;
}
