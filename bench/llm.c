/* `mlx bench llm`: prompt and generation speed of a language model, as llama-bench reports them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/gate.h"
#include "base/stat.h"
#include "bench/bench.h"
#include "cli/args.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/memory.h"
#include "lm/files/model_files.h"
#include "lm/generate.h"
#include "lm/model/shapes.h"

#define MAX_LIST 8
#define MAX_REPEATS 100

static const char usage[] =
    "usage: mlx bench llm (--model MODEL | --random SHAPE) [--pp LIST] [--tg LIST] [--depth LIST]\n"
    "                     [--repeat N] [--chunk N] [--device cpu|gpu] [--json]\n"
    "\n"
    "Tokens per second, mean and deviation over repetitions, of prompts (pp) and of generation\n"
    "(tg), behind so many tokens of context (depth). The time of a repetition goes from handing\n"
    "over the first token until the last result is there: of pp the token after the prompt, of tg\n"
    "the last of the new ones, each made from the one before. Before each test it runs until its\n"
    "time is steady, then a load until the GPU's clock is up; neither counts. --json says as\n"
    "\"clock\" what part of the highest the clock had after the test.\n"
    "Of generation also the rate at which weights are read, of a mixture's experts those that a\n"
    "token uses, to be held against that of `mlx bench --filter sum`. Times of the GPU need\n"
    "MLX_VK_TIMING=1.\n"
    "MODEL: a folder in MLX's format, a GGUF file, or a downloaded ORG/NAME.\n"
    "SHAPE: qwen3-0.6b-4bit-g128 and the like, with random weights.\n"
    "Defaults: --pp 512 --tg 128 --depth 0,2048 (as the context has room) --repeat 5 --chunk 512, "
    "--device as for `mlx "
    "generate`\n";

struct list {
    int32_t v[MAX_LIST];
    int n;
};

struct options {
    const char *model, *random;
    struct list pp, tg, depth;
    int32_t repeat, chunk;
    enum dev_type device;
    bool json;
};

struct subject {
    struct lm_model *model;
    struct lm_cache cache;
    struct lm_decoder decoder;
    struct strm *stream;
    int32_t *tokens; /* random */
    int32_t n_tokens;
    int32_t chunk;
    double weight_bytes; /* that a token needs */
};

/* What one repetition took. */
struct sample_row {
    double seconds, cpu_seconds;
    uint64_t dispatches, barriers, gpu_ns;
};

/* ---- one repetition ---- */

static const struct lm_sampling greedy = { .repetition_penalty = 1 };

static struct lm_generation generation(struct subject *s, int32_t n)
{
    return (struct lm_generation){ .model = s->model,
                                   .cache = &s->cache,
                                   .stream = s->stream,
                                   .decoder = &s->decoder,
                                   .prompt = s->tokens,
                                   .n_prompt = (size_t)n,
                                   .sampling = &greedy,
                                   .chunk = s->chunk };
}

static enum err fill_cache(struct subject *s, int32_t depth)
{
    struct lm_generation g = generation(s, depth);
    enum err err = ERR_OK;

    cache_trim(&s->cache, depth);
    if (s->cache.used == depth)
        return ERR_OK;
    cache_reset(&s->cache);
    TRY(generate_prefill(&g, (size_t)depth));
    err = strm_synchronize(s->stream);
out:
    return err;
}

/* The step after tokens, handed over; adds the processor's time for building, planning and encoding
 * it to *cpu, without what the thread waits while the device has enough to do. */
static enum err step(struct arr **token, struct subject *s, struct arr *tokens, double *cpu)
{
    struct lm_generation g = generation(s, 1);
    int64_t began = clock_thread_ns();
    struct lm_step next = { 0 };
    enum err err;

    TRY(generate_step(&next, &g, tokens, NULL));
    arr_unref(&next.logits);
    *token = next.token;
    err = eval_arrays(token, 1, true);
out:
    *cpu += (double)(clock_thread_ns() - began) * 1e-9;
    return err;
}

static enum err run_prompt(struct subject *s, int32_t n, double *cpu)
{
    int32_t last = MIN(s->chunk, n);
    struct lm_generation g = generation(s, n);
    struct arr *tokens = NULL, *token = NULL;
    int64_t began = clock_thread_ns();
    enum err err;

    TRY(generate_prefill(&g, (size_t)(n - last)));
    *cpu += (double)(clock_thread_ns() - began) * 1e-9;
    TRY(arr_new_data(&tokens, s->tokens + n - last, &(struct shp){ .ndim = 2, .d = { 1, last } },
                     DT_INT32));
    TRY(step(&token, s, tokens, cpu));
    err = arr_wait(token);
out:
    arr_unref(&tokens);
    arr_unref(&token);
    return err;
}

/* As generate() does it: the next step is on its way before the last token is read. */
static enum err run_tokens(struct subject *s, int32_t n, double *cpu)
{
    struct arr *token = NULL, *next = NULL;
    enum err err;

    TRY(arr_new_data(&token, s->tokens, &(struct shp){ .ndim = 1, .d = { 1 } }, DT_INT32));
    for (int32_t i = 0; i < n; i++) {
        TRY(step(&next, s, token, cpu));
        TRY(arr_wait(token));
        arr_unref(&token);
        token = next;
        next = NULL;
    }
    err = arr_wait(token);
out:
    arr_unref(&token);
    arr_unref(&next);
    return err;
}

struct test {
    enum err (*run)(struct subject *s, int32_t n, double *cpu);
    const char *name;
    int32_t n, depth;
};

static enum err measure(struct sample_row *row, struct subject *s, const struct test *t)
{
    uint64_t dispatches, barriers, gpu;
    enum err err;

    *row = (struct sample_row){ 0 };
    TRY(fill_cache(s, t->depth));
    dispatches = stat_get(STAT_DISPATCHES);
    barriers = stat_get(STAT_BARRIERS);
    gpu = stat_get(STAT_GPU_NANOSECONDS);
    int64_t began = clock_ns();
    TRY(t->run(s, t->n, &row->cpu_seconds));
    row->seconds = (double)(clock_ns() - began) * 1e-9;
    TRY(strm_synchronize(s->stream));
    row->dispatches = stat_get(STAT_DISPATCHES) - dispatches;
    row->barriers = stat_get(STAT_BARRIERS) - barriers;
    row->gpu_ns = stat_get(STAT_GPU_NANOSECONDS) - gpu;
out:
    return err;
}

/* ---- report ---- */

static void report(const struct options *o, const struct subject *s, const struct test *t,
                   const struct sample_row *row)
{
    int n = o->repeat;
    double mean = 0, square = 0, cpu = 0, per_token = t->n;

    for (int i = 0; i < n; i++) {
        mean += t->n / row[i].seconds / n;
        cpu += row[i].cpu_seconds / n;
    }
    for (int i = 0; i < n; i++)
        square += (t->n / row[i].seconds - mean) * (t->n / row[i].seconds - mean);
    double deviation = n > 1 ? sqrt(square / (n - 1)) : 0;
    const struct sample_row *last = &row[n - 1];
    printf(o->json ? "{\"test\": \"%s%d\", \"depth\": %d, \"tokens_per_second\": %.2f, "
                     "\"deviation\": %.2f, \"dispatches_per_token\": %.2f, "
                     "\"barriers_per_token\": %.2f, \"cpu_us_per_token\": %.2f, "
                     "\"gpu_us_per_token\": %.2f, \"weight_gb_per_second\": %.3f"
                   : "%s%-8d %8d %12.1f %10.1f %12.2f %12.2f %12.1f %12.1f %10.1f",
           t->name, t->n, t->depth, mean, deviation, (double)last->dispatches / per_token,
           (double)last->barriers / per_token, cpu / per_token * 1e6,
           (double)last->gpu_ns / per_token * 1e-3,
           t->run == run_tokens ? s->weight_bytes * mean * 1e-9 : 0.0);
    double clock = o->json ? bench_load_clock() : 0;
    if (clock > 0)
        printf(", \"clock\": %.3f", clock);
    puts(o->json ? "}" : "");
    fflush(stdout);
}

/* What the warm-up repeats: its first run makes the cache, the second is planned for one that is
 * there. */
struct repeated {
    struct subject *subject;
    const struct test *test;
};

static int run_again(double *seconds, void *data)
{
    const struct repeated *r = data;
    struct sample_row row;
    enum err err = measure(&row, r->subject, r->test);

    *seconds = row.seconds;
    return err != ERR_OK;
}

static enum err run_test(struct subject *s, const struct options *o, const struct test *t)
{
    struct sample_row row[MAX_REPEATS];
    struct repeated again = { s, t };
    enum err err = ERR_OK;

    TRY(bench_warm(&(struct bench_work){ run_again, &again }) ? ERR_RUNTIME : ERR_OK);
    for (int i = 0; i < o->repeat; i++)
        TRY(measure(&row[i], s, t));
    report(o, s, t, row);
out:
    return err;
}

static void report_head(const struct options *o)
{
    if (!o->json) {
        printf("%-10s %8s %12s %10s %12s %12s %12s %12s %10s\n", "test", "depth", "tok/s", "+-",
               "dispatches", "barriers", "cpu us", "gpu us", "GB/s");
        return;
    }
    mlx_device device = mlx_device_new_type(o->device == DEV_CPU ? MLX_CPU : MLX_GPU, 0);
    bench_begin_json(device);
    bench_put_text("model", o->model ? o->model : o->random);
    printf("\"chunk\": %d, \"repeat\": %d}\n", o->chunk, o->repeat);
    mlx_device_free(device);
}

static enum err run_tests(struct subject *s, const struct options *o)
{
    enum err err = ERR_OK;

    report_head(o);
    for (int d = 0; d < o->depth.n; d++) {
        for (int i = 0; i < o->pp.n; i++)
            TRY(run_test(s, o, &(struct test){ run_prompt, "pp", o->pp.v[i], o->depth.v[d] }));
        for (int i = 0; i < o->tg.n; i++)
            TRY(run_test(s, o, &(struct test){ run_tokens, "tg", o->tg.v[i], o->depth.v[d] }));
    }
out:
    return err;
}

/* ---- the model ---- */

static double bytes_of(const struct arr *w)
{
    return w ? (double)(w->size * dt_size((enum dtype)w->dtype)) : 0;
}

static enum err eval_weight(struct arr *w, void *data)
{
    struct subject *s = data;

    s->weight_bytes += bytes_of(w);
    return eval_arrays(&w, 1, false);
}

static double linear_bytes(const struct lm_linear *l)
{
    return bytes_of(l->weight) + bytes_of(l->scales) + bytes_of(l->biases);
}

/* Of a table of embeddings that is nothing else a token reads a row, of a mixture's experts some.
 */
static void forget_unread(struct subject *s)
{
    const struct lm_config *c = &s->model->config;

    if (!c->tied)
        s->weight_bytes -= linear_bytes(&s->model->embed);
    for (int i = 0; i < c->layers; i++) {
        const struct lm_mlp *m = &s->model->layer[i].mlp;
        if (s->model->layer[i].is_sparse)
            s->weight_bytes -=
                (linear_bytes(&m->gate) + linear_bytes(&m->up) + linear_bytes(&m->down)) *
                (c->experts - c->experts_per_token) / c->experts;
    }
}

static int32_t largest(const struct list *l)
{
    int32_t most = 0;

    for (int i = 0; i < l->n; i++)
        most = MAX(most, l->v[i]);
    return most;
}

/* Without --depth both usual ones, as far as the context has room. Too much is said before weights
 * are read, which can take long. */
static enum err check_context(struct options *o, int32_t context)
{
    int32_t pp = largest(&o->pp), tg = largest(&o->tg);

    if (!o->depth.n)
        o->depth = (struct list){ { 0, 2048 }, context >= 2048 + MAX(pp, tg) ? 2 : 1 };
    int32_t depth = largest(&o->depth);
    if (depth + MAX(pp, tg) <= context)
        return ERR_OK;
    return err_set(ERR_ARG, "--depth %d and --%s %d are %d tokens, and the model's context has %d",
                   depth, pp > tg ? "pp" : "tg", MAX(pp, tg), depth + MAX(pp, tg), context);
}

static enum err open_model(struct subject *s, struct options *o)
{
    struct model_files parts = { .tok = NULL };
    enum err err;

    TRY(dev_set_default((struct dev){ .type = o->device }));
    TRY(strm_default(&s->stream, (struct dev){ .type = o->device }));
    if (o->random) {
        TRY(shapes_config(&parts.config, o->random));
        TRY(check_context(o, parts.config.context));
        TRY(weights_random(&parts.weights, &parts.config, 0, s->stream));
    } else {
        TRY(model_files_open(&parts, o->model, MODEL_FILES_MODEL, s->stream));
        TRY(check_context(o, parts.config.context));
    }
    TRY(model_new(&s->model, &parts.config, parts.weights));
    TRY(model_each_weight(s->model, eval_weight, s));
    forget_unread(s);
    TRY(cache_init(&s->cache, s->model->config.layers));
    s->decoder = (struct lm_decoder){ .model = s->model, .cache = &s->cache, .stream = s->stream };
out:
    model_files_fini(&parts);
    return err;
}

static enum err make_tokens(struct subject *s, const struct options *o)
{
    uint32_t state = 1;

    s->n_tokens = MAX(largest(&o->pp), largest(&o->depth));
    s->tokens = mem_alloc_array((size_t)s->n_tokens, sizeof *s->tokens);
    if (!s->tokens)
        return ERR_NO_MEMORY;
    for (int32_t i = 0; i < s->n_tokens; i++) {
        state = state * 1664525 + 1013904223;
        s->tokens[i] = (int32_t)(state >> 8) % s->model->config.vocab;
    }
    return ERR_OK;
}

/* ---- options ---- */

static bool parse_list(struct list *l, const char *text, int32_t least)
{
    char *end;

    for (l->n = 0; l->n < MAX_LIST; text = end + 1) {
        long v = strtol(text, &end, 10);
        if (end == text || v < least || v > 1 << 20)
            return false;
        l->v[l->n++] = (int32_t)v;
        if (*end != ',')
            return !*end;
    }
    return false;
}

static bool parse_one(int32_t *out, const char *text, int32_t most)
{
    struct list l;

    if (!parse_list(&l, text, 1) || l.n != 1 || l.v[0] > most)
        return false;
    *out = l.v[0];
    return true;
}

static bool parse_option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "--model") == 0)
        return (o->model = value);
    if (strcmp(name, "--random") == 0)
        return (o->random = value);
    if (strcmp(name, "--pp") == 0)
        return parse_list(&o->pp, value, 1);
    if (strcmp(name, "--tg") == 0)
        return parse_list(&o->tg, value, 1);
    if (strcmp(name, "--depth") == 0)
        return parse_list(&o->depth, value, 0);
    if (strcmp(name, "--repeat") == 0)
        return parse_one(&o->repeat, value, MAX_REPEATS);
    if (strcmp(name, "--chunk") == 0)
        return parse_one(&o->chunk, value, 1 << 20);
    if (strcmp(name, "--device") != 0)
        return false;
    o->device = strcmp(value, "cpu") == 0 ? DEV_CPU : DEV_GPU;
    return o->device == DEV_CPU || strcmp(value, "gpu") == 0;
}

static bool parse(struct options *o, int argc, char **argv)
{
    struct args a = { .argc = argc, .argv = argv };

    *o = (struct options){ .pp = { { 512 }, 1 },
                           .tg = { { 128 }, 1 },
                           .repeat = 5,
                           .chunk = LM_CHUNK,
                           .device = dev_default().type };
    while (args_next(&a)) {
        if (args_is(&a, "--json", 0)) {
            o->json = true;
            continue;
        }
        const char *name = args_is(&a, "--model", 'm') ? "--model" : a.name;
        const char *value = args_value(&a);
        if (!value || !parse_option(o, name, value)) {
            fprintf(stderr, "mlx bench llm: no such option or value: %s %s\n", a.name,
                    value ? value : "");
            return false;
        }
    }
    if (!args_end(&a))
        return false;
    if (!o->model == !o->random) {
        fprintf(stderr, "mlx bench llm: either --model or --random is needed\n");
        return false;
    }
    return true;
}

int bench_llm(int argc, char **argv)
{
    struct options o;
    struct subject s = { 0 };
    enum err err;

    if (args_want_help(argc, argv)) {
        fputs(usage, stdout);
        return 0;
    }
    if (!parse(&o, argc, argv))
        return 1;
    s.chunk = o.chunk;
    TRY(open_model(&s, &o));
    TRY(make_tokens(&s, &o));
    TRY(bench_load_open(o.device == DEV_CPU ? MLX_CPU : MLX_GPU) ? ERR_RUNTIME : ERR_OK);
    TRY(run_tests(&s, &o));
    if (!o.json)
        printf("peak memory %.3f GB\n", (double)memory_peak() * 1e-9);
out:
    if (err)
        fprintf(stderr, "mlx: %s\n", err_text());
    bench_load_close();
    decoder_fini(&s.decoder);
    cache_fini(&s.cache);
    model_destroy(&s.model);
    mem_free(s.tokens);
    return err ? 1 : 0;
}
