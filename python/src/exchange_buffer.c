/* Python's buffers: those of others become arrays, those of arrays are read by others. What goes
 * with them: NumPy, copies, pickles. */
#include "args.h"
#include "exchange.h"
#include "hand.h"

/* ---- import ---- */

/* Formats of the struct module, with one letter, and what they become; NULL: bytes. */
static bool format_dtype(struct foreign *f, const char *format, Py_ssize_t item)
{
    static const mlx_dtype by_size[3][9] = {
        { [1] = MLX_UINT8, [2] = MLX_UINT16, [4] = MLX_UINT32, [8] = MLX_UINT64 },
        { [1] = MLX_INT8, [2] = MLX_INT16, [4] = MLX_INT32, [8] = MLX_INT64 },
        { [2] = MLX_FLOAT16, [4] = MLX_FLOAT32, [8] = MLX_FLOAT64 },
    };
    static const char *const letters[] = { "BHILQN", "bhilqnc", "efd" };

    if (!format)
        format = "B";
    if (strcmp(format, "bfloat16") == 0) {
        f->dtype = MLX_BFLOAT16;
        return true;
    }
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    f->wide = strcmp(format, "Zd") == 0;
    if (f->wide || strcmp(format, "Zf") == 0 || strcmp(format, "?") == 0) {
        f->dtype = *format == '?' ? MLX_BOOL : MLX_COMPLEX64;
        return true;
    }
    for (int k = 0; k < 3; k++)
        if (format[0] && !format[1] && strchr(letters[k], format[0]) && item <= 8) {
            f->dtype = by_size[k][item];
            return f->dtype != MLX_BOOL;
        }
    return false;
}

static bool view_import(mlx_array *res, const Py_buffer *b, struct want want)
{
    struct foreign f = { .data = b->buf, .ndim = b->ndim };

    if (!format_dtype(&f, b->format, b->itemsize)) {
        PyErr_Format(PyExc_RuntimeError, "Cannot make an array of elements of the format %s.",
                     b->format);
        return false;
    }
    /* Some leave the strides out although they were asked for: those of ctypes do. */
    int64_t row = b->itemsize;
    for (int d = b->ndim - 1; d >= 0; d--) {
        if (!foreign_size(&f, d, b->shape ? b->shape[d] : b->len / b->itemsize))
            return false;
        f.strides[d] = b->strides ? b->strides[d] : row;
        row *= f.shape[d];
    }
    return foreign_import(res, &f, want);
}

/* NumPy has no format for the bfloat16 of other packages; their arrays say so by name. */
static PyObject *bfloat16_bits(PyObject *o)
{
    PyObject *dtype = PyObject_GetAttrString(o, "dtype");
    PyObject *name = dtype ? PyObject_Str(dtype) : NULL;
    bool is = name && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;

    Py_XDECREF(dtype);
    Py_XDECREF(name);
    PyErr_Clear();
    return is ? PyObject_CallMethod(o, "view", "s", "uint16") : NULL;
}

/* A buffer of o, or of its bits, which *bits is then. */
static bool buffer_get(Py_buffer *b, PyObject *o, PyObject **bits)
{
    PyObject *error[3];

    *bits = NULL;
    if (PyObject_GetBuffer(o, b, PyBUF_RECORDS_RO) == 0)
        return true;
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    if (!(*bits = bfloat16_bits(o))) {
        PyErr_Restore(error[0], error[1], error[2]);
        return false;
    }
    for (int k = 0; k < 3; k++)
        Py_XDECREF(error[k]);
    if (PyObject_GetBuffer(*bits, b, PyBUF_RECORDS_RO) == 0)
        return true;
    Py_CLEAR(*bits);
    return false;
}

/* Reads *res, of two bytes each, as bfloat16, and casts it if another dtype is wanted. */
static bool bits_to_bfloat16(mlx_array *res, struct want want)
{
    const mlx_stream s = { NULL };

    return error_check(mlx_view(res, *res, MLX_BFLOAT16, s)) &&
           (!want.given || want.dtype == MLX_BFLOAT16 ||
            error_check(mlx_astype(res, *res, want.dtype, s)));
}

bool buffer_import(mlx_array *res, PyObject *o, struct want want)
{
    PyObject *bits;
    Py_buffer b;

    if (!buffer_get(&b, o, &bits))
        return false;
    bool ok =
        view_import(res, &b, bits ? WANT_ANY : want) && (!bits || bits_to_bfloat16(res, want));
    PyBuffer_Release(&b);
    Py_XDECREF(bits);
    return ok;
}

/* ---- export ---- */

/* What a view of an array needs while it lives: the array, which the object may be given up for
 * another one meanwhile, and the lists that the view points to. */
struct export_view {
    mlx_array_place place;
    Py_ssize_t dims[]; /* the shape, then the strides */
};

static const char *const formats[DTYPE_COUNT] = {
    [MLX_BOOL] = "?",
    [MLX_UINT8] = "B",
    [MLX_UINT16] = "H",
    [MLX_UINT32] = "I",
    [MLX_UINT64] = "Q",
    [MLX_INT8] = "b",
    [MLX_INT16] = "h",
    [MLX_INT32] = "i",
    [MLX_INT64] = "q",
    [MLX_FLOAT16] = "e",
    [MLX_FLOAT32] = "f",
    [MLX_FLOAT64] = "d",
    [MLX_BFLOAT16] = "bfloat16",
    [MLX_COMPLEX64] = "Zf",
};

/* Refuses those who need an order that the array does not have. */
static bool export_fits(const Py_buffer *b, int flags)
{
    char order = 0;

    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS)
        order = 'F';
    else if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS)
        order = 'A';
    else if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
             (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        order = 'C';
    if (!order || PyBuffer_IsContiguous(b, order))
        return true;
    PyErr_SetString(PyExc_BufferError, "The elements of the array do not lie in that order.");
    return false;
}

static bool export_fill(struct export_view *e, Py_buffer *b, PyObject *self)
{
    mlx_array at = mlx_array_at(&e->place);
    size_t ndim = mlx_array_ndim(array_of(self));

    if (!error_check(mlx_array_set(&at, array_of(self))))
        return false;
    *b = (Py_buffer){ .buf = (void *)(uintptr_t)array_bytes(at),
                      .len = (Py_ssize_t)mlx_array_nbytes(at),
                      .itemsize = (Py_ssize_t)mlx_array_itemsize(at),
                      .ndim = (int)ndim,
                      .format = (char *)(uintptr_t)formats[mlx_array_dtype(at)],
                      .shape = e->dims,
                      .strides = e->dims + ndim,
                      .internal = e };
    if (!b->buf)
        return false;
    for (size_t d = 0; d < ndim; d++) {
        b->shape[d] = mlx_array_shape(at)[d];
        b->strides[d] = (Py_ssize_t)mlx_array_strides(at)[d] * b->itemsize;
    }
    return true;
}

static void export_drop(struct export_view *e)
{
    mlx_array_place_clear(&e->place);
    PyMem_Free(e);
}

static int array_getbuffer(PyObject *self, Py_buffer *b, int flags)
{
    struct export_view *e = NULL;

    b->obj = NULL;
    if (!array_check(self))
        return -1;
    e = PyMem_Malloc(sizeof *e + 2 * mlx_array_ndim(array_of(self)) * sizeof *e->dims);
    if (!e) {
        PyErr_NoMemory();
        return -1;
    }
    e->place.array = NULL;
    if (!export_fill(e, b, self) || !export_fits(b, flags)) {
        export_drop(e);
        b->obj = NULL;
        return -1;
    }
    if (!(flags & PyBUF_FORMAT))
        b->format = NULL;
    if (!(flags & PyBUF_ND))
        b->shape = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        b->strides = NULL;
    b->obj = Py_NewRef(self);
    return 0;
}

static void array_releasebuffer(PyObject *self, Py_buffer *b)
{
    (void)self;
    export_drop(b->internal);
}

const PyType_Slot array_exchange_slots[] = {
    { Py_bf_getbuffer, array_getbuffer },
    { Py_bf_releasebuffer, array_releasebuffer },
    { 0, NULL },
};

/* Without this, bytes() would take an array of one number for a size. */
PyObject *hand_array_to_bytes(struct frame *f)
{
    return PyBytes_FromObject(f->slot[0]);
}

/* ---- NumPy ---- */

/* A view of NumPy on an array. NumPy does not say why it got no buffer, but asks for the array
 * again, so that it is given the buffer itself. */
static PyObject *numpy_view(PyObject *self)
{
    PyObject *view = PyMemoryView_FromObject(self);
    PyObject *np = view ? PyImport_ImportModule("numpy") : NULL;
    PyObject *res = np ? PyObject_CallMethod(np, "asarray", "O", view) : NULL;

    Py_XDECREF(view);
    Py_XDECREF(np);
    return res;
}

static bool is_bfloat16(PyObject *self)
{
    return mlx_array_dtype(array_of(self)) == MLX_BFLOAT16;
}

PyObject *hand_array_numpy(struct frame *f)
{
    PyObject *self = f->slot[0];

    if (!is_bfloat16(self))
        return numpy_view(self);
    PyErr_SetString(PyExc_TypeError, "bfloat16 arrays cannot be converted to NumPy.");
    return NULL;
}

/* ---- copies and pickles ---- */

PyObject *hand_array_copy(struct frame *f)
{
    return array_wrap(array_of(f->slot[0]));
}

/* (elements for NumPy, number of the dtype): the pickles of MLX. */
PyObject *hand_array_getstate(struct frame *f)
{
    PyObject *self = f->slot[0], *bits = NULL, *elements;
    mlx_dtype t = mlx_array_dtype(array_of(self));

    if (t == MLX_BFLOAT16) {
        struct array_object *out = array_alloc();
        mlx_array at = out ? mlx_array_at(&out->place) : (mlx_array){ NULL };
        if (!out || !(bits = array_done(
                          out, mlx_view(&at, array_of(self), MLX_UINT16, (mlx_stream){ NULL }))))
            return NULL;
    }
    elements = numpy_view(bits ? bits : self);
    Py_XDECREF(bits);
    return elements ? Py_BuildValue("(Ni)", elements, (int)t) : NULL;
}

PyObject *array_setstate(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    mlx_array_place room = { NULL };
    mlx_array at = mlx_array_at(&room);
    PyObject *elements;
    int t;

    (void)keywords;
    if (n != 1 || !PyTuple_Check(args[0]) || PyTuple_Size(args[0]) != 2 ||
        !PyArg_ParseTuple(args[0], "Oi", &elements, &t) || t < 0 || t >= DTYPE_COUNT) {
        PyErr_SetString(PyExc_ValueError, "Invalid pickle state: expected (ndarray, Dtype::Val)");
        return NULL;
    }
    bool ok =
        create_array(&at, elements, t == MLX_BFLOAT16 ? WANT(MLX_UINT16) : WANT((mlx_dtype)t)) &&
        (t != MLX_BFLOAT16 || bits_to_bfloat16(&at, WANT_ANY));
    if (ok) {
        mlx_array_place old = ((struct array_object *)self)->place;
        ((struct array_object *)self)->place = room;
        room = old;
    }
    mlx_array_place_clear(&room);
    return ok ? Py_NewRef(Py_None) : NULL;
}
