#include "stream_context.h"

#include "args.h"
#include "device.h"
#include "hand.h"
#include "random_state.h"

static PyTypeObject *context_type;

struct context_object {
    PyObject_HEAD PyObject *given; /* a stream or a device */
    bool entered;
    mlx_device device;     /* the default device before */
    mlx_stream old_stream; /* and the default stream of the context's device */
};

static bool is_stream_or_device(PyObject *o)
{
    mlx_device_type type;
    int index;

    return is_of(o, stream_type) || is_of(o, thread_stream_type) || device_from(o, &type, &index);
}

static PyObject *context_make(PyTypeObject *type, PyObject *given)
{
    struct context_object *c;

    if (!is_stream_or_device(given)) {
        PyErr_Format(PyExc_TypeError, "stream(): s must be a stream or a device, not %s.",
                     error_type_name(given));
        return NULL;
    }
    if (!(c = PyObject_New(struct context_object, type)))
        return NULL;
    c->given = Py_NewRef(given);
    c->entered = false;
    c->device = mlx_device_new();
    c->old_stream = mlx_stream_new();
    return (PyObject *)c;
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "s", NULL };
    PyObject *s;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:StreamContext", names, &s))
        return NULL;
    return context_make(type, s);
}

PyObject *hand_stream(struct frame *f)
{
    return context_make(context_type, f->slot[0]);
}

static void context_dealloc(PyObject *self)
{
    struct context_object *c = (struct context_object *)self;
    PyTypeObject *type = Py_TYPE(self);

    Py_DECREF(c->given);
    mlx_stream_free(c->old_stream);
    mlx_device_free(c->device);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* The library would run the work on a stream of this thread; MLX says no. */
static bool may_use(PyObject *o)
{
    unsigned long thread = is_of(o, stream_type) ? ((struct stream_object *)o)->thread : 0;

    if (thread && thread != PyThread_get_thread_ident())
        PyErr_Format(PyExc_RuntimeError, "[stream] %R belongs to another thread.", o);
    return !PyErr_Occurred();
}

static bool enter(struct context_object *c, mlx_stream stream)
{
    mlx_device dev = mlx_device_new();
    bool ok = error_check(mlx_get_default_device(&c->device)) &&
              error_check(mlx_stream_get_device(&dev, stream)) &&
              error_check(mlx_get_default_stream(&c->old_stream, dev)) &&
              error_check(mlx_set_default_device(dev)) &&
              error_check(mlx_set_default_stream(stream));

    mlx_device_free(dev);
    return ok;
}

static PyObject *context_enter(PyObject *self, PyObject *unused)
{
    struct context_object *c = (struct context_object *)self;
    mlx_stream stream;
    bool owned;

    (void)unused;
    if (!may_use(c->given) || !stream_from(c->given, &stream, &owned))
        return NULL;
    c->entered = enter(c, stream);
    if (owned)
        mlx_stream_free(stream);
    return c->entered ? Py_NewRef(Py_None) : NULL;
}

static PyObject *context_exit(PyObject *self, PyObject *args)
{
    struct context_object *c = (struct context_object *)self;

    (void)args;
    if (c->entered && !(error_check(mlx_set_default_device(c->device)) &&
                        error_check(mlx_set_default_stream(c->old_stream))))
        return NULL;
    c->entered = false;
    return Py_NewRef(Py_None);
}

PyObject *hand_clear_streams(struct frame *f)
{
    static const mlx_device_type kinds[] = { MLX_CPU, MLX_GPU };
    int rc = 0;

    (void)f;
    random_state_forget();
    mlx_detail_compile_clear_cache();
    Py_BEGIN_ALLOW_THREADS
    for (int i = 0; i < 2 && !rc; i++) {
        mlx_stream s = mlx_stream_new();
        mlx_device dev = mlx_device_new_type(kinds[i], 0);
        bool there = false;
        mlx_device_is_available(&there, dev);
        if (there)
            rc = mlx_get_default_stream(&s, dev) || mlx_synchronize(s);
        mlx_stream_free(s);
        mlx_device_free(dev);
    }
    Py_END_ALLOW_THREADS
    return error_check(rc) ? Py_NewRef(Py_None) : NULL;
}

bool stream_context_init(PyObject *m)
{
    static PyMethodDef methods[] = {
        { "__enter__", context_enter, METH_NOARGS, NULL },
        { "__exit__", context_exit, METH_VARARGS, NULL },
        { 0 },
    };
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"Makes a stream, and its device, the default within a with block." },
        { Py_tp_new, context_new },
        { Py_tp_dealloc, context_dealloc },
        { Py_tp_methods, methods },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.StreamContext",
                         .basicsize = sizeof(struct context_object),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = slots };

    return (context_type = type_add(m, &spec)) != NULL;
}
