/* Different elements of an array, without a look at them: sizes are the caller's. */
#include "ops/build.h"

/* What is known of n sorted elements: which they are, and where each of them was. */
struct sorted {
    struct arr *v, *from;
    struct arr *group; /* the number of different elements before it, as int32 */
    struct arr *first; /* where groups 0 to size begin, n for those that are not there */
    int32_t n, size;
    struct strm *strm;
};

static void sorted_fini(struct sorted *v)
{
    arr_unref(&v->v);
    arr_unref(&v->from);
    arr_unref(&v->group);
    arr_unref(&v->first);
}

/* *x = *x op value */
static enum err with_int(struct arr **x, enum op_id op, int32_t value, struct strm *s)
{
    struct arr *number = NULL;
    enum err err;

    TRY(arr_new_number(&number, value, DT_INT32));
    STEP(*x, ops_binary(&next, op, *x, number, s));
out:
    arr_unref(&number);
    return err;
}

/* A group begins where an element differs from the one before, as NaN does. Positions have no
 * gradients. */
static enum err find_groups(struct sorted *v)
{
    struct arr *x = NULL, *differs = NULL, *before = NULL, *zero = NULL;
    enum err err;

    TRY(ops_stop_gradient(&x, v->v, v->strm));
    TRY(ops_slice_axis(&differs, x, 0, (int32_t[]){ 1, v->n }, v->strm));
    TRY(ops_slice_axis(&before, x, 0, (int32_t[]){ 0, v->n - 1 }, v->strm));
    STEP(differs, ops_binary(&next, OP_NOT_EQUAL, differs, before, v->strm));
    STEP(differs, ops_astype(&next, differs, DT_INT32, v->strm));
    TRY(ops_fill(&zero, (struct ints){ (int32_t[]){ 1 }, 1 }, 0, DT_INT32, v->strm));
    STEP(differs,
         ops_concatenate(&next, (struct arrs){ (struct arr *[]){ zero, differs }, 2 }, 0, v->strm));
    TRY(ops_scan(&v->group, differs, &(struct ops_scan){ SCAN_SUM, 0, false, true }, v->strm));
out:
    arr_unref(&x);
    arr_unref(&differs);
    arr_unref(&before);
    arr_unref(&zero);
    return err;
}

/* The least position of each group; groups beyond the last one wanted share a place. */
static enum err find_first(struct sorted *v)
{
    struct arr *none = NULL, *at = NULL, *i = NULL;
    int32_t places;
    enum err err;

    TRY(ops_dim(&places, (int64_t)v->size + 1, "unique"));
    TRY(ops_fill(&none, (struct ints){ &places, 1 }, v->n, DT_INT32, v->strm));
    if (!v->n) {
        arr_move(&v->first, &none);
        goto out;
    }
    at = arr_ref(v->group);
    TRY(with_int(&at, OP_MINIMUM, v->size, v->strm));
    TRY(ops_arange(&i, &(struct arange_params){ 0, v->n, 1 }, DT_INT32, v->strm));
    STEP(i, ops_reshape(&next, i, (struct ints){ (int32_t[]){ v->n, 1 }, 2 }, v->strm));
    err = ops_scatter(&v->first, none,
                      &(struct ops_scatter){ .indices = { &at, 1 },
                                             .updates = i,
                                             .axes = { (int32_t[]){ 0 }, 1 },
                                             .kind = UPDATE_MIN },
                      v->strm);
out:
    arr_unref(&none);
    arr_unref(&at);
    arr_unref(&i);
    return err;
}

static enum err sorted_init(struct sorted *v, struct arr *a, int size, struct strm *s)
{
    struct arr *flat = NULL, *keys = NULL;
    enum err err;

    *v = (struct sorted){ .size = size, .strm = s };
    TRY(ops_flatten(&flat, a, 0, -1, s));
    v->n = flat->shape[0];
    TRY(ops_stop_gradient(&keys, flat, s));
    TRY(ops_argsort(&v->from, keys, 0, s));
    TRY(ops_take(&v->v, flat, v->from, 0, s));
    if (v->n)
        TRY(find_groups(v));
    TRY(find_first(v));
out:
    arr_unref(&flat);
    arr_unref(&keys);
    if (err)
        sorted_fini(v);
    return err;
}

/* ---- results ---- */

/* x at the beginning of each group, others where there is none. */
static enum err of_groups(struct arr **out, const struct sorted *v, struct arr *x,
                          struct arr *others)
{
    struct arr *at = NULL, *there = NULL;
    enum err err;

    TRY(ops_slice_axis(&at, v->first, 0, (int32_t[]){ 0, v->size }, v->strm));
    if (!v->n) {
        err = ops_full(out, shape_of(at), others, dtype_of(x), v->strm);
        goto out;
    }
    there = arr_ref(at);
    TRY(with_int(&there, OP_LESS, v->n, v->strm));
    TRY(with_int(&at, OP_MINIMUM, v->n - 1, v->strm));
    STEP(at, ops_take(&next, x, at, 0, v->strm));
    err = ops_where(out, there, at, others, v->strm);
out:
    arr_unref(&at);
    arr_unref(&there);
    return err;
}

/* The first of the sorted elements, or a number of that dtype where there is none. */
static enum err first_of(struct arr **out, const struct sorted *v, struct arr *x)
{
    struct arr *part = NULL;
    enum err err;

    if (!v->n)
        return arr_new_number(out, 0, dtype_of(x));
    TRY(ops_slice_axis(&part, x, 0, (int32_t[]){ 0, 1 }, v->strm));
    err = ops_reshape(out, part, (struct ints){ NULL, 0 }, v->strm);
out:
    arr_unref(&part);
    return err;
}

static enum err unique_values(struct arr **out, const struct sorted *v, struct arr *fill)
{
    struct arr *others = NULL;
    enum err err;

    if (fill) {
        TRY(ops_astype(&others, fill, dtype_of(v->v), v->strm));
        STEP(others, ops_reshape(&next, others, (struct ints){ NULL, 0 }, v->strm));
    } else {
        TRY(first_of(&others, v, v->v));
    }
    err = of_groups(out, v, v->v, others);
out:
    arr_unref(&others);
    return err;
}

static enum err unique_index(struct arr **out, const struct sorted *v)
{
    struct arr *others = NULL;
    enum err err;

    TRY(first_of(&others, v, v->from));
    err = of_groups(out, v, v->from, others);
out:
    arr_unref(&others);
    return err;
}

/* The group of each element of a, in the shape of a. */
static enum err unique_inverse(struct arr **out, const struct sorted *v, const struct arr *a)
{
    struct arr *group = NULL, *x = NULL;
    enum err err;

    TRY(ops_fill(&x, (struct ints){ &v->n, 1 }, 0, DT_UINT32, v->strm));
    if (v->n) {
        group = arr_ref(v->group);
        TRY(with_int(&group, OP_MINIMUM, v->size ? v->size - 1 : 0, v->strm));
        STEP(group, ops_astype(&next, group, DT_UINT32, v->strm));
        STEP(x, ops_scatter_axis(&next, x,
                                 &(struct ops_scatter_axis){ v->from, group, 0, UPDATE_NONE },
                                 v->strm));
    }
    err = ops_reshape(out, x, shape_of(a), v->strm);
out:
    arr_unref(&group);
    arr_unref(&x);
    return err;
}

static enum err unique_counts(struct arr **out, const struct sorted *v)
{
    struct arr *begin = NULL, *end = NULL;
    enum err err;

    TRY(ops_slice_axis(&begin, v->first, 0, (int32_t[]){ 0, v->size }, v->strm));
    TRY(ops_slice_axis(&end, v->first, 0, (int32_t[]){ 1, v->size + 1 }, v->strm));
    err = ops_binary(out, OP_SUBTRACT, end, begin, v->strm);
out:
    arr_unref(&begin);
    arr_unref(&end);
    return err;
}

static enum err check(const struct arr *a, const struct ops_unique *u)
{
    struct shp shape;

    if (u->size < 0)
        return err_set(ERR_ARG, "[unique] Received negative size %d.", u->size);
    if (u->fill && u->fill->size != 1) {
        arr_shape(&shape, u->fill);
        return err_set(ERR_ARG, "[unique] The fill value must be one element, not of shape %s.",
                       shp_text(&shape));
    }
    if (!u->fill && !a->size && u->size)
        return err_set(ERR_ARG, "[unique] An empty array needs a fill value for a size of %d.",
                       u->size);
    return ERR_OK;
}

enum err ops_unique(struct arr **outs, struct arr *a, const struct ops_unique *u, struct strm *s)
{
    struct arr *made[4] = { NULL };
    struct sorted v = { 0 };
    size_t n = 0;
    enum err err;

    TRY(check(a, u));
    TRY(sorted_init(&v, a, u->size, s));
    TRY(unique_values(&made[n++], &v, u->fill));
    if (u->index)
        TRY(unique_index(&made[n++], &v));
    if (u->inverse)
        TRY(unique_inverse(&made[n++], &v, a));
    if (u->counts)
        TRY(unique_counts(&made[n++], &v));
    for (size_t i = 0; i < n; i++)
        arr_move(&outs[i], &made[i]);
out:
    sorted_fini(&v);
    arr_unref_all(made, ARRAY_LEN(made));
    return err;
}
