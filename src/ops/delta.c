/* The gated delta rule: a matrix of memory for each head that decays and is corrected step by step.
 */
#include "ops/build.h"

/* One of these at each step, and the memory that goes from step to step. */
enum { Q, K, V, GAMMA, BETA, INPUTS };

struct delta {
    struct arr *in[INPUTS], *mask; /* mask may be NULL */
    struct arr *state;
    enum dtype dtype; /* of the results at each step */
    struct strm *strm;
};

static void delta_fini(struct delta *d)
{
    arr_unref_all(d->in, INPUTS);
    arr_unref(&d->mask);
    arr_unref(&d->state);
}

static enum err check_one(const char *name, const struct arr *a, int ndim, int steps)
{
    if (a->ndim != ndim)
        return err_set(ERR_ARG, "[gated_delta_update] %s must have %d dimensions, not %d.", name,
                       ndim, a->ndim);
    if (a->shape[1] < steps)
        return err_set(ERR_ARG, "[gated_delta_update] %s has %d steps instead of %d.", name,
                       a->shape[1], steps);
    return ERR_OK;
}

static enum err check(const struct ops_delta *v)
{
    static const char *const names[] = { "q", "k", "v", "gamma", "beta" };
    struct arr *const in[] = { v->q, v->k, v->v, v->gamma, v->beta };
    int steps = v->q->ndim > 1 ? v->q->shape[1] : 0;
    enum err err = ERR_OK;

    for (size_t i = 0; i < INPUTS; i++)
        TRY(check_one(names[i], in[i], i < GAMMA ? 4 : 3, steps));
    if (v->mask)
        TRY(check_one("mask", v->mask, 2, steps));
    if (!steps)
        err = err_set(ERR_ARG, "[gated_delta_update] There are no steps.");
out:
    return err;
}

/* Heads of values may share those of keys: each is repeated. */
static enum err repeat_heads(struct arr **a, int32_t heads, struct strm *s)
{
    int32_t own = (*a)->shape[2], times = own ? heads / own : 1;
    enum err err = ERR_OK;

    if (times > 1)
        STEP(*a, ops_repeat(&next, *a, times, 2, s));
out:
    return err;
}

static enum err delta_init(struct delta *d, const struct ops_delta *v, struct strm *s)
{
    struct arr *const in[] = { v->q, v->k, v->v, v->gamma, v->beta };
    enum dtype t = dt_promote(dtype_of(v->q), dtype_of(v->k));
    const int32_t shape[] = { v->q->shape[0], v->v->shape[2], v->v->shape[3], v->q->shape[3] };
    enum err err;

    *d = (struct delta){ .dtype = dt_is_inexact(t) ? t : DT_FLOAT32, .strm = s };
    for (size_t i = 0; i < INPUTS; i++)
        d->in[i] = arr_ref(in[i]);
    d->mask = v->mask ? arr_ref(v->mask) : NULL;
    TRY(repeat_heads(&d->in[Q], shape[1], s));
    TRY(repeat_heads(&d->in[K], shape[1], s));
    if (v->state)
        TRY(ops_astype(&d->state, v->state, DT_FLOAT32, s));
    else
        TRY(ops_fill(&d->state, (struct ints){ shape, 4 }, 0, DT_FLOAT32, s));
out:
    if (err)
        delta_fini(d);
    return err;
}

/* Step number i of a, with axes of size 1 at the places listed. */
static enum err at_step(struct arr **out, struct arr *a, int32_t i, struct ints places,
                        struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_slice_axis(&x, a, 1, (int32_t[]){ i, i + 1 }, s));
    STEP(x, ops_squeeze(&next, x, (struct ints){ (int32_t[]){ 1 }, 1 }, s));
    err = ops_expand_dims(out, x, places, s);
out:
    arr_unref(&x);
    return err;
}

/* The sum of x * y over the last axis. */
static enum err dot(struct arr **out, struct arr *x, struct arr *y, struct strm *s)
{
    struct arr *product = NULL;
    enum err err;

    TRY(ops_binary(&product, OP_MULTIPLY, x, y, s));
    err = ops_reduce(out, REDUCE_SUM, product,
                     &(struct ops_axes){ { (int32_t[]){ -1 }, 1 }, false }, s);
out:
    arr_unref(&product);
    return err;
}

/* What the memory, which has decayed, lacks of v at k, times beta, is added there. x: the inputs of
 * the step. */
static enum err correct(struct arr **out, struct arr *state, struct arr *const *x, struct strm *s)
{
    struct arr *lack = NULL;
    enum err err;

    TRY(dot(&lack, state, x[K], s));
    STEP(lack, ops_binary(&next, OP_SUBTRACT, x[V], lack, s));
    STEP(lack, ops_binary(&next, OP_MULTIPLY, lack, x[BETA], s));
    STEP(lack, ops_expand_dims(&next, lack, (struct ints){ (int32_t[]){ -1 }, 1 }, s));
    STEP(lack, ops_binary(&next, OP_MULTIPLY, lack, x[K], s));
    err = ops_binary(out, OP_ADD, state, lack, s);
out:
    arr_unref(&lack);
    return err;
}

/* Where the mask is false, the memory stays and the result is 0. */
static enum err apply_mask(struct arr **state, struct arr **y, const struct delta *d, int32_t i)
{
    struct arr *mask = NULL, *zero = NULL;
    enum err err;

    TRY(at_step(&mask, d->mask, i, (struct ints){ (int32_t[]){ 1, 2 }, 2 }, d->strm));
    TRY(arr_new_number(&zero, 0, dtype_of(*y)));
    STEP(*y, ops_where(&next, mask, *y, zero, d->strm));
    STEP(mask, ops_expand_dims(&next, mask, (struct ints){ (int32_t[]){ 3 }, 1 }, d->strm));
    STEP(*state, ops_where(&next, mask, *state, d->state, d->strm));
out:
    arr_unref(&mask);
    arr_unref(&zero);
    return err;
}

static enum err step(struct arr **out, struct delta *d, int32_t i)
{
    /* How many axes of size 1 stand at 2 and behind it, for the axes of the memory. */
    static const uint8_t places[INPUTS] = { [Q] = 1, [K] = 1, [GAMMA] = 2, [BETA] = 1 };
    static const int32_t axes[] = { 2, 3 };
    struct arr *x[INPUTS] = { NULL }, *state = NULL, *y = NULL;
    enum err err = ERR_OK;

    for (size_t k = 0; k < INPUTS; k++)
        TRY(at_step(&x[k], d->in[k], i, (struct ints){ axes, places[k] }, d->strm));
    TRY(ops_binary(&state, OP_MULTIPLY, d->state, x[GAMMA], d->strm));
    STEP(state, correct(&next, state, x, d->strm));
    TRY(dot(&y, state, x[Q], d->strm));
    STEP(y, ops_astype(&next, y, d->dtype, d->strm));
    if (d->mask)
        TRY(apply_mask(&state, &y, d, i));
    arr_unref(&d->state);
    arr_move(&d->state, &state);
    arr_move(out, &y);
out:
    arr_unref_all(x, INPUTS);
    arr_unref(&state);
    arr_unref(&y);
    return err;
}

enum err ops_gated_delta(struct arr *outs[2], const struct ops_delta *v, struct strm *s)
{
    struct delta d = { .strm = s };
    struct arr **y = NULL, *all = NULL;
    size_t steps, done = 0;
    enum err err;

    TRY(check(v));
    TRY(delta_init(&d, v, s));
    steps = (size_t)v->q->shape[1];
    if (!(y = mem_alloc_array(steps, sizeof *y)))
        TRY(ERR_NO_MEMORY);
    for (; done < steps; done++)
        TRY(step(&y[done], &d, (int32_t)done));
    TRY(ops_stack(&all, (struct arrs){ y, steps }, 1, s));
    arr_move(&outs[0], &all);
    arr_move(&outs[1], &d.state);
out:
    if (y)
        arr_unref_all(y, done);
    mem_free(y);
    delta_fini(&d);
    return err;
}
