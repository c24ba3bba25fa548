#include "subscript.h"

#include "create.h"

void dims_of(struct dims *d, mlx_array a)
{
    d->n = (int)mlx_array_ndim(a);
    if (d->n)
        memcpy(d->v, mlx_array_shape(a), (size_t)d->n * sizeof *d->v);
}

/* ---- errors ---- */

static bool refuse(const char *text)
{
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, text);
    return false;
}

bool sub_refuse(bool in_tuple)
{
    return refuse(in_tuple ? "Cannot index mlx array using the given type yet"
                           : "Cannot index mlx array using the given type.");
}

bool sub_no_axes(void)
{
    return refuse("too many indices for array: array is 0-dimensional");
}

static bool too_many(int ndim)
{
    PyErr_Format(PyExc_ValueError, "Too many indices for array with %d dimensions.", ndim);
    return false;
}

/* ---- one subscript ---- */

/* Whether an object with __index__ is one number: arrays of NumPy have that method as well. */
static bool is_one_number(PyObject *o)
{
    static PyObject *ndim;
    PyObject *v;
    bool one = true;

    if (!PyObject_CheckBuffer(o) && !PyObject_HasAttrString(o, "__dlpack__"))
        return true;
    if (!ndim && !(ndim = PyUnicode_InternFromString("ndim")))
        return false;
    v = PyObject_GetAttr(o, ndim);
    if (v)
        one = PyLong_Check(v) && PyLong_AsLong(v) == 0;
    PyErr_Clear();
    Py_XDECREF(v);
    return one;
}

enum sub_kind sub_kind_of(PyObject *o)
{
    if (PyLong_CheckExact(o))
        return SUB_INT;
    if (PySlice_Check(o))
        return SUB_SLICE;
    if (is_array(o))
        return SUB_ARRAY;
    if (o == Py_None)
        return SUB_NEW;
    if (o == Py_Ellipsis)
        return SUB_ELLIPSIS;
    if (PyList_Check(o))
        return SUB_LIST;
    return !PyBool_Check(o) && PyIndex_Check(o) && is_one_number(o) ? SUB_INT : SUB_NONE;
}

static bool int_of(int *v, PyObject *o)
{
    int overflow = 0;
    PyObject *index = PyLong_CheckExact(o) ? Py_NewRef(o) : PyNumber_Index(o);
    long long wide = index ? PyLong_AsLongLongAndOverflow(index, &overflow) : 0;

    Py_XDECREF(index);
    if (!index)
        return false;
    *v = (int)wide;
    return (!overflow && *v == wide) || refuse("Slice indices must be 32-bit integers.");
}

bool sub_int(struct sub *s, PyObject *o, int size)
{
    int v;

    if (!int_of(&v, o))
        return false;
    *s = (struct sub){ .kind = SUB_INT, .start = v < 0 ? v + size : v };
    return true;
}

struct sub sub_all(int size)
{
    return (struct sub){ .kind = SUB_SLICE, .stop = size, .step = 1, .count = size };
}

bool sub_is_all(const struct sub *s, int size)
{
    return s->kind == SUB_SLICE && s->step == 1 && s->start == 0 && s->stop == size;
}

/* What a slice says under one of its names; *v stays where that is None. */
static bool slice_part(int *v, PyObject *slice, PyObject *name)
{
    PyObject *o = PyObject_GetAttr(slice, name);
    bool ok = o != NULL;

    if (ok && o != Py_None)
        ok = PyLong_CheckExact(o) || (!is_array(o) && sub_kind_of(o) == SUB_INT)
                 ? int_of(v, o)
                 : refuse("Slice indices must be integers or None.");
    Py_XDECREF(o);
    return ok;
}

bool sub_slice(struct sub *s, PyObject *o, int size)
{
    static PyObject *names[3];
    static const char *const texts[3] = { "step", "start", "stop" };

    for (int k = 0; k < 3 && !names[k]; k++)
        if (!(names[k] = PyUnicode_InternFromString(texts[k])))
            return false;
    *s = sub_all(size);
    if (!slice_part(&s->step, o, names[0]))
        return false;
    if (s->step == 0)
        return refuse("slice step cannot be zero");
    if (s->step < 0) {
        s->start = size - 1;
        s->stop = -size - 1;
    }
    if (!slice_part(&s->start, o, names[1]) || !slice_part(&s->stop, o, names[2]))
        return false;
    Py_ssize_t start = s->start, stop = s->stop;
    s->count = (int)PySlice_AdjustIndices(size, &start, &stop, s->step);
    s->begin = (int)start;
    return true;
}

/* ---- lists of them ---- */

static mlx_array room_of(struct subs *s)
{
    mlx_array_place *room = &s->rooms[s->n_rooms++];

    room->array = NULL;
    return mlx_array_at(room);
}

/* Sees that every object is a subscript, and counts the axes that they speak of without ellipsis.
 */
static bool survey(PyObject *const *o, Py_ssize_t n, int *n_axes, bool *ellipsis)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        enum sub_kind kind = sub_kind_of(o[i]);

        if (kind == SUB_NONE)
            return sub_refuse(true);
        if (kind == SUB_ELLIPSIS && *ellipsis)
            return refuse("An index can only have a single ellipsis (...)");
        *ellipsis |= kind == SUB_ELLIPSIS;
        *n_axes += kind != SUB_NEW && kind != SUB_ELLIPSIS;
    }
    return true;
}

static bool sub_read(struct subs *s, PyObject *o, int size)
{
    struct sub *to = &s->v[s->n];

    to->kind = sub_kind_of(o);
    switch (to->kind) {
    case SUB_INT:
        return sub_int(to, o, size);
    case SUB_SLICE:
        return sub_slice(to, o, size);
    case SUB_ARRAY:
        to->array = array_of(o);
        s->n_arrays++;
        return true;
    case SUB_LIST:
        to->kind = SUB_ARRAY;
        to->array = room_of(s);
        s->n_arrays++;
        return create_array(&to->array, o, WANT_ANY);
    case SUB_NEW:
        return true;
    case SUB_ELLIPSIS:
    case SUB_NONE:
        break;
    }
    return sub_refuse(true);
}

bool subs_read(struct subs *s, const struct dims *d, PyObject *const *o, Py_ssize_t n)
{
    int named = 0, axis = 0;
    bool ellipsis = false;

    s->n = s->n_arrays = s->n_rooms = s->n_axes = 0;
    if (!survey(o, n, &named, &ellipsis))
        return false;
    if (named > d->n || n - named > AXES_MAX)
        return too_many(d->n);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (o[i] == Py_Ellipsis) {
            for (int k = d->n - named; k > 0; k--)
                s->v[s->n++] = sub_all(d->v[axis++]);
            continue;
        }
        if (!sub_read(s, o[i], o[i] == Py_None ? 0 : d->v[axis]))
            return false;
        axis += s->v[s->n++].kind != SUB_NEW;
    }
    s->n_axes = axis;
    return true;
}

bool subs_read_tuple(struct subs *s, const struct dims *d, PyObject *tuple)
{
    PyObject *items[SUBS_MAX];
    Py_ssize_t n = PyTuple_Size(tuple);

    s->n_rooms = 0;
    if (n > SUBS_MAX)
        return too_many(d->n);
    for (Py_ssize_t i = 0; i < n; i++)
        items[i] = PyTuple_GetItem(tuple, i);
    return subs_read(s, d, items, n);
}

void subs_clear(struct subs *s)
{
    for (int k = 0; k < s->n_rooms; k++)
        mlx_array_place_clear(&s->rooms[k]);
}

/* ---- positions ---- */

static bool is_advanced(const struct sub *s)
{
    return s->kind == SUB_INT || s->kind == SUB_ARRAY;
}

void layout_of(struct layout *l, const struct subs *s, bool all_steps)
{
    *l = (struct layout){ .first = -1 };
    for (int i = 0; i < s->n; i++) {
        const struct sub *v = &s->v[i];

        if (is_advanced(v)) {
            l->front |= l->first >= 0 && l->end != i;
            l->first = l->first < 0 ? i : l->first;
            l->core = l->end = i + 1;
        } else if (all_steps && v->kind == SUB_SLICE && v->step != 1) {
            l->core = i + 1;
        }
        if (v->kind == SUB_ARRAY && (int)mlx_array_ndim(v->array) > l->array_dims)
            l->array_dims = (int)mlx_array_ndim(v->array);
    }
    for (int i = 0; i < l->core; i++) {
        l->slices += s->v[i].kind == SUB_SLICE;
        l->slices_post += s->v[i].kind == SUB_SLICE && (l->front || i > l->first);
    }
}

/* Adds axes of size 1 behind those of *a, which is replaced. */
static bool add_axes_behind(mlx_array *a, mlx_array from, int n)
{
    int ndim = (int)mlx_array_ndim(from), shape[AXES_MAX];

    if (ndim + n > AXES_MAX)
        return too_many(AXES_MAX);
    if (ndim)
        memcpy(shape, mlx_array_shape(from), (size_t)ndim * sizeof *shape);
    for (int k = 0; k < n; k++)
        shape[ndim + k] = 1;
    return error_check(mlx_reshape(a, from, shape, (size_t)(ndim + n), (mlx_stream){ NULL }));
}

/* The positions of a slice, with axes of size 1 behind. */
static bool slice_positions(mlx_array *res, const struct sub *s, int behind)
{
    double from = s->begin, to = from + (double)s->count * s->step;

    return error_check(mlx_arange(res, from, to, s->step, MLX_UINT32, (mlx_stream){ NULL })) &&
           (behind == 0 || add_axes_behind(res, *res, behind));
}

static bool one_position(mlx_array *res, int at)
{
    uint32_t v = (uint32_t)at;

    return error_check(mlx_array_set_data(res, &v, NULL, 0, MLX_UINT32));
}

/* The positions of one subscript. seen: how many slices of the core came before it. */
static bool sub_positions(mlx_array *res, struct subs *s, int i, const struct layout *l, int seen)
{
    const struct sub *v = &s->v[i];
    int before = l->slices - l->slices_post; /* slices in front of the arrays' axes */

    if (v->kind == SUB_ARRAY && l->slices_post == 0) {
        *res = v->array;
        return true;
    }
    *res = room_of(s);
    if (v->kind == SUB_ARRAY)
        return add_axes_behind(res, v->array, l->slices_post);
    if (v->kind == SUB_SLICE && i < l->core)
        return slice_positions(res, v, l->slices - 1 - seen + (seen < before ? l->array_dims : 0));
    return one_position(res, v->kind == SUB_INT ? v->start : v->begin);
}

bool positions_of(struct positions *p, struct subs *s, const struct layout *l, bool windows)
{
    int axis = 0, seen = 0;

    p->n = 0;
    for (int i = 0; i < s->n; i++) {
        bool in_core = i < l->core;

        if (s->v[i].kind == SUB_NEW)
            continue;
        if (in_core || (windows && s->v[i].begin)) {
            if (!sub_positions(&p->v[p->n], s, i, l, seen))
                return false;
            p->axis[p->n++] = axis;
        }
        seen += in_core && s->v[i].kind == SUB_SLICE;
        axis++;
    }
    return true;
}
