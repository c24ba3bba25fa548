/* Reading by subscripts, and iteration: slices and ints are views, arrays are gathers. */
#include "index.h"

#include "create.h"
#include "subscript.h"

static const mlx_stream default_stream = { NULL };

/* ---- views ---- */

/* What a list of subscripts without arrays does to the axes. */
struct views {
    int start[AXES_MAX], stop[AXES_MAX], step[AXES_MAX];
    int gone[AXES_MAX];  /* axes of ints, of the slice */
    int added[SUBS_MAX]; /* axes of None, of the result */
    int n_gone, n_added;
    bool cut; /* the slice is not everything */
};

static void views_plan(struct views *v, const struct dims *d, const struct sub *sub, int n)
{
    int axis = 0, place = 0;

    v->n_gone = v->n_added = 0;
    v->cut = false;
    for (int i = 0; i < n; i++) {
        if (sub[i].kind == SUB_NEW) {
            v->added[v->n_added++] = place++;
            continue;
        }
        if (sub[i].kind == SUB_INT) {
            v->gone[v->n_gone++] = axis;
            v->start[axis] = sub[i].start;
            v->stop[axis] = sub[i].start + 1;
            v->step[axis] = 1;
        } else {
            v->start[axis] = sub[i].start;
            v->stop[axis] = sub[i].stop;
            v->step[axis] = sub[i].step;
            place++;
        }
        v->cut |= !sub_is_all(&sub[i], d->v[axis]);
        axis++;
    }
    for (; axis < d->n; axis++) {
        v->start[axis] = 0;
        v->stop[axis] = d->v[axis];
        v->step[axis] = 1;
    }
}

/* out may be a. */
static bool read_views(mlx_array *out, mlx_array a, const struct sub *sub, int n)
{
    struct views v;
    struct dims d;

    dims_of(&d, a);
    views_plan(&v, &d, sub, n);
    size_t ndim = (size_t)d.n;
    if (v.cut &&
        !error_check(mlx_slice(out, a, v.start, ndim, v.stop, ndim, v.step, ndim, default_stream)))
        return false;
    if (v.cut)
        a = *out;
    if (v.n_gone &&
        !error_check(mlx_squeeze_axes(out, a, v.gone, (size_t)v.n_gone, default_stream)))
        return false;
    if (v.n_gone)
        a = *out;
    if (v.n_added)
        return error_check(
            mlx_expand_dims_axes(out, a, v.added, (size_t)v.n_added, default_stream));
    return v.cut || v.n_gone || error_check(mlx_array_set(out, a));
}

/* ---- arrays ---- */

/* Gathers what the core says: the axes of the positions, then the axes that it left alone. */
static bool gather(mlx_array *out, mlx_array a, struct subs *s, const struct layout *l)
{
    int gone[AXES_MAX], sizes[AXES_MAX];
    struct positions p;
    struct dims d;

    if (!positions_of(&p, s, l, false))
        return false;
    dims_of(&d, a);
    for (int k = 0; k < d.n; k++)
        sizes[k] = k < p.n ? 1 : d.v[k];
    for (int k = 0; k < p.n; k++)
        gone[k] = l->array_dims + l->slices + k;
    mlx_vector_array vec = mlx_vector_array_new_data(p.v, (size_t)p.n);
    bool ok = error_check(mlx_gather(out, a, vec, p.axis, (size_t)p.n, sizes, (size_t)d.n,
                                     default_stream)) &&
              error_check(mlx_squeeze_axes(out, *out, gone, (size_t)p.n, default_stream));
    mlx_vector_array_free(vec);
    return ok;
}

/* What is left to do behind the gather: new axes, and the slices behind the core. */
static int left_over(struct sub *rest, const struct subs *s, const struct layout *l,
                     const struct dims *gathered)
{
    int n = 0, axis = 0;

    for (int i = 0; i < l->core; i++) {
        if (i == (l->front ? 0 : l->first))
            for (int k = 0; k < l->array_dims; k++)
                rest[n++] = sub_all(gathered->v[axis++]);
        if (s->v[i].kind == SUB_NEW)
            rest[n++] = s->v[i];
        else if (s->v[i].kind == SUB_SLICE)
            rest[n++] = sub_all(gathered->v[axis++]);
    }
    for (int i = l->core; i < s->n; i++)
        rest[n++] = s->v[i];
    return n;
}

static bool read_list(mlx_array *out, mlx_array a, struct subs *s)
{
    struct sub rest[SUBS_MAX + AXES_MAX];
    struct layout l;
    struct dims d;

    if (s->n_arrays == 0)
        return read_views(out, a, s->v, s->n);
    layout_of(&l, s, false);
    if (!gather(out, a, s, &l))
        return false;
    dims_of(&d, *out);
    return read_views(out, *out, rest, left_over(rest, s, &l, &d));
}

static bool read_tuple(mlx_array *out, mlx_array a, PyObject *tuple)
{
    struct subs s;
    struct dims d;

    dims_of(&d, a);
    bool ok = subs_read_tuple(&s, &d, tuple) && read_list(out, a, &s);
    subs_clear(&s);
    return ok;
}

/* ---- what stands alone ---- */

static bool read_array(mlx_array *out, mlx_array a, mlx_array at)
{
    if (mlx_array_ndim(a) == 0)
        return sub_no_axes();
    if (mlx_array_dtype(at) == MLX_BOOL) {
        PyErr_SetString(PyExc_ValueError, "boolean indices are not yet supported");
        return false;
    }
    return error_check(mlx_take_axis(out, a, at, 0, default_stream));
}

static bool read_made(mlx_array *out, mlx_array a, PyObject *list)
{
    mlx_array_place room = { NULL };
    mlx_array at = mlx_array_at(&room);
    bool ok = create_array(&at, list, WANT_ANY) && read_array(out, a, at);

    mlx_array_place_clear(&room);
    return ok;
}

static bool read_int(mlx_array *out, mlx_array a, PyObject *o)
{
    mlx_array_place room = { NULL };
    mlx_array at = mlx_array_at(&room);
    struct sub s;

    if (mlx_array_ndim(a) == 0)
        return sub_no_axes();
    if (!sub_int(&s, o, mlx_array_shape(a)[0]))
        return false;
    uint32_t v = (uint32_t)s.start;
    bool ok =
        error_check(mlx_array_set_data(&at, &v, NULL, 0, MLX_UINT32)) && read_array(out, a, at);
    mlx_array_place_clear(&room);
    return ok;
}

static bool read_slice(mlx_array *out, mlx_array a, PyObject *o)
{
    struct sub s;

    if (mlx_array_ndim(a) == 0)
        return sub_no_axes();
    return sub_slice(&s, o, mlx_array_shape(a)[0]) && read_views(out, a, &s, 1);
}

static bool read_any(mlx_array *out, mlx_array a, PyObject *index)
{
    if (PyTuple_Check(index))
        return read_tuple(out, a, index);
    switch (sub_kind_of(index)) {
    case SUB_INT:
        return read_int(out, a, index);
    case SUB_SLICE:
        return read_slice(out, a, index);
    case SUB_ARRAY:
        return read_array(out, a, array_of(index));
    case SUB_LIST:
        return read_made(out, a, index);
    case SUB_ELLIPSIS:
        return error_check(mlx_array_set(out, a));
    case SUB_NEW:
        return error_check(mlx_expand_dims(out, a, 0, default_stream));
    case SUB_NONE:
        break;
    }
    return sub_refuse(false);
}

static PyObject *array_read(PyObject *self, PyObject *index)
{
    struct array_object *out = array_check(self) ? array_alloc() : NULL;

    if (!out)
        return NULL;
    mlx_array at = mlx_array_at(&out->place);
    if (read_any(&at, array_of(self), index))
        return (PyObject *)out;
    Py_DECREF((PyObject *)out);
    return NULL;
}

/* ---- iteration ---- */

/* Few slices are made at once, by one node; those of long arrays when they are asked for. */
enum { SPLIT_MAX = 10 };

struct iterator_object {
    PyObject_HEAD mlx_array_place place;
    mlx_vector_array parts; /* empty handle: none */
    int at, n;
};

static PyTypeObject *iterator_type;

static PyObject *array_iterate(PyObject *self)
{
    struct iterator_object *it;

    if (!array_check(self))
        return NULL;
    mlx_array a = array_of(self);
    if (mlx_array_ndim(a) == 0) {
        PyErr_SetString(PyExc_TypeError, "iter() 0-dimensional array.");
        return NULL;
    }
    if (!(it = PyObject_New(struct iterator_object, iterator_type)))
        return NULL;
    *it = (struct iterator_object){ .ob_base = it->ob_base, .n = mlx_array_shape(a)[0] };
    mlx_array at = mlx_array_at(&it->place);
    bool ok = error_check(mlx_array_set(&at, a));
    if (ok && it->n && it->n < SPLIT_MAX) {
        it->parts = mlx_vector_array_new();
        ok = error_check(mlx_split(&it->parts, a, it->n, 0, default_stream));
    }
    if (!ok)
        Py_CLEAR(it);
    return (PyObject *)it;
}

static PyObject *iterator_next(PyObject *self)
{
    struct iterator_object *it = (struct iterator_object *)self;
    struct array_object *out = it->at < it->n ? array_alloc() : NULL;

    if (!out)
        return NULL; /* without an exception: the end */
    mlx_array at = mlx_array_at(&out->place);
    bool ok;
    if (it->parts.ctx) {
        ok = error_check(mlx_vector_array_get(&at, it->parts, (size_t)it->at)) &&
             error_check(mlx_squeeze_axis(&at, at, 0, default_stream));
    } else {
        struct sub s = { .kind = SUB_INT, .start = it->at };
        ok = read_views(&at, mlx_array_at(&it->place), &s, 1);
    }
    it->at++;
    if (!ok)
        Py_CLEAR(out);
    return (PyObject *)out;
}

static void iterator_dealloc(PyObject *self)
{
    struct iterator_object *it = (struct iterator_object *)self;
    PyTypeObject *type = Py_TYPE(self);

    mlx_array_place_clear(&it->place);
    mlx_vector_array_free(it->parts);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- types ---- */

const PyType_Slot array_index_slots[] = {
    { Py_mp_subscript, array_read },
    { Py_mp_ass_subscript, array_write },
    { Py_tp_iter, array_iterate },
    { 0, NULL },
};

static bool iterator_init(PyObject *m)
{
    static PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"Walks over the slices of an array along its first axis." },
        { Py_tp_dealloc, iterator_dealloc },
        { Py_tp_iter, PyObject_SelfIter },
        { Py_tp_iternext, iterator_next },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.ArrayIterator",
                         .basicsize = sizeof(struct iterator_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };

    iterator_type = type_add(m, &spec);
    return iterator_type != NULL;
}

bool index_init(PyObject *m)
{
    return iterator_init(m) && at_init(m);
}
