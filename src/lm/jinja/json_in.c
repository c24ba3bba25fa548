/* Values from JSON, as Python's json reads it: 1 is an integer and 1.0 a float. */
#include <math.h>

#include "lm/jinja/value.h"

struct reader {
    struct jin *j;
    const char *s, *start, *end;
};

static struct jval fail(struct reader *r, const char *what)
{
    r->j->line = 0;
    return jin_fail_with(r->j, err_set(ERR_ARG, "[chat] the variables of a template, byte %zu: %s",
                                       (size_t)(r->s - r->start), what));
}

static char at(const struct reader *r)
{
    return r->s < r->end ? *r->s : 0;
}

static void skip_space(struct reader *r)
{
    while (r->s < r->end && (*r->s == ' ' || *r->s == '\t' || *r->s == '\n' || *r->s == '\r'))
        r->s++;
}

static bool skip(struct reader *r, char c)
{
    skip_space(r);
    if (at(r) != c)
        return false;
    r->s++;
    return true;
}

static bool take_hex(struct reader *r, uint32_t *out)
{
    *out = 0;
    if (r->end - r->s < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *r->s++, low = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            *out = *out * 16 + (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            *out = *out * 16 + (uint32_t)(low - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* Behind \u. */
static void take_unicode(struct reader *r, struct str *t)
{
    uint32_t cp, low;

    if (!take_hex(r, &cp)) {
        fail(r, "\\u needs four hexadecimal digits");
        return;
    }
    if (cp >= 0xd800 && cp < 0xdc00 && r->end - r->s >= 2 && r->s[0] == '\\' && r->s[1] == 'u') {
        r->s += 2;
        if (!take_hex(r, &low) || low < 0xdc00 || low > 0xdfff) {
            fail(r, "half of a surrogate pair");
            return;
        }
        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
    }
    if (cp >= 0xd800 && cp <= 0xdfff)
        fail(r, "half of a surrogate pair");
    else
        jin_putc(r->j, t, cp);
}

static void take_escape(struct reader *r, struct str *t)
{
    static const char pairs[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    char c = at(r);

    r->s += r->s < r->end;
    if (c == 'u') {
        take_unicode(r, t);
        return;
    }
    for (size_t i = 0; i + 1 < sizeof pairs; i += 2)
        if (c == pairs[i]) {
            jin_put(r->j, t, &pairs[i + 1], 1);
            return;
        }
    fail(r, "unknown escape");
}

/* Behind the quote. */
static struct jval take_string(struct reader *r)
{
    struct str t = { 0 };

    while (jin_ok(r->j) && r->s < r->end && *r->s != '"') {
        const char *from = r->s;
        while (r->s < r->end && *r->s != '"' && *r->s != '\\' && (unsigned char)*r->s >= 0x20)
            r->s++;
        jin_put(r->j, &t, from, (size_t)(r->s - from));
        if (r->s < r->end && *r->s == '\\') {
            r->s++;
            take_escape(r, &t);
        } else if (r->s < r->end && *r->s != '"') {
            fail(r, "control character in a string");
        }
    }
    if (r->s == r->end)
        fail(r, "a string has no end");
    r->s += r->s < r->end;
    if (jin_ok(r->j) && t.n && !u8_valid(t.v, t.n))
        fail(r, "a string is not UTF-8");
    return jin_take(r->j, &t);
}

static size_t span_digits(const char *s, const char *end)
{
    const char *from = s;

    while (s < end && *s >= '0' && *s <= '9')
        s++;
    return (size_t)(s - from);
}

/* Of an integer that is written between s and end; false where it does not fit. */
static bool read_int(int64_t *out, const char *s, const char *end)
{
    bool negative = *s == '-';

    *out = 0;
    for (s += negative; s < end; s++)
        if (MUL_OVERFLOWS(*out, 10, out) ||
            ADD_OVERFLOWS(*out, negative ? '0' - *s : *s - '0', out))
            return false;
    return true;
}

static struct jval take_number(struct reader *r)
{
    const char *from = r->s, *s = r->s;
    bool is_float = false;
    char copy[400];
    size_t n;
    int64_t i;

    s += s < r->end && *s == '-';
    n = s < r->end && *s == '0' ? 1 : span_digits(s, r->end);
    if (!n)
        return fail(r, "unexpected character");
    s += n;
    if (s < r->end && *s == '.' && (n = span_digits(s + 1, r->end)))
        s += 1 + n, is_float = true;
    if (s < r->end && (*s == 'e' || *s == 'E')) {
        size_t sign = s + 1 < r->end && (s[1] == '+' || s[1] == '-');
        if ((n = span_digits(s + 1 + sign, r->end)))
            s += 1 + sign + n, is_float = true;
    }
    r->s = s;
    if (!is_float)
        return read_int(&i, from, s) ? jv_int(i)
                                     : fail(r, "integers beyond 64 bits are not supported");
    if ((size_t)(s - from) >= sizeof copy)
        return fail(r, "a number has too many digits");
    memcpy(copy, from, (size_t)(s - from));
    copy[s - from] = 0;
    return jv_float(strtod(copy, NULL));
}

static struct jval take_word(struct reader *r)
{
    const struct {
        const char *word;
        struct jval v;
    } words[] = {
        { "true", jv_bool(true) },
        { "false", jv_bool(false) },
        { "null", jv_none() },
        { "NaN", jv_float(NAN) },
        { "Infinity", jv_float(INFINITY) },
        { "-Infinity", jv_float(-INFINITY) },
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(r->end - r->s) >= n && memcmp(r->s, words[i].word, n) == 0) {
            r->s += n;
            return words[i].v;
        }
    }
    return take_number(r);
}

static struct jval take_value(struct reader *r);

/* Behind the bracket. */
static struct jval take_array(struct reader *r)
{
    struct jval list = jv_list(r->j, J_LIST, 0);
    bool first = true;

    while (jin_ok(r->j) && !skip(r, ']')) {
        if (!first && !skip(r, ','))
            return fail(r, "expected ',' or ']'");
        struct jval v = take_value(r);
        if (jin_ok(r->j))
            jv_push(r->j, list, v);
        first = false;
    }
    return list;
}

static struct jval take_object(struct reader *r)
{
    struct jval dict = jv_dict(r->j, J_DICT);
    bool first = true;

    while (jin_ok(r->j) && !skip(r, '}')) {
        if (!first && !skip(r, ','))
            return fail(r, "expected ',' or '}'");
        if (!skip(r, '"'))
            return fail(r, "expected the name of a member");
        struct jval key = take_string(r);
        if (!skip(r, ':'))
            return fail(r, "expected ':'");
        struct jval v = take_value(r);
        if (jin_ok(r->j))
            jd_set(r->j, dict.d, key, v);
        first = false;
    }
    return dict;
}

static struct jval take_value(struct reader *r)
{
    struct jval v;

    if (!jin_enter(r->j))
        return jv_none();
    skip_space(r);
    if (skip(r, '"'))
        v = take_string(r);
    else if (skip(r, '['))
        v = take_array(r);
    else if (skip(r, '{'))
        v = take_object(r);
    else
        v = take_word(r);
    jin_leave(r->j);
    return v;
}

struct jval jin_from_json(struct jin *j, const char *text, size_t n)
{
    struct reader r = { j, text, text, text + n };
    struct jval v = take_value(&r);

    skip_space(&r);
    return jin_ok(j) && r.s < r.end ? fail(&r, "text behind the end") : v;
}
