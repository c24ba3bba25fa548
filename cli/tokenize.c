#include <errno.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/llm.h"
#include "core/mem.h"
#include "core/stream.h"
#include "lm/parts.h"

static const char usage_text[] =
    "usage: mlx tokenize --model PATH [--no-special] [--decode] TEXT\n\n"
    "Prints the token ids of TEXT on one line, with those that begin and end a text\n"
    "unless --no-special. With --decode TEXT is a list of ids and their text is\n"
    "printed. TEXT is read from standard input if it is \"-\". PATH is a folder with\n"
    "tokenizer.json, or a GGUF file.\n";

struct options {
    const char *model, *text;
    bool decode, no_special, help;
};

/* False if the arguments make no sense. */
static bool parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            o->help = true;
        else if (strcmp(argv[i], "--decode") == 0)
            o->decode = true;
        else if (strcmp(argv[i], "--no-special") == 0)
            o->no_special = true;
        else if (strcmp(argv[i], "--model") == 0 && i + 1 < argc)
            o->model = argv[++i];
        else if (!o->text && strncmp(argv[i], "--", 2) != 0)
            o->text = argv[i];
        else
            return false;
    }
    return o->help || (o->model && o->text);
}

static enum err print_ids(struct tok *t, const struct str *text, bool add_special)
{
    struct ids ids = { 0 };
    enum err err;

    TRY(tok_encode(t, text->v, text->n, add_special, &ids));
    for (size_t i = 0; i < ids.n; i++)
        printf("%s%d", i ? " " : "", (int)ids.v[i]);
    putchar('\n');
out:
    VEC_FINI(&ids);
    return err;
}

/* Numbers with anything that is none between them. */
static enum err parse_ids(struct ids *out, const char *s)
{
    enum err err = ERR_OK;

    for (;;) {
        s += strcspn(s, "0123456789");
        if (!*s)
            break;
        char *end;
        errno = 0;
        unsigned long id = strtoul(s, &end, 10);
        if (errno || id > INT32_MAX)
            return err_set(ERR_ARG, "\"%.20s\" is no token id", s);
        TRY(VEC_PUSH(out, (int32_t)id));
        s = end;
    }
out:
    return err;
}

static enum err print_text(struct tok *t, struct str *list)
{
    struct ids ids = { 0 };
    struct str text = { 0 };
    enum err err;

    TRY(VEC_PUSH(list, '\0'));
    TRY(parse_ids(&ids, list->v));
    TRY(tok_decode(t, &ids, false, &text));
    fwrite(text.v, 1, text.n, stdout);
    putchar('\n');
out:
    VEC_FINI(&ids);
    VEC_FINI(&text);
    return err;
}

int cmd_tokenize(int argc, char **argv)
{
    struct options o = { 0 };
    struct parts parts = { .tok = NULL };
    struct strm *s;
    struct str text = { 0 };
    enum err err;

    if (!parse(&o, argc, argv) || o.help) {
        fputs(usage_text, o.help ? stdout : stderr);
        return o.help ? 0 : 1;
    }
    TRY(strm_default(&s, (struct dev){ .type = DEV_CPU }));
    TRY(parts_open(&parts, o.model, PARTS_TOKENIZER, s));
    TRY(llm_read_text(&text, o.text));
    TRY(o.decode ? print_text(parts.tok, &text) : print_ids(parts.tok, &text, !o.no_special));
out:
    if (err != ERR_OK)
        fprintf(stderr, "mlx tokenize: %s\n", err_text());
    parts_fini(&parts);
    VEC_FINI(&text);
    return err == ERR_OK ? 0 : 1;
}
