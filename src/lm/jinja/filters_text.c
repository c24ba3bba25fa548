/* Filters that make text and numbers. */
#include <math.h>
#include <stdio.h>

#include "lm/jinja/filters.h"

/* What a filter of text is applied to: a string, or whatever becomes one. */
static struct jval soft(struct jin *j, struct jval v)
{
    struct jval s = jin_ok(j) ? jv_to_str(j, v) : v;

    return jin_ok(j) ? s : jv_none();
}

#define CASES(name, to)                                                                            \
    struct jval filter_##name(struct jin *j, struct jval v, const struct jargs *a)                 \
    {                                                                                              \
        (void)a;                                                                                   \
        v = soft(j, v);                                                                            \
        return jin_ok(j) ? jin_case(j, v, to) : v;                                                 \
    }

CASES(upper, CASE_UPPER)
CASES(lower, CASE_LOWER)
CASES(capitalize, CASE_CAPITAL)

/* Where what separates words (or does not) ends. */
static size_t span_word(const struct jstr *s, size_t at, bool separates)
{
    while (at < s->n) {
        struct u8_step c = u8_step(s->v + at, s->n - at);
        if ((is_py_space(c.cp) || (c.cp && c.cp < 0x80 && strchr("-({[<", (int)c.cp))) != separates)
            break;
        at += c.len;
    }
    return at;
}

/* The first character of what spaces, dashes and brackets separate. */
struct jval filter_title(struct jin *j, struct jval v, const struct jargs *a)
{
    struct jval out = jv_str(j, "", 0), part;

    (void)a;
    v = soft(j, v);
    for (size_t at = 0; jin_ok(j) && at < v.s->n;) {
        size_t end = span_word(v.s, at, true);
        end = end > at ? end : span_word(v.s, at, false);
        size_t first = u8_length(v.s->v[at]);
        part = jin_case(j, jv_part(j, v, at, first), CASE_UPPER);
        if (jin_ok(j))
            out = jv_concat(j, out, part);
        part = jin_ok(j) ? jv_part(j, v, at + first, end - at - first) : part;
        if (jin_ok(j))
            part = jin_case(j, part, CASE_LOWER);
        if (jin_ok(j))
            out = jv_concat(j, out, part);
        at = end;
    }
    out.safe = false;
    return out;
}

struct jval filter_trim(struct jin *j, struct jval v, const struct jargs *a)
{
    v = soft(j, v);
    return jin_ok(j) ? jin_strip(j, v, a->v[0], true, true) : v;
}

struct jval filter_string(struct jin *j, struct jval v, const struct jargs *a)
{
    (void)a;
    return soft(j, v);
}

struct jval filter_safe(struct jin *j, struct jval v, const struct jargs *a)
{
    (void)a;
    v = soft(j, v);
    v.safe = is_str(v);
    return v;
}

struct jval filter_escape(struct jin *j, struct jval v, const struct jargs *a)
{
    (void)a;
    return jin_escape(j, v);
}

struct jval filter_forceescape(struct jin *j, struct jval v, const struct jargs *a)
{
    (void)a;
    v.safe = false;
    return jin_escape(j, v);
}

struct jval filter_replace(struct jin *j, struct jval v, const struct jargs *a)
{
    struct jval old = soft(j, a->v[0]), new = soft(j, a->v[1]), most = arg_or(a, 2, jv_none());
    int64_t n = most.kind == J_NONE ? -1 : jin_want_int(j, most);

    v = soft(j, v);
    v.safe = false;
    return jin_ok(j) ? jin_replace(j, v, old.s, new.s, n) : v;
}

struct jval filter_center(struct jin *j, struct jval v, const struct jargs *a)
{
    v = soft(j, v);
    return jin_ok(j)
               ? jin_pad(j, v, jin_want_int(j, arg_or(a, 0, jv_int(80))), (struct jval){ 0 }, '^')
               : v;
}

struct jval filter_format(struct jin *j, struct jval v, const struct jargs *a)
{
    struct jval args = jv_list(j, J_TUPLE, 0), names = jv_dict(j, J_DICT);

    for (size_t i = 0; i < a->n && jin_ok(j); i++)
        jv_push(j, args, a->v[i]);
    for (size_t i = 0; i < a->n_kw && jin_ok(j); i++)
        jd_set(j, names.d, a->kw[i].key, a->kw[i].value);
    if (jin_ok(j) && a->n && a->n_kw)
        jin_fail(j, "can't handle positional and keyword arguments at the same time");
    v = soft(j, v);
    return jin_ok(j) ? jin_percent(j, v, a->n_kw ? names : args) : v;
}

/* ---- lines and words ---- */

static struct jval lines_of(struct jin *j, struct jval text, struct jval newline)
{
    static const struct jstr name = { .v = "splitlines", .n = 10 };
    struct jval line = jin_add(j, text, newline);

    return jin_ok(j) ? jin_call_fn(j, jin_method(line, &name), line, &(struct jargs){ 0 }) : line;
}

struct jval filter_indent(struct jin *j, struct jval v, const struct jargs *a)
{
    struct jval width = arg_or(a, 0, jv_int(4)), newline = jv_text(j, "\n"), lines;
    bool first = jv_true(j, arg_or(a, 1, jv_bool(false)));
    bool blank = jv_true(j, arg_or(a, 2, jv_bool(false)));
    struct str t = { 0 };

    if (!is_str(v))
        return jin_defined(j, v) ? jin_fail(j, "indent needs a string, not %s", jv_type(v)) : v;
    if (!is_str(width))
        width = jin_pad(j, jv_str(j, "", 0), jin_want_int(j, width), (struct jval){ 0 }, '<');
    newline.safe = v.safe;
    lines = jin_ok(j) ? lines_of(j, v, newline) : jv_none();
    for (size_t i = 0; jin_ok(j) && i < lines.l->n; i++) {
        const struct jstr *line = lines.l->v[i].s;
        if (i)
            jin_puts(j, &t, "\n");
        if (i ? blank || line->n : first)
            jin_put(j, &t, width.s->v, width.s->n);
        jin_put(j, &t, line->v, line->n);
    }
    struct jval out = jin_take(j, &t);
    out.safe = v.safe && is_str(out);
    return out;
}

struct jval filter_truncate(struct jin *j, struct jval v, const struct jargs *a)
{
    int64_t length = jin_want_int(j, arg_or(a, 0, jv_int(255)));
    bool kills = jv_true(j, arg_or(a, 1, jv_bool(false)));
    struct jval end = arg_or(a, 2, jv_text(j, "..."));
    int64_t leeway = jin_want_int(j, arg_or(a, 3, jv_int(5)));
    int64_t n = (int64_t)jv_length(j, v);
    int64_t dots = (int64_t)jstr_chars(j, jin_want_str(j, end));

    if (jin_ok(j) && (length < dots || leeway < 0))
        jin_fail(j, "truncate: the length is less than that of the end, or the leeway below 0");
    if (!jin_ok(j) || n <= length + leeway)
        return v;
    if (!is_str(v))
        return jin_fail(j, "truncate needs a string, not %s", jv_type(v));
    struct jval cut = jv_part(j, v, 0, jstr_offset(j, v.s, (size_t)(length - dots)));
    for (size_t i = jin_ok(j) && !kills ? cut.s->n : 0; i > 0; i--)
        if (cut.s->v[i - 1] == ' ') {
            cut = jv_part(j, cut, 0, i - 1);
            break;
        }
    return jin_ok(j) ? jin_add(j, cut, end) : cut;
}

struct jval filter_wordcount(struct jin *j, struct jval v, const struct jargs *a)
{
    static bool (*const is)(uint32_t) = is_py_space;
    int64_t n = 0;
    bool inside = false;

    (void)a;
    v = soft(j, v);
    for (size_t at = 0; jin_ok(j) && at < v.s->n && jin_tick(j, 1);) {
        struct u8_step c = u8_step(v.s->v + at, v.s->n - at);
        bool word = c.cp == '_' || (c.cp >= '0' && c.cp <= '9') ||
                    ((c.cp | 0x20) >= 'a' && (c.cp | 0x20) <= 'z') || (c.cp >= 0xaa && !is(c.cp));
        n += word && !inside;
        inside = word;
        at += c.len;
    }
    return jv_int(n);
}

struct jval filter_urlencode(struct jin *j, struct jval v, const struct jargs *a)
{
    static const char hex[] = "0123456789ABCDEF";
    struct str t = { 0 };

    (void)a;
    if (jv_is_iterable(v) && !is_str(v) && v.kind != J_UNDEFINED)
        return jin_fail(j, "urlencode is for strings here, not for %s", jv_type(v));
    v = soft(j, v);
    for (size_t at = 0; jin_ok(j) && at < v.s->n && jin_tick(j, 1); at++) {
        unsigned char c = (unsigned char)v.s->v[at];
        char quoted[] = { '%', hex[c >> 4], hex[c & 15] };
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     (c && strchr("_.-~/", c));
        jin_put(j, &t, plain ? (char *)&c : quoted, plain ? 1 : 3);
    }
    return jin_take(j, &t);
}

/* ---- numbers ---- */

/* The text without what may stand around and inside of a number; false where it has zeros in it. */
static bool plain_number(struct jin *j, struct jval s, char *out, size_t size)
{
    size_t n = 0;

    s = jin_strip(j, s, jv_none(), true, true);
    if (!jin_ok(j) || !s.s->n || s.s->n >= size)
        return false;
    for (size_t i = 0; i < s.s->n; i++) {
        char c = s.s->v[i];
        bool inside = i && i + 1 < s.s->n && s.s->v[i - 1] >= '0' && s.s->v[i - 1] <= '9' &&
                      s.s->v[i + 1] >= '0' && s.s->v[i + 1] <= '9';
        if (c == '_' && inside)
            continue;
        if (!c || c == '_' || c == '(' || (c | 0x20) == 'x')
            return false;
        out[n++] = c;
    }
    out[n] = 0;
    return true;
}

static bool read_float(struct jin *j, struct jval v, double *out)
{
    char text[400], *end;

    if (is_number(v)) {
        *out = number_of(v);
        return true;
    }
    if (!is_str(v) || !plain_number(j, v, text, sizeof text))
        return false;
    *out = strtod(text, &end);
    return end != text && !*end;
}

static bool read_int(struct jin *j, struct jval v, int64_t base, int64_t *out)
{
    char text[400], *end, *digits = text;
    struct jval stripped;

    if (is_int(v)) {
        *out = int_of(v);
        return true;
    }
    if (!is_str(v))
        return false;
    stripped = jin_strip(j, v, jv_none(), true, true);
    if (base == 16 && jin_ok(j) && stripped.s->n > 2 && memcmp(stripped.s->v, "0x", 2) == 0)
        v = jv_part(j, stripped, 2, stripped.s->n - 2);
    if (!jin_ok(j) || !plain_number(j, v, text, sizeof text))
        return false;
    digits += *text == '-' || *text == '+';
    if (strspn(digits, base == 10 ? "0123456789" : "0123456789abcdefABCDEF") != strlen(digits) ||
        !*digits || strlen(digits) > 18)
        return false;
    *out = strtoll(text, &end, (int)base);
    return !*end;
}

struct jval filter_int(struct jin *j, struct jval v, const struct jargs *a)
{
    int64_t base = jin_want_int(j, arg_or(a, 1, jv_int(10))), n;
    double f;

    if (jin_ok(j) && (base < 2 || base > 36))
        return jin_fail(j, "int() base must be from 2 to 36");
    if (read_int(j, v, base, &n))
        return jv_int(n);
    if (v.kind == J_UNDEFINED)
        jin_defined(j, v);
    if (!read_float(j, v, &f) || isnan(f) || isinf(f))
        return arg_or(a, 0, jv_int(0));
    if (!(fabs(f) < 0x1p63))
        return jin_fail(j, "integers beyond 64 bits are not supported");
    return jv_int((int64_t)f);
}

struct jval filter_float(struct jin *j, struct jval v, const struct jargs *a)
{
    double f;

    if (v.kind == J_UNDEFINED)
        jin_defined(j, v);
    return read_float(j, v, &f) ? jv_float(f) : arg_or(a, 0, jv_float(0));
}

struct jval filter_abs(struct jin *j, struct jval v, const struct jargs *a)
{
    (void)a;
    if (!is_number(v))
        return jin_defined(j, v) ? jin_fail(j, "bad operand type for abs(): '%s'", jv_type(v)) : v;
    return number_of(v) < 0 ? jin_negate(j, v)
           : is_int(v)      ? jv_int(int_of(v))
                            : jv_float(fabs(v.f));
}

struct jval filter_round(struct jin *j, struct jval v, const struct jargs *a)
{
    int64_t precision = jin_want_int(j, arg_or(a, 0, jv_int(0)));
    struct jval method = arg_or(a, 1, jv_text(j, "common"));
    char text[512];

    if (!is_number(v))
        return jin_defined(j, v) ? jin_fail(j, "type %s cannot be rounded", jv_type(v)) : v;
    if (!jin_ok(j) || precision < -18 || precision > 60)
        return jin_fail(j, "a precision is from -18 to 60 here");
    double f = number_of(v), scale = pow(10, (double)precision);
    if (is_str(method) && jstr_is(method.s, "ceil"))
        return jv_float(ceil(f * scale) / scale);
    if (is_str(method) && jstr_is(method.s, "floor"))
        return jv_float(floor(f * scale) / scale);
    if (!is_str(method) || !jstr_is(method.s, "common"))
        return jin_fail(j, "method must be common, ceil or floor");
    if (is_int(v) && precision >= 0)
        return jv_int(int_of(v));
    if (precision < 0) {
        f = rint(f * scale) / scale;
        return is_int(v) ? jv_int((int64_t)f) : jv_float(f);
    }
    snprintf(text, sizeof text, "%.*f", (int)precision, f); /* as it is written, ties to even */
    return jv_float(strtod(text, NULL));
}
