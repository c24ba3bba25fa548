/* A template of chats, the tokens that begin and end a text, and contents of messages, with zero
 * bytes between them: what is known renders, and the rest as if it were of some style. */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_lm.h"
#include "lm/chat/chat_family.h"

enum { TEMPLATE, BOS, EOS, TYPE, SYSTEM, USER, ASSISTANT, REASONING, PARTS };

static const char *const styles[] = { "chatml-tools", "qwq",    "qwen3",
                                      "llama3.2",     "llama2", "mistral-v3" };

static void render(const struct chat *c, const char *const *parts, unsigned options)
{
    struct chat_msg msgs[] = { { "system", parts[SYSTEM], NULL },
                               { "user", parts[USER], NULL },
                               { "assistant", parts[ASSISTANT], parts[REASONING] },
                               { "tool", parts[USER], NULL },
                               { "user", parts[SYSTEM], NULL } };
    struct chat_params params = { .add_generation_prompt = options & 1,
                                  .thinking = (enum chat_thinking)(options % 3),
                                  .date = options & 8 ? parts[USER] : NULL };
    struct str out = { 0 };
    size_t from = options >> 4 & 1, n = 1 + options / 32 % 4;
    enum err err = chat_render(&out, c, msgs + from, MIN(n, ARRAY_LEN(msgs) - from), &params);

    (void)err;
    VEC_FINI(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *parts[PARTS];
    char *in = size ? fuzz_parts(parts, PARTS, data + 1, size - 1) : NULL;
    struct chat *c = NULL;

    if (!in)
        return 0;
    struct chat_source source = { .template_text = parts[TEMPLATE],
                                  .model_type = data[0] & 2 ? parts[TYPE] : NULL,
                                  .bos = data[0] & 4 ? parts[BOS] : NULL,
                                  .eos = parts[EOS] };
    const struct chat_style *style = chat_style(styles[size % ARRAY_LEN(styles)]);
    if (chat_create(&c, &source) == ERR_OK || chat_create_styled(&c, &source, style) == ERR_OK)
        render(c, parts, data[0]);
    chat_destroy(&c);
    mem_free(in);
    return 0;
}
