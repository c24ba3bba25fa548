/* One byte of options, a pattern, a text and a replacement, with zero bytes between them: the
 * pattern splits the text, replaces in it before it is encoded, and after it was decoded. */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_lm.h"
#include "lm/tokenizer/detok.h"
#include "lm/tokenizer/pretok.h"
#include "lm/tokenizer/unorm.h"

/* Patterns of bad will are slow on long texts. */
#define MAX_PATTERN 256
#define MAX_TEXT 512
#define ROOM ((size_t)1 << 20)

/* Matches come in order, none within another; the pieces are of the text and in its order. */
static void split(struct rx *rx, unsigned options, const struct str *text)
{
    struct pretok p = { 0 };
    struct pretok_step step = { .kind = PRETOK_SPLIT,
                                .rx = rx,
                                .behavior = (enum pretok_behavior)(options % 5),
                                .invert = options & 8 };
    struct pieces pieces = { 0 };
    size_t end = 0;
    enum err err;

    TRY(pretok_add(&p, step));
    TRY(str_add(&pieces.text, text->v, text->n));
    TRY(VEC_PUSH(&pieces, (struct piece){ 0, text->n, -1, true }));
    TRY(pretok_apply(&p, &pieces, ROOM));
    for (size_t i = 0; i < pieces.n; i++) {
        const struct piece *v = &pieces.v[i];
        if (v->off < end || !v->len || v->len > text->n || v->off > text->n - v->len)
            __builtin_trap();
        end = v->off + v->len;
    }
out:
    pieces_fini(&pieces);
    pretok_fini(&p);
}

static void replace(struct rx *rx, const char *with, const struct str *text)
{
    struct unorm u = { 0 };
    struct unorm_step step = { .kind = UNORM_REPLACE, .rx = rx };
    struct str copy = { 0 };
    bool cut;
    enum err err;

    TRY(str_add_lossy(&step.text, with, strlen(with)));
    TRY(unorm_add(&u, step));
    TRY(str_add(&copy, text->v, text->n));
    TRY(unorm_apply(&u, &copy, ROOM, &cut));
out:
    VEC_FINI(&copy);
    unorm_fini(&u);
}

static void decode(struct rx *rx, const char *with, const struct str *text)
{
    struct detok d = { 0 };
    struct detok_state state = { 0 };
    struct detok_step step = { .kind = DETOK_REPLACE, .rx = rx };
    struct str out = { 0 };
    enum err err;

    TRY(str_add_lossy(&step.text, with, strlen(with)));
    TRY(detok_add(&d, step));
    TRY(detok_push(&d, &state, text->v, text->n, &out));
    TRY(detok_end(&d, &state, &out));
out:
    detok_state_fini(&state);
    detok_fini(&d);
    VEC_FINI(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *parts[3];
    char *in = size ? fuzz_parts(parts, ARRAY_LEN(parts), data + 1, size - 1) : NULL;
    struct str pattern = { 0 }, text = { 0 };
    enum err err;

    if (!in)
        return 0;
    TRY(str_add_lossy(&pattern, parts[0], strlen(parts[0])));
    TRY(str_add_lossy(&text, parts[1], strlen(parts[1])));
    if (!text.n || text.n > MAX_TEXT || pattern.n > MAX_PATTERN)
        goto out;
    for (int way = 0; way < 3; way++) {
        struct rx *rx = NULL; /* each of them takes it over */
        TRY(rx_create(&rx, pattern.n ? pattern.v : "", pattern.n, data[0] & 16 ? RX_LITERAL : 0));
        if (way == 0)
            split(rx, data[0], &text);
        else if (way == 1)
            replace(rx, parts[2], &text);
        else
            decode(rx, parts[2], &text);
    }
out:
    VEC_FINI(&pattern);
    VEC_FINI(&text);
    mem_free(in);
    return 0;
}
