/* Chat templates: from messages to the text that a model continues.
 *
 * Models bring their template as a Jinja program. Programs are not run here: templates whose
 * results were compared with transformers' are known (chat_known.def), and messages are written as
 * they would; others are refused. The text has the token that begins a text where the template has
 * it, so it is encoded without special tokens. */
#pragma once

#include "lm/tokenizer/tokenizer.h"

enum chat_family {
    CHAT_PLAIN,   /* no template: the contents, with line feeds between them */
    CHAT_CHATML,  /* <|im_start|>role ... <|im_end|>: ChatML, Qwen 2 and 2.5, SmolLM2 */
    CHAT_QWEN3,   /* the same with thoughts */
    CHAT_LLAMA3,  /* <|start_header_id|>role<|end_header_id|> */
    CHAT_LLAMA2,  /* [INST] <<SYS>> */
    CHAT_MISTRAL, /* [INST] */
};

struct chat;

struct chat_source {
    const char *template_text; /* NULL: none */
    const char *model_type;    /* for messages; NULL: not known */
    const char *bos, *eos;     /* tokens; NULL: none */
};

/* Recognises a template; ERR_UNSUPPORTED with a text that tells what to do if it is not known. */
MUST_CHECK enum err chat_create(struct chat **out, const struct chat_source *source);
/* The same with what the tokenizer knows. */
MUST_CHECK enum err chat_create_for(struct chat **out, const struct tok *t);
void chat_destroy(struct chat **c);

enum chat_family chat_family(const struct chat *c);
const char *chat_family_name(const struct chat *c);

struct chat_msg {
    const char *role; /* system, user, assistant, tool */
    const char *content;
    const char
        *reasoning; /* thoughts of an assistant, kept apart from the content; NULL: not apart */
};

enum chat_thinking {
    CHAT_THINK_DEFAULT, /* as the model likes */
    CHAT_THINK_ON,
    CHAT_THINK_OFF, /* models that can are told not to */
};

struct chat_params {
    bool add_generation_prompt; /* the assistant is to speak next */
    enum chat_thinking thinking;
    const char *date; /* "26 Jul 2024"; NULL: as the template says, which may be today */
};

/* Appends the text. ERR_ARG for messages that the template refuses. */
MUST_CHECK enum err chat_render(struct str *out, const struct chat *c, const struct chat_msg *msgs,
                                size_t n, const struct chat_params *params);
