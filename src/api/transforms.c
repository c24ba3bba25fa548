#include "api/handle.h"

#include "eval/eval.h"

static int eval_list(struct call *c, mlx_vector_array outputs, bool async)
{
    const struct list *list = call_vec(c, outputs, "outputs");

    if (call_ok(c))
        c->err = eval_arrays(list->v, list->n, async);
    return CALL_END(c);
}

int mlx_eval(const mlx_vector_array outputs)
{
    struct call c = CALL_BARE;

    return eval_list(&c, outputs, false);
}

int mlx_async_eval(const mlx_vector_array outputs)
{
    struct call c = CALL_BARE;

    return eval_list(&c, outputs, true);
}
