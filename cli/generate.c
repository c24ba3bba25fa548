/* `mlx generate`: one prompt, one answer. */
#include <math.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/llm.h"
#include "graph/memory.h"
#include "mlx/c/mlx.h"

static const char usage[] =
    "usage: mlx generate --model MODEL --prompt TEXT [options]\n\n"
    "Writes the answer to standard output and statistics to standard error.\n\n";

/* ---- the prompt ---- */

static enum err read_prompt(struct str *out, const char *text)
{
    struct str raw = { 0 };
    enum err err;

    TRY(llm_read_text(&raw, text));
    if (raw.n && memchr(raw.v, 0, raw.n))
        err = err_set(ERR_ARG, "the prompt has a zero byte in it");
    else
        err = str_add_lossy(out, raw.v, raw.n);
out:
    VEC_FINI(&raw);
    return err;
}

static enum err encode(struct ids *out, struct lm_session *s, const struct llm_options *o)
{
    const struct chat_params chat = llm_chat_params(o);
    struct str prompt = { 0 };
    struct chat_msg msgs[2];
    size_t n = 0;
    enum err err;

    TRY(read_prompt(&prompt, o->prompt));
    TRY(VEC_PUSH(&prompt, '\0'));
    if (o->system)
        msgs[n++] = (struct chat_msg){ .role = "system", .content = o->system };
    msgs[n++] = (struct chat_msg){ .role = "user", .content = prompt.v };
    err = session_encode(out, s, msgs, n, &chat);
out:
    VEC_FINI(&prompt);
    return err;
}

/* ---- the answer ---- */

/* What --json prints: text and tokens are kept until the end. */
struct kept {
    struct str text, logprobs; /* the latter as JSON */
    struct ids tokens;
    int32_t n_top; /* of the likeliest tokens that go with each; -1: no log-probabilities */
    enum err err;
};

static bool on_text(const char *text, size_t n, void *data)
{
    struct kept *kept = data; /* NULL: straight to standard output */

    if (kept) {
        kept->err = str_add(&kept->text, text, n);
        return !kept->err && !interrupt_came();
    }
    fwrite(text, 1, n, stdout);
    return fflush(stdout) == 0 && !interrupt_came();
}

static bool on_prompt(size_t done, size_t total, void *data)
{
    (void)data;
    llm_progress("prompt", done, total);
    return !interrupt_came();
}

static enum err add_logprob(struct str *out, int32_t id, float logprob)
{
    char text[80];
    int n = isfinite(logprob)
                ? snprintf(text, sizeof text, "{\"id\": %d, \"logprob\": %.6f", id, (double)logprob)
                : snprintf(text, sizeof text, "{\"id\": %d, \"logprob\": null", id);

    return str_add(out, text, (size_t)n);
}

/* The likeliest token behind `last`: less likely than it, or as likely and later. */
static int32_t next_likely(const float *logprobs, size_t n, int32_t last)
{
    int32_t best = -1;

    for (int32_t i = 0; i < (int32_t)n; i++) {
        bool is_behind =
            last < 0 || logprobs[i] < logprobs[last] || (logprobs[i] == logprobs[last] && i > last);
        if (is_behind && (best < 0 || logprobs[i] > logprobs[best]))
            best = i;
    }
    return best;
}

static enum err add_logprobs(struct kept *kept, int32_t id, const float *logprobs, size_t n)
{
    struct str *out = &kept->logprobs;
    int32_t top = -1;
    enum err err = ERR_OK;

    if (out->n)
        TRY(str_add(out, ", ", 2));
    TRY(add_logprob(out, id, logprobs[id]));
    TRY(str_add(out, ", \"top\": [", 10));
    for (int32_t i = 0; i < kept->n_top && (top = next_likely(logprobs, n, top)) >= 0; i++) {
        if (i)
            TRY(str_add(out, ", ", 2));
        TRY(add_logprob(out, top, logprobs[top]));
        TRY(str_add(out, "}", 1));
    }
    err = str_add(out, "]}", 2);
out:
    return err;
}

static enum err on_token(int32_t id, const float *logprobs, size_t n, void *data)
{
    struct kept *kept = data;
    enum err err;

    TRY(VEC_PUSH(&kept->tokens, id));
    if (logprobs)
        err = add_logprobs(kept, id, logprobs, n);
out:
    return err;
}

static void print_json_text(const char *s, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_ids(const char *name, const struct ids *ids)
{
    printf(", \"%s\": [", name);
    for (size_t i = 0; i < ids->n; i++)
        printf("%s%d", i ? ", " : "", (int)ids->v[i]);
    printf("]");
}

static void print_json(const struct kept *kept, const struct ids *prompt, const struct lm_stats *s)
{
    static const char *const reasons[] = {
        [LM_FINISH_LENGTH] = "length", [LM_FINISH_STOP] = "stop", [LM_FINISH_CALLER] = "stop"
    };

    printf("{\"text\": ");
    print_json_text(kept->text.v, kept->text.n);
    printf(", \"finish_reason\": \"%s\", \"prompt_tokens\": %zu, \"prompt_seconds\": %.6f, "
           "\"generation_tokens\": %zu, \"generation_seconds\": %.6f, \"peak_memory_gb\": %.6f",
           interrupt_came() ? "interrupted" : reasons[s->finish], s->prompt_tokens,
           s->prompt_seconds, s->tokens, s->seconds, (double)memory_peak() * 1e-9);
    print_ids("prompt_token_ids", prompt);
    print_ids("token_ids", &kept->tokens);
    if (kept->n_top >= 0)
        printf(", \"logprobs\": [%.*s]", (int)kept->logprobs.n,
               kept->logprobs.n ? kept->logprobs.v : "");
    printf("}\n");
}

static enum err answer(struct lm_session *s, const struct llm_options *o)
{
    struct kept kept = { .n_top = o->logprobs };
    struct ids prompt = { 0 };
    struct lm_stats stats;
    enum err err;

    TRY(encode(&prompt, s, o));
    interrupt_catch();
    err = session_run(s, &stats,
                      &(struct session_request){ .prompt = &prompt,
                                                 .sampling = &o->sampling,
                                                 .max_tokens = o->max_tokens,
                                                 .stop = o->stop,
                                                 .n_stop = o->n_stop,
                                                 .on_text = on_text,
                                                 .on_prompt = on_prompt,
                                                 .on_token = o->json ? on_token : NULL,
                                                 .with_logprobs = o->logprobs >= 0,
                                                 .data = o->json ? &kept : NULL });
    llm_progress("prompt", 1, 1);
    if (!o->json && stats.tokens) {
        putchar('\n');
        fflush(stdout); /* before the statistics, where both go to one file */
    }
    TRY(err);
    TRY(kept.err);
    if (o->json)
        print_json(&kept, &prompt, &stats);
    else
        llm_print_stats(&stats);
out:
    VEC_FINI(&kept.text);
    VEC_FINI(&kept.logprobs);
    VEC_FINI(&kept.tokens);
    VEC_FINI(&prompt);
    return err;
}

int cmd_generate(int argc, char **argv)
{
    struct llm_options o;
    struct lm_session s = { 0 };
    enum err err;

    if (!llm_parse(&o, argc, argv, false)) {
        fprintf(stderr, "`mlx generate --help` lists the options.\n");
        return 1;
    }
    if (o.help) {
        fputs(usage, stdout);
        llm_print_options(stdout, false);
        return 0;
    }
    TRY(llm_open(&s, &o));
    err = answer(&s, &o);
out:
    if (err)
        fprintf(stderr, "mlx: %s\n", err_text());
    session_close(&s);
    return err ? 1 : 0;
}
