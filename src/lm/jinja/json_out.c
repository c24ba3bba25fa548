/* tojson, as transformers replaces Jinja's: Python's json.dumps. */
#include <math.h>
#include <stdio.h>

#include "lm/jinja/builtin.h"

struct writer {
    struct jin *j;
    struct str *t;
    bool ascii, sorted;
    const struct jstr *indent; /* one level of it, or NULL */
    struct jstr item, key;     /* separators */
    int level;
};

static void put_unit(struct writer *w, uint32_t unit)
{
    char text[8];

    jin_put(w->j, w->t, text, (size_t)snprintf(text, sizeof text, "\\u%04x", (unsigned)unit));
}

static void put_char(struct writer *w, const char *s, struct u8_step c)
{
    static const char pairs[] = "\"\"\\\\\bb\ff\nn\rr\tt";

    for (size_t i = 0; i + 1 < sizeof pairs; i += 2)
        if (c.cp == (unsigned char)pairs[i]) {
            jin_puts(w->j, w->t, "\\");
            jin_put(w->j, w->t, &pairs[i + 1], 1);
            return;
        }
    if (c.cp >= 0x20 && (!w->ascii || c.cp < 0x80)) {
        jin_put(w->j, w->t, s, c.len);
    } else if (c.cp < 0x10000) {
        put_unit(w, c.cp);
    } else {
        put_unit(w, 0xd800 + ((c.cp - 0x10000) >> 10));
        put_unit(w, 0xdc00 + ((c.cp - 0x10000) & 0x3ff));
    }
}

static void put_string(struct writer *w, const struct jstr *s)
{
    jin_tick(w->j, s->n / 8);
    jin_puts(w->j, w->t, "\"");
    for (size_t at = 0; at < s->n && jin_ok(w->j);) {
        struct u8_step c = u8_step(s->v + at, s->n - at);
        put_char(w, s->v + at, c);
        at += c.len;
    }
    jin_puts(w->j, w->t, "\"");
}

static void put_line(struct writer *w)
{
    if (!w->indent)
        return;
    jin_puts(w->j, w->t, "\n");
    for (int i = 0; i < w->level && jin_ok(w->j); i++)
        jin_put(w->j, w->t, w->indent->v, w->indent->n);
}

static void put_float(struct writer *w, double f)
{
    if (isnan(f) || isinf(f))
        jin_puts(w->j, w->t, isnan(f) ? "NaN" : f > 0 ? "Infinity" : "-Infinity");
    else
        jin_float(w->j, w->t, f);
}

static void put_value(struct writer *w, struct jval v);

static void put_key(struct writer *w, struct jval key)
{
    if (is_str(key)) {
        put_string(w, key.s);
    } else if (key.kind == J_NONE || is_number(key)) {
        jin_puts(w->j, w->t, "\"");
        put_value(w, key);
        jin_puts(w->j, w->t, "\"");
    } else {
        jin_fail(w->j, "keys must be str, int, float, bool or None, not %s", jv_type(key));
    }
}

static void put_list(struct writer *w, const struct jlist *l)
{
    jin_puts(w->j, w->t, "[");
    w->level++;
    for (size_t i = 0; i < l->n && jin_ok(w->j); i++) {
        if (i)
            jin_put(w->j, w->t, w->item.v, w->item.n);
        put_line(w);
        put_value(w, l->v[i]);
    }
    w->level--;
    if (l->n)
        put_line(w);
    jin_puts(w->j, w->t, "]");
}

/* The members in the order in which they are written. */
static struct jlist *members(struct writer *w, const struct jdict *d)
{
    struct jval keys = jv_list(w->j, J_LIST, d->n), pairs = jv_list(w->j, J_LIST, d->n);

    for (size_t i = 0; i < d->n && jin_ok(w->j); i++) {
        jv_push(w->j, keys, d->v[i].key);
        jv_push(w->j, pairs, jv_pair(w->j, d->v[i].key, d->v[i].value));
    }
    if (!jin_ok(w->j))
        return NULL;
    if (w->sorted)
        jin_sort(w->j, keys.l->v, pairs.l->v, d->n, false);
    return pairs.l;
}

static void put_dict(struct writer *w, const struct jdict *d)
{
    const struct jlist *l = members(w, d);

    jin_puts(w->j, w->t, "{");
    w->level++;
    for (size_t i = 0; l && i < l->n && jin_ok(w->j); i++) {
        if (i)
            jin_put(w->j, w->t, w->item.v, w->item.n);
        put_line(w);
        put_key(w, l->v[i].l->v[0]);
        jin_put(w->j, w->t, w->key.v, w->key.n);
        put_value(w, l->v[i].l->v[1]);
    }
    w->level--;
    if (d->n)
        put_line(w);
    jin_puts(w->j, w->t, "}");
}

static void put_value(struct writer *w, struct jval v)
{
    if (!jin_enter(w->j))
        return;
    if (is_str(v))
        put_string(w, v.s);
    else if (is_seq(v))
        put_list(w, v.l);
    else if (v.kind == J_DICT)
        put_dict(w, v.d);
    else if (v.kind == J_NONE)
        jin_puts(w->j, w->t, "null");
    else if (v.kind == J_BOOL)
        jin_puts(w->j, w->t, v.b ? "true" : "false");
    else if (v.kind == J_FLOAT)
        put_float(w, v.f);
    else if (v.kind == J_INT)
        jin_repr(w->j, w->t, v);
    else if (jin_defined(w->j, v))
        jin_fail(w->j, "Object of type %s is not JSON serializable", jv_type(v));
    jin_leave(w->j);
}

/* One level: so many blanks, or the string itself. */
static const struct jstr *indent_of(struct jin *j, struct jval v)
{
    struct str t = { 0 };

    if (v.kind == J_NONE)
        return NULL;
    if (is_str(v))
        return v.s;
    for (int64_t n = jin_want_int(j, v); n > 0 && jin_ok(j); n--)
        jin_puts(j, &t, " ");
    return jin_take(j, &t).s;
}

struct jval jin_to_json(struct jin *j, struct jval v, const struct jargs *args)
{
    struct str t = { 0 };
    struct jval indent = arg_or(args, 1, jv_none()), separators = arg_or(args, 2, jv_none());
    struct writer w = { .j = j,
                        .t = &t,
                        .ascii = jv_true(j, arg_or(args, 0, jv_bool(false))),
                        .sorted = jv_true(j, arg_or(args, 3, jv_bool(false))),
                        .indent = indent_of(j, indent),
                        .item = { .v = ", ", .n = indent.kind == J_NONE ? 2 : 1 },
                        .key = { .v = ": ", .n = 2 } };

    if (separators.kind != J_NONE) {
        const struct jlist *l = jv_items(j, separators);
        if (jin_ok(j) && (l->n != 2 || !is_str(l->v[0]) || !is_str(l->v[1])))
            jin_fail(j, "separators are two strings");
        if (jin_ok(j)) {
            w.item = *l->v[0].s;
            w.key = *l->v[1].s;
        }
    }
    if (jin_ok(j))
        put_value(&w, v);
    return jin_take(j, &t);
}
