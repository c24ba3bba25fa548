/* A tokenizer.json and, behind a zero byte, a text: what can be read tokenizes, and the ids decode
 * to the same text at once and one by one. The text is also taken for a template of chats. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "core/mem.h"
#include "lm/chat_family.h"
#include "lm/tokenizer.h"

/* Patterns of bad will are slow on long texts. */
#define MAX_TEXT 512

static void check_decoding(struct tok *t, const struct ids *ids)
{
    struct str whole = { 0 }, parts = { 0 };
    struct tok_stream *s = NULL;
    enum err err;

    TRY(tok_decode(t, ids, false, &whole));
    TRY(tok_stream_create(&s, t, false));
    for (size_t i = 0; i < ids->n; i++)
        TRY(tok_stream_add(s, ids->v[i], &parts));
    TRY(tok_stream_end(s, &parts));
    if (whole.n != parts.n || (whole.n && memcmp(whole.v, parts.v, whole.n) != 0))
        __builtin_trap();
out:
    tok_stream_destroy(&s);
    VEC_FINI(&whole);
    VEC_FINI(&parts);
}

static void tokenize(const char *json, size_t n, const char *text, size_t n_text)
{
    struct tok *t = NULL;
    struct ids ids = { 0 };
    enum err err;

    TRY(tok_from_json(&t, json, n, "fuzz.json"));
    TRY(tok_encode(t, text, n_text, true, &ids));
    check_decoding(t, &ids);
    for (size_t i = 0; i < ids.n; i++) /* ids that no text has in this order, or none at all */
        ids.v[i] = (int32_t)((size_t)ids.v[i] * 7 + i) % ((int32_t)tok_size(t) + 1);
    check_decoding(t, &ids);
out:
    tok_destroy(&t);
    VEC_FINI(&ids);
}

/* Any text may be a template; what is known of it is rendered, and every style is for what is not.
 */
static void chat(const char *text, size_t n)
{
    static const struct chat_msg msgs[] = { { "system", " S\n", NULL },
                                            { "user", "", NULL },
                                            { "assistant", "<think>x</think>\n\n", NULL } };
    static const struct chat_params params = { .add_generation_prompt = true };
    char template_text[MAX_TEXT + 1] = "";
    struct chat_source source = { .template_text = template_text };
    static const char *const styles[] = { "chatml-tools", "qwq",    "qwen3",
                                          "llama3.2",     "llama2", "mistral-v3" };
    struct chat *c = NULL;
    struct str out = { 0 };
    enum err err;

    memcpy(template_text, text, n);
    if (chat_create(&c, &source) != ERR_OK)
        TRY(chat_create_styled(&c, &source, chat_style(styles[n % ARRAY_LEN(styles)])));
    TRY(chat_render(&out, c, msgs, ARRAY_LEN(msgs), &params));
out:
    chat_destroy(&c);
    VEC_FINI(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t n = zero ? (size_t)(zero - data) : size;
    const char *text = zero ? (const char *)zero + 1 : "";
    size_t n_text = zero ? MIN(size - n - 1, (size_t)MAX_TEXT) : 0;

    tokenize((const char *)data, n, text, n_text);
    chat(text, n_text);
    return 0;
}
