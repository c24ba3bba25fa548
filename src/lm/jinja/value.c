/* What values are to each other: truth, equality, order, membership; and their elements. */
#include "lm/jinja/value.h"

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

const char *jv_type(struct jval v)
{
    static const char *const names[J_KINDS] = {
        [J_MISSING] = "nothing", [J_UNDEFINED] = "Undefined",
        [J_NONE] = "NoneType",   [J_BOOL] = "bool",
        [J_INT] = "int",         [J_FLOAT] = "float",
        [J_STR] = "str",         [J_LIST] = "list",
        [J_TUPLE] = "tuple",     [J_DICT] = "dict",
        [J_VIEW] = "dict view",  [J_RANGE] = "range",
        [J_ITER] = "generator",  [J_SPACE] = "namespace",
        [J_MACRO] = "macro",     [J_FUNCTION] = "function",
        [J_METHOD] = "method",   [J_LOOP] = "loop",
        [J_CYCLER] = "cycler",   [J_JOINER] = "joiner",
    };

    return v.kind == J_STR && v.safe ? "Markup" : names[v.kind];
}

bool jv_has_length(struct jval v)
{
    return (v.kind >= J_STR && v.kind <= J_RANGE) || v.kind == J_UNDEFINED;
}

size_t jv_length(struct jin *j, struct jval v)
{
    switch (v.kind) {
    case J_STR:
        return jstr_chars(j, v.s);
    case J_LIST:
    case J_TUPLE:
        return v.l->n;
    case J_DICT:
        return v.d->n;
    case J_VIEW:
        return v.view->d->n;
    case J_RANGE:
        return (size_t)v.range->n;
    case J_UNDEFINED:
        return 0;
    case J_LOOP:
        return v.loop->items->n;
    default:
        jin_fail(j, "object of type '%s' has no len()", jv_type(v));
        return 0;
    }
}

bool jv_true(struct jin *j, struct jval v)
{
    switch (v.kind) {
    case J_MISSING:
    case J_UNDEFINED:
    case J_NONE:
        return false;
    case J_BOOL:
        return v.b;
    case J_INT:
        return v.i != 0;
    case J_FLOAT:
        return v.f != 0;
    case J_STR:
        return v.s->n != 0;
    default:
        return !jv_has_length(v) || jv_length(j, v) != 0;
    }
}

/* ---- equality and order ---- */

static bool equal_lists(struct jin *j, const struct jlist *a, const struct jlist *b)
{
    bool equal = a->n == b->n && jin_enter(j);

    if (!equal)
        return false;
    for (size_t i = 0; i < a->n && equal; i++)
        equal = jv_equal(j, a->v[i], b->v[i]) && jin_ok(j);
    jin_leave(j);
    return equal;
}

static bool equal_dicts(struct jin *j, const struct jdict *a, const struct jdict *b)
{
    bool equal = a->n == b->n && jin_enter(j);

    if (!equal)
        return false;
    for (size_t i = 0; i < a->n && equal; i++) {
        struct jval *other = jd_find(j, b, a->v[i].key);
        equal = other && jv_equal(j, a->v[i].value, *other) && jin_ok(j);
    }
    jin_leave(j);
    return equal;
}

/* Exact, although a double cannot hold every integer. */
static bool equal_numbers(struct jval a, struct jval b)
{
    if (is_int(a) && is_int(b))
        return int_of(a) == int_of(b);
    if (number_of(a) != number_of(b))
        return false;
    if (a.kind == J_FLOAT && b.kind == J_FLOAT)
        return true;
    double f = number_of(a);
    return f >= -0x1p63 && f < 0x1p63 && (int64_t)f == (is_int(a) ? int_of(a) : int_of(b));
}

static bool equal_ranges(const struct jrange *a, const struct jrange *b)
{
    return a->n == b->n && (a->n == 0 || a->from == b->from) && (a->n < 2 || a->step == b->step);
}

bool jv_equal(struct jin *j, struct jval a, struct jval b)
{
    if (is_number(a) && is_number(b))
        return equal_numbers(a, b);
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case J_UNDEFINED:
    case J_NONE:
        return true;
    case J_STR:
        return jin_tick(j, a.s->n / 64) && a.s->n == b.s->n && memcmp(a.s->v, b.s->v, a.s->n) == 0;
    case J_LIST:
    case J_TUPLE:
        return a.l == b.l || equal_lists(j, a.l, b.l);
    case J_DICT:
        return a.d == b.d || equal_dicts(j, a.d, b.d);
    case J_RANGE:
        return equal_ranges(a.range, b.range);
    case J_VIEW:
        return a.view->of == b.view->of && a.view->of == VIEW_KEYS &&
               a.view->d->n == b.view->d->n && equal_lists(j, jv_items(j, a), jv_items(j, b));
    default:
        return a.l == b.l; /* one and the same */
    }
}

static int sign_of(bool below, bool above)
{
    return above - below;
}

static int compare_lists(struct jin *j, const struct jlist *a, const struct jlist *b,
                         const char *op)
{
    int order = 0;

    if (!jin_enter(j))
        return 0;
    for (size_t i = 0; i < a->n && i < b->n && jin_ok(j); i++)
        if (!jv_equal(j, a->v[i], b->v[i])) {
            order = jv_compare(j, a->v[i], b->v[i], op);
            jin_leave(j);
            return order;
        }
    jin_leave(j);
    return sign_of(a->n<b->n, a->n> b->n);
}

int jv_compare(struct jin *j, struct jval a, struct jval b, const char *op)
{
    if (is_int(a) && is_int(b))
        return sign_of(int_of(a) < int_of(b), int_of(a) > int_of(b));
    if (is_number(a) && is_number(b)) {
        double x = number_of(a), y = number_of(b);
        return x == y || x < y || x > y ? sign_of(x<y, x> y) : 2;
    }
    if (is_str(a) && is_str(b)) {
        size_t n = MIN(a.s->n, b.s->n);
        int order = n && jin_tick(j, n / 64) ? memcmp(a.s->v, b.s->v, n) : 0;
        return order ? sign_of(order<0, order> 0) : sign_of(a.s->n<b.s->n, a.s->n> b.s->n);
    }
    if (is_seq(a) && a.kind == b.kind)
        return compare_lists(j, a.l, b.l, op);
    if (jin_defined(j, a) && jin_defined(j, b))
        jin_fail(j, "'%s' not supported between instances of '%s' and '%s'", op, jv_type(a),
                 jv_type(b));
    return 0;
}

static bool is_in_range(const struct jrange *r, struct jval v)
{
    double f = is_number(v) ? number_of(v) : 0.5;

    if (!(f > -0x1p62 && f < 0x1p62) || f != (double)(int64_t)f)
        return false;
    int64_t at = (int64_t)f - r->from;
    return at % r->step == 0 && at / r->step >= 0 && at / r->step < r->n;
}

bool jv_contains(struct jin *j, struct jval in, struct jval v)
{
    if (in.kind == J_STR) {
        if (!is_str(v)) {
            if (v.kind == J_UNDEFINED)
                jin_defined(j, v);
            jin_fail(j, "'in <string>' requires string as left operand, not %s", jv_type(v));
            return false;
        }
        return jin_tick(j, in.s->n / 16) &&
               (!v.s->n || memmem(in.s->v, in.s->n, v.s->v, v.s->n) != NULL);
    }
    if (in.kind == J_DICT)
        return jd_find(j, in.d, v) != NULL;
    if (in.kind == J_RANGE)
        return is_in_range(in.range, v);
    if (!jv_is_iterable(in)) {
        jin_fail(j, "argument of type '%s' is not iterable", jv_type(in));
        return false;
    }
    const struct jlist *l = jv_items(j, in);
    for (size_t i = 0; jin_ok(j) && i < l->n && jin_tick(j, 1); i++)
        if (jv_equal(j, l->v[i], v))
            return true;
    return false;
}

/* ---- dicts ---- */

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * FNV_PRIME;
    return h;
}

static uint64_t hash_of(struct jin *j, struct jval v)
{
    uint64_t h = FNV_START ^ (uint64_t)v.kind;

    if (is_number(v)) { /* those that are equal have the same */
        double f = number_of(v) + 0.0;
        return hash_bytes(FNV_START, &f, sizeof f);
    }
    if (v.kind == J_STR)
        return jin_tick(j, v.s->n / 64) ? hash_bytes(FNV_START, v.s->v, v.s->n) : 0;
    if (v.kind == J_LIST || v.kind == J_DICT || v.kind == J_SPACE) {
        jin_fail(j, "unhashable type: '%s'", jv_type(v));
    } else if (v.kind == J_TUPLE && jin_enter(j)) {
        for (size_t i = 0; i < v.l->n && jin_ok(j); i++) {
            uint64_t part = hash_of(j, v.l->v[i]);
            h = hash_bytes(h, &part, sizeof part);
        }
        jin_leave(j);
    }
    return h;
}

static struct jval *find_hashed(struct jin *j, const struct jdict *d, struct jval key,
                                uint64_t hash)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->v[i].hash == hash && jv_equal(j, d->v[i].key, key))
            return jin_tick(j, i / 16) ? &d->v[i].value : NULL;
    jin_tick(j, d->n / 16);
    return NULL;
}

struct jval *jd_find(struct jin *j, const struct jdict *d, struct jval key)
{
    uint64_t hash = hash_of(j, key);

    return jin_ok(j) ? find_hashed(j, d, key, hash) : NULL;
}

struct jval *jd_find_text(struct jin *j, const struct jdict *d, const char *key)
{
    struct jstr s = { .v = key, .n = strlen(key) };

    return jd_find(j, d, (struct jval){ .kind = J_STR, .s = &s });
}

void jd_set(struct jin *j, struct jdict *d, struct jval key, struct jval v)
{
    uint64_t hash = hash_of(j, key);
    struct jval *old = jin_ok(j) ? find_hashed(j, d, key, hash) : NULL;

    if (!jin_tick(j, 1))
        return;
    if (old) {
        *old = v;
        return;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 8;
        struct jpair *more = jin_alloc(j, cap * sizeof *more);
        if (!more)
            return;
        if (d->n)
            memcpy(more, d->v, d->n * sizeof *more);
        d->v = more;
        d->cap = cap;
    }
    d->v[d->n++] = (struct jpair){ .key = key, .value = v, .hash = hash };
}

/* ---- elements ---- */

bool jv_is_iterable(struct jval v)
{
    return (v.kind >= J_STR && v.kind <= J_ITER) || v.kind == J_UNDEFINED || v.kind == J_LOOP;
}

static void add_chars(struct jin *j, struct jval list, struct jval s)
{
    for (size_t at = 0; at < s.s->n && jin_ok(j);) {
        size_t n = u8_length(s.s->v[at]);
        struct jval c = jv_part(j, s, at, n);
        c.safe = false; /* as those of Markup */
        jv_push(j, list, c);
        at += n;
    }
}

static void add_members(struct jin *j, struct jval list, const struct jdict *d, enum jview_of of)
{
    for (size_t i = 0; i < d->n && jin_ok(j); i++)
        jv_push(j, list,
                of == VIEW_KEYS     ? d->v[i].key
                : of == VIEW_VALUES ? d->v[i].value
                                    : jv_pair(j, d->v[i].key, d->v[i].value));
}

static void add_range(struct jin *j, struct jval list, const struct jrange *r)
{
    for (int64_t i = 0; i < r->n && jin_ok(j); i++)
        jv_push(j, list, jv_int(r->from + i * r->step));
}

/* What was not taken yet, which then is. */
static struct jlist *take_all(struct jin *j, struct jval v)
{
    struct jlist *l = jin_alloc(j, sizeof *l);

    if (l) {
        *l = *v.l;
        *v.l = (struct jlist){ 0 };
    }
    return l;
}

struct jlist *jv_items(struct jin *j, struct jval v)
{
    static struct jlist none;
    struct jval list;

    if (is_seq(v))
        return v.l;
    if (v.kind == J_ITER || v.kind == J_LOOP) {
        struct jlist *l = v.kind == J_ITER ? take_all(j, v) : v.loop->items;
        return l ? l : &none;
    }
    list = jv_list(j, J_LIST, jv_is_iterable(v) && v.kind != J_STR ? jv_length(j, v) : 0);
    if (!jin_ok(j))
        return &none;
    if (v.kind == J_STR)
        add_chars(j, list, v);
    else if (v.kind == J_DICT)
        add_members(j, list, v.d, VIEW_KEYS);
    else if (v.kind == J_VIEW)
        add_members(j, list, v.view->d, v.view->of);
    else if (v.kind == J_RANGE)
        add_range(j, list, v.range);
    else if (v.kind != J_UNDEFINED)
        jin_fail(j, "'%s' object is not iterable", jv_type(v));
    return list.l;
}

/* ---- characters ---- */

size_t jstr_chars(struct jin *j, const struct jstr *s)
{
    size_t n = 0;

    jin_tick(j, s->n / 16);
    for (size_t i = 0; i < s->n; i++)
        n += ((unsigned char)s->v[i] & 0xc0) != 0x80;
    return n;
}

size_t jstr_offset(struct jin *j, const struct jstr *s, size_t n)
{
    size_t at = 0;

    jin_tick(j, s->n / 16);
    for (; n && at < s->n; n--)
        at += u8_length(s->v[at]);
    return at;
}

bool jstr_is(const struct jstr *s, const char *text)
{
    return s->n == strlen(text) && memcmp(s->v, text, s->n) == 0;
}

bool is_py_space(uint32_t cp)
{
    return u8_is_space(cp) || (cp >= 0x1c && cp <= 0x1f);
}
