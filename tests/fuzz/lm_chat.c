/* A template of chats, tokens, variables and messages as JSON, with zero bytes between them: what
 * is a template renders or is refused, the same way twice. */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_lm.h"
#include "lm/chat/chat.h"
#include "lm/jinja/jinja.h"

enum { TEMPLATE, BOS, EOS, MORE, MESSAGES, TOOLS, USER, REASONING, PARTS };

static void render(const struct chat *c, const char *const *parts, unsigned options)
{
    struct chat_msg msgs[] = { { "system", parts[BOS], NULL },
                               { "user", parts[USER], NULL },
                               { "assistant", parts[USER], parts[REASONING] },
                               { "user", parts[EOS], NULL } };
    struct chat_params params = { .add_generation_prompt = options & 1,
                                  .thinking = (enum chat_thinking)(options % 3),
                                  .more = *parts[MORE] ? parts[MORE] : NULL,
                                  .tools = *parts[TOOLS] ? parts[TOOLS] : NULL,
                                  .now = 1 };
    struct str out = { 0 };
    size_t n = 1 + options / 32 % 4;
    enum err err = options & 16 ? chat_render(&out, c, msgs, n, &params)
                                : chat_render_json(&out, c, parts[MESSAGES], &params);

    if (err != ERR_OK && out.n)
        __builtin_trap();
    VEC_FINI(&out);
}

/* With variables alone, and little that it may cost. */
static void render_bare(const char *const *parts)
{
    struct jinja_request r = { .vars = parts[MORE],
                               .n_vars = strlen(parts[MORE]),
                               .now = 1,
                               .limits = { 20000, 1 << 20, 1 << 18, 100 } };
    struct str out = { 0 };
    struct jinja *t = NULL;
    enum err err;

    TRY(jinja_create(&t, parts[TEMPLATE], strlen(parts[TEMPLATE])));
    err = jinja_render(&out, t, &r);
    if (err == ERR_OK && out.n && !u8_valid(out.v, out.n))
        __builtin_trap();
out:
    jinja_destroy(&t);
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
                                  .bos = data[0] & 4 ? parts[BOS] : NULL,
                                  .eos = parts[EOS] };
    if (data[0] & 2)
        render_bare(parts);
    else if (chat_create(&c, &source) == ERR_OK)
        render(c, parts, data[0]);
    chat_destroy(&c);
    mem_free(in);
    return 0;
}
