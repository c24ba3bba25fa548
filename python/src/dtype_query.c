/* What is known about dtypes: categories, limits, questions about them. */
#include "args.h"
#include "hand.h"

/* An Enum of Python with these names and the numbers from 0, whose repr is its str. */
PyObject *enum_add(PyObject *m, const char *name, const char *const *members, PyObject **objects)
{
    PyObject *module = PyImport_ImportModule("enum");
    PyObject *base = module ? PyObject_GetAttrString(module, "Enum") : NULL;
    PyObject *values = PyDict_New(), *made = NULL, *str = NULL;
    PyObject *place = PyUnicode_FromString("mlx.core");

    for (int k = 0; values && members[k]; k++) {
        PyObject *v = PyLong_FromLong(k);
        if (!v || PyDict_SetItemString(values, members[k], v) < 0)
            Py_CLEAR(values);
        Py_XDECREF(v);
    }
    if (base && values)
        made = PyObject_CallFunction(base, "sO", name, values);
    if (made && (!(str = PyObject_GetAttrString(base, "__str__")) ||
                 PyObject_SetAttrString(made, "__repr__", str) < 0 || !place ||
                 PyObject_SetAttrString(made, "__module__", place) < 0))
        Py_CLEAR(made);
    for (int k = 0; made && members[k]; k++)
        if (!(objects[k] = PyObject_GetAttrString(made, members[k])) ||
            PyModule_AddObjectRef(m, members[k], objects[k]) < 0)
            Py_CLEAR(made);
    if (made && PyModule_AddObjectRef(m, name, made) < 0)
        Py_CLEAR(made);
    Py_XDECREF(place);
    Py_XDECREF(str);
    Py_XDECREF(values);
    Py_XDECREF(base);
    Py_XDECREF(module);
    return made;
}

/* ---- categories ---- */

/* Each category and the one that it is part of. */
enum { COMPLEX, FLOATING, INEXACT, SIGNED, UNSIGNED, INTEGER, NUMBER, GENERIC, CATEGORY_COUNT };
static const struct {
    const char *name;
    int parent;
} categories[CATEGORY_COUNT] = {
    [COMPLEX] = { "complexfloating", INEXACT },
    [FLOATING] = { "floating", INEXACT },
    [INEXACT] = { "inexact", NUMBER },
    [SIGNED] = { "signedinteger", INTEGER },
    [UNSIGNED] = { "unsignedinteger", INTEGER },
    [INTEGER] = { "integer", NUMBER },
    [NUMBER] = { "number", GENERIC },
    [GENERIC] = { "generic", GENERIC },
};
static PyObject *category_objects[CATEGORY_COUNT];

static int category_of(mlx_dtype t)
{
    if (t == MLX_BOOL)
        return GENERIC;
    if (t == MLX_COMPLEX64)
        return COMPLEX;
    return dtype_is_float(t) ? FLOATING : t >= MLX_INT8 ? SIGNED : UNSIGNED;
}

static int find_category(PyObject *o)
{
    for (int k = 0; k < CATEGORY_COUNT; k++)
        if (category_objects[k] == o)
            return k;
    return -1;
}

static bool is_part_of(int part, int whole)
{
    while (part != whole && part != GENERIC)
        part = categories[part].parent;
    return part == whole;
}

PyObject *hand_issubdtype(struct frame *f)
{
    PyObject *a = f->slot[0], *b = f->slot[1];
    int part = find_category(a), whole = find_category(b);

    if ((part < 0 && !is_dtype(a)) || (whole < 0 && !is_dtype(b))) {
        args_type_error(f->sig, part < 0 && !is_dtype(a) ? "arg1" : "arg2",
                        "a Dtype or a DtypeCategory", part < 0 && !is_dtype(a) ? a : b);
        return NULL;
    }
    if (whole < 0)
        return PyBool_FromLong(part < 0 && dtype_of(a) == dtype_of(b));
    return PyBool_FromLong(is_part_of(part < 0 ? category_of(dtype_of(a)) : part, whole));
}

/* Whether t is of a kind that a dtype or a text names; -1 with an exception set if it is neither.
 */
static int is_kind(mlx_dtype t, PyObject *kind)
{
    static const struct {
        const char *text;
        int category;
    } kinds[] = {
        { "signed integer", SIGNED },  { "unsigned integer", UNSIGNED }, { "integral", INTEGER },
        { "real floating", FLOATING }, { "complex floating", COMPLEX },  { "numeric", NUMBER },
    };
    const char *text;

    if (is_dtype(kind))
        return dtype_of(kind) == t;
    if (!PyUnicode_Check(kind)) {
        PyErr_SetString(PyExc_ValueError,
                        "[isdtype] `kind` must be a dtype, a string, or a tuple of "
                        "dtypes and strings.");
        return -1;
    }
    if (!(text = PyUnicode_AsUTF8AndSize(kind, NULL)))
        return -1;
    if (strcmp(text, "bool") == 0)
        return t == MLX_BOOL;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k].text, text) == 0)
            return is_part_of(category_of(t), kinds[k].category);
    PyErr_Format(PyExc_ValueError, "[isdtype] Unknown data type kind: '%s'.", text);
    return -1;
}

PyObject *hand_isdtype(struct frame *f)
{
    PyObject *kind = f->slot[1];
    mlx_dtype t = f->v[0].dtype;
    int is = 0;

    if (!PyTuple_Check(kind))
        is = is_kind(t, kind);
    for (Py_ssize_t k = 0; PyTuple_Check(kind) && !is && k < PyTuple_Size(kind); k++)
        is = is_kind(t, PyTuple_GetItem(kind, k));
    return is < 0 ? NULL : PyBool_FromLong(is);
}

/* The dtype of an array or a dtype. */
static bool dtype_given(PyObject *o, mlx_dtype *t, const char *otherwise)
{
    if (is_array(o))
        *t = mlx_array_dtype(array_of(o));
    else if (is_dtype(o))
        *t = dtype_of(o);
    else
        PyErr_SetString(PyExc_ValueError, otherwise);
    return !PyErr_Occurred();
}

PyObject *hand_can_cast(struct frame *f)
{
    mlx_dtype from, to = f->v[1].dtype;

    if (!dtype_given(f->slot[0], &from, "[can_cast] `from_` must be an array or a dtype."))
        return NULL;
    return PyBool_FromLong(dtype_promote(from, to) == to);
}

PyObject *hand_result_type(struct frame *f)
{
    mlx_dtype t = MLX_BOOL, next;

    if (f->n_rest == 0) {
        PyErr_SetString(PyExc_ValueError, "[result_type] At least one array or dtype is required.");
        return NULL;
    }
    for (Py_ssize_t k = 0; k < f->n_rest; k++) {
        if (!dtype_given(f->rest[k], &next, "[result_type] Inputs must be arrays or dtypes."))
            return NULL;
        t = k ? dtype_promote(t, next) : next;
    }
    return dtype_wrap(t);
}

/* ---- limits ---- */

struct info_object {
    PyObject_HEAD mlx_dtype dtype;
};

/* bits, largest, distance from 1 to the next number, smallest normal number */
static const struct float_limits {
    mlx_dtype dtype;
    int bits;
    double max, eps, smallest;
} float_limits[] = {
    { MLX_FLOAT16, 16, 65504, 0x1p-10, 0x1p-14 },
    { MLX_BFLOAT16, 16, 0x1.fep127, 0x1p-7, 0x1p-126 },
    { MLX_FLOAT32, 32, 0x1.fffffep127, 0x1p-23, 0x1p-126 },
    { MLX_FLOAT64, 64, 0x1.fffffffffffffp1023, 0x1p-52, 0x1p-1022 },
};

static const struct float_limits *limits_of(PyObject *self)
{
    const struct float_limits *l = float_limits;

    while (l->dtype != ((struct info_object *)self)->dtype)
        l++;
    return l;
}

static PyObject *info_new(PyTypeObject *type, PyObject *args, PyObject *keywords, bool floating)
{
    static char *names[] = { "", NULL };
    PyObject *o;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, floating ? "O:finfo" : "O:iinfo", names, &o))
        return NULL;
    if (!is_dtype(o)) {
        PyErr_Format(PyExc_TypeError, "A Dtype is wanted, not %s.", error_type_name(o));
        return NULL;
    }
    mlx_dtype t = dtype_of(o);
    if (floating ? !is_part_of(category_of(t), INEXACT) : !is_part_of(category_of(t), INTEGER)) {
        PyErr_Format(PyExc_ValueError,
                     floating ? "[finfo] dtype %s is not inexact."
                              : "[iinfo] Only integer types supported but %s was provided",
                     dtype_name(t));
        return NULL;
    }
    struct info_object *self = PyObject_New(struct info_object, type);
    if (self) /* a complex number is two of float32 */
        self->dtype = t == MLX_COMPLEX64 ? MLX_FLOAT32 : t;
    return (PyObject *)self;
}

static PyObject *finfo_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return info_new(type, args, keywords, true);
}

static PyObject *iinfo_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return info_new(type, args, keywords, false);
}

static void info_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *info_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return dtype_wrap(((struct info_object *)self)->dtype);
}

/* What is asked for: bits, min, max, eps, smallest. */
static PyObject *finfo_get(PyObject *self, void *closure)
{
    const struct float_limits *l = limits_of(self);
    const double values[] = { -l->max, l->max, l->eps, l->smallest };
    intptr_t which = (intptr_t)closure;

    return which ? PyFloat_FromDouble(values[which - 1]) : PyLong_FromLong(l->bits);
}

static PyObject *iinfo_get(PyObject *self, void *closure)
{
    mlx_dtype t = ((struct info_object *)self)->dtype;
    int bits = (int)mlx_dtype_size(t) * 8;
    bool top = closure != NULL, has_sign = t >= MLX_INT8;

    if (has_sign) {
        int64_t max = (int64_t)(UINT64_MAX >> (65 - bits));
        return PyLong_FromLongLong(top ? max : -max - 1);
    }
    return PyLong_FromUnsignedLongLong(top ? UINT64_MAX >> (64 - bits) : 0);
}

static PyObject *info_repr(PyObject *self)
{
    mlx_dtype t = ((struct info_object *)self)->dtype;
    PyObject *res, *min, *max;
    char text[160];

    if (dtype_is_float(t)) {
        double top = limits_of(self)->max;
        char *digits = PyOS_double_to_string(top, 'g', 6, 0, NULL);
        PyOS_snprintf(text, sizeof text, "finfo(min=-%s, max=%s, dtype=%s)", digits, digits,
                      dtype_name(t));
        PyMem_Free(digits);
        return PyUnicode_FromString(text);
    }
    min = iinfo_get(self, NULL);
    max = iinfo_get(self, self);
    res = min && max
              ? PyUnicode_FromFormat("iinfo(min=%S, max=%S, dtype=%s)", min, max, dtype_name(t))
              : NULL;
    Py_XDECREF(min);
    Py_XDECREF(max);
    return res;
}

static bool add_info(PyObject *m, const char *name, newfunc make, PyGetSetDef *properties)
{
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"The limits of a dtype." },
        { Py_tp_new, make },
        { Py_tp_dealloc, info_dealloc },
        { Py_tp_repr, info_repr },
        { Py_tp_getset, properties },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = name,
                         .basicsize = sizeof(struct info_object),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = slots };
    PyTypeObject *type = type_add(m, &spec);

    Py_XDECREF((PyObject *)type);
    return type != NULL;
}

bool dtype_query_init(PyObject *m)
{
    static PyGetSetDef finfo_properties[] = {
        { "bits", finfo_get, NULL, "The bits of a number.", NULL },
        { "min", finfo_get, NULL, "The lowest number.", (void *)1 },
        { "max", finfo_get, NULL, "The largest number.", (void *)2 },
        { "eps", finfo_get, NULL, "The distance from 1 to the next number.", (void *)3 },
        { "smallest_normal", finfo_get, NULL, "The smallest normal number.", (void *)4 },
        { "dtype", info_dtype, NULL, "The dtype.", NULL },
        { 0 },
    };
    static PyGetSetDef iinfo_properties[] = {
        { "min", iinfo_get, NULL, "The lowest number.", NULL },
        { "max", iinfo_get, NULL, "The largest number.", (void *)1 },
        { "dtype", info_dtype, NULL, "The dtype.", NULL },
        { 0 },
    };
    const char *names[CATEGORY_COUNT + 1] = { NULL };

    for (int k = 0; k < CATEGORY_COUNT; k++)
        names[k] = categories[k].name;
    PyObject *made = enum_add(m, "DtypeCategory", names, category_objects);
    Py_XDECREF(made);
    return made && add_info(m, "mlx.core.finfo", finfo_new, finfo_properties) &&
           add_info(m, "mlx.core.iinfo", iinfo_new, iinfo_properties);
}
