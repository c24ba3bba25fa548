/* Functions of templates. */
#include <stdio.h>
#include <time.h>

#include "lm/jinja/builtin.h"

#define RANGE_MAX 100000 /* as Jinja's sandbox has it */

static struct jval fn_raise(struct jin *j, struct jval self, const struct jargs *a)
{
    const struct jstr *s = jin_want_text(j, a->v[0]);

    (void)self;
    if (!jin_ok(j))
        return jv_none();
    return jin_fail_with(j, err_set(ERR_ARG, "[chat] the template refuses this: %.*s",
                                    (int)MIN(s->n, (size_t)400), s->v));
}

/* A format as strftime of C has it: times here have no zone and no parts of seconds. */
static void plain_format(struct jin *j, struct str *t, const struct jstr *s)
{
    for (size_t i = 0; i < s->n && jin_ok(j); i++) {
        char next = i + 1 < s->n ? s->v[i + 1] : 0;
        if (s->v[i] != '%') {
            jin_put(j, t, s->v + i, 1);
            continue;
        }
        i += next != 0;
        if (next == 'f')
            jin_puts(j, t, "000000");
        else if (next && next != 'z' && next != 'Z')
            jin_put(j, t, s->v + i - 1, 2);
    }
    jin_put(j, t, " ", 2); /* a text that is never empty, and its end */
}

static struct jval fn_strftime(struct jin *j, struct jval self, const struct jargs *a)
{
    time_t now = j->now ? (time_t)j->now : time(NULL);
    struct str format = { 0 };
    char text[4096];
    struct tm tm;
    size_t n;

    (void)self;
    plain_format(j, &format, jin_want_str(j, a->v[0]));
    localtime_r(&now, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* that is what a template gives */
    n = jin_ok(j) ? strftime(text, sizeof text, format.v, &tm) : 1;
#pragma GCC diagnostic pop
    VEC_FINI(&format);
    if (jin_ok(j) && (!n || !u8_valid(text, n)))
        return jin_fail(j, "strftime_now: the format is too long");
    return jv_str(j, text, n - 1);
}

static struct jval fn_range(struct jin *j, struct jval self, const struct jargs *a)
{
    int64_t v[3] = { 0, 0, 1 };
    struct jrange *r = jin_alloc(j, sizeof *r);

    (void)self;
    if (a->n < 1 || a->n > 3 || a->n_kw)
        return jin_fail(j, "range() takes one to three numbers");
    for (size_t i = 0; i < a->n; i++)
        v[a->n == 1 ? 1 : i] = jin_want_int(j, a->v[i]);
    if (jin_ok(j) && !v[2])
        jin_fail(j, "range() arg 3 must not be zero");
    for (size_t i = 0; i < 3; i++)
        if (v[i] > (int64_t)1 << 60 || v[i] < -((int64_t)1 << 60))
            jin_fail(j, "range() of such large numbers is not supported");
    if (!r || !jin_ok(j))
        return jv_none();
    *r = (struct jrange){ v[0], v[1], v[2], 0 };
    if (v[2] > 0 && v[1] > v[0])
        r->n = (v[1] - v[0] - 1) / v[2] + 1;
    else if (v[2] < 0 && v[1] < v[0])
        r->n = (v[0] - v[1] - 1) / -v[2] + 1;
    if (r->n > RANGE_MAX)
        return jin_fail(j, "Range too big. The sandbox blocks ranges larger than %d.", RANGE_MAX);
    return (struct jval){ .kind = J_RANGE, .range = r };
}

static void add_pairs(struct jin *j, struct jdict *d, struct jval from)
{
    const struct jlist *l;

    if (from.kind == J_DICT) {
        for (size_t i = 0; i < from.d->n && jin_ok(j); i++)
            jd_set(j, d, from.d->v[i].key, from.d->v[i].value);
        return;
    }
    l = jv_items(j, from);
    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        const struct jlist *pair = jv_items(j, l->v[i]);
        if (jin_ok(j) && pair->n != 2)
            jin_fail(j, "what becomes a dict must be pairs");
        if (jin_ok(j))
            jd_set(j, d, pair->v[0], pair->v[1]);
    }
}

static struct jval new_dict(struct jin *j, const struct jargs *a, enum jkind kind)
{
    struct jval v = jv_dict(j, kind);

    if (a->n > 1)
        jin_fail(j, "dict expected at most 1 argument, got %zu", a->n);
    if (jin_ok(j) && a->n)
        add_pairs(j, v.d, a->v[0]);
    for (size_t i = 0; i < a->n_kw && jin_ok(j); i++)
        jd_set(j, v.d, a->kw[i].key, a->kw[i].value);
    return v;
}

static struct jval fn_dict(struct jin *j, struct jval self, const struct jargs *a)
{
    (void)self;
    return new_dict(j, a, J_DICT);
}

static struct jval fn_namespace(struct jin *j, struct jval self, const struct jargs *a)
{
    struct jval v = new_dict(j, a, J_SPACE);

    (void)self;
    for (size_t i = 0; jin_ok(j) && i < v.d->n; i++)
        if (is_str(v.d->v[i].key) && v.d->v[i].key.s->n && v.d->v[i].key.s->v[0] == '_')
            jin_fail(j, "names in a namespace cannot begin with _");
    return v;
}

static struct jval new_cycle(struct jin *j, const struct jval *v, size_t n, enum jkind kind)
{
    struct jcycle *c = jin_alloc(j, sizeof *c);
    struct jval list = jv_list(j, J_LIST, n);

    for (size_t i = 0; i < n && jin_ok(j); i++)
        jv_push(j, list, v[i]);
    if (!c || !jin_ok(j))
        return jv_none();
    c->items = list.l;
    return (struct jval){ .kind = kind, .cycle = c };
}

static struct jval fn_cycler(struct jin *j, struct jval self, const struct jargs *a)
{
    (void)self;
    return a->n && !a->n_kw ? new_cycle(j, a->v, a->n, J_CYCLER)
                            : jin_fail(j, "at least one item has to be provided");
}

static struct jval fn_joiner(struct jin *j, struct jval self, const struct jargs *a)
{
    struct jval sep = arg_or(a, 0, jv_text(j, ", "));

    (void)self;
    return new_cycle(j, &sep, 1, J_JOINER);
}

static const struct jfn functions[] = {
    { "cycler", NULL, 0, fn_cycler },
    { "dict", NULL, 0, fn_dict },
    { "joiner", "sep", 0, fn_joiner },
    { "namespace", NULL, 0, fn_namespace },
    { "raise_exception", "message", 1, fn_raise },
    { "range", NULL, 0, fn_range },
    { "strftime_now", "format", 1, fn_strftime },
};

const struct jfn *jin_global(const struct jstr *name)
{
    return jin_row(functions, ARRAY_LEN(functions), name);
}
