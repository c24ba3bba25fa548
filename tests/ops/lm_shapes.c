/* Models of well-known shapes with random weights: ten tokens after two prompts, again and again.
 *
 * usage: lm_shapes [full]; without it the models are of the same build, but small. */
#include "eval/wait.h"
#include "lm/model/shapes.h"

#include "support/gpu.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>

#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "lm/generate.h"

/* In full only the first, which every machine has the memory for. */
static const char *const shapes[] = { "qwen3-0.6b-4bit-g128", "qwen3-30b-a3b-4bit-g64",
                                      "llama-3.2-1b-4bit-g64" };
#define TOKENS 10
/* Of logits whose spread is 1 or less; activations are bfloat16. */
#define TOLERANCE 0.06

/* What Qwen3's tokenizer and chat template make of the texts. */
#define ASKED(...)                                                                                 \
    {                                                                                              \
        151644, 872, 198, __VA_ARGS__, 151645, 198, 151644, 77091, 198                             \
    }
static const int32_t hello[] = ASKED(108386, 103924);            /* 你好啊 */
static const int32_t name[] = ASKED(13048, 1128, 374, 697, 829); /* Hi what is your name */

static bool is_full;

struct subject {
    struct lm_model *model;
    struct lm_cache cache;
    struct strm *stream;
    int32_t prompt[16];
    size_t n_prompt;
    int32_t ids[TOKENS];
    size_t n;
};

static enum err eval_weight(struct arr *w, void *data)
{
    (void)data;
    return eval_arrays(&w, 1, false);
}

/* The same in all but its sizes. */
static void shrink(struct lm_config *c)
{
    c->hidden = 256;
    c->layers = 4;
    c->intermediate = 384;
    c->heads = 4;
    c->kv_heads = 2;
    c->vocab = 1000;
    if (c->experts) {
        c->experts = 16;
        c->experts_per_token = 4;
        c->expert_intermediate = 128;
    }
}

static void open_subject(struct subject *s, const char *shape, enum dev_type device)
{
    struct lm_config c;
    struct lm_weights *weights = NULL;

    *s = (struct subject){ 0 };
    assert_ok(strm_new(&s->stream, (struct dev){ device, 0 }));
    assert_ok(shapes_config(&c, shape));
    if (!is_full)
        shrink(&c);
    assert_ok(weights_random(&weights, &c, 1, s->stream));
    assert_ok(model_new(&s->model, &c, weights));
    assert_ok(model_each_weight(s->model, eval_weight, NULL));
    weights_destroy(&weights);
    assert_ok(cache_init(&s->cache, s->model->config.layers));
}

static void close_subject(struct subject *s)
{
    cache_fini(&s->cache);
    model_destroy(&s->model);
}

static bool on_token(int32_t id, void *data)
{
    struct subject *s = data;

    s->ids[s->n++] = id;
    return true;
}

static const struct lm_sampling greedy = { .repetition_penalty = 1 };

static struct lm_generation generation(struct subject *s, int32_t chunk)
{
    return (struct lm_generation){ .model = s->model,
                                   .cache = &s->cache,
                                   .stream = s->stream,
                                   .prompt = s->prompt,
                                   .n_prompt = s->n_prompt,
                                   .sampling = &greedy,
                                   .chunk = chunk,
                                   .max_tokens = TOKENS,
                                   .on_token = on_token,
                                   .data = s };
}

/* Logits after the prompt, which goes through in chunks. */
static float *logits_after(struct subject *s, int32_t chunk)
{
    struct lm_generation g = generation(s, chunk);
    struct lm_graph graph;
    struct arr *last = NULL, *logits = NULL;
    size_t n = (size_t)s->model->config.vocab;
    float *out = mem_alloc_array(n, sizeof *out);
    const void *p;

    assert_non_null(out);
    cache_reset(&s->cache);
    assert_ok(generate_prefill(&g, s->n_prompt - 1));
    assert_ok(
        arr_new_data(&last, &s->prompt[s->n_prompt - 1], &(struct shp){ 2, { 1, 1 } }, DT_INT32));
    graph_begin(&graph, s->stream);
    struct arr *hidden = model_hidden(&graph, s->model, last, &s->cache);
    graph_keep(&graph, &logits,
               g_astype(&graph, model_logits(&graph, s->model, hidden), DT_FLOAT32));
    assert_ok(graph_end(&graph));
    assert_ok(eval_arrays(&logits, 1, false));
    assert_ok(arr_host(&p, logits));
    memcpy(out, p, n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        assert_true(isfinite(out[i]));
    arr_unref(&logits);
    arr_unref(&last);
    return out;
}

/* The prompt in one go, in one go again, and in pieces of three. */
static void check_logits(struct subject *s)
{
    size_t n = (size_t)s->model->config.vocab;
    float *once = logits_after(s, LM_CHUNK), *again = logits_after(s, LM_CHUNK);
    float *split = logits_after(s, 3), low = once[0], high = once[0];

    assert_memory_equal(once, again, n * sizeof *once);
    for (size_t i = 0; i < n; i++) {
        if (fabsf(once[i] - split[i]) > (float)TOLERANCE)
            fail_msg("logit %zu: %g in one go, %g in pieces", i, (double)once[i], (double)split[i]);
        low = fminf(low, once[i]);
        high = fmaxf(high, once[i]);
    }
    assert_true(high - low > 8 * (float)TOLERANCE); /* or the comparison says nothing */
    mem_free(once);
    mem_free(again);
    mem_free(split);
}

static void check_tokens(struct subject *s)
{
    struct lm_generation g = generation(s, LM_CHUNK);
    struct lm_stats stats;
    int32_t first[TOKENS];

    for (int i = 0; i < 2; i++) {
        cache_reset(&s->cache);
        s->n = 0;
        assert_ok(generate(&stats, &g));
        assert_int_equal(s->n, TOKENS);
        if (i == 0)
            memcpy(first, s->ids, sizeof first);
    }
    assert_memory_equal(first, s->ids, sizeof first);
    for (int i = 0; i < TOKENS; i++)
        assert_in_range(first[i], 0, s->model->config.vocab - 1);
}

static void ask(struct subject *s, const int32_t *ids, size_t n)
{
    assert_in_range(n, 1, ARRAY_LEN(s->prompt));
    s->n_prompt = n;
    for (size_t i = 0; i < n; i++)
        s->prompt[i] = ids[i] % s->model->config.vocab;
    check_logits(s);
    check_tokens(s);
}

static void check_shape(const char *shape, enum dev_type device)
{
    struct subject s;

    open_subject(&s, shape, device);
    uint64_t dispatches = stat_get(STAT_DISPATCHES), cpu = stat_get(STAT_CPU_TASKS);
    ask(&s, hello, ARRAY_LEN(hello));
    ask(&s, name, ARRAY_LEN(name));
    if (device == DEV_GPU) {
        assert_true(stat_get(STAT_DISPATCHES) > dispatches);
        assert_int_equal(stat_get(STAT_CPU_TASKS), cpu);
    }
    close_subject(&s);
}

static void check_device(enum dev_type device)
{
    for (size_t i = 0; i < (is_full ? 1 : ARRAY_LEN(shapes)); i++)
        check_shape(shapes[i], device);
}

static void test_cpu(void **state)
{
    (void)state;
    check_device(DEV_CPU);
}

static void test_gpu(void **state)
{
    (void)state;
    if (gpu_is_tested())
        check_device(DEV_GPU);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_gpu),
    };

    is_full = argc > 1 && strcmp(argv[1], "full") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
