/* Expressions. */
#include "lm/jinja/eval.h"

static struct jval eval_list(struct jin *j, const struct jnode *n, enum jkind kind)
{
    struct jval list = jv_list(j, kind, 0);

    for (n = n->a; n && jin_ok(j); n = n->next) {
        struct jval v = jin_eval(j, n);
        if (jin_ok(j))
            jv_push(j, list, v);
    }
    return list;
}

static struct jval eval_dict(struct jin *j, const struct jnode *n)
{
    struct jval dict = jv_dict(j, J_DICT);

    for (n = n->a; n && jin_ok(j); n = n->next) {
        struct jval key = jin_eval(j, n->a), v = jin_eval(j, n->b);
        if (jin_ok(j))
            jd_set(j, dict.d, key, v);
    }
    return dict;
}

static struct jval eval_slice(struct jin *j, struct jval obj, const struct jnode *n)
{
    const struct jnode *parts[] = { n->a, n->b, n->c };
    struct jval bounds[3];

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        bounds[i] = parts[i] ? jin_eval(j, parts[i]) : jv_none();
    return jin_ok(j) ? jin_slice(j, obj, bounds) : jv_none();
}

static struct jval eval_item(struct jin *j, const struct jnode *n)
{
    struct jval obj = jin_eval(j, n->a), key;

    if (!jin_ok(j) || n->b->kind == E_SLICE)
        return jin_ok(j) ? eval_slice(j, obj, n->b) : jv_none();
    key = jin_eval(j, n->b);
    j->line = n->line;
    return jin_ok(j) ? jin_item(j, obj, key) : jv_none();
}

/* ---- calls ---- */

struct arguments {
    struct jval list;
    struct jval names; /* a dict: no name comes twice */
};

static void add_map(struct jin *j, struct arguments *a, struct jval map)
{
    if (map.kind != J_DICT) {
        jin_fail(j, "what follows ** must be a dict, not %s", jv_type(map));
        return;
    }
    for (size_t i = 0; i < map.d->n && jin_ok(j); i++)
        if (is_str(map.d->v[i].key))
            jd_set(j, a->names.d, map.d->v[i].key, map.d->v[i].value);
        else
            jin_fail(j, "names of arguments must be strings");
}

static void add_argument(struct jin *j, struct arguments *a, const struct jnode *n)
{
    bool wraps = n->kind == E_KEYWORD || n->kind == E_SPREAD || n->kind == E_SPREAD_MAP;
    struct jval v = jin_eval(j, wraps ? n->a : n);

    if (!jin_ok(j))
        return;
    if (n->kind == E_KEYWORD) {
        if (jd_find(j, a->names.d, n->value))
            jin_fail(j, "the argument %.*s comes twice", (int)MIN(n->value.s->n, (size_t)80),
                     n->value.s->v);
        jd_set(j, a->names.d, n->value, v);
    } else if (n->kind == E_SPREAD_MAP) {
        add_map(j, a, v);
    } else if (n->kind == E_SPREAD) {
        const struct jlist *l = jv_items(j, v);
        for (size_t i = 0; i < l->n && jin_ok(j); i++)
            jv_push(j, a->list, l->v[i]);
    } else {
        jv_push(j, a->list, v);
    }
}

void jin_eval_args(struct jin *j, struct jargs *out, const struct jnode *first)
{
    struct arguments a;

    *out = (struct jargs){ 0 };
    if (!first)
        return;
    a = (struct arguments){ jv_list(j, J_LIST, 0), jv_dict(j, J_DICT) };
    for (; first && jin_ok(j); first = first->next)
        add_argument(j, &a, first);
    if (jin_ok(j))
        *out = (struct jargs){ a.list.l->v, a.list.l->n, a.names.d->v, a.names.d->n, { 0 } };
}

static struct jval eval_call(struct jin *j, const struct jnode *n)
{
    struct jval callee = jin_eval(j, n->a);
    struct jargs args;

    if (!jin_ok(j))
        return jv_none();
    jin_eval_args(j, &args, n->b);
    j->line = n->line;
    return jin_ok(j) ? jin_call(j, callee, &args) : jv_none();
}

/* A filter or test, applied to a value. */
static struct jval apply(struct jin *j, const struct jnode *n, struct jval to)
{
    struct jargs args;

    jin_eval_args(j, &args, n->b);
    j->line = n->line;
    if (!jin_ok(j))
        return jv_none();
    if (!n->fn)
        return jin_fail(j, "no %s named '%.*s'", n->kind == E_TEST ? "test" : "filter",
                        (int)MIN(n->value.s->n, (size_t)80), n->value.s->v);
    return jin_call_fn(j, n->fn, to, &args);
}

static struct jval eval_applied(struct jin *j, const struct jnode *n)
{
    struct jval to = jin_eval(j, n->a);

    return jin_ok(j) ? apply(j, n, to) : jv_none();
}

struct jval jin_eval_filters(struct jin *j, const struct jnode *n, struct jval text)
{
    struct jval v = text;

    if (!n || !jin_enter(j))
        return text;
    v = jin_eval_filters(j, n->a, text);
    if (jin_ok(j))
        v = apply(j, n, v);
    jin_leave(j);
    return v;
}

/* ---- operators ---- */

static bool compare(struct jin *j, enum jop op, struct jval a, struct jval b)
{
    static const char *const names[] = {
        [OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">="
    };
    int order;

    switch (op) {
    case OP_EQ:
        return jv_equal(j, a, b);
    case OP_NE:
        return !jv_equal(j, a, b);
    case OP_IN:
        return jv_contains(j, b, a);
    case OP_NOT_IN:
        return !jv_contains(j, b, a);
    default:
        order = jv_compare(j, a, b, names[op]);
    }
    if (order == 2)
        return false;
    return op == OP_LT   ? order < 0
           : op == OP_LE ? order <= 0
           : op == OP_GT ? order > 0
                         : order >= 0;
}

static struct jval eval_compare(struct jin *j, const struct jnode *n)
{
    struct jval left = jin_eval(j, n->a), right;
    bool holds = true;

    for (const struct jnode *o = n->b; o && holds && jin_ok(j); o = o->next) {
        right = jin_eval(j, o->a);
        if (!jin_ok(j))
            break;
        j->line = n->line;
        holds = compare(j, o->op, left, right);
        left = right;
    }
    return jv_bool(holds);
}

static struct jval eval_concat(struct jin *j, const struct jnode *n)
{
    struct jval all = jv_str(j, "", 0);

    for (n = n->a; n && jin_ok(j); n = n->next) {
        struct jval v = jin_eval(j, n);
        if (jin_ok(j))
            v = jv_to_str(j, v);
        if (jin_ok(j))
            all = jv_concat(j, all, v);
    }
    all.safe = false;
    return all;
}

static struct jval eval_logic(struct jin *j, const struct jnode *n)
{
    struct jval left = jin_eval(j, n->a);

    if (!jin_ok(j) || jv_true(j, left) == (n->kind == E_OR))
        return left;
    return jin_eval(j, n->b);
}

static struct jval eval_cond(struct jin *j, const struct jnode *n)
{
    struct jval test = jin_eval(j, n->b);

    if (!jin_ok(j))
        return jv_none();
    if (jv_true(j, test))
        return jin_eval(j, n->a);
    return n->c ? jin_eval(j, n->c)
                : jv_undefined(j, NULL, jv_text(j, "an inline if without else"));
}

static struct jval eval_operation(struct jin *j, const struct jnode *n)
{
    struct jval a = jin_eval(j, n->a), b = n->b ? jin_eval(j, n->b) : jv_none();

    j->line = n->line;
    if (!jin_ok(j))
        return jv_none();
    switch (n->kind) {
    case E_NOT:
        return jv_bool(!jv_true(j, a));
    case E_NEG:
        return jin_negate(j, a);
    case E_POS:
        if (jin_defined(j, a) && !is_number(a))
            return jin_fail(j, "bad operand type for unary +: '%s'", jv_type(a));
        return is_int(a) ? jv_int(int_of(a)) : a;
    default:
        return n->op == OP_ADD ? jin_add(j, a, b) : jin_arithmetic(j, n->op, a, b);
    }
}

static struct jval eval_attr(struct jin *j, const struct jnode *n)
{
    struct jval obj = jin_eval(j, n->a);

    j->line = n->line;
    return jin_ok(j) ? jin_attr(j, obj, n->value) : jv_none();
}

/* long: table */
static struct jval eval(struct jin *j, const struct jnode *n)
{
    switch (n->kind) {
    case E_CONST:
        return n->value;
    case E_NAME:
        return scope_get(j, n->value);
    case E_LIST:
        return eval_list(j, n, J_LIST);
    case E_TUPLE:
        return eval_list(j, n, J_TUPLE);
    case E_DICT:
        return eval_dict(j, n);
    case E_ATTR:
        return eval_attr(j, n);
    case E_ITEM:
        return eval_item(j, n);
    case E_CALL:
        return eval_call(j, n);
    case E_FILTER:
    case E_TEST:
        return eval_applied(j, n);
    case E_AND:
    case E_OR:
        return eval_logic(j, n);
    case E_COND:
        return eval_cond(j, n);
    case E_CONCAT:
        return eval_concat(j, n);
    case E_COMPARE:
        return eval_compare(j, n);
    default:
        return eval_operation(j, n);
    }
}

struct jval jin_eval(struct jin *j, const struct jnode *n)
{
    struct jval v;

    if (!jin_enter(j))
        return jv_none();
    j->line = n->line;
    v = eval(j, n);
    jin_leave(j);
    return jin_ok(j) ? v : jv_none();
}
