#include <ctype.h>

#include "ops/einsum.h"

/* Subscripts without blanks, in parts that are borrowed from the caller's text. */
struct reader {
    const char *op; /* for errors */
    struct einsum *e;
    struct arrs operands;
    const char *text;             /* owned */
    uint8_t spare[EINSUM_LABELS]; /* labels that the text does not use: a to z, then A to Z */
    int n_spare;
    int dots; /* the most axes that an ellipsis stands for */
};

struct part {
    const char *v;
    int n;
};

static int label_of(char c)
{
    return isupper((unsigned char)c) ? c - 'A' : 26 + c - 'a';
}

static void find_spare(struct reader *r)
{
    uint64_t used = 0;

    for (const char *c = r->text; *c; c++)
        if (isalpha((unsigned char)*c))
            used |= einsum_bit(label_of(*c));
    for (int i = 0; i < EINSUM_LABELS; i++) {
        int label = (i + 26) % EINSUM_LABELS;
        if (!(used & einsum_bit(label)))
            r->spare[r->n_spare++] = (uint8_t)label;
    }
}

static enum err add_label(struct einsum_term *t, int label, const char *op)
{
    if (t->n == SHP_MAX)
        return err_set(ERR_ARG, "[%s] Arrays have at most %d dimensions.", op, SHP_MAX);
    t->label[t->n++] = (uint8_t)label;
    t->set |= einsum_bit(label);
    return ERR_OK;
}

/* An ellipsis for n axes: the last n of the spare labels, so that they align to the right. */
static enum err add_dots(struct reader *r, struct einsum_term *t, int n)
{
    enum err err = ERR_OK;

    if (n > r->n_spare)
        return err_set(ERR_ARG, "[%s] There are not enough letters for the %d axes of an ellipsis.",
                       r->op, n);
    for (int i = r->n_spare - n; i < r->n_spare; i++)
        TRY(add_label(t, r->spare[i], r->op));
out:
    return err;
}

/* How many letters a part has, and where its ellipsis is (-1: nowhere). */
static enum err check_part(const struct reader *r, struct part p, int *letters, int *dots)
{
    *letters = 0;
    *dots = -1;
    for (int i = 0; i < p.n; i++) {
        if (isalpha((unsigned char)p.v[i])) {
            ++*letters;
            continue;
        }
        if (i + 2 >= p.n || strncmp(p.v + i, "...", 3) != 0)
            return err_set(ERR_ARG, "[%s] Subscripts must be letters, but got '%c'.", r->op,
                           p.v[i]);
        if (*dots >= 0)
            return err_set(ERR_ARG,
                           "[%s] Only one ellipsis per subscript is allowed but found more in "
                           "'%.*s'.",
                           r->op, p.n, p.v);
        *dots = i;
        i += 2;
    }
    return ERR_OK;
}

/* n_dots: how many axes an ellipsis stands for. */
static enum err read_part(struct reader *r, struct einsum_term *t, struct part p, int n_dots)
{
    enum err err = ERR_OK;

    for (int i = 0; i < p.n; i++)
        if (p.v[i] != '.') {
            TRY(add_label(t, label_of(p.v[i]), r->op));
        } else {
            TRY(add_dots(r, t, n_dots));
            i += 2;
        }
out:
    return err;
}

/* ---- operands ---- */

static enum err note_sizes(struct reader *r, size_t at)
{
    const struct einsum_term *t = &r->e->in[at];
    const struct arr *a = r->operands.v[at];
    struct shp shape;
    uint64_t seen = 0;

    arr_shape(&shape, a);
    for (int i = 0; i < t->n; i++) {
        int32_t *size = &r->e->size[t->label[i]];
        for (int j = 0; seen & einsum_bit(t->label[i]) && j < i; j++)
            if (t->label[j] == t->label[i] && a->shape[j] != a->shape[i])
                return err_set(ERR_ARG,
                               "[%s] Dimensions of repeated subscripts do not have the same size "
                               "(%d != %d).",
                               r->op, a->shape[j], a->shape[i]);
        seen |= einsum_bit(t->label[i]);
        if (*size < 0 || *size == 1)
            *size = a->shape[i];
        else if (a->shape[i] != 1 && a->shape[i] != *size)
            return err_set(ERR_ARG,
                           "[%s] Cannot broadcast dimension %d of input %zu with shape %s to size "
                           "%d.",
                           r->op, i, at, shp_text(&shape), *size);
    }
    return ERR_OK;
}

static enum err read_operand(struct reader *r, size_t at, struct part p)
{
    const struct arr *a = r->operands.v[at];
    struct einsum_term *t = &r->e->in[at];
    int letters, dots, rest = 0;
    struct shp shape;
    enum err err;

    arr_shape(&shape, a);
    TRY(check_part(r, p, &letters, &dots));
    if (dots >= 0 && (rest = a->ndim - letters) < 0)
        return err_set(ERR_ARG,
                       "[%s] Operand %zu with shape %s has insufficient dimensions for subscript "
                       "'%.*s'. The ellipsis requires at least %d dimensions but the operand has "
                       "%d dimensions.",
                       r->op, at, shp_text(&shape), p.n, p.v, letters, a->ndim);
    TRY(read_part(r, t, p, rest));
    r->dots = MAX(r->dots, rest);
    if (t->n != a->ndim)
        return err_set(ERR_ARG,
                       "[%s] Invalid number of subscripts %d for input %zu with %d dimensions.",
                       r->op, t->n, at, a->ndim);
    TRY(note_sizes(r, at));
out:
    return err;
}

/* Parts between commas, which may be empty: those of a scalar are. */
static size_t count_parts(const char *v, const char *end)
{
    size_t n = 1;

    for (; v < end; v++)
        n += *v == ',';
    return n;
}

static enum err read_operands(struct reader *r, const char *end)
{
    size_t n = count_parts(r->text, end);
    const char *v = r->text;
    enum err err = ERR_OK;

    if (n != r->operands.n)
        return err_set(ERR_ARG,
                       "[%s] Number of operands, %zu, does not match number of input subscripts, "
                       "%zu",
                       r->op, r->operands.n, n);
    for (size_t i = 0; i < n; i++) {
        const char *comma = v;
        while (comma < end && *comma != ',')
            comma++;
        TRY(read_operand(r, i, (struct part){ v, (int)(comma - v) }));
        v = comma + 1;
    }
out:
    return err;
}

/* ---- result ---- */

/* Without an arrow: the axes of ellipses, then the letters that occur once. */
static enum err implied_result(struct reader *r)
{
    int count[EINSUM_LABELS] = { 0 };
    enum err err = ERR_OK;

    for (const char *c = r->text; *c; c++)
        if (isalpha((unsigned char)*c))
            count[label_of(*c)]++;
    if (strchr(r->text, '.'))
        TRY(add_dots(r, &r->e->out, r->dots));
    for (int i = 0; i < EINSUM_LABELS; i++)
        if (count[i] == 1)
            TRY(add_label(&r->e->out, i, r->op));
out:
    return err;
}

static enum err given_result(struct reader *r, const char *text)
{
    struct part p = { text, (int)strlen(text) };
    struct einsum_term *t = &r->e->out;
    uint64_t known = 0;
    int letters, dots;
    enum err err;

    TRY(check_part(r, p, &letters, &dots));
    TRY(read_part(r, t, p, r->dots));
    if (__builtin_popcountll(t->set) != t->n)
        return err_set(ERR_ARG, "[%s] Repeat indices not allowed in output.", r->op);
    for (size_t i = 0; i < r->e->n; i++)
        known |= r->e->in[i].set;
    if (t->set & ~known)
        return err_set(ERR_ARG, "[%s] Output '%s' has subscripts that no input has.", r->op, text);
out:
    return err;
}

static char *without_blanks(const char *text)
{
    char *copy = mem_alloc(strlen(text) + 1), *at = copy;

    for (; copy && *text; text++)
        if (*text != ' ')
            *at++ = *text;
    if (copy)
        *at = '\0';
    return copy;
}

enum err einsum_parse(struct einsum *e, const char *subscripts, struct arrs operands,
                      const char *op)
{
    char *text = NULL;
    enum err err = ERR_NO_MEMORY;

    *e = (struct einsum){ .n = operands.n };
    if (!operands.n)
        return err_set(ERR_ARG, "[%s] At least one operand is required.", op);
    if (strlen(subscripts) > INT32_MAX)
        return err_set(ERR_ARG, "[%s] The subscripts are too long.", op);
    for (int i = 0; i < EINSUM_LABELS; i++)
        e->size[i] = -1;
    e->in = mem_alloc_array(operands.n, sizeof *e->in);
    if (!e->in || !(text = without_blanks(subscripts)))
        goto out;
    struct reader r = { .op = op, .e = e, .operands = operands, .text = text };
    find_spare(&r);
    const char *arrow = strstr(text, "->");
    TRY(read_operands(&r, arrow ? arrow : text + strlen(text)));
    TRY(arrow ? given_result(&r, arrow + 2) : implied_result(&r));
out:
    mem_free(text);
    if (err)
        einsum_fini(e);
    return err;
}
