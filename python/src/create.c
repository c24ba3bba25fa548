#include "create.h"

/* ---- numbers ---- */

bool is_number(PyObject *o)
{
    return PyFloat_CheckExact(o) || PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o);
}

/* A number of Python, as far as arrays can hold it. */
struct number {
    enum { NUMBER_BOOL, NUMBER_INT, NUMBER_FLOAT, NUMBER_COMPLEX } kind;
    int64_t i; /* of bool and int */
    double re, im;
};

static bool number_from(struct number *n, PyObject *o)
{
    int overflow = 0;
    bool is_int = PyLong_Check(o); /* the cheapest question */

    if (!is_int && PyFloat_Check(o)) {
        *n = (struct number){ NUMBER_FLOAT, 0, PyFloat_AsDouble(o), 0 };
        return true;
    }
    if (!is_int && PyComplex_Check(o)) {
        *n = (struct number){ NUMBER_COMPLEX, 0, PyComplex_RealAsDouble(o),
                              PyComplex_ImagAsDouble(o) };
        return true;
    }
    n->kind = PyBool_Check(o) ? NUMBER_BOOL : NUMBER_INT;
    n->i = PyLong_AsLongLongAndOverflow(o, &overflow);
    n->re = (double)n->i;
    n->im = 0;
    if (overflow)
        PyErr_SetString(PyExc_OverflowError, "An integer does not fit 64 bits.");
    return !overflow;
}

static mlx_dtype natural_dtype(const struct number *n)
{
    switch (n->kind) {
    case NUMBER_BOOL:
        return MLX_BOOL;
    case NUMBER_INT:
        return n->i == (int32_t)n->i ? MLX_INT32 : MLX_INT64;
    case NUMBER_FLOAT:
        return MLX_FLOAT32;
    case NUMBER_COMPLEX:
        break;
    }
    return MLX_COMPLEX64;
}

static bool number_array(mlx_array *res, const struct number *n, mlx_dtype t)
{
    if (n->kind == NUMBER_COMPLEX && t == MLX_COMPLEX64)
        return error_check(mlx_array_set_complex(res, (float)n->re, (float)n->im));
    /* The low bytes of an int are what it is in a narrower type. */
    if (n->kind <= NUMBER_INT && dtype_is_integer(t))
        return error_check(mlx_array_set_data(res, &n->i, NULL, 0, t));
    return error_check(mlx_array_set_number(res, n->re, t));
}

bool create_number(mlx_array *res, PyObject *o, struct want want)
{
    struct number n;

    return number_from(&n, o) && number_array(res, &n, want.given ? want.dtype : natural_dtype(&n));
}

/* Whether an int fits a type of less than 64 bits. */
static bool fits(int64_t v, mlx_dtype t)
{
    int bits = (int)mlx_dtype_size(t) * 8;
    bool is_signed = t >= MLX_INT8;
    int64_t max = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;

    return v <= max && v >= (is_signed ? -max - 1 : 0);
}

bool create_weak(mlx_array *res, PyObject *o, mlx_dtype t)
{
    struct number n;

    if (!number_from(&n, o))
        return false;
    if (n.kind == NUMBER_INT && t == MLX_BOOL)
        t = MLX_INT32;
    else if (n.kind == NUMBER_FLOAT && !dtype_is_float(t))
        t = MLX_FLOAT32;
    else if (n.kind == NUMBER_COMPLEX)
        t = MLX_COMPLEX64;
    else if (n.kind == NUMBER_INT && dtype_is_integer(t) && mlx_dtype_size(t) < 8 &&
             !fits(n.i, t)) {
        PyErr_Format(PyExc_ValueError, "Converting %lld to %s would result in overflow.",
                     (long long)n.i, dtype_name(t));
        return false;
    }
    return number_array(res, &n, t);
}

/* ---- lists ---- */

enum { DIMS_MAX = 32, BYTES_ON_STACK = 1024 };

/* What a walk over nested lists finds out. */
struct nest {
    int shape[DIMS_MAX];
    int ndim;
    bool arrays; /* there are arrays among the items */
    bool wide;   /* ints beyond 32 bits */
    int kind;    /* the highest kind of number, -1 without items */
};

static bool ragged(void)
{
    PyErr_SetString(PyExc_ValueError, "Initialization encountered non-uniform length.");
    return false;
}

/* Whether an array among the items at this depth has the shape that is left. */
static bool fits_shape(const struct nest *n, mlx_array a, int depth)
{
    int ndim = (int)mlx_array_ndim(a);

    return depth + ndim == n->ndim && (ndim == 0 || memcmp(mlx_array_shape(a), n->shape + depth,
                                                           (size_t)ndim * sizeof(int)) == 0);
}

static bool scan_leaf(struct nest *n, PyObject *o, int depth)
{
    struct number v;
    bool number = is_number(o);

    if (!number && (is_array(o) || PyObject_HasAttrString(o, "__mlx_array__"))) {
        n->arrays = true;
        return !is_array(o) || fits_shape(n, array_of(o), depth) || ragged();
    }
    if (!number) {
        PyErr_Format(PyExc_ValueError, "Invalid type %s received in array initialization.",
                     o == Py_None ? "NoneType" : error_type_name(o));
        return false;
    }
    if (depth != n->ndim)
        return ragged();
    if (!number_from(&v, o))
        return false;
    if ((int)v.kind > n->kind)
        n->kind = (int)v.kind;
    n->wide |= v.kind == NUMBER_INT && v.i != (int32_t)v.i;
    return true;
}

static bool too_deep(void)
{
    PyErr_SetString(PyExc_ValueError, "Initialization encountered too many dimensions.");
    return false;
}

/* The first items on the way down say the shape; scan_list sees whether all others agree. */
static bool scan_shape(struct nest *n, PyObject *o)
{
    *n = (struct nest){ .kind = -1 };
    while (is_list(o)) {
        Py_ssize_t size = list_size(o);

        if (n->ndim == DIMS_MAX || size > INT32_MAX)
            return too_deep();
        n->shape[n->ndim++] = (int)size;
        if (size == 0)
            return true;
        o = list_item(o, 0);
    }
    if (is_array(o)) {
        mlx_array a = array_of(o);
        for (int d = 0; d < (int)mlx_array_ndim(a); d++) {
            if (n->ndim == DIMS_MAX)
                return too_deep();
            n->shape[n->ndim++] = mlx_array_shape(a)[d];
        }
    }
    return true;
}

static bool scan_list(struct nest *n, PyObject *list, int depth)
{
    Py_ssize_t size = list_size(list);
    bool ok = true;

    if (size != n->shape[depth])
        return ragged();
    for (Py_ssize_t i = 0; ok && i < size; i++) {
        PyObject *o = list_get(list, i);
        bool extra = o && is_list(o) && depth + 1 == n->ndim;

        if (extra)
            PyErr_SetString(PyExc_ValueError, "Initialization encountered extra dimension.");
        ok = o && !extra && (is_list(o) ? scan_list(n, o, depth + 1) : scan_leaf(n, o, depth + 1));
        Py_XDECREF(o);
    }
    return ok;
}

/* Where the numbers of a list go. The dtype is one of those that write_number knows. */
struct writer {
    char *at;
    mlx_dtype dtype;
    int ndim;
};

static void write_number(struct writer *w, const struct number *n)
{
    union {
        bool b;
        int64_t i;
        float f[2];
        double d;
    } v = { .i = n->i };
    size_t size = mlx_dtype_size(w->dtype);

    if (w->dtype == MLX_BOOL)
        v.b = n->i != 0;
    else if (w->dtype == MLX_FLOAT64)
        v.d = n->re;
    else if (!dtype_is_integer(w->dtype)) {
        v.f[0] = (float)n->re;
        v.f[1] = (float)n->im;
    }
    memcpy(w->at, &v, size);
    w->at += size;
}

static bool write_list(struct writer *w, PyObject *list, int depth)
{
    Py_ssize_t size = list_size(list);
    struct number v;

    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *o = list_item(list, i);

        if (depth + 1 < w->ndim) {
            if (!write_list(w, o, depth + 1))
                return false;
        } else {
            if (!number_from(&v, o))
                return false;
            write_number(w, &v);
        }
    }
    return true;
}

/* Casts *res, which is new; to float64 on the CPU, because no GPU has it. */
static bool cast(mlx_array *res, mlx_dtype t)
{
    if (mlx_array_dtype(*res) == t)
        return true;
    mlx_stream s = t == MLX_FLOAT64 ? mlx_default_cpu_stream_new() : (mlx_stream){ NULL };
    bool ok = error_check(mlx_astype(res, *res, t, s));
    mlx_stream_free(s);
    return ok;
}

/* The dtype that the numbers of a list are written in: the one wanted, if writing is a cast of the
 * kind that MLX does, else the list's own. */
static mlx_dtype list_dtype(const struct nest *n, struct want want)
{
    static const mlx_dtype natural[] = { MLX_BOOL, MLX_INT32, MLX_FLOAT32, MLX_COMPLEX64 };
    mlx_dtype own = n->kind < 0 ? MLX_FLOAT32 : natural[n->kind];

    if (want.given &&
        (n->kind <= NUMBER_INT
             ? dtype_is_integer(want.dtype) || want.dtype == MLX_FLOAT32 || want.dtype == MLX_BOOL
             : want.dtype == MLX_FLOAT64 && n->kind < NUMBER_COMPLEX))
        return want.dtype;
    return own == MLX_INT32 && n->wide ? MLX_INT64 : own;
}

static bool numbers_array(mlx_array *res, PyObject *list, const struct nest *n, struct want want)
{
    char small[BYTES_ON_STACK];
    struct writer w = { small, list_dtype(n, want), n->ndim };
    size_t bytes = mlx_dtype_size(w.dtype);
    char *big = NULL;

    for (int d = 0; d < n->ndim; d++)
        bytes *= (size_t)n->shape[d];
    if (bytes > sizeof small && !(w.at = big = PyMem_Malloc(bytes))) {
        PyErr_NoMemory();
        return false;
    }
    bool ok = write_list(&w, list, 0) &&
              error_check(mlx_array_set_data(res, big ? big : small, n->shape, n->ndim, w.dtype)) &&
              (!want.given || cast(res, want.dtype));
    PyMem_Free(big);
    return ok;
}

/* Stacks the items of a list in which there are arrays. */
static bool stack_list(mlx_array *res, PyObject *list, struct want want)
{
    mlx_vector_array vec = mlx_vector_array_new();
    Py_ssize_t size = list_size(list);
    bool ok = true;

    for (Py_ssize_t i = 0; ok && i < size; i++) {
        mlx_array_place room = { NULL };
        mlx_array a = mlx_array_at(&room);
        PyObject *o = list_get(list, i);

        ok = o && create_array(&a, o, WANT_ANY) &&
             error_check(mlx_vector_array_append_value(vec, a));
        Py_XDECREF(o);
        mlx_array_place_clear(&room);
    }
    ok = ok && error_check(mlx_stack(res, vec, (mlx_stream){ NULL })) &&
         (!want.given || cast(res, want.dtype));
    mlx_vector_array_free(vec);
    return ok;
}

static bool list_array(mlx_array *res, PyObject *list, struct want want)
{
    struct nest n;

    if (!scan_shape(&n, list) || !scan_list(&n, list, 0))
        return false;
    return n.arrays ? stack_list(res, list, want) : numbers_array(res, list, &n, want);
}

/* ---- anything ---- */

bool create_array(mlx_array *res, PyObject *o, struct want want)
{
    if (is_array(o))
        return error_check(want.given && mlx_array_dtype(array_of(o)) != want.dtype
                               ? mlx_astype(res, array_of(o), want.dtype, (mlx_stream){ NULL })
                               : mlx_array_set(res, array_of(o)));
    if (is_list(o))
        return list_array(res, o, want);
    if (is_number(o))
        return create_number(res, o, want);
    if (exchange_can(o))
        return exchange_import(res, o, want);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "Invalid type %s received in array initialization.",
                     error_type_name(o));
    return false;
}

/* What is no number but says which one it is, such as a fraction: complex, whatever it says. */
static bool create_from_method(mlx_array *res, PyObject *o)
{
    static const char *const methods[] = { "__complex__", "__float__", "__index__" };

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct number n;
        if (!PyObject_HasAttrString((PyObject *)Py_TYPE(o), methods[i]))
            continue;
        PyObject *value = PyObject_CallMethod(o, methods[i], NULL);
        bool ok = value && is_number(value) && number_from(&n, value);
        Py_XDECREF(value);
        if (!ok)
            return false;
        n.kind = NUMBER_COMPLEX;
        return number_array(res, &n, MLX_COMPLEX64);
    }
    return false;
}

bool create_operand(mlx_array *res, mlx_array_place *room, PyObject *o, struct want want)
{
    if (is_array(o)) {
        *res = array_of(o);
        return true;
    }
    room->array = NULL;
    *res = mlx_array_at(room);
    if (is_number(o))
        return want.given ? create_weak(res, o, want.dtype) : create_number(res, o, want);
    return exchange_can(o) ? exchange_import(res, o, want) : create_from_method(res, o);
}
