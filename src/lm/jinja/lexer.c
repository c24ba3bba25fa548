#include "lm/jinja/lexer.h"

#include <errno.h>
#include <math.h>

struct lexer {
    struct jin *j;
    struct jtoks *out;
    const char *s; /* all of the text */
    size_t n, at;
    int line;
    bool line_starts; /* what was read last ended a line */
};

void jin_normalise(struct jin *j, struct str *out, const char *text, size_t n)
{
    struct str utf8 = { 0 };

    jin_fail_with(j, str_add_lossy(&utf8, text, n));
    for (size_t i = 0; jin_ok(j) && i < utf8.n; i++)
        if (utf8.v[i] != '\r')
            jin_fail_with(j, str_add(out, utf8.v + i, 1));
        else if (i + 1 == utf8.n || utf8.v[i + 1] != '\n')
            jin_fail_with(j, str_add(out, "\n", 1));
    if (out->n && out->v[out->n - 1] == '\n')
        out->n--;
    VEC_FINI(&utf8);
}

static bool begins(const struct lexer *l, size_t at, const char *with)
{
    size_t n = strlen(with);

    return l->n - at >= n && memcmp(l->s + at, with, n) == 0;
}

/* Length of the white space at a place, and of that before it. */
static size_t space_at(const struct lexer *l, size_t at)
{
    size_t from = at;

    while (at < l->n) {
        struct u8_step c = u8_step(l->s + at, l->n - at);
        if (!is_py_space(c.cp))
            break;
        at += c.len;
    }
    return at - from;
}

static size_t rstripped(const char *s, size_t n)
{
    while (n) {
        size_t last = u8_last(s, n);
        if (!is_py_space(u8_step(s + last, n - last).cp))
            break;
        n = last;
    }
    return n;
}

/* Goes on, and counts the lines. */
static void advance(struct lexer *l, size_t to)
{
    for (; l->at < to; l->at++)
        l->line += l->s[l->at] == '\n';
}

static void push(struct lexer *l, enum jtok_kind kind, size_t n, struct jval value)
{
    struct jtok t = { kind, l->line, l->s + l->at, n, value };

    if (jin_tick(l->j, 1))
        jin_fail_with(l->j, VEC_PUSH(l->out, t));
    advance(l, l->at + n);
}

static void fail(struct lexer *l, const char *what)
{
    l->j->line = l->line;
    jin_fail(l->j, "%s", what);
}

/* ---- text between tags ---- */

/* The text up to `to`, where a tag of this kind with this sign begins, without what the tag takes
 * away before itself. */
static void push_data(struct lexer *l, size_t to, char tag, char sign)
{
    const char *s = l->s + l->at;
    size_t n = to - l->at;
    int line = l->line;

    if (sign == '-') {
        n = rstripped(s, n);
    } else if (tag && tag != '{' && sign != '+') {
        size_t start = n; /* of the line */
        while (start && s[start - 1] != '\n')
            start--;
        if ((start || l->line_starts) && rstripped(s + start, n - start) == 0)
            n = start;
    }
    if (n) {
        struct jval v = jv_str(l->j, s, n);
        struct jtok t = { T_DATA, line, s, n, v };
        jin_fail_with(l->j, VEC_PUSH(l->out, t));
    }
    advance(l, to);
}

static char sign_at(const struct lexer *l, size_t at)
{
    return at < l->n && (l->s[at] == '-' || l->s[at] == '+') ? l->s[at] : 0;
}

/* Length of a tag's end at a place, with the white space that it takes away; 0: it is none. */
static size_t tag_end(const struct lexer *l, size_t at, char close)
{
    char end[3] = { close, '}', 0 };
    char sign = sign_at(l, at);

    if (sign && !(close == '}' && sign == '+') && begins(l, at + 1, end))
        return 3 + (sign == '-' ? space_at(l, at + 3) : 0);
    if (!begins(l, at, end))
        return 0;
    return 2 + (close != '}' && at + 2 < l->n && l->s[at + 2] == '\n');
}

/* {% word %}, where `at` is behind the opening: length of it with its end, or 0. */
static size_t word_tag(const struct lexer *l, size_t at, const char *word, bool trims)
{
    size_t from = at;

    at += sign_at(l, at) != 0;
    at += space_at(l, at);
    if (!begins(l, at, word))
        return 0;
    at += strlen(word);
    at += space_at(l, at);
    size_t end = tag_end(l, at, '%');
    if (!end || (!trims && l->s[at] == '+'))
        return 0;
    if (!trims && l->s[at] == '%')
        end = 2;
    return at + end - from;
}

static void take_raw(struct lexer *l)
{
    for (size_t at = l->at; at + 1 < l->n; at++) {
        size_t n = begins(l, at, "{%") ? word_tag(l, at + 2, "endraw", true) : 0;
        if (!n)
            continue;
        push_data(l, at, '%', sign_at(l, at + 2));
        advance(l, at + 2 + n);
        return;
    }
    fail(l, "a raw block has no end");
}

static void take_comment(struct lexer *l)
{
    for (size_t at = l->at; at < l->n; at++) {
        size_t n = tag_end(l, at, '#');
        if (n) {
            advance(l, at + n);
            return;
        }
    }
    fail(l, "a comment has no end");
}

/* ---- inside of tags ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_byte(char c)
{
    return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

static int digit_of(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Digits with single underscores between them: how many bytes; `first_under`: one may stand first.
 */
static size_t digits(const struct lexer *l, size_t at, int base, bool first_under)
{
    size_t from = at;

    if (!first_under && (at >= l->n || digit_of(l->s[at]) >= base))
        return 0;
    while (at < l->n) {
        size_t under = l->s[at] == '_';
        if (at + under >= l->n || digit_of(l->s[at + under]) >= base)
            break;
        at += under + 1;
    }
    return at - from;
}

static void push_int(struct lexer *l, size_t n, size_t skip, int base)
{
    int64_t v = 0;

    for (size_t i = skip; i < n; i++)
        if (l->s[l->at + i] != '_' &&
            (MUL_OVERFLOWS(v, base, &v) || ADD_OVERFLOWS(v, digit_of(l->s[l->at + i]), &v))) {
            fail(l, "integers beyond 64 bits are not supported");
            return;
        }
    push(l, T_CONST, n, jv_int(v));
}

/* Length of a float at the place; 0: it is none. */
static size_t float_length(const struct lexer *l)
{
    size_t at = l->at, n = digits(l, at, 10, false), more;
    bool is_float = false;

    if (!n || (at && l->s[at - 1] == '.'))
        return 0;
    at += n;
    if (at < l->n && l->s[at] == '.' && (more = digits(l, at + 1, 10, false)))
        at += 1 + more, is_float = true;
    if (at < l->n && (l->s[at] | 0x20) == 'e') {
        size_t sign = sign_at(l, at + 1) != 0;
        if ((more = digits(l, at + 1 + sign, 10, false)))
            at += 1 + sign + more, is_float = true;
    }
    return is_float ? at - l->at : 0;
}

static void take_number(struct lexer *l)
{
    static const struct {
        char letter;
        int base;
    } bases[] = { { 'b', 2 }, { 'o', 8 }, { 'x', 16 } };
    size_t n = float_length(l);
    char copy[64];

    if (n) {
        size_t used = 0;
        for (size_t i = 0; i < n && used + 1 < sizeof copy; i++)
            if (l->s[l->at + i] != '_')
                copy[used++] = l->s[l->at + i];
        copy[used] = 0;
        push(l, T_CONST, n, jv_float(strtod(copy, NULL)));
        return;
    }
    for (size_t i = 0; l->s[l->at] == '0' && i < ARRAY_LEN(bases); i++)
        if (l->at + 1 < l->n && (l->s[l->at + 1] | 0x20) == bases[i].letter &&
            (n = digits(l, l->at + 2, bases[i].base, true))) {
            push_int(l, n + 2, 2, bases[i].base);
            return;
        }
    push_int(l, digits(l, l->at, l->s[l->at] == '0' ? 1 : 10, false), 0, 10);
}

/* An escape of a string literal: how many bytes; s is at the backslash, n > 1. */
static size_t take_escape(struct lexer *l, struct str *out, const char *s, size_t n)
{
    static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    static const struct {
        char letter;
        size_t digits;
    } hex[] = { { 'x', 2 }, { 'u', 4 }, { 'U', 8 } };
    uint32_t cp = 0;
    size_t len = 1;

    if (s[1] == '\n')
        return 2;
    for (size_t i = 0; i + 1 < sizeof plain; i += 2)
        if (s[1] == plain[i]) {
            jin_put(l->j, out, &plain[i + 1], 1);
            return 2;
        }
    for (size_t i = 0; i < ARRAY_LEN(hex); i++) {
        if (s[1] != hex[i].letter)
            continue;
        for (len = 2; len < n && len < hex[i].digits + 2 && digit_of(s[len]) < 16; len++)
            cp = cp * 16 + (uint32_t)digit_of(s[len]);
        if (len < hex[i].digits + 2 || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
            fail(l, "an escape in a string names no character");
        jin_putc(l->j, out, jin_ok(l->j) ? cp : 0);
        return len;
    }
    for (; len < n && len < 4 && s[len] >= '0' && s[len] <= '7'; len++)
        cp = cp * 8 + (uint32_t)digit_of(s[len]);
    if (len > 1)
        jin_putc(l->j, out, cp);
    else if (s[1] == 'N')
        fail(l, "\\N in strings is not supported");
    else
        jin_put(l->j, out, s, len); /* a backslash that is none */
    return len;
}

static void take_string(struct lexer *l)
{
    struct str text = { 0 };
    char quote = l->s[l->at];
    size_t at = l->at + 1;

    while (at < l->n && l->s[at] != quote && jin_ok(l->j)) {
        size_t n = 1;
        if (l->s[at] == '\\' && at + 1 < l->n)
            n = take_escape(l, &text, l->s + at, l->n - at);
        else
            jin_put(l->j, &text, l->s + at, 1);
        at += n;
    }
    struct jval v = jin_take(l->j, &text);
    if (at >= l->n)
        fail(l, "a string has no end");
    else
        push(l, T_CONST, at + 1 - l->at, v);
}

static size_t operator_length(const struct lexer *l)
{
    static const char *const two[] = { "//", "**", "==", "!=", ">=", "<=" };

    for (size_t i = 0; i < ARRAY_LEN(two); i++)
        if (begins(l, l->at, two[i]))
            return 2;
    return strchr("+-/*%~[](){}><=.:|,;", l->s[l->at]) && l->s[l->at] ? 1 : 0;
}

/* How deep braces are; a tag's end inside of them is none. */
static void take_operator(struct lexer *l, struct str *open)
{
    static const char pairs[] = "()[]{}";
    size_t n = operator_length(l);
    char c = l->s[l->at];
    const char *pair = n == 1 ? strchr(pairs, c) : NULL;

    if (!n) {
        fail(l, "unexpected character");
        return;
    }
    if (pair && (pair - pairs) % 2 == 0)
        jin_fail_with(l->j, str_add(open, pair + 1, 1));
    else if (pair && (!open->n || open->v[--open->n] != c))
        fail(l, "a closing bracket that nothing opened");
    push(l, T_OP, n, jv_none());
}

static void take_inner(struct lexer *l, struct str *open)
{
    char c = l->s[l->at];
    size_t n = 0;

    if (c == '\'' || c == '"') {
        take_string(l);
    } else if (is_digit(c)) {
        take_number(l);
    } else if (is_name_byte(c)) {
        while (l->at + n < l->n && is_name_byte(l->s[l->at + n]))
            n++;
        push(l, T_NAME, n, jv_none());
    } else {
        take_operator(l, open);
    }
}

static void take_tag(struct lexer *l, char kind)
{
    char close = (char)(kind == '{' ? '}' : '%');
    struct str open = { 0 };
    size_t n = 0, space;

    while (jin_ok(l->j) && l->at < l->n) {
        if (!open.n && (n = tag_end(l, l->at, close))) {
            push(l, kind == '{' ? T_VAR_END : T_BLOCK_END, n, jv_none());
            break;
        }
        if ((space = space_at(l, l->at)))
            advance(l, l->at + space);
        else
            take_inner(l, &open);
    }
    if (jin_ok(l->j) && !n)
        fail(l, "a tag has no end");
    VEC_FINI(&open);
}

/* ---- all of it ---- */

static size_t find_tag(const struct lexer *l)
{
    size_t at = l->at;

    for (; at + 1 < l->n; at++)
        if (l->s[at] == '{' && (l->s[at + 1] == '{' || l->s[at + 1] == '%' || l->s[at + 1] == '#'))
            return at;
    return l->n;
}

void jin_lex(struct jin *j, struct jtoks *toks, const char *text, size_t n)
{
    struct lexer l = { .j = j, .out = toks, .s = text, .n = n, .line = 1, .line_starts = true };
    size_t tag;

    while (jin_ok(j) && (tag = find_tag(&l)) < n) {
        char kind = text[tag + 1], sign = sign_at(&l, tag + 2);
        size_t raw = kind == '%' ? word_tag(&l, tag + 2, "raw", false) : 0;
        push_data(&l, tag, kind, sign);
        if (raw || kind == '#') {
            advance(&l, tag + 2 + (raw ? raw : sign != 0));
            l.line_starts = text[l.at - 1] == '\n';
            raw ? take_raw(&l) : take_comment(&l);
        } else {
            push(&l, kind == '{' ? T_VAR_BEGIN : T_BLOCK_BEGIN, 2 + (sign != 0), jv_none());
            take_tag(&l, kind);
        }
        l.line_starts = l.at && text[l.at - 1] == '\n';
    }
    if (jin_ok(j))
        push_data(&l, n, 0, 0);
    push(&l, T_END, 0, jv_none());
}
