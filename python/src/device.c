#include "device.h"

#include "args.h"
#include "hand.h"

PyTypeObject *device_type, *stream_type, *thread_stream_type;
static PyObject *kinds[2]; /* DeviceType.cpu, DeviceType.gpu */

/* ---- devices ---- */

static PyObject *device_make(PyTypeObject *type, mlx_device_type kind, int index)
{
    struct device_object *d = PyObject_New(struct device_object, type);

    if (d) {
        d->type = kind;
        d->index = index;
    }
    return (PyObject *)d;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "type", "index", NULL };
    PyObject *kind;
    int index = 0;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|i:Device", names, &kind, &index))
        return NULL;
    if (kind != kinds[0] && kind != kinds[1]) {
        PyErr_Format(PyExc_TypeError, "Device(): type must be a DeviceType, not %s.",
                     error_type_name(kind));
        return NULL;
    }
    return device_make(type, kind == kinds[0] ? MLX_CPU : MLX_GPU, index);
}

static void plain_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_Free(self);
    Py_DECREF(type);
}

bool device_from(PyObject *o, mlx_device_type *type, int *index)
{
    *index = 0;
    if (o == kinds[0] || o == kinds[1]) {
        *type = o == kinds[0] ? MLX_CPU : MLX_GPU;
        return true;
    }
    if (!is_of(o, device_type))
        return false;
    *type = ((struct device_object *)o)->type;
    *index = ((struct device_object *)o)->index;
    return true;
}

static PyObject *device_repr(PyObject *self)
{
    struct device_object *d = (struct device_object *)self;

    return PyUnicode_FromFormat("Device(%s, %d)", d->type == MLX_CPU ? "cpu" : "gpu", d->index);
}

static PyObject *device_compare(PyObject *a, PyObject *b, int how)
{
    mlx_device_type type[2];
    int index[2];

    if (how != Py_EQ && how != Py_NE)
        Py_RETURN_NOTIMPLEMENTED;
    bool same = device_from(a, &type[0], &index[0]) && device_from(b, &type[1], &index[1]) &&
                type[0] == type[1] && index[0] == index[1];
    return PyBool_FromLong(same == (how == Py_EQ));
}

static Py_hash_t device_hash(PyObject *self)
{
    struct device_object *d = (struct device_object *)self;

    return d->index * 2 + (int)d->type;
}

static PyObject *device_get_type(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(kinds[((struct device_object *)self)->type]);
}

static PyObject *device_get_index(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(((struct device_object *)self)->index);
}

/* The object of a handle, which is freed. */
static PyObject *device_take(mlx_device dev, int rc)
{
    mlx_device_type type = MLX_CPU;
    PyObject *res = NULL;
    int index = 0;

    if (error_check(rc) && error_check(mlx_device_get_type(&type, dev)) &&
        error_check(mlx_device_get_index(&index, dev)))
        res = device_make(device_type, type, index);
    mlx_device_free(dev);
    return res;
}

/* A handle of what names a device; the exception if o does not. */
static mlx_device device_handle(PyObject *o)
{
    mlx_device_type type;
    int index;

    if (!device_from(o, &type, &index)) {
        PyErr_Format(PyExc_TypeError, "A Device or a DeviceType is wanted, not %s.",
                     error_type_name(o));
        return (mlx_device){ NULL };
    }
    mlx_device dev = mlx_device_new_type(type, index);
    if (!dev.ctx)
        error_raise();
    return dev;
}

/* ---- streams ---- */

/* The object of a handle, which it takes, for the calling thread. */
static PyObject *stream_take(PyTypeObject *type, mlx_stream s, int rc)
{
    struct stream_object *o = rc || !s.ctx ? NULL : PyObject_New(struct stream_object, type);

    if (!o) {
        mlx_stream_free(s);
        return error_raise();
    }
    o->stream = s;
    o->thread = PyThread_get_thread_ident();
    return (PyObject *)o;
}

static void stream_dealloc(PyObject *self)
{
    mlx_stream_free(((struct stream_object *)self)->stream);
    plain_dealloc(self);
}

static bool is_stream(PyObject *o)
{
    return is_of(o, stream_type) || is_of(o, thread_stream_type);
}

static PyObject *stream_repr(PyObject *self)
{
    mlx_string text = mlx_string_new();
    PyObject *res = NULL;

    if (error_check(mlx_stream_tostring(&text, ((struct stream_object *)self)->stream)))
        res = PyUnicode_FromFormat("%s%s", is_of(self, stream_type) ? "" : "ThreadLocal",
                                   mlx_string_data(text));
    mlx_string_free(text);
    return res;
}

static PyObject *stream_compare(PyObject *a, PyObject *b, int how)
{
    if (how != Py_EQ && how != Py_NE)
        Py_RETURN_NOTIMPLEMENTED;
    bool same = is_stream(b) && mlx_stream_equal(((struct stream_object *)a)->stream,
                                                 ((struct stream_object *)b)->stream);
    return PyBool_FromLong(same == (how == Py_EQ));
}

static Py_hash_t stream_hash(PyObject *self)
{
    int index = 0;

    mlx_stream_get_index(&index, ((struct stream_object *)self)->stream);
    return index;
}

static PyObject *stream_get_device(PyObject *self, void *closure)
{
    mlx_device dev = mlx_device_new();
    int rc = mlx_stream_get_device(&dev, ((struct stream_object *)self)->stream);

    (void)closure;
    return device_take(dev, rc);
}

static PyObject *stream_get_index(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(stream_hash(self));
}

/* A new stream on the device of another. */
static mlx_stream stream_like(mlx_stream s)
{
    mlx_device dev = mlx_device_new();
    mlx_stream res = { NULL };

    if (mlx_stream_get_device(&dev, s) == 0)
        res = mlx_stream_new_device(dev);
    mlx_device_free(dev);
    return res;
}

/* The calling thread's stream behind one for every thread, borrowed. The thread that made it has
 * its own; others make theirs when they ask, and Python drops them with the thread. */
static PyObject *stream_here(PyObject *o)
{
    PyObject *dict = PyThreadState_GetDict(), *mine = NULL;

    if (((struct stream_object *)o)->thread == PyThread_get_thread_ident())
        return o;
    if (dict && (mine = PyDict_GetItemWithError(dict, o)))
        return mine;
    if (!dict || PyErr_Occurred())
        return NULL;
    mine = stream_take(stream_type, stream_like(((struct stream_object *)o)->stream), 0);
    if (mine && PyDict_SetItem(dict, o, mine) < 0)
        Py_CLEAR(mine);
    Py_XDECREF(mine); /* the dict has it */
    return mine;
}

bool stream_from(PyObject *o, mlx_stream *stream, bool *owned)
{
    mlx_device_type type;
    int index, rc;

    *stream = (mlx_stream){ NULL };
    *owned = false;
    if (o == Py_None)
        return true;
    if (is_of(o, thread_stream_type) && !(o = stream_here(o)))
        return false;
    if (is_of(o, stream_type) || is_of(o, thread_stream_type)) {
        *stream = ((struct stream_object *)o)->stream;
        return true;
    }
    if (!device_from(o, &type, &index))
        return false;
    mlx_device dev = mlx_device_new_type(type, index);
    rc = dev.ctx ? mlx_get_default_stream(stream, dev) : 1;
    mlx_device_free(dev);
    *owned = rc == 0;
    return error_check(rc);
}

/* ---- functions ---- */

PyObject *hand_default_device(struct frame *f)
{
    mlx_device dev = mlx_device_new();
    int rc = mlx_get_default_device(&dev);

    (void)f;
    return device_take(dev, rc);
}

PyObject *hand_set_default_device(struct frame *f)
{
    mlx_device dev = device_handle(f->slot[0]);
    bool ok = dev.ctx && error_check(mlx_set_default_device(dev));

    mlx_device_free(dev);
    return ok ? Py_NewRef(Py_None) : NULL;
}

PyObject *hand_is_available(struct frame *f)
{
    mlx_device dev = device_handle(f->slot[0]);
    bool there = false, ok = dev.ctx && error_check(mlx_device_is_available(&there, dev));

    mlx_device_free(dev);
    return ok ? PyBool_FromLong(there) : NULL;
}

PyObject *hand_device_count(struct frame *f)
{
    int index, n = 0;
    mlx_device_type type;

    if (!device_from(f->slot[0], &type, &index)) {
        args_type_error(f->sig, "device_type", "a DeviceType", f->slot[0]);
        return NULL;
    }
    return error_check(mlx_device_count(&n, type)) ? PyLong_FromLong(n) : NULL;
}

/* One row of a device's properties. */
static bool add_property(PyObject *res, mlx_device_info info, const char *key)
{
    const char *text = NULL;
    size_t number = 0;
    PyObject *v;

    if (mlx_device_info_get_string(&text, info, key) == 0)
        v = PyUnicode_FromString(text);
    else
        v = error_check(mlx_device_info_get_size(&number, info, key)) ? PyLong_FromSize_t(number)
                                                                      : NULL;
    bool ok = v && PyDict_SetItemString(res, key, v) == 0;
    Py_XDECREF(v);
    return ok;
}

PyObject *hand_device_info(struct frame *f)
{
    mlx_device_info info = mlx_device_info_new();
    mlx_vector_string keys = mlx_vector_string_new();
    mlx_device dev = mlx_device_new();
    PyObject *res = NULL;

    if (f->given[0])
        dev = device_handle(f->slot[0]);
    else
        error_check(mlx_get_default_device(&dev));
    bool ok = dev.ctx && error_check(mlx_device_info_get(&info, dev)) &&
              error_check(mlx_device_info_get_keys(&keys, info)) && (res = PyDict_New());
    for (size_t i = 0; ok && i < mlx_vector_string_size(keys); i++) {
        char *key = NULL;
        ok = error_check(mlx_vector_string_get(&key, keys, i)) && add_property(res, info, key);
    }
    mlx_device_free(dev);
    mlx_vector_string_free(keys);
    mlx_device_info_free(info);
    if (!ok)
        Py_CLEAR(res);
    return res;
}

PyObject *hand_default_stream(struct frame *f)
{
    mlx_device dev = device_handle(f->slot[0]);
    mlx_stream s = mlx_stream_new();

    if (!dev.ctx)
        return NULL;
    int rc = mlx_get_default_stream(&s, dev);
    mlx_device_free(dev);
    return stream_take(stream_type, s, rc);
}

static PyObject *new_stream(struct frame *f, PyTypeObject *type)
{
    mlx_device dev = device_handle(f->slot[0]);

    if (!dev.ctx)
        return NULL;
    mlx_stream s = mlx_stream_new_device(dev);
    mlx_device_free(dev);
    return stream_take(type, s, 0);
}

PyObject *hand_new_stream(struct frame *f)
{
    return new_stream(f, stream_type);
}

PyObject *hand_new_thread_unsafe_stream(struct frame *f)
{
    PyObject *res = new_stream(f, stream_type);

    if (res)
        ((struct stream_object *)res)->thread = 0;
    return res;
}

PyObject *hand_new_thread_local_stream(struct frame *f)
{
    return new_stream(f, thread_stream_type);
}

PyObject *hand_set_default_stream(struct frame *f)
{
    if (!is_of(f->slot[0], stream_type)) {
        args_type_error(f->sig, "stream", "a Stream", f->slot[0]);
        return NULL;
    }
    return error_check(mlx_set_default_stream(((struct stream_object *)f->slot[0])->stream))
               ? Py_NewRef(Py_None)
               : NULL;
}

PyObject *hand_synchronize(struct frame *f)
{
    mlx_stream s = f->v[0].stream;
    int rc;

    Py_BEGIN_ALLOW_THREADS
    rc = mlx_synchronize(s);
    Py_END_ALLOW_THREADS
    return error_check(rc) ? Py_NewRef(Py_None) : NULL;
}

/* ---- types ---- */

static bool add_streams(PyObject *m)
{
    static PyGetSetDef properties[] = {
        { "device", stream_get_device, NULL, "The device of the stream.", NULL },
        { "index", stream_get_index, NULL, "The number of the stream.", NULL },
        { 0 },
    };
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"A queue of work on a device." },
        { Py_tp_dealloc, stream_dealloc },
        { Py_tp_repr, stream_repr },
        { Py_tp_hash, stream_hash },
        { Py_tp_richcompare, stream_compare },
        { Py_tp_getset, properties },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.Stream",
                         .basicsize = sizeof(struct stream_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };

    if (!(stream_type = type_add(m, &spec)))
        return false;
    spec.name = "mlx.core.ThreadLocalStream";
    return (thread_stream_type = type_add(m, &spec));
}

bool device_init(PyObject *m)
{
    static const char *const names[] = { "cpu", "gpu", NULL };
    static PyGetSetDef properties[] = {
        { "type", device_get_type, NULL, "The kind of the device.", NULL },
        { "index", device_get_index, NULL, "The number of the device among its kind.", NULL },
        { 0 },
    };
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"A device: its kind and its index." },
        { Py_tp_new, device_new },
        { Py_tp_dealloc, plain_dealloc },
        { Py_tp_repr, device_repr },
        { Py_tp_hash, device_hash },
        { Py_tp_richcompare, device_compare },
        { Py_tp_getset, properties },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.Device",
                         .basicsize = sizeof(struct device_object),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = slots };
    PyObject *made = enum_add(m, "DeviceType", names, kinds);

    Py_XDECREF(made);
    return made && (device_type = type_add(m, &spec)) && add_streams(m);
}
