/* Gradients of running sums, products and extremes. */
#include <math.h>

#include "ops/build.h"
#include "ops/rules.h"

static const struct scan_params *params_of(const struct op_apply *f)
{
    return f->params;
}

/* A scan like that of f, or one that goes the other way. */
enum way { SAME, BACK };
static enum err scan(struct arr **out, enum scan_kind kind, struct arr *a, const struct op_apply *f,
                     enum way way)
{
    const struct scan_params *p = params_of(f);
    struct ops_scan v = {
        .kind = kind, .axis = p->axis, .reverse = p->reverse, .inclusive = p->inclusive
    };

    v.reverse ^= way == BACK;
    return ops_scan(out, a, &v, f->strm);
}

/* The scan of x with each element's own place taken in, or left out. */
static enum err scan_of_input(struct arr **out, const struct op_apply *f, struct arr *y,
                              bool inclusive)
{
    struct scan_params p = *params_of(f);

    if (inclusive == p.inclusive)
        return ops_same(out, y);
    p.inclusive = inclusive;
    return ops_make_one(out, OP_SCAN, &p, f->in[0], f->strm);
}

/* number where cond is true, else a. */
static enum err put_where(struct arr **out, struct arr *cond, double number, struct arr *a,
                          struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(arr_new_number(&v, number, dtype_of(a)));
    err = ops_where(out, cond, v, a, s);
out:
    arr_unref(&v);
    return err;
}

/* ---- products ----
 *
 * A change of x[j] changes each y[i] that has it by y[i] / x[j]. From the first zero on all of y is
 * zero: there a change of this zero counts alone, times the product without it. */

struct product {
    struct arr *first;   /* where the first zero is */
    struct arr *divisor; /* x, with ones where it is zero */
    struct arr *rest;    /* what y is with a one in the place of the first zero */
};

static void product_fini(struct product *m)
{
    arr_unref(&m->first);
    arr_unref(&m->divisor);
    arr_unref(&m->rest);
}

/* Where the product has become zero by its element. */
static enum err first_zero(struct arr **out, const struct op_apply *f, struct arr *y)
{
    struct arr *zero = NULL, *before = NULL, *behind = NULL;
    enum err err;

    TRY(arr_new_number(&zero, 0, dtype_of(y)));
    TRY(scan_of_input(&before, f, y, false));
    TRY(scan_of_input(&behind, f, y, true));
    STEP(before, ops_binary(&next, OP_NOT_EQUAL, before, zero, f->strm));
    STEP(behind, ops_binary(&next, OP_EQUAL, behind, zero, f->strm));
    err = ops_binary(out, OP_LOGICAL_AND, before, behind, f->strm);
out:
    arr_unref(&zero);
    arr_unref(&before);
    arr_unref(&behind);
    return err;
}

static enum err product_init(struct product *m, const struct op_apply *f, struct arr *y)
{
    struct arr *x = f->in[0], *is_zero = NULL;
    enum err err;

    TRY(first_zero(&m->first, f, y));
    TRY(ops_unary(&is_zero, OP_LOGICAL_NOT, x, f->strm));
    TRY(put_where(&m->divisor, is_zero, 1, x, f->strm));
    TRY(put_where(&m->rest, m->first, 1, x, f->strm));
    STEP(m->rest, scan(&next, SCAN_PROD, m->rest, f, SAME));
out:
    arr_unref(&is_zero);
    return err;
}

/* The cotangents of y times factors, added up for each element of x; factors are conjugated. */
static enum err weighted(struct arr **out, const struct vjp_call *c, struct arr *factors)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_unary(&x, OP_CONJUGATE, factors, c->f.strm));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, c->cotan[0], c->f.strm));
    err = scan(out, SCAN_SUM, x, &c->f, BACK);
out:
    arr_unref(&x);
    return err;
}

static enum err vjp_prod(struct arr **out, const struct vjp_call *c)
{
    struct product m = { NULL };
    struct arr *x = NULL, *of_first = NULL;
    enum err err;

    TRY(product_init(&m, &c->f, c->out[0]));
    TRY(weighted(&x, c, c->out[0]));
    STEP(m.divisor, ops_unary(&next, OP_CONJUGATE, m.divisor, c->f.strm));
    STEP(x, ops_binary(&next, OP_DIVIDE, x, m.divisor, c->f.strm));
    TRY(weighted(&of_first, c, m.rest));
    err = ops_where(out, m.first, of_first, x, c->f.strm);
out:
    product_fini(&m);
    arr_unref(&x);
    arr_unref(&of_first);
    return err;
}

/* factors * the running sum of a. */
static enum err times_sums(struct arr **out, struct arr *factors, struct arr *a,
                           const struct op_apply *f)
{
    struct arr *x = NULL;
    enum err err;

    TRY(scan(&x, SCAN_SUM, a, f, SAME));
    err = ops_binary(out, OP_MULTIPLY, factors, x, f->strm);
out:
    arr_unref(&x);
    return err;
}

static enum err jvp_prod(struct arr **out, const struct jvp_call *c)
{
    struct product m = { NULL };
    struct arr *x = NULL, *of_first = NULL, *others = NULL;
    enum err err;

    TRY(product_init(&m, &c->f, c->out[0]));
    TRY(ops_binary(&x, OP_DIVIDE, c->tan[0], m.divisor, c->f.strm));
    STEP(x, times_sums(&next, c->out[0], x, &c->f));
    TRY(ops_unary(&others, OP_LOGICAL_NOT, m.first, c->f.strm));
    TRY(put_where(&of_first, others, 0, c->tan[0], c->f.strm));
    STEP(of_first, times_sums(&next, m.rest, of_first, &c->f));
    err = ops_binary(out, OP_ADD, x, of_first, c->f.strm);
out:
    product_fini(&m);
    arr_unref(&x);
    arr_unref(&of_first);
    arr_unref(&others);
    return err;
}

/* ---- logarithms of sums ----
 *
 * A change of x[j] changes each y[i] that has it by exp(x[j] - y[i]). Sums of such terms are made
 * of their logarithms, so that none is too large or too small; what is positive and what is
 * negative are apart. */

/* y, with zeros where nothing but -inf has been added up: nothing changes such sums. */
static enum err without_empty(struct arr **out, struct arr *y, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(arr_new_number(&x, -INFINITY, dtype_of(y)));
    STEP(x, ops_binary(&next, OP_EQUAL, y, x, s));
    err = put_where(out, x, 0, y, s);
out:
    arr_unref(&x);
    return err;
}

/* log(sum(terms * exp(at))) over those terms that have the sign; complex ones have one sign. */
struct terms {
    struct arr *v, *at;
    bool is_negative;
    enum way way;
};

/* Which terms there are: *absent and the logarithms of the others, with zeros between them. */
static enum err logarithms(struct arr **absent, struct arr **out, const struct terms *t,
                           struct strm *s)
{
    struct arr *x = arr_ref(t->v), *zero = NULL;
    enum err err;

    if (t->is_negative)
        STEP(x, ops_unary(&next, OP_NEGATIVE, x, s));
    TRY(arr_new_number(&zero, 0, dtype_of(x)));
    TRY(ops_binary(absent, x->dtype == DT_COMPLEX64 ? OP_EQUAL : OP_LESS_EQUAL, x, zero, s));
    STEP(x, put_where(&next, *absent, 1, x, s));
    err = ops_unary(out, OP_LOG, x, s);
out:
    arr_unref(&x);
    arr_unref(&zero);
    return err;
}

static enum err log_of_sums(struct arr **out, const struct terms *t, const struct op_apply *f)
{
    struct arr *absent = NULL, *x = NULL;
    enum err err;

    TRY(logarithms(&absent, &x, t, f->strm));
    STEP(x, ops_binary(&next, OP_ADD, x, t->at, f->strm));
    STEP(x, put_where(&next, absent, -INFINITY, x, f->strm));
    err = scan(out, SCAN_LOGADDEXP, x, f, t->way);
out:
    arr_unref(&absent);
    arr_unref(&x);
    return err;
}

/* exp(by) * sum(terms * exp(at)) */
static enum err sums(struct arr **out, struct terms t, struct arr *by, const struct op_apply *f)
{
    int signs = t.v->dtype == DT_COMPLEX64 ? 1 : 2;
    struct arr *part[2] = { NULL, NULL };
    enum err err = ERR_OK;

    for (int i = 0; i < signs; i++) {
        t.is_negative = i == 1;
        TRY(log_of_sums(&part[i], &t, f));
        STEP(part[i], ops_binary(&next, OP_ADD, part[i], by, f->strm));
        STEP(part[i], ops_unary(&next, OP_EXP, part[i], f->strm));
    }
    err = signs == 1 ? ops_same(out, part[0])
                     : ops_binary(out, OP_SUBTRACT, part[0], part[1], f->strm);
out:
    arr_unref_all(part, 2);
    return err;
}

static enum err vjp_logaddexp(struct arr **out, const struct vjp_call *c)
{
    struct arr *x = NULL, *y = NULL;
    enum err err;

    TRY(ops_unary(&x, OP_CONJUGATE, c->f.in[0], c->f.strm));
    TRY(without_empty(&y, c->out[0], c->f.strm));
    STEP(y, ops_unary(&next, OP_CONJUGATE, y, c->f.strm));
    STEP(y, ops_unary(&next, OP_NEGATIVE, y, c->f.strm));
    err = sums(out, (struct terms){ .v = c->cotan[0], .at = y, .way = BACK }, x, &c->f);
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}

static enum err jvp_logaddexp(struct arr **out, const struct jvp_call *c)
{
    struct arr *y = NULL;
    enum err err;

    TRY(without_empty(&y, c->out[0], c->f.strm));
    STEP(y, ops_unary(&next, OP_NEGATIVE, y, c->f.strm));
    err = sums(out, (struct terms){ .v = c->tan[0], .at = c->f.in[0], .way = SAME }, y, &c->f);
out:
    arr_unref(&y);
    return err;
}

/* ---- extremes ---- */

/* The numbers of the elements along the axis. */
static enum err numbers(struct arr **out, const struct op_apply *f)
{
    int axis = params_of(f)->axis;
    int32_t shape[SHP_MAX], n = f->in[0]->shape[axis];
    struct arr *x = NULL;
    enum err err;

    for (int i = 0; i < f->in[0]->ndim; i++)
        shape[i] = i == axis ? n : 1;
    TRY(ops_arange(&x, &(struct arange_params){ 0, n, 1 }, DT_INT32, f->strm));
    err = ops_reshape(out, x, (struct ints){ shape, f->in[0]->ndim }, f->strm);
out:
    arr_unref(&x);
    return err;
}

/* Which element is the extreme of what has been passed with each: of equal ones the latest. */
static enum err owners(struct arr **out, const struct op_apply *f, struct arr *y)
{
    const struct scan_params *p = params_of(f);
    struct ops_scan latest = { .kind = p->reverse ? SCAN_MIN : SCAN_MAX,
                               .axis = p->axis,
                               .reverse = p->reverse,
                               .inclusive = true };
    struct arr *x = NULL, *none = NULL, *at = NULL;
    enum err err;

    TRY(scan_of_input(&x, f, y, true));
    STEP(x, ops_binary(&next, OP_NAN_EQUAL, f->in[0], x, f->strm));
    TRY(numbers(&at, f));
    TRY(arr_new_number(&none, p->reverse ? f->in[0]->shape[p->axis] : -1, DT_INT32));
    STEP(x, ops_where(&next, x, at, none, f->strm));
    STEP(x, ops_scan(&next, x, &latest, f->strm));
    err = ops_stop_gradient(out, x, f->strm);
out:
    arr_unref(&x);
    arr_unref(&none);
    arr_unref(&at);
    return err;
}

/* a moved by one along the axis, up or down; a zero moves in. */
static enum err moved(struct arr **out, struct arr *a, int axis, bool up, struct strm *s)
{
    struct pad_params pad = { 1, { { axis, up, !up } } };
    int32_t n = a->shape[axis];
    struct arr *in[2] = { NULL, NULL };
    enum err err;

    TRY(ops_slice_axis(&in[0], a, axis, (int32_t[]){ !up, n - up }, s));
    TRY(arr_new_number(&in[1], 0, dtype_of(a)));
    err = ops_make(out, OP_PAD, &pad, (struct arrs){ in, 2 }, s);
out:
    arr_unref_all(in, 2);
    return err;
}

/* Each cotangent goes to the element that is the extreme there. */
static enum err vjp_extreme(struct arr **out, const struct vjp_call *c)
{
    const struct scan_params *p = params_of(&c->f);
    struct ops_scatter_axis v = { .axis = p->axis, .kind = UPDATE_SUM };
    struct arr *at = NULL, *t = arr_ref(c->cotan[0]), *zeros = NULL;
    enum err err;

    TRY(owners(&at, &c->f, c->out[0]));
    if (!p->inclusive)
        STEP(t, moved(&next, t, p->axis, p->reverse, c->f.strm));
    TRY(ops_fill_like(&zeros, c->f.in[0], 0, dtype_of(t), c->f.strm));
    v.indices = at;
    v.updates = t;
    err = ops_scatter_axis(out, zeros, &v, c->f.strm);
out:
    arr_unref(&at);
    arr_unref(&t);
    arr_unref(&zeros);
    return err;
}

static enum err jvp_extreme(struct arr **out, const struct jvp_call *c)
{
    const struct scan_params *p = params_of(&c->f);
    struct arr *at = NULL, *x = NULL;
    enum err err;

    TRY(owners(&at, &c->f, c->out[0]));
    TRY(ops_take_along_axis(&x, c->tan[0], at, p->axis, c->f.strm));
    if (!p->inclusive)
        STEP(x, moved(&next, x, p->axis, !p->reverse, c->f.strm));
    arr_move(out, &x);
out:
    arr_unref(&at);
    arr_unref(&x);
    return err;
}

/* ---- rules ---- */

static enum err vjp_of_kind(struct arr **out, const struct vjp_call *c)
{
    switch ((enum scan_kind)params_of(&c->f)->kind) {
    case SCAN_SUM:
        return scan(out, SCAN_SUM, c->cotan[0], &c->f, BACK);
    case SCAN_PROD:
        return vjp_prod(out, c);
    case SCAN_LOGADDEXP:
        return vjp_logaddexp(out, c);
    default:
        return vjp_extreme(out, c);
    }
}

static enum err jvp_of_kind(struct arr **out, const struct jvp_call *c)
{
    switch ((enum scan_kind)params_of(&c->f)->kind) {
    case SCAN_SUM:
        return scan(out, SCAN_SUM, c->tan[0], &c->f, SAME);
    case SCAN_PROD:
        return jvp_prod(out, c);
    case SCAN_LOGADDEXP:
        return jvp_logaddexp(out, c);
    default:
        return jvp_extreme(out, c);
    }
}

enum err op_vjp_scan(struct vjp_call *c)
{
    struct arr *x = NULL;
    enum err err = ERR_OK;

    if (!c->f.in[0]->size)
        return ERR_OK;
    TRY(vjp_of_kind(&x, c));
    err = ops_astype(&c->result[0], x, dtype_of(c->f.in[0]), c->f.strm);
out:
    arr_unref(&x);
    return err;
}

enum err op_jvp_scan(struct jvp_call *c)
{
    struct arr *x = NULL;
    enum err err = ERR_OK;

    if (!c->f.in[0]->size)
        return ERR_OK;
    TRY(jvp_of_kind(&x, c));
    err = ops_astype(&c->result[0], x, dtype_of(c->out[0]), c->f.strm);
out:
    arr_unref(&x);
    return err;
}
