/* Methods of strings, lists, dicts, loops. */
#include <utf8proc.h>

#include "lm/jinja/builtin.h"

static struct jval like(struct jval self, struct jval v)
{
    v.safe = self.safe && is_str(v);
    return v;
}

/* ---- splitting ---- */

static void push_part(struct jin *j, struct jval list, struct jval s, size_t from, size_t to)
{
    struct jval part = jv_part(j, s, from, to - from);

    if (jin_ok(j))
        jv_push(j, list, part);
}

static size_t skip_spaces(const struct jstr *s, size_t at, bool spaces)
{
    while (at < s->n) {
        struct u8_step c = u8_step(s->v + at, s->n - at);
        if (is_py_space(c.cp) != spaces)
            break;
        at += c.len;
    }
    return at;
}

static size_t skip_spaces_back(const struct jstr *s, size_t to, bool spaces)
{
    while (to) {
        size_t last = u8_last(s->v, to);
        if (is_py_space(u8_step(s->v + last, to - last).cp) != spaces)
            break;
        to = last;
    }
    return to;
}

static void split_spaces(struct jin *j, struct jval list, struct jval v, int64_t most)
{
    size_t at = skip_spaces(v.s, 0, true);

    for (; at < v.s->n && jin_tick(j, 1); at = skip_spaces(v.s, at, true)) {
        size_t to = most-- == 0 ? v.s->n : skip_spaces(v.s, at, false);
        push_part(j, list, v, at, to);
        at = to;
    }
}

static void rsplit_spaces(struct jin *j, struct jval list, struct jval v, int64_t most)
{
    size_t to = skip_spaces_back(v.s, v.s->n, true);

    for (; to && jin_tick(j, 1); to = skip_spaces_back(v.s, to, true)) {
        size_t from = most-- == 0 ? 0 : skip_spaces_back(v.s, to, false);
        push_part(j, list, v, from, to);
        to = from;
    }
}

static void split_at(struct jin *j, struct jval list, struct jval v, const struct jstr *sep,
                     int64_t most)
{
    size_t from = 0;
    const char *hit;

    while (jin_tick(j, 1) && most-- != 0 &&
           (hit = memmem(v.s->v + from, v.s->n - from, sep->v, sep->n))) {
        size_t at = (size_t)(hit - v.s->v);
        push_part(j, list, v, from, at);
        from = at + sep->n;
    }
    push_part(j, list, v, from, v.s->n);
}

/* Offset of the last place before `to`, or SIZE_MAX. */
static size_t find_last(struct jin *j, const char *s, size_t to, const struct jstr *what)
{
    jin_tick(j, to / 16);
    for (size_t at = to; at >= what->n; at--)
        if (memcmp(s + at - what->n, what->v, what->n) == 0)
            return at - what->n;
    return SIZE_MAX;
}

static void rsplit_at(struct jin *j, struct jval list, struct jval v, const struct jstr *sep,
                      int64_t most)
{
    size_t to = v.s->n, at;

    while (jin_tick(j, 1) && most-- != 0 && (at = find_last(j, v.s->v, to, sep)) != SIZE_MAX) {
        push_part(j, list, v, at + sep->n, to);
        to = at;
    }
    push_part(j, list, v, 0, to);
}

static void turn_round(struct jlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        struct jval v = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = v;
    }
}

static struct jval split(struct jin *j, struct jval self, const struct jargs *a, bool right)
{
    struct jval sep = arg_or(a, 0, jv_none()), list = jv_list(j, J_LIST, 0);
    int64_t most = arg_given(a, 1) ? jin_want_int(j, a->v[1]) : -1;

    most = most < 0 ? -1 : most;
    if (sep.kind == J_NONE && jin_ok(j)) {
        right ? rsplit_spaces(j, list, self, most) : split_spaces(j, list, self, most);
    } else {
        const struct jstr *s = jin_want_str(j, sep);
        if (jin_ok(j) && !s->n)
            jin_fail(j, "empty separator");
        if (jin_ok(j))
            right ? rsplit_at(j, list, self, s, most) : split_at(j, list, self, s, most);
    }
    if (right && jin_ok(j))
        turn_round(list.l);
    return list;
}

static struct jval str_split(struct jin *j, struct jval self, const struct jargs *a)
{
    return split(j, self, a, false);
}

static struct jval str_rsplit(struct jin *j, struct jval self, const struct jargs *a)
{
    return split(j, self, a, true);
}

static bool ends_line(uint32_t cp)
{
    return (cp >= '\n' && cp <= '\r') || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

static struct jval str_splitlines(struct jin *j, struct jval self, const struct jargs *a)
{
    bool keep = jv_true(j, arg_or(a, 0, jv_bool(false)));
    struct jval list = jv_list(j, J_LIST, 0);
    const struct jstr *s = self.s;
    size_t from = 0, at = 0;

    while (at < s->n && jin_tick(j, 1)) {
        struct u8_step c = u8_step(s->v + at, s->n - at);
        size_t end = at;
        at += c.len;
        if (!ends_line(c.cp))
            continue;
        at += c.cp == '\r' && at < s->n && s->v[at] == '\n';
        push_part(j, list, self, from, keep ? at : end);
        from = at;
    }
    if (from < s->n)
        push_part(j, list, self, from, s->n);
    return list;
}

static struct jval partition(struct jin *j, struct jval self, const struct jargs *a, bool right)
{
    const struct jstr *sep = jin_want_str(j, a->v[0]);
    struct jval parts = jv_list(j, J_TUPLE, 3);
    size_t n = self.s->n, at = SIZE_MAX;

    if (jin_ok(j) && !sep->n)
        jin_fail(j, "empty separator");
    if (!jin_ok(j))
        return jv_none();
    const char *hit = memmem(self.s->v, n, sep->v, sep->n);
    if (hit)
        at = right ? find_last(j, self.s->v, n, sep) : (size_t)(hit - self.s->v);
    if (!hit && right) {
        push_part(j, parts, self, 0, 0);
        push_part(j, parts, self, 0, 0);
    }
    push_part(j, parts, self, 0, hit ? at : n);
    if (hit) {
        push_part(j, parts, self, at, at + sep->n);
        push_part(j, parts, self, at + sep->n, n);
    } else if (!right) {
        push_part(j, parts, self, 0, 0);
        push_part(j, parts, self, 0, 0);
    }
    return parts;
}

static struct jval str_partition(struct jin *j, struct jval self, const struct jargs *a)
{
    return partition(j, self, a, false);
}

static struct jval str_rpartition(struct jin *j, struct jval self, const struct jargs *a)
{
    return partition(j, self, a, true);
}

/* ---- searching ---- */

/* What start and end, the arguments from the i-th on, leave of a string; *at: where it begins, in
 * characters. False where start is behind the end. */
static bool window(struct jin *j, struct jval *s, const struct jargs *a, size_t i, int64_t *at)
{
    int64_t n = (int64_t)jstr_chars(j, s->s), from, to;
    struct jval start = arg_or(a, i, jv_none()), end = arg_or(a, i + 1, jv_none());

    from = start.kind == J_NONE ? 0 : jin_want_int(j, start);
    to = end.kind == J_NONE ? n : jin_want_int(j, end);
    from = from < 0 ? MAX(from + n, 0) : from;
    to = to < 0 ? MAX(to + n, 0) : MIN(to, n);
    *at = from;
    if (!jin_ok(j) || from > to)
        return false;
    if (from > 0 || to < n)
        *s = jin_slice(j, *s, (struct jval[]){ jv_int(from), jv_int(to), jv_none() });
    return jin_ok(j);
}

/* Index in characters; -1: not there. */
static int64_t find(struct jin *j, struct jval self, const struct jargs *a, bool right)
{
    const struct jstr *what = jin_want_str(j, a->v[0]);
    int64_t from;
    size_t at;

    if (!window(j, &self, a, 1, &from))
        return -1;
    const char *hit = memmem(self.s->v, self.s->n, what->v, what->n);
    jin_tick(j, self.s->n / 16);
    if (!hit && what->n)
        return -1;
    at = right ? find_last(j, self.s->v, self.s->n, what) : hit ? (size_t)(hit - self.s->v) : 0;
    return from + (int64_t)jstr_chars(j, &(struct jstr){ .v = self.s->v, .n = at });
}

static struct jval str_find(struct jin *j, struct jval self, const struct jargs *a)
{
    return jv_int(find(j, self, a, false));
}

static struct jval str_rfind(struct jin *j, struct jval self, const struct jargs *a)
{
    return jv_int(find(j, self, a, true));
}

static struct jval str_index(struct jin *j, struct jval self, const struct jargs *a)
{
    int64_t at = find(j, self, a, false);

    return at < 0 ? jin_fail(j, "substring not found") : jv_int(at);
}

static struct jval str_rindex(struct jin *j, struct jval self, const struct jargs *a)
{
    int64_t at = find(j, self, a, true);

    return at < 0 ? jin_fail(j, "substring not found") : jv_int(at);
}

static struct jval str_count(struct jin *j, struct jval self, const struct jargs *a)
{
    const struct jstr *what = jin_want_str(j, a->v[0]);
    int64_t from, n = 0;
    const char *s, *end;

    if (!window(j, &self, a, 1, &from))
        return jv_int(0);
    if (!what->n)
        return jv_int((int64_t)jstr_chars(j, self.s) + 1);
    s = self.s->v;
    end = s + self.s->n;
    for (; jin_tick(j, 1) && (s = memmem(s, (size_t)(end - s), what->v, what->n)); s += what->n)
        n++;
    return jv_int(n);
}

static bool has_end(const struct jstr *s, const struct jstr *end, bool right)
{
    return s->n >= end->n &&
           (!end->n || memcmp(s->v + (right ? s->n - end->n : 0), end->v, end->n) == 0);
}

static struct jval ends(struct jin *j, struct jval self, const struct jargs *a, bool right)
{
    struct jval what = a->v[0];
    int64_t from;

    if (!window(j, &self, a, 1, &from))
        return jv_bool(false);
    if (what.kind != J_TUPLE)
        return jv_bool(has_end(self.s, jin_want_str(j, what), right));
    for (size_t i = 0; i < what.l->n && jin_ok(j); i++)
        if (has_end(self.s, jin_want_str(j, what.l->v[i]), right) && jin_ok(j))
            return jv_bool(true);
    return jv_bool(false);
}

static struct jval str_startswith(struct jin *j, struct jval self, const struct jargs *a)
{
    return ends(j, self, a, false);
}

static struct jval str_endswith(struct jin *j, struct jval self, const struct jargs *a)
{
    return ends(j, self, a, true);
}

static struct jval str_removeprefix(struct jin *j, struct jval self, const struct jargs *a)
{
    const struct jstr *s = jin_want_str(j, a->v[0]);

    return has_end(self.s, s, false) ? jv_part(j, self, s->n, self.s->n - s->n) : self;
}

static struct jval str_removesuffix(struct jin *j, struct jval self, const struct jargs *a)
{
    const struct jstr *s = jin_want_str(j, a->v[0]);

    return has_end(self.s, s, true) ? jv_part(j, self, 0, self.s->n - s->n) : self;
}

/* ---- other strings ---- */

static struct jval str_strip(struct jin *j, struct jval self, const struct jargs *a)
{
    return jin_strip(j, self, a->v[0], true, true);
}

static struct jval str_lstrip(struct jin *j, struct jval self, const struct jargs *a)
{
    return jin_strip(j, self, a->v[0], true, false);
}

static struct jval str_rstrip(struct jin *j, struct jval self, const struct jargs *a)
{
    return jin_strip(j, self, a->v[0], false, true);
}

#define CASES(name, to)                                                                            \
    static struct jval str_##name(struct jin *j, struct jval self, const struct jargs *a)          \
    {                                                                                              \
        (void)a;                                                                                   \
        return jin_case(j, self, to);                                                              \
    }

CASES(upper, CASE_UPPER)
CASES(lower, CASE_LOWER)
CASES(title, CASE_TITLE)
CASES(capitalize, CASE_CAPITAL)
CASES(swapcase, CASE_SWAP)
CASES(casefold, CASE_FOLD)

static struct jval str_replace(struct jin *j, struct jval self, const struct jargs *a)
{
    const struct jstr *old = jin_want_str(j, a->v[0]);
    struct jval new = a->v[1];
    int64_t most = arg_given(a, 2) ? jin_want_int(j, a->v[2]) : -1;

    jin_want_str(j, new);
    if (jin_ok(j) && self.safe)
        new = jin_escape(j, new);
    return jin_ok(j) ? jin_replace(j, self, old, new.s, most) : jv_none();
}

static struct jval str_join(struct jin *j, struct jval self, const struct jargs *a)
{
    const struct jlist *l = jin_defined(j, a->v[0]) ? jv_items(j, a->v[0]) : NULL;
    struct str t = { 0 };

    for (size_t i = 0; jin_ok(j) && i < l->n; i++) {
        struct jval v = l->v[i];
        if (!is_str(v))
            jin_fail(j, "sequence item %zu: expected str instance, %s found", i, jv_type(v));
        if (i)
            jin_put(j, &t, self.s->v, self.s->n);
        if (jin_ok(j) && self.safe)
            v = jin_escape(j, v);
        if (jin_ok(j))
            jin_put(j, &t, v.s->v, v.s->n);
    }
    return like(self, jin_take(j, &t));
}

#define PADS(name, align)                                                                          \
    static struct jval str_##name(struct jin *j, struct jval self, const struct jargs *a)          \
    {                                                                                              \
        return jin_pad(j, self, jin_want_int(j, a->v[0]), a->v[1], align);                         \
    }

PADS(center, '^')
PADS(ljust, '<')
PADS(rjust, '>')

static struct jval str_zfill(struct jin *j, struct jval self, const struct jargs *a)
{
    int64_t width = jin_want_int(j, a->v[0]);
    size_t sign = self.s->n && (self.s->v[0] == '-' || self.s->v[0] == '+');
    struct jval zero = jv_text(j, "0"), rest = jv_part(j, self, sign, self.s->n - sign);

    if (!jin_ok(j))
        return jv_none();
    rest = jin_pad(j, rest, MIN(width, INT32_MAX) - (int64_t)sign, zero, '>');
    return jin_ok(j) ? like(self, jv_concat(j, jv_part(j, self, 0, sign), rest)) : jv_none();
}

static bool category_is(uint32_t cp, const char *letters)
{
    return strchr(letters, utf8proc_category_string((utf8proc_int32_t)cp)[0]) != NULL;
}

static bool is_alpha(uint32_t cp)
{
    return category_is(cp, "L");
}

static bool is_alnum(uint32_t cp)
{
    return category_is(cp, "LN");
}

static bool is_numeric(uint32_t cp)
{
    return category_is(cp, "N");
}

static bool is_decimal(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

/* With superscripts and digits in circles. */
static bool is_digit(uint32_t cp)
{
    return is_decimal(cp) || cp == 0xb2 || cp == 0xb3 || cp == 0xb9 ||
           (cp >= 0x2070 && cp <= 0x2089 && is_numeric(cp)) || (cp >= 0x2460 && cp <= 0x2468);
}

static bool is_ascii(uint32_t cp)
{
    return cp < 0x80;
}

#define ASKS(name, test)                                                                           \
    static struct jval str_##name(struct jin *j, struct jval self, const struct jargs *a)          \
    {                                                                                              \
        (void)a;                                                                                   \
        jin_tick(j, self.s->n / 4);                                                                \
        return jv_bool(test);                                                                      \
    }

ASKS(isalpha, jin_all(self, is_alpha))
ASKS(isalnum, jin_all(self, is_alnum))
ASKS(isnumeric, jin_all(self, is_numeric))
ASKS(isdecimal, jin_all(self, is_decimal))
ASKS(isdigit, jin_all(self, is_digit))
ASKS(isspace, jin_all(self, is_py_space))
ASKS(isascii, !self.s->n || jin_all(self, is_ascii))
ASKS(isprintable, !self.s->n || jin_all(self, jin_is_printable))
ASKS(islower, jin_is_lower(self))
ASKS(isupper, jin_is_upper(self))

static struct jval str_istitle(struct jin *j, struct jval self, const struct jargs *a)
{
    struct jval title = jin_case(j, self, CASE_TITLE);

    (void)a;
    return jv_bool(jin_ok(j) && jv_equal(j, title, self) &&
                   !jv_equal(j, jin_case(j, self, CASE_LOWER), jin_case(j, self, CASE_UPPER)));
}

static const struct jfn str_methods[] = {
    { "capitalize", "", 0, str_capitalize },
    { "casefold", "", 0, str_casefold },
    { "center", "width fillchar", 1, str_center },
    { "count", "sub start end", 1, str_count },
    { "endswith", "suffix start end", 1, str_endswith },
    { "find", "sub start end", 1, str_find },
    { "format", NULL, 0, jin_format },
    { "index", "sub start end", 1, str_index },
    { "isalnum", "", 0, str_isalnum },
    { "isalpha", "", 0, str_isalpha },
    { "isascii", "", 0, str_isascii },
    { "isdecimal", "", 0, str_isdecimal },
    { "isdigit", "", 0, str_isdigit },
    { "islower", "", 0, str_islower },
    { "isnumeric", "", 0, str_isnumeric },
    { "isprintable", "", 0, str_isprintable },
    { "isspace", "", 0, str_isspace },
    { "istitle", "", 0, str_istitle },
    { "isupper", "", 0, str_isupper },
    { "join", "iterable", 1, str_join },
    { "ljust", "width fillchar", 1, str_ljust },
    { "lower", "", 0, str_lower },
    { "lstrip", "chars", 0, str_lstrip },
    { "partition", "sep", 1, str_partition },
    { "removeprefix", "prefix", 1, str_removeprefix },
    { "removesuffix", "suffix", 1, str_removesuffix },
    { "replace", "old new count", 2, str_replace },
    { "rfind", "sub start end", 1, str_rfind },
    { "rindex", "sub start end", 1, str_rindex },
    { "rjust", "width fillchar", 1, str_rjust },
    { "rpartition", "sep", 1, str_rpartition },
    { "rsplit", "sep maxsplit", 0, str_rsplit },
    { "rstrip", "chars", 0, str_rstrip },
    { "split", "sep maxsplit", 0, str_split },
    { "splitlines", "keepends", 0, str_splitlines },
    { "startswith", "prefix start end", 1, str_startswith },
    { "strip", "chars", 0, str_strip },
    { "swapcase", "", 0, str_swapcase },
    { "title", "", 0, str_title },
    { "upper", "", 0, str_upper },
    { "zfill", "width", 1, str_zfill },
};

/* ---- lists and dicts ---- */

static struct jval list_count(struct jin *j, struct jval self, const struct jargs *a)
{
    int64_t n = 0;

    for (size_t i = 0; i < self.l->n && jin_tick(j, 1); i++)
        n += jv_equal(j, self.l->v[i], a->v[0]);
    return jv_int(n);
}

static struct jval list_index(struct jin *j, struct jval self, const struct jargs *a)
{
    for (size_t i = 0; i < self.l->n && jin_tick(j, 1); i++)
        if (jv_equal(j, self.l->v[i], a->v[0]))
            return jv_int((int64_t)i);
    return jin_fail(j, "the value is not in the list");
}

/* Nothing changes values, so that they are copies of themselves. */
static struct jval copy(struct jin *j, struct jval self, const struct jargs *a)
{
    (void)j;
    (void)a;
    return self;
}

static struct jval dict_get(struct jin *j, struct jval self, const struct jargs *a)
{
    struct jval *v = jd_find(j, self.d, a->v[0]);

    return v ? *v : arg_or(a, 1, jv_none());
}

static struct jval view(struct jin *j, struct jval self, enum jview_of of)
{
    struct jview *v = jin_alloc(j, sizeof *v);

    if (!v)
        return jv_none();
    *v = (struct jview){ self.d, of };
    return (struct jval){ .kind = J_VIEW, .view = v };
}

static struct jval dict_keys(struct jin *j, struct jval self, const struct jargs *a)
{
    (void)a;
    return view(j, self, VIEW_KEYS);
}

static struct jval dict_values(struct jin *j, struct jval self, const struct jargs *a)
{
    (void)a;
    return view(j, self, VIEW_VALUES);
}

static struct jval dict_items(struct jin *j, struct jval self, const struct jargs *a)
{
    (void)a;
    return view(j, self, VIEW_ITEMS);
}

static const struct jfn list_methods[] = {
    { "append", NULL, 0, NULL }, { "clear", NULL, 0, NULL },
    { "copy", "", 0, copy },     { "count", "value", 1, list_count },
    { "extend", NULL, 0, NULL }, { "index", "value", 1, list_index },
    { "insert", NULL, 0, NULL }, { "pop", NULL, 0, NULL },
    { "remove", NULL, 0, NULL }, { "reverse", NULL, 0, NULL },
    { "sort", NULL, 0, NULL },
};

static const struct jfn tuple_methods[] = {
    { "count", "value", 1, list_count },
    { "index", "value", 1, list_index },
};

static const struct jfn dict_methods[] = {
    { "clear", NULL, 0, NULL },
    { "copy", "", 0, copy },
    { "get", "key default", 1, dict_get },
    { "items", "", 0, dict_items },
    { "keys", "", 0, dict_keys },
    { "pop", NULL, 0, NULL },
    { "popitem", NULL, 0, NULL },
    { "setdefault", NULL, 0, NULL },
    { "update", NULL, 0, NULL },
    { "values", "", 0, dict_values },
};

/* ---- loops and cyclers ---- */

static struct jval loop_cycle(struct jin *j, struct jval self, const struct jargs *a)
{
    return a->n ? a->v[self.loop->at % a->n] : jin_fail(j, "no items for cycling given");
}

static struct jval loop_changed(struct jin *j, struct jval self, const struct jargs *a)
{
    struct jval now = jv_list(j, J_TUPLE, a->n), *last = &self.loop->changed;

    for (size_t i = 0; i < a->n && jin_ok(j); i++)
        jv_push(j, now, a->v[i]);
    if (!jin_ok(j) || (last->kind != J_MISSING && jv_equal(j, *last, now)))
        return jv_bool(false);
    *last = now;
    return jv_bool(true);
}

static struct jval cycler_next(struct jin *j, struct jval self, const struct jargs *a)
{
    struct jcycle *c = self.cycle;
    struct jval v = c->items->v[c->at];

    (void)j;
    (void)a;
    c->at = (c->at + 1) % c->items->n;
    return v;
}

static struct jval cycler_reset(struct jin *j, struct jval self, const struct jargs *a)
{
    (void)j;
    (void)a;
    self.cycle->at = 0;
    return jv_none();
}

static const struct jfn loop_methods[] = {
    { "cycle", NULL, 0, loop_cycle },
    { "changed", NULL, 0, loop_changed },
};

static const struct jfn cycler_methods[] = {
    { "next", "", 0, cycler_next },
    { "reset", "", 0, cycler_reset },
};

static const struct {
    const struct jfn *rows;
    size_t n;
} methods[J_KINDS] = {
    [J_STR] = { str_methods, ARRAY_LEN(str_methods) },
    [J_LIST] = { list_methods, ARRAY_LEN(list_methods) },
    [J_TUPLE] = { tuple_methods, ARRAY_LEN(tuple_methods) },
    [J_DICT] = { dict_methods, ARRAY_LEN(dict_methods) },
    [J_LOOP] = { loop_methods, ARRAY_LEN(loop_methods) },
    [J_CYCLER] = { cycler_methods, ARRAY_LEN(cycler_methods) },
};

const struct jfn *jin_method(struct jval self, const struct jstr *name)
{
    return jin_row(methods[self.kind].rows, methods[self.kind].n, name);
}
