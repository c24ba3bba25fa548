/* mx.compile. */
#include "args.h"
#include "closure.h"
#include "function.h"
#include "hand.h"

/* What a compiled function keeps: trees that are read and written besides the arguments, each may
 * be NULL, and for each of its traces, under its number, the structure of what was returned and the
 * number of its arrays. */
enum { INPUTS, OUTPUTS, RETURNED };

/* The library keeps the last few traces of a shapeless function; structures of more are dropped. */
enum { SHAPELESS_KEPT = 256 };

/* ---- constants: the containers and numbers of the arguments ---- */

enum { ROOM = 64 };

struct constants {
    uint64_t *v;
    size_t n, room;
    PyObject *arrays; /* the list of those in the arguments */
    uint64_t small[ROOM];
};

/* What no number of an argument is likely to be. */
#define ARRAY_MARK 0x9e3779b97f4a7c15u
#define LIST_MARK 0xc2b2ae3d27d4eb4fu
#define DICT_MARK 0x165667b19e3779f9u
#define NONE_MARK 0x27d4eb2f165667c5u
#define INT_MARK 0xd6e8feb86659fd93u
#define FLOAT_MARK 0xa0761d6478bd642fu
#define TEXT_MARK 0xe7037ed1a0b428dbu

static bool put(struct constants *c, uint64_t mark, uint64_t value)
{
    if (c->n + 2 > c->room) {
        size_t room = c->room * 2;
        uint64_t *v = PyMem_Malloc(room * sizeof *v);
        if (!v) {
            PyErr_NoMemory();
            return false;
        }
        memcpy(v, c->v, c->n * sizeof *v);
        if (c->v != c->small)
            PyMem_Free(c->v);
        c->v = v;
        c->room = room;
    }
    c->v[c->n++] = mark;
    c->v[c->n++] = value;
    return true;
}

static bool put_hash(struct constants *c, uint64_t mark, PyObject *o)
{
    Py_hash_t hash = PyObject_Hash(o);

    return (hash != -1 || !PyErr_Occurred()) && put(c, mark, (uint64_t)hash);
}

static bool put_int(struct constants *c, PyObject *o)
{
    long long v = PyLong_AsLongLong(o);

    /* Larger ones are told apart by their hash. */
    if (v == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return false;
        PyErr_Clear();
        return put_hash(c, TEXT_MARK, o);
    }
    return put(c, INT_MARK, (uint64_t)v);
}

static bool put_float(struct constants *c, PyObject *o)
{
    double v = PyFloat_AsDouble(o);
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return put(c, FLOAT_MARK, bits);
}

static bool put_leaf(struct constants *c, PyObject *o)
{
    if (is_array(o))
        return put(c, ARRAY_MARK, 0) && PyList_Append(c->arrays, o) == 0;
    if (PyUnicode_Check(o))
        return put_hash(c, TEXT_MARK, o);
    if (PyLong_Check(o))
        return put_int(c, o);
    if (PyFloat_Check(o))
        return put_float(c, o);
    if (o == Py_None)
        return put(c, NONE_MARK, 0);
    PyErr_Format(PyExc_ValueError,
                 "[compile] Arguments are trees of arrays, ints, floats, strings and None, "
                 "not of the type %s.",
                 error_type_name(o));
    return false;
}

static bool put_tree(struct constants *c, PyObject *o)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool ok;

    if (!is_tree(o))
        return put_leaf(c, o);
    if (Py_EnterRecursiveCall(" in the arguments of a compiled function"))
        return false;
    if (PyDict_Check(o)) {
        ok = put(c, DICT_MARK, (uint64_t)PyDict_Size(o));
        while (ok && PyDict_Next(o, &at, &key, &value)) {
            Py_INCREF(value); /* hashes are computed by callers, too */
            ok = put_hash(c, TEXT_MARK, key) && put_tree(c, value);
            Py_DECREF(value);
        }
    } else {
        ok = put(c, LIST_MARK, (uint64_t)list_size(o));
        for (; ok && at < list_size(o); at++)
            ok = put_tree(c, list_item(o, at));
    }
    Py_LeaveRecursiveCall();
    return ok;
}

/* ---- the trace ---- */

struct compile_call {
    struct function_object *f;
    PyObject *args, *keywords;
    Py_ssize_t n_captured; /* the last arrays that the library calls with */
};

/* Lists of the arrays of a captured tree, before and while it has others. */
static bool begin_capture(const struct compile_call *c, PyObject *tracers, struct tree_swap *swap)
{
    Py_ssize_t n = PyList_Size(tracers);

    swap->from = PyList_GetSlice(tracers, n - c->n_captured, n);
    swap->to = PyList_New(0);
    return swap->from && swap->to && tree_flatten(swap->to, c->f->data[INPUTS], false) &&
           tree_fill(&c->f->data[INPUTS], swap->from);
}

static PyObject *call_fun(const struct compile_call *c, PyObject *tracers)
{
    Py_ssize_t next = 0;
    PyObject *args = tree_unflatten(c->args, tracers, &next), *res = NULL;
    PyObject *keywords = args ? tree_unflatten(c->keywords, tracers, &next) : NULL;

    if (keywords)
        res = PyObject_Call(c->f->fun, args, keywords);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    return res;
}

/* Keeps what belongs to the trace under a number, which the library keeps with it. */
static bool note_structure(struct function_object *f, PyObject *structure, Py_ssize_t n)
{
    PyObject *key = PyLong_FromUnsignedLongLong(++f->count), *old = NULL;
    PyObject *pair = Py_BuildValue("(On)", structure, n);
    bool ok = key && pair && PyDict_SetItem(f->data[RETURNED], key, pair) == 0;

    if (ok && f->flag && f->count > SHAPELESS_KEPT &&
        (old = PyLong_FromUnsignedLongLong(f->count - SHAPELESS_KEPT)) &&
        PyDict_DelItem(f->data[RETURNED], old) < 0)
        PyErr_Clear();
    Py_XDECREF(key);
    Py_XDECREF(old);
    Py_XDECREF(pair);
    if (ok)
        mlx_compile_set_note(f->count);
    return ok;
}

/* The arrays of what the function returned, then those of the tree that it writes. */
static PyObject *take_outputs(struct function_object *f, PyObject *value)
{
    PyObject *leaves = PyList_New(0);
    PyObject *structure = leaves ? tree_structure(leaves, value, false) : NULL;
    bool ok = structure && note_structure(f, structure, PyList_Size(leaves)) &&
              (!f->data[OUTPUTS] || tree_flatten(leaves, f->data[OUTPUTS], false));

    Py_XDECREF(structure);
    if (!ok)
        Py_CLEAR(leaves);
    return leaves;
}

static PyObject *call_traced(PyObject *tracers, void *data)
{
    const struct compile_call *c = data;
    struct function_object *f = c->f;
    struct tree_swap swap = { 0 };
    PyObject *value = NULL, *leaves = NULL;

    if (!f->data[INPUTS] || begin_capture(c, tracers, &swap))
        value = call_fun(c, tracers);
    if (value)
        leaves = take_outputs(f, value);
    if (swap.to && !tree_replace(&f->data[INPUTS], &swap))
        Py_CLEAR(leaves);
    Py_XDECREF(swap.from);
    Py_XDECREF(swap.to);
    Py_XDECREF(value);
    return leaves;
}

/* ---- the call ---- */

/* The arrays go where the tree was written, those before them into what is returned. */
static PyObject *give_outputs(struct function_object *f, PyObject *arrays, uint64_t note)
{
    PyObject *key = PyLong_FromUnsignedLongLong(note), *captured = NULL, *res = NULL;
    PyObject *pair = key ? PyDict_GetItemWithError(f->data[RETURNED], key) : NULL;
    Py_ssize_t n, next = 0;
    bool ok = true;

    Py_XDECREF(key);
    if (!pair) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError,
                            "[compile] The graph of another function was used.");
        return NULL;
    }
    Py_INCREF(pair);
    n = PyLong_AsSsize_t(PyTuple_GetItem(pair, 1));
    if (f->data[OUTPUTS]) {
        captured = PyList_GetSlice(arrays, n, PyList_Size(arrays));
        ok = captured && tree_fill(&f->data[OUTPUTS], captured);
    }
    if (ok)
        res = tree_restore(PyTuple_GetItem(pair, 0), arrays, &next);
    Py_XDECREF(captured);
    Py_DECREF(pair);
    return res;
}

static uintptr_t id_of(const struct function_object *f)
{
    return (uintptr_t)f;
}

static PyObject *apply(struct compile_call *c, const struct constants *k)
{
    struct closure_call call = { call_traced, c };
    mlx_closure closure = closure_of(&call), compiled = mlx_closure_new();
    mlx_vector_array in = { NULL }, out = { NULL };
    PyObject *arrays = NULL, *res = NULL;

    if (tree_vector(&in, k->arrays, true) &&
        error_check(mlx_detail_compile(&compiled, closure, id_of(c->f), c->f->flag, k->v, k->n)) &&
        error_check(mlx_closure_apply(&out, compiled, in)) && (arrays = array_list(out)))
        res = give_outputs(c->f, arrays, mlx_compile_get_note());
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_free(compiled);
    mlx_closure_free(closure);
    Py_XDECREF(arrays);
    return res;
}

static PyObject *compiled_call(struct function_object *f, PyObject *args, PyObject *keywords)
{
    struct compile_call c = { .f = f, .args = args, .keywords = keywords };
    struct constants k = { .room = ROOM, .arrays = PyList_New(0) };
    PyObject *res = NULL;

    k.v = k.small;
    bool ok = k.arrays && put_tree(&k, args) && put_tree(&k, keywords);
    if (ok && f->data[INPUTS]) {
        Py_ssize_t n = PyList_Size(k.arrays);
        ok = tree_flatten(k.arrays, f->data[INPUTS], false);
        c.n_captured = PyList_Size(k.arrays) - n;
    }
    if (ok)
        res = apply(&c, &k);
    if (k.v != k.small)
        PyMem_Free(k.v);
    Py_XDECREF(k.arrays);
    return res;
}

/* ---- making the function ---- */

static void forget_traces(struct function_object *f)
{
    mlx_detail_compile_erase(id_of(f));
}

PyObject *hand_compile(struct frame *f)
{
    static const struct function_kind kind = { compiled_call, forget_traces };
    struct function_object *res;

    if (!function_check(f->slot[0], "compile") || !(res = function_make(&kind, f->slot[0])))
        return NULL;
    res->flag = f->v[3].b;
    res->data[INPUTS] = f->given[1] ? Py_NewRef(f->slot[1]) : NULL;
    res->data[OUTPUTS] = f->given[2] ? Py_NewRef(f->slot[2]) : NULL;
    if (!(res->data[RETURNED] = PyDict_New())) {
        Py_DECREF((PyObject *)res);
        return NULL;
    }
    return (PyObject *)res;
}
