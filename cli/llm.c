#include <errno.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/args.h"
#include "cli/llm.h"
#include "eval/stream.h"
#include "graph/memory.h"

/* ---- options ---- */

static bool parse_number(double *out, const char *text, double least, double most)
{
    char *end;

    errno = 0;
    *out = strtod(text, &end);
    return end != text && !*end && !errno && *out >= least && *out <= most;
}

static bool set_model(struct llm_options *o, const char *v)
{
    o->model = v;
    return true;
}

static bool set_prompt(struct llm_options *o, const char *v)
{
    o->prompt = v;
    return true;
}

static bool set_system(struct llm_options *o, const char *v)
{
    o->system = v;
    return true;
}

static bool set_seed(struct llm_options *o, const char *v)
{
    char *end;

    errno = 0;
    o->seed = strtoull(v, &end, 10);
    o->has_seed = true;
    return end != v && !*end && !errno && *v >= '0' && *v <= '9';
}

static bool set_device(struct llm_options *o, const char *v)
{
    o->has_device = true;
    o->device = strcmp(v, "cpu") == 0 ? DEV_CPU : DEV_GPU;
    return o->device == DEV_CPU || strcmp(v, "gpu") == 0;
}

static bool set_stop(struct llm_options *o, const char *v)
{
    if (o->n_stop == ARRAY_LEN(o->stop) || !*v)
        return false;
    o->stop[o->n_stop++] = v;
    return true;
}

static bool set_raw(struct llm_options *o, const char *v)
{
    (void)v;
    o->raw = true;
    return true;
}

static bool set_json(struct llm_options *o, const char *v)
{
    (void)v;
    o->json = true;
    return true;
}

#define MAX_LOGPROBS 20

static bool set_think(struct llm_options *o, const char *v)
{
    o->thinking = strcmp(v, "on") == 0 ? CHAT_THINK_ON : CHAT_THINK_OFF;
    return o->thinking == CHAT_THINK_ON || strcmp(v, "off") == 0;
}

static bool set_template_config(struct llm_options *o, const char *v)
{
    o->template_config = v;
    return true;
}

static const struct option {
    const char *name, *value, *text;
    bool (*set)(struct llm_options *o, const char *v); /* NULL: it is a number */
    const char *wants;                                 /* what else it may be */
    bool in_chat;
    char letter;
    struct {
        size_t at; /* in the options */
        double least, most;
        bool is_whole; /* an int32_t, otherwise a float */
    } number;
} options[] = {
#define NUMBER(field, ...) .number = { offsetof(struct llm_options, field), __VA_ARGS__ }
    { "--model", "MODEL", "folder in MLX's format, GGUF file, or downloaded ORG/NAME", set_model,
      .in_chat = true, .letter = 'm' },
    { "--prompt", "TEXT", "what to answer or to continue; - reads standard input", set_prompt,
      .letter = 'p' },
    { "--system", "TEXT", "system message", set_system, .in_chat = true },
    { "--raw", NULL, "continue the text itself, without the model's chat template", set_raw,
      .in_chat = true },
    { "--max-tokens", "N", "longest answer in tokens (256)", .in_chat = true,
      NUMBER(max_tokens, 1, INT32_MAX, true) },
    { "--temp", "X", "temperature; 0 takes the likeliest token (0)", .in_chat = true,
      NUMBER(sampling.temperature, 0, 1e6) },
    { "--top-p", "X", "only the likeliest tokens that make up this probability (all)",
      .in_chat = true, NUMBER(sampling.top_p, 0, 1) },
    { "--top-k", "N", "only so many of the likeliest tokens (all)", .in_chat = true,
      NUMBER(sampling.top_k, 0, INT32_MAX, true) },
    { "--min-p", "X", "only tokens with this share of the likeliest one's probability (all)",
      .in_chat = true, NUMBER(sampling.min_p, 0, 1) },
    { "--repetition-penalty", "X", "make recent tokens less likely (1: not at all)",
      .in_chat = true, NUMBER(sampling.repetition_penalty, 1e-6, 1e6) },
    { "--seed", "N", "for the same answer again", set_seed,
      "a whole number from 0 to 18446744073709551615", .in_chat = true },
    { "--stop", "TEXT", "end before this text; up to eight times", set_stop,
      "up to eight texts, none of them empty", .in_chat = true },
    { "--think", "on|off", "for models that can think aloud first", set_think, "on or off",
      .in_chat = true },
    { "--chat-template-config", "JSON",
      "variables for the chat template, as {\"enable_thinking\": false}", set_template_config,
      .in_chat = true },
    { "--device", "cpu|gpu", "where to run (gpu where there is a hardware one)", set_device,
      "cpu or gpu", .in_chat = true },
    { "--json", NULL, "answer, token ids and statistics as one JSON object", set_json },
    { "--logprobs", "N",
      "with --json: log-probability of each token and of the N likeliest (to 20)",
      NUMBER(logprobs, 0, MAX_LOGPROBS, true) },
#undef NUMBER
};

void llm_print_options(FILE *out, bool is_chat)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        char left[40], letter[8] = "";
        if (is_chat && !options[i].in_chat)
            continue;
        if (options[i].letter)
            snprintf(letter, sizeof letter, "-%c, ", options[i].letter);
        snprintf(left, sizeof left, "%s%s %s", letter, options[i].name,
                 options[i].value ? options[i].value : "");
        fprintf(out, "  %-26s %s\n", left, options[i].text);
    }
    fputs("  -h, --help                 this text\n\n"
          "--name=value is the same as --name value.\n",
          out);
}

static const struct option *find_option(const struct args *a, bool is_chat)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (args_is(a, options[i].name, options[i].letter) && (!is_chat || options[i].in_chat))
            return &options[i];
    return NULL;
}

static bool complain(const char *what, const char *name, const char *rest)
{
    fprintf(stderr, "mlx: %s %s%s\n", what, name, rest);
    return false;
}

static bool set_number(struct llm_options *o, const struct option *opt, const char *v)
{
    void *at = (char *)o + opt->number.at;
    double n = 0;

    if (!parse_number(&n, v, opt->number.least, opt->number.most))
        return false;
    if (opt->number.is_whole) {
        *(int32_t *)at = (int32_t)n;
        return n == floor(n);
    }
    /* What is too small for a float is still more than 0, which may mean something else. */
    *(float *)at = n > 0 && n < (double)FLT_MIN ? FLT_MIN : (float)n;
    return true;
}

static bool complain_of_value(const struct option *opt, const char *value)
{
    fprintf(stderr, "mlx: %s cannot be %s: ", opt->name, *value ? value : "empty");
    if (opt->set)
        fprintf(stderr, "it is %s\n", opt->wants);
    else
        fprintf(stderr, "it is a %snumber from %.10g to %.10g\n",
                opt->number.is_whole ? "whole " : "", opt->number.least, opt->number.most);
    return false;
}

static bool take_option(struct llm_options *o, struct args *a, bool is_chat)
{
    const struct option *opt = find_option(a, is_chat);
    const char *value = opt && opt->value ? args_value(a) : NULL;

    if (!opt)
        return complain("unknown option", a->word, "");
    if (opt->value && !value)
        return complain(opt->name, "needs a value: ", opt->value);
    return (opt->set ? opt->set(o, value) : set_number(o, opt, value)) ||
           complain_of_value(opt, value);
}

/* What is missing, or does not go together. */
static bool check_options(const struct llm_options *o, bool is_chat)
{
    if (!o->model)
        return complain("--model", "is missing", "");
    if (!is_chat && !o->prompt)
        return complain("--prompt", "is missing", "");
    if (o->raw && o->system)
        return complain("--system", "needs the chat template that --raw leaves out", "");
    if (o->raw && o->template_config)
        return complain("--chat-template-config", "needs the chat template that --raw leaves out",
                        "");
    if (o->logprobs >= 0 && !o->json)
        return complain("--logprobs", "needs --json", "");
    return true;
}

bool llm_parse(struct llm_options *o, int argc, char **argv, bool is_chat)
{
    struct args a = { .argc = argc, .argv = argv };

    *o = (struct llm_options){ .max_tokens = 256,
                               .logprobs = -1,
                               .sampling = { .repetition_penalty = 1, .repetition_context = 20 } };
    while (args_next(&a)) {
        if (args_is(&a, "--help", 'h')) {
            o->help = true;
            return true;
        }
        if (!take_option(o, &a, is_chat))
            return false;
    }
    return args_end(&a) && check_options(o, is_chat);
}

/* ---- progress ---- */

#define BAR_WIDTH 40
#define REDRAW_NS 50000000

void llm_progress(const char *what, size_t done, size_t total)
{
    static int64_t last;
    static bool is_shown;
    int64_t now = clock_ns();

    if (!isatty(STDERR_FILENO) || total == 0)
        return;
    if (done >= total) {
        if (is_shown)
            fprintf(stderr, "\r\033[K");
        is_shown = false;
        return;
    }
    if (is_shown && now - last < REDRAW_NS)
        return;
    int filled = (int)(done * BAR_WIDTH / total);
    fprintf(stderr, "\r%s [%.*s%*s] %3zu %%", what, filled,
            "########################################", BAR_WIDTH - filled, "", done * 100 / total);
    fflush(stderr);
    last = now;
    is_shown = true;
}

/* ---- text and model ---- */

struct chat_params llm_chat_params(const struct llm_options *o)
{
    return (struct chat_params){ .add_generation_prompt = true,
                                 .thinking = o->thinking,
                                 .more = o->template_config };
}

enum err llm_read_text(struct str *out, const char *text)
{
    size_t got;
    enum err err = ERR_OK;

    if (strcmp(text, "-") != 0)
        return str_add_text(out, text);
    do {
        TRY(VEC_RESERVE(out, 65536));
        got = fread(out->v + out->n, 1, out->cap - out->n, stdin);
        out->n += got;
    } while (got);
    if (ferror(stdin))
        err = err_set(ERR_RUNTIME, "standard input cannot be read");
out:
    return err;
}

static void on_load(size_t done, size_t total, void *data)
{
    (void)data;
    llm_progress("loading", done, total);
}

enum err llm_open(struct lm_session *s, const struct llm_options *o)
{
    struct dev dev = o->has_device ? (struct dev){ .type = o->device } : dev_default();
    struct strm *stream;
    enum err err;

    TRY(sampling_check(&o->sampling));
    TRY(dev_set_default(dev)); /* the other device is not even opened */
    TRY(strm_default(&stream, dev));
    if (o->has_seed)
        TRY(ops_random_seed(o->seed));
    err = session_open(s,
                       &(struct session_params){
                           .path = o->model, .raw = o->raw, .stream = stream, .on_load = on_load });
out:
    return err;
}

/* ---- statistics ---- */

static double rate(size_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

void llm_print_stats(const struct lm_stats *s)
{
    size_t after_first = s->tokens > 0 ? s->tokens - 1 : 0;

    fprintf(stderr, "==========\n");
    fprintf(stderr, "Prompt: %zu tokens, %.3f tokens-per-sec\n", s->prompt_tokens,
            rate(s->prompt_tokens, s->prompt_seconds));
    fprintf(stderr, "Generation: %zu tokens, %.3f tokens-per-sec\n", s->tokens,
            rate(after_first, s->seconds));
    fprintf(stderr, "Peak memory: %.3f GB\n", (double)memory_peak() * 1e-9);
}
