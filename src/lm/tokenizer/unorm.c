#include "lm/tokenizer/unorm.h"

#include <utf8proc.h>

#include "base/mem.h"
#include "lm/tokenizer/byte_level.h"

static void step_fini(struct unorm_step *step)
{
    rx_destroy(&step->rx);
    VEC_FINI(&step->text);
}

void unorm_fini(struct unorm *u)
{
    for (size_t i = 0; i < u->n; i++)
        step_fini(&u->v[i]);
    VEC_FINI(u);
    VEC_FINI(&u->spare);
    VEC_FINI(&u->chars);
    VEC_FINI(&u->marks);
}

enum err unorm_add(struct unorm *u, struct unorm_step step)
{
    enum err err = VEC_PUSH(u, step);

    if (err != ERR_OK)
        step_fini(&step);
    return err;
}

/* ---- normal forms ---- */

#define CP_BITS 21        /* of a character */
#define DECOMPOSED_MAX 32 /* characters that one becomes; Unicode has one of 18 */

static const struct {
    int options;
    uint32_t stable; /* text of characters below this is in the form */
} forms[] = {
    [UNORM_NFC] = { UTF8PROC_STABLE | UTF8PROC_COMPOSE, 0x300 },
    [UNORM_NFD] = { UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, 0xc0 },
    [UNORM_NFKC] = { UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT, 0xa0 },
    [UNORM_NFKD] = { UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, 0xa0 },
};

/* Everything below `stable`, which is at most U+0800. */
static bool all_below(const struct str *t, uint32_t stable)
{
    for (size_t i = 0; i < t->n; i++) {
        unsigned char c = (unsigned char)t->v[i];
        if (c < 0x80)
            continue;
        if (c >= 0xe0 || ((c & 0x1fu) << 6 | ((unsigned char)t->v[++i] & 0x3fu)) >= stable)
            return false;
    }
    return true;
}

/* Decomposes text into u->chars, character by character: utf8proc's function for whole texts also
 * brings marks into order, in quadratic time. */
static enum err decompose(struct unorm *u, const struct str *text, utf8proc_option_t options)
{
    int bounds = 0;
    enum err err = ERR_OK;

    u->chars.n = 0;
    for (size_t at = 0; at < text->n;) {
        struct u8_step c = u8_step(text->v + at, text->n - at);
        TRY(VEC_RESERVE(&u->chars, DECOMPOSED_MAX));
        utf8proc_ssize_t n = utf8proc_decompose_char(
            (utf8proc_int32_t)c.cp, u->chars.v + u->chars.n, DECOMPOSED_MAX, options, &bounds);
        if (n < 0 || n > DECOMPOSED_MAX)
            return err_set(ERR_RUNTIME, "normal form: %s", utf8proc_errmsg(MIN(n, 0)));
        u->chars.n += (size_t)n;
        at += c.len;
    }
out:
    return err;
}

static int combining_class(int32_t cp)
{
    return (int)utf8proc_get_property(cp)->combining_class;
}

static int by_number(const void *pa, const void *pb)
{
    const uint64_t *a = pa, *b = pb;

    return *a < *b ? -1 : *a > *b;
}

/* Sorts n marks by their class; those of one class keep their order. A number of each says all of
 * it: class, place, character. */
static enum err sort_marks(struct unorm *u, int32_t *marks, size_t n)
{
    enum err err;

    u->marks.n = 0;
    TRY(VEC_RESERVE(&u->marks, n));
    for (size_t i = 0; i < n; i++)
        u->marks.v[i] =
            (uint64_t)combining_class(marks[i]) << 56 | (uint64_t)i << CP_BITS | (uint32_t)marks[i];
    qsort(u->marks.v, n, sizeof *u->marks.v, by_number);
    for (size_t i = 0; i < n; i++)
        marks[i] = (int32_t)(u->marks.v[i] & ((1u << CP_BITS) - 1));
out:
    return err;
}

/* Canonical order: every run of marks by their classes. */
static enum err order_marks(struct unorm *u)
{
    enum err err = ERR_OK;

    for (size_t at = 0; at < u->chars.n; at++) {
        size_t start = at;
        bool sorted = true;
        int last = 0, class;
        for (; at < u->chars.n && (class = combining_class(u->chars.v[at])); at++) {
            sorted = sorted && class >= last;
            last = class;
        }
        if (!sorted)
            TRY(sort_marks(u, u->chars.v + start, at - start));
    }
out:
    return err;
}

static enum err to_form(struct unorm *u, const struct str *text, enum unorm_kind kind)
{
    utf8proc_option_t options = (utf8proc_option_t)forms[kind].options;
    enum err err;

    if (all_below(text, forms[kind].stable))
        return str_add(&u->spare, text->v, text->n);
    TRY(decompose(u, text, options));
    TRY(order_marks(u));
    utf8proc_ssize_t n =
        utf8proc_normalize_utf32(u->chars.v, (utf8proc_ssize_t)u->chars.n, options);
    if (n < 0)
        return err_set(ERR_RUNTIME, "normal form: %s", utf8proc_errmsg(n));
    TRY(VEC_RESERVE(&u->spare, 4 * (size_t)n));
    for (utf8proc_ssize_t i = 0; i < n; i++)
        u->spare.n += u8_put(u->spare.v + u->spare.n, (uint32_t)u->chars.v[i]);
out:
    return err;
}

/* ---- others ---- */

static enum err lowercase(struct unorm *u, const struct str *text)
{
    enum err err = ERR_OK;

    for (size_t at = 0; at < text->n;) {
        struct u8_step step = u8_step(text->v + at, text->n - at);
        at += step.len;
        if (step.cp == 0x130) { /* the only character that becomes two */
            TRY(str_add(&u->spare, "i\xcc\x87", 3));
            continue;
        }
        TRY(str_add_char(&u->spare, (uint32_t)utf8proc_tolower((utf8proc_int32_t)step.cp)));
    }
out:
    return err;
}

static bool is_mark(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);

    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

static enum err strip_accents(struct unorm *u, const struct str *text)
{
    enum err err = ERR_OK;

    for (size_t at = 0; at < text->n;) {
        struct u8_step step = u8_step(text->v + at, text->n - at);
        if (!is_mark(step.cp))
            TRY(str_add(&u->spare, text->v + at, step.len));
        at += step.len;
    }
out:
    return err;
}

/* Appends to u->spare what may multiply a text; room is what the result may have. */
static enum err add_within(struct unorm *u, const struct str *more, size_t room)
{
    if (u->spare.n > room || more->n > room - u->spare.n)
        return err_set(ERR_UNSUPPORTED, "the normalizer makes a text of more than %zu bytes", room);
    return str_add(&u->spare, more->v, more->n);
}

static enum err replace(struct unorm *u, const struct str *text, const struct unorm_step *step,
                        size_t room)
{
    struct rx_iter it;
    size_t prev = 0;
    bool found;
    enum err err;

    rx_iter_init(&it, step->rx, text->v, text->n);
    for (;;) {
        TRY(rx_next(&it, &found));
        TRY(str_add(&u->spare, it.s + prev, (found ? it.start : text->n) - prev));
        if (!found)
            break;
        TRY(add_within(u, &step->text, room));
        prev = it.end;
    }
out:
    return err;
}

static enum err strip(struct unorm *u, const struct str *text, const struct unorm_step *step,
                      bool *cut)
{
    size_t from = 0, to = text->n;

    while (step->left && from < to) {
        struct u8_step c = u8_step(text->v + from, to - from);
        if (!u8_is_space(c.cp))
            break;
        from += c.len;
        *cut = true;
    }
    while (step->right && to > from) {
        size_t last = u8_last(text->v, to);
        if (!u8_is_space(u8_step(text->v + last, to - last).cp))
            break;
        to = last;
    }
    return str_add(&u->spare, text->v + from, to - from);
}

static enum err prepend(struct unorm *u, const struct str *text, const struct unorm_step *step,
                        size_t room)
{
    enum err err;

    TRY(add_within(u, &step->text, room));
    TRY(add_within(u, text, room));
out:
    return err;
}

/* From text to u->spare. */
static enum err apply_one(struct unorm *u, const struct str *text, const struct unorm_step *step,
                          size_t room, bool *cut)
{
    switch (step->kind) {
    case UNORM_LOWERCASE:
        return lowercase(u, text);
    case UNORM_STRIP_ACCENTS:
        return strip_accents(u, text);
    case UNORM_REPLACE:
        return replace(u, text, step, room);
    case UNORM_PREPEND:
        return prepend(u, text, step, room);
    case UNORM_STRIP:
        return strip(u, text, step, cut);
    case UNORM_BYTE_LEVEL:
        return byte_level_add(&u->spare, text->v, text->n);
    default:
        return to_form(u, text, step->kind);
    }
}

enum err unorm_apply(struct unorm *u, struct str *text, size_t room, bool *cut)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < u->n && text->n; i++) {
        u->spare.n = 0;
        TRY(apply_one(u, text, &u->v[i], room, cut));
        TRY(add_within(u, &(struct str){ 0 }, room));
        struct str was = *text;
        *text = u->spare;
        u->spare = was;
    }
out:
    return err;
}
