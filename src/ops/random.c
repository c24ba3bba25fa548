/* Random numbers from threefry keys (docs/runtime.md). */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <time.h>

#include "eval/stream.h"
#include "ops/build.h"
#include "ops/rules.h"

enum err ops_random_key(struct arr **out, uint64_t seed)
{
    uint32_t words[2] = { (uint32_t)(seed >> 32), (uint32_t)seed };

    return arr_new_data(out, words, &(struct shp){ 1, { 2 } }, DT_UINT32);
}

/* ---- the calling thread's sequence ---- */

struct sequence {
    struct arr *key;
};

static pthread_key_t sequence_slot;
static pthread_once_t sequence_once = PTHREAD_ONCE_INIT;
static uint64_t first_seed; /* the same in all threads of a process */

static void sequence_free(void *p)
{
    struct sequence *q = p;

    arr_unref(&q->key);
    mem_free(q);
}

static void sequence_setup(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    first_seed = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    pthread_key_create(&sequence_slot, sequence_free);
}

/* The thread's sequence; its key is NULL until it is first used or seeded. */
static struct sequence *sequence_get(void)
{
    pthread_once(&sequence_once, sequence_setup);
    struct sequence *q = pthread_getspecific(sequence_slot);
    if (q || !(q = mem_alloc(sizeof *q)))
        return q;
    if (pthread_setspecific(sequence_slot, q) != 0) {
        mem_free(q);
        err_set(ERR_NO_MEMORY, "[random] No room for the thread's random state.");
        return NULL;
    }
    return q;
}

enum err ops_random_seed(uint64_t seed)
{
    struct sequence *q = sequence_get();
    enum err err = q ? ERR_OK : ERR_NO_MEMORY;

    if (q)
        STEP(q->key, ops_random_key(&next, seed));
out:
    return err;
}

/* The next key of the sequence: the second half of a split, the first stays. */
static enum err sequence_next(struct arr **out)
{
    struct sequence *q = sequence_get();
    struct arr *half[2] = { NULL, NULL };
    struct strm *s;
    enum err err = ERR_NO_MEMORY;

    if (!q)
        goto out;
    if (!q->key)
        TRY(ops_random_key(&q->key, first_seed));
    TRY(strm_default(&s, dev_default()));
    TRY(ops_random_split(half, q->key, s));
    arr_unref(&q->key);
    q->key = half[0];
    *out = half[1];
out:
    return err;
}

/* ---- bits and keys ---- */

static enum err check_key(const struct arr *key)
{
    struct shp shape;

    if (key->dtype != DT_UINT32)
        return err_set(ERR_ARG, "[bits] Expected key type uint32 but received %s.",
                       dt_name(dtype_of(key)));
    arr_shape(&shape, key);
    if (key->ndim != 1 || key->shape[0] != 2)
        return err_set(ERR_ARG, "[bits] Expected key shape (2) but received %s.", shp_text(&shape));
    return ERR_OK;
}

static enum dtype bits_dtype(int width)
{
    return width == 4 ? DT_UINT32 : width == 2 ? DT_UINT16 : DT_UINT8;
}

enum err op_infer_random_bits(struct infer_call *c)
{
    const struct random_bits_params *p = c->params;
    const struct arr *key = c->in[0];
    struct shp *shape = &c->out[0].shape;
    int lead = key->ndim - 1;

    FITS(p->width == 1 || p->width == 2 || p->width == 4);
    FITS(key->dtype == DT_UINT32 && key->ndim && key->shape[lead] == 2);
    FITS(infer_is_shape(p->shape, p->n) && lead + p->n <= SHP_MAX);
    c->out[0].dtype = bits_dtype(p->width);
    arr_shape(shape, key);
    memcpy(shape->d + lead, p->shape, (size_t)p->n * sizeof shape->d[0]);
    shape->ndim = lead + p->n;
    return ERR_OK;
}

enum err ops_random_bits(struct arr **out, struct ints shape, int width, struct arr *key,
                         struct strm *s)
{
    struct random_bits_params p = { .width = width };
    struct arr *k = key ? arr_ref(key) : NULL;
    struct shp to;
    enum err err;

    TRY(shp_make(&to, shape.v, shape.n, "bits"));
    if (width != 1 && width != 2 && width != 4)
        TRY(err_set(ERR_ARG, "[bits] Bit width must be in {1, 2, 4} but got %d.", width));
    if (!k)
        TRY(sequence_next(&k));
    TRY(check_key(k));
    p.n = to.ndim;
    memcpy(p.shape, to.d, (size_t)to.ndim * sizeof to.d[0]);
    TRY(ops_make_one(out, OP_RANDOM_BITS, &p, k, s));
out:
    arr_unref(&k);
    return err;
}

enum err ops_random_split_num(struct arr **out, struct arr *key, int num, struct strm *s)
{
    return ops_random_bits(out, (struct ints){ (int32_t[]){ num, 2 }, 2 }, 4, key, s);
}

enum err ops_random_split(struct arr *outs[2], struct arr *key, struct strm *s)
{
    const struct ints pair = { (int32_t[]){ 2 }, 1 };
    struct arr *both = NULL, *rows[2] = { NULL, NULL };
    enum err err;

    TRY(ops_random_split_num(&both, key, 2, s));
    TRY(ops_split(rows, both, 2, 0, s));
    STEP(rows[0], ops_reshape(&next, rows[0], pair, s));
    STEP(rows[1], ops_reshape(&next, rows[1], pair, s));
    arr_move(&outs[0], &rows[0]);
    arr_move(&outs[1], &rows[1]);
out:
    arr_unref(&both);
    arr_unref_all(rows, 2);
    return err;
}

/* ---- distributions ---- */

/* The largest value below 1 of a dtype. */
static enum err below_one(double *out, enum dtype t)
{
    switch (t) {
    case DT_FLOAT32:
        *out = 1 - 0x1p-24;
        return ERR_OK;
    case DT_FLOAT16:
        *out = 1 - 0x1p-11;
        return ERR_OK;
    case DT_BFLOAT16:
        *out = 1 - 0x1p-8;
        return ERR_OK;
    default:
        return err_set(ERR_RUNTIME, "[uniform] Unsupported type.");
    }
}

/* Uniform in [0, 1) of a dtype, from 32 random bits. */
static enum err unit_uniform(struct arr **out, const struct ops_random *r, struct strm *s)
{
    struct arr *x = NULL, *v = NULL;
    double top = 0;
    enum err err;

    TRY(below_one(&top, r->dtype));
    TRY(ops_random_bits(&x, r->shape, 4, r->key, s));
    TRY(arr_new_number(&v, (double)UINT32_MAX, DT_FLOAT32)); /* rounds up to 2^32 */
    STEP(x, ops_binary(&next, OP_DIVIDE, x, v, s));
    STEP(v, arr_new_number(&next, top, DT_FLOAT32));
    STEP(x, ops_binary(&next, OP_MINIMUM, x, v, s));
    TRY(ops_astype(out, x, r->dtype, s));
out:
    arr_unref(&x);
    arr_unref(&v);
    return err;
}

/* shape must be what it becomes when broadcast with x. */
static enum err check_fits(const struct arr *x, struct ints shape, const char *op)
{
    struct shp to, from, common;
    enum err err;

    TRY(shp_make(&to, shape.v, shape.n, op));
    arr_shape(&from, x);
    TRY(shp_broadcast(&common, &to, &from, "broadcast_shapes"));
    if (!shp_equal(&common, &to))
        return err_set(ERR_ARG,
                       "[%s] Cannot generate random values of shape %s from broadcasted "
                       "shape %s.",
                       op, shp_text(&to), shp_text(&common));
out:
    return err;
}

enum err ops_random_uniform(struct arr **out, const struct ops_random *r, struct strm *s)
{
    struct arr *low = NULL, *range = NULL, *x = NULL;
    enum err err;

    if (!dt_is_float(r->dtype))
        return err_set(ERR_ARG, "[uniform] Can only generate uniform numbers with real floating "
                                "point type.");
    TRY(ops_astype(&low, r->low, r->dtype, s));
    TRY(ops_astype(&range, r->high, r->dtype, s));
    STEP(range, ops_binary(&next, OP_SUBTRACT, range, low, s));
    TRY(check_fits(range, r->shape, "uniform"));
    TRY(unit_uniform(&x, r, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, range, x, s));
    TRY(ops_binary(out, OP_ADD, x, low, s));
out:
    arr_unref(&low);
    arr_unref(&range);
    arr_unref(&x);
    return err;
}

/* float32 in (-1, 1). */
static enum err symmetric_uniform(struct arr **out, struct ints shape, struct arr *key,
                                  struct strm *s)
{
    struct arr *low = NULL, *high = NULL;
    enum err err;

    TRY(arr_new_number(&low, nextafterf(-1, 0), DT_FLOAT32));
    TRY(arr_new_number(&high, 1, DT_FLOAT32));
    struct ops_random u = {
        .shape = shape, .dtype = DT_FLOAT32, .low = low, .high = high, .key = key
    };
    TRY(ops_random_uniform(out, &u, s));
out:
    arr_unref(&low);
    arr_unref(&high);
    return err;
}

/* erfinv of uniform numbers: normal up to a factor of sqrt(2). */
static enum err raw_normal(struct arr **out, struct ints shape, struct arr *key, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(symmetric_uniform(&x, shape, key, s));
    TRY(ops_unary(out, OP_ERFINV, x, s));
out:
    arr_unref(&x);
    return err;
}

/* Pairs of floats read as complex numbers; their parts have variance 1/2. */
static enum err complex_normal(struct arr **out, const struct ops_random *r, struct strm *s)
{
    struct shp pairs;
    struct arr *x = NULL;
    enum err err;

    if (r->shape.n >= SHP_MAX)
        return err_set(ERR_ARG, "[normal] Arrays have at most %d dimensions.", SHP_MAX);
    TRY(shp_make(&pairs, r->shape.v, r->shape.n, "normal"));
    pairs.d[pairs.ndim++] = 2;
    TRY(raw_normal(&x, shp_ints(&pairs), r->key, s));
    STEP(x, ops_view(&next, x, DT_COMPLEX64, s));
    STEP(x, ops_squeeze(&next, x, (struct ints){ (int32_t[]){ -1 }, 1 }, s));
    if (r->scale)
        STEP(x, ops_binary(&next, OP_MULTIPLY, r->scale, x, s));
    if (r->loc)
        STEP(x, ops_binary(&next, OP_ADD, r->loc, x, s));
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

enum err ops_random_normal(struct arr **out, const struct ops_random *r, struct strm *s)
{
    struct arr *x = NULL, *scale = NULL, *v = NULL;
    enum err err;

    if (r->dtype == DT_COMPLEX64)
        return complex_normal(out, r, s);
    if (!dt_is_float(r->dtype))
        return err_set(ERR_ARG, "[normal] Only floating point and complex64 types are supported.");
    TRY(arr_new_number(&scale, sqrt(2.0), r->dtype));
    if (r->scale) {
        TRY(ops_astype(&v, r->scale, r->dtype, s));
        STEP(scale, ops_binary(&next, OP_MULTIPLY, scale, v, s));
    }
    TRY(raw_normal(&x, r->shape, r->key, s));
    STEP(x, ops_astype(&next, x, r->dtype, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, scale, x, s));
    if (r->loc) {
        STEP(v, ops_astype(&next, r->loc, r->dtype, s));
        STEP(x, ops_binary(&next, OP_ADD, v, x, s));
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    arr_unref(&scale);
    arr_unref(&v);
    return err;
}

static enum err check_multivariate(const struct arr *mean, const struct arr *cov, enum dtype t)
{
    const char *wrong = NULL;

    if (t != DT_FLOAT32)
        wrong = "dtype must be float32.";
    else if (mean->ndim < 1)
        wrong = "mean must have at least one dimension.";
    else if (cov->ndim < 2)
        wrong = "cov must have at least two dimensions.";
    else if (cov->shape[cov->ndim - 1] != cov->shape[cov->ndim - 2])
        wrong = "last two dimensions of cov must be equal.";
    else if (mean->shape[mean->ndim - 1] != cov->shape[cov->ndim - 1])
        wrong = "mean and cov must have compatible shapes.";
    return wrong ? err_set(ERR_ARG, "[multivariate_normal] %s", wrong) : ERR_OK;
}

/* The shape of the vectors: a batch that all three broadcast to, then their length. */
static enum err multivariate_shape(struct shp *out, const struct arr *mean, const struct arr *cov,
                                   struct ints shape)
{
    struct shp a, b, c;
    enum err err;

    arr_shape(&a, mean);
    arr_shape(&b, cov);
    TRY(shp_make(&c, shape.v, shape.n, "multivariate_normal"));
    a.ndim -= 1;
    b.ndim -= 2;
    TRY(shp_broadcast(out, &b, &a, "broadcast_shapes"));
    a = *out;
    TRY(shp_broadcast(out, &a, &c, "broadcast_shapes"));
    if (out->ndim + 2 > SHP_MAX)
        return err_set(ERR_ARG, "[multivariate_normal] Arrays have at most %d dimensions.",
                       SHP_MAX);
    out->d[out->ndim++] = mean->shape[mean->ndim - 1];
out:
    return err;
}

/* A matrix with the square cov, which is symmetric and not negative. */
static enum err covariance_root(struct arr **out, struct arr *cov, struct strm *s)
{
    const struct ints rows = { (int32_t[]){ -2 }, 1 };
    struct arr *x = NULL, *f[3] = { NULL, NULL, NULL };
    enum err err;

    TRY(ops_astype(&x, cov, DT_FLOAT32, s));
    TRY(ops_svd(f, x, true, s));
    STEP(f[1], ops_unary(&next, OP_SQRT, f[1], s));
    STEP(f[1], ops_expand_dims(&next, f[1], rows, s));
    STEP(f[0], ops_binary(&next, OP_MULTIPLY, f[0], f[1], s));
    err = ops_matmul(out, f[0], f[2], s);
out:
    arr_unref(&x);
    arr_unref_all(f, 3);
    return err;
}

enum err ops_random_multivariate_normal(struct arr **out, struct arr *mean, struct arr *cov,
                                        const struct ops_random *r, struct strm *s)
{
    const struct ints row = { (int32_t[]){ -2 }, 1 };
    struct ops_random normal = { .dtype = r->dtype, .key = r->key };
    struct arr *root = NULL, *x = NULL;
    struct shp shape;
    enum err err;

    TRY(check_multivariate(mean, cov, r->dtype));
    TRY(multivariate_shape(&shape, mean, cov, r->shape));
    normal.shape = shp_ints(&shape);
    TRY(covariance_root(&root, cov, s));
    TRY(ops_random_normal(&x, &normal, s));
    STEP(x, ops_expand_dims(&next, x, row, s));
    STEP(x, ops_matmul(&next, x, root, s));
    STEP(x, ops_squeeze(&next, x, row, s));
    err = ops_binary(out, OP_ADD, mean, x, s);
out:
    arr_unref(&root);
    arr_unref(&x);
    return err;
}

enum err ops_random_randint(struct arr **out, const struct ops_random *r, struct strm *s)
{
    struct ops_random uniform = *r;
    struct arr *x = NULL, *v = NULL, *one = NULL;
    enum err err;

    if (dt_is_inexact(r->dtype))
        return err_set(ERR_ARG, "[randint] randint only accepts integer dtypes and bool.");
    uniform.dtype = DT_FLOAT32;
    TRY(ops_random_uniform(&x, &uniform, s));
    STEP(x, ops_unary(&next, OP_FLOOR, x, s));
    STEP(x, ops_astype(&next, x, r->dtype, s));
    /* The bounds may have been rounded outwards on their way through float32. */
    TRY(arr_new_number(&one, 1, dtype_of(r->high)));
    TRY(ops_binary(&v, OP_SUBTRACT, r->high, one, s));
    STEP(v, ops_astype(&next, v, r->dtype, s));
    STEP(x, ops_binary(&next, OP_MINIMUM, x, v, s));
    STEP(v, ops_astype(&next, r->low, r->dtype, s));
    TRY(ops_binary(out, OP_MAXIMUM, x, v, s));
out:
    arr_unref(&x);
    arr_unref(&v);
    arr_unref(&one);
    return err;
}

enum err ops_random_bernoulli(struct arr **out, struct arr *p, struct ints shape, struct arr *key,
                              struct strm *s)
{
    struct arr *x = NULL, *y = NULL;
    enum err err;

    if (!dt_is_float(dtype_of(p)))
        return err_set(ERR_ARG, "[bernoulli] bernoulli probability `p` must be a float type.");
    TRY(check_fits(p, shape, "bernoulli"));
    /* On the scale of the bits, so that p >= 1 is always true and p <= 0 never. */
    TRY(arr_new_number(&y, nextafterf((float)UINT32_MAX, FLT_MAX), DT_FLOAT32));
    STEP(y, ops_binary(&next, OP_MULTIPLY, p, y, s));
    TRY(ops_random_bits(&x, shape, 4, key, s));
    TRY(ops_binary(out, OP_LESS, x, y, s));
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}

/* By the inverse of the distribution function: sign(u) * log1p(-|u|), u in (-1, 1). */
enum err ops_random_laplace(struct arr **out, const struct ops_random *r, struct strm *s)
{
    struct arr *u = NULL, *x = NULL;
    enum err err;

    if (!dt_is_float(r->dtype))
        return err_set(ERR_ARG, "[laplace] Only real floating point types are supported.");
    TRY(symmetric_uniform(&u, r->shape, r->key, s));
    TRY(ops_unary(&x, OP_ABS, u, s));
    STEP(x, ops_unary(&next, OP_NEGATIVE, x, s));
    STEP(x, ops_unary(&next, OP_LOG1P, x, s));
    STEP(u, ops_unary(&next, OP_SIGN, u, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, u, x, s));
    STEP(x, ops_astype(&next, x, r->dtype, s));
    if (r->scale)
        STEP(x, ops_binary(&next, OP_MULTIPLY, r->scale, x, s));
    if (r->loc)
        STEP(x, ops_binary(&next, OP_ADD, r->loc, x, s));
    arr_move(out, &x);
out:
    arr_unref(&u);
    arr_unref(&x);
    return err;
}

/* Where the distribution function has a bound: erf(x / sqrt(2)). */
static enum err erf_of_bound(struct arr **out, struct arr *bound, struct arr *root, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_binary(&x, OP_DIVIDE, bound, root, s));
    TRY(ops_unary(out, OP_ERF, x, s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_random_truncated_normal(struct arr **out, const struct ops_random *r, struct strm *s)
{
    struct ops_random uniform = { .shape = r->shape, .dtype = r->dtype, .key = r->key };
    struct arr *root = NULL, *low = NULL, *high = NULL, *x = NULL;
    enum err err;

    if (!dt_is_float(r->dtype))
        return err_set(ERR_ARG, "[trunc_normal] trunc_normal only accepts floating point dtypes.");
    TRY(arr_new_number(&root, sqrt(2.0), r->dtype));
    TRY(ops_astype(&low, r->low, r->dtype, s));
    TRY(ops_astype(&high, r->high, r->dtype, s));
    TRY(erf_of_bound(&uniform.low, low, root, s));
    TRY(erf_of_bound(&uniform.high, high, root, s));
    TRY(ops_random_uniform(&x, &uniform, s));
    STEP(x, ops_unary(&next, OP_ERFINV, x, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, root, x, s));
    /* Rounding may have led out of the bounds. */
    STEP(x, ops_binary(&next, OP_MINIMUM, high, x, s));
    TRY(ops_binary(out, OP_MAXIMUM, x, low, s));
out:
    arr_unref(&uniform.low);
    arr_unref(&uniform.high);
    arr_unref(&root);
    arr_unref(&low);
    arr_unref(&high);
    arr_unref(&x);
    return err;
}

enum err ops_random_permutation(struct arr **out, int n, struct arr *key, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_random_bits(&x, (struct ints){ &n, 1 }, 4, key, s));
    TRY(ops_argsort(out, x, 0, s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_random_shuffle(struct arr **out, struct arr *a, int axis, struct arr *key,
                            struct strm *s)
{
    struct arr *order = NULL;
    enum err err;

    TRY(shp_axis(&axis, axis, a->ndim, "permutation"));
    TRY(ops_random_permutation(&order, a->shape[axis], key, s));
    TRY(ops_take(out, a, order, axis, s));
out:
    arr_unref(&order);
    return err;
}
