/* From tokens to a tree. Nodes live in the arena of the template. */
#pragma once

#include "lm/jinja/lexer.h"

enum jnode_kind {
    /* expressions */
    E_CONST, /* value */
    E_NAME,  /* value: the name */
    E_LIST,  /* a: elements */
    E_TUPLE,
    E_DICT,       /* a: E_PAIR */
    E_PAIR,       /* a: b */
    E_ATTR,       /* a.value */
    E_ITEM,       /* a[b] */
    E_SLICE,      /* inside of E_ITEM: a:b:c, each of them or NULL */
    E_CALL,       /* a(b) */
    E_KEYWORD,    /* an argument value=a */
    E_SPREAD,     /* *a */
    E_SPREAD_MAP, /* **a */
    E_FILTER,     /* a|value(b); a is NULL for the text of a block */
    E_TEST,       /* a is value(b) */
    E_NOT,
    E_NEG,
    E_POS,
    E_AND,
    E_OR,
    E_COND,    /* a if b else c; c may be NULL */
    E_BINARY,  /* a op b */
    E_CONCAT,  /* a: what ~ is between */
    E_COMPARE, /* a, and b: E_OPERAND */
    E_OPERAND, /* op a */
    /* statements */
    S_TEXT,      /* value */
    S_PRINT,     /* a */
    S_IF,        /* a: S_BRANCH */
    S_BRANCH,    /* a (NULL: else), body */
    S_FOR,       /* a: target, b: iterable, c: test or NULL, body, other */
    S_SET,       /* a: target, b: value */
    S_SET_BLOCK, /* a: target, b: filters or NULL, body */
    S_MACRO,     /* value: name, b: parameters, body */
    S_CALL,      /* a: E_CALL, b: parameters, body */
    S_PARAM,     /* value: name, a: default or NULL */
    S_FILTER,    /* b: filters, body */
    S_WITH,      /* a: S_SET, body */
    S_SCOPE,     /* body: of generation blocks */
    S_BREAK,
    S_CONTINUE,
};

enum jop {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
};

/* What the body of a macro speaks of. */
enum { USES_CALLER = 1, USES_KWARGS = 2, USES_VARARGS = 4 };

struct jnode {
    enum jnode_kind kind;
    enum jop op;
    int line;
    int uses;       /* of macros */
    bool recursive; /* of loops */
    struct jval value;
    const struct jfn *fn; /* of filters and tests; NULL: there is none of that name */
    struct jnode *a, *b, *c, *body, *other;
    struct jnode *next; /* in a list */
};

struct parser {
    struct jin *j;
    const struct jtok *t; /* the one at hand */
    int uses;
    int loops; /* around the statement, inside of the same function */
};

/* A list while it grows. */
struct jnodes {
    struct jnode *first, *last;
};

/* The statements of a template; NULL where it is empty or fails. */
struct jnode *jin_parse(struct jin *j, const struct jtoks *toks);

/* ---- between parser.c and parse_expr.c ---- */

struct jnode *parse_new(struct parser *p, enum jnode_kind kind);
void parse_add(struct jnodes *list, struct jnode *n);
void parse_fail(struct parser *p, const char *wanted);
bool at_op(const struct parser *p, const char *op);
bool at_name(const struct parser *p, const char *name);
/* Goes on if that is at hand. */
bool skip_op(struct parser *p, const char *op);
bool skip_name(struct parser *p, const char *name);
void want_op(struct parser *p, const char *op);
struct jval want_any_name(struct parser *p);

enum {
    TUPLE_NO_COND = 1, /* elements have no if at the end */
    TUPLE_PARENS = 2,  /* it may be empty */
};
struct jnode *parse_tuple(struct parser *p, int flags);
struct jnode *parse_expression(struct parser *p);
struct jnode *parse_primary(struct parser *p);
struct jnode *parse_postfix(struct parser *p, struct jnode *n);
/* A chain of filters behind n; at its first name, where a pipe is not needed, if n is NULL. */
struct jnode *parse_filters(struct parser *p, struct jnode *n);
