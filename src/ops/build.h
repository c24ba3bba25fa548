/* What the constructors share: steps over temporaries, casts, broadcasts. Private to ops. */
#pragma once

#include "ops/ops.h"

static inline enum dtype dtype_of(const struct arr *a)
{
    return (enum dtype)a->dtype;
}

/* The full shape of a as a borrowed list. */
static inline struct ints shape_of(const struct arr *a)
{
    return (struct ints){ a->shape, a->ndim };
}

static inline struct ints shp_ints(const struct shp *s)
{
    return (struct ints){ s->d, (size_t)s->ndim };
}

static inline struct shape_params shape_params(const struct shp *s)
{
    struct shape_params p = { .n = s->ndim };

    for (int i = 0; i < s->ndim; i++)
        p.shape[i] = s->d[i];
    return p;
}

/* The result is a itself. */
static inline enum err ops_same(struct arr **out, struct arr *a)
{
    *out = arr_ref(a);
    return ERR_OK;
}

/* Replaces the reference in var by the result of call, which writes it to &next and may read var.
 */
#define STEP(var, call)                                                                            \
    do {                                                                                           \
        struct arr *next = NULL;                                                                   \
        TRY(call);                                                                                 \
        arr_unref(&(var));                                                                         \
        (var) = next;                                                                              \
    } while (0)

/* Hands the reference in var over to *out. */
static inline void arr_move(struct arr **out, struct arr **var)
{
    *out = *var;
    *var = NULL;
}

static inline void arr_unref_all(struct arr **a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        arr_unref(&a[i]);
}

/* The one way to a node: infers the outputs, which outs has room for, and makes them. params are
 * the struct in the op's row, NULL if there is none. */
MUST_CHECK enum err ops_make(struct arr **outs, enum op_id op, const void *params, struct arrs in,
                             struct strm *s);
/* The same; the node takes over the caller's references, and NULL is left there unless it fails. */
struct given {
    struct arr **v;
    size_t n;
};
MUST_CHECK enum err ops_make_of(struct arr **outs, enum op_id op, const void *params,
                                struct given in, struct strm *s);
/* The same with a state, of which the node takes a reference. */
struct ops_inputs {
    struct arrs arrs;
    struct op_state *state;
};
MUST_CHECK enum err ops_make_with(struct arr **outs, enum op_id op, const void *params,
                                  const struct ops_inputs *in, struct strm *s);
/* One input. */
static inline enum err ops_make_one(struct arr **outs, enum op_id op, const void *params,
                                    struct arr *a, struct strm *s)
{
    return ops_make(outs, op, params, (struct arrs){ &a, 1 }, s);
}

/* A slice of a by the caller's lists. */
struct ops_region {
    struct slice_params p; /* normalised */
    struct shp shape;
    bool is_whole; /* every element, in order */
};
MUST_CHECK enum err ops_region(struct ops_region *out, const struct arr *a,
                               const struct ops_slice *v, const char *op);

/* The shape of a normalised region of a; false if it is none. */
bool ops_region_shape(struct shp *out, const struct arr *a, const struct slice_params *p);

/* The part [start, stop) of one axis. */
MUST_CHECK enum err ops_slice_axis(struct arr **out, struct arr *a, int axis,
                                   const int32_t range[2], struct strm *s);

/* Where a lies in what Pad makes of it. */
void ops_pad_region(struct slice_params *out, const struct arr *a, const struct pad_params *p);

/* Broadcasts a to s, which it is known to fit. */
MUST_CHECK enum err ops_stretch(struct arr **out, struct arr *a, const struct shp *shape,
                                struct strm *s);

/* The same for a shape that others have a part in, which are inputs of the node while a graph is
 * recorded for other sizes, too. */
struct ops_stretch {
    struct shp shape;
    struct arrs with; /* may have a itself */
    int own;          /* of the last axes everybody keeps what they have */
};
MUST_CHECK enum err ops_stretch_with(struct arr **out, struct arr *a, const struct ops_stretch *to,
                                     struct strm *s);

MUST_CHECK enum err ops_common_shape(struct shp *out, struct arrs in);

/* Two operands cast to t, then broadcast to their common shape. On success in[] holds two new
 * references, on failure none. */
MUST_CHECK enum err ops_align(struct arr *in[2], struct arr *const src[2], enum dtype t,
                              struct strm *s);

/* Sorted, normalised axes without duplicates; INTS_ALL gives 0 .. ndim - 1. */
struct axis_set {
    int n;
    int32_t axis[SHP_MAX];
};
MUST_CHECK enum err ops_axis_set(struct axis_set *out, struct ints axes, int ndim, const char *op);

/* Normalised axes in the caller's order, without duplicates. */
MUST_CHECK enum err ops_axis_list(struct axes_params *out, struct ints axes, int ndim,
                                  const char *op);

/* For a gather of matrices: the caller's indices as uint32, or with NULL the numbers of all
 * matrices of a in the shape of its batch. */
MUST_CHECK enum err ops_matrix_numbers(struct arr **out, struct arr *indices, const struct arr *a,
                                       const char *op, struct strm *s);

/* Dimension of n others merged. ERR_OVERFLOW when it does not fit. */
MUST_CHECK enum err ops_merged_dim(int32_t *out, const int32_t *d, int n, const char *op);

/* Dimension from a 64-bit size. ERR_OVERFLOW when it does not fit. */
MUST_CHECK enum err ops_dim(int32_t *out, int64_t size, const char *op);
