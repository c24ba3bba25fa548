/* From Oniguruma's syntax to PCRE2's. */
#include "base/mem.h"
#include "lm/tokenizer/regex.h"

/* Members of Oniguruma's \w within a class; alone it has a few fractions and superscripts more. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define WORD_ALONE WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define HEX "0-9a-fA-F"

struct syntax {
    const char *p, *end;
    struct str out;
    VEC(size_t) groups; /* where the open groups begin in out */
    size_t atom;        /* where the atom begins that a quantifier would repeat */
};

static enum err put(struct syntax *x, const char *s)
{
    return str_add_text(&x->out, s);
}

static enum err copy(struct syntax *x, size_t n)
{
    n = MIN(n, (size_t)(x->end - x->p));
    x->p += n;
    return str_add(&x->out, x->p - n, n);
}

static bool next_is(const struct syntax *x, size_t at, char c)
{
    return (size_t)(x->end - x->p) > at && x->p[at] == c;
}

static const struct escape {
    char letter;
    const char *alone, *in_class; /* NULL: cannot be said */
} escapes[] = {
    { 's', "\\p{White_Space}", "\\p{White_Space}" },
    { 'S', "\\P{White_Space}", "\\P{White_Space}" },
    { 'w', "[" WORD_ALONE "]", WORD },
    { 'W', "[^" WORD_ALONE "]", NULL },
    { 'h', "[" HEX "]", HEX },
    { 'H', "[^" HEX "]", NULL },
    { 'b', "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))", "\\b" },
    { 'B', "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))", NULL },
};

/* Long names of properties that PCRE2 has under short ones only. */
static const struct {
    const char *name, *pcre;
} properties[] = {
    { "Alpha", "Alphabetic" }, { "Digit", "Nd" },
    { "Letter", "L" },         { "Mark", "M" },
    { "Number", "N" },         { "Other", "C" },
    { "Punct", "P" },          { "Punctuation", "P" },
    { "Separator", "Z" },      { "Space", "White_Space" },
    { "Symbol", "S" },
};

/* \p{Name}, \p{^Name}, \P{Name} */
static enum err put_property(struct syntax *x)
{
    const char *name = x->p + 3;
    bool negated = x->p[1] == 'P';
    enum err err;

    if (name < x->end && *name == '^') {
        negated = !negated;
        name++;
    }
    const char *close = memchr(name, '}', (size_t)(x->end - name));
    if (!close)
        return err_set(ERR_ARG, "property without end");
    size_t n = (size_t)(close - name);
    const char *pcre = NULL;
    for (size_t i = 0; i < ARRAY_LEN(properties); i++)
        if (strlen(properties[i].name) == n && memcmp(properties[i].name, name, n) == 0)
            pcre = properties[i].pcre;

    TRY(put(x, negated ? "\\P{" : "\\p{"));
    TRY(pcre ? put(x, pcre) : str_add(&x->out, name, n));
    TRY(put(x, "}"));
    x->p = close + 1;
out:
    return err;
}

static enum err put_escape(struct syntax *x, bool in_class)
{
    enum err err;

    if (x->end - x->p < 2)
        return err_set(ERR_ARG, "ends with a backslash");
    if ((x->p[1] == 'p' || x->p[1] == 'P') && next_is(x, 2, '{'))
        return put_property(x);
    if (x->p[1] == 'G')
        return err_set(ERR_UNSUPPORTED, "\\G is not supported");
    if (x->p[1] == 'u' && x->end - x->p >= 6) { /* four digits, no braces */
        TRY(put(x, "\\x{"));
        x->p += 2;
        TRY(copy(x, 4));
        return put(x, "}");
    }
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
        const struct escape *e = &escapes[i];
        if (e->letter != x->p[1])
            continue;
        if (in_class && !e->in_class)
            return err_set(ERR_UNSUPPORTED, "\\%c in a class is not supported", e->letter);
        x->p += 2;
        return put(x, in_class ? e->in_class : e->alone);
    }
    TRY(copy(x, 1 + u8_length(x->p[1])));
out:
    return err;
}

/* One member of a class; *depth counts the classes that are open. */
static enum err put_member(struct syntax *x, int *depth)
{
    enum err err;

    if (*x->p == '\\')
        return put_escape(x, true);
    if (*x->p == '&' && next_is(x, 1, '&'))
        return err_set(ERR_UNSUPPORTED, "intersections of classes are not supported");
    if (*x->p == '[' && next_is(x, 1, ':')) {
        TRY(copy(x, 2));
        while (x->p < x->end && *x->p != ']')
            TRY(copy(x, 1));
        return copy(x, 1);
    }
    if (*x->p == '[') { /* a union: the members of both */
        if (next_is(x, 1, '^'))
            return err_set(ERR_UNSUPPORTED, "a negated class in a class is not supported");
        x->p++;
        ++*depth;
        return ERR_OK;
    }
    if (*x->p == ']' && --*depth > 0) {
        x->p++;
        return ERR_OK;
    }
    TRY(copy(x, u8_length(*x->p)));
out:
    return err;
}

static enum err put_class(struct syntax *x)
{
    int depth = 1;
    enum err err;

    TRY(copy(x, next_is(x, 1, '^') ? 2 : 1));
    if (next_is(x, 0, ']')) /* first, it is a member */
        TRY(copy(x, 1));
    while (depth > 0 && x->p < x->end)
        TRY(put_member(x, &depth));
    if (depth > 0)
        return err_set(ERR_ARG, "class without end");
out:
    return err;
}

/* "(?m:" lets "." match a line feed, which others call s. */
static enum err put_group(struct syntax *x)
{
    enum err err;

    if (next_is(x, 1, '*'))
        return err_set(ERR_UNSUPPORTED, "(* is not supported");
    TRY(VEC_PUSH(&x->groups, x->out.n));
    TRY(copy(x, next_is(x, 1, '?') ? 2 : 1));
    if (x->p[-1] != '?')
        return ERR_OK;
    while (x->p < x->end && strchr("imx-", *x->p)) {
        char option = *x->p++ == 'm' ? 's' : x->p[-1];
        TRY(str_add(&x->out, &option, 1));
    }
out:
    return err;
}

/* Length of {n}, {n,}, {,m} or {n,m} at p, 0 if it is none. */
static size_t interval_length(const struct syntax *x)
{
    size_t digits = 0, commas = 0, at = 1;

    for (; x->p + at < x->end && x->p[at] != '}'; at++) {
        bool digit = x->p[at] >= '0' && x->p[at] <= '9';
        if (!digit && (x->p[at] != ',' || commas++))
            return 0;
        digits += digit;
    }
    return x->p + at < x->end && digits ? at + 1 : 0;
}

static enum err put_interval(struct syntax *x, size_t n)
{
    struct str rest = { 0 };
    enum err err;

    if (x->p[1] == ',') { /* from none on */
        TRY(put(x, "{0"));
        x->p++;
        n--;
    }
    TRY(copy(x, n));
    if (!next_is(x, 0, '+'))
        return ERR_OK;
    /* Here the plus repeats the repetition; PCRE2 would read it as "possessive". */
    TRY(str_add(&rest, x->out.v + x->atom, x->out.n - x->atom));
    x->out.n = x->atom;
    TRY(put(x, "(?:"));
    TRY(str_add(&x->out, rest.v, rest.n));
    TRY(put(x, ")"));
out:
    VEC_FINI(&rest);
    return err;
}

static enum err put_one(struct syntax *x)
{
    size_t interval = *x->p == '{' ? interval_length(x) : 0;

    if (interval)
        return put_interval(x, interval);
    if (*x->p == ')') {
        x->atom = x->groups.n ? x->groups.v[--x->groups.n] : 0;
        return copy(x, 1);
    }
    if (strchr("*+?|", *x->p))
        return copy(x, 1);
    x->atom = x->out.n;
    if (*x->p == '\\')
        return put_escape(x, false);
    if (*x->p == '[')
        return put_class(x);
    if (*x->p == '(')
        return put_group(x);
    return copy(x, u8_length(*x->p));
}

enum err rx_translate(struct str *out, const char *pattern, size_t n)
{
    struct syntax x = { .p = pattern, .end = pattern + n };
    enum err err = ERR_OK;

    while (x.p < x.end)
        TRY(put_one(&x));
    *out = x.out;
    x.out = (struct str){ 0 };
out:
    VEC_FINI(&x.out);
    VEC_FINI(&x.groups);
    return err;
}
