/* Functions with rules of their own, and checkpoints, which are one kind of them. */
#include "eval/stream.h"
#include "graph/op_call.h"
#include "transforms/transforms.h"

/* What the function and the nodes it makes share. */
struct rules {
    struct ops_custom base;
    struct fun *fun; /* these are owned; fun alone is always there */
    struct custom_rules rules;
};

struct custom {
    struct fun base;
    struct rules *rules; /* owned */
};

/* ---- rules ---- */

static struct rules *rules_of(const struct op_apply *f)
{
    return (struct rules *)f->state;
}

/* The inputs of the node that are arguments of the function. */
static struct arrs args_of(const struct op_apply *f)
{
    const struct alias_params *p = f->params;

    return (struct arrs){ f->in, (size_t)p->first };
}

/* New references to a list in which what is NULL are zeros like the other list. */
static enum err with_zeros(struct outs *o, struct arr *const *a, struct arrs like, struct strm *s)
{
    enum err err;

    TRY(outs_init(o, like.n));
    for (size_t i = 0; i < like.n; i++)
        if (a[i])
            o->v[i] = arr_ref(a[i]);
        else
            TRY(ops_fill_like(&o->v[i], like.v[i], 0, (enum dtype)like.v[i]->dtype, s));
out:
    if (err)
        outs_fini(o);
    return err;
}

static enum err check_count(size_t got, size_t want, const char *what)
{
    return got == want
               ? ERR_OK
               : err_set(ERR_ARG, "[custom_function] The %s returned %zu arrays instead of %zu.",
                         what, got, want);
}

static enum err vjp(struct vjp_call *c)
{
    struct rules *r = rules_of(&c->f);
    struct arrs args = args_of(&c->f), out = { c->out, c->f.n_out };
    struct outs cotans = { 0 }, grads = { 0 }, again = { 0 };
    enum err err;

    TRY(with_zeros(&cotans, c->cotan, out, c->f.strm));
    if (r->rules.vjp)
        err = r->rules.vjp->call(r->rules.vjp, args, outs_arrs(&cotans), out, &grads);
    else
        err = transform_vjp_all(r->fun, args, outs_arrs(&cotans), &again, &grads);
    if (err)
        goto out;
    for (size_t i = 0; i < c->n_wanted; i++) {
        size_t at = (size_t)c->wanted[i];
        if (at < args.n && at >= grads.n) /* a rule may leave out the last ones if nobody asks */
            TRY(check_count(grads.n, args.n, "vjp"));
        struct arr *a = at < args.n ? grads.v[at] : cotans.v[at - args.n];
        c->result[i] = a ? arr_ref(a) : NULL;
    }
out:
    outs_fini(&cotans);
    outs_fini(&grads);
    outs_fini(&again);
    return err;
}

/* The tangents that are there, and which arguments they belong to. */
static enum err jvp_by_rule(struct fun_jvp *rule, const struct jvp_call *c, struct outs *out)
{
    struct arrs args = args_of(&c->f);
    struct arr **tangents = mem_alloc_array(args.n, sizeof *tangents);
    int32_t *argnums = mem_alloc_array(args.n, sizeof *argnums);
    size_t n = 0;
    enum err err = ERR_NO_MEMORY;

    for (size_t i = 0; i < args.n && tangents && argnums; i++)
        if (c->tan[i]) {
            tangents[n] = c->tan[i];
            argnums[n++] = (int32_t)i;
        }
    if (tangents && argnums)
        err =
            rule->call(rule, args, (struct arrs){ tangents, n }, (struct ints){ argnums, n }, out);
    mem_free(tangents);
    mem_free(argnums);
    return err;
}

static enum err jvp(struct jvp_call *c)
{
    struct rules *r = rules_of(&c->f);
    struct arrs args = args_of(&c->f);
    struct outs tangents = { 0 }, out = { 0 }, again = { 0 };
    enum err err;

    if (r->rules.jvp) {
        TRY(jvp_by_rule(r->rules.jvp, c, &out));
    } else {
        TRY(with_zeros(&tangents, c->tan, args, c->f.strm));
        TRY(transform_jvp(r->fun, args, outs_arrs(&tangents), &again, &out));
    }
    TRY(check_count(out.n, c->f.n_out, "jvp"));
    for (size_t i = 0; i < out.n; i++)
        c->result[i] = out.v[i] ? arr_ref(out.v[i]) : NULL;
out:
    outs_fini(&tangents);
    outs_fini(&out);
    outs_fini(&again);
    return err;
}

/* fun over the batch; its results have it in front. */
static enum err vmap_of_fun(const struct rules *r, const struct vmap_call *c, struct outs *out,
                            int32_t **out_axes)
{
    struct arrs args = args_of(&c->f);
    struct ints axes = { c->axis, args.n };
    struct outs in = { 0 }, traced = { 0 };
    enum err err;

    TRY(transform_vmap_trace(r->fun, args, axes, &in, &traced));
    err = ERR_NO_MEMORY;
    if (!(*out_axes = mem_alloc_array(traced.n, sizeof **out_axes)))
        goto out;
    err = transform_vmap_replace(&(struct vmap_params){ .inputs = args,
                                                        .in_axes = axes,
                                                        .traced_in = outs_arrs(&in),
                                                        .traced_out = outs_arrs(&traced),
                                                        .out_axes = { *out_axes, traced.n } },
                                 out);
out:
    outs_fini(&in);
    outs_fini(&traced);
    return err;
}

static enum err vmap(struct vmap_call *c)
{
    struct rules *r = rules_of(&c->f);
    struct fun_vmap *rule = r->rules.vmap;
    struct arrs args = args_of(&c->f);
    struct outs out = { 0 };
    int32_t *axes = NULL;
    enum err err;

    if (rule)
        err = rule->call(rule, args, (struct ints){ c->axis, args.n }, &out, &axes);
    else
        err = vmap_of_fun(r, c, &out, &axes);
    if (err)
        goto out;
    TRY(check_count(out.n, c->f.n_out, "vmap"));
    for (size_t i = 0; i < out.n; i++) {
        c->result[i] = arr_ref(out.v[i]);
        c->out_axis[i] = axes[i];
    }
out:
    outs_fini(&out);
    mem_free(axes);
    return err;
}

/* ---- the state of a node ---- */

static void rules_destroy(struct op_state *s)
{
    struct rules *r = (struct rules *)s;

    counted_unref(r->fun);
    counted_unref(r->rules.vjp);
    counted_unref(r->rules.jvp);
    counted_unref(r->rules.vmap);
    mem_free(r);
}

static uint64_t rules_hash(const struct op_state *s)
{
    return (uintptr_t)s;
}

static bool rules_equal(const struct op_state *a, const struct op_state *b)
{
    return a == b;
}

static void rules_print(const struct op_state *s, char *buf, size_t n)
{
    (void)s, (void)buf, (void)n;
}

static const struct op_state_class rules_class = { rules_destroy, rules_hash, rules_equal,
                                                   rules_print };

/* ---- the function ---- */

static enum err stop_gradients(const struct outs *o)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < o->n; i++) {
        struct arr *a = o->v[i], *stopped = NULL;
        struct strm *s;
        TRY(strm_of(&s, a));
        TRY(ops_stop_gradient(&stopped, a, s));
        arr_unref(&o->v[i]);
        o->v[i] = stopped;
    }
out:
    return err;
}

static enum err call(struct fun *f, struct arrs in, struct outs *out)
{
    struct rules *r = ((struct custom *)f)->rules;
    struct outs made = { 0 };
    enum err err;

    TRY(r->fun->call(r->fun, in, &made));
    TRY(outs_init(out, made.n));
    if (!made.n)
        goto out;
    TRY(stop_gradients(&made));
    err = ops_custom(out->v, in, outs_arrs(&made), &r->base, made.v[0]->node->strm);
out:
    if (err)
        outs_fini(out);
    outs_fini(&made);
    return err;
}

static void destroy(void *self)
{
    struct custom *c = self;
    struct op_state *s = &c->rules->base.base;

    op_state_unref(&s);
    mem_free(c);
}

enum err transform_custom(struct fun **out, struct fun *fun, const struct custom_rules *rules)
{
    struct custom *c;
    struct rules *r;

    if (!rules->vjp && !rules->jvp && !rules->vmap) {
        *out = counted_ref(fun);
        return ERR_OK;
    }
    c = mem_alloc(sizeof *c);
    r = mem_alloc(sizeof *r);
    if (!c || !r) {
        mem_free(c);
        mem_free(r);
        return ERR_NO_MEMORY;
    }
    r->base = (struct ops_custom){
        .base = { .class = &rules_class }, .vjp = vjp, .jvp = jvp, .vmap = vmap
    };
    atomic_init(&r->base.base.rc, 1);
    r->fun = counted_ref(fun);
    r->rules = (struct custom_rules){ counted_ref(rules->vjp), counted_ref(rules->jvp),
                                      counted_ref(rules->vmap) };
    c->base = (struct fun){ .counted = { .destroy = destroy }, .call = call };
    atomic_init(&c->base.counted.rc, 1);
    c->rules = r;
    *out = &c->base;
    return ERR_OK;
}

/* ---- checkpoints ---- */

struct again {
    struct fun_vjp base;
    struct fun *fun; /* owned */
};

/* The graph is built again on primals that are there only after the outputs, so that it does not
 * run before its gradients are wanted. */
static enum err vjp_again(struct fun_vjp *f, struct arrs primals, struct arrs cotans,
                          struct arrs outs, struct outs *grads)
{
    struct outs later = { 0 }, values = { 0 };
    struct strm *s = outs.v[0]->node->strm;
    enum err err;

    if (!primals.n)
        return outs_init(grads, 0);
    TRY(outs_init(&later, primals.n));
    TRY(ops_depends(later.v, primals, outs, s));
    err = transform_vjp_all(((struct again *)f)->fun, outs_arrs(&later), cotans, &values, grads);
out:
    outs_fini(&later);
    outs_fini(&values);
    return err;
}

static void again_destroy(void *self)
{
    struct again *a = self;

    counted_unref(a->fun);
    mem_free(a);
}

enum err transform_checkpoint(struct fun **out, struct fun *fun)
{
    struct again *a = mem_alloc(sizeof *a);
    enum err err;

    if (!a)
        return ERR_NO_MEMORY;
    a->base = (struct fun_vjp){ .counted = { .destroy = again_destroy }, .call = vjp_again };
    atomic_init(&a->base.counted.rc, 1);
    a->fun = counted_ref(fun);
    err = transform_custom(out, fun, &(struct custom_rules){ .vjp = &a->base });
    counted_unref(a);
    return err;
}
