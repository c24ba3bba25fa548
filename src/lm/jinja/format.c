/* '{}'.format(...) and '%s' % ... */
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "lm/jinja/builtin.h"

#define WIDTH_MAX 100000

struct spec {
    struct jval fill; /* one character, or J_MISSING */
    char align;       /* 0: as the type has it */
    char sign;
    bool alternative, zero, comma;
    int64_t width, precision; /* -1: none */
    char type;
};

struct cursor {
    const char *s, *end;
};

static char at(const struct cursor *c)
{
    return c->s < c->end ? *c->s : 0;
}

static bool skip(struct cursor *c, char what)
{
    bool is = c->s < c->end && *c->s == what;

    c->s += is;
    return is;
}

/* -1 where there are no digits. */
static int64_t take_number(struct jin *j, struct cursor *c)
{
    int64_t n = -1;

    while (isdigit((unsigned char)at(c))) {
        n = MAX(n, 0) * 10 + (*c->s++ - '0');
        if (n > WIDTH_MAX) {
            jin_fail(j, "a width or precision is more than %d", WIDTH_MAX);
            return -1;
        }
    }
    return n;
}

/* ---- numbers ---- */

/* Digits with commas between the thousands of what stands before a point or exponent. */
static void put_grouped(struct jin *j, struct str *t, const char *digits, size_t n)
{
    size_t whole = 0;

    while (whole < n && isdigit((unsigned char)digits[whole]))
        whole++;
    for (size_t i = 0; i < whole; i++) {
        if (i && (whole - i) % 3 == 0)
            jin_puts(j, t, ",");
        jin_put(j, t, digits + i, 1);
    }
    jin_put(j, t, digits + whole, n - whole);
}

static void put_based(struct jin *j, struct str *t, uint64_t n, const struct spec *f)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    unsigned base = f->type == 'b' ? 2 : f->type == 'o' ? 8 : f->type == 'd' ? 10 : 16;
    char text[72];
    size_t from = sizeof text;

    do {
        text[--from] = (f->type == 'X' ? upper : lower)[n % base];
        n /= base;
    } while (n);
    if (f->alternative && base != 10) {
        char prefix[] = { '0', f->type, 0 };
        jin_puts(j, t, prefix);
    }
    if (f->comma)
        put_grouped(j, t, text + from, sizeof text - from);
    else
        jin_put(j, t, text + from, sizeof text - from);
}

/* Without the sign. */
static void put_float(struct jin *j, struct str *t, double v, const struct spec *f)
{
    char pattern[8] = "%.*f", *text;
    int precision = f->precision < 0 ? 6 : (int)MIN(f->precision, 400), n;
    struct str plain = { 0 };

    if (!f->type && f->precision < 0) {
        jin_float(j, &plain, v);
        f->comma ? put_grouped(j, t, plain.v, plain.n) : jin_put(j, t, plain.v, plain.n);
        VEC_FINI(&plain);
        return;
    }
    pattern[3] = f->type == '%' ? 'f' : f->type ? f->type : 'g';
    v = f->type == '%' ? v * 100 : v;
    text = jin_alloc(j, 1024);
    if (!text)
        return;
    n = f->alternative      ? snprintf(text, 1024, "%#.*g", precision, v)
        : pattern[3] == 'e' ? snprintf(text, 1024, "%.*e", precision, v)
        : pattern[3] == 'E' ? snprintf(text, 1024, "%.*E", precision, v)
        : pattern[3] == 'g' ? snprintf(text, 1024, "%.*g", precision, v)
        : pattern[3] == 'G' ? snprintf(text, 1024, "%.*G", precision, v)
                            : snprintf(text, 1024, "%.*f", precision, v);
    if (f->comma)
        put_grouped(j, t, text, (size_t)n);
    else
        jin_put(j, t, text, (size_t)n);
    if (f->type == '%')
        jin_puts(j, t, "%");
}

static void put_number(struct jin *j, struct str *t, struct jval v, struct spec f)
{
    bool whole = is_int(v) && (!f.type || strchr("bodxXn", f.type));
    bool negative = number_of(v) < 0 || (v.kind == J_FLOAT && signbit(v.f) && !isnan(v.f));
    struct str sign = { 0 }, body = { 0 };
    struct jval text;

    if (negative || f.sign == '+' || f.sign == ' ')
        jin_puts(j, &sign, negative ? "-" : f.sign == '+' ? "+" : " ");
    if (whole) {
        f.type = !f.type || f.type == 'n' ? 'd' : f.type;
        put_based(j, &body, negative ? 0 - (uint64_t)int_of(v) : (uint64_t)int_of(v), &f);
    } else {
        put_float(j, &body, fabs(number_of(v)), &f);
    }
    int64_t all = (int64_t)(sign.n + body.n);
    if (f.zero && (!f.align || f.align == '=')) {
        f.align = '=';
        f.fill = f.fill.kind == J_MISSING ? jv_text(j, "0") : f.fill;
    }
    if (f.align == '=')
        for (; all < f.width && jin_ok(j); all++)
            jin_str(j, &sign, f.fill.kind == J_MISSING ? jv_text(j, " ") : f.fill);
    jin_put(j, &sign, body.v, body.n);
    text = jin_take(j, &sign);
    if (jin_ok(j))
        text = jin_pad(j, text, f.width, f.fill, f.align && f.align != '=' ? f.align : '>');
    if (jin_ok(j))
        jin_str(j, t, text);
    VEC_FINI(&body);
}

static void put_text(struct jin *j, struct str *t, struct jval s, const struct spec *f)
{
    if (f->precision >= 0)
        s = jv_part(j, s, 0, jstr_offset(j, s.s, (size_t)f->precision));
    if (jin_ok(j))
        s = jin_pad(j, s, f->width, f->fill, f->align ? f->align : '<');
    if (jin_ok(j))
        jin_str(j, t, s);
}

/* ---- format() ---- */

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '^' || c == '=';
}

static struct spec read_spec(struct jin *j, struct jval text)
{
    struct cursor c = { text.s->v, text.s->v + text.s->n };
    struct spec f = { .width = -1, .precision = -1 };
    size_t first = c.s < c.end ? u8_length(*c.s) : 0;

    if (first && c.s + first < c.end && is_align(c.s[first])) {
        f.fill = jv_part(j, text, 0, first);
        c.s += first;
    }
    if (is_align(at(&c)))
        f.align = *c.s++;
    if (at(&c) == '+' || at(&c) == '-' || at(&c) == ' ')
        f.sign = *c.s++;
    f.alternative = skip(&c, '#');
    f.zero = skip(&c, '0');
    f.width = take_number(j, &c);
    f.comma = skip(&c, ',');
    if (skip(&c, '.') && (f.precision = take_number(j, &c)) < 0)
        jin_fail(j, "Format specifier missing precision");
    if (c.s < c.end)
        f.type = *c.s++;
    if (c.s < c.end || (f.type && !strchr("bcdeEfFgGnosxX%", f.type)))
        jin_fail(j, "invalid format specifier");
    return f;
}

static void put_formatted(struct jin *j, struct str *t, struct jval v, struct jval spec)
{
    struct spec f = read_spec(j, spec);

    if (!jin_ok(j))
        return;
    if (!spec.s->n || v.kind == J_UNDEFINED) {
        jin_str(j, t, v);
    } else if (is_str(v)) {
        if (f.type && f.type != 's')
            jin_fail(j, "Unknown format code '%c' for object of type 'str'", f.type);
        put_text(j, t, v, &f);
    } else if (v.kind == J_BOOL && !f.type) {
        put_text(j, t, jv_to_str(j, v), &f);
    } else if (is_number(v)) {
        if ((f.type && strchr("sc", f.type)) ||
            (v.kind == J_FLOAT && f.type && strchr("bdoxX", f.type)))
            jin_fail(j, "Unknown format code '%c' for object of type '%s'", f.type, jv_type(v));
        else
            put_number(j, t, v, f);
    } else {
        jin_fail(j, "unsupported format string for %s", jv_type(v));
    }
}

struct formatting {
    struct jin *j;
    const struct jargs *args;
    size_t next;
    bool safe; /* what is put into safe text is escaped */
};

static struct jval argument(struct formatting *f, const char *name, size_t n)
{
    struct jin *j = f->j;
    struct jval key = jv_str(j, name, n);
    size_t i = 0;

    if (!jin_ok(j))
        return jv_none();
    if (!n)
        i = f->next++;
    else if (isdigit((unsigned char)*name))
        i = (size_t)strtoul(jv_concat(j, key, jv_str(j, "", 1)).s->v, NULL, 10);
    if (!n || isdigit((unsigned char)*name))
        return i < f->args->n
                   ? f->args->v[i]
                   : jin_fail(j, "Replacement index %zu out of range for positional args tuple", i);
    for (i = 0; i < f->args->n_kw; i++)
        if (jv_equal(j, f->args->kw[i].key, key))
            return f->args->kw[i].value;
    return jin_fail(j, "format() has no argument '%.*s'", (int)MIN(n, (size_t)80), name);
}

/* name.attribute[element]... */
static struct jval field(struct formatting *f, const char *s, const char *end)
{
    const char *to = s;
    struct jval v;

    while (to < end && *to != '.' && *to != '[')
        to++;
    v = argument(f, s, (size_t)(to - s));
    while (to < end && jin_ok(f->j)) {
        char kind = *to++;
        const char *from = to;
        while (to < end && (kind == '[' ? *to != ']' : *to != '.' && *to != '['))
            to++;
        struct jval name = jv_str(f->j, from, (size_t)(to - from));
        if (!jin_ok(f->j))
            break;
        bool index =
            kind == '[' && name.s->n && name.s->n < 10 &&
            strspn(jv_concat(f->j, name, jv_str(f->j, "", 1)).s->v, "0123456789") == name.s->n;
        if (index)
            name = jv_int(strtoll(jv_concat(f->j, name, jv_str(f->j, "", 1)).s->v, NULL, 10));
        v = kind == '[' ? jin_item(f->j, v, name) : jin_attr(f->j, v, name);
        to += kind == '[' && to < end;
    }
    return v;
}

/* Behind the brace, to behind the closing one. */
static void take_field(struct formatting *f, struct str *t, struct cursor *c, bool nested)
{
    const char *from = c->s, *end;
    struct jin *j = f->j;
    struct str spec = { 0 }, text = { 0 };
    char conversion = 0;
    struct jval v;

    while (c->s < c->end && *c->s != '}' && *c->s != ':' && *c->s != '!')
        c->s++;
    end = c->s;
    if (skip(c, '!') && c->s < c->end)
        conversion = *c->s++;
    v = field(f, from, end);
    if (skip(c, ':'))
        while (c->s < c->end && *c->s != '}' && jin_ok(j)) {
            if (skip(c, '{') && !nested)
                take_field(f, &spec, c, true);
            else if (c->s < c->end && *c->s != '}')
                jin_put(j, &spec, c->s++, 1);
        }
    if (!skip(c, '}'))
        jin_fail(j, "expected '}' before end of string");
    if (conversion && jin_ok(j)) {
        conversion == 's' ? jin_str(j, &text, v) : jin_repr(j, &text, v);
        v = jin_take(j, &text);
    }
    struct jval s = jin_take(j, &spec);
    if (!jin_ok(j))
        return;
    put_formatted(j, &text, v, s);
    s = jin_take(j, &text);
    if (f->safe && !v.safe && jin_ok(j))
        s = jin_escape(j, s);
    if (jin_ok(j))
        jin_str(j, t, s);
}

struct jval jin_format(struct jin *j, struct jval self, const struct jargs *args)
{
    struct formatting f = { j, args, 0, self.safe };
    struct cursor c = { self.s->v, self.s->v + self.s->n };
    struct str t = { 0 };

    while (c.s < c.end && jin_tick(j, 1)) {
        char ch = *c.s++;
        bool twice = (ch == '{' || ch == '}') && skip(&c, ch);
        if (ch == '{' && !twice)
            take_field(&f, &t, &c, false);
        else if (ch == '}' && !twice)
            jin_fail(j, "Single '}' encountered in format string");
        else
            jin_put(j, &t, &ch, 1);
    }
    struct jval out = jin_take(j, &t);
    out.safe = self.safe;
    return out;
}

/* ---- % ---- */

struct percent {
    struct jval args; /* a tuple, a dict, or one value */
    size_t next;
    bool safe; /* what is put into safe text is escaped */
};

static struct jval next_argument(struct jin *j, struct percent *p)
{
    size_t i = p->next++;

    if (p->args.kind == J_TUPLE && i < p->args.l->n)
        return p->args.l->v[i];
    if (p->args.kind != J_TUPLE && i == 0)
        return p->args;
    return jin_fail(j, "not enough arguments for format string");
}

/* (name) */
static struct jval named_argument(struct jin *j, struct percent *p, struct cursor *c)
{
    const char *from = c->s;
    struct jval *v = NULL, key;

    while (c->s < c->end && *c->s != ')')
        c->s++;
    key = jv_str(j, from, (size_t)(c->s - from));
    p->next = 1;
    if (p->args.kind != J_DICT)
        return jin_fail(j, "format requires a mapping");
    if (!skip(c, ')'))
        return jin_fail(j, "incomplete format key");
    if (jin_ok(j) && !(v = jd_find(j, p->args.d, key)))
        jin_fail(j, "a key of the format is missing");
    return v ? *v : jv_none();
}

static void put_percent(struct jin *j, struct str *t, struct jval v, struct spec f)
{
    struct str text = { 0 };

    if (strchr("sra", f.type)) {
        f.type == 's' ? jin_str(j, &text, v) : jin_repr(j, &text, v);
        f.align = f.align ? f.align : '>';
        v = jin_take(j, &text);
        if (jin_ok(j))
            put_text(j, t, v, &f);
    } else if (!is_number(v)) {
        if (jin_defined(j, v))
            jin_fail(j, "%%%c format: a number is required, not %s", f.type, jv_type(v));
    } else {
        if (strchr("diu", f.type)) {
            f.type = 'd';
            if (v.kind == J_FLOAT && !(fabs(v.f) < 0x1p63))
                jin_fail(j, "a number is too large for an integer");
            else if (v.kind == J_FLOAT)
                v = jv_int((int64_t)v.f);
        }
        if (jin_ok(j))
            put_number(j, t, v, f);
    }
}

static void take_percent(struct jin *j, struct str *t, struct percent *p, struct cursor *c)
{
    struct spec f = { .width = -1, .precision = -1 };
    bool named = skip(c, '(');
    struct jval v = named ? named_argument(j, p, c) : jv_none();

    for (; at(c) && strchr("-+ #0", at(c)); c->s++) {
        f.align = *c->s == '-' ? '<' : f.align;
        f.sign = *c->s == '+' || *c->s == ' ' ? *c->s : f.sign;
        f.alternative |= *c->s == '#';
        f.zero |= *c->s == '0';
    }
    f.width = skip(c, '*') ? jin_want_int(j, next_argument(j, p)) : take_number(j, c);
    if (skip(c, '.') && (f.precision = take_number(j, c)) < 0)
        f.precision = 0;
    f.type = at(c);
    c->s += c->s < c->end;
    if (f.type == '%') {
        jin_puts(j, t, "%");
        return;
    }
    if (!f.type || !strchr("sradiufFeEgGxXoc", f.type)) {
        jin_fail(j, "unsupported format character");
        return;
    }
    if (!named)
        v = next_argument(j, p);
    if (p->safe && jin_ok(j) && strchr("sra", f.type))
        v = jin_escape(j, v);
    if (jin_ok(j))
        put_percent(j, t, v, f);
}

struct jval jin_percent(struct jin *j, struct jval format, struct jval args)
{
    struct cursor c = { format.s->v, format.s->v + format.s->n };
    struct percent p = { args, 0, format.safe };
    struct str t = { 0 };

    while (c.s < c.end && jin_tick(j, 1)) {
        if (skip(&c, '%'))
            take_percent(j, &t, &p, &c);
        else
            jin_put(j, &t, c.s++, 1);
    }
    bool may_stay = args.kind == J_DICT || args.kind == J_LIST || args.kind == J_RANGE;
    if (jin_ok(j) && (args.kind == J_TUPLE ? p.next < args.l->n : !p.next && !may_stay))
        jin_fail(j, "not all arguments converted during string formatting");
    struct jval out = jin_take(j, &t);
    out.safe = format.safe;
    return out;
}
