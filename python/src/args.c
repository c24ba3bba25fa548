#include "args.h"

#include "device.h"
#include "random_state.h"

/* ---- what went wrong ---- */

bool args_type_error(const struct signature *sig, const char *param, const char *wanted,
                     PyObject *got)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s(): %s must be %s, not %s.", sig->name, param, wanted,
                     error_type_name(got));
    return false;
}

static bool count_error(const struct frame *f, Py_ssize_t n)
{
    PyErr_Format(PyExc_TypeError, "%s() takes %d positional arguments, not %zd.", f->sig->name,
                 f->sig->n_pos, n);
    return false;
}

static bool missing_error(const struct frame *f, int i)
{
    PyErr_Format(PyExc_TypeError, "%s(): the argument %s is missing.", f->sig->name,
                 f->sig->params[i].name);
    return false;
}

/* ---- which argument is which parameter ---- */

static int find_keyword(const struct signature *sig, PyObject *name)
{
    for (int i = sig->n_pos_only; i < sig->n; i++)
        if (sig->names[i] == name)
            return i;
    for (int i = sig->n_pos_only; i < sig->n; i++)
        if (PyUnicode_Compare(sig->names[i], name) == 0)
            return i;
    return -1;
}

static bool bind_keywords(struct frame *f, PyObject *const *values, PyObject *keywords)
{
    Py_ssize_t n = PyTuple_Size(keywords);

    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *name = PyTuple_GetItem(keywords, k);
        int i = find_keyword(f->sig, name);

        if (i < 0 || f->slot[i]) {
            PyErr_Format(PyExc_TypeError,
                         i < 0 ? "%s() has no keyword argument %U."
                               : "%s() got the argument %U twice.",
                         f->sig->name, name);
            return false;
        }
        f->slot[i] = values[k];
    }
    return true;
}

static bool bind(struct frame *f, const struct passed *p)
{
    const struct signature *sig = f->sig;
    Py_ssize_t taken = 0;
    int i = 0;

    if (p->self)
        f->slot[i++] = p->self;
    while (taken < p->n && i < sig->n_pos)
        f->slot[i++] = p->args[taken++];
    f->n_by_position = (uint8_t)i;
    f->rest = taken ? p->args + taken : p->args; /* NULL without arguments */
    f->n_rest = p->n - taken;
    if (f->n_rest && !sig->rest)
        return count_error(f, p->n);
    for (; i < sig->n; i++)
        f->slot[i] = NULL;
    if (p->keywords && !bind_keywords(f, p->args + p->n, p->keywords))
        return false;
    for (i = 0; i < sig->n_required; i++)
        if (!f->slot[i])
            return missing_error(f, i);
    return true;
}

/* ---- numbers ---- */

bool is_intlike(PyObject *o)
{
    return PyLong_Check(o) || PyIndex_Check(o);
}

bool int_from(PyObject *o, int *out)
{
    int overflow = 0;
    PyObject *index = PyLong_Check(o) ? NULL : PyNumber_Index(o);

    if (!index && PyErr_Occurred())
        return false;
    long v = PyLong_AsLongAndOverflow(index ? index : o, &overflow);
    Py_XDECREF(index);
    if (v == -1 && PyErr_Occurred())
        return false;
    if (overflow || v != (int)v) {
        PyErr_Format(PyExc_OverflowError,
                     "Integer value %S is outside the supported range [-2147483648, 2147483647].",
                     o);
        return false;
    }
    *out = (int)v;
    return true;
}

static int *frame_numbers(struct frame *f, size_t n)
{
    int *v;

    if (n <= (size_t)(FRAME_NUMBERS - f->n_numbers)) {
        v = f->numbers + f->n_numbers;
        f->n_numbers += (uint8_t)n;
        return v;
    }
    v = f->n_blocks < FRAME_KEPT ? PyMem_Malloc(n * sizeof *v) : NULL;
    if (!v)
        PyErr_NoMemory();
    else
        f->blocks[f->n_blocks++] = v;
    return v;
}

/* Not text, not a table: something whose items have an order. */
static bool is_sequence(PyObject *o)
{
    return is_list(o) ||
           (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyDict_Check(o));
}

bool frame_ints(struct frame *f, struct int_list *out, PyObject *o, const char *name, bool one)
{
    const char *wanted = one ? "an int or a sequence of ints" : "a sequence of ints";
    int *v;

    if (one && is_intlike(o)) {
        if (!(v = frame_numbers(f, 1)) || !int_from(o, v))
            return false;
        *out = (struct int_list){ v, 1 };
        return true;
    }
    if (!is_sequence(o))
        return args_type_error(f->sig, name, wanted, o);
    Py_ssize_t n = is_list(o) ? list_size(o) : PySequence_Size(o);
    if (n < 0 || !(v = frame_numbers(f, (size_t)n)))
        return false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = is_list(o) ? list_get(o, i) : PySequence_GetItem(o, i);
        bool ok = item && (is_intlike(item) || args_type_error(f->sig, name, wanted, o)) &&
                  int_from(item, &v[i]);
        Py_XDECREF(item);
        if (!ok)
            return false;
    }
    *out = (struct int_list){ v, (size_t)n };
    return true;
}

bool frame_repeat(struct frame *f, struct int_list *out, int v, size_t n)
{
    int *all = frame_numbers(f, n);

    for (size_t i = 0; all && i < n; i++)
        all[i] = v;
    *out = (struct int_list){ all, n };
    return all != NULL;
}

bool frame_rest_ints(struct frame *f, struct int_list *out, const char *name, bool *none)
{
    int *v;

    *none = f->n_rest == 0 || (f->n_rest == 1 && f->rest[0] == Py_None);
    if (*none)
        return true;
    if (f->n_rest == 1)
        return frame_ints(f, out, f->rest[0], name, true);
    if (!(v = frame_numbers(f, (size_t)f->n_rest)))
        return false;
    for (Py_ssize_t k = 0; k < f->n_rest; k++)
        if (!is_intlike(f->rest[k]))
            return args_type_error(f->sig, name, "ints", f->rest[k]);
        else if (!int_from(f->rest[k], &v[k]))
            return false;
    *out = (struct int_list){ v, (size_t)f->n_rest };
    return true;
}

/* An int for all of n, or a list of as many. */
static bool frame_tuple(struct frame *f, int i, int n)
{
    const struct param *p = &f->sig->params[i];
    struct int_list list;

    if (!frame_ints(f, &list, f->slot[i], p->name, true))
        return false;
    if (list.n != (size_t)n && (list.n != 1 || is_sequence(f->slot[i]))) {
        PyErr_Format(PyExc_TypeError, "%s(): %s must be an int or %d ints, not %zu.", f->sig->name,
                     p->name, n, list.n);
        return false;
    }
    for (int k = 0; k < n; k++)
        f->v[i].tuple[k] = list.v[list.n == 1 ? 0 : k];
    return true;
}

/* ---- arrays ---- */

static mlx_array_place *frame_place(struct frame *f)
{
    if (f->n_arrays == FRAME_ARRAYS) {
        PyErr_SetString(PyExc_RuntimeError, "A call makes more arrays than it has room for.");
        return NULL;
    }
    f->arrays[f->n_arrays].array = NULL;
    return &f->arrays[f->n_arrays++];
}

mlx_array frame_temp(struct frame *f)
{
    mlx_array_place *place = frame_place(f);

    return place ? mlx_array_at(place) : (mlx_array){ NULL };
}

bool frame_to_array(struct frame *f, mlx_array *out, PyObject *o, struct want want)
{
    mlx_array_place *place;

    if (is_array(o)) {
        *out = array_of(o);
        return true;
    }
    if (!(place = frame_place(f)))
        return false;
    *out = mlx_array_at(place);
    return create_array(out, o, want);
}

static bool convert_array(struct frame *f, int i)
{
    PyObject *o = f->slot[i];

    if (is_array(o)) {
        f->v[i].array = array_of(o);
        return true;
    }
    if (is_list(o) || is_number(o) || exchange_can(o))
        return frame_to_array(f, &f->v[i].array, o, WANT_ANY);
    return args_type_error(f->sig, f->sig->params[i].name, "an array", o);
}

static bool convert_operand(struct frame *f, int i, struct want want)
{
    mlx_array_place *place;
    PyObject *o = f->slot[i];

    if (is_array(o)) {
        f->v[i].array = array_of(o);
        return true;
    }
    if (!(place = frame_place(f)))
        return false;
    return create_operand(&f->v[i].array, place, o, want) ||
           args_type_error(f->sig, f->sig->params[i].name, "a number or an array", o);
}

/* Two operands: a number takes its dtype from the array beside it. */
static bool convert_pair(struct frame *f, int i)
{
    PyObject *a = f->slot[i], *b = f->slot[i + 1];
    int first = !is_array(a) && (is_array(b) || (is_number(a) && !is_number(b))) ? i + 1 : i;
    int other = i + i + 1 - first;

    if (!convert_operand(f, first, WANT_ANY))
        return false;
    struct want want = WANT(mlx_array_dtype(f->v[first].array));
    want.given = !is_number(f->slot[first]);
    return convert_operand(f, other, want);
}

/* The items of anything that can be iterated, as a tuple, which nobody changes; a new reference. */
static PyObject *items_of(const struct frame *f, PyObject *o, const char *name)
{
    PyObject *items;

    if (PyList_Check(o))
        return PyList_AsTuple(o);
    items = is_array(o) || is_sequence(o) ? PySequence_Tuple(o) : NULL;
    if (!items)
        args_type_error(f->sig, name, "a list of arrays", o);
    return items;
}

bool frame_to_arrays(struct frame *f, mlx_vector_array *out, PyObject *o, const char *name)
{
    PyObject *items = f->n_vecs < FRAME_KEPT ? items_of(f, o, name) : NULL;
    bool ok = items != NULL;
    Py_ssize_t n = ok ? PyTuple_Size(items) : 0;

    if (!ok)
        return false;
    *out = f->vecs[f->n_vecs++] = mlx_vector_array_new();
    for (Py_ssize_t k = 0; ok && k < n; k++) {
        PyObject *item = PyTuple_GetItem(items, k);
        mlx_array_place room = { NULL };
        mlx_array a = mlx_array_at(&room);

        if (is_array(item))
            a = array_of(item);
        else
            ok = (exchange_can(item) || args_type_error(f->sig, name, "a list of arrays", item)) &&
                 create_array(&a, item, WANT_ANY);
        ok = ok && error_check(mlx_vector_array_append_value(*out, a));
        mlx_array_place_clear(&room);
    }
    Py_DECREF(items);
    return ok;
}

bool frame_rest_arrays(struct frame *f, mlx_vector_array *out)
{
    PyObject *rest = PyList_New(f->n_rest);
    bool ok = rest != NULL;

    for (Py_ssize_t k = 0; ok && k < f->n_rest; k++)
        ok = PyList_SetItem(rest, k, Py_NewRef(f->rest[k])) == 0;
    ok = ok && frame_to_arrays(f, out, rest, "every argument");
    Py_XDECREF(rest);
    return ok;
}

/* ---- one argument ---- */

static bool convert_text(struct frame *f, int i)
{
    PyObject *o = f->slot[i];

    if (!PyUnicode_Check(o))
        return args_type_error(f->sig, f->sig->params[i].name, "a str", o);
    f->v[i].text = PyUnicode_AsUTF8AndSize(o, NULL);
    return f->v[i].text != NULL;
}

static bool convert_float(struct frame *f, int i)
{
    PyObject *o = f->slot[i];

    f->v[i].f = PyFloat_AsDouble(o);
    if (f->v[i].f == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            return args_type_error(f->sig, f->sig->params[i].name, "a float", o);
        }
        return false;
    }
    return true;
}

static bool convert_int(struct frame *f, int i)
{
    PyObject *o = f->slot[i];

    return (is_intlike(o) || args_type_error(f->sig, f->sig->params[i].name, "an int", o)) &&
           int_from(o, &f->v[i].i);
}

static bool convert_size(struct frame *f, int i)
{
    PyObject *index = is_intlike(f->slot[i]) ? PyNumber_Index(f->slot[i]) : NULL;

    if (!index)
        return args_type_error(f->sig, f->sig->params[i].name, "an int", f->slot[i]);
    f->v[i].size = PyLong_AsSize_t(index);
    Py_DECREF(index);
    if (!PyErr_Occurred())
        return true;
    PyErr_Clear();
    return args_type_error(f->sig, f->sig->params[i].name, "an int from 0 on", f->slot[i]);
}

static bool convert_bool(struct frame *f, int i)
{
    PyObject *o = f->slot[i];

    f->v[i].b = o == Py_True;
    return PyBool_Check(o) || args_type_error(f->sig, f->sig->params[i].name, "a bool", o);
}

static bool convert_stream(struct frame *f, int i)
{
    bool owned = false;

    if (!stream_from(f->slot[i], &f->v[i].stream, &owned))
        return args_type_error(f->sig, f->sig->params[i].name, "a stream, a device or None",
                               f->slot[i]);
    if (owned)
        f->stream = f->v[i].stream;
    return true;
}

static bool convert_dtype(struct frame *f, int i)
{
    if (!is_dtype(f->slot[i]))
        return args_type_error(f->sig, f->sig->params[i].name, "a Dtype", f->slot[i]);
    f->v[i].dtype = dtype_of(f->slot[i]);
    return true;
}

static bool convert(struct frame *f, int i)
{
    const struct param *p = &f->sig->params[i];

    switch ((enum kind)p->kind) {
    case KIND_ARRAY:
    case KIND_KEY:
        return convert_array(f, i);
    case KIND_OPERAND: /* the second of two is converted with the first */
        if (i + 1 < f->sig->n && f->sig->params[i + 1].kind == KIND_OPERAND && f->slot[i + 1])
            return convert_pair(f, i);
        return (i && f->sig->params[i - 1].kind == KIND_OPERAND) || convert_operand(f, i, WANT_ANY);
    case KIND_WEAK:
        return convert_operand(f, i, WANT(mlx_array_dtype(f->v[0].array)));
    case KIND_ARRAYS:
        return frame_to_arrays(f, &f->v[i].arrays, f->slot[i], p->name);
    case KIND_INT:
        return convert_int(f, i);
    case KIND_SIZE:
        return convert_size(f, i);
    case KIND_FLOAT:
        return convert_float(f, i);
    case KIND_BOOL:
        return convert_bool(f, i);
    case KIND_STR:
        return convert_text(f, i);
    case KIND_DTYPE:
        return convert_dtype(f, i);
    case KIND_AXES:
    case KIND_INTS:
        return frame_ints(f, &f->v[i].ints, f->slot[i], p->name, p->kind == KIND_AXES);
    case KIND_INT2:
    case KIND_INT3:
        return frame_tuple(f, i, p->kind == KIND_INT2 ? 2 : 3);
    case KIND_STREAM:
        return convert_stream(f, i);
    case KIND_OBJECT:
        break;
    }
    return true;
}

static bool next_key(struct frame *f, int i)
{
    f->v[i].array = frame_temp(f);
    return f->v[i].array.ctx && random_state_next(&f->v[i].array);
}

/* ---- frames ---- */

bool frame_open(struct frame *f, const struct signature *sig, const struct passed *p)
{
    f->sig = sig;
    f->n_arrays = f->n_objects = f->n_vecs = f->n_blocks = f->n_numbers = 0;
    f->stream.ctx = NULL;
    if (!bind(f, p))
        return false;
    for (int i = 0; i < sig->n; i++) {
        const struct param *param = &sig->params[i];
        PyObject *o = f->slot[i];

        f->given[i] = o && (o != Py_None || !param->nullable);
        if (!f->given[i] && param->kind != KIND_KEY) {
            f->v[i] = param->value;
            f->given[i] = !o && param->has_default;
        } else if (f->given[i] ? !convert(f, i) : !next_key(f, i)) {
            frame_close(f);
            return false;
        }
    }
    return true;
}

void frame_close(struct frame *f)
{
    for (int i = 0; i < f->n_arrays; i++)
        mlx_array_place_clear(&f->arrays[i]);
    for (int i = 0; i < f->n_objects; i++)
        Py_DECREF(f->objects[i]);
    for (int i = 0; i < f->n_vecs; i++)
        mlx_vector_array_free(f->vecs[i]);
    for (int i = 0; i < f->n_blocks; i++)
        PyMem_Free(f->blocks[i]);
    if (f->stream.ctx)
        mlx_stream_free(f->stream);
}

struct array_object *frame_begin(struct frame *f, const struct signature *sig,
                                 const struct passed *p)
{
    struct array_object *out;

    if (!frame_open(f, sig, p))
        return NULL;
    out = array_alloc();
    if (out)
        f->out = mlx_array_at(&out->place);
    else
        frame_close(f);
    return out;
}

PyObject *frame_arrays(struct frame *f, mlx_vector_array vec, bool tuple, int rc)
{
    PyObject *res = rc ? error_raise() : tuple ? array_tuple(vec) : array_list(vec);

    mlx_vector_array_free(vec);
    frame_close(f);
    return res;
}

PyObject *frame_pair(struct frame *f, struct array_object *const out[2], int rc)
{
    PyObject *res = NULL;

    if (rc)
        error_raise();
    else
        res = PyTuple_Pack(2, (PyObject *)out[0], (PyObject *)out[1]);
    Py_XDECREF((PyObject *)out[0]);
    Py_XDECREF((PyObject *)out[1]);
    frame_close(f);
    return res;
}

bool args_init(void)
{
    for (int k = 0; all_signatures[k]; k++)
        for (int i = 0; i < all_signatures[k]->n; i++) {
            const struct signature *sig = all_signatures[k];
            if (!(sig->names[i] = PyUnicode_InternFromString(sig->params[i].name)))
                return false;
        }
    return true;
}
