/* What strings become: cases, padding, replacement. */
#include <utf8proc.h>

#include "lm/jinja/builtin.h"

/* ---- ends ---- */

static bool strips(const struct jstr *chars, uint32_t cp)
{
    if (!chars)
        return is_py_space(cp);
    for (size_t at = 0; at < chars->n;) {
        struct u8_step c = u8_step(chars->v + at, chars->n - at);
        if (c.cp == cp)
            return true;
        at += c.len;
    }
    return false;
}

struct jval jin_strip(struct jin *j, struct jval s, struct jval chars, bool left, bool right)
{
    const struct jstr *set =
        chars.kind == J_NONE || chars.kind == J_MISSING ? NULL : jin_want_str(j, chars);
    size_t from = 0, to = s.s->n;

    while (left && from < to && jin_tick(j, 1)) {
        struct u8_step c = u8_step(s.s->v + from, to - from);
        if (!strips(set, c.cp))
            break;
        from += c.len;
    }
    while (right && to > from && jin_tick(j, 1)) {
        size_t last = from + u8_last(s.s->v + from, to - from);
        if (!strips(set, u8_step(s.s->v + last, to - last).cp))
            break;
        to = last;
    }
    return jin_ok(j) ? jv_part(j, s, from, to - from) : jv_none();
}

/* ---- cases ---- */

/* Characters that become several in upper case; the first of them is upper case in titles. */
static const struct {
    uint32_t cp;
    const char *upper, *title;
} uppers[] = {
    { 0xdf, "SS", "Ss" },
    { 0x149, "\u02bcN", "\u02bcN" },
    { 0x1f0, "J\u030c", "J\u030c" },
    { 0x587, "\u0535\u0552", "\u0535\u0582" },
    { 0xfb00, "FF", "Ff" },
    { 0xfb01, "FI", "Fi" },
    { 0xfb02, "FL", "Fl" },
    { 0xfb03, "FFI", "Ffi" },
    { 0xfb04, "FFL", "Ffl" },
    { 0xfb05, "ST", "St" },
    { 0xfb06, "ST", "St" },
};

static bool is_cased(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);

    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

static void put_upper(struct jin *j, struct str *t, uint32_t cp, bool title)
{
    for (size_t i = 0; i < ARRAY_LEN(uppers); i++)
        if (uppers[i].cp == cp) {
            jin_puts(j, t, title ? uppers[i].title : uppers[i].upper);
            return;
        }
    jin_putc(j, t,
             (uint32_t)(title ? utf8proc_totitle((utf8proc_int32_t)cp)
                              : utf8proc_toupper((utf8proc_int32_t)cp)));
}

/* A sigma at the end of a word has a form of its own. */
static bool is_final_sigma(const struct jstr *s, size_t at, bool after_cased)
{
    size_t next = at + 2;

    return after_cased && !(next < s->n && is_cased(u8_step(s->v + next, s->n - next).cp));
}

static void put_lower(struct jin *j, struct str *t, const struct jstr *s, size_t at, bool after)
{
    uint32_t cp = u8_step(s->v + at, s->n - at).cp;

    if (cp == 0x130)
        jin_puts(j, t, "i\u0307");
    else if (cp == 0x3a3)
        jin_puts(j, t, is_final_sigma(s, at, after) ? "\u03c2" : "\u03c3");
    else
        jin_putc(j, t, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

static void put_fold(struct jin *j, struct str *t, uint32_t cp)
{
    utf8proc_int32_t to[8];
    int bounds = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, to, ARRAY_LEN(to),
                                                 UTF8PROC_CASEFOLD, &bounds);

    for (utf8proc_ssize_t i = 0; i < n && i < (utf8proc_ssize_t)ARRAY_LEN(to); i++)
        jin_putc(j, t, (uint32_t)to[i]);
}

struct jval jin_case(struct jin *j, struct jval v, enum jcase to)
{
    const struct jstr *s = v.s;
    struct str t = { 0 };
    bool after = false; /* a letter that has cases */

    jin_tick(j, s->n / 4);
    for (size_t at = 0; at < s->n && jin_ok(j);) {
        struct u8_step c = u8_step(s->v + at, s->n - at);
        bool lower = utf8proc_category((utf8proc_int32_t)c.cp) == UTF8PROC_CATEGORY_LL;
        bool ups = to == CASE_UPPER || (to == CASE_SWAP && lower);
        if (to == CASE_FOLD)
            put_fold(j, &t, c.cp);
        else if ((to == CASE_TITLE && !after) || (to == CASE_CAPITAL && at == 0))
            put_upper(j, &t, c.cp, true);
        else if (ups)
            put_upper(j, &t, c.cp, false);
        else
            put_lower(j, &t, s, at, after);
        after = is_cased(c.cp);
        at += c.len;
    }
    struct jval out = jin_take(j, &t);
    out.safe = v.safe;
    return out;
}

bool jin_all(struct jval v, bool (*is)(uint32_t cp))
{
    for (size_t at = 0; at < v.s->n;) {
        struct u8_step c = u8_step(v.s->v + at, v.s->n - at);
        if (!is(c.cp))
            return false;
        at += c.len;
    }
    return v.s->n != 0;
}

/* Whether there is a cased letter, and none of a category. */
static bool has_no(struct jval v, utf8proc_category_t other)
{
    bool cased = false;

    for (size_t at = 0; at < v.s->n;) {
        struct u8_step c = u8_step(v.s->v + at, v.s->n - at);
        utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c.cp);
        if (category == other || category == UTF8PROC_CATEGORY_LT)
            return false;
        cased |= is_cased(c.cp);
        at += c.len;
    }
    return cased;
}

bool jin_is_lower(struct jval s)
{
    return has_no(s, UTF8PROC_CATEGORY_LU);
}

bool jin_is_upper(struct jval s)
{
    return has_no(s, UTF8PROC_CATEGORY_LL);
}

/* ---- replacement, padding, escapes ---- */

/* The new text between all characters, and at both ends. */
static void replace_nothing(struct jin *j, struct str *t, const struct jstr *s,
                            const struct jstr *new, int64_t most)
{
    size_t at = 0;

    for (; jin_tick(j, 1); most--) {
        if (most == 0)
            break;
        jin_put(j, t, new->v, new->n);
        if (at == s->n)
            return;
        size_t n = u8_length(s->v[at]);
        jin_put(j, t, s->v + at, n);
        at += n;
    }
    jin_put(j, t, s->v + at, s->n - at);
}

struct jval jin_replace(struct jin *j, struct jval v, const struct jstr *old,
                        const struct jstr *new, int64_t most)
{
    const char *s = v.s->v, *end = s + v.s->n, *hit;
    struct str t = { 0 };

    jin_tick(j, v.s->n / 16);
    if (old->n) {
        while (jin_tick(j, 1) && most-- != 0 &&
               (hit = memmem(s, (size_t)(end - s), old->v, old->n))) {
            jin_put(j, &t, s, (size_t)(hit - s));
            jin_put(j, &t, new->v, new->n);
            s = hit + old->n;
        }
        jin_put(j, &t, s, (size_t)(end - s));
    } else {
        replace_nothing(j, &t, v.s, new, most);
    }
    struct jval out = jin_take(j, &t);
    out.safe = v.safe;
    return out;
}

struct jval jin_pad(struct jin *j, struct jval v, int64_t width, struct jval fill, char align)
{
    int64_t n = (int64_t)jstr_chars(j, v.s), all = MAX(width - n, 0), left = 0;
    struct str t = { 0 };

    if (fill.kind != J_MISSING && jstr_chars(j, jin_want_str(j, fill)) != 1)
        return jin_fail(j, "what is filled with must be one character");
    if (align == '^') /* as str.center does it */
        left = all / 2 + (all & width & 1);
    else if (align == '>')
        left = all;
    for (int64_t i = 0; i < all + 1 && jin_tick(j, 1); i++) {
        if (i == left)
            jin_put(j, &t, v.s->v, v.s->n);
        if (i < all)
            fill.kind == J_MISSING ? jin_puts(j, &t, " ") : jin_put(j, &t, fill.s->v, fill.s->n);
    }
    struct jval out = jin_take(j, &t);
    out.safe = v.safe;
    return out;
}

struct jval jin_escape(struct jin *j, struct jval v)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {
        { '&', "&amp;" }, { '>', "&gt;" }, { '<', "&lt;" }, { '\'', "&#39;" }, { '"', "&#34;" },
    };
    struct str t = { 0 };

    if (v.safe)
        return v;
    v = jv_to_str(j, v);
    for (size_t at = 0; jin_ok(j) && at < v.s->n && jin_tick(j, 1); at++) {
        const char *entity = NULL;
        for (size_t i = 0; i < ARRAY_LEN(entities); i++)
            if (v.s->v[at] == entities[i].c)
                entity = entities[i].entity;
        entity ? jin_puts(j, &t, entity) : jin_put(j, &t, v.s->v + at, 1);
    }
    v = jin_take(j, &t);
    v.safe = true;
    return v;
}
