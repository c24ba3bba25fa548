/* Writing by subscripts. Ints and slices update a slice, arrays scatter, masks take one element
 * after the other; what names everything replaces it. Axes of the values stand as those of the same
 * subscripts read would. */
#include "index.h"

#include "create.h"
#include "subscript.h"

static const mlx_stream default_stream = { NULL };

typedef int (*binary_fn)(mlx_array *, const mlx_array, const mlx_array, const mlx_stream);
typedef int (*unary_fn)(mlx_array *, const mlx_array, const mlx_stream);
typedef int (*scatter_fn)(mlx_array *, const mlx_array, const mlx_vector_array, const mlx_array,
                          const int *, size_t, const mlx_stream);
typedef int (*slice_fn)(mlx_array *, const mlx_array, const mlx_array, const int *, size_t,
                        const int *, size_t, const int *, size_t, const mlx_stream);

struct way {
    slice_fn slice;
    scatter_fn scatter;
    binary_fn all;    /* of the array and as many values; NULL: the values */
    unary_fn prepare; /* of the values before they go to slice or scatter; NULL: as they are */
};

static const struct way ways[] = {
    [WRITE_SET] = { mlx_slice_update, mlx_scatter, NULL, NULL },
    [WRITE_ADD] = { mlx_slice_update_add, mlx_scatter_add, mlx_add, NULL },
    [WRITE_SUBTRACT] = { mlx_slice_update_add, mlx_scatter_add, mlx_subtract, mlx_negative },
    [WRITE_MULTIPLY] = { mlx_slice_update_prod, mlx_scatter_prod, mlx_multiply, NULL },
    [WRITE_DIVIDE] = { mlx_slice_update_prod, mlx_scatter_prod, mlx_divide, mlx_reciprocal },
    [WRITE_MAXIMUM] = { mlx_slice_update_max, mlx_scatter_max, mlx_maximum, NULL },
    [WRITE_MINIMUM] = { mlx_slice_update_min, mlx_scatter_min, mlx_minimum, NULL },
};

/* One call. Everything that is made on the way goes to rooms. */
struct write {
    const struct way *way;
    mlx_array *res;
    mlx_array a;
    struct dims dims; /* of a */
    mlx_array value;
    mlx_array_place value_room, shaped_room;
};

/* ---- values ---- */

static bool value_from(struct write *w, PyObject *o)
{
    if (create_operand(&w->value, &w->value_room, o, WANT(mlx_array_dtype(w->a))))
        return true;
    if (PyErr_Occurred())
        return false;
    if (o == Py_None)
        PyErr_SetString(PyExc_TypeError, "A number or an array is wanted for elements, not None.");
    else
        PyErr_Format(PyExc_ValueError, "Invalid type %s received in array initialization.",
                     error_type_name(o));
    return false;
}

/* Makes the values those that slices and scatters take. */
static bool value_prepare(struct write *w)
{
    mlx_array at = mlx_array_at(&w->value_room);

    if (!w->way->prepare)
        return true;
    if (!error_check(w->way->prepare(&at, w->value, default_stream)))
        return false;
    w->value = at;
    return true;
}

static bool value_reshape(struct write *w, const int *shape, int n)
{
    mlx_array at = mlx_array_at(&w->shaped_room);

    if (!error_check(mlx_reshape(&at, w->value, shape, (size_t)n, default_stream)))
        return false;
    w->value = at;
    return true;
}

/* Stretches the values, without axes of size 1 in front, to a shape. */
static bool value_broadcast(struct write *w, const int *shape, int n)
{
    int ndim = (int)mlx_array_ndim(w->value), ones = 0;
    const int *have = mlx_array_shape(w->value);
    mlx_array at = mlx_array_at(&w->shaped_room);
    int gone[AXES_MAX];

    for (; ndim - ones > n && have[ones] == 1; ones++)
        gone[ones] = ones;
    if (ones && !error_check(mlx_squeeze_axes(&at, w->value, gone, (size_t)ones, default_stream)))
        return false;
    if (!error_check(mlx_broadcast_to(&at, ones ? at : w->value, shape, (size_t)n, default_stream)))
        return false;
    w->value = at;
    return true;
}

/* ---- everything ---- */

static bool write_all(struct write *w)
{
    if (!value_broadcast(w, w->dims.v, w->dims.n))
        return false;
    return error_check(w->way->all ? w->way->all(w->res, w->a, w->value, default_stream)
                                   : mlx_array_set(w->res, w->value));
}

/* ---- slices ---- */

/* Gives the values an axis of size 1 for every int, and takes those of None away. */
static bool value_align(struct write *w, const struct sub *sub, int n)
{
    int ndim = (int)mlx_array_ndim(w->value), behind = w->dims.n, to = SUBS_MAX + AXES_MAX;
    const int *have = mlx_array_shape(w->value);
    int shape[SUBS_MAX + AXES_MAX];
    bool changed = false;

    for (int i = 0; i < n; i++)
        behind -= sub[i].kind != SUB_NEW;
    for (; behind > 0 && ndim > 0; behind--)
        shape[--to] = have[--ndim];
    for (int i = n; i > 0 && ndim > 0; i--) {
        changed |= sub[i - 1].kind != SUB_SLICE;
        if (sub[i - 1].kind == SUB_INT) {
            shape[--to] = 1;
            continue;
        }
        int dim = have[--ndim];
        if (sub[i - 1].kind == SUB_SLICE) {
            shape[--to] = dim;
        } else if (dim != 1) {
            PyErr_Format(PyExc_ValueError, "An axis of size %d of the values stands where None is.",
                         dim);
            return false;
        }
    }
    for (; ndim > 0; ndim--) {
        changed |= have[ndim - 1] == 1;
        if (have[ndim - 1] != 1)
            shape[--to] = have[ndim - 1];
    }
    return !changed || value_reshape(w, shape + to, SUBS_MAX + AXES_MAX - to);
}

static bool write_slice(struct write *w, const struct sub *sub, int n)
{
    int start[AXES_MAX], stop[AXES_MAX], step[AXES_MAX], axis = 0;
    size_t ndim = (size_t)w->dims.n;

    if (!value_align(w, sub, n) || !value_prepare(w))
        return false;
    for (int i = 0; i < n; i++) {
        if (sub[i].kind == SUB_NEW)
            continue;
        start[axis] = sub[i].start;
        stop[axis] = sub[i].kind == SUB_INT ? sub[i].start + 1 : sub[i].stop;
        step[axis++] = sub[i].kind == SUB_INT ? 1 : sub[i].step;
    }
    for (; axis < w->dims.n; axis++) {
        start[axis] = 0;
        stop[axis] = w->dims.v[axis];
        step[axis] = 1;
    }
    return error_check(
        w->way->slice(w->res, w->a, w->value, start, ndim, stop, ndim, step, ndim, default_stream));
}

/* ---- arrays ---- */

/* The common shape of the arrays among the subscripts. */
static bool common_shape(struct dims *common, const struct subs *s, int ndim)
{
    common->n = ndim;
    for (int k = 0; k < ndim; k++)
        common->v[k] = 1;
    for (int i = 0; i < s->n; i++) {
        if (s->v[i].kind != SUB_ARRAY)
            continue;
        int n = (int)mlx_array_ndim(s->v[i].array);
        const int *shape = mlx_array_shape(s->v[i].array);
        for (int k = 0; k < n; k++) {
            int *to = &common->v[ndim - n + k];
            if (*to != 1 && shape[k] != 1 && shape[k] != *to) {
                PyErr_Format(
                    PyExc_ValueError,
                    "[broadcast_shapes] Arrays of %d and %d positions cannot be broadcast.", *to,
                    shape[k]);
                return false;
            }
            if (*to == 1)
                *to = shape[k];
        }
    }
    return true;
}

/* The shapes that the values have: read, as the subscripts would be read; positions, the same
 * without the axes of None and of the windows; updates, what the scatter takes. */
struct shapes {
    int read[SUBS_MAX + AXES_MAX], positions[2 * AXES_MAX], windows[AXES_MAX];
    int n_read, n_positions, n_windows;
};

static void shapes_of(struct shapes *v, const struct subs *s, const struct layout *l,
                      const struct dims *common, const struct dims *all)
{
    int axis = 0;

    v->n_read = v->n_positions = v->n_windows = 0;
    for (int i = 0; i < s->n; i++) {
        if (i == (l->front ? 0 : l->first))
            for (int k = 0; k < common->n; k++)
                v->read[v->n_read++] = v->positions[v->n_positions++] = common->v[k];
        if (s->v[i].kind == SUB_NEW) {
            v->read[v->n_read++] = 1;
            continue;
        }
        if (s->v[i].kind == SUB_SLICE) {
            v->read[v->n_read++] = s->v[i].count;
            if (i < l->core)
                v->positions[v->n_positions++] = s->v[i].count;
        }
        v->windows[v->n_windows++] = i < l->core ? 1 : s->v[i].count;
        axis++;
    }
    for (; axis < all->n; axis++)
        v->read[v->n_read++] = v->windows[v->n_windows++] = all->v[axis];
}

static bool write_scatter(struct write *w, struct subs *s)
{
    struct positions p;
    struct dims common;
    struct shapes v;
    struct layout l;

    layout_of(&l, s, true);
    if (!common_shape(&common, s, l.array_dims))
        return false;
    shapes_of(&v, s, &l, &common, &w->dims);
    if (!value_prepare(w) || !value_broadcast(w, v.read, v.n_read))
        return false;
    memcpy(v.positions + v.n_positions, v.windows, (size_t)v.n_windows * sizeof *v.windows);
    if (!value_reshape(w, v.positions, v.n_positions + v.n_windows) ||
        !positions_of(&p, s, &l, true))
        return false;
    mlx_vector_array vec = mlx_vector_array_new_data(p.v, (size_t)p.n);
    bool ok = error_check(
        w->way->scatter(w->res, w->a, vec, w->value, p.axis, (size_t)p.n, default_stream));
    mlx_vector_array_free(vec);
    return ok;
}

static bool write_list(struct write *w, PyObject *const *o, Py_ssize_t n, bool tuple)
{
    struct subs s;
    bool ok = tuple ? subs_read_tuple(&s, &w->dims, *o) : subs_read(&s, &w->dims, o, n);

    if (ok && s.n_arrays)
        ok = write_scatter(w, &s);
    else if (ok)
        ok = w->dims.n ? write_slice(w, s.v, s.n) : write_all(w);
    subs_clear(&s);
    return ok;
}

/* ---- masks ---- */

/* Whether index is a mask, that is *mask then: a bool, an array of bool, a list of bools. */
static bool mask_from(mlx_array *mask, mlx_array_place *room, PyObject *index)
{
    room->array = NULL;
    if (is_array(index)) {
        *mask = array_of(index);
        return mlx_array_dtype(*mask) == MLX_BOOL;
    }
    *mask = mlx_array_at(room);
    if (PyBool_Check(index))
        return create_number(mask, index, WANT_ANY);
    if (!PyList_Check(index) && (PyTuple_Check(index) || !exchange_can(index)))
        return false;
    return create_array(mask, index, WANT_ANY) && mlx_array_dtype(*mask) == MLX_BOOL;
}

/* Sets *done if index is a mask, and has been written. */
static bool write_mask(struct write *w, PyObject *index, bool *done)
{
    mlx_array_place room;
    mlx_array mask;
    bool ok = true;

    if ((*done = mask_from(&mask, &room, index)))
        ok = error_check(mlx_masked_scatter(w->res, w->a, mask, w->value, default_stream));
    mlx_array_place_clear(&room);
    return ok && !PyErr_Occurred();
}

/* ---- any of them ---- */

static bool write_any(struct write *w, PyObject *index)
{
    bool done = false;

    if (PyTuple_Check(index))
        return write_list(w, &index, 1, true);
    enum sub_kind kind = sub_kind_of(index);
    bool may_mask = kind == SUB_ARRAY || kind == SUB_LIST || kind == SUB_NONE;
    if (may_mask && w->way == &ways[WRITE_SET] && !write_mask(w, index, &done))
        return false;
    if (done)
        return true;
    switch (kind) {
    case SUB_ELLIPSIS:
    case SUB_NEW:
        return write_all(w);
    case SUB_NONE:
        return sub_refuse(false);
    case SUB_INT:
    case SUB_SLICE:
    case SUB_ARRAY:
    case SUB_LIST:
        break;
    }
    return w->dims.n == 0 ? sub_no_axes() : write_list(w, &index, 1, false);
}

bool index_write(mlx_array *res, mlx_array a, PyObject *index, PyObject *value,
                 enum write_kind kind)
{
    struct write w = { .way = &ways[kind], .res = res, .a = a };
    bool ok = value_from(&w, value);

    dims_of(&w.dims, a);
    ok = ok && write_any(&w, index);
    mlx_array_place_clear(&w.value_room);
    mlx_array_place_clear(&w.shaped_room);
    return ok;
}

int array_write(PyObject *self, PyObject *index, PyObject *value)
{
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "__delitem__");
        return -1;
    }
    if (!array_check(self))
        return -1;
    mlx_array at = array_of(self);
    return index_write(&at, at, index, value, WRITE_SET) ? 0 : -1;
}
