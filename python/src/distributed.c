#include "distributed.h"

#include "args.h"
#include "hand.h"
#include "mlx/c/distributed.h"

static PyTypeObject *group_type;

struct group_object {
    PyObject_HEAD mlx_distributed_group group;
};

/* The object of a handle, which it takes; the exception if rc is not 0. */
static PyObject *group_take(mlx_distributed_group group, int rc)
{
    struct group_object *o = rc ? NULL : PyObject_New(struct group_object, group_type);

    if (!o) {
        mlx_distributed_group_free(group);
        return error_raise();
    }
    o->group = group;
    return (PyObject *)o;
}

/* ---- functions ---- */

PyObject *hand_distributed_is_available(struct frame *f)
{
    return PyBool_FromLong(mlx_distributed_is_available(f->v[0].text));
}

PyObject *hand_distributed_init(struct frame *f)
{
    mlx_distributed_group group = mlx_distributed_group_new();
    const char *backend = f->v[1].text;
    bool strict = f->v[0].b;
    int rc;

    if (f->given[2] && !PyCallable_Check(f->slot[2])) {
        args_type_error(f->sig, "all_gather_factory", "a function or None", f->slot[2]);
        return NULL;
    }
    if (f->given[2] && strcmp(backend, "jaccl") != 0) {
        PyErr_SetString(PyExc_ValueError,
                        "[distributed] all_gather_factory is for the backend jaccl alone.");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    rc = mlx_distributed_init(&group, strict, backend);
    Py_END_ALLOW_THREADS
    return group_take(group, rc);
}

/* The group of parameter i; without one the empty handle. */
static bool group_from(struct frame *f, mlx_distributed_group *group, int i)
{
    *group = mlx_distributed_group_new();
    if (!f->given[i])
        return true;
    if (!is_of(f->slot[i], group_type))
        return args_type_error(f->sig, "group", "a Group or None", f->slot[i]);
    *group = ((struct group_object *)f->slot[i])->group;
    return true;
}

typedef int collective_fn(mlx_array *, const mlx_array, const mlx_distributed_group,
                          const mlx_stream);

static PyObject *collective(struct frame *f, collective_fn *fn)
{
    mlx_distributed_group group;

    if (!group_from(f, &group, 1))
        return NULL;
    FRAME_RETURN(f, fn(&f->out, f->v[0].array, group, f->v[2].stream));
}

PyObject *hand_distributed_all_sum(struct frame *f)
{
    return collective(f, mlx_distributed_all_sum);
}

PyObject *hand_distributed_all_max(struct frame *f)
{
    return collective(f, mlx_distributed_all_max);
}

PyObject *hand_distributed_all_min(struct frame *f)
{
    return collective(f, mlx_distributed_all_min);
}

PyObject *hand_distributed_all_gather(struct frame *f)
{
    return collective(f, mlx_distributed_all_gather);
}

PyObject *hand_distributed_sum_scatter(struct frame *f)
{
    return collective(f, mlx_distributed_sum_scatter);
}

PyObject *hand_distributed_send(struct frame *f)
{
    mlx_distributed_group group;

    if (!group_from(f, &group, 2))
        return NULL;
    FRAME_RETURN(f, mlx_distributed_send(&f->out, f->v[0].array, f->v[1].i, group, f->v[3].stream));
}

PyObject *hand_distributed_recv(struct frame *f)
{
    struct int_list shape = f->v[0].ints;
    mlx_distributed_group group;

    if (!group_from(f, &group, 3))
        return NULL;
    FRAME_RETURN(f, mlx_distributed_recv(&f->out, shape.v, shape.n, f->v[1].dtype, f->v[2].i, group,
                                         f->v[4].stream));
}

PyObject *hand_distributed_recv_like(struct frame *f)
{
    mlx_distributed_group group;

    if (!group_from(f, &group, 2))
        return NULL;
    FRAME_RETURN(
        f, mlx_distributed_recv_like(&f->out, f->v[0].array, f->v[1].i, group, f->v[3].stream));
}

/* ---- groups ---- */

static PyObject *group_rank(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(mlx_distributed_group_rank(((struct group_object *)self)->group));
}

static PyObject *group_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(mlx_distributed_group_size(((struct group_object *)self)->group));
}

static PyObject *group_split(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "color", "key", NULL };
    mlx_distributed_group from = ((struct group_object *)self)->group;
    mlx_distributed_group group = mlx_distributed_group_new();
    int color, key = -1, rc;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "i|i:split", names, &color, &key))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = mlx_distributed_group_split(&group, from, color, key);
    Py_END_ALLOW_THREADS
    return group_take(group, rc);
}

static void group_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    mlx_distributed_group_free(((struct group_object *)self)->group);
    PyObject_Free(self);
    Py_DECREF(type);
}

bool distributed_init(PyObject *m)
{
    static PyMethodDef methods[] = {
        { "rank", group_rank, METH_NOARGS,
          "rank($self, /)\n--\n\nThe number of this process in the group." },
        { "size", group_size, METH_NOARGS,
          "size($self, /)\n--\n\nHow many processes the group has." },
        { "split", (PyCFunction)(void (*)(void))group_split, METH_VARARGS | METH_KEYWORDS,
          "split($self, color, key=-1)\n--\n\nThe group of those processes that give the same\n"
          "color, in the order of their keys, or of their ranks where the key is negative." },
        { 0 },
    };
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)"Processes that compute together. Made by init()." },
        { Py_tp_methods, methods },
        { Py_tp_dealloc, group_dealloc },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.distributed.Group",
                         .basicsize = sizeof(struct group_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };
    PyObject *module = PyImport_AddModule("mlx.core.distributed");

    (void)m;
    return module && (group_type = type_add(module, &spec)) != NULL;
}
