/* Filters that take and make lists. */
#include "lm/jinja/filters.h"

const struct jfn *jin_filter(const struct jstr *name)
{
    static const struct jfn rows[] = {
#define FILTER(name, params, least, fn) { #name, params, least, filter_##fn },
#include "lm/jinja/filters.def"
#undef FILTER
    };

    return jin_row(rows, ARRAY_LEN(rows), name);
}

struct jval filter_tojson(struct jin *j, struct jval v, const struct jargs *a)
{
    return jin_to_json(j, v, a);
}

struct jval filter_default(struct jin *j, struct jval v, const struct jargs *a)
{
    bool falsy = jv_true(j, arg_or(a, 1, jv_bool(false))) && !jv_true(j, v);

    return v.kind == J_UNDEFINED || falsy ? arg_or(a, 0, jv_str(j, "", 0)) : v;
}

/* ---- attributes of elements ---- */

/* The part of a path: a number, or a name. */
static struct jval path_part(struct jin *j, struct jval path, size_t from, size_t to)
{
    struct jval part = jv_part(j, path, from, to - from);
    int64_t n = 0;

    for (size_t i = from; i < to; i++) {
        char c = path.s->v[i];
        if (c < '0' || c > '9' || to - from > 9)
            return part;
        n = n * 10 + (c - '0');
    }
    return from < to ? jv_int(n) : part;
}

/* What a path with dots leads to; `other` (unless none) stands for what is undefined. */
static struct jval follow(struct jin *j, struct jval v, struct jval path, struct jval other)
{
    if (path.kind == J_NONE || path.kind == J_MISSING)
        return v;
    if (!is_str(path))
        return jin_item(j, v, path);
    for (size_t at = 0; at <= path.s->n && jin_ok(j);) {
        size_t end = at;
        while (end < path.s->n && path.s->v[end] != '.')
            end++;
        struct jval part = path_part(j, path, at, end);
        v = jin_ok(j) ? jin_item(j, v, part) : v;
        if (v.kind == J_UNDEFINED && other.kind != J_NONE)
            v = other;
        at = end + 1;
    }
    return v;
}

static struct jval fold(struct jin *j, struct jval v, bool keeps_case)
{
    return is_str(v) && !keeps_case && jin_ok(j) ? jin_case(j, v, CASE_LOWER) : v;
}

/* What several paths with commas between them lead to, as a list to sort by. */
static struct jval follow_all(struct jin *j, struct jval v, struct jval paths, bool keeps_case)
{
    struct jval key = jv_list(j, J_LIST, 1), found;

    if (!is_str(paths)) {
        found = fold(j, follow(j, v, paths, jv_none()), keeps_case);
        if (jin_ok(j))
            jv_push(j, key, found);
        return key;
    }
    for (size_t at = 0; at <= paths.s->n && jin_ok(j);) {
        size_t end = at;
        while (end < paths.s->n && paths.s->v[end] != ',')
            end++;
        found = fold(j, follow(j, v, jv_part(j, paths, at, end - at), jv_none()), keeps_case);
        if (jin_ok(j))
            jv_push(j, key, found);
        at = end + 1;
    }
    return key;
}

/* ---- elements ---- */

struct jval filter_length(struct jin *j, struct jval v, const struct jargs *a)
{
    (void)a;
    return jv_int((int64_t)jv_length(j, v));
}

struct jval filter_list(struct jin *j, struct jval v, const struct jargs *a)
{
    (void)a;
    return (struct jval){ .kind = J_LIST, .l = jv_items(j, v) };
}

struct jval filter_first(struct jin *j, struct jval v, const struct jargs *a)
{
    const struct jlist *l = jv_items(j, v);

    (void)a;
    if (!jin_ok(j) || l->n)
        return jin_ok(j) ? l->v[0] : jv_none();
    return jv_undefined(j, NULL, jv_text(j, "the first of nothing"));
}

struct jval filter_last(struct jin *j, struct jval v, const struct jargs *a)
{
    const struct jlist *l;

    (void)a;
    if (v.kind == J_ITER)
        return jin_fail(j, "'generator' object is not reversible");
    l = jv_items(j, v);
    if (!jin_ok(j) || l->n)
        return jin_ok(j) ? l->v[l->n - 1] : jv_none();
    return jv_undefined(j, NULL, jv_text(j, "the last of nothing"));
}

struct jval filter_items(struct jin *j, struct jval v, const struct jargs *a)
{
    static const struct jstr name = { .v = "items", .n = 5 };
    struct jval list = jv_list(j, J_ITER, 0);

    (void)a;
    if (v.kind == J_UNDEFINED)
        return list;
    if (v.kind != J_DICT)
        return jin_fail(j, "Can only get item pairs from a mapping.");
    v = jin_call_fn(j, jin_method(v, &name), v, &(struct jargs){ 0 });
    return jin_ok(j) ? (struct jval){ .kind = J_ITER, .l = jv_items(j, v) } : v;
}

struct jval filter_reverse(struct jin *j, struct jval v, const struct jargs *a)
{
    const struct jlist *l;
    struct jval out;

    (void)a;
    if (is_str(v))
        return jin_slice(j, v, (struct jval[]){ jv_none(), jv_none(), jv_int(-1) });
    l = jv_items(j, v);
    out = jv_list(j, J_ITER, jin_ok(j) ? l->n : 0);
    for (size_t i = jin_ok(j) ? l->n : 0; i-- > 0 && jin_ok(j);)
        jv_push(j, out, l->v[i]);
    return out;
}

struct jval filter_join(struct jin *j, struct jval v, const struct jargs *a)
{
    struct jval sep = arg_or(a, 0, jv_str(j, "", 0));
    const struct jlist *l = jv_items(j, v);
    struct str t = { 0 };

    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        if (i)
            jin_str(j, &t, sep);
        struct jval item = follow(j, l->v[i], a->v[1], jv_none());
        if (jin_ok(j))
            jin_str(j, &t, item);
    }
    return jin_take(j, &t);
}

struct jval filter_sum(struct jin *j, struct jval v, const struct jargs *a)
{
    struct jval sum = arg_or(a, 1, jv_int(0));
    const struct jlist *l = jv_items(j, v);

    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        struct jval item = follow(j, l->v[i], a->v[0], jv_none());
        if (jin_ok(j))
            sum = jin_add(j, sum, item);
    }
    return sum;
}

/* ---- order ---- */

struct jval filter_sort(struct jin *j, struct jval v, const struct jargs *a)
{
    bool reverse = jv_true(j, arg_or(a, 0, jv_bool(false)));
    bool keeps_case = jv_true(j, arg_or(a, 1, jv_bool(false)));
    const struct jlist *l = jv_items(j, v);
    struct jval out = jv_list(j, J_LIST, 0), keys = jv_list(j, J_LIST, 0);

    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        jv_push(j, out, l->v[i]);
        struct jval key = follow_all(j, l->v[i], a->v[2], keeps_case);
        if (jin_ok(j))
            jv_push(j, keys, key);
    }
    if (jin_ok(j))
        jin_sort(j, keys.l->v, out.l->v, out.l->n, reverse);
    return out;
}

struct jval filter_dictsort(struct jin *j, struct jval v, const struct jargs *a)
{
    bool keeps_case = jv_true(j, arg_or(a, 0, jv_bool(false)));
    struct jval by = arg_or(a, 1, jv_text(j, "key")), out = jv_list(j, J_LIST, 0);
    struct jval keys = jv_list(j, J_LIST, 0);
    bool value = is_str(by) && jstr_is(by.s, "value");

    if (v.kind != J_DICT)
        return jin_defined(j, v) ? jin_fail(j, "'%s' has no items to sort", jv_type(v)) : v;
    if (!value && !(is_str(by) && jstr_is(by.s, "key")))
        return jin_fail(j, "You can only sort by either \"key\" or \"value\"");
    for (size_t i = 0; jin_ok(j) && i < v.d->n; i++) {
        jv_push(j, out, jv_pair(j, v.d->v[i].key, v.d->v[i].value));
        struct jval key = fold(j, value ? v.d->v[i].value : v.d->v[i].key, keeps_case);
        if (jin_ok(j))
            jv_push(j, keys, key);
    }
    if (jin_ok(j))
        jin_sort(j, keys.l->v, out.l->v, out.l->n, jv_true(j, arg_or(a, 2, jv_bool(false))));
    return out;
}

static struct jval extreme(struct jin *j, struct jval v, const struct jargs *a, int wanted)
{
    bool keeps_case = jv_true(j, arg_or(a, 0, jv_bool(false)));
    const struct jlist *l = jv_items(j, v);
    struct jval best = jv_none(), best_key = jv_none();

    if (jin_ok(j) && !l->n)
        return jv_undefined(j, NULL, jv_text(j, "the least or most of nothing"));
    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        struct jval key = fold(j, follow(j, l->v[i], a->v[1], jv_none()), keeps_case);
        if (i && jin_ok(j) && jv_compare(j, key, best_key, wanted < 0 ? "<" : ">") != wanted)
            continue;
        best = l->v[i];
        best_key = key;
    }
    return best;
}

struct jval filter_min(struct jin *j, struct jval v, const struct jargs *a)
{
    return extreme(j, v, a, -1);
}

struct jval filter_max(struct jin *j, struct jval v, const struct jargs *a)
{
    return extreme(j, v, a, 1);
}

struct jval filter_unique(struct jin *j, struct jval v, const struct jargs *a)
{
    bool keeps_case = jv_true(j, arg_or(a, 0, jv_bool(false)));
    const struct jlist *l = jv_items(j, v);
    struct jval out = jv_list(j, J_ITER, 0), seen = jv_dict(j, J_DICT);

    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        struct jval key = fold(j, follow(j, l->v[i], a->v[1], jv_none()), keeps_case);
        if (!jin_ok(j) || jd_find(j, seen.d, key))
            continue;
        jd_set(j, seen.d, key, jv_none());
        jv_push(j, out, l->v[i]);
    }
    return out;
}

/* ---- groups of so many ---- */

static void fill(struct jin *j, struct jval list, size_t n, struct jval with)
{
    while (with.kind != J_NONE && list.l->n < n && jin_ok(j))
        jv_push(j, list, with);
}

struct jval filter_batch(struct jin *j, struct jval v, const struct jargs *a)
{
    int64_t n = jin_want_int(j, a->v[0]);
    const struct jlist *l = jv_items(j, v);
    struct jval out = jv_list(j, J_ITER, 0), group = jv_list(j, J_LIST, 0);

    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        if ((int64_t)group.l->n == n) {
            jv_push(j, out, group);
            group = jv_list(j, J_LIST, 0);
        }
        if (jin_ok(j))
            jv_push(j, group, l->v[i]);
    }
    if (jin_ok(j) && group.l->n) {
        fill(j, group, (size_t)MAX(n, 0), arg_or(a, 1, jv_none()));
        jv_push(j, out, group);
    }
    return out;
}

struct jval filter_slice(struct jin *j, struct jval v, const struct jargs *a)
{
    int64_t n = jin_want_int(j, a->v[0]);
    const struct jlist *l = jv_items(j, v);
    struct jval out = jv_list(j, J_ITER, 0);
    size_t at = 0;

    if (jin_ok(j) && n <= 0)
        return jin_fail(j, "slices must be more than none");
    for (int64_t i = 0; jin_ok(j) && i < n; i++) {
        size_t each = l->n / (size_t)n, more = l->n % (size_t)n;
        size_t to = at + each + ((size_t)i < more);
        struct jval group = jv_list(j, J_LIST, to - at);
        while (at < to && jin_ok(j))
            jv_push(j, group, l->v[at++]);
        if (jin_ok(j) && more && (size_t)i >= more)
            fill(j, group, each + 1, arg_or(a, 1, jv_none()));
        jv_push(j, out, group);
    }
    return out;
}

/* ---- map and select ---- */

static struct jval keyword(struct jin *j, const struct jargs *a, const char *name)
{
    for (size_t i = 0; i < a->n_kw; i++)
        if (is_str(a->kw[i].key) && jstr_is(a->kw[i].key.s, name))
            return a->kw[i].value;
    (void)j;
    return (struct jval){ .kind = J_MISSING };
}

/* The function that the i-th argument names, and what is left for it. */
static const struct jfn *named(struct jin *j, const struct jargs *a, size_t i, struct jargs *rest,
                               const struct jfn *(*find)(const struct jstr *))
{
    const struct jstr *name = jin_want_str(j, a->v[i]);
    const struct jfn *fn = jin_ok(j) ? find(name) : NULL;

    *rest = *a;
    rest->v += i + 1;
    rest->n -= i + 1;
    if (!fn)
        jin_fail(j, "no filter or test named '%.*s'", (int)MIN(name->n, (size_t)80), name->v);
    return fn;
}

struct jval filter_map(struct jin *j, struct jval v, const struct jargs *a)
{
    struct jval path = keyword(j, a, "attribute"), other = keyword(j, a, "default");
    const struct jfn *fn = NULL;
    const struct jlist *l;
    struct jval out = jv_list(j, J_ITER, 0);
    struct jargs rest = { 0 };

    if (!jv_true(j, v)) /* whatever it is */
        return out;
    l = jv_items(j, v);
    if (a->n)
        fn = named(j, a, 0, &rest, jin_filter);
    else if (path.kind == J_MISSING)
        jin_fail(j, "map requires a filter argument");
    other = other.kind == J_MISSING ? jv_none() : other;
    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        struct jval item =
            fn ? jin_call_fn(j, fn, l->v[i], &rest) : follow(j, l->v[i], path, other);
        if (jin_ok(j))
            jv_push(j, out, item);
    }
    return out;
}

/* Keeps those for which the test, or their truth, is `wanted`; attribute: of what the first
 * argument leads to. */
static struct jval pick(struct jin *j, struct jval v, const struct jargs *a, bool attribute,
                        bool wanted)
{
    struct jval path = attribute && a->n ? a->v[0] : jv_none(), out = jv_list(j, J_ITER, 0);
    const struct jlist *l;
    const struct jfn *fn = NULL;
    struct jargs rest = { 0 };

    if (!jv_true(j, v))
        return out;
    l = jv_items(j, v);
    if (attribute && !a->n)
        jin_fail(j, "Missing parameter for attribute name");
    if (jin_ok(j) && a->n > attribute)
        fn = named(j, a, attribute, &rest, jin_test);
    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        struct jval item = follow(j, l->v[i], path, jv_none());
        if (fn && jin_ok(j))
            item = jin_call_fn(j, fn, item, &rest);
        if (jin_ok(j) && jv_true(j, item) == wanted)
            jv_push(j, out, l->v[i]);
    }
    return out;
}

struct jval filter_select(struct jin *j, struct jval v, const struct jargs *a)
{
    return pick(j, v, a, false, true);
}

struct jval filter_reject(struct jin *j, struct jval v, const struct jargs *a)
{
    return pick(j, v, a, false, false);
}

struct jval filter_selectattr(struct jin *j, struct jval v, const struct jargs *a)
{
    return pick(j, v, a, true, true);
}

struct jval filter_rejectattr(struct jin *j, struct jval v, const struct jargs *a)
{
    return pick(j, v, a, true, false);
}
