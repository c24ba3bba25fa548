#include "tree.h"

#include "random_state.h"

static PyObject *mark; /* stands for an array in structures */

static bool enter(void)
{
    return Py_EnterRecursiveCall(" in a tree of arrays") == 0;
}

static bool only_arrays(PyObject *got)
{
    PyErr_Format(PyExc_ValueError,
                 "[tree_flatten] A tree of nothing but arrays is wanted; it has %s.",
                 error_type_name(got));
    return false;
}

/* ---- reading ---- */

struct flattening {
    bool (*add)(void *to, PyObject *a);
    void *to;
    bool strict;
};

static bool flatten(const struct flattening *f, PyObject *o)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool ok = true;

    if (is_array(o))
        return f->add(f->to, o);
    if (is_random_state(o)) {
        PyObject *now = random_state_get();
        ok = now && f->add(f->to, now);
        Py_XDECREF(now);
        return ok;
    }
    if (!is_tree(o))
        return !f->strict || only_arrays(o);
    if (!enter())
        return false;
    if (PyDict_Check(o))
        while (ok && PyDict_Next(o, &at, &key, &value))
            ok = flatten(f, value);
    else
        for (; ok && at < list_size(o); at++)
            ok = flatten(f, list_item(o, at));
    Py_LeaveRecursiveCall();
    return ok;
}

static bool add_to_list(void *to, PyObject *a)
{
    return PyList_Append(to, a) == 0;
}

bool tree_flatten(PyObject *leaves, PyObject *tree, bool strict)
{
    return flatten(&(struct flattening){ add_to_list, leaves, strict }, tree);
}

static bool add_to_vector(void *to, PyObject *a)
{
    return error_check(mlx_vector_array_append_value(*(mlx_vector_array *)to, array_of(a)));
}

bool tree_append(mlx_vector_array vec, PyObject *tree, bool strict)
{
    return flatten(&(struct flattening){ add_to_vector, &vec, strict }, tree);
}

bool tree_vector(mlx_vector_array *out, PyObject *tree, bool strict)
{
    mlx_vector_array vec = mlx_vector_array_new();

    if (!vec.ctx || !tree_append(vec, tree, strict)) {
        error_raise();
        mlx_vector_array_free(vec);
        return false;
    }
    *out = vec;
    return true;
}

/* ---- copies ---- */

static PyObject *map_dict(PyObject *o, tree_fn *fn, void *data)
{
    PyObject *res = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;

    while (res && PyDict_Next(o, &at, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        PyObject *item = tree_map(value, fn, data);
        if (!item || PyDict_SetItem(res, key, item) < 0)
            Py_CLEAR(res);
        Py_XDECREF(item);
        Py_DECREF(value);
        Py_DECREF(key);
    }
    return res;
}

static PyObject *map_items(PyObject *o, tree_fn *fn, void *data)
{
    PyObject *res = PyList_New(0);

    for (Py_ssize_t i = 0; res && i < list_size(o); i++) {
        PyObject *from = list_get(o, i), *item = from ? tree_map(from, fn, data) : NULL;
        if (!item || PyList_Append(res, item) < 0)
            Py_CLEAR(res);
        Py_XDECREF(item);
        Py_XDECREF(from);
    }
    return res;
}

/* A tuple of the type of like, of a list, which is released. Named ones take their items one by
 * one. */
static PyObject *as_tuple(PyObject *items, PyObject *like)
{
    PyObject *type = (PyObject *)Py_TYPE(like), *tuple = items ? PyList_AsTuple(items) : NULL;
    PyObject *res = NULL;

    Py_XDECREF(items);
    if (!tuple || PyTuple_CheckExact(like))
        return tuple;
    if (PyObject_HasAttrString(type, "_fields"))
        res = PyObject_Call(type, tuple, NULL);
    else
        res = PyObject_CallFunctionObjArgs(type, tuple, NULL);
    Py_DECREF(tuple);
    return res;
}

PyObject *tree_map(PyObject *tree, tree_fn *fn, void *data)
{
    PyObject *res;

    if (!is_tree(tree))
        return fn(tree, data);
    if (!enter())
        return NULL;
    if (PyDict_Check(tree))
        res = map_dict(tree, fn, data);
    else if (PyList_Check(tree))
        res = map_items(tree, fn, data);
    else
        res = as_tuple(map_items(tree, fn, data), tree);
    Py_LeaveRecursiveCall();
    return res;
}

/* The next of the arrays that a tree is filled with. */
struct supply {
    PyObject *leaves;
    Py_ssize_t *next;
};

static PyObject *supply_next(const struct supply *s)
{
    PyObject *a = PyList_GetItem(s->leaves, *s->next);

    (*s->next)++;
    return Py_XNewRef(a);
}

static PyObject *replace_array(PyObject *leaf, void *data)
{
    return is_array(leaf) ? supply_next(data) : Py_NewRef(leaf);
}

PyObject *tree_unflatten(PyObject *tree, PyObject *leaves, Py_ssize_t *next)
{
    return tree_map(tree, replace_array, &(struct supply){ leaves, next });
}

static PyObject *replace_mark(PyObject *leaf, void *data)
{
    return leaf == mark ? supply_next(data) : Py_NewRef(leaf);
}

PyObject *tree_restore(PyObject *structure, PyObject *leaves, Py_ssize_t *next)
{
    return tree_map(structure, replace_mark, &(struct supply){ leaves, next });
}

struct marking {
    PyObject *leaves;
    bool strict;
};

static PyObject *put_mark(PyObject *leaf, void *data)
{
    const struct marking *m = data;

    if (is_array(leaf))
        return PyList_Append(m->leaves, leaf) < 0 ? NULL : Py_NewRef(mark);
    if (m->strict) {
        only_arrays(leaf);
        return NULL;
    }
    return Py_NewRef(leaf);
}

PyObject *tree_structure(PyObject *leaves, PyObject *tree, bool strict)
{
    return tree_map(tree, put_mark, &(struct marking){ leaves, strict });
}

/* ---- in place ---- */

static PyObject *update(PyObject *o, tree_fn *fn, void *data);

static bool update_dict(PyObject *o, tree_fn *fn, void *data)
{
    PyObject *keys = PyDict_Keys(o);
    bool ok = keys != NULL;

    for (Py_ssize_t i = 0; ok && i < PyList_Size(keys); i++) {
        PyObject *key = PyList_GetItem(keys, i);
        PyObject *value = Py_XNewRef(PyDict_GetItemWithError(o, key));
        PyObject *item = value ? update(value, fn, data) : NULL;
        ok = item ? item == value || PyDict_SetItem(o, key, item) == 0 : !PyErr_Occurred();
        Py_XDECREF(item);
        Py_XDECREF(value);
    }
    Py_XDECREF(keys);
    return ok;
}

static bool update_list(PyObject *o, tree_fn *fn, void *data)
{
    bool ok = true;

    for (Py_ssize_t i = 0; ok && i < PyList_Size(o); i++) {
        PyObject *from = Py_NewRef(PyList_GetItem(o, i)), *item = update(from, fn, data);
        ok = item && (item == from || PyList_SetItem(o, i, Py_NewRef(item)) == 0);
        Py_XDECREF(item);
        Py_DECREF(from);
    }
    return ok;
}

/* A tuple stays the same if nothing in it became another object. */
static PyObject *update_tuple(PyObject *o, tree_fn *fn, void *data)
{
    PyObject *items = PySequence_List(o);
    bool same = true;

    if (!items || !update_list(items, fn, data)) {
        Py_XDECREF(items);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(o); i++)
        same &= PyList_GetItem(items, i) == PyTuple_GetItem(o, i);
    if (!same)
        return as_tuple(items, o);
    Py_DECREF(items);
    return Py_NewRef(o);
}

static PyObject *update_state(PyObject *o, tree_fn *fn, void *data)
{
    PyObject *now = random_state_get(), *key = now ? fn(now, data) : NULL;
    bool ok = key && random_state_set(key);

    Py_XDECREF(now);
    Py_XDECREF(key);
    return ok ? Py_NewRef(o) : NULL;
}

/* A new reference to what takes o's place. */
static PyObject *update(PyObject *o, tree_fn *fn, void *data)
{
    PyObject *res;

    if (is_array(o))
        return fn(o, data);
    if (is_random_state(o))
        return update_state(o, fn, data);
    if (!is_tree(o))
        return Py_NewRef(o);
    if (!enter())
        return NULL;
    if (PyTuple_Check(o))
        res = update_tuple(o, fn, data);
    else
        res = (PyDict_Check(o) ? update_dict : update_list)(o, fn, data) ? Py_NewRef(o) : NULL;
    Py_LeaveRecursiveCall();
    return res;
}

bool tree_update(PyObject **tree, tree_fn *fn, void *data)
{
    PyObject *res = update(*tree, fn, data);

    if (!res)
        return false;
    Py_DECREF(*tree);
    *tree = res;
    return true;
}

bool tree_fill(PyObject **tree, PyObject *leaves)
{
    Py_ssize_t next = 0;

    return tree_update(tree, replace_array, &(struct supply){ leaves, &next });
}

/* ---- taking back what was filled in ---- */

static bool same_array(PyObject *a, PyObject *b)
{
    return ((struct array_object *)a)->place.array == ((struct array_object *)b)->place.array;
}

static PyObject *put_back(PyObject *leaf, void *data)
{
    struct tree_swap *s = data;
    Py_ssize_t i = s->next++;

    /* What the call changed may have more arrays, or fewer. */
    if (i < PyList_Size(s->from) && same_array(leaf, PyList_GetItem(s->from, i)))
        return Py_NewRef(PyList_GetItem(s->to, i));
    return Py_NewRef(leaf);
}

static PyObject *replace_known(PyObject *leaf, void *data)
{
    const struct tree_swap *s = data;

    for (Py_ssize_t i = 0; i < PyList_Size(s->from); i++)
        if (same_array(leaf, PyList_GetItem(s->from, i)))
            return Py_NewRef(PyList_GetItem(s->to, i));
    return Py_NewRef(leaf);
}

/* A second exception would hide the first. */
static bool update_quietly(PyObject **tree, tree_fn *fn, void *data)
{
    PyObject *type, *value, *trace;
    bool ok;

    PyErr_Fetch(&type, &value, &trace);
    ok = tree_update(tree, fn, data);
    if (type) {
        PyErr_Restore(type, value, trace);
        return false;
    }
    return ok;
}

bool tree_put_back(PyObject **tree, struct tree_swap *swap)
{
    return update_quietly(tree, put_back, swap);
}

bool tree_replace(PyObject **tree, const struct tree_swap *swap)
{
    return update_quietly(tree, replace_known, (void *)swap);
}

/* ---- two at a time ---- */

static bool not_a_prefix(const char *why)
{
    PyErr_Format(PyExc_ValueError, "[tree_map] The second tree is no prefix of the first: %s.",
                 why);
    return false;
}

/* What stands for item i of a list or tuple, or for a key, in the prefix; a new reference. */
static PyObject *at_item(PyObject *prefix, Py_ssize_t i)
{
    return is_list(prefix) ? list_get(prefix, i) : Py_NewRef(prefix);
}

/* Visits two, which are released, or were not found. */
static bool visit_owned(PyObject *tree, PyObject *prefix, tree_pair_fn *fn, void *data)
{
    bool ok = tree && prefix && tree_visit_pair(tree, prefix, fn, data);

    Py_XDECREF(tree);
    Py_XDECREF(prefix);
    return ok;
}

static bool visit_items(PyObject *tree, PyObject *prefix, tree_pair_fn *fn, void *data)
{
    Py_ssize_t n = list_size(tree);
    bool ok = true;

    if (is_tree(prefix) && (PyList_Check(prefix) != PyList_Check(tree) || PyDict_Check(prefix)))
        return not_a_prefix("a container of another kind");
    if (is_list(prefix) && list_size(prefix) != n)
        return not_a_prefix("a container of another length");
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = visit_owned(list_get(tree, i), at_item(prefix, i), fn, data);
    return ok;
}

static bool visit_dict(PyObject *tree, PyObject *prefix, tree_pair_fn *fn, void *data)
{
    PyObject *key, *value, *at = prefix;
    Py_ssize_t pos = 0;
    bool ok = true;

    if (is_list(prefix))
        return not_a_prefix("a container of another kind");
    if (PyDict_Check(prefix) && PyDict_Size(prefix) != PyDict_Size(tree))
        return not_a_prefix("a container of another length");
    while (ok && PyDict_Next(tree, &pos, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        if (PyDict_Check(prefix) && !(at = PyDict_GetItemWithError(prefix, key)) &&
            !PyErr_Occurred())
            not_a_prefix("a key is missing");
        ok = visit_owned(value, Py_XNewRef(at), fn, data);
        Py_DECREF(key);
    }
    return ok;
}

bool tree_visit_pair(PyObject *tree, PyObject *prefix, tree_pair_fn *fn, void *data)
{
    bool ok;

    if (!is_tree(tree))
        return fn(tree, prefix, data);
    if (!enter())
        return false;
    ok = (PyDict_Check(tree) ? visit_dict : visit_items)(tree, prefix, fn, data);
    Py_LeaveRecursiveCall();
    return ok;
}

bool tree_init(PyObject *m)
{
    (void)m;
    mark = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    return mark != NULL;
}
