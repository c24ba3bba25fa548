/* Drawing positions from distributions that logits give. */
#include <math.h>

#include "ops/build.h"

/* -log(-log(u)) */
enum err ops_random_gumbel(struct arr **out, struct ints shape, enum dtype t, struct arr *key,
                           struct strm *s)
{
    static const enum op_id steps[] = { OP_LOG, OP_NEGATIVE, OP_LOG, OP_NEGATIVE };
    struct arr *x = NULL, *zero = NULL, *one = NULL;
    enum err err;

    TRY(arr_new_number(&zero, 0, t));
    TRY(arr_new_number(&one, 1, t));
    TRY(ops_random_uniform(
        &x,
        &(struct ops_random){ .shape = shape, .dtype = t, .low = zero, .high = one, .key = key },
        s));
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        STEP(x, ops_unary(&next, steps[i], x, s));
    arr_move(out, &x);
out:
    arr_unref(&zero);
    arr_unref(&one);
    arr_unref(&x);
    return err;
}

/* ---- one distribution: where a random part of the total weight falls ---- */

static enum err over_all(struct arr **out, enum reduce_kind kind, struct arr *a, struct strm *s)
{
    return ops_reduce(out, kind, a, &(struct ops_axes){ INTS_ALL, false }, s);
}

/* exp(x - max), or where max is infinite 1 for the elements that are. */
static enum err weights_of(struct arr **out, struct arr *x, struct strm *s)
{
    struct arr *top = NULL, *is_top = NULL, *is_infinite = NULL, *w = NULL;
    enum err err;

    TRY(over_all(&top, REDUCE_MAX, x, s));
    TRY(ops_binary(&is_top, OP_EQUAL, x, top, s));
    STEP(is_top, ops_astype(&next, is_top, dtype_of(x), s));
    TRY(ops_isinf(&is_infinite, top, s));
    TRY(ops_binary(&w, OP_SUBTRACT, x, top, s));
    STEP(w, ops_unary(&next, OP_EXP, w, s));
    TRY(ops_where(out, is_infinite, is_top, w, s));
out:
    arr_unref(&top);
    arr_unref(&is_top);
    arr_unref(&is_infinite);
    arr_unref(&w);
    return err;
}

/* How many entries of the ascending list are above each of u. */
static enum err count_above(struct arr **out, struct arr *list, struct arr *u, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_expand_dims(&x, u, (struct ints){ &(int32_t){ -1 }, 1 }, s));
    STEP(x, ops_binary(&next, OP_GREATER, list, x, s));
    STEP(x, ops_astype(&next, x, DT_UINT32, s));
    TRY(ops_reduce(out, REDUCE_SUM, x, &(struct ops_axes){ { &(int32_t){ -1 }, 1 }, false }, s));
out:
    arr_unref(&x);
    return err;
}

/* The last entry that is not above each of u: of NaNs, none of which is above anything, the last
 * one of all. */
static enum err last_by_counting(struct arr **out, struct arr *list, struct arr *u, struct strm *s)
{
    struct arr *above = NULL, *last = NULL;
    enum err err;

    TRY(count_above(&above, list, u, s));
    TRY(arr_new_number(&last, list->shape[0] - 1, DT_UINT32));
    TRY(ops_binary(out, OP_SUBTRACT, last, above, s));
out:
    arr_unref(&above);
    arr_unref(&last);
    return err;
}

static enum err add_number(struct arr **out, struct arr *a, double value, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(arr_new_number(&v, value, dtype_of(a)));
    TRY(ops_binary(out, OP_ADD, a, v, s));
out:
    arr_unref(&v);
    return err;
}

/* One step of the bisection: found + step, if there is such an entry and it is not above u. */
static enum err bisect(struct arr **found, struct arr *list, struct arr *u, int32_t step,
                       struct strm *s)
{
    struct arr *more = NULL, *at = NULL, *last = NULL, *value = NULL, *above = NULL, *beyond = NULL;
    enum err err;

    TRY(add_number(&more, *found, step, s));
    TRY(arr_new_number(&last, list->shape[0] - 1, DT_INT32));
    TRY(ops_binary(&beyond, OP_GREATER, more, last, s));
    TRY(ops_binary(&at, OP_MINIMUM, more, last, s));
    TRY(ops_take(&value, list, at, 0, s));
    TRY(ops_binary(&above, OP_GREATER, value, u, s));
    STEP(above, ops_binary(&next, OP_LOGICAL_OR, above, beyond, s));
    STEP(*found, ops_where(&next, above, *found, more, s));
out:
    arr_unref(&more);
    arr_unref(&at);
    arr_unref(&last);
    arr_unref(&value);
    arr_unref(&above);
    arr_unref(&beyond);
    return err;
}

/* The same as last_by_counting: the first entry is never above u. */
static enum err last_by_bisection(struct arr **out, struct arr *list, struct arr *u, struct strm *s)
{
    int32_t step = 1;
    struct arr *found = NULL;
    enum err err;

    while (step <= list->shape[0] / 2)
        step *= 2;
    TRY(ops_fill(&found, shape_of(u), 0, DT_INT32, s));
    for (; step > 0; step /= 2)
        TRY(bisect(&found, list, u, step, s));
    TRY(ops_astype(out, found, DT_UINT32, s));
out:
    arr_unref(&found);
    return err;
}

/* Comparing every number with every entry is two kernels; a bisection is many, but small ones. */
#define COMPARE_ALL_UP_TO (1 << 24)

static enum err draw_from_one(struct arr **out, struct arr *logits, struct ints shape,
                              struct arr *key, struct strm *s)
{
    int32_t n = (int32_t)logits->size;
    struct arr *x = NULL, *w = NULL, *total = NULL, *u = NULL, *zero = NULL, *one = NULL;
    enum err err;

    TRY(ops_astype(&x, logits, dt_promote(dtype_of(logits), DT_FLOAT32), s));
    STEP(x, ops_reshape(&next, x, (struct ints){ &n, 1 }, s));
    TRY(weights_of(&w, x, s));
    TRY(over_all(&total, REDUCE_SUM, w, s));
    STEP(w, ops_scan(&next, w, &(struct ops_scan){ .kind = SCAN_SUM }, s));
    TRY(arr_new_number(&zero, 0, DT_FLOAT32));
    TRY(arr_new_number(&one, 1, DT_FLOAT32));
    TRY(ops_random_uniform(
        &u,
        &(struct ops_random){
            .shape = shape, .dtype = DT_FLOAT32, .low = zero, .high = one, .key = key },
        s));
    STEP(u, ops_binary(&next, OP_MULTIPLY, u, total, s));
    TRY(u->size * (size_t)n <= COMPARE_ALL_UP_TO ? last_by_counting(out, w, u, s)
                                                 : last_by_bisection(out, w, u, s));
out:
    arr_unref(&x);
    arr_unref(&w);
    arr_unref(&total);
    arr_unref(&u);
    arr_unref(&zero);
    arr_unref(&one);
    return err;
}

/* ---- several: the largest sum of logit and Gumbel noise ---- */

/* What is drawn: positions on an axis of logits, an array of this shape of them. */
struct draw {
    struct arr *logits;
    int axis;
    const struct shp *shape;
    struct arr *key;
};

static enum err draw_from_each(struct arr **out, const struct draw *d, struct strm *s)
{
    struct arr *logits = d->logits;
    const struct shp *shape = d->shape;
    int at = d->axis + shape->ndim - logits->ndim + 1;
    struct shp noise_shape = { .ndim = shape->ndim + 1 };
    struct arr *x = NULL;
    enum err err;

    if (noise_shape.ndim > SHP_MAX)
        return err_set(ERR_ARG, "[categorical] Arrays have at most %d dimensions.", SHP_MAX);
    for (int i = 0, from = 0; i < noise_shape.ndim; i++)
        noise_shape.d[i] = i == at ? logits->shape[d->axis] : shape->d[from++];
    TRY(ops_random_gumbel(&x, shp_ints(&noise_shape), DT_FLOAT32, d->key, s));
    STEP(x, ops_binary(&next, OP_ADD, x, logits, s));
    TRY(ops_arg_reduce(out, true, x, &(struct ops_axes){ { &(int32_t){ at }, 1 }, false }, s));
out:
    arr_unref(&x);
    return err;
}

static enum err draw(struct arr **out, const struct draw *d, struct strm *s)
{
    int32_t n = d->logits->shape[d->axis];

    if (n > 0 && d->logits->size == (size_t)n && d->shape->ndim > 0)
        return draw_from_one(out, d->logits, shp_ints(d->shape), d->key, s);
    return draw_from_each(out, d, s);
}

/* ---- */

/* The shape of a without the axis. */
static struct shp without(const struct arr *a, int axis)
{
    struct shp s = { 0 };

    for (int i = 0; i < a->ndim; i++)
        if (i != axis)
            s.d[s.ndim++] = a->shape[i];
    return s;
}

enum err ops_random_categorical(struct arr **out, struct arr *logits, int axis, struct arr *key,
                                struct strm *s)
{
    enum err err = shp_axis(&axis, axis, logits->ndim, "categorical");

    if (err)
        return err;
    struct shp shape = without(logits, axis);
    return draw(out, &(struct draw){ logits, axis, &shape, key }, s);
}

enum err ops_random_categorical_shape(struct arr **out, struct arr *logits, int axis,
                                      const struct ops_random *r, struct strm *s)
{
    struct shp shape, common;
    enum err err;

    TRY(shp_axis(&axis, axis, logits->ndim, "categorical"));
    TRY(shp_make(&shape, r->shape.v, r->shape.n, "categorical"));
    struct shp reduced = without(logits, axis);
    TRY(shp_broadcast(&common, &shape, &reduced, "categorical"));
    if (!shp_equal(&common, &shape))
        return err_set(ERR_ARG,
                       "[categorical] Requested shape %s is not broadcast compatible with reduced "
                       "logits shape%s.",
                       shp_text(&shape), shp_text(&reduced));
    err = draw(out, &(struct draw){ logits, axis, &shape, r->key }, s);
out:
    return err;
}

enum err ops_random_categorical_samples(struct arr **out, struct arr *logits, int axis,
                                        const struct ops_samples *v, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(shp_axis(&axis, axis, logits->ndim, "categorical"));
    if (v->n < 0)
        return err_set(ERR_ARG, "[categorical] The number of samples must not be negative.");
    TRY(ops_expand_dims(&x, logits, (struct ints){ &(int32_t){ -1 }, 1 }, s));
    struct shp shape = without(x, axis);
    shape.d[shape.ndim - 1] = v->n;
    err = draw(out, &(struct draw){ x, axis, &shape, v->key }, s);
out:
    arr_unref(&x);
    return err;
}
