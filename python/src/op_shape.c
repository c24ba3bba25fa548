/* Functions by hand: shapes, and lists of arrays. The parameters are those of functions/shape.def,
 * by their numbers. */
#include "args.h"
#include "hand.h"

/* ---- shapes ---- */

PyObject *hand_array_reshape(struct frame *f)
{
    struct int_list shape = { NULL, 0 };
    bool none;

    if (!frame_rest_ints(f, &shape, "shape", &none))
        return NULL;
    FRAME_RETURN(f, mlx_reshape(&f->out, f->v[0].array, shape.v, shape.n, f->v[1].stream));
}

PyObject *hand_array_transpose(struct frame *f)
{
    struct int_list axes = { NULL, 0 };
    mlx_array a = f->v[0].array;
    bool none;

    if (!frame_rest_ints(f, &axes, "axes", &none))
        return NULL;
    FRAME_RETURN(f, none ? mlx_transpose(&f->out, a, f->v[1].stream)
                         : mlx_transpose_axes(&f->out, a, axes.v, axes.n, f->v[1].stream));
}

PyObject *hand_matrix_transpose(struct frame *f)
{
    mlx_array a = f->v[0].array;

    if (mlx_array_ndim(a) >= 2)
        FRAME_RETURN(f, mlx_swapaxes(&f->out, a, -1, -2, f->v[1].stream));
    PyErr_SetString(PyExc_ValueError,
                    "[matrix_transpose] Input array must have at least 2 dimensions.");
    return NULL;
}

PyObject *hand_array_namespace(struct frame *f)
{
    if (f->given[1]) {
        PyErr_SetString(PyExc_ValueError,
                        "Explicitly specifying api_version is not yet implemented.");
        return NULL;
    }
    return Py_NewRef(core_module);
}

typedef int (*unary_fn)(mlx_array *, const mlx_array, const mlx_stream);

/* One array gives one, several give a list. */
static PyObject *at_least(struct frame *f, unary_fn call)
{
    mlx_vector_array in, out;
    PyObject *res = NULL;
    bool ok = true;

    if (f->n_rest == 1) {
        mlx_array a;
        if (!frame_to_array(f, &a, f->rest[0], WANT_ANY))
            return NULL;
        FRAME_RETURN(f, call(&f->out, a, f->v[0].stream));
    }
    if (!frame_rest_arrays(f, &in))
        return NULL;
    out = mlx_vector_array_new();
    for (size_t k = 0; ok && k < mlx_vector_array_size(in); k++) {
        mlx_array_place room = { NULL };
        mlx_array a = mlx_array_at(&room);

        ok = error_check(mlx_vector_array_get(&a, in, k)) &&
             error_check(call(&a, a, f->v[0].stream)) &&
             error_check(mlx_vector_array_append_value(out, a));
        mlx_array_place_clear(&room);
    }
    if (ok)
        res = array_list(out);
    mlx_vector_array_free(out);
    return res;
}

PyObject *hand_atleast_1d(struct frame *f)
{
    return at_least(f, mlx_atleast_1d);
}

PyObject *hand_atleast_2d(struct frame *f)
{
    return at_least(f, mlx_atleast_2d);
}

PyObject *hand_atleast_3d(struct frame *f)
{
    return at_least(f, mlx_atleast_3d);
}

/* The result of a call that wrote a list, as a list or tuple. */
static PyObject *finish(mlx_vector_array vec, int rc, bool tuple)
{
    PyObject *res = rc ? error_raise() : tuple ? array_tuple(vec) : array_list(vec);

    mlx_vector_array_free(vec);
    return res;
}

PyObject *hand_broadcast_arrays(struct frame *f)
{
    mlx_vector_array in, out = { NULL };

    if (!frame_rest_arrays(f, &in))
        return NULL;
    int rc = mlx_broadcast_arrays(&out, in, f->v[0].stream);
    return finish(out, rc, true);
}

PyObject *hand_meshgrid(struct frame *f)
{
    mlx_vector_array in, out = { NULL };

    if (!frame_rest_arrays(f, &in))
        return NULL;
    int rc = mlx_meshgrid(&out, in, f->v[0].b, f->v[1].text, f->v[2].stream);
    return finish(out, rc, true);
}

PyObject *hand_split(struct frame *f)
{
    mlx_vector_array out = { NULL };
    struct int_list list;
    int n, rc;

    if (is_intlike(f->slot[1])) {
        if (!int_from(f->slot[1], &n))
            return NULL;
        rc = mlx_split(&out, f->v[0].array, n, f->v[2].i, f->v[3].stream);
    } else {
        if (!frame_ints(f, &list, f->slot[1], "indices_or_sections", false))
            return NULL;
        rc = mlx_split_sections(&out, f->v[0].array, list.v, list.n, f->v[2].i, f->v[3].stream);
    }
    return finish(out, rc, false);
}

/* The shapes that two have together, at the end of out; false with an exception if there is none.
 */
static bool broadcast(struct int_list *a, const struct int_list *b, int *out)
{
    size_t n = a->n > b->n ? a->n : b->n;

    for (size_t i = 1; i <= n; i++) {
        int x = i <= a->n ? a->v[a->n - i] : 1, y = i <= b->n ? b->v[b->n - i] : 1;

        if (x != y && x != 1 && y != 1) {
            PyErr_Format(
                PyExc_ValueError,
                "[broadcast_shapes] Shapes with %d and %d in one place cannot be broadcast.", x, y);
            return false;
        }
        out[n - i] = x == 1 ? y : x;
    }
    *a = (struct int_list){ out, n };
    return true;
}

PyObject *hand_broadcast_shapes(struct frame *f)
{
    enum { MAX = 64 };
    struct int_list all = { NULL, 0 }, next;
    int out[MAX], last[MAX];

    if (f->n_rest == 0) {
        PyErr_SetString(PyExc_ValueError, "[broadcast_shapes] Must provide at least one shape.");
        return NULL;
    }
    for (Py_ssize_t k = 0; k < f->n_rest; k++) {
        f->n_numbers = 0; /* what came before is in last */
        if (!frame_ints(f, &next, f->rest[k], "every shape", false))
            return NULL;
        if (next.n > MAX) {
            PyErr_SetString(PyExc_ValueError, "[broadcast_shapes] Too many dimensions.");
            return NULL;
        }
        if (!broadcast(&all, &next, out))
            return NULL;
        memcpy(last, out, all.n * sizeof *out);
        all.v = last;
    }
    PyObject *res = PyTuple_New((Py_ssize_t)all.n);
    for (size_t i = 0; res && i < all.n; i++) {
        PyObject *v = PyLong_FromLong(all.v[i]);
        if (!v || PyTuple_SetItem(res, (Py_ssize_t)i, v) < 0)
            Py_CLEAR(res);
    }
    return res;
}

PyObject *hand_as_strided(struct frame *f)
{
    enum { MAX = 64 };
    mlx_array a = f->v[0].array;
    struct int_list shape = f->v[1].ints;
    int64_t strides[MAX];

    if (!f->given[1])
        shape = (struct int_list){ mlx_array_shape(a), mlx_array_ndim(a) };
    size_t n = shape.n;
    if (f->given[2]) {
        Py_ssize_t size = PySequence_Size(f->slot[2]);
        if (size < 0)
            return NULL;
        n = (size_t)size;
    }
    if (n > MAX || shape.n > MAX) {
        PyErr_SetString(PyExc_ValueError, "[as_strided] Too many dimensions.");
        return NULL;
    }
    int64_t step = 1;
    for (size_t i = n; i-- > 0;) {
        PyObject *v = f->given[2] ? PySequence_GetItem(f->slot[2], (Py_ssize_t)i) : NULL;
        strides[i] = v ? PyLong_AsLongLong(v) : step;
        step *= i < shape.n ? shape.v[i] : 1;
        Py_XDECREF(v);
        if (PyErr_Occurred())
            return NULL;
    }
    FRAME_RETURN(
        f, mlx_as_strided(&f->out, a, shape.v, shape.n, strides, n, f->v[3].size, f->v[4].stream));
}

/* ---- padding ---- */

/* Two ints, or one for both. */
static bool pad_pair(struct frame *f, PyObject *o, int pair[2])
{
    struct int_list list;

    if (!frame_ints(f, &list, o, "pad_width", true))
        return false;
    if (list.n != 1 && list.n != 2) {
        PyErr_Format(PyExc_ValueError, "[pad] %zu widths for one axis.", list.n);
        return false;
    }
    pair[0] = list.v[0];
    pair[1] = list.v[list.n - 1];
    return true;
}

PyObject *hand_pad(struct frame *f)
{
    enum { MAX = 64 };
    PyObject *width = f->slot[1];
    mlx_array a = f->v[0].array, value;
    size_t ndim = mlx_array_ndim(a);
    int axes[MAX], low[MAX], high[MAX], pair[2] = { 0, 0 };
    bool each = is_list(width) && list_size(width) > 0 && !is_intlike(list_item(width, 0));
    Py_ssize_t n = each ? list_size(width) : 1;

    if (n > MAX || ndim > MAX || (each && n != 1 && (size_t)n != ndim)) {
        PyErr_Format(PyExc_ValueError,
                     "[pad] Invalid number of padding sizes passed to pad with axes of size %zu",
                     ndim);
        return NULL;
    }
    for (size_t i = 0; i < ndim; i++) {
        if (i < (size_t)n) {
            PyObject *item = each ? list_get(width, (Py_ssize_t)i) : Py_NewRef(width);
            bool ok = item && pad_pair(f, item, pair);
            Py_XDECREF(item);
            if (!ok)
                return NULL;
        }
        axes[i] = (int)i;
        low[i] = pair[0];
        high[i] = pair[1];
    }
    mlx_array_place *room = (mlx_array_place *)frame_temp(f).ctx;
    PyObject *given = f->slot[3] ? f->slot[3] : Py_False; /* false is 0 of every dtype */
    if (!room)
        return NULL;
    if (!create_operand(&value, room, given, WANT(mlx_array_dtype(a)))) {
        args_type_error(f->sig, "constant_values", "a number or an array", given);
        return NULL;
    }
    FRAME_RETURN(f, mlx_pad(&f->out, a, axes, ndim, low, ndim, high, ndim, value, f->v[2].text,
                            f->v[4].stream));
}

/* ---- elements by position ---- */

/* The array flattened, in the frame. */
static bool flatten(struct frame *f, mlx_array *out, mlx_stream s)
{
    *out = frame_temp(f);
    return out->ctx && error_check(mlx_flatten(out, f->v[0].array, 0, -1, s));
}

PyObject *hand_take(struct frame *f)
{
    mlx_stream s = f->v[3].stream;
    mlx_array indices;

    if (is_number(f->slot[1]) && !PyLong_Check(f->slot[1])) {
        args_type_error(f->sig, "indices", "an int or an array", f->slot[1]);
        return NULL;
    }
    if (!frame_to_array(f, &indices, f->slot[1], WANT_ANY))
        return NULL;
    FRAME_RETURN(f, f->given[2] ? mlx_take_axis(&f->out, f->v[0].array, indices, f->v[2].i, s)
                                : mlx_take(&f->out, f->v[0].array, indices, s));
}

PyObject *hand_take_along_axis(struct frame *f)
{
    mlx_array a = f->v[0].array;

    if (!f->given[2] && !flatten(f, &a, f->v[3].stream))
        return NULL;
    FRAME_RETURN(f, mlx_take_along_axis(&f->out, a, f->v[1].array, f->given[2] ? f->v[2].i : 0,
                                        f->v[3].stream));
}

PyObject *hand_put_along_axis(struct frame *f)
{
    mlx_array a = f->v[0].array, put;
    mlx_stream s = f->v[4].stream;

    if (f->given[3])
        FRAME_RETURN(f, mlx_put_along_axis(&f->out, a, f->v[1].array, f->v[2].array, f->v[3].i, s));
    if (!flatten(f, &a, s) || !(put = frame_temp(f)).ctx ||
        !error_check(mlx_put_along_axis(&put, a, f->v[1].array, f->v[2].array, 0, s)))
        return NULL;
    FRAME_RETURN(f, mlx_reshape(&f->out, put, mlx_array_shape(f->v[0].array),
                                mlx_array_ndim(f->v[0].array), s));
}

PyObject *hand_roll(struct frame *f)
{
    mlx_array a = f->v[0].array;
    struct int_list shift = f->v[1].ints, axes = f->v[2].ints, all;
    mlx_stream s = f->v[3].stream;

    if (!f->given[2])
        FRAME_RETURN(f, mlx_roll(&f->out, a, shift.v, shift.n, s));
    if (is_intlike(f->slot[2])) /* several shifts along one axis add up */
        FRAME_RETURN(f, mlx_roll_axis(&f->out, a, shift.v, shift.n, axes.v[0], s));
    if (is_intlike(f->slot[1]) && axes.n > 1) { /* the same for every axis */
        if (!frame_repeat(f, &all, shift.v[0], axes.n))
            return NULL;
        shift = all;
    }
    FRAME_RETURN(f, mlx_roll_axes(&f->out, a, shift.v, shift.n, axes.v, axes.n, s));
}

/* ---- order ---- */

/* A list of arrays of one array or a list of them. */
static bool one_or_more(struct frame *f, mlx_vector_array *out, int i)
{
    PyObject *o = f->slot[i], *list;
    bool ok;

    if (!is_array(o))
        return frame_to_arrays(f, out, o, f->sig->params[i].name);
    if (!(list = PyList_New(0)) || PyList_Append(list, o) < 0) {
        Py_XDECREF(list);
        return false;
    }
    ok = frame_to_arrays(f, out, list, f->sig->params[i].name);
    Py_DECREF(list);
    return ok;
}

PyObject *hand_depends(struct frame *f)
{
    mlx_vector_array inputs, dependencies, out = { NULL };
    PyObject *res = NULL;

    if (!one_or_more(f, &inputs, 0) || !one_or_more(f, &dependencies, 1))
        return NULL;
    if (error_check(mlx_depends(&out, inputs, dependencies)))
        res = array_list(out);
    mlx_vector_array_free(out);
    if (res && is_array(f->slot[0])) {
        PyObject *first = Py_NewRef(PyList_GetItem(res, 0));
        Py_DECREF(res);
        return first;
    }
    return res;
}
