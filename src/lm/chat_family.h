/* What is read from a template; shared by recognition and rendering. */
#pragma once

#include "lm/chat.h"

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

struct chat {
    enum chat_family family;
    char *bos, *eos;
    const char *note;

    bool has_system; /* a default */
    struct str system;
    bool tools; /* results of tools are turns of the user */
    enum chat_think think;
    bool opens_thought;    /* the generation prompt begins a thought */
    bool can_skip_thought; /* it can have an empty one */
    bool always_prompt;    /* has it whether asked or not */

    struct str cutoff, date; /* of Llama 3.1 and later */
    bool dated, date_is_today;

    enum chat_system place;
    struct str user_open, user_close, system_open, system_close;
    bool reply_space, reply_trim, reply_space_after;
};

/* Recognises the template; CHAT_PLAIN with *known false where it is none of ours. */
MUST_CHECK enum err chat_recognise(struct chat *c, const char *text, bool *known);
