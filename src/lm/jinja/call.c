/* How functions get their arguments. */
#include "lm/jinja/builtin.h"

#define PARAMS_MAX 8

const struct jfn *jin_row(const struct jfn *rows, size_t n, const struct jstr *name)
{
    for (size_t i = 0; i < n; i++)
        if (jstr_is(name, rows[i].name))
            return &rows[i];
    return NULL;
}

/* The index of a parameter, or n. */
static size_t find_param(const struct jfn *fn, const struct jval *name, size_t n)
{
    const char *p = fn->params;

    for (size_t i = 0; i < n; i++) {
        size_t length = strcspn(p, " ");
        if (is_str(*name) && name->s->n == length && memcmp(name->s->v, p, length) == 0)
            return i;
        p += length + (p[length] == ' ');
    }
    return n;
}

static size_t count_params(const struct jfn *fn)
{
    size_t n = fn->params[0] != 0;

    for (const char *p = fn->params; *p; p++)
        n += *p == ' ';
    return n;
}

struct jval jin_call_fn(struct jin *j, const struct jfn *fn, struct jval self,
                        const struct jargs *args)
{
    struct jval v[PARAMS_MAX] = { { .kind = J_MISSING } };

    if (args->caller.kind != J_MISSING)
        return jin_fail(j, "%s() takes no call block", fn->name);
    if (!jin_tick(j, 1) || !fn->params)
        return jin_ok(j) ? fn->fn(j, self, args) : jv_none();
    size_t n = count_params(fn);
    if (args->n > n)
        return jin_fail(j, "%s() takes not more than %zu arguments", fn->name, n);
    for (size_t i = 0; i < args->n; i++)
        v[i] = args->v[i];
    for (size_t i = 0; i < args->n_kw; i++) {
        size_t at = find_param(fn, &args->kw[i].key, n);
        if (at == n || v[at].kind != J_MISSING)
            return jin_fail(j, "%s() has no argument of such a name, or has it twice", fn->name);
        v[at] = args->kw[i].value;
    }
    for (size_t i = 0; i < fn->least; i++)
        if (v[i].kind == J_MISSING)
            return jin_fail(j, "%s() needs %zu arguments", fn->name, fn->least);
    return fn->fn(j, self, &(struct jargs){ .v = v, .n = n });
}

static struct jval call_joiner(struct jin *j, struct jcycle *c)
{
    bool first = c->at == 0;

    c->at = 1;
    return first ? jv_str(j, "", 0) : c->items->v[0];
}

struct jval jin_call(struct jin *j, struct jval callee, const struct jargs *args)
{
    struct jval v = jv_none();

    if (!jin_defined(j, callee) || !jin_enter(j))
        return jv_none();
    if (callee.kind == J_FUNCTION)
        v = jin_call_fn(j, callee.fn, jv_none(), args);
    else if (callee.kind == J_METHOD)
        v = jin_call_fn(j, callee.method->fn, callee.method->self, args);
    else if (callee.kind == J_MACRO)
        v = jin_call_macro(j, callee.macro, args);
    else if (callee.kind == J_JOINER)
        v = call_joiner(j, callee.cycle);
    else if (callee.kind == J_LOOP && args->n == 1)
        v = jin_call_loop(j, callee.loop, args->v[0]);
    else
        jin_fail(j, "'%s' object is not callable", jv_type(callee));
    jin_leave(j);
    return v;
}

int64_t jin_want_int(struct jin *j, struct jval v)
{
    if (is_int(v))
        return int_of(v);
    if (jin_defined(j, v))
        jin_fail(j, "'%s' object cannot be interpreted as an integer", jv_type(v));
    return 0;
}

const struct jstr *jin_want_text(struct jin *j, struct jval v)
{
    static const struct jstr none = { .v = "" };

    v = jin_ok(j) ? jv_to_str(j, v) : v;
    return jin_ok(j) ? v.s : &none;
}

const struct jstr *jin_want_str(struct jin *j, struct jval v)
{
    static const struct jstr none = { .v = "" };

    if (is_str(v))
        return v.s;
    if (jin_defined(j, v))
        jin_fail(j, "expected a string, found %s", jv_type(v));
    return &none;
}
