/* What is known of templates: how they write messages, and which of them write so. */
#pragma once

#include "lm/chat/chat.h"

enum chat_think {
    CHAT_NO_THOUGHTS,
    CHAT_STRIP_THOUGHTS, /* all but the last answer lose theirs */
    CHAT_KEEP_THOUGHTS,  /* those since the last question are kept in a block */
};

enum chat_system {
    CHAT_SYSTEM_NONE,  /* refused */
    CHAT_SYSTEM_FIRST, /* before the first question, inside of its turn */
    CHAT_SYSTEM_LAST,  /* before the last question, inside of its turn */
    CHAT_SYSTEM_OWN,   /* a turn of its own */
};

/* A way to write messages; what a family does not have stays zero. */
struct chat_style {
    const char *name;
    enum chat_family family;

    bool tools; /* results of tools are turns of the user */
    enum chat_think think;
    bool opens_thought;    /* the generation prompt begins a thought */
    bool can_skip_thought; /* it can have an empty one */

    bool always_prompt;        /* has the generation prompt whether asked or not */
    const char *cutoff, *date; /* of Llama 3.1 and later; NULL: no dates */
    bool date_is_today;

    enum chat_system place;
    const char *user_open, *user_close, *system_open, *system_close;
    bool reply_space, reply_trim, reply_space_after;
};

struct chat {
    const struct chat_style *style;
    char *bos, *eos;
    struct str system; /* the one where the messages have none; empty: none */
};

/* NULL if there is none of this name. */
const struct chat_style *chat_style(const char *name);
/* The style of a template that is known; NULL: it is not. The default system message is appended to
 * *system, and is no part of what makes a template known. */
MUST_CHECK enum err chat_recognise(const struct chat_style **out, const char *text,
                                   struct str *system);

/* The number of what a template does: the same for texts that differ only in white space inside of
 * tags, in quotes, in comments, or in how an item or a sum of literals is written. */
MUST_CHECK enum err chat_form(uint64_t *form, const char *text, struct str *system);

/* A chat of a style, whatever the template is. */
MUST_CHECK enum err chat_create_styled(struct chat **out, const struct chat_source *source,
                                       const struct chat_style *style);
