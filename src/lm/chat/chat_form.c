/* From a template's text to the number of what it does.
 *
 * The text is cut into tags and the text between them as Jinja does with the settings that
 * transformers gives it (trim_blocks, lstrip_blocks), and tags into tokens; the number is a hash of
 * the sequence. Two templates of the same number render the same messages to the same text. */
#include "lm/chat/chat_family.h"

#include "base/mem.h"

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

/* A literal is held back until it is known that no other is added to it. */
enum pending { NOTHING, LITERAL, LITERAL_PLUS };

struct scan {
    uint64_t hash;
    enum pending pending;
    struct str literal;
    struct str *system;
    bool has_system;
    bool item_may_follow; /* a dot would begin the name of an item */
};

static void mix(struct scan *sc, char kind, const char *s, size_t n)
{
    sc->hash = (sc->hash ^ (unsigned char)kind) * FNV_PRIME;
    for (size_t i = 0; i < n; i++)
        sc->hash = (sc->hash ^ (unsigned char)s[i]) * FNV_PRIME;
    sc->hash = (sc->hash ^ 0xff) * FNV_PRIME; /* in no UTF-8 text: the end */
}

/* ---- tokens ---- */

static bool begins(const char *s, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(s, with, strlen(with)) == 0;
}

/* The system message where there is none: a whole turn in one literal. */
static bool is_system_turn(const struct scan *sc, size_t *from, size_t *to)
{
    static const char open[] = "<|im_start|>system\n", close[] = "<|im_end|>\n";
    const struct str *l = &sc->literal;
    size_t n_open = strlen(open), n_close = strlen(close);

    *from = n_open;
    *to = l->n - n_close;
    return !sc->has_system && l->n > n_open + n_close && begins(l->v, l->n, open) &&
           begins(l->v + *to, n_close, close) &&
           !memmem(l->v + n_open, *to - n_open, "<|im_", strlen("<|im_"));
}

static enum err flush(struct scan *sc)
{
    size_t from, to;
    enum err err = ERR_OK;

    if (sc->pending == NOTHING)
        return ERR_OK;
    if (is_system_turn(sc, &from, &to)) {
        TRY(str_add(sc->system, sc->literal.v + from, to - from));
        sc->has_system = true;
        mix(sc, 'd', NULL, 0);
    } else {
        mix(sc, 's', sc->literal.v, sc->literal.n);
    }
    if (sc->pending == LITERAL_PLUS)
        mix(sc, 'o', "+", 1);
    sc->pending = NOTHING;
    sc->literal.n = 0;
out:
    return err;
}

/* s is behind the opening quote; *end is behind the closing one. */
static enum err take_literal(struct scan *sc, const char *s, char quote, const char **end)
{
    enum err err = ERR_OK;

    for (; *s && *s != quote; s++) {
        char c = *s;
        if (c == '\\' && s[1]) {
            c = *++s;
            c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
            if (!strchr("ntr\\'\"", *s))
                TRY(str_add(&sc->literal, "\\", 1));
        }
        TRY(str_add(&sc->literal, &c, 1));
    }
    sc->pending = LITERAL;
    sc->item_may_follow = false;
    *end = *s ? s + 1 : s;
out:
    return err;
}

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t word_length(const char *s)
{
    size_t n = 0;

    while (is_word(s[n]))
        n++;
    return n;
}

static enum err take_word(struct scan *sc, const char *s, size_t n)
{
    enum err err;

    TRY(flush(sc));
    mix(sc, 'w', s, n);
    sc->item_may_follow = true;
out:
    return err;
}

/* a.b is a['b'], unless it is called. */
static bool is_item(const struct scan *sc, const char *s)
{
    size_t n = word_length(s + 1);

    return *s == '.' && sc->item_may_follow && n && s[1 + n + strspn(s + 1 + n, " ")] != '(';
}

static enum err take_operator(struct scan *sc, const char *s)
{
    enum err err = ERR_OK;

    if (*s == '+' && sc->pending == LITERAL) {
        sc->pending = LITERAL_PLUS;
        return ERR_OK;
    }
    TRY(flush(sc));
    mix(sc, 'o', s, 1);
    sc->item_may_follow = *s == ']' || *s == ')';
out:
    return err;
}

/* One token at s, which is no white space; *end is behind it. */
static enum err take_token(struct scan *sc, const char *s, const char **end)
{
    size_t n = word_length(s);
    enum err err;

    if (*s == '\'' || *s == '"')
        return take_literal(sc, s + 1, *s, end);
    if (n) {
        *end = s + n;
        return take_word(sc, s, n);
    }
    if (!is_item(sc, s)) {
        *end = s + 1;
        return take_operator(sc, s);
    }
    n = word_length(s + 1);
    TRY(flush(sc));
    mix(sc, 'o', "[", 1);
    mix(sc, 's', s + 1, n);
    mix(sc, 'o', "]", 1);
    *end = s + 1 + n;
out:
    return err;
}

/* ---- tags ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A tag's beginning: {{ {% or {#; NULL if there is no other. */
static const char *find_tag(const char *s)
{
    while ((s = strchr(s, '{')) && s[1] != '{' && s[1] != '%' && s[1] != '#')
        s++;
    return s;
}

/* {% generation %} and its end mark answers for those who train. */
static bool is_mark(const char *s)
{
    size_t n;

    s += strspn(s, " \t\r\n");
    n = word_length(s);
    return (n == 10 && begins(s, n, "generation")) || (n == 13 && begins(s, n, "endgeneration"));
}

struct tag {
    char kind;   /* the second character: { % # */
    bool strips; /* ended with a minus */
};

/* s is behind the two characters that begin the tag; *end is behind it. */
static enum err take_tag(struct scan *sc, const char *s, struct tag *tag, const char **end)
{
    char close = (char)(tag->kind == '{' ? '}' : tag->kind);
    enum err err = ERR_OK;

    if (*s == '-' || *s == '+')
        s++;
    bool is_code = tag->kind != '#' && !(tag->kind == '%' && is_mark(s));
    if (is_code)
        mix(sc, tag->kind, NULL, 0);
    sc->item_may_follow = false;
    while (*s && !(s[0] == close && s[1] == '}')) {
        tag->strips = s[0] == '-' && s[1] == close && s[2] == '}';
        if (!is_code || tag->strips || is_space(*s))
            s++;
        else
            TRY(take_token(sc, s, &s));
    }
    TRY(flush(sc));
    *end = *s ? s + 2 : s;
out:
    return err;
}

/* The text from s to the tag at `to`, or to the end, as it is written out. */
static void take_text(struct scan *sc, const char *s, const char *to, const struct tag *before)
{
    bool is_end = !*to, is_line_tag = !is_end && to[1] != '{';
    const char *first = s;

    if (before->strips)
        while (s < to && is_space(*s))
            s++;
    else if (before->kind && before->kind != '{' && s < to && *s == '\n')
        s++;
    if (!is_end && to[2] == '-') {
        while (to > s && is_space(to[-1]))
            to--;
    } else if (is_line_tag && to[2] != '+') {
        const char *line = to;
        while (line > s && (line[-1] == ' ' || line[-1] == '\t'))
            line--;
        if ((line == first && !before->kind) || (line > first && line[-1] == '\n'))
            to = line; /* only blanks stand before the tag in its line */
    } else if (is_end && to > s && to[-1] == '\n') {
        to--;
    }
    if (to > s)
        mix(sc, 't', s, (size_t)(to - s));
}

enum err chat_form(uint64_t *form, const char *text, struct str *system)
{
    struct scan sc = { .hash = FNV_START, .system = system };
    struct tag tag = { 0 };
    const char *next;
    enum err err = ERR_OK;

    while ((next = find_tag(text))) {
        take_text(&sc, text, next, &tag);
        tag = (struct tag){ .kind = next[1] };
        TRY(take_tag(&sc, next + 2, &tag, &text));
    }
    take_text(&sc, text, text + strlen(text), &tag);
    *form = sc.hash;
out:
    VEC_FINI(&sc.literal);
    return err;
}
