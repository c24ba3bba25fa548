/* mx.custom_function: a function with rules of its own for transformations; mx.checkpoint.
 *
 * The library keeps the rules as long as graphs need them. What each of them needs is in a block of
 * three objects: the function, the structure of the arguments of the call (the pair of positional
 * and named ones), and a list whose only item is the structure of what the function returned. */
#include "custom.h"

#include "args.h"
#include "closure.h"
#include "function.h"
#include "hand.h"

enum { FUN, ARGUMENTS, RETURNED };

/* ---- arguments and results ---- */

/* The tree of a structure, with the arrays of vec. */
static PyObject *restore(PyObject *structure, mlx_vector_array vec)
{
    PyObject *arrays = array_list(vec), *res = NULL;
    Py_ssize_t next = 0;

    if (arrays)
        res = tree_restore(structure, arrays, &next);
    Py_XDECREF(arrays);
    return res;
}

/* What rules are told of positional arguments: the only one itself. A new reference. */
static PyObject *bare(PyObject *args)
{
    return Py_XNewRef(PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : args);
}

static bool no_keywords(PyObject *pair, const char *tag)
{
    if (PyDict_Size(PyTuple_GetItem(pair, 1)) == 0)
        return true;
    PyErr_Format(PyExc_ValueError, "[%s] The function was called with keyword arguments.", tag);
    return false;
}

/* The arrays of what a rule returned, which is released. */
static int rule_result(mlx_vector_array *res, PyObject *value)
{
    mlx_vector_array vec = { NULL };
    bool ok = value && tree_vector(&vec, value, false);

    Py_XDECREF(value);
    if (!ok)
        return 1;
    mlx_vector_array_free(*res);
    *res = vec;
    return 0;
}

/* ---- the function ---- */

static int call(mlx_vector_array *res, const mlx_vector_array in, void *kept, bool strict)
{
    PyObject *pair = restore(closure_object(kept, ARGUMENTS), in), *leaves = PyList_New(0);
    PyObject *value = NULL, *structure = NULL;
    int rc = 1;

    if (pair)
        value = PyObject_Call(closure_object(kept, FUN), PyTuple_GetItem(pair, 0),
                              PyTuple_GetItem(pair, 1));
    if (value && leaves && (structure = tree_structure(leaves, value, strict)) &&
        PyList_SetItem(closure_object(kept, RETURNED), 0, structure) == 0)
        rc = closure_result(res, leaves);
    Py_XDECREF(pair);
    Py_XDECREF(value);
    Py_XDECREF(leaves);
    return rc;
}

static int call_arrays(mlx_vector_array *res, const mlx_vector_array in, void *kept)
{
    return call(res, in, kept, true);
}

static int call_anything(mlx_vector_array *res, const mlx_vector_array in, void *kept)
{
    return call(res, in, kept, false);
}

/* ---- rules ---- */

static int call_vjp(mlx_vector_array *res, const mlx_vector_array primals,
                    const mlx_vector_array cotangents, const mlx_vector_array outputs, void *kept)
{
    PyObject *returned = PyList_GetItem(closure_object(kept, RETURNED), 0), *value = NULL;
    PyObject *pair = restore(closure_object(kept, ARGUMENTS), primals);
    PyObject *cotans = restore(returned, cotangents), *outs = restore(returned, outputs);
    PyObject *args = pair ? bare(PyTuple_GetItem(pair, 0)) : NULL, *all = NULL;

    if (args && cotans && outs && (all = PyTuple_Pack(3, args, cotans, outs)))
        value = PyObject_Call(closure_object(kept, FUN), all, PyTuple_GetItem(pair, 1));
    Py_XDECREF(all);
    Py_XDECREF(args);
    Py_XDECREF(cotans);
    Py_XDECREF(outs);
    Py_XDECREF(pair);
    return rule_result(res, value);
}

/* The items of a list for those numbers that wanted names, None for the other arrays of a tree. */
struct some {
    const int *wanted; /* ascending */
    size_t n_wanted, n_taken;
    int at; /* the number of the next array */
    mlx_vector_array items;
};

static PyObject *take_some(PyObject *leaf, void *data)
{
    struct some *s = data;
    struct array_object *out;
    mlx_array at;

    if (!is_array(leaf) || s->n_taken == s->n_wanted || s->wanted[s->n_taken] != s->at++)
        return Py_NewRef(Py_None);
    if (!(out = array_alloc()))
        return NULL;
    at = mlx_array_at(&out->place);
    return array_done(out, mlx_vector_array_get(&at, s->items, s->n_taken++));
}

/* Calls a rule of positional arguments with a second tree like theirs. */
static PyObject *call_pair(void *kept, mlx_vector_array in, tree_fn *fn, void *data)
{
    PyObject *pair = restore(closure_object(kept, ARGUMENTS), in), *args, *value = NULL;
    PyObject *second, *first = NULL, *other = NULL;

    if (!pair)
        return NULL;
    args = PyTuple_GetItem(pair, 0);
    second = no_keywords(pair, fn == take_some ? "custom jvp" : "custom vmap")
                 ? tree_map(args, fn, data)
                 : NULL;
    if (second && (first = bare(args)) && (other = bare(second)))
        value = PyObject_CallFunctionObjArgs(closure_object(kept, FUN), first, other, NULL);
    Py_XDECREF(first);
    Py_XDECREF(other);
    Py_XDECREF(second);
    Py_DECREF(pair);
    return value;
}

/* NOLINTNEXTLINE(readability-function-size): the library calls it */
static int call_jvp(mlx_vector_array *res, const mlx_vector_array primals,
                    const mlx_vector_array tangents, const int *argnums, size_t n, void *kept)
{
    struct some s = { .wanted = argnums, .n_wanted = n, .items = tangents };

    return rule_result(res, call_pair(kept, primals, take_some, &s));
}

/* The axes of the arrays of a tree, None for -1. */
struct axis_supply {
    const int *axes;
    size_t n, next;
};

static PyObject *next_axis(PyObject *leaf, void *data)
{
    struct axis_supply *s = data;

    if (!is_array(leaf) || s->next == s->n || s->axes[s->next++] < 0)
        return Py_NewRef(Py_None);
    return PyLong_FromLong(s->axes[s->next - 1]);
}

struct batched {
    mlx_vector_array arrays;
    mlx_vector_int axes;
};

static bool add_batched(PyObject *leaf, PyObject *at, void *data)
{
    struct batched *b = data;
    int axis = -1;

    if (!is_array(leaf))
        return true;
    if (at != Py_None && !int_from(at, &axis))
        return false;
    return error_check(mlx_vector_array_append_value(b->arrays, array_of(leaf))) &&
           error_check(mlx_vector_int_append_value(b->axes, axis));
}

/* NOLINTNEXTLINE(readability-function-size): the library calls it */
static int call_vmap(mlx_vector_array *res, mlx_vector_int *res_axes, const mlx_vector_array in,
                     const int *axes, size_t n, void *kept)
{
    struct axis_supply s = { axes, n, 0 };
    struct batched b = { mlx_vector_array_new(), mlx_vector_int_new() };
    PyObject *value = call_pair(kept, in, next_axis, &s);
    bool ok = value && PyTuple_Check(value) && PyTuple_Size(value) == 2;

    if (!ok && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError,
                        "[custom vmap] The function returns a pair: results, and their axes.");
    ok = ok &&
         tree_visit_pair(PyTuple_GetItem(value, 0), PyTuple_GetItem(value, 1), add_batched, &b);
    Py_XDECREF(value);
    if (!ok) {
        mlx_vector_array_free(b.arrays);
        mlx_vector_int_free(b.axes);
        return 1;
    }
    mlx_vector_array_free(*res);
    mlx_vector_int_free(*res_axes);
    *res = b.arrays;
    *res_axes = b.axes;
    return 0;
}

/* ---- a call ---- */

struct custom_object {
    PyObject_HEAD PyObject *fun;
    PyObject *vjp; /* the rules may be NULL */
    PyObject *jvp;
    PyObject *vmap;
};

/* A block for a closure, or NULL: with an exception, or because there is no such rule. */
static void *keep(PyObject *fun, PyObject *arguments, PyObject *returned)
{
    return fun ? closure_keep((PyObject *const[]){ fun, arguments, returned }) : NULL;
}

struct closures {
    mlx_closure fun, made;
    mlx_closure_custom vjp;
    mlx_closure_custom_jvp jvp;
    mlx_closure_custom_vmap vmap;
};

static void closures_free(struct closures *c)
{
    mlx_closure_free(c->fun);
    mlx_closure_free(c->made);
    mlx_closure_custom_free(c->vjp);
    mlx_closure_custom_jvp_free(c->jvp);
    mlx_closure_custom_vmap_free(c->vmap);
}

/* Makes one of them, if there is something for it to keep. */
#define CLOSURE(handle, type, fn, block)                                                           \
    do {                                                                                           \
        void *kept_ = (block);                                                                     \
        if (kept_ && !((handle) = type##_new_func_payload(fn, kept_, closure_drop)).ctx)           \
            closure_drop(kept_);                                                                   \
    } while (0)

static bool custom_closures(struct closures *c, const struct custom_object *o, PyObject *arguments,
                            PyObject *returned)
{
    CLOSURE(c->fun, mlx_closure, call_arrays, keep(o->fun, arguments, returned));
    CLOSURE(c->vjp, mlx_closure_custom, call_vjp, keep(o->vjp, arguments, returned));
    CLOSURE(c->jvp, mlx_closure_custom_jvp, call_jvp, keep(o->jvp, arguments, NULL));
    CLOSURE(c->vmap, mlx_closure_custom_vmap, call_vmap, keep(o->vmap, arguments, NULL));
    if (!c->fun.ctx || (o->vjp && !c->vjp.ctx) || (o->jvp && !c->jvp.ctx) ||
        (o->vmap && !c->vmap.ctx))
        return error_check(1);
    return error_check(mlx_custom_function(&c->made, c->fun, c->vjp, c->jvp, c->vmap));
}

static bool checkpoint_closures(struct closures *c, PyObject *fun, PyObject *arguments,
                                PyObject *returned)
{
    CLOSURE(c->fun, mlx_closure, call_anything, keep(fun, arguments, returned));
    return error_check(c->fun.ctx ? mlx_checkpoint(&c->made, c->fun) : 1);
}

/* Calls what is made for the arguments: of a custom function, or of fun. */
static PyObject *call_made(const struct custom_object *o, PyObject *fun, PyObject *pair)
{
    struct closures c = { 0 };
    mlx_vector_array in = { NULL }, out = { NULL };
    PyObject *leaves = PyList_New(0), *returned = Py_BuildValue("[O]", Py_None), *res = NULL;
    PyObject *arguments = leaves ? tree_structure(leaves, pair, false) : NULL;

    if (arguments && returned &&
        (o ? custom_closures(&c, o, arguments, returned)
           : checkpoint_closures(&c, fun, arguments, returned)) &&
        tree_vector(&in, leaves, true) && error_check(mlx_closure_apply(&out, c.made, in)))
        res = restore(PyList_GetItem(returned, 0), out);
    closures_free(&c);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    Py_XDECREF(arguments);
    Py_XDECREF(leaves);
    Py_XDECREF(returned);
    return res;
}

static PyObject *custom_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    const struct custom_object *o = (struct custom_object *)self;
    PyObject *pair, *res;

    if (!o->fun) {
        PyErr_SetString(PyExc_ValueError, "custom_function: The object was not initialized.");
        return NULL;
    }
    if (!o->vjp && !o->jvp && !o->vmap)
        return PyObject_Call(o->fun, args, keywords);
    pair = keywords ? PyTuple_Pack(2, args, keywords) : Py_BuildValue("(O{})", args);
    res = pair ? call_made(o, NULL, pair) : NULL;
    Py_XDECREF(pair);
    return res;
}

static PyObject *checkpoint_call(struct function_object *f, PyObject *args, PyObject *keywords)
{
    PyObject *pair = PyTuple_Pack(2, args, keywords), *res = NULL;

    if (pair)
        res = call_made(NULL, f->fun, pair);
    Py_XDECREF(pair);
    return res;
}

PyObject *hand_checkpoint(struct frame *f)
{
    static const struct function_kind kind = { checkpoint_call, NULL };

    if (!function_check(f->slot[0], "checkpoint"))
        return NULL;
    return (PyObject *)function_make(&kind, f->slot[0]);
}

/* ---- the type ---- */

static int custom_fill(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct custom_object *o = (struct custom_object *)self;
    static char *names[] = { "f", NULL };
    PyObject *f, *old = o->fun;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:custom_function", names, &f) ||
        !function_check(f, "custom_function"))
        return -1;
    o->fun = Py_NewRef(f);
    Py_XDECREF(old);
    return 0;
}

static PyObject *set_rule(PyObject *self, PyObject **rule, PyObject *f)
{
    PyObject *old = *rule;

    if (!function_check(f, "custom_function"))
        return NULL;
    *rule = Py_NewRef(f);
    Py_XDECREF(old);
    return Py_NewRef(self);
}

static PyObject *custom_vjp(PyObject *self, PyObject *f)
{
    return set_rule(self, &((struct custom_object *)self)->vjp, f);
}

static PyObject *custom_jvp(PyObject *self, PyObject *f)
{
    return set_rule(self, &((struct custom_object *)self)->jvp, f);
}

static PyObject *custom_vmap(PyObject *self, PyObject *f)
{
    return set_rule(self, &((struct custom_object *)self)->vmap, f);
}

static int custom_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct custom_object *o = (struct custom_object *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(o->fun);
    Py_VISIT(o->vjp);
    Py_VISIT(o->jvp);
    Py_VISIT(o->vmap);
    return 0;
}

static int custom_clear(PyObject *self)
{
    struct custom_object *o = (struct custom_object *)self;

    Py_CLEAR(o->fun);
    Py_CLEAR(o->vjp);
    Py_CLEAR(o->jvp);
    Py_CLEAR(o->vmap);
    return 0;
}

static void custom_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    custom_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

bool custom_init(PyObject *m)
{
    static PyMethodDef methods[] = {
        { "vjp", custom_vjp, METH_O,
          "vjp($self, f, /)\n--\n\nMakes f(primals, cotangents, outputs) the rule for gradients: "
          "it\n"
          "returns the cotangents of the primals." },
        { "jvp", custom_jvp, METH_O,
          "jvp($self, f, /)\n--\n\nMakes f(primals, tangents) the rule for tangents: it returns\n"
          "those of the outputs. Tangents that are not there are None." },
        { "vmap", custom_vmap, METH_O,
          "vmap($self, f, /)\n--\n\nMakes f(inputs, axes) the rule for batches: it returns the\n"
          "outputs and their axes. The axis of what has no batch is None." },
        { 0 },
    };
    static const char doc[] =
        "custom_function(f)\n--\n\n"
        "The function f with rules of its own for transformations, set by its methods vjp, jvp "
        "and\n"
        "vmap, which are decorators. What has no rule follows from f. Arrays that f reads besides\n"
        "its arguments have no gradients.";
    PyType_Slot slots[] = {
        { Py_tp_doc, (void *)doc },          { Py_tp_init, custom_fill },
        { Py_tp_call, custom_call },         { Py_tp_methods, methods },
        { Py_tp_traverse, custom_traverse }, { Py_tp_clear, custom_clear },
        { Py_tp_dealloc, custom_dealloc },   { 0, NULL },
    };
    PyType_Spec spec = { .name = "mlx.core.custom_function",
                         .basicsize = sizeof(struct custom_object),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                         .slots = slots };
    PyTypeObject *type = type_add(m, &spec);

    Py_XDECREF((PyObject *)type);
    return type != NULL;
}
