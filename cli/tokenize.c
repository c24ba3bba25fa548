#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/llm.h"
#include "eval/stream.h"
#include "lm/files/model_files.h"

static const char usage_text[] =
    "usage: mlx tokenize --model MODEL [--no-special] [--decode] [--] TEXT\n\n"
    "Prints the token ids of TEXT on one line, with those that begin and end a text\n"
    "unless --no-special. With --decode TEXT is a list of ids, with blanks or commas\n"
    "between them, and their text is printed. TEXT is read from standard input if it\n"
    "is \"-\". MODEL is a folder with tokenizer.json, a GGUF file, or a downloaded ORG/NAME.\n";

struct options {
    const char *model, *text;
    bool decode, no_special, help;
};

/* A text may begin with a '-', too: -1, or - itself. */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && (word[1] == '-' || ((word[1] | 32) >= 'a' && (word[1] | 32) <= 'z'));
}

static bool complain(const char *what, const char *word)
{
    fprintf(stderr, "mlx tokenize: %s%s\n`mlx tokenize --help` says more.\n", what, word);
    return false;
}

/* False, with a message, if the arguments are wrong. */
static bool parse(struct options *o, int argc, char **argv)
{
    struct args a = { .argc = argc, .argv = argv };

    while (args_next(&a)) {
        if (args_is(&a, "--help", 'h'))
            o->help = true;
        else if (args_is(&a, "--decode", 0))
            o->decode = true;
        else if (args_is(&a, "--no-special", 0))
            o->no_special = true;
        else if (args_is(&a, "--model", 'm'))
            o->model = args_value(&a);
        else if (strcmp(a.word, "--") == 0 && !o->text)
            o->text = args_value(&a); /* whatever it begins with */
        else if (looks_like_option(a.word))
            return complain("unknown option ", a.word);
        else if (o->text)
            return complain("more than one TEXT: ", a.word);
        else
            o->text = a.word;
    }
    if (!args_end(&a))
        return false;
    if (!o->help && !o->model)
        return complain("--model is missing", "");
    return o->help || o->text || complain("TEXT is missing", "");
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

/* s begins with a word of n bytes. */
static enum err parse_id(int32_t *out, const struct tok *t, const char *s, size_t n)
{
    errno = 0;
    unsigned long id = strtoul(s, NULL, 10);
    if (strspn(s, "0123456789") != n || errno || id > INT32_MAX)
        return err_set(ERR_ARG, "\"%.*s\" is no token id", (int)MIN(n, 40), s);
    if (!tok_token(t, (int32_t)id))
        return err_set(ERR_ARG, "%lu is no token of this tokenizer", id);
    *out = (int32_t)id;
    return ERR_OK;
}

/* Ids with blanks or commas between them, in brackets or not; the list ends with a zero. */
static enum err parse_ids(struct ids *out, const struct tok *t, const struct str *list)
{
    static const char separators[] = " \t\r\n,[]";
    const char *s = list->v + strspn(list->v, separators);
    enum err err = ERR_OK;

    while (*s) {
        size_t n = strcspn(s, separators);
        int32_t id = 0;
        TRY(parse_id(&id, t, s, n));
        TRY(VEC_PUSH(out, id));
        s += n;
        s += strspn(s, separators);
    }
    if (s + 1 != list->v + list->n)
        err = err_set(ERR_ARG, "the list of ids has a zero byte in it");
out:
    return err;
}

static enum err print_text(struct tok *t, struct str *list)
{
    struct ids ids = { 0 };
    struct str text = { 0 };
    enum err err;

    TRY(VEC_PUSH(list, '\0'));
    TRY(parse_ids(&ids, t, list));
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
    struct model_files parts = { .tok = NULL };
    struct strm *s;
    struct str text = { 0 };
    enum err err;

    if (!parse(&o, argc, argv))
        return 1;
    if (o.help) {
        fputs(usage_text, stdout);
        return 0;
    }
    TRY(strm_default(&s, (struct dev){ .type = DEV_CPU }));
    TRY(model_files_open(&parts, o.model, MODEL_FILES_TOKENIZER, s));
    TRY(llm_read_text(&text, o.text));
    TRY(o.decode ? print_text(parts.tok, &text) : print_ids(parts.tok, &text, !o.no_special));
out:
    if (err != ERR_OK)
        fprintf(stderr, "mlx tokenize: %s\n", err_text());
    model_files_fini(&parts);
    VEC_FINI(&text);
    return err == ERR_OK ? 0 : 1;
}
