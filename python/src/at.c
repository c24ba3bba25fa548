/* array.at[index].add(value) and the like: updates of elements, where one that is named several
 * times takes all of them. */
#include "index.h"

struct at_object {
    PyObject_HEAD mlx_array_place place;
    PyObject *index; /* NULL: none was given */
};

static PyTypeObject *at_type;

PyObject *array_at(PyObject *self, void *closure)
{
    struct at_object *at = array_check(self) ? PyObject_New(struct at_object, at_type) : NULL;

    (void)closure;
    if (!at)
        return NULL;
    at->place.array = NULL;
    at->index = NULL;
    mlx_array place = mlx_array_at(&at->place);
    if (!error_check(mlx_array_set(&place, array_of(self))))
        Py_CLEAR(at);
    return (PyObject *)at;
}

static void at_dealloc(PyObject *self)
{
    struct at_object *at = (struct at_object *)self;
    PyTypeObject *type = Py_TYPE(self);

    mlx_array_place_clear(&at->place);
    Py_XDECREF(at->index);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *at_subscript(PyObject *self, PyObject *index)
{
    struct at_object *at = (struct at_object *)self;
    PyObject *old = at->index;

    at->index = Py_NewRef(index);
    Py_XDECREF(old);
    return Py_NewRef(self);
}

/* The only argument, by position or as value=. */
static PyObject *value_argument(const char *name, PyObject *const *args, Py_ssize_t n,
                                PyObject *keywords)
{
    Py_ssize_t n_keywords = keywords ? PyTuple_Size(keywords) : 0;

    if (n + n_keywords == 1 &&
        (n == 1 || PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "value") == 0))
        return args[0];
    PyErr_Format(PyExc_TypeError, "%s() takes one argument, value.", name);
    return NULL;
}

static PyObject *at_write(PyObject *self, PyObject *value, enum write_kind kind)
{
    struct at_object *at = (struct at_object *)self;
    struct array_object *out;

    if (!value)
        return NULL;
    if (!at->index) {
        PyErr_SetString(PyExc_ValueError, "Must give indices to array.at (e.g. `x.at[0].add(4)`).");
        return NULL;
    }
    if (!(out = array_alloc()))
        return NULL;
    mlx_array res = mlx_array_at(&out->place);
    PyObject *index = Py_NewRef(at->index); /* a callback of it may give self another one */
    bool ok = index_write(&res, mlx_array_at(&at->place), index, value, kind);
    Py_DECREF(index);
    if (!ok)
        Py_CLEAR(out);
    return (PyObject *)out;
}

/* name, kind, what elements become */
#define AT_METHODS(X)                                                                              \
    X(add, WRITE_ADD, "the sum of what they were and value")                                       \
    X(subtract, WRITE_SUBTRACT, "what they were less value")                                       \
    X(multiply, WRITE_MULTIPLY, "the product of what they were and value")                         \
    X(divide, WRITE_DIVIDE, "what they were divided by value")                                     \
    X(maximum, WRITE_MAXIMUM, "the larger one of what they were and value")                        \
    X(minimum, WRITE_MINIMUM, "the smaller one of what they were and value")

#define AT_METHOD(name, kind, text)                                                                \
    static PyObject *at_##name(PyObject *self, PyObject *const *args, Py_ssize_t n,                \
                               PyObject *keywords)                                                 \
    {                                                                                              \
        return at_write(self, value_argument(#name, args, n, keywords), kind);                     \
    }
AT_METHODS(AT_METHOD)

bool at_init(PyObject *m)
{
    static PyMethodDef methods[] = {
#define ROW(name, kind, text)                                                                      \
    { #name, (PyCFunction)(void (*)(void))at_##name, METH_FASTCALL | METH_KEYWORDS,                \
      #name "($self, value)\n--\n\nThe array, where the elements that the index names are " text   \
            "." },
        AT_METHODS(ROW)
#undef ROW
            { 0 },
    };
    static PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"Updates of the elements of an array that an index names." },
        { Py_tp_dealloc, at_dealloc },
        { Py_tp_methods, methods },
        { Py_mp_subscript, at_subscript },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.ArrayAt",
                         .basicsize = sizeof(struct at_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };

    at_type = type_add(m, &spec);
    return at_type != NULL;
}
