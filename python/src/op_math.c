/* Functions by hand: scans, products, linear algebra, ops of neural networks. Their parameters are
 * those of the tables, by their numbers. */
#include <math.h>

#include "args.h"
#include "hand.h"

/* ---- reductions and scans ---- */

PyObject *hand_median(struct frame *f)
{
    int all[64];
    struct int_list axes = f->v[1].ints;

    if (!f->given[1]) {
        axes = (struct int_list){ all, mlx_array_ndim(f->v[0].array) };
        for (size_t i = 0; i < axes.n && i < 64; i++)
            all[i] = (int)i;
    }
    FRAME_RETURN(f, mlx_median(&f->out, f->v[0].array, axes.v, axes.n, f->v[2].b, f->v[3].stream));
}

PyObject *hand_minmax(struct frame *f)
{
    struct array_object *out[2] = { array_alloc(), array_alloc() };
    struct int_list axes = f->v[1].ints;
    mlx_array a = f->v[0].array, at[2];
    mlx_stream s = f->v[3].stream;
    bool keep = f->v[2].b, ok = out[0] && out[1];
    PyObject *res = NULL;

    for (int k = 0; ok && k < 2; k++)
        at[k] = mlx_array_at(&out[k]->place);
    if (ok && f->given[1])
        ok = error_check(mlx_min_axes(&at[0], a, axes.v, axes.n, keep, s)) &&
             error_check(mlx_max_axes(&at[1], a, axes.v, axes.n, keep, s));
    else if (ok)
        ok = error_check(mlx_min(&at[0], a, keep, s)) && error_check(mlx_max(&at[1], a, keep, s));
    if (ok)
        res = PyTuple_Pack(2, (PyObject *)out[0], (PyObject *)out[1]);
    Py_XDECREF((PyObject *)out[0]);
    Py_XDECREF((PyObject *)out[1]);
    return res;
}

typedef int (*scan_fn)(mlx_array *, const mlx_array, int, bool, bool, const mlx_stream);

/* a, axis, reverse, inclusive, stream; with a dtype, if the function has one, before the stream. */
static PyObject *scan(struct frame *f, scan_fn call)
{
    bool typed = f->sig->params[4].kind == KIND_DTYPE;
    mlx_stream s = f->v[typed ? 5 : 4].stream;
    mlx_array a = f->v[0].array, b;
    int axis = f->given[1] ? f->v[1].i : 0;

    if (typed && f->given[4]) {
        if (!(b = frame_temp(f)).ctx || !error_check(mlx_astype(&b, a, f->v[4].dtype, s)))
            return NULL;
        a = b;
    }
    if (!f->given[1]) {
        if (!(b = frame_temp(f)).ctx || !error_check(mlx_flatten(&b, a, 0, -1, s)))
            return NULL;
        a = b;
    }
    FRAME_RETURN(f, call(&f->out, a, axis, f->v[2].b, f->v[3].b, s));
}

PyObject *hand_cumsum(struct frame *f)
{
    return scan(f, mlx_cumsum);
}

PyObject *hand_cumprod(struct frame *f)
{
    return scan(f, mlx_cumprod);
}

PyObject *hand_cummax(struct frame *f)
{
    return scan(f, mlx_cummax);
}

PyObject *hand_cummin(struct frame *f)
{
    return scan(f, mlx_cummin);
}

PyObject *hand_logcumsumexp(struct frame *f)
{
    return scan(f, mlx_logcumsumexp);
}

/* A number is weak beside a, an array stays; *fill is empty without one. */
static bool fill_from(struct frame *f, mlx_array *fill)
{
    PyObject *o = f->slot[5];
    mlx_array_place *room;

    *fill = (mlx_array){ NULL };
    if (!f->given[5])
        return true;
    if (is_array(o) || is_number(o)) {
        room = (mlx_array_place *)frame_temp(f).ctx;
        return room && create_operand(fill, room, o, WANT(mlx_array_dtype(f->v[0].array)));
    }
    PyErr_Format(PyExc_ValueError, "[unique] fill_value must be a number or an array, not %s.",
                 error_type_name(o));
    return false;
}

PyObject *hand_unique(struct frame *f)
{
    mlx_vector_array vec = { NULL };
    mlx_array fill;
    PyObject *res = NULL;

    if (!fill_from(f, &fill))
        return NULL;
    if (error_check(mlx_unique(&vec, f->v[0].array, f->v[1].i, f->v[2].b, f->v[3].b, f->v[4].b,
                               fill, f->v[6].stream)))
        res = array_tuple(vec);
    mlx_vector_array_free(vec);
    if (res && PyTuple_Size(res) == 1) {
        PyObject *values = Py_NewRef(PyTuple_GetItem(res, 0));
        Py_DECREF(res);
        return values;
    }
    return res;
}

PyObject *hand_trace(struct frame *f)
{
    mlx_array a = f->v[0].array;
    mlx_dtype t = f->v[4].dtype;
    mlx_stream s = f->v[5].stream;

    if (!f->given[4]) { /* that of a sum of such elements */
        mlx_dtype of = mlx_array_dtype(a);
        bool narrow = mlx_dtype_size(of) < 4;
        t = of;
        if (of == MLX_BOOL || (dtype_is_integer(of) && narrow))
            t = of == MLX_BOOL || of >= MLX_INT8 ? MLX_INT32 : MLX_UINT32;
    }
    FRAME_RETURN(f, mlx_trace(&f->out, a, f->v[1].i, f->v[2].i, f->v[3].i, t, s));
}

/* ---- products ---- */

PyObject *hand_tensordot(struct frame *f)
{
    mlx_array a = f->v[0].array, b = f->v[1].array;
    PyObject *axes = f->slot[2];
    struct int_list list[2];
    int n = 2;

    if (!axes || is_intlike(axes)) {
        if (axes && !int_from(axes, &n))
            return NULL;
        FRAME_RETURN(f, mlx_tensordot_axis(&f->out, a, b, n, f->v[3].stream));
    }
    if (!PySequence_Check(axes) || PySequence_Size(axes) != 2) {
        PyErr_SetString(PyExc_ValueError, "[tensordot] axes must be a list of two lists.");
        return NULL;
    }
    for (int k = 0; k < 2; k++) {
        PyObject *item = PySequence_GetItem(axes, k);
        bool ok = item && frame_ints(f, &list[k], item, "axes", false);
        Py_XDECREF(item);
        if (!ok)
            return NULL;
    }
    FRAME_RETURN(f, mlx_tensordot(&f->out, a, b, list[0].v, list[0].n, list[1].v, list[1].n,
                                  f->v[3].stream));
}

PyObject *hand_einsum(struct frame *f)
{
    mlx_vector_array operands;

    if (!frame_rest_arrays(f, &operands))
        return NULL;
    FRAME_RETURN(f, mlx_einsum(&f->out, f->v[0].text, operands, f->v[1].stream));
}

/* A tuple of n positions of a list, from number *next on. */
static PyObject *path_step(mlx_vector_int positions, size_t *next, int n)
{
    PyObject *res = PyTuple_New(n);

    for (int i = 0; res && i < n; i++) {
        int v = 0;
        PyObject *o =
            error_check(mlx_vector_int_get(&v, positions, (*next)++)) ? PyLong_FromLong(v) : NULL;
        if (!o || PyTuple_SetItem(res, i, o) < 0)
            Py_CLEAR(res);
    }
    return res;
}

PyObject *hand_einsum_path(struct frame *f)
{
    mlx_vector_int positions = mlx_vector_int_new(), counts = mlx_vector_int_new();
    mlx_string info = mlx_string_new();
    mlx_vector_array operands;
    PyObject *path = NULL, *res = NULL;
    size_t next = 0;

    if (frame_rest_arrays(f, &operands) &&
        error_check(mlx_einsum_path(&positions, &counts, &info, f->v[0].text, operands)))
        path = PyList_New(0);
    for (size_t i = 0; path && i < mlx_vector_int_size(counts); i++) {
        int n = 0;
        PyObject *step =
            error_check(mlx_vector_int_get(&n, counts, i)) ? path_step(positions, &next, n) : NULL;
        if (!step || PyList_Append(path, step) < 0)
            Py_CLEAR(path);
        Py_XDECREF(step);
    }
    if (path)
        res = Py_BuildValue("(Os)", path, mlx_string_data(info));
    Py_XDECREF(path);
    mlx_vector_int_free(positions);
    mlx_vector_int_free(counts);
    mlx_string_free(info);
    return res;
}

PyObject *hand_conv_general(struct frame *f)
{
    static const int zero = 0, one = 1;
    PyObject *padding = f->slot[3];
    struct int_list lo = { &zero, 1 }, hi;
    struct int_list of[3] = { f->v[2].ints, f->v[4].ints, f->v[5].ints };

    for (int k = 0; k < 3; k++)
        if (!of[k].v)
            of[k] = (struct int_list){ &one, 1 };
    hi = lo;
    if (padding && is_list(padding) && list_size(padding) == 2 &&
        !is_intlike(list_item(padding, 0))) {
        for (int k = 0; k < 2; k++) {
            PyObject *item = list_get(padding, k);
            bool ok = item && frame_ints(f, k ? &hi : &lo, item, "padding", false);
            Py_XDECREF(item);
            if (!ok)
                return NULL;
        }
    } else if (padding) {
        if (!frame_ints(f, &lo, padding, "padding", true))
            return NULL;
        hi = lo;
    }
    FRAME_RETURN(f, mlx_conv_general(&f->out, f->v[0].array, f->v[1].array, of[0].v, of[0].n, lo.v,
                                     lo.n, hi.v, hi.n, of[1].v, of[1].n, of[2].v, of[2].n,
                                     f->v[6].i, f->v[7].b, f->v[8].stream));
}

/* What comes before and behind the longer vector, by the name of a mode. */
static bool convolve_padding(const char *mode, int n, int pad[2])
{
    if (strcmp(mode, "full") == 0) {
        pad[0] = pad[1] = n - 1;
    } else if (strcmp(mode, "valid") == 0) {
        pad[0] = pad[1] = 0;
    } else if (strcmp(mode, "same") == 0) {
        pad[0] = n / 2;
        pad[1] = n % 2 ? n / 2 : n / 2 - 1;
    } else {
        PyErr_SetString(PyExc_ValueError, "[convolve] Invalid mode.");
        return false;
    }
    return true;
}

PyObject *hand_convolve(struct frame *f)
{
    static const int column[3] = { 1, -1, 1 }, flat = -1;
    mlx_array in = f->v[0].array, weight = f->v[1].array, wide, narrow, out;
    mlx_stream s = f->v[3].stream;
    int pad[2];

    if (mlx_array_ndim(in) != 1 || mlx_array_ndim(weight) != 1) {
        PyErr_SetString(PyExc_ValueError, "[convolve] Inputs must be 1D.");
        return NULL;
    }
    if (mlx_array_size(in) == 0 || mlx_array_size(weight) == 0) {
        PyErr_SetString(PyExc_ValueError, "[convolve] Inputs cannot be empty.");
        return NULL;
    }
    if (mlx_array_size(in) < mlx_array_size(weight)) {
        in = f->v[1].array;
        weight = f->v[0].array;
    }
    wide = frame_temp(f);
    narrow = frame_temp(f);
    out = frame_temp(f);
    if (!out.ctx || !convolve_padding(f->v[2].text, mlx_array_shape(weight)[0], pad) ||
        !error_check(mlx_reshape(&wide, in, column, 3, s)) ||
        !error_check(mlx_reshape(&narrow, weight, column, 3, s)) ||
        !error_check(mlx_conv_general(&out, wide, narrow, NULL, 0, &pad[0], 1, &pad[1], 1, NULL, 0,
                                      NULL, 0, 1, true, s)))
        return NULL;
    FRAME_RETURN(f, mlx_reshape(&f->out, out, &flat, 1, s));
}

/* ---- linear algebra ---- */

PyObject *hand_linalg_norm(struct frame *f)
{
    static const int none[1] = { 0 };
    mlx_array a = f->v[0].array;
    PyObject *ord = f->slot[1];
    mlx_stream s = f->v[4].stream;
    bool keep = f->v[3].b;
    /* Without axes: NULL; with an empty list of them: something else. */
    const int *axis = !f->given[2] ? NULL : f->v[2].ints.n ? f->v[2].ints.v : none;
    size_t n = f->given[2] ? f->v[2].ints.n : 0;

    if (!f->given[1])
        FRAME_RETURN(f, mlx_linalg_norm_l2(&f->out, a, axis, n, keep, s));
    if (PyUnicode_Check(ord)) {
        const char *text = PyUnicode_AsUTF8AndSize(ord, NULL);
        if (!text)
            return NULL;
        FRAME_RETURN(f, mlx_linalg_norm_matrix(&f->out, a, text, axis, n, keep, s));
    }
    double number = PyFloat_AsDouble(ord);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        args_type_error(f->sig, "ord", "a number or a str", ord);
        return NULL;
    }
    FRAME_RETURN(f, mlx_linalg_norm(&f->out, a, number, axis, n, keep, s));
}

PyObject *hand_linalg_svd(struct frame *f)
{
    mlx_vector_array vec = { NULL };
    PyObject *res = NULL;

    if (error_check(mlx_linalg_svd(&vec, f->v[0].array, f->v[1].b, f->v[2].stream)))
        res = array_tuple(vec);
    mlx_vector_array_free(vec);
    if (res && !f->v[1].b) {
        PyObject *values = Py_NewRef(PyTuple_GetItem(res, 0));
        Py_DECREF(res);
        return values;
    }
    return res;
}

/* ---- neural networks ---- */

PyObject *hand_fast_rope(struct frame *f)
{
    PyObject *offset = f->slot[5];
    mlx_optional_float base = { (float)f->v[3].f, f->given[3] };
    float scale = (float)f->v[4].f;
    mlx_array freqs = f->v[6].array, at;
    mlx_stream s = f->v[7].stream;
    int number;

    if (!is_array(offset) && is_intlike(offset)) {
        if (!int_from(offset, &number))
            return NULL;
        FRAME_RETURN(f, mlx_fast_rope(&f->out, f->v[0].array, f->v[1].i, f->v[2].b, base, scale,
                                      number, freqs, s));
    }
    if (!frame_to_array(f, &at, offset, WANT_ANY))
        return NULL;
    FRAME_RETURN(f, mlx_fast_rope_dynamic(&f->out, f->v[0].array, f->v[1].i, f->v[2].b, base, scale,
                                          at, freqs, s));
}

PyObject *hand_fast_attention(struct frame *f)
{
    PyObject *mask = f->slot[4];
    const char *mode = "";
    mlx_array mask_array = { NULL };

    if (f->given[4] && PyUnicode_Check(mask)) {
        if (!(mode = PyUnicode_AsUTF8AndSize(mask, NULL)))
            return NULL;
        if (strcmp(mode, "causal") != 0) {
            PyErr_Format(PyExc_ValueError,
                         "[scaled_dot_product_attention] invalid mask option '%s'. Must be "
                         "'causal', or an array.",
                         mode);
            return NULL;
        }
    } else if (f->given[4] && !frame_to_array(f, &mask_array, mask, WANT_ANY)) {
        return NULL;
    }
    FRAME_RETURN(f, mlx_fast_scaled_dot_product_attention(
                        &f->out, f->v[0].array, f->v[1].array, f->v[2].array, (float)f->v[3].f,
                        mode, mask_array, f->v[5].array, f->v[7].stream));
}
