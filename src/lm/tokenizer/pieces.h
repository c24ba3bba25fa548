/* Text that is being cut: the state between added tokens, normalizer, pre-tokenizer and model. */
#pragma once

#include "lm/str.h"

struct piece {
    size_t off, len; /* in the text of the list */
    int32_t id;      /* an added token, done; -1 for text */
    bool first;      /* begins where the input begins */
};

struct pieces {
    struct piece *v;
    size_t n, cap;
    struct str text;
};

void pieces_fini(struct pieces *p);
static inline void pieces_clear(struct pieces *p)
{
    p->n = p->text.n = 0;
}
/* Exchanges lists and texts. */
void pieces_swap(struct pieces *a, struct pieces *b);
