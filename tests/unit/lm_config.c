/* What a config may say: every number and its limits, entries that are not supported, tensors that
 * do not fit. */
#include "lm/model/config_numbers.h"
#include "lm/model/load.h"
#include "lm/model/weights_list.h"

#include "eval/eval.h"
#include "eval/stream.h"
#include "support/testing.h"

#include <stdio.h>

#define COMMON                                                                                     \
    "\"hidden_size\": 64, \"num_hidden_layers\": 2, \"intermediate_size\": 96,"                    \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16,"                    \
    "\"vocab_size\": 97, \"max_position_embeddings\": 128, \"rms_norm_eps\": 1e-5,"                \
    "\"rope_theta\": 10000, \"tie_word_embeddings\": true, \"num_experts\": 4,"                    \
    "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, \"decoder_sparse_step\": 1"

static struct strm *cpu;

/* A config of that type whose entries `more` replaces: the last of two members counts. */
static enum err read_config(struct lm_config *c, const char *type, const char *more)
{
    char text[4096];
    struct json_doc *doc = NULL;

    int n = snprintf(text, sizeof text, "{\"model_type\": \"%s\", " COMMON "%s%s}", type,
                     *more ? ", " : "", more);
    assert_in_range(n, 1, sizeof text - 1);
    assert_ok(json_parse(&doc, text, (size_t)n, "config.json"));
    return config_read(c, doc);
}

static void check_refused(const char *type, const char *more, const char *what)
{
    struct lm_config c;

    if (read_config(&c, type, more) == ERR_OK)
        fail_msg("%s with %s is accepted", type, more);
    if (!strstr(err_text(), what))
        fail_msg("%s with %s: \"%s\" does not say \"%s\"", type, more, err_text(), what);
    config_fini(&c);
}

static void check_accepted(struct lm_config *c, const char *type, const char *more)
{
    if (read_config(c, type, more) != ERR_OK)
        fail_msg("%s with %s: %s", type, more, err_text());
}

/* ---- numbers ---- */

/* An entry with this value, where its group stands. */
static const char *entry(const struct lm_number *n, double value)
{
    static char text[256];

    if (n->group == LM_NUMBERS_SCALING)
        snprintf(text, sizeof text,
                 "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2, \"%s\": %.17g}", n->key,
                 value);
    else if (n->group == LM_NUMBERS_WINDOW)
        snprintf(text, sizeof text,
                 "\"layer_types\": [\"full_attention\", \"sliding_attention\"], \"%s\": %.17g",
                 n->key, value);
    else
        snprintf(text, sizeof text, "\"%s\": %.17g", n->key, value);
    return text;
}

static void test_limits_of_every_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < LM_NUMBER_COUNT; i++) {
        const struct lm_number *n = &lm_numbers[i];
        const double wrong[] = { n->least - 1, n->most * 2 + 1, -1e300, 1e300, -2147483649.0 };
        const char *type = n->group == LM_NUMBERS_EXPERTS ? "qwen3_moe" : "llama";
        char what[128];
        for (size_t k = 0; k < ARRAY_LEN(wrong); k++) {
            snprintf(what, sizeof what, "%s: %.10g is not between", n->key, wrong[k]);
            check_refused(type, entry(n, wrong[k]), what);
        }
        snprintf(what, sizeof what, "%s: %.10g is not a whole number", n->key, n->least + 0.5);
        if (!n->is_real)
            check_refused(type, entry(n, n->least + 0.5), what);
    }
}

/* Numbers that crashed, hung or gave empty answers, whatever the table of limits says. */
static void test_numbers_that_did_harm(void **state)
{
    (void)state;
    check_refused("qwen3_moe", "\"decoder_sparse_step\": 0", "decoder_sparse_step: 0");
    check_refused("qwen3_moe", "\"num_experts_per_tok\": 0", "num_experts_per_tok: 0");
    check_refused("llama", "\"num_hidden_layers\": 20000000", "num_hidden_layers: 20000000");
    check_refused("llama", "\"num_attention_heads\": 0", "num_attention_heads: 0");
    check_refused("llama", "\"num_key_value_heads\": 0", "num_key_value_heads: 0");
    check_refused("llama", "\"head_dim\": 2147483646", "head_dim: 2147483646");
    check_refused("llama", "\"rms_norm_eps\": -1e300", "rms_norm_eps: -1e+300");
    check_refused("llama", "\"rope_theta\": 0", "rope_theta: 0");
    check_refused("llama", "\"rope_theta\": -1e4", "rope_theta: -10000");
    check_refused("llama", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}", "factor: 0");
}

static void test_numbers_that_do_not_go_together(void **state)
{
    (void)state;
    check_refused("llama", "\"num_key_value_heads\": 3", "num_key_value_heads: 4 heads");
    check_refused("llama", "\"head_dim\": 15", "head_dim: 15");
    check_refused("llama", "\"head_dim\": 65536, \"num_attention_heads\": 65536",
                  "head_dim: 65536");
    check_refused("llama", "\"head_dim\": null, \"hidden_size\": 3", "head_dim: 0");
    check_refused("qwen3_moe", "\"num_experts_per_tok\": 5", "num_experts_per_tok: 5 of 4");
    check_refused("llama",
                  "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 2,"
                  "\"low_freq_factor\": 4, \"high_freq_factor\": 1}",
                  "rope_scaling.high_freq_factor: 1");
    check_refused("llama", "\"rope_scaling\": {\"rope_theta\": 20000}",
                  "rope_theta: there is 10000");
    check_refused("llama", "\"rope_scaling\": {\"rope_type\": \"yarn\"}", "\"factor\" is missing");
    check_refused("llama", "\"hidden_size\": null", "hidden_size: it is missing");
    check_refused("llama", "\"hidden_size\": \"64\"", "hidden_size: expected a number");
    check_refused("qwen3", "\"rope_theta\": null", "\"rope_theta\" is missing");
    check_refused("qwen3", "\"tie_word_embeddings\": null", "\"tie_word_embeddings\" is missing");
}

static void test_what_is_worked_out(void **state)
{
    struct lm_config c;

    (void)state;
    check_accepted(&c, "llama",
                   "\"num_key_value_heads\": null, \"head_dim\": null,"
                   "\"rope_theta\": null, \"tie_word_embeddings\": null");
    assert_int_equal(c.kv_heads, 4);
    assert_int_equal(c.head_dim, 16);
    assert_true(c.rope.base == 10000 && c.tied);
    config_fini(&c);
    check_accepted(&c, "qwen2", "\"rope_theta\": null, \"attention_bias\": false");
    assert_true(c.rope.base == 1000000 && c.attention_bias);
    config_fini(&c);
    check_accepted(&c, "qwen3", "\"rope_theta\": null, \"rope_parameters\": {\"rope_theta\": 5e5}");
    assert_true(c.rope.base == 5e5F && c.rope.kind == LM_ROPE_PLAIN);
    config_fini(&c);
    check_accepted(&c, "qwen3", "\"mlp_bias\": true, \"rope_traditional\": true");
    assert_true(!c.mlp_bias && !c.rope.traditional);
    config_fini(&c);
    check_accepted(&c, "qwen3_moe", "\"num_experts\": 0");
    assert_false(config_is_sparse(&c, 0));
    config_fini(&c);
    check_accepted(&c, "qwen3_moe", "\"mlp_only_layers\": [1, 7, -1]");
    assert_true(config_is_sparse(&c, 0) && !config_is_sparse(&c, 1));
    config_fini(&c);
}

/* ---- entries that would change the result ---- */

static void test_entries_that_are_refused(void **state)
{
    static const struct {
        const char *type, *more, *what;
    } rows[] = {
        { "llama", "\"hidden_act\": \"gelu\"", "hidden_act: 'gelu'" },
        { "qwen2", "\"use_sliding_window\": true", "use_sliding_window: " },
        { "qwen2", "\"use_mrope\": true", "use_mrope: " },
        { "llama", "\"quantize_activations\": true", "quantize_activations: " },
        { "llama", "\"model_file\": \"m.py\"", "model_file: " },
        { "llama", "\"partial_rotary_factor\": 0.5", "partial_rotary_factor: 0.5" },
        { "llama", "\"rope_scaling\": {\"partial_rotary_factor\": 0.5}",
          "rope_scaling.partial_rotary_factor: 0.5" },
        { "llama", "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2, \"attention_factor\": 2}",
          "rope_scaling.attention_factor: " },
        { "llama", "\"rope_scaling\": {\"type\": \"longrope\"}", "'longrope' is not supported" },
        { "llama", "\"rope_scaling\": \"linear\"", "rope_scaling: expected an object" },
        { "llama", "\"rope_scaling\": false", "rope_scaling: expected an object" },
        { "qwen3", "\"rope_parameters\": [1]", "rope_parameters: expected an object" },
        { "llama", "\"layer_types\": 5", "layer_types: expected an array" },
        { "llama", "\"layer_types\": {\"0\": \"full_attention\", \"1\": \"full_attention\"}",
          "layer_types: expected an array" },
        { "llama", "\"layer_types\": [\"full_attention\"]", "layer_types: it has 1 entries" },
        { "llama", "\"layer_types\": [\"full_attention\", \"chunked_attention\"]",
          "layer_types: 'chunked_attention'" },
        { "qwen3", "\"layer_types\": [\"full_attention\", \"sliding_attention\"]",
          "layer_types: 'sliding_attention' is not supported for a qwen3" },
        { "llama", "\"layer_types\": [\"full_attention\", \"sliding_attention\"]",
          "sliding_window: it is missing" },
        { "llama", "\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4}",
          "quantization_config.quant_method: 'awq'" },
        { "llama", "\"quantization\": {\"bits\": 4}", "quantization: \"bits\" or \"group_size\"" },
        { "llama", "\"quantization\": {\"bits\": 9, \"group_size\": 64}", "with 9 bits" },
        { "llama", "\"quantization\": {\"bits\": 4, \"group_size\": 64, \"mode\": \"mxfp4\"}",
          "mode mxfp4 with 4 bits in groups of 64" },
        { "llama", "\"quantization\": {\"bits\": 4, \"group_size\": 64, \"mode\": \"odd\"}",
          "mode 'odd'" },
        { "llama", "\"quantization\": true", "quantization: expected an object" },
        { "qwen3_moe", "\"mlp_only_layers\": 3", "mlp_only_layers: expected an array" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_refused(rows[i].type, rows[i].more, rows[i].what);
}

static void test_packing_of_single_modules(void **state)
{
    struct lm_config c;
    struct lm_quant q;
    bool is_own;

    (void)state;
    check_accepted(&c, "llama",
                   "\"quantization\": {\"bits\": 4, \"group_size\": 64, \"a\": {\"bits\": 8},"
                   "\"b\": false, \"c\": true, \"d\": {\"mode\": \"nvfp4\"}, \"e\": 3}");
    assert_ok(config_quant(&q, &is_own, &c, "a"));
    assert_true(is_own && q.bits == 8 && q.group_size == 64);
    assert_ok(config_quant(&q, &is_own, &c, "b"));
    assert_true(is_own && q.bits == 0);
    assert_ok(config_quant(&q, &is_own, &c, "c"));
    assert_true(is_own && q.bits == 4);
    assert_ok(config_quant(&q, &is_own, &c, "d"));
    assert_true(is_own && q.bits == 4 && q.group_size == 16 && strcmp(q.mode, "nvfp4") == 0);
    assert_fails(ERR_ARG, config_quant(&q, &is_own, &c, "e"));
    assert_ok(config_quant(&q, &is_own, &c, "f"));
    assert_true(!is_own && q.bits == 4);
    config_fini(&c);
    check_accepted(&c, "llama", "\"quantization_config\": {\"quant_method\": \"mxfp4\"}");
    assert_true(c.quant.bits == 4 && c.quant.group_size == 32);
    config_fini(&c);
}

/* ---- tensors ---- */

/* Random weights, but for one tensor that has another dtype. */
struct odd_weights {
    struct lm_weights base;
    struct lm_weights *others;
    const char *name;
    enum dtype dtype;
};

static bool odd_has(struct lm_weights *base, const char *name)
{
    struct odd_weights *w = (struct odd_weights *)base;

    return w->others->has(w->others, name);
}

static enum err odd_get(struct lm_weights *base, struct arr **out, const char *name,
                        const struct shp *shape)
{
    struct odd_weights *w = (struct odd_weights *)base;

    if (strcmp(name, w->name) != 0)
        return w->others->get(w->others, out, name, shape);
    return ops_fill(out, (struct ints){ shape->d, (size_t)shape->ndim }, 0, w->dtype, cpu);
}

static enum err load_odd(const char *name, enum dtype t)
{
    static const char packed[] = "\"quantization\": {\"bits\": 4, \"group_size\": 32}";
    struct lm_config c;
    struct lm_model *m = NULL;
    struct odd_weights w = { { odd_has, odd_get, NULL, NULL, NULL }, NULL, name, t };

    check_accepted(&c, "qwen3", packed);
    assert_ok(weights_random(&w.others, &c, 1, cpu));
    enum err err = model_new(&m, &c, &w.base);
    model_destroy(&m);
    weights_destroy(&w.others);
    return err;
}

static void test_dtypes_of_tensors(void **state)
{
    static const char *const reals[] = { "model.embed_tokens.scales", "model.embed_tokens.biases",
                                         "model.norm.weight",
                                         "model.layers.1.self_attn.q_norm.weight" };
    static const enum dtype wrong[] = { DT_INT32, DT_UINT8, DT_BOOL, DT_COMPLEX64, DT_UINT32 };

    (void)state;
    assert_ok(load_odd("", DT_BOOL));
    for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
        assert_ok(load_odd(reals[i], DT_FLOAT16));
        for (size_t k = 0; k < ARRAY_LEN(wrong); k++) {
            assert_fails(ERR_ARG, load_odd(reals[i], wrong[k]));
            assert_non_null(strstr(err_text(), reals[i]));
            assert_non_null(strstr(err_text(), dt_name(wrong[k])));
        }
    }
    assert_fails(ERR_ARG, load_odd("model.layers.0.mlp.up_proj.weight", DT_FLOAT32));
    assert_non_null(strstr(err_text(), "must be uint32"));
}

static void add(struct io_arrays *list, const char *name)
{
    struct arr *a = NULL;

    assert_ok(arr_new_number(&a, 1, DT_FLOAT32));
    assert_ok(io_arrays_add(list, name, a));
}

static void test_tensors_that_nothing_reads(void **state)
{
    struct io_arrays arrays = { { 0 } };
    struct weights_list list = { 0 };
    struct lm_config c;

    (void)state;
    add(&arrays, "model.layers.0.self_attn.rotary_emb.inv_freq");
    add(&arrays, "lm_head.weight");
    add(&arrays, "a");
    assert_ok(weights_list_init(&list, &arrays, "folder"));
    check_accepted(&c, "llama", "");
    assert_fails(ERR_ARG, weights_list_check_read(&list, &c, "folder"));
    assert_string_equal(err_text(),
                        "folder has 1 tensor that a llama of this config does not read: a");
    assert_non_null(weights_list_take(&list, "a"));
    assert_ok(weights_list_check_read(&list, &c, "folder"));
    c.tied = false;
    assert_fails(ERR_ARG, weights_list_check_read(&list, &c, "folder"));
    assert_non_null(strstr(err_text(), "lm_head.weight"));
    config_fini(&c);
    weights_list_fini(&list);
}

static int setup(void **state)
{
    (void)state;
    return strm_default(&cpu, (struct dev){ DEV_CPU, 0 }) == ERR_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_of_every_number),
        cmocka_unit_test(test_numbers_that_did_harm),
        cmocka_unit_test(test_numbers_that_do_not_go_together),
        cmocka_unit_test(test_what_is_worked_out),
        cmocka_unit_test(test_entries_that_are_refused),
        cmocka_unit_test(test_packing_of_single_modules),
        cmocka_unit_test(test_dtypes_of_tensors),
        cmocka_unit_test(test_tensors_that_nothing_reads),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
