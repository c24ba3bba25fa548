/* What stands between the brackets behind an array, understood: for reading and for writing. */
#pragma once

#include "array.h"

enum {
    AXES_MAX = 32,               /* of arrays, in the library */
    SUBS_MAX = 2 * AXES_MAX + 1, /* every axis, and as many new ones */
};

/* Sizes of an array's axes. A copy: __index__ of a subscript may give the array another shape. */
struct dims {
    int n;
    int v[AXES_MAX];
};

enum sub_kind {
    SUB_INT,
    SUB_SLICE,
    SUB_NEW, /* None: an axis of size 1 */
    SUB_ARRAY,
    SUB_LIST,     /* becomes an array */
    SUB_ELLIPSIS, /* becomes slices */
    SUB_NONE,     /* nothing that subscripts can be */
};

/* One of a list of subscripts. */
struct sub {
    enum sub_kind kind;
    int start, stop, step; /* of a slice as given; start of an int, counted from the front */
    int begin, count;      /* of a slice: its first position, its elements */
    mlx_array array;
};

struct subs {
    struct sub v[SUBS_MAX];
    int n;
    int n_axes;   /* of the array, that they speak of */
    int n_arrays; /* among them */
    mlx_array_place rooms[SUBS_MAX];
    int n_rooms;
};

/* Where the parts of a result come from when arrays are among the subscripts. The axes of ints and
 * arrays become those of the arrays' common shape: in front if other subscripts lie between them,
 * else where they are. */
struct layout {
    int first, end;  /* of the ints and arrays: the first one, and behind the last one */
    int core;        /* subscripts before this one become arrays of positions */
    bool front;      /* the arrays' axes come first */
    int array_dims;  /* how many of those axes */
    int slices;      /* in the core: each of them is an axis of the positions */
    int slices_post; /* of these, how many come behind the arrays' axes */
};

void dims_of(struct dims *d, mlx_array a);

/* What kind of subscript o is; an exception may be set where it is none. */
enum sub_kind sub_kind_of(PyObject *o);

/* An int or a slice along an axis of that size. */
bool sub_int(struct sub *s, PyObject *o, int size);
bool sub_slice(struct sub *s, PyObject *o, int size);

/* A slice of all of an axis. */
struct sub sub_all(int size);
bool sub_is_all(const struct sub *s, int size);

/* Reads the n subscripts at o, the axes of d in turn. Ends with subs_clear, on failure as well. */
bool subs_read(struct subs *s, const struct dims *d, PyObject *const *o, Py_ssize_t n);
/* The same of a tuple. */
bool subs_read_tuple(struct subs *s, const struct dims *d, PyObject *tuple);
void subs_clear(struct subs *s);

/* The layout of subscripts with arrays among them. all_steps: slices behind the last array become
 * positions if their step is not 1; otherwise none of them does. */
void layout_of(struct layout *l, const struct subs *s, bool all_steps);

/* The arrays of positions of the core, and the axes that they belong to; rooms in s. windows:
 * slices behind the core that begin elsewhere than at 0 get their position, too. */
struct positions {
    mlx_array v[AXES_MAX];
    int axis[AXES_MAX];
    int n;
};
bool positions_of(struct positions *p, struct subs *s, const struct layout *l, bool windows);

/* Sets the exception for a subscript that is none. */
bool sub_refuse(bool in_tuple);
/* The same for an array that has no axes. */
bool sub_no_axes(void);
