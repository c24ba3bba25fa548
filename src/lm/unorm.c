#include "lm/unorm.h"

#include <utf8proc.h>

#include "core/mem.h"
#include "lm/byte_level.h"

/* Steps that multiply a text, one after the other, would fill any memory. */
#define MAX_GROWTH 256

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
}

enum err unorm_add(struct unorm *u, struct unorm_step step)
{
    enum err err = VEC_PUSH(u, step);

    if (err != ERR_OK)
        step_fini(&step);
    return err;
}

/* ---- normal forms ---- */

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

/* Decomposes text into u->chars; *n is how many there are. */
static enum err decompose(struct unorm *u, const struct str *text, utf8proc_option_t options,
                          utf8proc_ssize_t *n)
{
    utf8proc_ssize_t room = (utf8proc_ssize_t)(text->n + 16);

    for (;; room = *n) { /* once more if the guess was too small */
        u->chars.n = 0;
        if (VEC_RESERVE(&u->chars, (size_t)room) != ERR_OK)
            return ERR_NO_MEMORY;
        *n = utf8proc_decompose((const utf8proc_uint8_t *)text->v, (utf8proc_ssize_t)text->n,
                                u->chars.v, (utf8proc_ssize_t)u->chars.cap, options);
        if (*n <= (utf8proc_ssize_t)u->chars.cap)
            return ERR_OK;
    }
}

static enum err to_form(struct unorm *u, const struct str *text, enum unorm_kind kind)
{
    utf8proc_option_t options = (utf8proc_option_t)forms[kind].options;
    utf8proc_ssize_t n;
    enum err err;

    if (all_below(text, forms[kind].stable))
        return str_add(&u->spare, text->v, text->n);
    TRY(decompose(u, text, options, &n));
    if (n >= 0)
        n = utf8proc_normalize_utf32(u->chars.v, n, options);
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

static enum err replace(struct unorm *u, const struct str *text, const struct unorm_step *step)
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
        TRY(str_add(&u->spare, step->text.v, step->text.n));
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

static enum err prepend(struct unorm *u, const struct str *text, const struct unorm_step *step)
{
    enum err err;

    TRY(str_add(&u->spare, step->text.v, step->text.n));
    TRY(str_add(&u->spare, text->v, text->n));
out:
    return err;
}

/* From text to u->spare. */
static enum err apply_one(struct unorm *u, const struct str *text, const struct unorm_step *step,
                          bool *cut)
{
    switch (step->kind) {
    case UNORM_LOWERCASE:
        return lowercase(u, text);
    case UNORM_STRIP_ACCENTS:
        return strip_accents(u, text);
    case UNORM_REPLACE:
        return replace(u, text, step);
    case UNORM_PREPEND:
        return prepend(u, text, step);
    case UNORM_STRIP:
        return strip(u, text, step, cut);
    case UNORM_BYTE_LEVEL:
        return byte_level_add(&u->spare, text->v, text->n);
    default:
        return to_form(u, text, step->kind);
    }
}

enum err unorm_apply(struct unorm *u, struct str *text, bool *cut)
{
    size_t limit =
        text->n > SIZE_MAX / MAX_GROWTH - 1024 ? SIZE_MAX : (text->n + 1024) * MAX_GROWTH;
    enum err err = ERR_OK;

    for (size_t i = 0; i < u->n && text->n; i++) {
        u->spare.n = 0;
        TRY(apply_one(u, text, &u->v[i], cut));
        struct str was = *text;
        *text = u->spare;
        u->spare = was;
        if (text->n > limit)
            return err_set(ERR_UNSUPPORTED, "the normalizer makes a text %d times as long",
                           MAX_GROWTH);
    }
out:
    return err;
}
