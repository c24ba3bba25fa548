#include "cli/args.h"

#include <stdio.h>
#include <string.h>

bool args_next(struct args *a)
{
    if (a->given || a->at + 1 >= a->argc)
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

bool args_end(const struct args *a)
{
    if (a->given)
        fprintf(stderr, "mlx: %s has no value\n", a->name);
    return !a->given;
}

int args_explain(int argc, char **argv, const char *usage)
{
    bool is_wanted = args_want_help(argc, argv);

    if (!is_wanted) {
        fprintf(stderr, "mlx %s cannot be called with", argv[0]);
        for (int i = 1; i < argc; i++)
            fprintf(stderr, " %s", argv[i]);
        fputs("\n\n", stderr);
    }
    fputs(usage, is_wanted ? stdout : stderr);
    return is_wanted ? 0 : 1;
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
