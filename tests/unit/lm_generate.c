/* Generating when memory runs out: an error, nothing lost, and the next answer is right. */
#include "lm/generate.h"

#include "core/memory.h"
#include "core/stream.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_memory) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
