#include "lm/str.h"

#include "base/mem.h"

enum err str_add(struct str *t, const void *bytes, size_t n)
{
    enum err err = VEC_RESERVE(t, n);

    if (err == ERR_OK && n) {
        memcpy(t->v + t->n, bytes, n);
        t->n += n;
    }
    return err;
}

enum err str_add_text(struct str *t, const char *text)
{
    return str_add(t, text, strlen(text));
}

enum err str_add_char(struct str *t, uint32_t cp)
{
    char bytes[4];

    return str_add(t, bytes, u8_put(bytes, cp));
}

enum err str_add_lossy(struct str *t, const char *bytes, size_t n)
{
    size_t good = 0;
    enum err err = ERR_OK;

    for (size_t at = 0; at < n;) {
        struct u8_step step = u8_step(bytes + at, n - at);
        if (step.kind != U8_CHAR) {
            TRY(str_add(t, bytes + good, at - good));
            TRY(str_add_char(t, 0xfffd));
            good = at + step.len;
        }
        at += step.len;
    }
    if (good < n)
        TRY(str_add(t, bytes + good, n - good));
out:
    return err;
}

/* Which second bytes may follow a first one: the ends exclude overlong forms, surrogates and what
 * is beyond U+10FFFF. */
static void second_range(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
}

struct u8_step u8_step(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    struct u8_step bad = { .kind = U8_BAD, .len = 1 };
    unsigned char low, high;

    if (p[0] < 0x80)
        return (struct u8_step){ p[0], U8_CHAR, 1 };
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return bad;

    size_t len = u8_length(s[0]);
    uint32_t cp = p[0] & (0x7fu >> len);
    second_range(p[0], &low, &high);
    for (size_t i = 1; i < len; i++) {
        if (i == n)
            return (struct u8_step){ 0, U8_PART, n };
        if (p[i] < low || p[i] > high)
            return (struct u8_step){ 0, U8_BAD, i };
        cp = cp << 6 | (p[i] & 0x3fu);
        low = 0x80;
        high = 0xbf;
    }
    return (struct u8_step){ cp, U8_CHAR, len };
}

bool u8_valid(const char *s, size_t n)
{
    for (size_t at = 0; at < n;) {
        struct u8_step c = u8_step(s + at, n - at);
        if (c.kind != U8_CHAR)
            return false;
        at += c.len;
    }
    return true;
}

size_t u8_last(const char *s, size_t n)
{
    size_t at = n - 1;

    while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80)
        at--;
    return at;
}

size_t u8_put(char *out, uint32_t cp)
{
    size_t len = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const unsigned char first[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };

    for (size_t i = len - 1; i > 0; i--, cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)(first[len] | cp);
    return len;
}

bool u8_is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || cp == 0x20 || cp == 0x85 || cp == 0xa0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f ||
           cp == 0x205f || cp == 0x3000;
}
