/* A function made of one: its values and its gradients. */
#include "transforms/transforms.h"

struct value_and_grad {
    struct fun_grad base;
    struct fun *fun; /* owned */
    size_t n;
    int32_t argnum[]; /* as the caller gave them */
};

/* Ascending, without duplicates and inside of what there is. */
static enum err resolve(int32_t *sorted, const struct value_and_grad *g, size_t n_in)
{
    for (size_t i = 0; i < g->n; i++) {
        int64_t at = g->argnum[i] < 0 ? g->argnum[i] + (int64_t)n_in : g->argnum[i];
        size_t place = i;
        if (at < 0 || at >= (int64_t)n_in)
            return err_set(ERR_ARG, "[grad] Invalid argument number for function with %zu inputs.",
                           n_in);
        for (; place > 0 && sorted[place - 1] >= at; place--) {
            if (sorted[place - 1] == at)
                return err_set(ERR_ARG, "[grad] Repeat argument number not allowed in grad.");
            sorted[place] = sorted[place - 1];
        }
        sorted[place] = (int32_t)at;
    }
    return ERR_OK;
}

static enum err call(struct fun_grad *f, struct arrs in, struct outs *values, struct outs *grads)
{
    struct value_and_grad *g = (struct value_and_grad *)f;
    int32_t *sorted = mem_alloc_array(g->n, sizeof *sorted);
    struct arr *one = NULL;
    enum err err = ERR_NO_MEMORY;

    if (!sorted)
        return err;
    TRY(resolve(sorted, g, in.n));
    TRY(arr_new_number(&one, 1, DT_FLOAT32));
    err = transform_vjp(&(struct vjp_params){ .fun = g->fun,
                                              .primals = in,
                                              .cotans = { &one, 1 },
                                              .argnums = { sorted, g->n },
                                              .is_of_first = true },
                        values, grads);
out:
    arr_unref(&one);
    mem_free(sorted);
    return err;
}

static void destroy(void *self)
{
    struct value_and_grad *g = self;

    counted_unref(g->fun);
    mem_free(g);
}

enum err transform_value_and_grad(struct fun_grad **out, struct fun *fun, struct ints argnums)
{
    struct value_and_grad *g;

    if (!argnums.n)
        return err_set(ERR_ARG, "[grad] Must specify at least one argument.");
    if (!(g = mem_alloc(sizeof *g + argnums.n * sizeof *g->argnum)))
        return ERR_NO_MEMORY;
    g->base = (struct fun_grad){ .counted = { .destroy = destroy }, .call = call };
    atomic_init(&g->base.counted.rc, 1);
    g->fun = counted_ref(fun);
    g->n = argnums.n;
    memcpy(g->argnum, argnums.v, argnums.n * sizeof *argnums.v);
    *out = &g->base;
    return ERR_OK;
}
