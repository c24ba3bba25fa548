/* How arrays are printed: PrintOptions, and a context that sets them for a while. */
#include "args.h"
#include "hand.h"

struct options_object {
    PyObject_HEAD int precision;
};

struct context_object {
    PyObject_HEAD int wanted, before;
};

static PyTypeObject *options_type, *context_type;

static void plain_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *options_make(PyTypeObject *type, int precision)
{
    struct options_object *o = PyObject_New(struct options_object, type);

    if (o)
        o->precision = precision;
    return (PyObject *)o;
}

static PyObject *options_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "precision", NULL };
    int precision = -1;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|i:PrintOptions", names, &precision))
        return NULL;
    return options_make(type, precision);
}

static PyObject *options_get(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(((struct options_object *)self)->precision);
}

static int options_set(PyObject *self, PyObject *v, void *closure)
{
    (void)closure;
    if (!v || !is_intlike(v)) {
        PyErr_SetString(PyExc_TypeError, "precision must be an int.");
        return -1;
    }
    return int_from(v, &((struct options_object *)self)->precision) ? 0 : -1;
}

static PyObject *context_make(PyTypeObject *type, int precision)
{
    struct context_object *c = PyObject_New(struct context_object, type);

    if (c)
        *c = (struct context_object){ .ob_base = c->ob_base, .wanted = precision, .before = -1 };
    return (PyObject *)c;
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "", NULL };
    PyObject *options;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!:_PrintOptionsContext", names, options_type,
                                     &options))
        return NULL;
    return context_make(type, ((struct options_object *)options)->precision);
}

static PyObject *context_enter(PyObject *self, PyObject *unused)
{
    struct context_object *c = (struct context_object *)self;

    (void)unused;
    return error_check(mlx_get_print_precision(&c->before)) &&
                   error_check(mlx_set_print_precision(c->wanted))
               ? Py_NewRef(self)
               : NULL;
}

static PyObject *context_exit(PyObject *self, PyObject *args)
{
    (void)args;
    return error_check(mlx_set_print_precision(((struct context_object *)self)->before))
               ? Py_NewRef(Py_None)
               : NULL;
}

PyObject *hand_get_printoptions(struct frame *f)
{
    int precision;

    (void)f;
    return error_check(mlx_get_print_precision(&precision)) ? options_make(options_type, precision)
                                                            : NULL;
}

PyObject *hand_printoptions(struct frame *f)
{
    return context_make(context_type, f->v[0].i);
}

bool print_init(PyObject *m)
{
    static PyGetSetDef options_properties[] = {
        { "precision", options_get, options_set, "Digits behind the point; -1: as needed.", NULL },
        { 0 },
    };
    static PyMethodDef context_methods[] = {
        { "__enter__", context_enter, METH_NOARGS, NULL },
        { "__exit__", context_exit, METH_VARARGS, NULL },
        { 0 },
    };
    PyType_Slot options_slots[] = {
        { Py_tp_doc, (void *)"How arrays are printed." },
        { Py_tp_new, options_new },
        { Py_tp_dealloc, plain_dealloc },
        { Py_tp_getset, options_properties },
        { 0, NULL },
    };
    PyType_Slot context_slots[] = {
        { Py_tp_doc, (void *)"Sets how arrays are printed within a with block." },
        { Py_tp_new, context_new },
        { Py_tp_dealloc, plain_dealloc },
        { Py_tp_methods, context_methods },
        { 0, NULL },
    };
    PyType_Spec options = { .name = "mlx.core.PrintOptions",
                            .basicsize = sizeof(struct options_object),
                            .flags = Py_TPFLAGS_DEFAULT,
                            .slots = options_slots };
    PyType_Spec context = { .name = "mlx.core._PrintOptionsContext",
                            .basicsize = sizeof(struct context_object),
                            .flags = Py_TPFLAGS_DEFAULT,
                            .slots = context_slots };

    return (options_type = type_add(m, &options)) && (context_type = type_add(m, &context));
}
