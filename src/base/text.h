/* Text that grows while it is written. */
#pragma once

#include "base/mem.h"

struct text {
    VEC(char) s; /* always terminated once something was added; n does not count the terminator */
};

MUST_CHECK enum err text_add(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
