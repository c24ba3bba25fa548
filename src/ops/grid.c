/* Elements in another order or in all combinations: roll, meshgrid, kron. */
#include "ops/build.h"

/* ---- roll ---- */

/* *x with what lies from `cut` on along the axis in front of the rest. */
static enum err swap_parts(struct arr **x, int axis, int32_t cut, struct strm *s)
{
    struct arr *part[2] = { NULL, NULL };
    enum err err;

    TRY(ops_slice_axis(&part[0], *x, axis, (int32_t[]){ cut, (*x)->shape[axis] }, s));
    TRY(ops_slice_axis(&part[1], *x, axis, (int32_t[]){ 0, cut }, s));
    STEP(*x, ops_concatenate(&next, (struct arrs){ part, 2 }, axis, s));
out:
    arr_unref_all(part, 2);
    return err;
}

enum err ops_roll(struct arr **out, struct arr *a, struct ints shift, struct ints axes,
                  struct strm *s)
{
    struct arr *x = arr_ref(a);
    enum err err = ERR_OK;

    if (shift.n < axes.n)
        err = err_set(ERR_ARG,
                      "[roll] At least one shift value per axis is required, %zu provided for "
                      "%zu axes.",
                      shift.n, axes.n);
    TRY(err);
    for (size_t i = 0; i < axes.n; i++) {
        int axis;
        TRY(shp_axis(&axis, axes.v[i], a->ndim, "roll"));
        int64_t size = a->shape[axis], by = size ? (shift.v[i] % size + size) % size : 0;
        if (by)
            TRY(swap_parts(&x, axis, (int32_t)(size - by), s));
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

static enum err total_of(int32_t *total, struct ints shift)
{
    int64_t sum = 0;

    for (size_t i = 0; i < shift.n; i++)
        sum += shift.v[i];
    if (sum < INT32_MIN || sum > INT32_MAX)
        return err_set(ERR_OVERFLOW, "[roll] The sum of the shifts, %lld, is too large.",
                       (long long)sum);
    *total = (int32_t)sum;
    return ERR_OK;
}

enum err ops_roll_axis(struct arr **out, struct arr *a, struct ints shift, int axis, struct strm *s)
{
    int32_t total;
    enum err err;

    TRY(total_of(&total, shift));
    TRY(ops_roll(out, a, (struct ints){ &total, 1 }, (struct ints){ &axis, 1 }, s));
out:
    return err;
}

enum err ops_roll_flat(struct arr **out, struct arr *a, struct ints shift, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_flatten(&x, a, 0, -1, s));
    STEP(x, ops_roll_axis(&next, x, shift, 0, s));
    TRY(ops_reshape(out, x, shape_of(a), s));
out:
    arr_unref(&x);
    return err;
}

/* ---- meshgrid ---- */

/* a as a vector along one of n axes. */
static enum err along(struct arr **out, struct arr *a, size_t axis, size_t n, struct strm *s)
{
    struct shp shape = { .ndim = (int)n };
    enum err err;

    for (size_t i = 0; i < n; i++)
        shape.d[i] = 1;
    TRY(ops_dim(&shape.d[axis], (int64_t)a->size, "meshgrid"));
    TRY(ops_reshape(out, a, shp_ints(&shape), s));
out:
    return err;
}

enum err ops_meshgrid(struct arr **outs, struct arrs in, const struct ops_meshgrid *m,
                      struct strm *s)
{
    bool is_xy = strcmp(m->indexing, "xy") == 0;
    struct arr *x[SHP_MAX] = { NULL };
    enum err err = ERR_OK;

    if (!is_xy && strcmp(m->indexing, "ij") != 0)
        return err_set(ERR_ARG, "[meshgrid] Invalid indexing value. Valid values are 'xy' and "
                                "'ij'.");
    if (in.n > SHP_MAX)
        return err_set(ERR_ARG, "[meshgrid] Arrays have at most %d dimensions.", SHP_MAX);
    for (size_t i = 0; i < in.n; i++)
        TRY(along(&x[i], in.v[i], is_xy && in.n > 1 && i < 2 ? 1 - i : i, in.n, s));
    if (!m->sparse) {
        TRY(ops_broadcast_arrays(outs, (struct arrs){ x, in.n }, s));
    } else {
        for (size_t i = 0; i < in.n; i++)
            arr_move(&outs[i], &x[i]);
    }
out:
    arr_unref_all(x, in.n);
    return err;
}

/* ---- kron ---- */

/* a's dimensions, aligned to the last of n, at every other place of a shape of ones. */
static void interleave(struct shp *out, const struct arr *a, int n, int place)
{
    out->ndim = 2 * n;
    for (int i = 0; i < 2 * n; i++)
        out->d[i] = 1;
    for (int i = 0; i < a->ndim; i++)
        out->d[2 * (n - a->ndim + i) + place] = a->shape[i];
}

enum err ops_kron(struct arr **out, struct arr *a, struct arr *b, struct strm *s)
{
    int n = MAX(a->ndim, b->ndim);
    struct shp outer, inner, shape = { .ndim = n };
    struct arr *x = NULL, *y = NULL;
    enum err err;

    if (a->size == 0 || b->size == 0)
        return err_set(ERR_ARG, "[kron] Input arrays cannot be empty.");
    if (2 * n > SHP_MAX)
        return err_set(ERR_ARG, "[kron] Arrays have at most %d dimensions.", SHP_MAX / 2);
    interleave(&outer, a, n, 0);
    interleave(&inner, b, n, 1);
    for (int i = 0; i < n; i++)
        TRY(ops_dim(&shape.d[i], (int64_t)outer.d[2 * i] * inner.d[2 * i + 1], "kron"));
    TRY(ops_reshape(&x, a, shp_ints(&outer), s));
    TRY(ops_reshape(&y, b, shp_ints(&inner), s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, y, s));
    TRY(ops_reshape(out, x, shp_ints(&shape), s));
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}
