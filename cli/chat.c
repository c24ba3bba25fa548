/* `mlx chat`: a conversation on the terminal. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/llm.h"
#include "cli/terminal.h"

static const char usage[] =
    "usage: mlx chat --model MODEL [options]\n\n"
    "Talks with a model. /reset forgets the conversation, /exit or Ctrl-D ends it, /help lists "
    "the\n"
    "commands. Ctrl-C ends an answer, or clears the line; twice in turn it ends the conversation.\n"
    "A line with a space before its / goes to the model. Lines that do not come from a terminal "
    "end\n"
    "with the exit code 1 if one of them failed.\n\n";

static const char commands[] =
    "/reset forgets the conversation, /exit ends it, /help lists the commands; with a space before "
    "its / a line goes to the model";

/* What was said so far; texts are owned. */
struct talk {
    VEC(struct chat_msg) msgs;
    bool has_failed; /* some line did */
};

static enum err talk_add(struct talk *t, const char *role, const char *text)
{
    char *copy = mem_strdup(text);
    enum err err = ERR_NO_MEMORY;

    if (copy)
        err = VEC_PUSH(&t->msgs, (struct chat_msg){ .role = role, .content = copy });
    if (err)
        mem_free(copy);
    return err;
}

/* Forgets all from the n-th message on. */
static void talk_cut(struct talk *t, size_t n)
{
    while (t->msgs.n > n)
        mem_free((char *)t->msgs.v[--t->msgs.n].content);
}

static enum err talk_begin(struct talk *t, const struct llm_options *o)
{
    talk_cut(t, 0);
    return o->system ? talk_add(t, "system", o->system) : ERR_OK;
}

/* ---- an answer ---- */

struct kept {
    struct str text;
    enum err err;
};

static bool on_text(const char *text, size_t n, void *data)
{
    struct kept *kept = data;

    fwrite(text, 1, n, stdout);
    fflush(stdout);
    kept->err = str_add(&kept->text, text, n);
    return !kept->err && !interrupt_came();
}

static bool on_prompt(size_t done, size_t total, void *data)
{
    (void)data;
    llm_progress("prompt", done, total);
    return !interrupt_came();
}

/* What was said, as tokens; an error where it does not fit the context. */
static enum err encode(struct ids *out, struct lm_session *s, const struct llm_options *o,
                       const struct talk *t)
{
    const struct chat_params chat = llm_chat_params(o);
    int32_t context = s->model->config.context;
    enum err err;

    TRY(session_encode(out, s, t->msgs.v, t->msgs.n, &chat));
    if (out->n > (size_t)context)
        err = err_set(ERR_ARG,
                      "the conversation would have %zu tokens, and the context has %d; /reset "
                      "forgets what was said before",
                      out->n, context);
out:
    return err;
}

static enum err answer(struct lm_session *s, const struct llm_options *o, struct talk *t)
{
    struct kept kept = { .err = ERR_OK };
    struct ids prompt = { 0 };
    struct lm_stats stats;
    enum err err;

    TRY(encode(&prompt, s, o, t));
    interrupt_forget();
    TRY(session_run(s, &stats,
                    &(struct session_request){ .prompt = &prompt,
                                               .sampling = &o->sampling,
                                               .max_tokens = o->max_tokens,
                                               .stop = o->stop,
                                               .n_stop = o->n_stop,
                                               .on_text = on_text,
                                               .on_prompt = on_prompt,
                                               .data = &kept }));
    llm_progress("prompt", 1, 1);
    putchar('\n');
    fflush(stdout); /* before what may follow on standard error */
    TRY(kept.err);
    if (stats.finish == LM_FINISH_LENGTH && stats.tokens < (size_t)o->max_tokens)
        fprintf(stderr, "mlx: the context of %d tokens is full; /reset forgets the conversation\n",
                s->model->config.context);
    TRY(VEC_PUSH(&kept.text, '\0'));
    err = talk_add(t, "assistant", kept.text.v);
out:
    VEC_FINI(&kept.text);
    VEC_FINI(&prompt);
    return err;
}

/* ---- the conversation ---- */

/* A line that was read; text is to be freed, and NULL at the end of the input. */
struct line {
    char *text;
    bool has_zero; /* inside, so that text is only what is before it */
};

/* A line from the terminal. Ctrl-C gives an empty one, and the end where it comes twice in turn. */
static struct line read_terminal(void)
{
    static bool was_interrupted;
    struct line l = { 0 };

    interrupt_forget();
    l.text = terminal_line("> ");
    if (!interrupt_came()) {
        was_interrupted = false;
        return l;
    }
    free(l.text);
    l.text = was_interrupted ? NULL : strdup("");
    fputs(was_interrupted ? "\n" : "\n(Ctrl-C again or /exit ends the conversation)\n", stdout);
    was_interrupted = true;
    return l;
}

static struct line read_line(void)
{
    struct line l = { 0 };
    size_t size = 0;

    if (isatty(STDIN_FILENO))
        return read_terminal();
    ssize_t n = getline(&l.text, &size, stdin);
    if (n < 0) {
        free(l.text);
        l.text = NULL;
        return l;
    }
    if (n && l.text[n - 1] == '\n')
        l.text[--n] = 0;
    l.has_zero = strlen(l.text) != (size_t)n;
    return l;
}

/* Blanks behind the command do not count. */
static bool is_command(const char *line, const char *name)
{
    size_t n = strlen(name);

    return strncmp(line, name, n) == 0 && !line[n + strspn(line + n, " \t\r")];
}

/* A line that begins with '/', unless it is the end. */
static enum err take_command(struct talk *t, const struct llm_options *o, const char *line)
{
    if (is_command(line, "/reset"))
        return talk_begin(t, o);
    if (!is_command(line, "/help"))
        return err_set(ERR_ARG, "%.40s is no command: %s", line, commands);
    puts(commands);
    fflush(stdout);
    return ERR_OK;
}

static enum err take_text(struct lm_session *s, const struct llm_options *o, struct talk *t,
                          const char *line)
{
    enum err err;

    TRY(talk_add(t, "user", line));
    err = answer(s, o, t);
out:
    return err;
}

static enum err take_any(struct lm_session *s, const struct llm_options *o, struct talk *t,
                         const struct line *l)
{
    if (l->has_zero)
        return err_set(ERR_ARG, "the line has a zero byte in it");
    if (!l->text[strspn(l->text, " \t\r")])
        return ERR_OK;
    terminal_keep(l->text);
    return *l->text == '/' ? take_command(t, o, l->text) : take_text(s, o, t, l->text);
}

/* False ends the conversation. */
static bool take_line(struct lm_session *s, const struct llm_options *o, struct talk *t,
                      const struct line *l)
{
    size_t before = t->msgs.n;

    if (!l->has_zero && is_command(l->text, "/exit"))
        return false;
    if (take_any(s, o, t, l) != ERR_OK) { /* it goes on as if this had not been said */
        fprintf(stderr, "mlx: %s\n", err_text());
        talk_cut(t, before);
        t->has_failed = true;
    }
    return true;
}

/* *has_failed: some line did. */
static enum err converse(struct lm_session *s, const struct llm_options *o, bool *has_failed)
{
    struct talk t = { 0 };
    struct line line;
    bool go_on = true;
    enum err err;

    TRY(talk_begin(&t, o));
    interrupt_catch();
    while (go_on && (line = read_line()).text) {
        go_on = take_line(s, o, &t, &line);
        free(line.text);
    }
    *has_failed = t.has_failed;
out:
    talk_cut(&t, 0);
    VEC_FINI(&t.msgs);
    return err;
}

int cmd_chat(int argc, char **argv)
{
    struct llm_options o;
    struct lm_session s = { 0 };
    bool has_failed = false;
    enum err err;

    if (!llm_parse(&o, argc, argv, true)) {
        fprintf(stderr, "`mlx chat --help` lists the options.\n");
        return 1;
    }
    if (o.help) {
        fputs(usage, stdout);
        llm_print_options(stdout, true);
        return 0;
    }
    TRY(llm_open(&s, &o));
    if (!o.raw && chat_is_plain(s.chat))
        fprintf(stderr, "mlx: the model has no chat template; texts are passed as they are\n");
    err = converse(&s, &o, &has_failed);
out:
    if (err)
        fprintf(stderr, "mlx: %s\n", err_text());
    session_close(&s);
    /* Who types sees what fails; a script sees the exit code. */
    return err || (has_failed && !isatty(STDIN_FILENO)) ? 1 : 0;
}
