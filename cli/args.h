/* Arguments of the commands, one at a time: --name value, --name=value, and plain words. */
#pragma once

#include "base/common.h"

struct args {
    int argc;
    char **argv;       /* [0] is the command's name */
    int at;            /* of the argument that was taken last */
    char name[64];     /* it without what is behind a '=' */
    const char *word;  /* it as it stands */
    const char *given; /* what is behind the '=', until it is taken; NULL: nothing */
};

/* Takes the next argument; false if there is none, or the last one had a value that nobody took. */
bool args_next(struct args *a);
/* The value of the option that was taken last: behind its '=', or the next argument. NULL if there
 * is none. */
const char *args_value(struct args *a);
/* After the last one: false, with a line on standard error, if it had a value that nobody took, as
 * one of --json=1. */
bool args_end(const struct args *a);
/* For arguments that a command has no use for, unless they ask for help: what is wrong and how it
 * is used. Returns the exit code. */
int args_explain(int argc, char **argv, const char *usage);
/* The first argument asks for help. */
bool args_want_help(int argc, char **argv);
/* The option is called so; a letter is another name, as in -m. 0: none. */
bool args_is(const struct args *a, const char *name, char letter);
