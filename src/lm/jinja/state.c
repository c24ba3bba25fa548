/* The state of a rendering: errors, limits, memory, and text that becomes strings. */
#include <stdarg.h>
#include <stdio.h>

#include "lm/jinja/value.h"

/* ---- errors and limits ---- */

struct jval jin_fail_with(struct jin *j, enum err err)
{
    if (jin_ok(j) && err != ERR_OK) {
        j->err = err;
        err_note_take(&j->note, err);
    }
    return jv_none();
}

struct jval jin_fail(struct jin *j, const char *fmt, ...)
{
    char what[ERR_TEXT_MAX];
    va_list args;

    if (!jin_ok(j))
        return jv_none();
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    /* Bytes that were cut off in the middle of a character must not reach a terminal. */
    size_t n = strlen(what);
    if (n && !u8_valid(what, n)) {
        n = u8_last(what, n);
        what[u8_valid(what, n) ? n : 0] = '\0';
    }
    return jin_fail_with(j, err_set(ERR_ARG, "[chat] line %d of the template: %s", j->line, what));
}

bool jin_tick(struct jin *j, size_t n)
{
    j->steps += n;
    if (j->steps > j->limits.steps)
        jin_fail(j, "it takes more than %llu steps", (unsigned long long)j->limits.steps);
    return jin_ok(j);
}

bool jin_enter(struct jin *j)
{
    if (!jin_tick(j, 1))
        return false;
    if (j->depth >= j->limits.depth) {
        jin_fail(j, "it is nested deeper than %d levels", j->limits.depth);
        return false;
    }
    j->depth++;
    return true;
}

void jin_leave(struct jin *j)
{
    j->depth--;
}

void *jin_alloc(struct jin *j, size_t size)
{
    void *p = NULL;

    if (!jin_ok(j))
        return NULL;
    if (size > j->limits.memory || j->used > j->limits.memory - size) {
        jin_fail(j, "it takes more than %zu MiB of memory", j->limits.memory >> 20);
        return NULL;
    }
    j->used += size + 16;
    p = arena_alloc(&j->mem, size);
    if (!p)
        jin_fail_with(j, ERR_NO_MEMORY);
    return p;
}

/* ---- text ---- */

void jin_put(struct jin *j, struct str *t, const char *s, size_t n)
{
    if (!jin_ok(j))
        return;
    j->written += n;
    if (j->written > j->limits.output) {
        jin_fail(j, "it writes more than %zu MiB of text", j->limits.output >> 20);
        return;
    }
    jin_fail_with(j, str_add(t, s, n));
}

void jin_puts(struct jin *j, struct str *t, const char *s)
{
    jin_put(j, t, s, strlen(s));
}

void jin_putc(struct jin *j, struct str *t, uint32_t cp)
{
    char bytes[4];

    jin_put(j, t, bytes, u8_put(bytes, cp));
}

struct jval jin_take(struct jin *j, struct str *t)
{
    struct jval v = jv_str(j, t->v, t->n);

    VEC_FINI(t);
    return v;
}

/* ---- strings ---- */

static struct jval new_str(struct jin *j, const char *s, size_t n, struct jbuf *buf)
{
    struct jstr *str = jin_alloc(j, sizeof *str);

    if (!str)
        return jv_none();
    *str = (struct jstr){ .v = s, .n = n, .buf = buf };
    return (struct jval){ .kind = J_STR, .s = str };
}

struct jval jv_str(struct jin *j, const char *s, size_t n)
{
    char *copy = jin_alloc(j, n + !n);

    if (!copy || !jin_tick(j, n / 16))
        return jv_none();
    if (n)
        memcpy(copy, s, n);
    return new_str(j, copy, n, NULL);
}

struct jval jv_text(struct jin *j, const char *s)
{
    return jv_str(j, s, strlen(s));
}

struct jval jv_part(struct jin *j, struct jval s, size_t from, size_t n)
{
    struct jval part = new_str(j, s.s->v + from, n, NULL);

    part.safe = s.safe;
    return part;
}

struct jval jv_concat(struct jin *j, struct jval a, struct jval b)
{
    size_t n = a.s->n + b.s->n;
    struct jbuf *buf = a.s->buf;

    if (!b.s->n)
        return a;
    if (!a.s->n)
        return b;
    if (!jin_tick(j, b.s->n / 16))
        return jv_none();
    if (!buf || a.s->v + a.s->n != buf->v + buf->used || buf->cap - buf->used < b.s->n) {
        if (!(buf = jin_alloc(j, sizeof *buf)) || !(buf->v = jin_alloc(j, 2 * n)) ||
            !jin_tick(j, n / 16))
            return jv_none();
        memcpy(buf->v, a.s->v, a.s->n);
        buf->used = a.s->n;
        buf->cap = 2 * n;
    }
    const char *start = buf->v + buf->used - a.s->n;
    memmove(buf->v + buf->used, b.s->v, b.s->n);
    buf->used += b.s->n;
    return new_str(j, start, n, buf);
}

/* ---- containers ---- */

struct jval jv_list(struct jin *j, enum jkind kind, size_t n)
{
    struct jlist *l = jin_alloc(j, sizeof *l);

    if (!l)
        return jv_none();
    l->cap = n;
    if (n && (n > SIZE_MAX / sizeof *l->v || !(l->v = jin_alloc(j, n * sizeof *l->v))))
        return jv_none();
    return (struct jval){ .kind = kind, .l = l };
}

void jv_push(struct jin *j, struct jval list, struct jval v)
{
    struct jlist *l = list.l;

    if (!jin_tick(j, 1))
        return;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 4;
        struct jval *more = jin_alloc(j, cap * sizeof *more);
        if (!more)
            return;
        if (l->n)
            memcpy(more, l->v, l->n * sizeof *more);
        l->v = more;
        l->cap = cap;
    }
    l->v[l->n++] = v;
}

struct jval jv_pair(struct jin *j, struct jval a, struct jval b)
{
    struct jval pair = jv_list(j, J_TUPLE, 2);

    if (jin_ok(j)) {
        jv_push(j, pair, a);
        jv_push(j, pair, b);
    }
    return pair;
}

struct jval jv_dict(struct jin *j, enum jkind kind)
{
    struct jdict *d = jin_alloc(j, sizeof *d);

    return d ? (struct jval){ .kind = kind, .d = d } : jv_none();
}

struct jval jv_undefined(struct jin *j, const char *owner, struct jval name)
{
    struct jundef *u = jin_alloc(j, sizeof *u);

    if (!u)
        return jv_none();
    u->owner = owner;
    u->name = name;
    return (struct jval){ .kind = J_UNDEFINED, .undef = u };
}

bool jin_defined(struct jin *j, struct jval v)
{
    const struct jundef *u = v.undef;

    if (v.kind != J_UNDEFINED)
        return jin_ok(j);
    struct str name = { 0 };
    if (is_str(u->name))
        jin_put(j, &name, u->name.s->v, MIN(u->name.s->n, (size_t)200));
    else
        jin_repr(j, &name, u->name);
    int n = (int)MIN(name.n, (size_t)200);
    if (u->unsafe)
        jin_fail(j, "'%.*s' of a %s is nothing that templates may use", n, name.v, u->owner);
    else if (u->owner)
        jin_fail(j, "'%s object' has no %s '%.*s'", u->owner,
                 is_str(u->name) ? "attribute" : "element", n, name.v);
    else
        jin_fail(j, "'%.*s' is undefined", n, n ? name.v : "");
    VEC_FINI(&name);
    return false;
}
