/* Statements. */
#include "lm/jinja/parser.h"

#include <stdio.h>

/* ---- tokens ---- */

struct jnode *parse_new(struct parser *p, enum jnode_kind kind)
{
    struct jnode *n = jin_alloc(p->j, sizeof *n);

    if (n) {
        n->kind = kind;
        n->line = p->t->line;
    }
    return n;
}

void parse_add(struct jnodes *list, struct jnode *n)
{
    if (!n)
        return;
    if (list->last)
        list->last->next = n;
    else
        list->first = n;
    list->last = n;
}

void parse_fail(struct parser *p, const char *wanted)
{
    const struct jtok *t = p->t;

    p->j->line = t->line;
    if (t->kind == T_END)
        jin_fail(p->j, "expected %s, found the end", wanted);
    else
        jin_fail(p->j, "expected %s, found '%.*s'", wanted, (int)MIN(t->n, (size_t)40), t->s);
}

static bool at(const struct parser *p, enum jtok_kind kind, const char *text)
{
    return p->t->kind == kind && p->t->n == strlen(text) && memcmp(p->t->s, text, p->t->n) == 0;
}

bool at_op(const struct parser *p, const char *op)
{
    return at(p, T_OP, op);
}

bool at_name(const struct parser *p, const char *name)
{
    return at(p, T_NAME, name);
}

bool skip_op(struct parser *p, const char *op)
{
    bool is = at_op(p, op) && jin_ok(p->j);

    p->t += is;
    return is;
}

bool skip_name(struct parser *p, const char *name)
{
    bool is = at_name(p, name) && jin_ok(p->j);

    p->t += is;
    return is;
}

void want_op(struct parser *p, const char *op)
{
    char wanted[8];

    if (skip_op(p, op))
        return;
    snprintf(wanted, sizeof wanted, "'%s'", op);
    parse_fail(p, wanted);
}

struct jval want_any_name(struct parser *p)
{
    struct jval name;

    if (p->t->kind != T_NAME) {
        parse_fail(p, "a name");
        return jv_none();
    }
    name = jv_str(p->j, p->t->s, p->t->n);
    p->t++;
    return name;
}

static void want_block_end(struct parser *p)
{
    if (p->t->kind == T_BLOCK_END)
        p->t++;
    else
        parse_fail(p, "the end of the tag");
}

/* ---- bodies ---- */

static struct jnode *parse_until(struct parser *p, const char *const *ends);

static bool is_any(const struct parser *p, const char *const *names)
{
    for (; *names; names++)
        if (at_name(p, *names))
            return true;
    return false;
}

/* From behind a tag's last word to one of the words that end the body, which is at hand then. */
static struct jnode *parse_body(struct parser *p, const char *const *ends)
{
    skip_op(p, ":");
    want_block_end(p);
    return parse_until(p, ends);
}

static struct jnode *parse_body_to(struct parser *p, const char *end)
{
    struct jnode *body = parse_body(p, (const char *const[]){ end, NULL });

    skip_name(p, end);
    return body;
}

/* What can be assigned to: names, attributes of namespaces, and tuples of them. */
static struct jnode *parse_targets(struct parser *p, bool with_attrs);

static struct jnode *parse_target(struct parser *p, bool with_attrs)
{
    struct jnode *n;

    if (skip_op(p, "(")) {
        if (!jin_enter(p->j))
            return NULL;
        n = parse_targets(p, with_attrs);
        jin_leave(p->j);
        want_op(p, ")");
        return n;
    }
    n = parse_primary(p);
    if (n && n->kind != E_NAME)
        parse_fail(p, "a name to assign to");
    if (!n || !with_attrs || !skip_op(p, "."))
        return n;
    struct jnode *attr = parse_new(p, E_ATTR);
    struct jval name = want_any_name(p);
    if (attr) {
        attr->a = n;
        attr->value = name;
    }
    return attr;
}

static struct jnode *parse_targets(struct parser *p, bool with_attrs)
{
    struct jnodes list = { 0 };
    struct jnode *n = parse_new(p, E_TUPLE);
    bool is_tuple = false;

    while (jin_ok(p->j)) {
        parse_add(&list, parse_target(p, with_attrs));
        if (!skip_op(p, ","))
            break;
        is_tuple = true;
        if (at_name(p, "in") || at_op(p, "=") || at_op(p, ")") || p->t->kind == T_BLOCK_END)
            break;
    }
    if (!is_tuple)
        return list.first;
    if (n)
        n->a = list.first;
    return n;
}

/* ---- statements; the word that begins each is behind ---- */

typedef struct jnode *parse_fn(struct parser *p, struct jnode *n);

static struct jnode *parse_if(struct parser *p, struct jnode *n)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    struct jnodes branches = { 0 };
    bool is_else = false;

    n->kind = S_IF;
    while (jin_ok(p->j)) {
        struct jnode *branch = parse_new(p, S_BRANCH);
        if (!branch)
            break;
        if (!is_else)
            branch->a = parse_tuple(p, TUPLE_NO_COND);
        branch->body = parse_body(p, is_else ? ends + 2 : ends);
        parse_add(&branches, branch);
        if (skip_name(p, "endif"))
            break;
        is_else = skip_name(p, "else");
        if (!is_else)
            skip_name(p, "elif");
    }
    n->a = branches.first;
    return n;
}

static struct jnode *parse_for(struct parser *p, struct jnode *n)
{
    static const char *const ends[] = { "endfor", "else", NULL };

    n->kind = S_FOR;
    n->a = parse_targets(p, false);
    if (!skip_name(p, "in"))
        parse_fail(p, "'in'");
    n->b = parse_tuple(p, TUPLE_NO_COND);
    if (skip_name(p, "if"))
        n->c = parse_expression(p);
    n->recursive = skip_name(p, "recursive");
    p->loops++;
    n->body = parse_body(p, ends);
    p->loops--;
    if (!skip_name(p, "endfor") && skip_name(p, "else"))
        n->other = parse_body_to(p, "endfor");
    return n;
}

static struct jnode *parse_set(struct parser *p, struct jnode *n)
{
    n->kind = S_SET;
    n->a = parse_targets(p, true);
    if (skip_op(p, "=")) {
        n->b = parse_tuple(p, 0);
        return n;
    }
    n->kind = S_SET_BLOCK;
    if (skip_op(p, "|"))
        n->b = parse_filters(p, NULL);
    n->body = parse_body_to(p, "endset");
    return n;
}

/* In parentheses. */
static struct jnode *parse_params(struct parser *p)
{
    struct jnodes list = { 0 };
    bool has_default = false;

    want_op(p, "(");
    while (jin_ok(p->j) && !at_op(p, ")")) {
        struct jnode *n;
        if (list.first)
            want_op(p, ",");
        if (!(n = parse_new(p, S_PARAM)))
            break;
        n->value = want_any_name(p);
        if (skip_op(p, "=")) {
            n->a = parse_expression(p);
            has_default = true;
        } else if (has_default) {
            parse_fail(p, "a default, as the parameter before has one");
        }
        parse_add(&list, n);
    }
    want_op(p, ")");
    return list.first;
}

/* The body of a macro or call block: a function of its own. */
static void parse_function(struct parser *p, struct jnode *n, const char *end)
{
    int uses = p->uses, loops = p->loops;

    p->uses = p->loops = 0;
    n->body = parse_body_to(p, end);
    n->uses = p->uses;
    p->uses |= uses;
    p->loops = loops;
}

static struct jnode *parse_macro(struct parser *p, struct jnode *n)
{
    n->kind = S_MACRO;
    n->value = want_any_name(p);
    n->b = parse_params(p);
    parse_function(p, n, "endmacro");
    return n;
}

static struct jnode *parse_call_block(struct parser *p, struct jnode *n)
{
    n->kind = S_CALL;
    if (at_op(p, "("))
        n->b = parse_params(p);
    n->a = parse_expression(p);
    if (n->a && n->a->kind != E_CALL)
        parse_fail(p, "a call");
    parse_function(p, n, "endcall");
    return n;
}

static struct jnode *parse_filter_block(struct parser *p, struct jnode *n)
{
    n->kind = S_FILTER;
    n->b = parse_filters(p, NULL);
    n->body = parse_body_to(p, "endfilter");
    return n;
}

static struct jnode *parse_with(struct parser *p, struct jnode *n)
{
    struct jnodes list = { 0 };

    n->kind = S_WITH;
    while (jin_ok(p->j) && p->t->kind != T_BLOCK_END) {
        struct jnode *set = parse_new(p, S_SET);
        if (list.first)
            want_op(p, ",");
        if (!set)
            break;
        set->a = parse_target(p, false);
        want_op(p, "=");
        set->b = parse_expression(p);
        parse_add(&list, set);
    }
    n->a = list.first;
    n->body = parse_body_to(p, "endwith");
    return n;
}

static struct jnode *parse_generation(struct parser *p, struct jnode *n)
{
    n->kind = S_SCOPE;
    parse_function(p, n, "endgeneration");
    return n;
}

static struct jnode *parse_print(struct parser *p, struct jnode *n)
{
    n->kind = S_PRINT;
    n->a = parse_tuple(p, 0);
    return n;
}

static struct jnode *parse_break(struct parser *p, struct jnode *n)
{
    n->kind = S_BREAK;
    if (!p->loops)
        parse_fail(p, "a loop around 'break'");
    return n;
}

static struct jnode *parse_continue(struct parser *p, struct jnode *n)
{
    n->kind = S_CONTINUE;
    if (!p->loops)
        parse_fail(p, "a loop around 'continue'");
    return n;
}

static const struct {
    const char *word;
    parse_fn *parse;
} statements[] = {
    { "if", parse_if },
    { "for", parse_for },
    { "set", parse_set },
    { "macro", parse_macro },
    { "call", parse_call_block },
    { "filter", parse_filter_block },
    { "with", parse_with },
    { "generation", parse_generation },
    { "print", parse_print },
    { "break", parse_break },
    { "continue", parse_continue },
};

static struct jnode *parse_statement(struct parser *p)
{
    struct jnode *n = parse_new(p, S_SCOPE);

    for (size_t i = 0; n && i < ARRAY_LEN(statements); i++) {
        if (!at_name(p, statements[i].word))
            continue;
        if (!jin_enter(p->j))
            return NULL;
        p->t++;
        n = statements[i].parse(p, n);
        jin_leave(p->j);
        return n;
    }
    parse_fail(p, "a statement");
    return NULL;
}

/* To a tag that begins with one of the words, or to the end. */
static struct jnode *parse_until(struct parser *p, const char *const *ends)
{
    struct jnodes list = { 0 };
    struct jnode *n;

    while (jin_ok(p->j) && p->t->kind != T_END) {
        if (p->t->kind == T_DATA) {
            if ((n = parse_new(p, S_TEXT)))
                n->value = p->t->value;
            p->t++;
        } else if (p->t->kind == T_VAR_BEGIN) {
            p->t++;
            if ((n = parse_new(p, S_PRINT)))
                n->a = parse_tuple(p, 0);
            if (p->t->kind == T_VAR_END)
                p->t++;
            else
                parse_fail(p, "the end of the tag");
        } else {
            p->t++;
            if (is_any(p, ends))
                return list.first;
            n = parse_statement(p);
            want_block_end(p);
        }
        parse_add(&list, n);
    }
    if (*ends)
        parse_fail(p, *ends);
    return list.first;
}

struct jnode *jin_parse(struct jin *j, const struct jtoks *toks)
{
    static const char *const none[] = { NULL };
    struct parser p = { .j = j, .t = toks->v };

    return jin_ok(j) ? parse_until(&p, none) : NULL;
}
