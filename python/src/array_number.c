/* The operators. Numbers beside an array take a dtype from it, as functions of two operands do;
 * what is neither number nor array is an error, as in MLX, and not left to the other operand. */
#include "array.h"
#include "create.h"

typedef int (*binary_fn)(mlx_array *, const mlx_array, const mlx_array, const mlx_stream);
typedef int (*unary_fn)(mlx_array *, const mlx_array, const mlx_stream);

struct binary_op {
    binary_fn call;
    const char *what; /* "addition" */
    bool no_floats;   /* for integers and bool only */
    bool one_way;     /* an array must be on the left */
    bool arrays_only; /* numbers are refused */
};

static bool refuse(const struct binary_op *op, PyObject *other, const char *where)
{
    if (PyErr_Occurred())
        return false;
    PyErr_Format(other == Py_None || is_number(other) ? PyExc_TypeError : PyExc_ValueError,
                 "Cannot perform %s%s on an mlx.core.array and %s", where, op->what,
                 error_type_name(other));
    return false;
}

/* Handles of the two operands, one of which is an array; room for the other. where: of the
 * operation, for texts. */
static bool operands(const struct binary_op *op, mlx_array in[2], mlx_array_place *room,
                     PyObject *const o[2], const char *where)
{
    for (int i = 0; i < 2; i++) {
        if (is_array(o[i])) {
            in[i] = array_of(o[i]);
        } else if (!is_array(o[1 - i]) || (op->arrays_only && is_number(o[i])) ||
                   !create_operand(&in[i], room, o[i], WANT(mlx_array_dtype(array_of(o[1 - i]))))) {
            return refuse(op, o[i], where);
        }
    }
    for (int i = 0; op->no_floats && i < 2; i++)
        if (dtype_is_float(mlx_array_dtype(in[i])) || mlx_array_dtype(in[i]) == MLX_COMPLEX64) {
            PyErr_Format(PyExc_ValueError, "Floating point types not allowed with %s.", op->what);
            return false;
        }
    return true;
}

static PyObject *binary(const struct binary_op *op, PyObject *a, PyObject *b)
{
    PyObject *const o[2] = { a, b };
    mlx_array_place room = { NULL };
    mlx_array in[2];
    PyObject *res = NULL;

    if (op->one_way && !is_array(a))
        Py_RETURN_NOTIMPLEMENTED;
    if (operands(op, in, &room, o, "")) {
        struct array_object *out = array_alloc();
        if (out) {
            mlx_array at = mlx_array_at(&out->place);
            res = array_done(out, op->call(&at, in[0], in[1], (mlx_stream){ NULL }));
        }
    }
    if (room.array)
        mlx_array_place_clear(&room);
    return res;
}

/* The object itself gets the result; arrays that shared its values keep them. A division that would
 * change integers into floats is refused. */
static PyObject *in_place(const struct binary_op *op, PyObject *a, PyObject *b)
{
    PyObject *const o[2] = { a, b };
    mlx_array_place room = { NULL };
    mlx_array in[2];
    if (op->call == mlx_divide && is_array(a) && !dtype_is_float(mlx_array_dtype(array_of(a))) &&
        mlx_array_dtype(array_of(a)) != MLX_COMPLEX64) {
        PyErr_SetString(PyExc_ValueError,
                        "In place division cannot cast to non-floating point type.");
        return NULL;
    }
    bool ok = operands(op, in, &room, o, "inplace ") &&
              error_check(op->call(&(mlx_array){ in[0].ctx }, in[0], in[1], (mlx_stream){ NULL }));

    mlx_array_place_clear(&room);
    return ok ? Py_NewRef(a) : NULL;
}

/* name, function of the library, text, flags */
#define OPERATORS(X)                                                                               \
    X(add, mlx_add, "addition", false, false)                                                      \
    X(subtract, mlx_subtract, "subtraction", false, false)                                         \
    X(multiply, mlx_multiply, "multiplication", false, false)                                      \
    X(true_divide, mlx_divide, "division", false, false)                                           \
    X(floor_divide, mlx_floor_divide, "floor division", false, false)                              \
    X(remainder, mlx_remainder, "modulus", false, false)                                           \
    X(matrix_multiply, mlx_matmul, "matrix multiplication", false, true, true)                     \
    X(and, mlx_bitwise_and, "bitwise and", true, true)                                             \
    X(or, mlx_bitwise_or, "bitwise or", true, true)                                                \
    X(xor, mlx_bitwise_xor, "bitwise xor", true, true)                                             \
    X(lshift, mlx_left_shift, "left shift", true, true)                                            \
    X(rshift, mlx_right_shift, "right shift", true, true)

#define OPERATOR(name, ...)                                                                        \
    static const struct binary_op op_##name = { __VA_ARGS__ };                                     \
    static PyObject *number_##name(PyObject *a, PyObject *b)                                       \
    {                                                                                              \
        return binary(&op_##name, a, b);                                                           \
    }                                                                                              \
    static PyObject *number_inplace_##name(PyObject *a, PyObject *b)                               \
    {                                                                                              \
        return in_place(&op_##name, a, b);                                                         \
    }
OPERATORS(OPERATOR)

static const struct binary_op op_power = { mlx_power, "power", false, false };

static bool no_modulus(PyObject *modulus)
{
    if (modulus != Py_None)
        PyErr_SetString(PyExc_TypeError, "Powers of arrays have no modulus.");
    return modulus == Py_None;
}

static PyObject *number_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return no_modulus(modulus) ? binary(&op_power, a, b) : NULL;
}

static PyObject *number_inplace_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return no_modulus(modulus) ? in_place(&op_power, a, b) : NULL;
}

/* ---- one operand ---- */

static PyObject *unary(unary_fn call, PyObject *a)
{
    struct array_object *out;
    mlx_array at;

    if (!is_array(a)) {
        PyErr_SetString(PyExc_ValueError, "The array was not initialized.");
        return NULL;
    }
    if (!(out = array_alloc()))
        return NULL;
    at = mlx_array_at(&out->place);
    return array_done(out, call(&at, array_of(a), (mlx_stream){ NULL }));
}

static PyObject *number_negative(PyObject *a)
{
    return unary(mlx_negative, a);
}

static PyObject *number_absolute(PyObject *a)
{
    return unary(mlx_abs, a);
}

static PyObject *number_invert(PyObject *a)
{
    if (is_array(a) && (dtype_is_float(mlx_array_dtype(array_of(a))) ||
                        mlx_array_dtype(array_of(a)) == MLX_COMPLEX64)) {
        PyErr_SetString(PyExc_ValueError,
                        "Floating point types not allowed with bitwise inversion.");
        return NULL;
    }
    return unary(mlx_bitwise_invert, a);
}

static PyObject *number_positive(PyObject *a)
{
    return is_array(a) ? array_wrap(array_of(a)) : unary(mlx_negative, a);
}

/* ---- comparisons ---- */

static const struct binary_op comparisons[] = {
    [Py_LT] = { mlx_less, "less than", false, false },
    [Py_LE] = { mlx_less_equal, "less than or equal", false, false },
    [Py_EQ] = { mlx_equal, "comparison", false, false },
    [Py_NE] = { mlx_not_equal, "comparison", false, false },
    [Py_GT] = { mlx_greater, "greater than", false, false },
    [Py_GE] = { mlx_greater_equal, "greater than or equal", false, false },
};

static PyObject *compare(PyObject *a, PyObject *b, int how)
{
    bool same = how == Py_EQ || how == Py_NE;

    if (same && !is_array(b) && b != Py_None && !is_number(b) && !exchange_can(b))
        return PyBool_FromLong(how == Py_NE);
    return binary(&comparisons[how], a, b);
}

const PyType_Slot array_number_slots[] = {
#define SLOT(name, ...)                                                                            \
    { Py_nb_##name, number_##name }, { Py_nb_inplace_##name, number_inplace_##name },
    OPERATORS(SLOT)
#undef SLOT
        { Py_nb_power, number_power },
    { Py_nb_inplace_power, number_inplace_power },
    { Py_nb_negative, number_negative },
    { Py_nb_positive, number_positive },
    { Py_nb_absolute, number_absolute },
    { Py_nb_invert, number_invert },
    { Py_nb_bool, array_as_bool },
    { Py_nb_int, array_as_int },
    { Py_nb_index, array_as_index },
    { Py_nb_float, array_as_float },
    { Py_tp_richcompare, compare },
    { 0, NULL },
};
