/* Trees: lists, tuples (named ones, too) and dicts of each other, with arrays as their leaves.
 *
 * Everything that is no such container is a leaf. mx.random.state stands for the key of the calling
 * thread where a tree is read or written in place. Leaves are counted in the order of the
 * containers; lists of leaves are Python lists of arrays. */
#pragma once

#include "array.h"

/* Appends the arrays of a tree to the list leaves. strict: other leaves are a ValueError. */
bool tree_flatten(PyObject *leaves, PyObject *tree, bool strict);

/* The same for a list of the library's. */
bool tree_append(mlx_vector_array vec, PyObject *tree, bool strict);

/* The arrays of a tree as a new list of the library's, to be freed. */
bool tree_vector(mlx_vector_array *out, PyObject *tree, bool strict);

/* Calls of tree_map for each leaf. A new reference to what takes its place, or NULL. */
typedef PyObject *tree_fn(PyObject *leaf, void *data);

/* A tree of the same containers, made of what fn says for the leaves. Subclasses of tuple are kept,
 * those of list and dict become plain. */
PyObject *tree_map(PyObject *tree, tree_fn *fn, void *data);

/* A copy of a tree whose arrays are replaced by the items of leaves, from number *next on, which
 * moves on. */
PyObject *tree_unflatten(PyObject *tree, PyObject *leaves, Py_ssize_t *next);

/* A copy of a tree in which a mark stands for each array; the arrays are appended to leaves. */
PyObject *tree_structure(PyObject *leaves, PyObject *tree, bool strict);

/* The tree of a structure, with arrays at its marks. */
PyObject *tree_restore(PyObject *structure, PyObject *leaves, Py_ssize_t *next);

/* Replaces the arrays of a tree in place, which ends up in *tree: lists and dicts stay the objects
 * that they are. */
bool tree_update(PyObject **tree, tree_fn *fn, void *data);

/* Replaces the arrays of a tree in place by the items of leaves. */
bool tree_fill(PyObject **tree, PyObject *leaves);

/* What was replaced for the time of a call. */
struct tree_swap {
    PyObject *from; /* lists of arrays of the same length */
    PyObject *to;
    Py_ssize_t next; /* 0 */
};

/* Puts the item of to where the item of from with the same number still is in a tree that has been
 * filled with from. What was written there meanwhile stays. An exception that is set is kept. */
bool tree_put_back(PyObject **tree, struct tree_swap *swap);

/* Puts the item of to wherever one of from is found. An exception that is set is kept. */
bool tree_replace(PyObject **tree, const struct tree_swap *swap);

/* Calls fn for each leaf of tree and what stands for it in prefix, a tree of the same containers
 * whose leaves may be further up. False ends the walk, with an exception set. */
typedef bool tree_pair_fn(PyObject *leaf, PyObject *at, void *data);
bool tree_visit_pair(PyObject *tree, PyObject *prefix, tree_pair_fn *fn, void *data);

/* Whether o is a container. */
static inline bool is_tree(PyObject *o)
{
    return is_list(o) || PyDict_Check(o);
}

bool tree_init(PyObject *m);
