/* Generating when memory runs out or the model computes no numbers: an error, nothing lost, and the
 * next answer is right. */
#include "lm/generate.h"

#include <math.h>

#include "eval/stream.h"
#include "graph/memory.h"
#include "ops/ops.h"
#include "support/testing.h"

#define TOKENS 6

static const char config_text[] =
    "{\"model_type\": \"qwen3\", \"hidden_size\": 64, \"num_hidden_layers\": 2,"
    "\"intermediate_size\": 96, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
    "\"head_dim\": 16, \"vocab_size\": 97, \"max_position_embeddings\": 128,"
    "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10000, \"tie_word_embeddings\": true}";

struct answer {
    int32_t ids[TOKENS];
    size_t n;
};

static bool on_token(int32_t id, void *data)
{
    struct answer *a = data;

    assert_in_range(a->n, 0, TOKENS - 1);
    a->ids[a->n++] = id;
    return true;
}

static struct lm_model *make_model(struct strm *s)
{
    struct json_doc *doc = NULL;
    struct lm_config c;
    struct lm_weights *weights = NULL;
    struct lm_model *m = NULL;

    assert_ok(json_parse(&doc, config_text, sizeof config_text - 1, "config.json"));
    assert_ok(config_read(&c, doc));
    assert_ok(weights_random(&weights, &c, 1, s));
    assert_ok(model_new(&m, &c, weights));
    weights_destroy(&weights);
    return m;
}

static enum err run(struct answer *a, struct lm_decoder *d)
{
    static const struct lm_sampling sampling = { .repetition_penalty = 1.1F,
                                                 .repetition_context = 4 };
    static const int32_t prompt[] = { 1, 2, 3, 4, 5 };
    struct lm_stats stats;

    a->n = 0;
    return generate(&stats, &(struct lm_generation){ .model = d->model,
                                                     .cache = d->cache,
                                                     .stream = d->stream,
                                                     .decoder = d,
                                                     .prompt = prompt,
                                                     .n_prompt = ARRAY_LEN(prompt),
                                                     .sampling = &sampling,
                                                     .chunk = 3,
                                                     .max_tokens = TOKENS,
                                                     .on_token = on_token,
                                                     .data = a });
}

static void test_no_memory(void **state)
{
    struct strm *cpu = NULL;
    struct lm_cache cache;
    struct answer want, got;
    enum err err = ERR_NO_MEMORY;
    int failures = 0;

    (void)state;
    assert_ok(strm_default(&cpu, (struct dev){ DEV_CPU, 0 }));
    struct lm_model *m = make_model(cpu);
    assert_ok(cache_init(&cache, m->config.layers));
    struct lm_decoder d = { .model = m, .cache = &cache, .stream = cpu };
    assert_ok(run(&want, &d));
    cache_reset(&cache);
    decoder_fini(&d);
    assert_ok(strm_synchronize(cpu));
    size_t before = memory_active();
    for (size_t n = 1; err != ERR_OK; n += 1 + n / 32) {
        mem_fail_after(n);
        err = run(&got, &d);
        mem_fail_after(0);
        if (err == ERR_OK)
            break;
        failures++;
        assert_int_equal(cache.used, 0);
        assert_int_equal(memory_active(), before); /* a token that nobody waits for is an array */
        if (run(&got, &d) != ERR_OK)
            fail_msg("after a failure at allocation %zu: %s", n, err_text());
        assert_int_equal(got.n, TOKENS);
        assert_memory_equal(got.ids, want.ids, sizeof want.ids);
        cache_reset(&cache);
        decoder_fini(&d);
    }
    assert_true(failures > 50);
    cache_fini(&cache);
    decoder_fini(&d);
    model_destroy(&m);
}

/* ---- no numbers ---- */

struct breaking {
    struct lm_model *model;
    struct strm *stream;
    size_t n, from; /* tokens so far; with how many of them the weights break */
    size_t enough;  /* with how many of them the caller ends; 0: never */
};

/* Every logit is this number from now on. */
static void break_model(struct breaking *b, double value)
{
    struct arr *norm = b->model->norm, *broken = NULL;

    assert_ok(ops_fill_like(&broken, norm, value, (enum dtype)norm->dtype, b->stream));
    arr_unref(&b->model->norm);
    b->model->norm = broken;
}

static bool count_token(int32_t id, void *data)
{
    struct breaking *b = data;

    assert_in_range(id, 0, b->model->config.vocab - 1);
    if (++b->n == b->from)
        break_model(b, NAN);
    return b->n != b->enough;
}

static void no_logprobs(int32_t id, const float *logprobs, size_t n, void *data)
{
    (void)n;
    (void)data;
    assert_false(isnan(logprobs[id]));
}

/* What a test changes of a generation that writes a hundred tokens. */
struct change {
    float temperature;
    bool with_logprobs;
    int32_t max_tokens; /* 0: as said */
    bool ends;          /* the first token ends the text, which is the likeliest of NaNs */
};

static enum err run_broken(struct breaking *b, struct change c)
{
    static const int32_t prompt[] = { 1, 2, 3 }, first = 0;
    struct lm_sampling sampling = { .temperature = c.temperature, .repetition_penalty = 1 };
    struct lm_cache cache;
    struct lm_stats stats;

    b->n = 0;
    assert_ok(cache_init(&cache, b->model->config.layers));
    enum err err = generate(
        &stats, &(struct lm_generation){ .model = b->model,
                                         .cache = &cache,
                                         .stream = b->stream,
                                         .prompt = prompt,
                                         .n_prompt = ARRAY_LEN(prompt),
                                         .sampling = &sampling,
                                         .chunk = 3,
                                         .max_tokens = c.max_tokens ? c.max_tokens : 100,
                                         .eos = &first,
                                         .n_eos = c.ends,
                                         .on_token = count_token,
                                         .on_logprobs = c.with_logprobs ? no_logprobs : NULL,
                                         .data = b });
    cache_fini(&cache);
    return err;
}

static void check_no_numbers(struct breaking *b, struct change c)
{
    assert_int_equal(run_broken(b, c), ERR_ARG);
    assert_non_null(strstr(err_text(), "no numbers"));
}

static void test_no_numbers(void **state)
{
    static const float temperatures[] = { 0, 1e-4F, 1 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(temperatures); i++) {
        struct breaking b = { .from = 3 };
        assert_ok(strm_default(&b.stream, (struct dev){ DEV_CPU, 0 }));
        b.model = make_model(b.stream);
        struct change c = { .temperature = temperatures[i] };
        check_no_numbers(&b, c);
        assert_in_range(b.n, 3, 3 + 16);
        check_no_numbers(&b, c); /* from the first token on */
        assert_int_equal(b.n, 0);
        break_model(&b, INFINITY);
        check_no_numbers(&b, c);
        break_model(&b, 1);
        c.with_logprobs = true;
        check_no_numbers(&b, c);
        assert_in_range(b.n, 3, 4); /* the one that was on its way */
        model_destroy(&b.model);
    }
}

/* However soon the end comes after the weights broke. */
static void test_no_numbers_at_the_end(void **state)
{
    struct breaking b = { .from = 3 };

    (void)state;
    assert_ok(strm_default(&b.stream, (struct dev){ DEV_CPU, 0 }));
    b.model = make_model(b.stream);
    check_no_numbers(&b, (struct change){ .ends = true });
    assert_in_range(b.n, 3, 4);
    break_model(&b, 1);
    check_no_numbers(&b, (struct change){ .max_tokens = 6 });
    break_model(&b, 1);
    b.enough = 6;
    check_no_numbers(&b, (struct change){ 0 });
    assert_int_equal(b.n, 6);
    model_destroy(&b.model);
}

/* ---- which logits are numbers ---- */

static void test_has_numbers(void **state)
{
    static const struct {
        float v[3];
        bool want;
    } cases[] = {
        { { 1, -2, 3 }, true },
        { { 0, 0, 0 }, true },
        { { -INFINITY, 65504, -INFINITY }, true },
        { { -INFINITY, -INFINITY, -INFINITY }, false },
        { { 1, 2, INFINITY }, false },
        { { 1, NAN, 2 }, false },
        { { -NAN, -1, 2 }, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const float *v = cases[i].v;
        uint16_t f16[3], bf16[3];

        for (size_t k = 0; k < 3; k++) {
            f16[k] = dt_f32_to_f16(v[k]);
            bf16[k] = dt_f32_to_bf16(v[k]);
        }
        assert_int_equal(sample_has_numbers(v, 3, DT_FLOAT32), cases[i].want);
        assert_int_equal(sample_has_numbers(f16, 3, DT_FLOAT16), cases[i].want);
        assert_int_equal(sample_has_numbers(bf16, 3, DT_BFLOAT16), cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_no_numbers_at_the_end),
        cmocka_unit_test(test_has_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
