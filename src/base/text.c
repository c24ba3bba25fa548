#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

enum err text_add(struct text *t, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return err_set(ERR_RUNTIME, "text cannot be formatted");
    if (VEC_RESERVE(&t->s, (size_t)n + 1))
        return ERR_NO_MEMORY;
    va_start(args, fmt);
    vsnprintf(t->s.v + t->s.n, (size_t)n + 1, fmt, args);
    va_end(args);
    t->s.n += (size_t)n;
    return ERR_OK;
}
