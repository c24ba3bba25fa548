/* Gradients: a function is traced, and the rules of its nodes (graph/op_call.h) are run over the
 * tape, backwards for vjp and forwards for jvp. */
#include "eval/stream.h"
#include "graph/op.h"
#include "graph/op_call.h"
#include "graph/tracing.h"
#include "transforms/parts.h"
#include "transforms/transforms.h"
#include "transforms/walk.h"

/* What the primals and everything behind them have, by number (walk.h). */
struct pass {
    struct outs primals; /* tracers in the place of the caller's */
    struct walk walk;
    struct arr **value; /* cotangents or tangents, owned; NULL: zero */
    bool *counts;       /* depends on a primal with a gradient */
};

/* ---- tracing ---- */

/* A copy of p that is a tracer. One of an earlier trace is looked through, so that copies of
 * parameters do not become chains. */
static enum err make_tracer(struct arr **out, struct arr *p)
{
    struct strm *s;
    enum err err;

    if (!arr_is_tracer(p) && p->node->op == OP_COPY && !arr_is_scheduled(p))
        p = p->node->in[0];
    TRY(strm_of(&s, p));
    TRY(ops_copy(out, p, s));
    (*out)->tracer = true;
out:
    return err;
}

static enum err trace(struct pass *p, struct fun *fun, struct arrs primals, struct outs *outs)
{
    enum err err;

    TRY(outs_init(&p->primals, primals.n));
    for (size_t i = 0; i < primals.n; i++)
        TRY(make_tracer(&p->primals.v[i], primals.v[i]));
    TRY(fun->call(fun, outs_arrs(&p->primals), outs));
out:
    return err;
}

static enum err look(struct pass *p, const struct outs *outs)
{
    enum err err;

    TRY(walk_graph(&p->walk, outs_arrs(outs), outs_arrs(&p->primals)));
    p->value = mem_alloc_array(p->walk.n_arrs, sizeof *p->value);
    p->counts = mem_alloc_array(p->walk.n_arrs, sizeof *p->counts);
    err = p->value && p->counts ? ERR_OK : ERR_NO_MEMORY;
out:
    return err;
}

static void pass_fini(struct pass *p)
{
    for (size_t i = 0; p->value && i < p->walk.n_arrs; i++)
        arr_unref(&p->value[i]);
    mem_free(p->value);
    mem_free(p->counts);
    walk_fini(&p->walk);
    outs_fini(&p->primals);
}

static enum err zeros_like(struct arr **out, struct arr *a)
{
    struct strm *s;
    enum err err;

    TRY(strm_of(&s, a));
    err = ops_fill_like(out, a, 0, (enum dtype)a->dtype, s);
out:
    return err;
}

static bool has_counted_input(const struct pass *p, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        size_t at = walk_number(&p->walk, n->in[i]);
        if (at != WALK_NONE && p->counts[at])
            return true;
    }
    return false;
}

static void mark_counting(struct pass *p, struct ints argnums)
{
    for (size_t i = 0; i < argnums.n; i++)
        p->counts[argnums.v[i]] = true;
    for (size_t i = 0; i < p->walk.step.n; i++) {
        const struct walk_step *s = &p->walk.step.v[i];
        if (s->node->op != OP_STOP_GRADIENT && has_counted_input(p, s->node))
            for (int o = 0; o < s->node->n_out; o++)
                p->counts[s->first + (size_t)o] = true;
    }
}

static enum err no_rule(const struct node *n, const char *rule)
{
    return err_set(ERR_ARG, "[Primitive::%s] Not implemented for %s.", rule,
                   op_name((enum op_id)n->op));
}

static struct op_apply apply_of(const struct node *n)
{
    return (struct op_apply){ .op = (enum op_id)n->op,
                              .params = n->params,
                              .state = n->state,
                              .in = n->in,
                              .n_in = (size_t)n->n_in,
                              .n_out = (size_t)n->n_out,
                              .strm = n->strm,
                              .by_parts = &transform_by_parts };
}

/* ---- backwards ---- */

/* Takes the reference. */
static enum err accumulate(struct pass *p, size_t number, struct arr *part, struct strm *s)
{
    struct arr **sum = &p->value[number], *next = NULL;
    enum err err;

    if (!*sum) {
        *sum = part;
        return ERR_OK;
    }
    err = ops_binary(&next, OP_ADD, *sum, part, s);
    arr_unref(&part);
    if (!err) {
        arr_unref(sum);
        *sum = next;
    }
    return err;
}

/* Lists of a rule's call, in one allocation. */
struct vjp_lists {
    struct arr **out, **result;
    int *wanted;
    size_t n_wanted;
};

static enum err vjp_lists(struct vjp_lists *l, struct arena *scratch, const struct pass *p,
                          const struct node *n)
{
    l->out = arena_alloc(scratch, (size_t)n->n_out * sizeof *l->out);
    l->result = arena_alloc(scratch, (size_t)n->n_in * sizeof *l->result);
    l->wanted = arena_alloc(scratch, (size_t)n->n_in * sizeof *l->wanted);
    if (!l->out || !l->result || !l->wanted)
        return ERR_NO_MEMORY;
    for (int o = 0; o < n->n_out; o++)
        l->out[o] = &n->out[o];
    for (int i = 0; i < n->n_in; i++) {
        size_t at = walk_number(&p->walk, n->in[i]);
        if (at != WALK_NONE && p->counts[at])
            l->wanted[l->n_wanted++] = i;
    }
    return ERR_OK;
}

static bool has_value(const struct pass *p, const struct walk_step *s)
{
    for (int o = 0; o < s->node->n_out; o++)
        if (p->value[s->first + (size_t)o])
            return true;
    return false;
}

/* A rule may make nodes on outputs, of which some may be held by nobody. */
static void pin_siblings(struct node *n)
{
    if (n->n_out > 1)
        node_pin(n);
}

static void unpin_siblings(struct node *n)
{
    if (n->n_out > 1)
        node_unpin(n);
}

/* The cotangents of a node become those of its inputs. */
static enum err vjp_step(struct pass *p, const struct walk_step *s)
{
    struct node *n = s->node;
    op_vjp_fn rule = op_table[n->op].vjp;
    struct arena scratch = { 0 };
    struct vjp_lists l = { 0 };
    enum err err;

    if (!rule)
        return no_rule(n, "vjp");
    TRY(vjp_lists(&l, &scratch, p, n));
    tracing_retain(true);
    pin_siblings(n);
    err = rule(&(struct vjp_call){ .f = apply_of(n),
                                   .out = l.out,
                                   .cotan = &p->value[s->first],
                                   .wanted = l.wanted,
                                   .n_wanted = l.n_wanted,
                                   .result = l.result });
    unpin_siblings(n);
    tracing_retain(false);
    for (size_t i = 0; i < l.n_wanted && !err; i++)
        if (l.result[i]) {
            struct arr *part = l.result[i];
            l.result[i] = NULL;
            err = accumulate(p, walk_number(&p->walk, n->in[l.wanted[i]]), part, n->strm);
        }
    for (size_t i = 0; i < l.n_wanted; i++)
        arr_unref(&l.result[i]);
    for (int o = 0; o < n->n_out; o++)
        arr_unref(&p->value[s->first + (size_t)o]);
out:
    arena_fini(&scratch);
    return err;
}

static enum err backwards(struct pass *p)
{
    enum err err = ERR_OK;

    for (size_t i = p->walk.step.n; i-- > 0;) {
        const struct walk_step *s = &p->walk.step.v[i];
        if (p->counts[s->first] && has_value(p, s))
            TRY(vjp_step(p, s));
    }
out:
    return err;
}

static enum err check_cotangent(const struct outs *outs, const struct arr *out,
                                const struct arr *cotan)
{
    struct shp a, b;

    if (arr_same_shape(out, cotan))
        return ERR_OK;
    arr_shape(&a, out);
    arr_shape(&b, cotan);
    return err_set(ERR_ARG, "[vjp] Output shape %s does not match cotangent shape %s.%s",
                   shp_text(&a), shp_text(&b),
                   outs->n == 1 && out->size == 1
                       ? " If you are using grad your function must return a scalar."
                       : "");
}

/* Outputs that stop gradients have no cotangent. */
static bool takes_cotangent(const struct vjp_params *q, const struct outs *outs, size_t i)
{
    return !(q->is_of_first && i > 0) && outs->v[i]->node->op != OP_STOP_GRADIENT;
}

static enum err check_cotangents(const struct vjp_params *q, const struct outs *outs)
{
    size_t at = 0;
    enum err err = ERR_OK;

    for (size_t i = 0; i < outs->n; i++) {
        if (!takes_cotangent(q, outs, i))
            continue;
        if (at == q->cotans.n)
            return err_set(ERR_ARG,
                           "[vjp] Number of outputs to compute gradients for (%zu) does not match "
                           "number of cotangents (%zu).",
                           outs->n, q->cotans.n);
        TRY(check_cotangent(outs, outs->v[i], q->cotans.v[at++]));
    }
out:
    return err;
}

static enum err seed(struct pass *p, const struct vjp_params *q, const struct outs *outs)
{
    size_t next = 0;
    enum err err = ERR_OK;

    for (size_t i = 0; i < outs->n; i++) {
        struct arr *part = NULL;
        struct strm *s;
        size_t at = walk_number(&p->walk, outs->v[i]);
        if (!takes_cotangent(q, outs, i))
            continue;
        struct arr *cotan = q->cotans.v[next++];
        if (at == WALK_NONE)
            continue;
        TRY(strm_of(&s, outs->v[i]));
        TRY(ops_astype(&part, cotan, (enum dtype)outs->v[i]->dtype, s));
        TRY(accumulate(p, at, part, s));
    }
out:
    return err;
}

static enum err take_grads(struct pass *p, struct ints argnums, struct outs *grads)
{
    enum err err;

    TRY(outs_init(grads, argnums.n));
    for (size_t i = 0; i < argnums.n; i++) {
        size_t at = (size_t)argnums.v[i];
        if (p->value[at])
            grads->v[i] = arr_ref(p->value[at]);
        else
            TRY(zeros_like(&grads->v[i], p->primals.v[at]));
    }
out:
    return err;
}

/* Results that are only handed over carry no gradient of an outer transformation either. */
static enum err stop_others(struct outs *outs)
{
    struct strm *s;
    enum err err = ERR_OK;

    for (size_t i = 1; i < outs->n; i++) {
        struct arr *stopped = NULL;
        TRY(strm_of(&s, outs->v[i]));
        TRY(ops_stop_gradient(&stopped, outs->v[i], s));
        arr_unref(&outs->v[i]);
        outs->v[i] = stopped;
    }
out:
    return err;
}

enum err transform_vjp(const struct vjp_params *q, struct outs *outs, struct outs *grads)
{
    struct pass p = { 0 };
    enum err err;

    tracing_begin(TRACE_GRAD);
    TRY(trace(&p, q->fun, q->primals, outs));
    if (q->is_of_first)
        TRY(stop_others(outs));
    TRY(check_cotangents(q, outs));
    TRY(look(&p, outs));
    mark_counting(&p, q->argnums);
    TRY(seed(&p, q, outs));
    TRY(backwards(&p));
    TRY(take_grads(&p, q->argnums, grads));
out:
    if (err) {
        outs_fini(outs);
        outs_fini(grads);
    }
    pass_fini(&p);
    tracing_end(TRACE_GRAD);
    return err;
}

enum err transform_vjp_all(struct fun *fun, struct arrs primals, struct arrs cotans,
                           struct outs *outs, struct outs *grads)
{
    int32_t *all = mem_alloc_array(primals.n, sizeof *all);
    enum err err = ERR_NO_MEMORY;

    for (size_t i = 0; all && i < primals.n; i++)
        all[i] = (int32_t)i;
    if (all)
        err = transform_vjp(
            &(struct vjp_params){
                .fun = fun, .primals = primals, .cotans = cotans, .argnums = { all, primals.n } },
            outs, grads);
    mem_free(all);
    return err;
}

/* ---- forwards ---- */

static enum err jvp_step(struct pass *p, const struct walk_step *s)
{
    struct node *n = s->node;
    op_jvp_fn rule = op_table[n->op].jvp;
    struct arena scratch = { 0 };
    struct arr **out = arena_alloc(&scratch, (size_t)n->n_out * sizeof *out);
    struct arr **tan = arena_alloc(&scratch, (size_t)n->n_in * sizeof *tan);
    enum err err = ERR_NO_MEMORY;

    if (!out || !tan)
        goto out;
    for (int o = 0; o < n->n_out; o++)
        out[o] = &n->out[o];
    for (int i = 0; i < n->n_in; i++) {
        size_t at = walk_number(&p->walk, n->in[i]);
        tan[i] = at == WALK_NONE ? NULL : p->value[at];
    }
    pin_siblings(n);
    err = rule ? rule(&(struct jvp_call){ apply_of(n), out, tan, &p->value[s->first] })
               : no_rule(n, "jvp");
    unpin_siblings(n);
out:
    arena_fini(&scratch);
    return err;
}

static bool has_tangent(const struct pass *p, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        size_t at = walk_number(&p->walk, n->in[i]);
        if (at != WALK_NONE && p->value[at])
            return true;
    }
    return false;
}

static enum err forwards(struct pass *p)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < p->walk.step.n; i++) {
        const struct walk_step *s = &p->walk.step.v[i];
        if (s->node->op != OP_STOP_GRADIENT && has_tangent(p, s->node))
            TRY(jvp_step(p, s));
    }
out:
    return err;
}

/* A tangent has the dtype of its array, which rules count on. */
static enum err start(struct pass *p, struct arrs tangents)
{
    struct strm *s;
    enum err err = ERR_OK;

    for (size_t i = 0; i < tangents.n; i++) {
        struct arr *primal = p->primals.v[i];
        TRY(strm_of(&s, primal));
        TRY(ops_astype(&p->value[i], tangents.v[i], (enum dtype)primal->dtype, s));
    }
out:
    return err;
}

/* What does not change. A comparison is of numbers, whose dtype its tangent has, as in MLX. */
static enum err zero_tangent(struct arr **out, struct arr *a, bool depends)
{
    bool is_comparison = depends && op_table[a->node->op].flags & OPF_BOOL_OUT;
    struct strm *s;
    enum err err;

    TRY(strm_of(&s, a));
    err = ops_fill_like(out, a, 0, (enum dtype)(is_comparison ? a->node->in[0] : a)->dtype, s);
out:
    return err;
}

static enum err take_tangents(const struct pass *p, const struct outs *outs, struct outs *tangents)
{
    enum err err;

    TRY(outs_init(tangents, outs->n));
    for (size_t i = 0; i < outs->n; i++) {
        size_t at = walk_number(&p->walk, outs->v[i]);
        if (at != WALK_NONE && p->value[at])
            tangents->v[i] = arr_ref(p->value[at]);
        else
            TRY(zero_tangent(&tangents->v[i], outs->v[i], at != WALK_NONE));
    }
out:
    return err;
}

static enum err check_tangents(struct arrs primals, struct arrs tangents)
{
    if (primals.n != tangents.n)
        return err_set(ERR_ARG, "[jvp] Number of inputs does not match number of tangents.");
    for (size_t i = 0; i < primals.n; i++)
        if (!arr_same_shape(primals.v[i], tangents.v[i]))
            return err_set(ERR_ARG, "[jvp] Input shape does not match shape of tangent.");
    return ERR_OK;
}

enum err transform_jvp(struct fun *fun, struct arrs primals, struct arrs tangents,
                       struct outs *outs, struct outs *tangents_out)
{
    struct pass p = { 0 };
    enum err err;

    tracing_begin(TRACE_GRAD);
    TRY(check_tangents(primals, tangents));
    TRY(trace(&p, fun, primals, outs));
    TRY(look(&p, outs));
    TRY(start(&p, tangents));
    TRY(forwards(&p));
    TRY(take_tangents(&p, outs, tangents_out));
out:
    if (err) {
        outs_fini(outs);
        outs_fini(tangents_out);
    }
    pass_fini(&p);
    tracing_end(TRACE_GRAD);
    return err;
}
