/* From a template's text to tokens: text between tags, with white space taken away as the tags say,
 * and what is inside of tags. */
#pragma once

#include "lm/jinja/value.h"

enum jtok_kind {
    T_END,
    T_DATA,      /* value: text that is written as it is */
    T_VAR_BEGIN, /* {{ */
    T_VAR_END,
    T_BLOCK_BEGIN, /* {% */
    T_BLOCK_END,
    T_NAME,
    T_CONST, /* value: a string or number */
    T_OP,
};

struct jtok {
    enum jtok_kind kind;
    int line;
    const char *s; /* of names and operators: the bytes in the template */
    size_t n;
    struct jval value;
};

struct jtoks {
    struct jtok *v;
    size_t n, cap;
};

/* Appends all tokens, T_END as the last one; *toks is to be freed in any case. The text has to live
 * as long as the tokens. */
void jin_lex(struct jin *j, struct jtoks *toks, const char *text, size_t n);

/* The text as Jinja reads it: line ends are line feeds, and one at the end does not count. */
void jin_normalise(struct jin *j, struct str *out, const char *text, size_t n);
