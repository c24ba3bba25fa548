#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_text[ERR_TEXT_MAX];

enum err err_set(enum err code, const char *fmt, ...)
{
    /* Formatted aside first: an argument may be err_text() itself. */
    char text[ERR_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    memcpy(last_text, text, sizeof text);
    return code;
}

const char *err_text(void)
{
    return last_text;
}

void err_note_take(struct err_note *note, enum err code)
{
    if (note->code != ERR_OK)
        return;
    note->code = code;
    memcpy(note->text, last_text, sizeof note->text);
}

enum err err_note_raise(struct err_note *note)
{
    enum err code = note->code;

    if (code == ERR_OK)
        return ERR_OK;
    memcpy(last_text, note->text, sizeof last_text);
    note->code = ERR_OK;
    note->text[0] = '\0';
    return code;
}
