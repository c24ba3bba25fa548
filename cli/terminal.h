/* Lines that are typed, with editing and history. */
#pragma once

#include "base/common.h"

/* A line without its end, to be freed; NULL at the end of the input, or where Ctrl-C came first,
 * which interrupt_came then says. What is typed is UTF-8 whatever the locale is.
 * interrupt_catch was called. */
char *terminal_line(const char *prompt);
/* Keeps a line for the arrow keys. */
void terminal_keep(const char *line);
