/* Functions by hand: random numbers. The parameters are those of functions/random.def, by their
 * numbers. */
#include "args.h"
#include "hand.h"
#include "random_state.h"

static bool seed_from(struct frame *f, uint64_t *seed)
{
    PyObject *o = f->slot[0];
    PyObject *index = is_intlike(o) ? PyNumber_Index(o) : NULL;

    if (!index)
        return args_type_error(f->sig, "seed", "an int", o);
    *seed = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (!PyErr_Occurred())
        return true;
    PyErr_Clear();
    return args_type_error(f->sig, "seed", "an int of 64 bits without sign", o);
}

PyObject *hand_random_seed(struct frame *f)
{
    uint64_t seed;

    return seed_from(f, &seed) && random_state_seed(seed) ? Py_NewRef(Py_None) : NULL;
}

PyObject *hand_random_key(struct frame *f)
{
    uint64_t seed;

    if (!seed_from(f, &seed))
        return NULL;
    FRAME_RETURN(f, mlx_random_key(&f->out, seed));
}

/* A bound: what was given, or otherwise a number. */
static bool bound(struct frame *f, mlx_array *out, int i, double otherwise)
{
    if (f->slot[i])
        return frame_to_array(f, out, f->slot[i], WANT_ANY);
    *out = frame_temp(f);
    return out->ctx && error_check(mlx_array_set_number(out, otherwise, MLX_FLOAT32));
}

PyObject *hand_random_uniform(struct frame *f)
{
    mlx_array low, high;

    if (!bound(f, &low, 0, 0) || !bound(f, &high, 1, 1))
        return NULL;
    FRAME_RETURN(f, mlx_random_uniform(&f->out, low, high, f->v[2].ints.v, f->v[2].ints.n,
                                       f->v[3].dtype, f->v[4].array, f->v[5].stream));
}

PyObject *hand_random_randint(struct frame *f)
{
    mlx_array low, high;

    if (!bound(f, &low, 0, 0) || !bound(f, &high, 1, 0))
        return NULL;
    FRAME_RETURN(f, mlx_random_randint(&f->out, low, high, f->v[2].ints.v, f->v[2].ints.n,
                                       f->v[3].dtype, f->v[4].array, f->v[5].stream));
}

PyObject *hand_random_normal(struct frame *f)
{
    mlx_array loc = { NULL }, scale = { NULL };

    if ((f->given[2] && !frame_to_array(f, &loc, f->slot[2], WANT(f->v[1].dtype))) ||
        (f->given[3] && !frame_to_array(f, &scale, f->slot[3], WANT(f->v[1].dtype))))
        return NULL;
    FRAME_RETURN(f,
                 mlx_random_normal_broadcast(&f->out, f->v[0].ints.v, f->v[0].ints.n, f->v[1].dtype,
                                             loc, scale, f->v[4].array, f->v[5].stream));
}

PyObject *hand_random_bernoulli(struct frame *f)
{
    struct int_list shape = f->v[1].ints;
    mlx_array p;

    if (!bound(f, &p, 0, 0.5))
        return NULL;
    if (!f->given[1])
        shape = (struct int_list){ mlx_array_shape(p), mlx_array_ndim(p) };
    FRAME_RETURN(f,
                 mlx_random_bernoulli(&f->out, p, shape.v, shape.n, f->v[2].array, f->v[3].stream));
}

/* The shape of two arrays that broadcast. */
static bool common_shape(struct frame *f, struct int_list *shape, mlx_array a, mlx_array b)
{
    mlx_array sum = frame_temp(f);

    if (!sum.ctx || !error_check(mlx_add(&sum, a, b, (mlx_stream){ NULL })))
        return false;
    *shape = (struct int_list){ mlx_array_shape(sum), mlx_array_ndim(sum) };
    return true;
}

PyObject *hand_random_truncated_normal(struct frame *f)
{
    struct int_list shape = f->v[2].ints;
    mlx_array lower, upper;

    if (!bound(f, &lower, 0, 0) || !bound(f, &upper, 1, 0) ||
        (!f->given[2] && !common_shape(f, &shape, lower, upper)))
        return NULL;
    FRAME_RETURN(f, mlx_random_truncated_normal(&f->out, lower, upper, shape.v, shape.n,
                                                f->v[3].dtype, f->v[4].array, f->v[5].stream));
}

PyObject *hand_random_categorical(struct frame *f)
{
    mlx_array logits = f->v[0].array, key = f->v[4].array;
    struct int_list shape = f->v[2].ints;
    mlx_stream s = f->v[5].stream;
    int axis = f->v[1].i;

    if (f->given[2] && f->given[3]) {
        PyErr_SetString(PyExc_ValueError,
                        "[categorical] At most one of shape or num_samples can be specified.");
        return NULL;
    }
    if (f->given[2])
        FRAME_RETURN(f,
                     mlx_random_categorical_shape(&f->out, logits, axis, shape.v, shape.n, key, s));
    FRAME_RETURN(f, f->given[3] ? mlx_random_categorical_num_samples(&f->out, logits, axis,
                                                                     f->v[3].i, key, s)
                                : mlx_random_categorical(&f->out, logits, axis, key, s));
}

PyObject *hand_random_permutation(struct frame *f)
{
    mlx_array x, key = f->v[2].array;
    int n;

    if (!is_array(f->slot[0]) && is_intlike(f->slot[0])) {
        if (!int_from(f->slot[0], &n))
            return NULL;
        FRAME_RETURN(f, mlx_random_permutation_arange(&f->out, n, key, f->v[3].stream));
    }
    if (!frame_to_array(f, &x, f->slot[0], WANT_ANY))
        return NULL;
    FRAME_RETURN(f, mlx_random_permutation(&f->out, x, f->v[1].i, key, f->v[3].stream));
}
