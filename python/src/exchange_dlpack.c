/* DLPack: arrays as capsules around plain structs, of host memory only. What others hand over is
 * copied at once; what is handed over keeps its array alive until it is deleted, by whatever
 * thread. */
#include "args.h"
#include "exchange.h"
#include "hand.h"

/* ---- the structs of DLPack 1.0 ---- */

enum {
    DEVICE_CPU = 1,
    DEVICE_CUDA = 2,
    DEVICE_CUDA_HOST = 3,
    DEVICE_METAL = 8,
    DEVICE_MANAGED = 13
};
enum { CODE_INT, CODE_UINT, CODE_FLOAT, CODE_BFLOAT = 4, CODE_COMPLEX, CODE_BOOL };
enum { FLAG_COPIED = 2 };
enum { VERSION_MAJOR = 1, VERSION_MINOR = 0 };

struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* strides in elements; NULL: row-major */
    uint64_t byte_offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
};

struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    struct dl_tensor tensor;
};

/* Names of capsules before and after their tensor was taken. */
static const char *const fresh[2] = { "dltensor", "dltensor_versioned" };
static const char *const taken[2] = { "used_dltensor", "used_dltensor_versioned" };

static const struct {
    uint8_t code, bits;
} types[DTYPE_COUNT] = {
    [MLX_BOOL] = { CODE_BOOL, 8 },        [MLX_UINT8] = { CODE_UINT, 8 },
    [MLX_UINT16] = { CODE_UINT, 16 },     [MLX_UINT32] = { CODE_UINT, 32 },
    [MLX_UINT64] = { CODE_UINT, 64 },     [MLX_INT8] = { CODE_INT, 8 },
    [MLX_INT16] = { CODE_INT, 16 },       [MLX_INT32] = { CODE_INT, 32 },
    [MLX_INT64] = { CODE_INT, 64 },       [MLX_FLOAT16] = { CODE_FLOAT, 16 },
    [MLX_FLOAT32] = { CODE_FLOAT, 32 },   [MLX_FLOAT64] = { CODE_FLOAT, 64 },
    [MLX_BFLOAT16] = { CODE_BFLOAT, 16 }, [MLX_COMPLEX64] = { CODE_COMPLEX, 64 },
};

/* ---- import ---- */

bool dlpack_can(PyObject *o)
{
    return PyCapsule_CheckExact(o) || PyObject_HasAttrString(o, "__dlpack__");
}

static bool refuse(const char *text)
{
    PyErr_SetString(PyExc_ValueError, text);
    return false;
}

static bool check_device(const struct dl_tensor *t)
{
    switch (t->device_type) {
    case DEVICE_CPU:
    case DEVICE_CUDA_HOST:
        return true;
    case DEVICE_CUDA:
    case DEVICE_MANAGED:
        return refuse("[convert] CUDA import is not supported.");
    case DEVICE_METAL:
        return refuse("Metal DLPack import is not available.");
    default:
        return refuse("[convert] Unsupported device.");
    }
}

static bool check_type(struct foreign *f, const struct dl_tensor *t)
{
    f->wide = t->code == CODE_COMPLEX && t->bits == 128 && t->lanes == 1;
    f->dtype = MLX_COMPLEX64;
    for (int k = 0; k < DTYPE_COUNT; k++)
        if (types[k].code == t->code && types[k].bits == t->bits && t->lanes == 1) {
            f->dtype = (mlx_dtype)k;
            return true;
        }
    return f->wide || refuse("[convert] Cannot convert array to mlx.");
}

static bool tensor_import(mlx_array *res, const struct dl_tensor *t, struct want want)
{
    struct foreign f = { .data = (const char *)t->data + t->byte_offset, .ndim = t->ndim };
    int64_t step;

    if (!check_device(t) || !check_type(&f, t))
        return false;
    if (t->ndim < 0 || t->ndim > FOREIGN_DIMS)
        return refuse("A tensor has too many dimensions.");
    step = t->bits / 8 * t->lanes;
    for (int d = t->ndim - 1; d >= 0; d--) {
        if (!foreign_size(&f, d, t->shape[d]))
            return false;
        f.strides[d] = t->strides ? t->strides[d] * (t->bits / 8) : step;
        step *= t->shape[d];
    }
    return foreign_import(res, &f, want);
}

/* Imports what is in a capsule, and deletes it. */
static bool capsule_import(mlx_array *res, PyObject *capsule, struct want want)
{
    bool versioned = PyCapsule_IsValid(capsule, fresh[1]);
    struct dl_versioned *v = versioned ? PyCapsule_GetPointer(capsule, fresh[1]) : NULL;
    struct dl_managed *m = versioned ? NULL : PyCapsule_GetPointer(capsule, fresh[0]);
    bool ok;

    if (!v && !m) {
        PyErr_Clear();
        return refuse("The capsule holds no tensor, or one that was taken already.");
    }
    if (v && v->major > VERSION_MAJOR) {
        PyErr_SetString(PyExc_BufferError, "The tensor is of a later version of DLPack.");
        return false;
    }
    if (PyCapsule_SetName(capsule, taken[versioned]) < 0)
        return false;
    ok = tensor_import(res, v ? &v->tensor : &m->tensor, want);
    if (v && v->deleter)
        v->deleter(v);
    else if (m && m->deleter)
        m->deleter(m);
    return ok;
}

/* Asks for a capsule with a version; those who do not know versions are asked again. */
static PyObject *capsule_of(PyObject *o)
{
    PyObject *method = PyObject_GetAttrString(o, "__dlpack__"), *none = NULL, *version = NULL;
    PyObject *res = NULL;

    if (method && (none = PyTuple_New(0)) &&
        (version = Py_BuildValue("{s(ii)}", "max_version", VERSION_MAJOR, VERSION_MINOR))) {
        res = PyObject_Call(method, none, version);
        if (!res && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            res = PyObject_Call(method, none, NULL);
        }
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(version);
    if (res && !PyCapsule_CheckExact(res)) {
        PyErr_SetString(PyExc_TypeError, "__dlpack__() must return a capsule.");
        Py_CLEAR(res);
    }
    return res;
}

bool dlpack_import(mlx_array *res, PyObject *o, struct want want)
{
    PyObject *capsule = PyCapsule_CheckExact(o) ? Py_NewRef(o) : capsule_of(o);
    bool ok = capsule && capsule_import(res, capsule, want);

    Py_XDECREF(capsule);
    return ok;
}

/* ---- export ---- */

/* What a capsule points into. It is deleted without the GIL: no memory of Python. */
struct shipment {
    union {
        struct dl_managed managed;
        struct dl_versioned versioned;
    } u;
    mlx_array_place place;
    int64_t shape[FOREIGN_DIMS], strides[FOREIGN_DIMS];
};

static void shipment_drop(struct shipment *s)
{
    mlx_array_place_clear(&s->place);
    free(s);
}

static void delete_managed(struct dl_managed *m)
{
    shipment_drop(m->context);
}

static void delete_versioned(struct dl_versioned *v)
{
    shipment_drop(v->context);
}

/* Runs when a capsule goes; its tensor with it, unless somebody took it. */
static void capsule_drop(PyObject *capsule)
{
    for (int k = 0; k < 2; k++)
        if (PyCapsule_IsValid(capsule, fresh[k])) {
            void *p = PyCapsule_GetPointer(capsule, fresh[k]);
            if (k == 1)
                delete_versioned(p);
            else
                delete_managed(p);
        }
}

/* Makes the shipment's array a copy of its own elements. */
static bool shipment_copy(struct shipment *s)
{
    mlx_array at = mlx_array_at(&s->place);
    int ndim = (int)mlx_array_ndim(at);
    struct foreign f = { .data = array_bytes(at), .ndim = ndim, .dtype = mlx_array_dtype(at) };

    for (int d = 0; f.data && d < ndim; d++) {
        f.shape[d] = mlx_array_shape(at)[d];
        f.strides[d] = (int64_t)mlx_array_strides(at)[d] * (int64_t)mlx_array_itemsize(at);
    }
    return f.data && foreign_import(&at, &f, WANT(f.dtype));
}

static bool shipment_fill(struct shipment *s, PyObject *self, bool copy, struct dl_tensor *t)
{
    mlx_array at = mlx_array_at(&s->place);

    if (!error_check(mlx_array_set(&at, array_of(self))) || (copy && !shipment_copy(s)))
        return false;
    *t = (struct dl_tensor){ .data = (void *)(uintptr_t)array_bytes(at),
                             .device_type = DEVICE_CPU,
                             .ndim = (int32_t)mlx_array_ndim(at),
                             .code = types[mlx_array_dtype(at)].code,
                             .bits = types[mlx_array_dtype(at)].bits,
                             .lanes = 1,
                             .shape = s->shape,
                             .strides = s->strides };
    if (!t->data)
        return false;
    for (int d = 0; d < t->ndim; d++) {
        s->shape[d] = mlx_array_shape(at)[d];
        s->strides[d] = (int64_t)mlx_array_strides(at)[d];
    }
    return true;
}

static PyObject *shipment_new(PyObject *self, bool versioned, bool copy)
{
    struct shipment *s = calloc(1, sizeof *s);
    PyObject *res = NULL;

    if (!s)
        return PyErr_NoMemory();
    if (versioned)
        s->u.versioned = (struct dl_versioned){ .major = VERSION_MAJOR,
                                                .minor = VERSION_MINOR,
                                                .context = s,
                                                .deleter = delete_versioned,
                                                .flags = copy ? FLAG_COPIED : 0 };
    else
        s->u.managed = (struct dl_managed){ .context = s, .deleter = delete_managed };
    if (shipment_fill(s, self, copy, versioned ? &s->u.versioned.tensor : &s->u.managed.tensor))
        res = PyCapsule_New(&s->u, fresh[versioned], capsule_drop);
    if (!res)
        shipment_drop(s);
    return res;
}

/* Whether a device that a consumer asks for can be served. */
static bool export_device(PyObject *device)
{
    const char *text = "Cannot export mlx array to requested DLPack device.";
    int type, id;

    if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &type, &id)) {
        PyErr_SetString(PyExc_TypeError, "dl_device must be a tuple of two ints.");
        return false;
    }
    if (type == DEVICE_CPU)
        return true;
    if (type == DEVICE_CUDA || type == DEVICE_MANAGED)
        text = "CUDA DLPack export is not supported.";
    else if (type == DEVICE_METAL)
        text = "Metal DLPack export is not available.";
    PyErr_SetString(PyExc_BufferError, text);
    return false;
}

/* Parameters: self, stream, max_version, dl_device, copy. */
PyObject *hand_array_dlpack(struct frame *f)
{
    bool versioned = false;

    if (f->given[3] && !export_device(f->slot[3]))
        return NULL;
    if (f->given[2] && PyTuple_Check(f->slot[2]) && PyTuple_Size(f->slot[2]) > 0) {
        long major = PyLong_AsLong(PyTuple_GetItem(f->slot[2], 0));
        if (major == -1 && PyErr_Occurred())
            return NULL;
        versioned = major >= VERSION_MAJOR;
    }
    return shipment_new(f->slot[0], versioned, f->given[4] && f->v[4].b);
}

PyObject *hand_array_dlpack_device(struct frame *f)
{
    (void)f;
    return Py_BuildValue("(ii)", DEVICE_CPU, 0);
}
