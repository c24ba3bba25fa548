#include "cli/args.h"

#include <stdio.h>
#include <string.h>

bool args_next(struct args *a)
{
    if (a->at + 1 >= a->argc)
        return false;
    a->word = a->argv[++a->at];
    size_t n = strlen(a->word);
    const char *equals = strncmp(a->word, "--", 2) == 0 ? strchr(a->word, '=') : NULL;
    if (equals)
        n = (size_t)(equals - a->word);
    a->given = equals ? equals + 1 : NULL;
    snprintf(a->name, sizeof a->name, "%.*s", (int)MIN(n, sizeof a->name), a->word);
    return true;
}

const char *args_value(struct args *a)
{
    const char *value = a->given;

    a->given = NULL;
    if (value)
        return value;
    return a->at + 1 < a->argc ? a->argv[++a->at] : NULL;
}

bool args_want_help(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

bool args_is(const struct args *a, const char *name, char letter)
{
    return strcmp(a->name, name) == 0 ||
           (letter && a->name[0] == '-' && a->name[1] == letter && !a->name[2]);
}
