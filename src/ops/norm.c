/* Norms over the last axis: one node each, and what they are made of. */
#include "base/gate.h"
#include "eval/stream.h"
#include "ops/build.h"
#include "ops/parts.h"
#include "ops/rules.h"

struct norm {
    const char *name;
    enum op_id op;
    struct arr *weight, *bias; /* borrowed, may be NULL */
    float eps;
    enum dtype dtype; /* of the result */
};

static enum err check_vector(const struct norm *n, const struct arr *x, const struct arr *v,
                             const char *name)
{
    if (!v)
        return ERR_OK;
    if (v->ndim != 1)
        return err_set(ERR_ARG, "[%s] %s must have 1 dimension but has %d dimensions.", n->name,
                       name, v->ndim);
    if (v->size != (size_t)x->shape[x->ndim - 1])
        return err_set(ERR_ARG,
                       "[%s] %s must have the same size as the last dimension of x but has %zu "
                       "elements.",
                       n->name, name, v->size);
    return ERR_OK;
}

/* A bias has a say in the dtype only beside a weight. */
static enum err check(struct norm *n, const struct arr *x, const char *weight_name)
{
    enum err err;

    if (x->ndim == 0)
        return err_set(ERR_ARG,
                       "[%s] Input must have at least 1 dimension but got input with 0 dimensions.",
                       n->name);
    TRY(check_vector(n, x, n->weight, weight_name));
    TRY(check_vector(n, x, n->bias, "bias"));
    n->dtype = dtype_of(x);
    if (n->weight)
        n->dtype = dt_promote(n->dtype, dtype_of(n->weight));
    if (n->weight && n->bias)
        n->dtype = dt_promote(n->dtype, dtype_of(n->bias));
    if (!dt_is_float(n->dtype))
        err = err_set(ERR_ARG, "[%s] Received unsupported type %s.", n->name, dt_name(n->dtype));
out:
    return err;
}

/* ---- by parts: float64, which is computed in float32 here as well ---- */

static enum err mean_of_last(struct arr **out, struct arr *x, struct strm *s)
{
    static const int32_t last = -1;

    return ops_mean(out, x, &(struct ops_axes){ { &last, 1 }, true }, s);
}

/* 1 / sqrt(mean(x^2) + eps) */
static enum err inverse_magnitude(struct arr **out, struct arr *x, float eps, struct strm *s)
{
    struct arr *r = NULL, *e = NULL;
    enum err err;

    TRY(ops_unary(&r, OP_SQUARE, x, s));
    STEP(r, mean_of_last(&next, r, s));
    TRY(arr_new_number(&e, (double)eps, DT_FLOAT32));
    STEP(r, ops_binary(&next, OP_ADD, r, e, s));
    TRY(ops_unary(out, OP_RSQRT, r, s));
out:
    arr_unref(&r);
    arr_unref(&e);
    return err;
}

static enum err apply_vector(struct arr **x, enum op_id op, struct arr *v, enum dtype t,
                             struct strm *s)
{
    struct arr *w = NULL;
    enum err err;

    TRY(ops_astype(&w, v, t, s));
    STEP(*x, ops_binary(&next, op, *x, w, s));
out:
    arr_unref(&w);
    return err;
}

static enum err by_parts(struct arr **out, struct arr *a, const struct norm *n, struct strm *s)
{
    struct arr *x = NULL, *r = NULL;
    enum err err;

    TRY(ops_astype(&x, a, DT_FLOAT32, s));
    if (n->op == OP_LAYER_NORM) {
        TRY(mean_of_last(&r, x, s));
        STEP(x, ops_binary(&next, OP_SUBTRACT, x, r, s));
    }
    STEP(r, inverse_magnitude(&next, x, n->eps, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, r, s));
    STEP(x, ops_astype(&next, x, n->dtype, s));
    if (n->weight)
        TRY(apply_vector(&x, OP_MULTIPLY, n->weight, n->dtype, s));
    if (n->bias)
        TRY(apply_vector(&x, OP_ADD, n->bias, n->dtype, s));
    arr_move(out, &x);
out:
    arr_unref(&x);
    arr_unref(&r);
    return err;
}

/* ---- the nodes ---- */

enum err op_infer_norm(struct infer_call *c)
{
    const struct norm_params *p = c->params;
    const struct arr *x = c->in[0];

    FITS(x->ndim && dt_is_float(dtype_of(x)));
    FITS(c->n_in == 1 + (size_t)p->has_weight + (size_t)p->has_bias);
    for (size_t i = 1; i < c->n_in; i++) {
        const struct arr *v = c->in[i];
        FITS(v->dtype == x->dtype && v->ndim == 1 && v->shape[0] == x->shape[x->ndim - 1]);
    }
    infer_like(c, x);
    return ERR_OK;
}

enum err op_infer_norm_vjp(struct infer_call *c)
{
    const struct norm_vjp_params *p = c->params;
    struct infer_call of = *c;

    of.params = &p->of;
    of.n_in--;
    FITS(c->n_in == 2 + (size_t)p->of.has_weight + (size_t)p->of.has_bias);
    FITS(op_infer_norm(&of) == ERR_OK && c->in[0]->dtype != DT_FLOAT64 && c->in[0]->size);
    FITS(arr_same_shape(c->in[0], c->in[of.n_in]) && c->in[0]->dtype == c->in[of.n_in]->dtype);
    c->n_out = p->for_vectors ? of.n_in : 1;
    for (size_t i = 0; i < c->n_out; i++) {
        c->out[i].dtype = dtype_of(c->in[i]);
        arr_shape(&c->out[i].shape, c->in[i]);
    }
    return ERR_OK;
}

static enum err make_node(struct arr **out, struct arr *x, const struct norm *n, struct strm *s)
{
    struct norm_params p = { n->eps, n->weight != NULL, n->bias != NULL };
    struct arr *const src[] = { x, n->weight, n->bias };
    struct arr *in[ARRAY_LEN(src)] = { NULL };
    size_t n_in = 0;
    enum err err = ERR_OK;

    for (size_t i = 0; i < ARRAY_LEN(src); i++)
        if (src[i]) {
            TRY(ops_astype(&in[n_in], src[i], n->dtype, s));
            n_in++;
        }
    TRY(ops_make_of(out, n->op, &p, (struct given){ in, n_in }, s));
out:
    arr_unref_all(in, n_in);
    return err;
}

static enum err make(struct arr **out, struct arr *x, struct norm *n, struct strm *s)
{
    const char *weight_name = n->op == OP_RMS_NORM ? "(*weight)" : "weight";
    enum err err = check(n, x, weight_name);

    if (err)
        return err;
    if (n->dtype == DT_FLOAT64 || (s->dev.type == DEV_GPU && !gate_on(GATE_VK_NORM_NATIVE)))
        return by_parts(out, x, n, s);
    return make_node(out, x, n, s);
}

enum err ops_rms_norm(struct arr **out, struct arr *x, struct arr *weight, float eps,
                      struct strm *s)
{
    return make(
        out, x,
        &(struct norm){ .name = "rms_norm", .op = OP_RMS_NORM, .weight = weight, .eps = eps }, s);
}

enum err ops_layer_norm(struct arr **out, struct arr *x, const struct ops_layer_norm *n,
                        struct strm *s)
{
    return make(out, x,
                &(struct norm){ .name = "layer_norm",
                                .op = OP_LAYER_NORM,
                                .weight = n->weight,
                                .bias = n->bias,
                                .eps = n->eps },
                s);
}

enum err norm_parts(struct arr **out, const struct op_apply *f)
{
    const struct norm_params *p = f->params;

    return by_parts(out, f->in[0],
                    &(struct norm){ .op = f->op,
                                    .weight = p->has_weight ? f->in[1] : NULL,
                                    .bias = p->has_bias ? f->in[1 + p->has_weight] : NULL,
                                    .eps = p->eps,
                                    .dtype = dtype_of(f->in[0]) },
                    f->strm);
}
