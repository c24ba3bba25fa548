/* Expressions. */
#include "lm/jinja/builtin.h"
#include "lm/jinja/parser.h"

static struct jnode *parse_cond(struct parser *p);

static struct jnode *unary(struct parser *p, enum jnode_kind kind, struct jnode *a)
{
    struct jnode *n = parse_new(p, kind);

    if (n) {
        n->a = a;
        n->line = a ? a->line : n->line;
    }
    return n;
}

static struct jnode *binary(struct parser *p, enum jnode_kind kind, struct jnode *a,
                            struct jnode *b)
{
    struct jnode *n = unary(p, kind, a);

    if (n)
        n->b = b;
    return n;
}

/* ---- literals ---- */

static struct jnode *constant(struct parser *p, struct jval v)
{
    struct jnode *n = parse_new(p, E_CONST);

    if (n)
        n->value = v;
    p->t++;
    return n;
}

static struct jnode *parse_constant(struct parser *p)
{
    struct jnode *n = constant(p, p->t->value);

    /* Strings that stand side by side are one. */
    while (n && is_str(n->value) && p->t->kind == T_CONST && is_str(p->t->value) && jin_ok(p->j))
        n->value = jv_concat(p->j, n->value, p->t++->value);
    if (n && is_str(n->value))
        n->value.s->buf = NULL; /* several threads may render the template */
    return n;
}

static struct jnode *parse_name(struct parser *p)
{
    static const struct {
        const char *name;
        struct jval value;
    } constants[] = {
        { "true", { .kind = J_BOOL, .b = true } },
        { "True", { .kind = J_BOOL, .b = true } },
        { "false", { .kind = J_BOOL } },
        { "False", { .kind = J_BOOL } },
        { "none", { .kind = J_NONE } },
        { "None", { .kind = J_NONE } },
    };
    static const struct {
        const char *name;
        int use;
    } special[] = { { "caller", USES_CALLER },
                    { "kwargs", USES_KWARGS },
                    { "varargs", USES_VARARGS } };

    for (size_t i = 0; i < ARRAY_LEN(constants); i++)
        if (at_name(p, constants[i].name))
            return constant(p, constants[i].value);
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (at_name(p, special[i].name))
            p->uses |= special[i].use;
    struct jnode *n = parse_new(p, E_NAME);
    struct jval name = want_any_name(p);
    if (n)
        n->value = name;
    return n;
}

/* Behind the opening bracket. */
static struct jnode *parse_list(struct parser *p)
{
    struct jnode *n = parse_new(p, E_LIST);
    struct jnodes list = { 0 };

    while (jin_ok(p->j) && !at_op(p, "]")) {
        if (list.first)
            want_op(p, ",");
        if (!at_op(p, "]"))
            parse_add(&list, parse_expression(p));
    }
    want_op(p, "]");
    if (n)
        n->a = list.first;
    return n;
}

static struct jnode *parse_dict(struct parser *p)
{
    struct jnode *n = parse_new(p, E_DICT);
    struct jnodes list = { 0 };

    while (jin_ok(p->j) && !at_op(p, "}")) {
        if (list.first)
            want_op(p, ",");
        if (at_op(p, "}"))
            break;
        struct jnode *key = parse_expression(p);
        want_op(p, ":");
        parse_add(&list, binary(p, E_PAIR, key, parse_expression(p)));
    }
    want_op(p, "}");
    if (n)
        n->a = list.first;
    return n;
}

struct jnode *parse_primary(struct parser *p)
{
    if (p->t->kind == T_NAME)
        return parse_name(p);
    if (p->t->kind == T_CONST)
        return parse_constant(p);
    if (skip_op(p, "(")) {
        struct jnode *n = parse_tuple(p, TUPLE_PARENS);
        want_op(p, ")");
        return n;
    }
    if (skip_op(p, "["))
        return parse_list(p);
    if (skip_op(p, "{"))
        return parse_dict(p);
    parse_fail(p, "an expression");
    return NULL;
}

static bool ends_tuple(const struct parser *p)
{
    return p->t->kind == T_VAR_END || p->t->kind == T_BLOCK_END || at_op(p, ")");
}

static struct jnode *parse_or(struct parser *p);

struct jnode *parse_tuple(struct parser *p, int flags)
{
    struct jnodes list = { 0 };
    struct jnode *n = parse_new(p, E_TUPLE);
    bool is_tuple = false;

    while (jin_ok(p->j) && !ends_tuple(p)) {
        parse_add(&list, flags & TUPLE_NO_COND ? parse_or(p) : parse_expression(p));
        if (!skip_op(p, ","))
            break;
        is_tuple = true;
    }
    if (!is_tuple && list.first)
        return list.first;
    if (!is_tuple && !(flags & TUPLE_PARENS))
        parse_fail(p, "an expression");
    if (n)
        n->a = list.first;
    return n;
}

/* ---- what follows a value ---- */

static struct jnode *parse_argument(struct parser *p)
{
    if (skip_op(p, "**"))
        return unary(p, E_SPREAD_MAP, parse_expression(p));
    if (skip_op(p, "*"))
        return unary(p, E_SPREAD, parse_expression(p));
    if (p->t->kind == T_NAME && p->t[1].kind == T_OP && p->t[1].n == 1 && *p->t[1].s == '=') {
        struct jval name = want_any_name(p);
        p->t++;
        struct jnode *n = unary(p, E_KEYWORD, parse_expression(p));
        if (n)
            n->value = name;
        return n;
    }
    return parse_expression(p);
}

/* Behind the opening parenthesis. */
static struct jnode *parse_arguments(struct parser *p)
{
    struct jnodes list = { 0 };
    bool has_keywords = false;

    while (jin_ok(p->j) && !at_op(p, ")")) {
        if (list.first)
            want_op(p, ",");
        if (at_op(p, ")"))
            break;
        struct jnode *n = parse_argument(p);
        bool is_keyword = n && (n->kind == E_KEYWORD || n->kind == E_SPREAD_MAP);
        if (n && has_keywords && !is_keyword && n->kind != E_SPREAD)
            parse_fail(p, "no argument without a name behind those with one");
        has_keywords |= is_keyword;
        parse_add(&list, n);
    }
    want_op(p, ")");
    return list.first;
}

static struct jnode *parse_subscribed(struct parser *p)
{
    struct jnode *n;

    if (!at_op(p, ":")) {
        n = parse_expression(p);
        if (!at_op(p, ":"))
            return n;
        n = unary(p, E_SLICE, n);
    } else {
        n = parse_new(p, E_SLICE);
    }
    if (!n)
        return NULL;
    for (int i = 0; i < 2 && skip_op(p, ":"); i++)
        if (!at_op(p, ":") && !at_op(p, "]") && !at_op(p, ","))
            *(i == 0 ? &n->b : &n->c) = parse_expression(p);
    return n;
}

/* Behind the opening bracket. */
static struct jnode *parse_item(struct parser *p, struct jnode *of)
{
    struct jnodes list = { 0 };
    struct jnode *n = binary(p, E_ITEM, of, NULL);
    size_t count = 0;

    while (jin_ok(p->j) && !at_op(p, "]")) {
        if (count++)
            want_op(p, ",");
        parse_add(&list, parse_subscribed(p));
    }
    if (jin_ok(p->j) && !count)
        parse_fail(p, "an element");
    want_op(p, "]");
    if (!n || !list.first)
        return n;
    n->b = list.first;
    if (count > 1 && (n->b = parse_new(p, E_TUPLE)))
        n->b->a = list.first;
    return n;
}

static struct jnode *parse_dot(struct parser *p, struct jnode *of)
{
    struct jnode *n;

    if (p->t->kind == T_CONST && p->t->value.kind == J_INT)
        return binary(p, E_ITEM, of, constant(p, p->t->value));
    n = unary(p, E_ATTR, of);
    struct jval name = want_any_name(p);
    if (n)
        n->value = name;
    return n;
}

static struct jnode *parse_call(struct parser *p, struct jnode *of)
{
    return binary(p, E_CALL, of, parse_arguments(p));
}

struct jnode *parse_postfix(struct parser *p, struct jnode *n)
{
    while (jin_ok(p->j)) {
        if (skip_op(p, "."))
            n = parse_dot(p, n);
        else if (skip_op(p, "["))
            n = parse_item(p, n);
        else if (skip_op(p, "("))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* A name that may have dots. */
static struct jval dotted_name(struct parser *p)
{
    struct jval name = want_any_name(p);

    while (jin_ok(p->j) && skip_op(p, ".")) {
        name = jv_concat(p->j, name, jv_text(p->j, "."));
        struct jval more = want_any_name(p);
        if (jin_ok(p->j))
            name = jv_concat(p->j, name, more);
    }
    return name;
}

static struct jnode *parse_filter(struct parser *p, struct jnode *of)
{
    struct jnode *n = unary(p, E_FILTER, of);
    struct jval name = dotted_name(p);

    if (!n || !jin_ok(p->j))
        return NULL;
    n->value = name;
    n->fn = jin_filter(name.s);
    if (skip_op(p, "("))
        n->b = parse_arguments(p);
    return n;
}

struct jnode *parse_filters(struct parser *p, struct jnode *n)
{
    if (!n)
        n = parse_filter(p, NULL);
    while (jin_ok(p->j) && skip_op(p, "|"))
        n = parse_filter(p, n);
    return n;
}

static bool begins_argument(const struct parser *p)
{
    if (p->t->kind == T_CONST || at_op(p, "(") || at_op(p, "[") || at_op(p, "{"))
        return true;
    return p->t->kind == T_NAME && !at_name(p, "else") && !at_name(p, "or") && !at_name(p, "and");
}

/* Behind `is`. */
static struct jnode *parse_test(struct parser *p, struct jnode *of)
{
    bool negated = skip_name(p, "not");
    struct jnode *n = unary(p, E_TEST, of);
    struct jval name = dotted_name(p);

    if (!n || !jin_ok(p->j))
        return NULL;
    n->value = name;
    n->fn = jin_test(name.s);
    if (skip_op(p, "(")) {
        n->b = parse_arguments(p);
    } else if (begins_argument(p)) {
        if (at_name(p, "is"))
            parse_fail(p, "no second test behind a test");
        n->b = parse_postfix(p, parse_primary(p));
    }
    return negated ? unary(p, E_NOT, n) : n;
}

static struct jnode *parse_behind(struct parser *p, struct jnode *n)
{
    while (jin_ok(p->j)) {
        if (skip_op(p, "|"))
            n = parse_filter(p, n);
        else if (skip_name(p, "is"))
            n = parse_test(p, n);
        else if (skip_op(p, "("))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* ---- operators, those that bind most first ---- */

static struct jnode *parse_unary(struct parser *p, bool with_filters)
{
    struct jnode *n = NULL;

    if (!jin_enter(p->j))
        return NULL;
    if (skip_op(p, "-"))
        n = unary(p, E_NEG, parse_unary(p, false));
    else if (skip_op(p, "+"))
        n = unary(p, E_POS, parse_unary(p, false));
    else
        n = parse_primary(p);
    n = parse_postfix(p, n);
    if (with_filters)
        n = parse_behind(p, n);
    jin_leave(p->j);
    return n;
}

static const struct level {
    struct {
        const char *text;
        enum jop op;
    } ops[4];
} levels[] = {
    { { { "+", OP_ADD }, { "-", OP_SUB } } },
    { { { "*", OP_MUL }, { "/", OP_DIV }, { "//", OP_FLOORDIV }, { "%", OP_MOD } } },
    { { { "**", OP_POW } } },
};

static bool skip_level(struct parser *p, const struct level *level, enum jop *op)
{
    for (size_t i = 0; i < ARRAY_LEN(level->ops) && level->ops[i].text; i++)
        if (skip_op(p, level->ops[i].text)) {
            *op = level->ops[i].op;
            return true;
        }
    return false;
}

static struct jnode *parse_level(struct parser *p, size_t i);

/* What ~ joins binds more than sums and less than products. */
static struct jnode *parse_concat(struct parser *p)
{
    struct jnodes list = { 0 };

    parse_add(&list, parse_level(p, 1));
    if (!at_op(p, "~"))
        return list.first;
    while (jin_ok(p->j) && skip_op(p, "~"))
        parse_add(&list, parse_level(p, 1));
    return unary(p, E_CONCAT, list.first);
}

static struct jnode *parse_level(struct parser *p, size_t i)
{
    struct jnode *n = NULL, *right;
    bool more = true;
    enum jop op = OP_ADD;

    while (more && jin_ok(p->j)) {
        right = i == 0 ? parse_concat(p) : i == 1 ? parse_level(p, 2) : parse_unary(p, true);
        if (n) {
            n = binary(p, E_BINARY, n, right);
            if (n)
                n->op = op;
        } else {
            n = right;
        }
        more = skip_level(p, &levels[i], &op);
    }
    return n;
}

static bool skip_comparison(struct parser *p, enum jop *op)
{
    static const struct {
        const char *text;
        enum jop op;
    } ops[] = { { "==", OP_EQ }, { "!=", OP_NE }, { "<", OP_LT },
                { "<=", OP_LE }, { ">", OP_GT },  { ">=", OP_GE } };

    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (skip_op(p, ops[i].text)) {
            *op = ops[i].op;
            return true;
        }
    *op = OP_IN;
    if (skip_name(p, "in"))
        return true;
    if (!at_name(p, "not") || p->t[1].kind != T_NAME || p->t[1].n != 2 ||
        memcmp(p->t[1].s, "in", 2) != 0)
        return false;
    *op = OP_NOT_IN;
    p->t += 2;
    return true;
}

static struct jnode *parse_comparison(struct parser *p)
{
    struct jnode *n = parse_level(p, 0), *operand;
    struct jnodes list = { 0 };
    enum jop op;

    while (jin_ok(p->j) && skip_comparison(p, &op)) {
        operand = unary(p, E_OPERAND, parse_level(p, 0));
        if (operand)
            operand->op = op;
        parse_add(&list, operand);
    }
    return list.first ? binary(p, E_COMPARE, n, list.first) : n;
}

static struct jnode *parse_not(struct parser *p)
{
    struct jnode *n;

    if (!skip_name(p, "not"))
        return parse_comparison(p);
    if (!jin_enter(p->j))
        return NULL;
    n = unary(p, E_NOT, parse_not(p));
    jin_leave(p->j);
    return n;
}

static struct jnode *parse_and(struct parser *p)
{
    struct jnode *n = parse_not(p);

    while (jin_ok(p->j) && skip_name(p, "and"))
        n = binary(p, E_AND, n, parse_not(p));
    return n;
}

static struct jnode *parse_or(struct parser *p)
{
    struct jnode *n = parse_and(p);

    while (jin_ok(p->j) && skip_name(p, "or"))
        n = binary(p, E_OR, n, parse_and(p));
    return n;
}

static struct jnode *parse_cond(struct parser *p)
{
    struct jnode *n = parse_or(p);

    while (jin_ok(p->j) && skip_name(p, "if")) {
        n = binary(p, E_COND, n, parse_or(p));
        if (n && skip_name(p, "else"))
            n->c = parse_cond(p);
    }
    return n;
}

struct jnode *parse_expression(struct parser *p)
{
    struct jnode *n;

    if (!jin_enter(p->j))
        return NULL;
    n = parse_cond(p);
    jin_leave(p->j);
    return n;
}
