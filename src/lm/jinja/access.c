/* Attributes, elements and slices, as the sandbox of Jinja gives them. */
#include "lm/jinja/builtin.h"
#include "lm/jinja/parser.h"

static bool name_is(struct jval name, const char *text)
{
    return is_str(name) && jstr_is(name.s, text);
}

/* What Python calls its own. */
static bool is_internal(const struct jstr *s)
{
    return s->n > 4 && memcmp(s->v, "__", 2) == 0 && memcmp(s->v + s->n - 2, "__", 2) == 0;
}

static struct jval unsafe(struct jin *j, struct jval obj, struct jval name)
{
    struct jval v = jv_undefined(j, jv_type(obj), name);

    if (jin_ok(j))
        v.undef->unsafe = true;
    return v;
}

static struct jval loop_attr(struct jin *j, const struct jloop *l, struct jval name, bool *found)
{
    int64_t n = (int64_t)l->items->n, at = (int64_t)l->at;
    const struct {
        const char *name;
        struct jval v;
    } attrs[] = {
        { "index", jv_int(at + 1) },    { "index0", jv_int(at) },
        { "revindex", jv_int(n - at) }, { "revindex0", jv_int(n - at - 1) },
        { "first", jv_bool(at == 0) },  { "last", jv_bool(at + 1 == n) },
        { "length", jv_int(n) },        { "depth", jv_int(l->depth + 1) },
        { "depth0", jv_int(l->depth) },
    };

    *found = true;
    for (size_t i = 0; i < ARRAY_LEN(attrs); i++)
        if (name_is(name, attrs[i].name))
            return attrs[i].v;
    if (name_is(name, "previtem"))
        return at > 0 ? l->items->v[at - 1]
                      : jv_undefined(j, NULL, jv_text(j, "the item before the first"));
    if (name_is(name, "nextitem"))
        return at + 1 < n ? l->items->v[at + 1]
                          : jv_undefined(j, NULL, jv_text(j, "the item behind the last"));
    *found = false;
    return jv_none();
}

/* What getattr() finds; *found is false if that is nothing. */
static struct jval own_attr(struct jin *j, struct jval obj, struct jval name, bool *found)
{
    const struct jfn *fn = jin_method(obj, name.s);
    struct jval *v;

    *found = true;
    if (is_internal(name.s))
        return unsafe(j, obj, name);
    if (fn && !fn->fn)
        return unsafe(j, obj, name);
    if (fn) {
        struct jmethod *m = jin_alloc(j, sizeof *m);
        if (!m)
            return jv_none();
        *m = (struct jmethod){ obj, fn };
        return (struct jval){ .kind = J_METHOD, .method = m };
    }
    if (obj.kind == J_SPACE && (v = jd_find(j, obj.d, name)))
        return *v;
    if (obj.kind == J_LOOP)
        return loop_attr(j, obj.loop, name, found);
    if (obj.kind == J_MACRO && name_is(name, "name"))
        return obj.macro->node->value;
    if (obj.kind == J_CYCLER && name_is(name, "current"))
        return obj.cycle->items->v[obj.cycle->at];
    *found = false;
    return jv_none();
}

/* obj[i]; *found false where there is none. */
static struct jval element(struct jin *j, struct jval obj, int64_t i, bool *found)
{
    int64_t n = (int64_t)jv_length(j, obj);

    i += i < 0 ? n : 0;
    *found = i >= 0 && i < n;
    if (!*found)
        return jv_none();
    if (is_seq(obj))
        return obj.l->v[i];
    if (obj.kind == J_RANGE)
        return jv_int(obj.range->from + i * obj.range->step);
    size_t at = jstr_offset(j, obj.s, (size_t)i);
    return jv_part(j, obj, at, u8_length(obj.s->v[at]));
}

/* What subscripts find. */
static struct jval own_item(struct jin *j, struct jval obj, struct jval key, bool *found)
{
    bool hashable = key.kind != J_LIST && key.kind != J_DICT && key.kind != J_SPACE;
    struct jval *v;

    *found = false;
    if (obj.kind == J_DICT) {
        v = hashable ? jd_find(j, obj.d, key) : NULL;
        *found = v != NULL;
        return v ? *v : jv_none();
    }
    if (is_int(key) && (is_seq(obj) || is_str(obj) || obj.kind == J_RANGE))
        return element(j, obj, int_of(key), found);
    return jv_none();
}

struct jval jin_attr(struct jin *j, struct jval obj, struct jval name)
{
    bool found;
    struct jval v;

    if (!jin_defined(j, obj))
        return jv_none();
    v = own_attr(j, obj, name, &found);
    if (!found)
        v = own_item(j, obj, name, &found);
    return found || !jin_ok(j) ? v : jv_undefined(j, jv_type(obj), name);
}

struct jval jin_item(struct jin *j, struct jval obj, struct jval key)
{
    bool found;
    struct jval v;

    if (!jin_defined(j, obj))
        return jv_none();
    v = own_item(j, obj, key, &found);
    if (!found && is_str(key))
        v = own_attr(j, obj, key, &found);
    return found || !jin_ok(j) ? v : jv_undefined(j, jv_type(obj), key);
}

/* ---- slices ---- */

/* A bound as Python clamps it. */
static int64_t clamp(struct jin *j, struct jval v, int64_t other, int64_t n, int64_t step)
{
    int64_t i, low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;

    if (v.kind == J_NONE)
        return other;
    if (!is_int(v)) {
        if (jin_defined(j, v))
            jin_fail(j, "slice indices must be integers or None");
        return 0;
    }
    i = int_of(v);
    if (i < 0)
        i = i < -n ? low : i + n;
    return i < low ? low : i > high ? high : i;
}

static struct jval slice_text(struct jin *j, struct jval s, int64_t from, int64_t n, int64_t step)
{
    size_t start = jstr_offset(j, s.s, (size_t)from), end = start;
    struct str t = { 0 };
    struct jval list, v;

    if (step == 1) {
        for (int64_t i = 0; i < n; i++)
            end += u8_length(s.s->v[end]);
        jin_tick(j, (end - start) / 16);
        return jv_part(j, s, start, end - start);
    }
    list = (struct jval){ .kind = J_LIST, .l = jv_items(j, s) };
    for (int64_t i = 0; i < n && jin_ok(j); i++) {
        v = list.l->v[from + i * step];
        jin_put(j, &t, v.s->v, v.s->n);
    }
    v = jin_take(j, &t);
    v.safe = s.safe;
    return v;
}

static struct jval slice_range(struct jin *j, const struct jrange *r, struct jrange part)
{
    struct jrange *out = jin_alloc(j, sizeof *out);

    if (!out)
        return jv_none();
    out->n = part.n;
    if (MUL_OVERFLOWS(part.from, r->step, &out->from) ||
        MUL_OVERFLOWS(part.to, r->step, &out->to) ||
        MUL_OVERFLOWS(part.step, r->step, &out->step) ||
        ADD_OVERFLOWS(out->from, r->from, &out->from) || ADD_OVERFLOWS(out->to, r->from, &out->to))
        return jin_fail(j, "a range of such large numbers is not supported");
    return (struct jval){ .kind = J_RANGE, .range = out };
}

struct jval jin_slice(struct jin *j, struct jval obj, const struct jval bounds[3])
{
    int64_t step = 1, n, from, to, count;

    if (!jin_defined(j, obj))
        return jv_none();
    if (!is_seq(obj) && !is_str(obj) && obj.kind != J_RANGE)
        return jin_fail(j, "'%s' object has no slices", jv_type(obj));
    if (bounds[2].kind != J_NONE)
        step = is_int(bounds[2]) ? int_of(bounds[2]) : 0;
    if (!step)
        return jin_fail(j, "the step of a slice must be an integer, and not zero");
    step = MAX(MIN(step, INT32_MAX), -INT32_MAX);
    n = (int64_t)jv_length(j, obj);
    from = clamp(j, bounds[0], step < 0 ? n - 1 : 0, n, step);
    to = clamp(j, bounds[1], step < 0 ? -1 : n, n, step);
    count = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
    if (!jin_ok(j))
        return jv_none();
    count = MAX(count, 0);
    if (is_str(obj))
        return slice_text(j, obj, from, count, step);
    if (obj.kind == J_RANGE)
        return slice_range(j, obj.range, (struct jrange){ from, to, step, count });
    struct jval list = jv_list(j, obj.kind == J_TUPLE ? J_TUPLE : J_LIST, (size_t)count);
    bool found;
    for (int64_t i = 0; i < count && jin_ok(j); i++)
        jv_push(j, list, element(j, obj, from + i * step, &found));
    return list;
}
