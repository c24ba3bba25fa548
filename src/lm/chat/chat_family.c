/* The styles of templates, and the templates of each style. */
#include "lm/chat/chat_family.h"

#include "base/mem.h"

#define CUTOFF "December 2023"
#define DATE "26 Jul 2024"

static const struct chat_style styles[] = {
    { .name = "plain", .family = CHAT_PLAIN },
    { .name = "chatml", .family = CHAT_CHATML },
    { "chatml-tools", CHAT_CHATML, .tools = true },
    { "qwq", CHAT_QWEN3, .tools = true, .think = CHAT_STRIP_THOUGHTS, .opens_thought = true },
    { "qwen3", CHAT_QWEN3, .tools = true, .think = CHAT_KEEP_THOUGHTS, .can_skip_thought = true },
    { "qwen3-thinking", CHAT_QWEN3, .tools = true, .think = CHAT_KEEP_THOUGHTS,
      .opens_thought = true },
    { .name = "llama3", .family = CHAT_LLAMA3 },
    { "llama3-always", CHAT_LLAMA3, .always_prompt = true },
    { "llama3.1", CHAT_LLAMA3, .cutoff = CUTOFF, .date = DATE },
    { "llama3.2", CHAT_LLAMA3, .cutoff = CUTOFF, .date = DATE, .date_is_today = true },
    { .name = "llama2", .family = CHAT_LLAMA2 },
    { "mistral-v1-old", CHAT_MISTRAL, .user_open = "[INST] ", .user_close = " [/INST]" },
    { "mistral-v0.1", CHAT_MISTRAL, .user_open = "[INST] ", .user_close = " [/INST]",
      .reply_space_after = true },
    { "mistral-v1", CHAT_MISTRAL, .place = CHAT_SYSTEM_FIRST, .user_open = " [INST] ",
      .user_close = " [/INST]", .reply_space = true },
    { "mistral-v3", CHAT_MISTRAL, .place = CHAT_SYSTEM_LAST, .user_open = "[INST] ",
      .user_close = "[/INST]", .reply_space = true, .reply_trim = true },
    { "mistral-v3-tools", CHAT_MISTRAL, .place = CHAT_SYSTEM_LAST, .user_open = "[INST] ",
      .user_close = "[/INST]", .reply_space = true },
    { "mistral-nemo", CHAT_MISTRAL, .place = CHAT_SYSTEM_LAST, .user_open = "[INST]",
      .user_close = "[/INST]" },
    { "mistral-v7", CHAT_MISTRAL, .place = CHAT_SYSTEM_OWN, .user_open = "[INST] ",
      .user_close = "[/INST]", .system_open = "[SYSTEM_PROMPT] ",
      .system_close = "[/SYSTEM_PROMPT]", .reply_space = true },
    { "mistral-v7-tekken", CHAT_MISTRAL, .place = CHAT_SYSTEM_OWN, .user_open = "[INST]",
      .user_close = "[/INST]", .system_open = "[SYSTEM_PROMPT]",
      .system_close = "[/SYSTEM_PROMPT]" },
};

static const struct {
    uint64_t form;
    const char *style;
} known[] = {
#define TEMPLATE(form, style) { form, style },
#include "lm/chat/chat_known.def"
#undef TEMPLATE
};

const struct chat_style *chat_style(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(styles); i++)
        if (strcmp(styles[i].name, name) == 0)
            return &styles[i];
    return NULL;
}

enum err chat_recognise(const struct chat_style **out, const char *text, struct str *system)
{
    const struct chat_style *style = NULL;
    uint64_t form;
    enum err err;

    TRY(chat_form(&form, text, system));
    for (size_t i = 0; i < ARRAY_LEN(known) && !style; i++)
        if (known[i].form == form)
            style = chat_style(known[i].style);
    *out = style;
out:
    return err;
}
