/* Statements, macros, and the names they set. */
#include "lm/jinja/eval.h"

/* ---- names ---- */

bool scope_enter(struct jin *j, struct jscope *parent, struct jscope **before)
{
    struct jscope *s = jin_alloc(j, sizeof *s);

    *before = j->scope;
    if (!s)
        return false;
    s->parent = parent;
    j->scope = s;
    return true;
}

void scope_leave(struct jin *j, struct jscope *before)
{
    j->scope = before;
}

void scope_set(struct jin *j, struct jval name, struct jval v)
{
    if (jin_ok(j))
        jd_set(j, &j->scope->vars, name, v);
}

struct jval scope_get(struct jin *j, struct jval name)
{
    const struct jfn *fn;
    struct jval *v = NULL;

    for (const struct jscope *s = j->scope; s && !v; s = s->parent)
        if (s->vars.n)
            v = jd_find(j, &s->vars, name);
    if (!v)
        v = jd_find(j, j->vars, name);
    if (v || !jin_ok(j))
        return v ? *v : jv_none();
    fn = jin_global(name.s);
    return fn ? (struct jval){ .kind = J_FUNCTION, .fn = fn } : jv_undefined(j, NULL, name);
}

static void assign(struct jin *j, const struct jnode *target, struct jval v);

static void assign_tuple(struct jin *j, const struct jnode *target, struct jval v)
{
    const struct jlist *l = v.kind == J_UNDEFINED && !jin_defined(j, v) ? NULL : jv_items(j, v);
    const struct jnode *t = target->a;
    size_t i = 0;

    for (; l && t && i < l->n && jin_ok(j); t = t->next)
        assign(j, t, l->v[i++]);
    if (jin_ok(j) && (t || (l && i < l->n)))
        jin_fail(j, "a tuple of %zu values does not fit the names it is assigned to", l->n);
}

static void assign_attr(struct jin *j, const struct jnode *target, struct jval v)
{
    struct jval space = scope_get(j, target->a->value);
    const struct jstr *name = target->value.s;

    if (!jin_ok(j))
        return;
    if (space.kind != J_SPACE)
        jin_fail(j, "cannot assign attribute on non-namespace object");
    else if (name->n && name->v[0] == '_')
        jin_fail(j, "names in a namespace cannot begin with _");
    else
        jd_set(j, space.d, target->value, v);
}

static void assign(struct jin *j, const struct jnode *target, struct jval v)
{
    if (!jin_enter(j))
        return;
    if (target->kind == E_NAME)
        scope_set(j, target->value, v);
    else if (target->kind == E_TUPLE)
        assign_tuple(j, target, v);
    else
        assign_attr(j, target, v);
    jin_leave(j);
}

/* ---- bodies as text ---- */

/* What statements write, in a scope of their own inside of `parent`. */
static struct jval capture(struct jin *j, const struct jnode *body, struct jscope *parent)
{
    struct str text = { 0 }, *out = j->out;
    struct jscope *before;

    if (!scope_enter(j, parent, &before))
        return jv_none();
    j->out = &text;
    jin_exec(j, body);
    j->out = out;
    scope_leave(j, before);
    return jin_take(j, &text);
}

static void write_value(struct jin *j, struct jval v)
{
    if (jin_ok(j))
        jin_str(j, j->out, v);
}

/* ---- loops ---- */

/* A scope for the next round of a loop: the last one again, if nobody kept it. */
static bool scope_again(struct jin *j, struct jscope *parent, struct jscope **s)
{
    struct jscope *before;

    if (*s && !(*s)->kept) {
        (*s)->vars.n = 0;
        j->scope = *s;
        return jin_ok(j);
    }
    if (!scope_enter(j, parent, &before))
        return false;
    *s = j->scope;
    return true;
}

/* The elements that pass the test. */
static struct jlist *pick_items(struct jin *j, const struct jnode *n, struct jlist *items)
{
    struct jval picked = jv_list(j, J_LIST, 0);
    struct jscope *around = j->scope, *s = NULL;

    for (size_t i = 0; i < items->n && jin_ok(j); i++) {
        if (!scope_again(j, around, &s))
            break;
        assign(j, n->a, items->v[i]);
        struct jval test = jin_ok(j) ? jin_eval(j, n->c) : jv_none();
        scope_leave(j, around);
        if (jin_ok(j) && jv_true(j, test))
            jv_push(j, picked, items->v[i]);
    }
    return picked.l;
}

static void run_loop(struct jin *j, const struct jnode *n, struct jval items, int depth)
{
    struct jloop *loop = jin_alloc(j, sizeof *loop);
    struct jscope *around = j->scope, *s = NULL;
    struct jval name = jv_text(j, "loop");

    if (!jin_ok(j))
        return;
    loop->items = jv_items(j, items);
    if (n->c && jin_ok(j))
        loop->items = pick_items(j, n, loop->items);
    if (!jin_ok(j))
        return;
    loop->depth = depth;
    loop->node = n;
    loop->scope = around;
    for (; loop->at < loop->items->n && jin_ok(j); loop->at++) {
        if (!scope_again(j, around, &s))
            return;
        scope_set(j, name, (struct jval){ .kind = J_LOOP, .loop = loop });
        assign(j, n->a, loop->items->v[loop->at]);
        if (jin_ok(j))
            jin_exec(j, n->body);
        scope_leave(j, around);
        if (j->flow == FLOW_BREAK)
            break;
        j->flow = FLOW_ON;
    }
    j->flow = FLOW_ON;
    if (!loop->items->n && n->other && scope_again(j, around, &s)) {
        jin_exec(j, n->other);
        scope_leave(j, around);
    }
}

static void exec_for(struct jin *j, const struct jnode *n)
{
    struct jval items = jin_eval(j, n->b);

    j->line = n->line;
    if (jin_ok(j))
        run_loop(j, n, items, 0);
}

struct jval jin_call_loop(struct jin *j, const struct jloop *l, struct jval items)
{
    struct str text = { 0 }, *out = j->out;
    struct jscope *before = j->scope;

    if (!l->node->recursive)
        return jin_fail(j, "the loop is not marked as recursive");
    j->out = &text;
    j->scope = l->scope;
    run_loop(j, l->node, items, l->depth + 1);
    j->scope = before;
    j->out = out;
    return jin_take(j, &text);
}

/* ---- macros ---- */

static struct jval new_macro(struct jin *j, const struct jnode *n)
{
    struct jmacro *m = jin_alloc(j, sizeof *m);

    if (!m)
        return jv_none();
    for (struct jscope *s = j->scope; s && !s->kept; s = s->parent)
        s->kept = true;
    *m = (struct jmacro){ n, j->scope };
    return (struct jval){ .kind = J_MACRO, .macro = m };
}

static const struct jval *find_kw(struct jin *j, const struct jargs *args, struct jval name,
                                  bool *used)
{
    for (size_t i = 0; i < args->n_kw; i++)
        if (jv_equal(j, args->kw[i].key, name)) {
            used[i] = true;
            return &args->kw[i].value;
        }
    return NULL;
}

/* Parameters in the scope of the call; *n: how many of the arguments without names they took. */
static void bind_params(struct jin *j, const struct jnode *macro, const struct jargs *args,
                        bool *used, size_t *n)
{
    size_t i = 0;

    for (const struct jnode *p = macro->b; p && jin_ok(j); p = p->next, i++) {
        const struct jval *kw = find_kw(j, args, p->value, used);
        struct jval v;
        if (i < args->n && kw)
            jin_fail(j, "an argument of a macro is given twice");
        if (i < args->n)
            v = args->v[i];
        else if (kw)
            v = *kw;
        else
            v = p->a ? jin_eval(j, p->a) : jv_undefined(j, NULL, p->value);
        scope_set(j, p->value, v);
    }
    *n = MIN(i, args->n);
}

/* What no parameter took: for varargs and kwargs, if the macro speaks of them. */
static void bind_rest(struct jin *j, const struct jnode *macro, const struct jargs *args,
                      const bool *used, size_t n)
{
    struct jval rest = jv_list(j, J_TUPLE, 0), names = jv_dict(j, J_DICT);

    for (size_t i = n; i < args->n && jin_ok(j); i++)
        jv_push(j, rest, args->v[i]);
    for (size_t i = 0; i < args->n_kw && jin_ok(j); i++)
        if (!used[i])
            jd_set(j, names.d, args->kw[i].key, args->kw[i].value);
    if (!jin_ok(j))
        return;
    if (rest.l->n && !(macro->uses & USES_VARARGS))
        jin_fail(j, "the macro takes not more than %zu arguments", n);
    if (names.d->n && !(macro->uses & USES_KWARGS))
        jin_fail(j, "the macro takes no argument of such a name");
    if (args->caller.kind != J_MISSING && !(macro->uses & USES_CALLER))
        jin_fail(j, "the macro does not use its caller");
    if (macro->uses & USES_VARARGS)
        scope_set(j, jv_text(j, "varargs"), rest);
    if (macro->uses & USES_KWARGS)
        scope_set(j, jv_text(j, "kwargs"), names);
    if (macro->uses & USES_CALLER)
        scope_set(j, jv_text(j, "caller"),
                  args->caller.kind == J_MISSING ? jv_undefined(j, NULL, jv_text(j, "caller"))
                                                 : args->caller);
}

struct jval jin_call_macro(struct jin *j, const struct jmacro *m, const struct jargs *args)
{
    bool *used = jin_alloc(j, args->n_kw + 1);
    struct jval text = jv_none();
    struct jscope *before;
    size_t n = 0;

    if (!used || !jin_enter(j))
        return jv_none();
    if (scope_enter(j, m->scope, &before)) {
        bind_params(j, m->node, args, used, &n);
        bind_rest(j, m->node, args, used, n);
        if (jin_ok(j))
            text = capture(j, m->node->body, j->scope);
        scope_leave(j, before);
    }
    jin_leave(j);
    return text;
}

static void exec_call(struct jin *j, const struct jnode *n)
{
    struct jval callee = jin_eval(j, n->a->a);
    struct jargs args;

    if (!jin_ok(j))
        return;
    jin_eval_args(j, &args, n->a->b);
    args.caller = new_macro(j, n);
    j->line = n->line;
    if (jin_ok(j))
        write_value(j, jin_call(j, callee, &args));
}

/* ---- statements ---- */

static void exec_if(struct jin *j, const struct jnode *n)
{
    for (n = n->a; n && jin_ok(j); n = n->next) {
        struct jval test = n->a ? jin_eval(j, n->a) : jv_bool(true);
        if (jin_ok(j) && jv_true(j, test)) {
            jin_exec(j, n->body);
            return;
        }
    }
}

static void exec_set_block(struct jin *j, const struct jnode *n)
{
    struct jval text = capture(j, n->body, j->scope);

    if (jin_ok(j))
        text = jin_eval_filters(j, n->b, text);
    if (jin_ok(j))
        assign(j, n->a, text);
}

static void exec_filter(struct jin *j, const struct jnode *n)
{
    struct jval text = capture(j, n->body, j->scope);

    if (jin_ok(j))
        write_value(j, jin_eval_filters(j, n->b, text));
}

static void exec_set(struct jin *j, const struct jnode *n)
{
    struct jval v = jin_eval(j, n->b);

    j->line = n->line;
    if (jin_ok(j))
        assign(j, n->a, v);
}

/* The values see what is outside, not each other. */
static void exec_with(struct jin *j, const struct jnode *n)
{
    struct jval values = jv_list(j, J_LIST, 0);
    struct jscope *before;
    size_t i = 0;

    for (const struct jnode *set = n->a; set && jin_ok(j); set = set->next) {
        struct jval v = jin_eval(j, set->b);
        if (jin_ok(j))
            jv_push(j, values, v);
    }
    if (!jin_ok(j) || !scope_enter(j, j->scope, &before))
        return;
    for (const struct jnode *set = n->a; set && jin_ok(j); set = set->next)
        assign(j, set->a, values.l->v[i++]);
    jin_exec(j, n->body);
    scope_leave(j, before);
}

/* long: table */
static void exec(struct jin *j, const struct jnode *n)
{
    switch (n->kind) {
    case S_TEXT:
        jin_put(j, j->out, n->value.s->v, n->value.s->n);
        break;
    case S_PRINT:
        write_value(j, jin_eval(j, n->a));
        break;
    case S_IF:
        exec_if(j, n);
        break;
    case S_FOR:
        exec_for(j, n);
        break;
    case S_SET:
        exec_set(j, n);
        break;
    case S_SET_BLOCK:
        exec_set_block(j, n);
        break;
    case S_MACRO:
        scope_set(j, n->value, new_macro(j, n));
        break;
    case S_CALL:
        exec_call(j, n);
        break;
    case S_FILTER:
        exec_filter(j, n);
        break;
    case S_WITH:
        exec_with(j, n);
        break;
    case S_SCOPE:
        write_value(j, capture(j, n->body, j->scope));
        break;
    case S_BREAK:
        j->flow = FLOW_BREAK;
        break;
    default:
        j->flow = FLOW_CONTINUE;
    }
}

void jin_exec(struct jin *j, const struct jnode *n)
{
    if (!jin_enter(j))
        return;
    for (; n && jin_ok(j) && j->flow == FLOW_ON; n = n->next) {
        if (!jin_tick(j, 1))
            break;
        j->line = n->line;
        exec(j, n);
    }
    jin_leave(j);
}
