/* Chat templates: from messages to the text that a model continues.
 *
 * Models bring their template as a Jinja program, which is run (lm/jinja) with the variables that
 * transformers gives it. The text has the token that begins a text where the template writes it, so
 * it is encoded without special tokens. */
#pragma once

#include "lm/tokenizer/tokenizer.h"

struct chat;

struct chat_source {
    const char *template_text;         /* NULL: none, the contents with line feeds between them */
    const char *tool_template;         /* the one for messages with tools; NULL: the same */
    bool needs_name;                   /* there are templates, and none of them is the default */
    const char *bos, *eos, *unk, *pad; /* tokens; NULL: none */
};

/* Parses a template. ERR_ARG, with what to do instead, for one that is wrong. */
MUST_CHECK enum err chat_create(struct chat **out, const struct chat_source *source);
/* The same with what the tokenizer knows. */
MUST_CHECK enum err chat_create_for(struct chat **out, const struct tok *t);
void chat_destroy(struct chat **c);

/* Whether there is no template. */
bool chat_is_plain(const struct chat *c);

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
    const char *tools, *documents; /* JSON arrays; NULL: none */
    const char *more;              /* a JSON object: further variables of the template; or NULL */
    int64_t now;                   /* for templates that write the date; 0: the clock */
};

/* Appends the text. ERR_ARG for messages that the template refuses, with what it says. */
MUST_CHECK enum err chat_render(struct str *out, const struct chat *c, const struct chat_msg *msgs,
                                size_t n, const struct chat_params *params);
/* The same for messages as a JSON array, which may have calls of tools and content in parts. Parts
 * that are no text, such as images, are refused. */
MUST_CHECK enum err chat_render_json(struct str *out, const struct chat *c, const char *messages,
                                     const struct chat_params *params);
