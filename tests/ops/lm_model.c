/* Small language models of every architecture on every device, against what transformers or mlx-lm
 * computes with the same numbers (gen/lm_models.py). */
#include "eval/wait.h"
#include "lm/session.h"

#include "support/data.h"
#include "support/gpu.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"

#define TOKENS_MAX 64
#define PROMPT_MAX 512
#define VOCAB_MAX 128

/* Of logits that spread over about 10. Dense float32 differs by the order of sums alone; the 16-bit
 * types are compared with float32 arithmetic on the same weights. */
static const struct {
    const char *dtype;
    double tolerance;
    bool has_exact_tokens;
} precisions[] = {
    { "float32", 2e-4, true },
    { "float16", 0.03, false },
    { "bfloat16", 0.2, false },
};

struct expectation {
    const char *name;
    double tolerance;
    bool has_exact_tokens;
    int32_t prompt[PROMPT_MAX], greedy[TOKENS_MAX];
    double logits[VOCAB_MAX], leads[TOKENS_MAX];
    size_t n_prompt, n_greedy, n_logits;
};

static struct json_doc *models;
static struct strm *streams[2];
static int n_streams;

/* ---- what is expected ---- */

static size_t read_ints(int32_t *out, size_t most, struct json list)
{
    size_t n = 0;

    JSON_EACH(v, list)
    {
        int64_t x;
        assert_ok(json_int(&x, v));
        assert_in_range(n, 0, most - 1);
        out[n++] = (int32_t)x;
    }
    return n;
}

static size_t read_numbers(double *out, size_t most, struct json list)
{
    size_t n = 0;

    JSON_EACH(v, list)
    {
        assert_in_range(n, 0, most - 1);
        assert_ok(json_number(&out[n++], v));
    }
    return n;
}

/* key: of the dtype, which decides how exact the model is. */
static void read_expectation(struct expectation *e, struct json model, struct json prompt,
                             const char *key)
{
    const char *dtype;

    *e = (struct expectation){ 0 };
    assert_ok(json_get_string(&e->name, model, "name"));
    assert_ok(json_get_string(&dtype, model, key));
    for (size_t i = 0; i < ARRAY_LEN(precisions); i++)
        if (strcmp(precisions[i].dtype, dtype) == 0) {
            e->tolerance = precisions[i].tolerance;
            e->has_exact_tokens = precisions[i].has_exact_tokens;
        }
    assert_true(e->tolerance > 0);
    e->n_prompt = read_ints(e->prompt, PROMPT_MAX - TOKENS_MAX, json_find(prompt, "prompt"));
    e->n_greedy = read_ints(e->greedy, TOKENS_MAX, json_find(prompt, "greedy"));
    e->n_logits = read_numbers(e->logits, VOCAB_MAX, json_find(prompt, "logits"));
    assert_int_equal(read_numbers(e->leads, TOKENS_MAX, json_find(prompt, "leads")), e->n_greedy);
    assert_int_equal(e->n_greedy, TOKENS_MAX);
}

/* ---- running ---- */

struct run {
    struct lm_model *model;
    struct lm_cache cache;
    struct strm *stream;
    const struct expectation *e;
    int32_t ids[TOKENS_MAX];
    size_t n, n_logprobs;
};

static struct data_path model_path(const char *name, const char *ending)
{
    char path[512];

    snprintf(path, sizeof path, "lm/%s%s", name, ending);
    return data_made(path);
}

static struct lm_model *open_model(const char *name, struct strm *s)
{
    struct lm_config config = { 0 };
    struct lm_weights *weights = NULL;
    struct lm_model *m = NULL;
    struct data_path folder = model_path(name, "");

    assert_ok(config_load(&config, folder.v));
    assert_ok(weights_open_folder(&weights, folder.v, s));
    assert_ok(model_new(&m, &config, weights));
    weights_destroy(&weights);
    return m;
}

/* Logits of all positions of tokens that follow what the cache has. */
static double *logits_of(struct run *r, const int32_t *ids, size_t n)
{
    struct lm_graph g;
    struct arr *tokens = NULL, *logits = NULL;
    size_t count = n * (size_t)r->model->config.vocab;
    double *out = mem_alloc_array(count, sizeof *out);
    const void *p;

    assert_non_null(out);
    assert_ok(arr_new_data(&tokens, ids, &(struct shp){ 2, { 1, (int32_t)n } }, DT_INT32));
    graph_begin(&g, r->stream);
    struct arr *hidden = model_hidden(&g, r->model, tokens, &r->cache);
    graph_keep(&g, &logits, g_astype(&g, model_logits(&g, r->model, hidden), DT_FLOAT32));
    assert_ok(graph_end(&g));
    assert_ok(eval_arrays(&logits, 1, false));
    assert_ok(arr_host(&p, logits));
    for (size_t i = 0; i < count; i++)
        out[i] = (double)((const float *)p)[i];
    arr_unref(&logits);
    arr_unref(&tokens);
    return out;
}

static void check_logits(const struct run *r, const double *got, const char *what)
{
    for (size_t i = 0; i < r->e->n_logits; i++)
        if (!(fabs(got[i] - r->e->logits[i]) <= r->e->tolerance))
            fail_msg("%s, %s, %zu tokens, %s: logit %zu is %g, not %g", r->e->name,
                     dev_name(r->stream->dev.type), r->e->n_prompt, what, i, got[i],
                     r->e->logits[i]);
}

static int32_t likeliest(const double *logits, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

/* Prompt and answer in one go, without what a cache would hold: each token of the answer is the
 * likeliest one at its place, wherever the reference is not undecided within the tolerance. */
static void check_at_once(struct run *r)
{
    const struct expectation *e = r->e;
    int32_t ids[PROMPT_MAX];
    size_t n = e->n_prompt + e->n_greedy - 1, sure = 0;

    memcpy(ids, e->prompt, e->n_prompt * sizeof *ids);
    memcpy(ids + e->n_prompt, e->greedy, (e->n_greedy - 1) * sizeof *ids);
    cache_reset(&r->cache);
    double *logits = logits_of(r, ids, n);
    check_logits(r, logits + (e->n_prompt - 1) * e->n_logits, "at once");
    for (size_t i = 0; i < e->n_greedy; i++) {
        if (!e->has_exact_tokens && e->leads[i] < 2 * e->tolerance)
            continue;
        sure++;
        const double *at = logits + (e->n_prompt - 1 + i) * e->n_logits;
        assert_int_equal(likeliest(at, e->n_logits), e->greedy[i]);
    }
    assert_true(sure >= TOKENS_MAX / 4); /* or the comparison says nothing */
    mem_free(logits);
}

/* The prompt in pieces of one token less than it has and one, so that the last one meets a cache.
 */
static void check_split(struct run *r)
{
    const struct expectation *e = r->e;

    cache_reset(&r->cache);
    if (e->n_prompt > 1)
        mem_free(logits_of(r, e->prompt, e->n_prompt - 1));
    double *logits = logits_of(r, e->prompt + e->n_prompt - 1, 1);
    check_logits(r, logits, "with a cache");
    mem_free(logits);
}

static bool on_token(int32_t id, void *data)
{
    struct run *r = data;

    assert_in_range(r->n, 0, TOKENS_MAX - 1);
    r->ids[r->n++] = id;
    return true;
}

/* Of all tokens, and the greatest is that of the token. */
static void on_logprobs(int32_t id, const float *logprobs, size_t n, void *data)
{
    struct run *r = data;
    double sum = 0;

    assert_int_equal(n, r->model->config.vocab);
    for (size_t i = 0; i < n; i++) {
        assert_true(logprobs[i] <= logprobs[id]);
        sum += exp((double)logprobs[i]);
    }
    assert_true(fabs(sum - 1) < 1e-4);
    r->n_logprobs++;
}

/* The answer itself, token by token. */
static void check_generation(struct run *r, int32_t chunk, struct lm_decoder *decoder)
{
    static const struct lm_sampling greedy = { .repetition_penalty = 1 };
    const struct expectation *e = r->e;
    struct lm_generation g = { .model = r->model,
                               .cache = &r->cache,
                               .stream = r->stream,
                               .decoder = decoder,
                               .prompt = e->prompt,
                               .n_prompt = e->n_prompt,
                               .sampling = &greedy,
                               .chunk = chunk,
                               .max_tokens = TOKENS_MAX,
                               .on_token = on_token,
                               .on_logprobs = decoder ? on_logprobs : NULL,
                               .data = r };
    struct lm_stats stats;

    cache_reset(&r->cache);
    r->n = r->n_logprobs = 0;
    assert_ok(generate(&stats, &g));
    assert_int_equal(r->n_logprobs, decoder ? TOKENS_MAX : 0);
    assert_int_equal(r->n, TOKENS_MAX);
    assert_int_equal(stats.tokens, TOKENS_MAX);
    assert_int_equal(stats.finish, LM_FINISH_LENGTH);
    assert_int_equal(r->cache.used, (int)e->n_prompt + TOKENS_MAX - 1);
    for (size_t i = 0; i < TOKENS_MAX; i++) {
        if (!e->has_exact_tokens && e->leads[i] < 2 * e->tolerance)
            break; /* from here on the answers may part */
        if (r->ids[i] != e->greedy[i])
            fail_msg("%s, %s, %zu tokens, chunks of %d: token %zu is %d, not %d", e->name,
                     dev_name(r->stream->dev.type), e->n_prompt, chunk, i, r->ids[i], e->greedy[i]);
    }
}

/* The same with a graph that is built once, which an answer leaves for the next one. */
static void check_decoder(struct run *r, int32_t chunk)
{
    struct lm_decoder decoder = { .model = r->model, .cache = &r->cache, .stream = r->stream };
    uint64_t hits = stat_get(STAT_RECORDING_HITS);

    check_generation(r, chunk, &decoder);
    /* A window that moves is built anew with every token. */
    int32_t window = r->model->config.window, most = (int32_t)r->e->n_prompt + TOKENS_MAX;
    if (!window || window > most) {
        assert_non_null(decoder.program);
        assert_int_equal(decoder.position, r->cache.used - 1);
        if (r->stream->dev.type == DEV_GPU)
            assert_true(stat_get(STAT_RECORDING_HITS) - hits >= TOKENS_MAX / 2);
    }
    cache_reset(&r->cache);
    check_generation(r, LM_CHUNK, &decoder);
    decoder_fini(&decoder);
}

/* The answer to n tokens behind what the cache holds. */
static void answer(struct run *r, size_t n, int32_t most, struct lm_decoder *decoder)
{
    static const struct lm_sampling greedy = { .repetition_penalty = 1 };
    int32_t ids[LM_CACHE_STEP];
    struct lm_stats stats;

    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(7 * i + n) % r->model->config.vocab;
    r->n = 0;
    assert_ok(generate(&stats, &(struct lm_generation){ .model = r->model,
                                                        .cache = &r->cache,
                                                        .stream = r->stream,
                                                        .decoder = decoder,
                                                        .prompt = ids,
                                                        .n_prompt = n,
                                                        .sampling = &greedy,
                                                        .chunk = LM_CHUNK,
                                                        .max_tokens = most,
                                                        .on_token = on_token,
                                                        .data = r }));
}

/* One answer that ends with the last position of the cache's room, then one from its beginning. */
static void check_room(struct run *r)
{
    struct lm_decoder decoder = { .model = r->model, .cache = &r->cache, .stream = r->stream };
    int32_t want[8];

    cache_reset(&r->cache);
    answer(r, 20, 8, NULL);
    memcpy(want, r->ids, sizeof want);
    cache_reset(&r->cache);
    answer(r, LM_CACHE_STEP - 1, 2, &decoder);
    cache_trim(&r->cache, 0);
    answer(r, 20, 8, &decoder);
    assert_memory_equal(r->ids, want, sizeof want);
    decoder_fini(&decoder);
}

/* All of it ran on the GPU. */
static void check_gpu(uint64_t dispatches, uint64_t cpu_tasks)
{
    assert_true(stat_get(STAT_DISPATCHES) > dispatches);
    assert_int_equal(stat_get(STAT_CPU_TASKS), cpu_tasks);
}

static void check_model(struct json model, struct strm *s)
{
    struct expectation *e = mem_alloc(sizeof *e);
    struct run r = { .stream = s, .e = e };
    uint64_t dispatches = stat_get(STAT_DISPATCHES), cpu = stat_get(STAT_CPU_TASKS);

    assert_non_null(e);
    JSON_EACH(prompt, json_find(model, "prompts"))
    {
        read_expectation(e, model, prompt, "dtype");
        if (!r.model)
            r.model = open_model(e->name, s);
        assert_ok(cache_init(&r.cache, r.model->config.layers));
        check_at_once(&r);
        check_split(&r);
        /* Longer and shorter than the prompt. */
        check_generation(&r, LM_CHUNK, NULL);
        check_decoder(&r, e->n_prompt > 64 ? 64 : 5);
        if (e->has_exact_tokens)
            check_room(&r);
        cache_fini(&r.cache);
    }
    if (s->dev.type == DEV_GPU)
        check_gpu(dispatches, cpu);
    model_destroy(&r.model);
    mem_free(e);
}

/* ---- the same model as a GGUF file ---- */

static void check_tokenizer(struct tok *t)
{
    static const int32_t want[] = { 1, 5, 6 }; /* <s>, " ab", "0" */
    struct ids ids = { 0 };

    assert_ok(tok_encode(t, "ab0", 3, true, &ids));
    assert_int_equal(ids.n, ARRAY_LEN(want));
    assert_memory_equal(ids.v, want, sizeof want);
    VEC_FINI(&ids);
}

static void check_file(struct json model, struct strm *s)
{
    struct expectation *e = mem_alloc(sizeof *e);
    struct lm_session session;

    assert_non_null(e);
    struct json prompts = json_find(model, "prompts");
    read_expectation(e, model, json_next(json_first(prompts)), "gguf");
    struct data_path path = model_path(e->name, ".gguf");
    assert_ok(session_open(&session, &(struct session_params){ .path = path.v, .stream = s }));
    check_tokenizer(session.tok);
    struct run r = { .model = session.model, .stream = s, .e = e };
    uint64_t dispatches = stat_get(STAT_DISPATCHES), cpu = stat_get(STAT_CPU_TASKS);
    assert_ok(cache_init(&r.cache, r.model->config.layers));
    check_at_once(&r);
    check_generation(&r, LM_CHUNK, NULL);
    if (s->dev.type == DEV_GPU)
        check_gpu(dispatches, cpu);
    cache_fini(&r.cache);
    session_close(&session);
    mem_free(e);
}

static void test_gguf(void **state)
{
    int n = 0;

    (void)state;
    JSON_EACH(model, json_root(models))
    {
        if (json_kind(json_find(model, "gguf")) != JSON_STRING)
            continue;
        for (int i = 0; i < n_streams; i++)
            check_file(model, streams[i]);
        n++;
    }
    assert_true(n >= 6);
}

/* ---- */

/* Models whose name begins with `kind`. */
static void check_models(const char *kind)
{
    int n = 0;

    JSON_EACH(model, json_root(models))
    {
        const char *name;
        assert_ok(json_get_string(&name, model, "name"));
        if (strncmp(name, kind, strlen(kind)) != 0)
            continue;
        for (int i = 0; i < n_streams; i++)
            check_model(model, streams[i]);
        n++;
    }
    assert_true(n >= 2);
}

static void test_qwen3(void **state)
{
    (void)state;
    check_models("qwen3");
}

static void test_qwen2(void **state)
{
    (void)state;
    check_models("qwen2");
}

static void test_llama(void **state)
{
    (void)state;
    check_models("llama");
}

static void test_mistral(void **state)
{
    (void)state;
    check_models("mistral");
}

static int setup(void **state)
{
    (void)state;
    if (strm_new(&streams[n_streams++], (struct dev){ DEV_CPU, 0 }) != ERR_OK)
        return -1;
    if (gpu_is_tested() && strm_new(&streams[n_streams++], (struct dev){ DEV_GPU, 0 }) != ERR_OK)
        return -1;
    return json_load(&models, data_made("lm/models.json").v) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    json_destroy(&models);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qwen3),   cmocka_unit_test(test_qwen2), cmocka_unit_test(test_llama),
        cmocka_unit_test(test_mistral), cmocka_unit_test(test_gguf),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
