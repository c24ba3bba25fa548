#include "lm/tokenizer/pretok.h"

#include "base/mem.h"
#include "lm/tokenizer/byte_level.h"

void pieces_fini(struct pieces *p)
{
    VEC_FINI(p);
    VEC_FINI(&p->text);
}

void pieces_swap(struct pieces *a, struct pieces *b)
{
    struct pieces was = *a;

    *a = *b;
    *b = was;
}

static void step_fini(struct pretok_step *step)
{
    rx_destroy(&step->rx);
    VEC_FINI(&step->text);
}

void pretok_fini(struct pretok *p)
{
    for (size_t i = 0; i < p->n; i++)
        step_fini(&p->v[i]);
    VEC_FINI(p);
    VEC_FINI(&p->spans);
    pieces_fini(&p->spare);
}

enum err pretok_add(struct pretok *p, struct pretok_step step)
{
    enum err err = VEC_PUSH(p, step);

    if (err != ERR_OK)
        step_fini(&step);
    return err;
}

enum err pretok_add_split(struct pretok *p, const char *pattern, size_t n, unsigned rx_flags,
                          enum pretok_behavior behavior)
{
    struct pretok_step step = { .kind = PRETOK_SPLIT, .behavior = behavior };
    enum err err = rx_create(&step.rx, pattern, n, rx_flags);

    return err == ERR_OK ? pretok_add(p, step) : err;
}

/* ---- splitting ---- */

static enum err add_span(struct pretok *p, size_t start, size_t end, bool match)
{
    return VEC_PUSH(&p->spans, (struct pretok_span){ start, end, match });
}

/* The whole of s as matches and what is between them. */
static enum err find_spans(struct pretok *p, const struct pretok_step *step, const char *s,
                           size_t n)
{
    struct rx_iter it;
    size_t prev = 0;
    bool found;
    enum err err;

    p->spans.n = 0;
    rx_iter_init(&it, step->rx, s, n);
    for (;;) {
        TRY(rx_next(&it, &found));
        size_t start = found ? it.start : n;
        if (start > prev)
            TRY(add_span(p, prev, start, step->invert));
        if (!found)
            break;
        TRY(add_span(p, it.start, it.end, !step->invert));
        prev = it.end;
    }
out:
    return err;
}

/* Joins spans as the behavior says, in place. */
static void join_spans(struct pretok *p, enum pretok_behavior behavior)
{
    struct pretok_span *v = p->spans.v;
    size_t kept = 0;
    bool previous = false;

    for (size_t i = 0; i < p->spans.n; i++) {
        bool join =
            behavior == PRETOK_CONTIGUOUS ? v[i].match == previous : v[i].match && !previous;
        previous = v[i].match;
        if (join && kept)
            v[kept - 1].end = v[i].end;
        else
            v[kept++] = v[i];
    }
    p->spans.n = kept;
}

/* The same from the right, where a match joins what follows it. */
static void join_next(struct pretok *p)
{
    struct pretok_span *v = p->spans.v;
    size_t n = p->spans.n, kept = n;
    bool previous = false;

    for (size_t i = n; i-- > 0;) {
        bool join = v[i].match && !previous;
        previous = v[i].match;
        if (join && kept < n)
            v[kept].start = v[i].start;
        else
            v[--kept] = v[i];
    }
    if (n > kept && kept)
        memmove(v, v + kept, (n - kept) * sizeof *v);
    p->spans.n = n - kept;
}

static enum err split_piece(struct pretok *p, const struct pretok_step *step, struct piece piece,
                            const char *text)
{
    enum err err;

    TRY(find_spans(p, step, text + piece.off, piece.len));
    if (step->behavior == PRETOK_CONTIGUOUS || step->behavior == PRETOK_MERGED_WITH_PREVIOUS)
        join_spans(p, step->behavior);
    else if (step->behavior == PRETOK_MERGED_WITH_NEXT)
        join_next(p);
    TRY(VEC_RESERVE(&p->spare, p->spans.n));
    for (size_t i = 0; i < p->spans.n; i++) {
        const struct pretok_span *s = &p->spans.v[i];
        if (s->end == s->start || (s->match && step->behavior == PRETOK_REMOVED))
            continue;
        p->spare.v[p->spare.n++] = (struct piece){ piece.off + s->start, s->end - s->start, -1,
                                                   piece.first && s->start == 0 };
    }
out:
    return err;
}

/* ---- steps that change the text ---- */

static bool begins_with(const char *s, size_t n, const char *with, size_t n_with)
{
    return n >= n_with && memcmp(s, with, n_with) == 0;
}

static enum err add_metaspace(struct str *out, const struct pretok_step *step, struct piece piece,
                              const char *s)
{
    bool put = step->prepend == PRETOK_PREPEND_ALWAYS ||
               (step->prepend == PRETOK_PREPEND_FIRST && piece.first);
    enum err err = ERR_OK;

    if (put && s[0] != ' ' && !begins_with(s, piece.len, step->text.v, step->text.n))
        TRY(str_add(out, step->text.v, step->text.n));
    for (size_t at = 0, end; at < piece.len; at = end) {
        const char *space = memchr(s + at, ' ', piece.len - at);
        end = space ? (size_t)(space - s) : piece.len;
        TRY(str_add(out, s + at, end - at));
        if (space)
            TRY(str_add(out, step->text.v, step->text.n));
        end += space != NULL;
    }
out:
    return err;
}

static enum err rewrite_piece(struct pretok *p, const struct pretok_step *step, struct piece piece,
                              const char *s)
{
    struct str *out = &p->spare.text;
    size_t off = out->n;
    enum err err = ERR_OK;

    if (piece.id >= 0) {
        piece.len = 0;
    } else if (step->kind == PRETOK_BYTE_LEVEL) {
        TRY(byte_level_add(out, s, piece.len));
    } else if (step->kind == PRETOK_METASPACE) {
        TRY(add_metaspace(out, step, piece, s));
    } else {
        if (s[0] != ' ')
            TRY(str_add(out, " ", 1));
        TRY(str_add(out, s, piece.len));
    }
    piece.off = off;
    if (piece.id < 0)
        piece.len = out->n - off;
    TRY(VEC_PUSH(&p->spare, piece));
out:
    return err;
}

/* ---- all steps ---- */

static enum err apply_split(struct pretok *p, const struct pretok_step *step,
                            const struct pieces *pieces)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < pieces->n; i++) {
        if (pieces->v[i].id >= 0)
            TRY(VEC_PUSH(&p->spare, pieces->v[i]));
        else
            TRY(split_piece(p, step, pieces->v[i], pieces->text.v));
    }
out:
    return err;
}

static enum err apply_rewrite(struct pretok *p, const struct pretok_step *step,
                              const struct pieces *pieces, size_t room)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < pieces->n; i++) {
        const struct piece *piece = &pieces->v[i];
        TRY(rewrite_piece(p, step, *piece, piece->id < 0 ? pieces->text.v + piece->off : ""));
        if (p->spare.text.n > room) /* a step makes at most four times as much of a piece */
            return err_set(ERR_UNSUPPORTED, "the pre-tokenizer makes a text of more than %zu bytes",
                           room);
    }
out:
    return err;
}

enum err pretok_apply(struct pretok *p, struct pieces *pieces, size_t room)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < p->n; i++) {
        pieces_clear(&p->spare);
        if (p->v[i].kind == PRETOK_SPLIT) {
            TRY(apply_split(p, &p->v[i], pieces));
            /* the pieces are of the same text */
            struct str text = p->spare.text;
            p->spare.text = pieces->text;
            pieces->text = text;
        } else {
            TRY(apply_rewrite(p, &p->v[i], pieces, room));
        }
        pieces_swap(&p->spare, pieces);
    }
out:
    return err;
}
