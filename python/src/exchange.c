/* Arrays made of what others have in host memory, and the functions for it. */
#include "exchange.h"

#include "args.h"
#include "hand.h"

/* ---- memory of others ---- */

bool foreign_size(struct foreign *f, int dim, int64_t size)
{
    if (size > INT32_MAX || size < INT32_MIN) {
        PyErr_Format(PyExc_OverflowError,
                     "Shape dimension %lld is outside the supported range [-2147483648, "
                     "2147483647]. MLX currently uses 32-bit integers for shape dimensions.",
                     (long long)size);
        return false;
    }
    f->shape[dim] = (int)size;
    return true;
}

static size_t item_size(const struct foreign *f)
{
    return f->wide ? 2 * sizeof(double) : mlx_dtype_size(f->dtype);
}

/* What the elements span. */
struct span {
    size_t size;    /* elements of the array */
    size_t storage; /* places from the first one to the last one */
    bool rows;      /* they follow each other in row-major order */
    bool even;      /* strides are multiples of an element's bytes */
};

static bool span_of(struct span *s, const struct foreign *f)
{
    size_t item = item_size(f), places = 0;
    int64_t next = (int64_t)item;

    *s = (struct span){ .size = 1, .rows = true, .even = true };
    for (int d = f->ndim - 1; d >= 0; d--) {
        s->size *= (size_t)f->shape[d];
        if (f->shape[d] == 0 || f->shape[d] == 1)
            continue;
        if (f->strides[d] < 0) {
            PyErr_SetString(PyExc_ValueError, "Cannot convert DLPack arrays with negative "
                                              "strides to mlx array.");
            return false;
        }
        s->rows &= f->strides[d] == next;
        s->even &= f->strides[d] % (int64_t)item == 0;
        next *= f->shape[d];
        places += (size_t)(f->shape[d] - 1) * (size_t)f->strides[d];
    }
    s->rows |= s->size == 0;
    s->storage = s->size ? places / item + 1 : 0;
    return true;
}

/* Writes the elements from dimension dim on behind each other. */
static char *pack(char *to, const struct foreign *f, const char *from, int dim)
{
    size_t item = item_size(f);

    if (dim == f->ndim) {
        memcpy(to, from, item);
        return to + item;
    }
    for (int i = 0; i < f->shape[dim]; i++, from += f->strides[dim]) {
        if (dim + 1 == f->ndim) { /* without a call for each element */
            memcpy(to, from, item);
            to += item;
        } else {
            to = pack(to, f, from, dim + 1);
        }
    }
    return to;
}

/* ---- doubles ---- */

static double double_at(const char *from, size_t i)
{
    double v;

    memcpy(&v, from + i * sizeof v, sizeof v);
    return v;
}

static int64_t int_of_double(double v)
{
    if (v >= 0x1p63 && v < 0x1p64)
        return (int64_t)(uint64_t)v;
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

/* What doubles are written as; a cast does the rest. */
static mlx_dtype narrow_dtype(mlx_dtype wanted)
{
    if (wanted == MLX_FLOAT64 || wanted == MLX_BOOL)
        return wanted;
    return wanted == MLX_UINT64 ? MLX_UINT64 : dtype_is_integer(wanted) ? MLX_INT64 : MLX_FLOAT32;
}

static void narrow(void *to, const char *from, size_t n, mlx_dtype t)
{
    if (t == MLX_BOOL) {
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = double_at(from, i) != 0;
    } else if (t == MLX_FLOAT32) {
        for (size_t i = 0; i < n; i++)
            ((float *)to)[i] = (float)double_at(from, i);
    } else {
        for (size_t i = 0; i < n; i++)
            ((int64_t *)to)[i] = int_of_double(double_at(from, i));
    }
}

/* ---- import ---- */

/* float64 lives on the CPU only. Other dtypes: the default stream. */
static mlx_stream stream_for(mlx_dtype a, mlx_dtype b)
{
    bool on_cpu = a == MLX_FLOAT64 || b == MLX_FLOAT64;

    return on_cpu ? mlx_default_cpu_stream_new() : (mlx_stream){ NULL };
}

/* Casts *res in its place. */
static bool cast_to(mlx_array *res, mlx_dtype t)
{
    mlx_stream s = stream_for(t, mlx_array_dtype(*res));
    bool ok = error_check(mlx_astype(res, *res, t, s));

    mlx_stream_free(s);
    return ok;
}

/* Elements that lie behind each other, and their shape. */
struct run {
    const char *from;
    size_t n;
    const int *shape;
    int ndim;
};

/* A new array of a run, doubles narrowed. */
static bool import_run(mlx_array *res, const struct foreign *f, const struct run *r,
                       struct want want)
{
    mlx_dtype t = f->dtype;

    if (f->dtype == MLX_FLOAT64)
        t = want.given ? narrow_dtype(want.dtype) : MLX_FLOAT32;
    if (!f->wide && t == f->dtype)
        return error_check(mlx_array_set_data(res, r->from, r->shape, r->ndim, t));
    void *to = malloc(r->n ? r->n * mlx_dtype_size(t) : 1);
    if (!to) {
        PyErr_NoMemory();
        return false;
    }
    narrow(to, r->from, f->wide ? 2 * r->n : r->n, f->wide ? MLX_FLOAT32 : t);
    mlx_array made = mlx_array_new_data_managed(to, r->shape, r->ndim, t, free);
    bool ok = error_check(made.ctx ? mlx_array_set(res, made) : 1);
    mlx_array_free(made);
    return ok;
}

/* Gives *res, a run of elements, the shape and the strides. */
static bool import_strides(mlx_array *res, const struct foreign *f)
{
    mlx_stream s = stream_for(mlx_array_dtype(*res), MLX_FLOAT32);
    int64_t strides[FOREIGN_DIMS];
    size_t n = (size_t)f->ndim;

    for (size_t d = 0; d < n; d++)
        strides[d] = f->strides[d] / (int64_t)item_size(f);
    bool ok = error_check(mlx_as_strided(res, *res, f->shape, n, strides, n, 0, s));
    mlx_stream_free(s);
    return ok;
}

bool foreign_import(mlx_array *res, const struct foreign *f, struct want want)
{
    mlx_dtype end = want.given ? want.dtype : f->dtype == MLX_FLOAT64 ? MLX_FLOAT32 : f->dtype;
    char *packed = NULL;
    struct span s;

    if (!span_of(&s, f))
        return false;
    int storage = (int)s.storage;
    bool strided = !s.rows && s.even && s.storage <= 2 * s.size && s.storage <= INT32_MAX;
    struct run run = { f->data, s.size, f->shape, f->ndim };
    if (strided)
        run = (struct run){ f->data, s.storage, &storage, 1 };
    if (!s.rows && !strided) {
        if (!(run.from = packed = PyMem_Malloc(s.size * item_size(f)))) {
            PyErr_NoMemory();
            return false;
        }
        pack(packed, f, f->data, 0);
    }
    bool ok = import_run(res, f, &run, want) &&
              (mlx_array_dtype(*res) == end || cast_to(res, end)) &&
              (!strided || import_strides(res, f));
    PyMem_Free(packed);
    return ok;
}

/* ---- objects ---- */

static bool has_accessor(PyObject *o)
{
    return PyObject_HasAttrString(o, "__mlx_array__");
}

bool exchange_can(PyObject *o)
{
    return PyObject_CheckBuffer(o) || dlpack_can(o) || has_accessor(o);
}

static bool accessor_import(mlx_array *res, PyObject *o, struct want want)
{
    PyObject *a = PyObject_CallMethod(o, "__mlx_array__", NULL);
    bool ok = a != NULL;

    if (ok && !is_array(a)) {
        PyErr_SetString(PyExc_TypeError, "__mlx_array__() must return an array.");
        ok = false;
    }
    ok = ok && create_array(res, a, want);
    Py_XDECREF(a);
    return ok;
}

bool exchange_import(mlx_array *res, PyObject *o, struct want want)
{
    if (PyObject_CheckBuffer(o))
        return buffer_import(res, o, want);
    return dlpack_can(o) ? dlpack_import(res, o, want) : accessor_import(res, o, want);
}

/* ---- functions ---- */

/* Memory of others is always copied: whether a GPU could read it in place is not known here. */
static bool refuse_sharing(const char *text)
{
    PyErr_SetString(PyExc_ValueError, text);
    return false;
}

typedef bool (*import_fn)(mlx_array *, PyObject *, struct want);

static PyObject *import_object(import_fn import, PyObject *o, struct want want)
{
    struct array_object *out = array_alloc();

    if (!out)
        return NULL;
    mlx_array at = mlx_array_at(&out->place);
    if (!import(&at, o, want))
        Py_CLEAR(out);
    return (PyObject *)out;
}

/* A copy with memory of its own, for those who write through views: a choice between an array and
 * itself, as whatever only copies is a view. */
static PyObject *copy_array(mlx_array a)
{
    struct array_object *out = array_alloc();
    mlx_stream s = stream_for(mlx_array_dtype(a), MLX_BOOL);
    mlx_array_place room = { NULL };
    mlx_array yes = mlx_array_at(&room);
    int rc = 1;

    if (out && error_check(mlx_array_set_bool(&yes, true)))
        rc = mlx_where(&(mlx_array){ &out->place }, yes, a, a, s);
    mlx_array_place_clear(&room);
    mlx_stream_free(s);
    return array_done(out, rc);
}

PyObject *hand_asarray(struct frame *f)
{
    PyObject *o = f->slot[0];
    bool copy = f->given[2] && f->v[2].b, share = f->given[2] && !copy;

    if (o == Py_None) {
        args_type_error(f->sig, "a", "a number, a list, an array or an object with elements", o);
        return NULL;
    }
    if (share &&
        !refuse_sharing(!is_array(o) && exchange_can(o) && !has_accessor(o)
                            ? "[convert] Cannot import a CPU array without a copy."
                            : "Unable to avoid copy while creating an array as requested."))
        return NULL;
    struct want want = { f->v[1].dtype, f->given[1] };
    if (copy && is_array(o) && (!want.given || want.dtype == mlx_array_dtype(array_of(o))))
        return copy_array(array_of(o));
    return import_object(create_array, o, want);
}

PyObject *hand_from_dlpack(struct frame *f)
{
    PyObject *o = f->slot[0];

    if (!PyObject_CheckBuffer(o) && !dlpack_can(o)) {
        args_type_error(f->sig, "x", "an object with __dlpack__", o);
        return NULL;
    }
    if (f->given[1] && !f->v[1].b &&
        !refuse_sharing("[convert] Cannot import a CPU array without a copy."))
        return NULL;
    return import_object(exchange_import, o, WANT_ANY);
}
