#include "function.h"

static PyTypeObject *function_type;

struct function_object *function_make(const struct function_kind *kind, PyObject *fun)
{
    struct function_object *f = PyObject_GC_New(struct function_object, function_type);

    if (!f)
        return NULL;
    f->kind = kind;
    f->fun = Py_XNewRef(fun);
    for (int i = 0; i < FUNCTION_DATA; i++)
        f->data[i] = NULL;
    f->handle = NULL;
    f->count = 0;
    f->flag = false;
    PyObject_GC_Track(f);
    return f;
}

bool function_is(PyObject *o, const struct function_kind *kind)
{
    return Py_TYPE(o) == function_type && ((struct function_object *)o)->kind == kind;
}

bool function_check(PyObject *o, const char *who)
{
    if (!PyCallable_Check(o))
        PyErr_Format(PyExc_TypeError, "%s(): a function is wanted, not %s.", who,
                     error_type_name(o));
    return PyCallable_Check(o);
}

static PyObject *function_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct function_object *f = (struct function_object *)self;
    PyObject *own = keywords ? PyDict_Copy(keywords) : PyDict_New(), *res = NULL;

    if (own)
        res = f->kind->call(f, args, own);
    Py_XDECREF(own);
    return res;
}

/* What inspect, functools.wraps and users ask for is what the function says. */
static PyObject *function_getattr(PyObject *self, PyObject *name)
{
    struct function_object *f = (struct function_object *)self;

    return f->fun ? PyObject_GetAttr(f->fun, name) : PyObject_GenericGetAttr(self, name);
}

static int function_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct function_object *f = (struct function_object *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(f->fun);
    for (int i = 0; i < FUNCTION_DATA; i++)
        Py_VISIT(f->data[i]);
    return 0;
}

static int function_clear(PyObject *self)
{
    struct function_object *f = (struct function_object *)self;

    Py_CLEAR(f->fun);
    for (int i = 0; i < FUNCTION_DATA; i++)
        Py_CLEAR(f->data[i]);
    return 0;
}

static void function_dealloc(PyObject *self)
{
    struct function_object *f = (struct function_object *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    if (f->kind->end)
        f->kind->end(f);
    function_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

bool function_init(PyObject *m)
{
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"A function that a transformation made of another." },
        { Py_tp_call, function_call },
        { Py_tp_getattro, function_getattr },
        { Py_tp_traverse, function_traverse },
        { Py_tp_clear, function_clear },
        { Py_tp_dealloc, function_dealloc },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core._gc_func",
                         .basicsize = sizeof(struct function_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                  Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };

    (void)m;
    function_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return function_type != NULL;
}
