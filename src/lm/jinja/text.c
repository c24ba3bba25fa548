/* How Python writes values. */
#include <math.h>
#include <stdio.h>
#include <utf8proc.h>

#include "lm/jinja/builtin.h"
#include "lm/jinja/parser.h"

/* ---- numbers ---- */

void jin_float(struct jin *j, struct str *t, double f)
{
    char text[40], *e;
    int precision = 1;

    if (isnan(f) || isinf(f)) {
        jin_puts(j, t, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
        return;
    }
    do {
        snprintf(text, sizeof text, "%.*e", precision - 1, f);
    } while (strtod(text, NULL) != f && precision++ < 17);
    e = strchr(text, 'e');
    long exponent = e ? strtol(e + 1, NULL, 10) : 0;
    if (exponent >= -4 && exponent < 16) {
        int digits = MAX(precision - 1 - (int)exponent, 0);
        snprintf(text, sizeof text, "%.*f", digits, f);
        jin_puts(j, t, text);
        if (!digits)
            jin_puts(j, t, ".0");
        return;
    }
    jin_puts(j, t, text);
}

static void put_int(struct jin *j, struct str *t, int64_t i)
{
    char text[24];

    jin_put(j, t, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)i));
}

/* ---- strings ---- */

bool jin_is_printable(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return cp == ' ';
    default:
        return true;
    }
}

static void put_escaped(struct jin *j, struct str *t, uint32_t cp)
{
    char text[16];
    int n = snprintf(text, sizeof text,
                     cp < 0x100     ? "\\x%02x"
                     : cp < 0x10000 ? "\\u%04x"
                                    : "\\U%08x",
                     (unsigned)cp);

    jin_put(j, t, text, (size_t)n);
}

static void repr_str(struct jin *j, struct str *t, const struct jstr *s)
{
    static const char escapes[] = "\\\\\nn\rr\tt";
    char quote = memchr(s->v, '\'', s->n) && !memchr(s->v, '"', s->n) ? '"' : '\'';

    if (!jin_tick(j, s->n / 8))
        return;
    jin_put(j, t, &quote, 1);
    for (size_t at = 0; at < s->n && jin_ok(j);) {
        struct u8_step c = u8_step(s->v + at, s->n - at);
        const char *e = c.cp && c.cp < 0x80 ? strchr(escapes, (int)c.cp) : NULL;
        if (c.cp == (unsigned char)quote || c.cp == '\\')
            jin_puts(j, t, "\\");
        if (e && c.cp < 0x20) {
            jin_puts(j, t, "\\");
            jin_put(j, t, e + 1, 1);
        } else if (jin_is_printable(c.cp)) {
            jin_put(j, t, s->v + at, c.len);
        } else {
            put_escaped(j, t, c.cp);
        }
        at += c.len;
    }
    jin_put(j, t, &quote, 1);
}

/* ---- containers ---- */

static void repr_list(struct jin *j, struct str *t, const struct jlist *l, const char *ends)
{
    jin_put(j, t, ends, 1);
    for (size_t i = 0; i < l->n && jin_ok(j); i++) {
        if (i)
            jin_puts(j, t, ", ");
        jin_repr(j, t, l->v[i]);
    }
    if (*ends == '(' && l->n == 1)
        jin_puts(j, t, ",");
    jin_put(j, t, ends + 1, 1);
}

static void repr_dict(struct jin *j, struct str *t, const struct jdict *d)
{
    jin_puts(j, t, "{");
    for (size_t i = 0; i < d->n && jin_ok(j); i++) {
        if (i)
            jin_puts(j, t, ", ");
        jin_repr(j, t, d->v[i].key);
        jin_puts(j, t, ": ");
        jin_repr(j, t, d->v[i].value);
    }
    jin_puts(j, t, "}");
}

static void repr_view(struct jin *j, struct str *t, struct jval v)
{
    static const char *const names[] = {
        [VIEW_KEYS] = "dict_keys(", [VIEW_VALUES] = "dict_values(", [VIEW_ITEMS] = "dict_items("
    };

    jin_puts(j, t, names[v.view->of]);
    repr_list(j, t, jv_items(j, v), "[]");
    jin_puts(j, t, ")");
}

static void repr_range(struct jin *j, struct str *t, const struct jrange *r)
{
    jin_puts(j, t, "range(");
    put_int(j, t, r->from);
    jin_puts(j, t, ", ");
    put_int(j, t, r->to);
    if (r->step != 1) {
        jin_puts(j, t, ", ");
        put_int(j, t, r->step);
    }
    jin_puts(j, t, ")");
}

static void repr_nested(struct jin *j, struct str *t, struct jval v)
{
    if (v.kind == J_LIST || v.kind == J_TUPLE) {
        repr_list(j, t, v.l, v.kind == J_LIST ? "[]" : "()");
    } else if (v.kind == J_DICT) {
        repr_dict(j, t, v.d);
    } else if (v.kind == J_VIEW) {
        repr_view(j, t, v);
    } else if (v.kind == J_RANGE) {
        repr_range(j, t, v.range);
    } else if (v.kind == J_SPACE) {
        jin_puts(j, t, "<Namespace ");
        repr_dict(j, t, v.d);
        jin_puts(j, t, ">");
    } else if (v.kind == J_MACRO && is_str(v.macro->node->value)) {
        jin_puts(j, t, "<Macro ");
        jin_repr(j, t, v.macro->node->value);
        jin_puts(j, t, ">");
    } else {
        jin_puts(j, t, "<");
        jin_puts(j, t, jv_type(v));
        jin_puts(j, t, ">");
    }
}

void jin_repr(struct jin *j, struct str *t, struct jval v)
{
    switch (v.kind) {
    case J_MISSING:
    case J_NONE:
        jin_puts(j, t, "None");
        break;
    case J_UNDEFINED:
        jin_puts(j, t, "Undefined");
        break;
    case J_BOOL:
        jin_puts(j, t, v.b ? "True" : "False");
        break;
    case J_INT:
        put_int(j, t, v.i);
        break;
    case J_FLOAT:
        jin_float(j, t, v.f);
        break;
    case J_STR:
        if (v.safe)
            jin_puts(j, t, "Markup(");
        repr_str(j, t, v.s);
        if (v.safe)
            jin_puts(j, t, ")");
        break;
    default:
        if (jin_enter(j)) {
            repr_nested(j, t, v);
            jin_leave(j);
        }
    }
}

void jin_str(struct jin *j, struct str *t, struct jval v)
{
    if (v.kind == J_STR)
        jin_put(j, t, v.s->v, v.s->n);
    else if (v.kind != J_UNDEFINED)
        jin_repr(j, t, v);
}

struct jval jv_to_str(struct jin *j, struct jval v)
{
    struct str t = { 0 };

    if (is_str(v))
        return v;
    jin_str(j, &t, v);
    return jin_take(j, &t);
}
