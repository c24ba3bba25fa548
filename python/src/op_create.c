/* Functions by hand: new arrays. The parameters are those of functions/create.def, by their
 * numbers. */
#include "args.h"
#include "hand.h"

static PyObject *filled_like(struct frame *f, PyObject *value)
{
    mlx_array a = f->v[0].array, v = frame_temp(f);
    mlx_dtype t = f->given[1] ? f->v[1].dtype : mlx_array_dtype(a);

    if (!v.ctx || !create_number(&v, value, WANT(t)))
        return NULL;
    FRAME_RETURN(f, mlx_full_like(&f->out, a, v, t, f->v[2].stream));
}

PyObject *hand_zeros_like(struct frame *f)
{
    return filled_like(f, Py_False);
}

PyObject *hand_ones_like(struct frame *f)
{
    return filled_like(f, Py_True);
}

/* The values of full() and full_like(): numbers are weak beside dtype t. */
static bool values_from(struct frame *f, mlx_array *out, int i, struct want want)
{
    mlx_array_place *room = (mlx_array_place *)frame_temp(f).ctx;

    return room && (create_operand(out, room, f->slot[i], want) ||
                    args_type_error(f->sig, "vals", "a number or an array", f->slot[i]));
}

PyObject *hand_full(struct frame *f)
{
    mlx_array vals;

    if (!values_from(f, &vals, 1, (struct want){ f->v[2].dtype, f->given[2] }))
        return NULL;
    FRAME_RETURN(f, mlx_full(&f->out, f->v[0].ints.v, f->v[0].ints.n, vals, mlx_array_dtype(vals),
                             f->v[3].stream));
}

PyObject *hand_full_like(struct frame *f)
{
    mlx_array a = f->v[0].array, vals;
    mlx_dtype t = f->given[2] ? f->v[2].dtype : mlx_array_dtype(a);

    if (!values_from(f, &vals, 1, WANT(t)))
        return NULL;
    FRAME_RETURN(f, mlx_full_like(&f->out, a, vals, t, f->v[3].stream));
}

/* ---- ranges ---- */

/* A number, and the dtype that it suggests. */
static bool bound_from(struct frame *f, int i, double *v, mlx_dtype *t)
{
    PyObject *o = f->slot[i];

    if (PyBool_Check(o)) {
        PyErr_Format(PyExc_ValueError, "bool not supported for %s.", f->sig->name);
        return false;
    }
    if (PyFloat_Check(o) || !is_intlike(o)) {
        *v = PyFloat_AsDouble(o);
        *t = MLX_FLOAT32;
        if (!PyErr_Occurred())
            return true;
        PyErr_Clear();
        return args_type_error(f->sig, f->sig->params[i].name, "a number", o);
    }
    PyObject *index = PyNumber_Index(o);
    int overflow = 0;
    long long n = index ? PyLong_AsLongLongAndOverflow(index, &overflow) : 0;
    Py_XDECREF(index);
    if (overflow)
        PyErr_SetString(PyExc_OverflowError, "An integer does not fit 64 bits.");
    *v = (double)n;
    *t = n == (int32_t)n ? MLX_INT32 : MLX_INT64;
    return !PyErr_Occurred();
}

PyObject *hand_arange(struct frame *f)
{
    double v[3] = { 0, 0, 1 };
    mlx_dtype t[3] = { MLX_INT32, MLX_INT32, MLX_INT32 };

    /* A single number is the end, and has no name but stop. */
    bool alone = f->n_by_position > 0 ? f->given[0] : f->slot[1] != NULL;
    if (!alone || (f->slot[0] == Py_None) || (!f->given[0] && !f->given[1])) {
        args_type_error(f->sig, f->slot[0] == Py_None ? "start" : "stop", "a number", Py_None);
        return NULL;
    }
    for (int i = 0; i < 3; i++) /* one number alone is the end */
        if (f->given[i] && !bound_from(f, i, &v[i == 0 && !f->given[1] ? 1 : i], &t[i]))
            return NULL;
    mlx_dtype own = dtype_promote(t[0], dtype_promote(t[1], t[2]));
    FRAME_RETURN(f, mlx_arange(&f->out, v[0], v[1], v[2], f->given[3] ? f->v[3].dtype : own,
                               f->v[4].stream));
}

PyObject *hand_linspace(struct frame *f)
{
    mlx_stream s = f->v[5].stream;
    int num = f->v[2].i, first = 0, step = 1;
    mlx_dtype t = f->v[4].dtype, unused;
    double start, stop;

    if (!bound_from(f, 0, &start, &unused) || !bound_from(f, 1, &stop, &unused))
        return NULL;
    if (f->v[3].b || num <= 0 || num == INT32_MAX)
        FRAME_RETURN(f, mlx_linspace(&f->out, start, stop, num, t, s));
    /* Without its end, a range is all but the last of one more number. */
    mlx_array all = frame_temp(f);
    if (!all.ctx || !error_check(mlx_linspace(&all, start, stop, num + 1, t, s)))
        return NULL;
    FRAME_RETURN(f, mlx_slice(&f->out, all, &first, 1, &num, 1, &step, 1, s));
}
