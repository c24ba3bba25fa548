#include "lm/tokenizer/detok.h"

#include "base/mem.h"
#include "lm/tokenizer/byte_level.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Steps that replace, one after the other, would fill any memory. */
#define MAX_GROWTH 64
#define GROWTH_FREE 256

static void step_fini(struct detok_step *step)
{
    rx_destroy(&step->rx);
    VEC_FINI(&step->text);
}

void detok_fini(struct detok *d)
{
    for (size_t i = 0; i < d->n; i++)
        step_fini(&d->step[i]);
    d->n = 0;
}

enum err detok_add(struct detok *d, struct detok_step step)
{
    if (d->n == DETOK_STEPS_MAX) {
        step_fini(&step);
        return err_set(ERR_UNSUPPORTED, "more than %d decoders", DETOK_STEPS_MAX);
    }
    for (size_t i = 0; i < d->n; i++)
        step.whole =
            step.whole || d->step[i].kind == DETOK_FUSE || d->step[i].kind == DETOK_BYTE_LEVEL;
    d->step[d->n++] = step;
    return ERR_OK;
}

void detok_state_fini(struct detok_state *s)
{
    for (size_t i = 0; i < DETOK_STEPS_MAX; i++)
        VEC_FINI(&s->step[i].held);
    *s = (struct detok_state){ 0 };
}

/* ---- one token through the steps from `at` on ---- */

struct run {
    const struct detok *d;
    struct detok_state *s;
    struct str *out;
    size_t room; /* bytes that replacing may still make */
};

static struct run new_run(const struct detok *d, struct detok_state *s, struct str *out, size_t n)
{
    bool fits = n < SIZE_MAX / MAX_GROWTH - GROWTH_FREE;

    return (struct run){ d, s, out, fits ? (n + GROWTH_FREE) * MAX_GROWTH : SIZE_MAX };
}

static enum err push(struct run *r, size_t at, const char *s, size_t n);

static enum err pass(struct run *r, size_t at, const char *s, size_t n)
{
    return push(r, at + 1, s, n);
}

/* Passes text on and releases it. */
static enum err pass_str(struct run *r, size_t at, struct str *text)
{
    enum err err = pass(r, at, text->v ? text->v : "", text->n);

    VEC_FINI(text);
    return err;
}

static enum err push_join(struct run *r, size_t at, const char *s, size_t n)
{
    struct detok_memory *m = &r->s->step[at];
    enum err err;

    if (m->begun)
        TRY(pass(r, at, " ", 1));
    m->begun = true;
    TRY(pass(r, at, s, n));
out:
    return err;
}

/* The bytes of a token, which stands for itself if a character is not of the alphabet. */
static enum err add_level_bytes(struct str *out, const char *s, size_t n)
{
    size_t was = out->n;
    enum err err = VEC_RESERVE(out, n);

    for (size_t i = 0; err == ERR_OK && i < n;) {
        struct u8_step c = u8_step(s + i, n - i);
        int byte = c.kind == U8_CHAR ? byte_level_byte(c.cp) : -1;
        if (byte < 0) {
            out->n = was;
            return str_add(out, s, n);
        }
        out->v[out->n++] = (char)byte;
        i += c.len;
    }
    return err;
}

/* Passes on what is complete of the bytes held; everything at the end. */
static enum err pass_complete(struct run *r, size_t at, bool end)
{
    struct detok_memory *m = &r->s->step[at];
    struct str text = { 0 };
    size_t done = 0;
    enum err err = ERR_OK;

    while (done < m->held.n) {
        struct u8_step c = u8_step(m->held.v + done, m->held.n - done);
        if (c.kind == U8_PART && !end)
            break;
        done += c.len;
    }
    TRY(str_add_lossy(&text, m->held.v, done));
    if (done && done < m->held.n)
        memmove(m->held.v, m->held.v + done, m->held.n - done);
    m->held.n -= done;
    if (text.n)
        TRY(pass(r, at, text.v, text.n));
out:
    VEC_FINI(&text);
    return err;
}

static enum err push_byte_level(struct run *r, size_t at, const char *s, size_t n)
{
    enum err err;

    TRY(add_level_bytes(&r->s->step[at].held, s, n));
    TRY(pass_complete(r, at, false));
out:
    return err;
}

/* ---- <0xNN> ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int byte_token(const char *s, size_t n)
{
    if (n != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>' || hex(s[3]) < 0 || hex(s[4]) < 0)
        return -1;
    return hex(s[3]) << 4 | hex(s[4]);
}

/* A run of bytes is text only if it is so as a whole; else every byte is lost. */
static enum err pass_bytes(struct run *r, size_t at)
{
    struct str bytes = r->s->step[at].held;
    enum err err = ERR_OK;

    r->s->step[at].held = (struct str){ 0 };
    if (bytes.n && u8_valid(bytes.v, bytes.n))
        return pass_str(r, at, &bytes);
    for (size_t i = 0; i < bytes.n; i++)
        TRY(pass(r, at, REPLACEMENT, 3));
out:
    VEC_FINI(&bytes);
    return err;
}

static enum err push_byte_fallback(struct run *r, size_t at, const char *s, size_t n)
{
    int byte = byte_token(s, n);
    char c = (char)byte;
    enum err err;

    if (byte >= 0)
        return str_add(&r->s->step[at].held, &c, 1);
    TRY(pass_bytes(r, at));
    TRY(pass(r, at, s, n));
out:
    return err;
}

/* ---- replacing and stripping ---- */

static enum err pass_replaced(struct run *r, size_t at, const char *s, size_t n)
{
    const struct detok_step *step = &r->d->step[at];
    struct str text = { 0 };
    struct rx_iter it;
    size_t prev = 0;
    bool found;
    enum err err;

    rx_iter_init(&it, step->rx, s, n);
    for (;;) {
        TRY(rx_next(&it, &found));
        TRY(str_add(&text, s + prev, (found ? it.start : n) - prev));
        if (!found)
            break;
        if (step->text.n > r->room)
            TRY(err_set(ERR_UNSUPPORTED, "the decoder makes %d times as much of a text",
                        MAX_GROWTH));
        r->room -= step->text.n;
        TRY(str_add(&text, step->text.v, step->text.n));
        prev = it.end;
    }
    return pass_str(r, at, &text);
out:
    VEC_FINI(&text);
    return err;
}

static enum err push_metaspace(struct run *r, size_t at, const char *s, size_t n)
{
    const struct detok_step *step = &r->d->step[at];
    struct detok_memory *m = &r->s->step[at];
    bool drop = step->drop_first && (!m->begun || step->whole);
    struct str text = { 0 };
    enum err err = ERR_OK;

    for (size_t i = 0; i < n;) {
        struct u8_step c = u8_step(s + i, n - i);
        if (c.cp != step->cp)
            TRY(str_add(&text, s + i, c.len));
        else if (!drop)
            TRY(str_add(&text, " ", 1));
        i += c.len;
    }
    m->begun = true;
    return pass_str(r, at, &text);
out:
    VEC_FINI(&text);
    return err;
}

/* How far the first characters are to be stripped, up to `max` of them; counts them in *cut. */
static size_t strip_start(const char *s, size_t n, uint32_t cp, size_t max, size_t *cut)
{
    size_t at = 0;

    while (at < n && *cut < max) {
        struct u8_step c = u8_step(s + at, n - at);
        if (c.cp != cp)
            break;
        at += c.len;
        ++*cut;
    }
    return at;
}

static size_t strip_end(const char *s, size_t n, uint32_t cp, size_t max)
{
    for (size_t cut = 0; n > 0 && cut < max; cut++) {
        size_t last = u8_last(s, n);
        if (u8_step(s + last, n - last).cp != cp)
            break;
        n = last;
    }
    return n;
}

static enum err push_strip(struct run *r, size_t at, const char *s, size_t n)
{
    const struct detok_step *step = &r->d->step[at];
    struct detok_memory *m = &r->s->step[at];
    struct str text = { 0 };
    size_t cut = 0, from;
    char bytes[4];
    enum err err = ERR_OK;

    if (!step->whole) {
        from = strip_start(s, n, step->cp, step->start, &cut);
        return pass(r, at, s + from, strip_end(s + from, n - from, step->cp, step->stop));
    }
    /* One token from here to the end: its start is stripped once, and what may be its end waits. */
    from = m->past_cut ? 0 : strip_start(s, n, step->cp, step->start, &m->cut);
    m->past_cut = m->past_cut || from < n;
    size_t to = from + strip_end(s + from, n - from, step->cp, step->stop);
    size_t tail = (n - to) / u8_put(bytes, step->cp);
    size_t kept = to > from ? 0 : MIN(m->tail, step->stop - tail);
    for (; m->tail > kept; m->tail--)
        TRY(str_add_char(&text, step->cp));
    m->tail += tail;
    TRY(str_add(&text, s + from, to - from));
    if (text.n)
        return pass_str(r, at, &text);
out:
    VEC_FINI(&text);
    return err;
}

/* Steps that decide by the whole of a token. */
static bool waits(const struct detok_step *step)
{
    return step->whole && (step->kind == DETOK_REPLACE || step->kind == DETOK_BYTE_LEVEL ||
                           step->kind == DETOK_BYTE_FALLBACK);
}

static enum err take(struct run *r, size_t at, const char *s, size_t n)
{
    switch (r->d->step[at].kind) {
    case DETOK_JOIN:
        return push_join(r, at, s, n);
    case DETOK_BYTE_LEVEL:
        return push_byte_level(r, at, s, n);
    case DETOK_BYTE_FALLBACK:
        return push_byte_fallback(r, at, s, n);
    case DETOK_REPLACE:
        return pass_replaced(r, at, s, n);
    case DETOK_STRIP:
        return push_strip(r, at, s, n);
    case DETOK_METASPACE:
        return push_metaspace(r, at, s, n);
    default:
        return pass(r, at, s, n);
    }
}

static enum err push(struct run *r, size_t at, const char *s, size_t n)
{
    if (at == r->d->n)
        return str_add(r->out, s, n);
    if (waits(&r->d->step[at]))
        return str_add(&r->s->step[at].held, s, n);
    return take(r, at, s, n);
}

/* What the step held back; the tail of DETOK_STRIP is now the end that it cuts off. */
static enum err finish(struct run *r, size_t at)
{
    const struct detok_step *step = &r->d->step[at];
    struct str held = { 0 };
    enum err err = ERR_OK;

    if (waits(step)) {
        held = r->s->step[at].held;
        r->s->step[at].held = (struct str){ 0 };
        TRY(take(r, at, held.v ? held.v : "", held.n));
    }
    if (step->kind == DETOK_BYTE_FALLBACK)
        TRY(pass_bytes(r, at));
    if (step->kind == DETOK_BYTE_LEVEL)
        TRY(pass_complete(r, at, true));
out:
    VEC_FINI(&held);
    return err;
}

enum err detok_push(const struct detok *d, struct detok_state *s, const char *token, size_t n,
                    struct str *out)
{
    struct run r = new_run(d, s, out, n);

    return push(&r, 0, token, n);
}

enum err detok_end(const struct detok *d, struct detok_state *s, struct str *out)
{
    size_t held = 0;
    enum err err = ERR_OK;

    for (size_t i = 0; i < d->n; i++)
        held += s->step[i].held.n;
    struct run r = new_run(d, s, out, held);
    for (size_t i = 0; i < d->n; i++)
        TRY(finish(&r, i));
out:
    detok_state_fini(s);
    return err;
}
