#include "lm/config.h"

#include <stdio.h>
#include <string.h>

static const struct lm_arch archs[] = {
    { "qwen3", .has_qk_norm = true },
    { "qwen3_moe", .has_qk_norm = true, .has_experts = true },
    { "qwen2", .has_qkv_bias = true },
    { "llama" },
    { "mistral" },
};

const struct lm_arch *config_arch(const char *model_type)
{
    char known[128] = "";

    for (size_t i = 0; i < ARRAY_LEN(archs); i++) {
        if (strcmp(archs[i].model_type, model_type) == 0)
            return &archs[i];
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", archs[i].model_type);
    }
    err_set(ERR_ARG, "model_type '%s' is not supported; known are %s", model_type, known);
    return NULL;
}

/* ---- typed members ---- */

/* A whole number in [0, 2^31) with a default, or, if that is negative, in [1, 2^31). */
static enum err get_size(int32_t *out, struct json o, const char *key, int64_t value)
{
    bool is_needed = value < 0;
    enum err err;

    TRY(is_needed ? json_get_int(&value, o, key) : json_opt_int(&value, o, key));
    if (value < !!is_needed || value > INT32_MAX)
        return json_fail(json_find(o, key), "%lld is out of range", (long long)value);
    *out = (int32_t)value;
out:
    return err;
}

static enum err get_float(float *out, struct json o, const char *key, double value)
{
    enum err err = json_opt_number(&value, o, key);

    *out = (float)value;
    return err;
}

/* ---- parts ---- */

static enum err read_rope_kind(struct lm_rope *r, struct json scaling)
{
    static const struct {
        const char *name;
        enum lm_rope_kind kind;
    } kinds[] = { { "default", LM_ROPE_PLAIN },
                  { "linear", LM_ROPE_LINEAR },
                  { "llama3", LM_ROPE_LLAMA3 },
                  { "yarn", LM_ROPE_YARN } };
    const char *name = "default";
    enum err err;

    TRY(json_opt_string(&name, scaling, "type"));
    TRY(json_opt_string(&name, scaling, "rope_type"));
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0) {
            r->kind = kinds[i].kind;
            return ERR_OK;
        }
    err = json_fail(scaling,
                    "rope type '%s' is not supported; known are default, linear, llama3, "
                    "yarn",
                    name);
out:
    return err;
}

static enum err read_rope(struct lm_config *c, struct json o)
{
    struct lm_rope *r = &c->rope;
    struct json scaling = json_find(o, "rope_scaling");
    enum err err;

    /* Newer files keep base and scaling together. */
    if (json_kind(json_find(o, "rope_parameters")) == JSON_OBJECT)
        scaling = json_find(o, "rope_parameters");
    TRY(get_float(&r->base, o, "rope_theta", 10000));
    TRY(json_opt_bool(&r->traditional, o, "rope_traditional"));
    if (json_kind(scaling) != JSON_OBJECT)
        goto out;
    TRY(read_rope_kind(r, scaling));
    TRY(get_float(&r->base, scaling, "rope_theta", (double)r->base));
    TRY(get_float(&r->factor, scaling, "factor", 1));
    TRY(get_float(&r->low_freq_factor, scaling, "low_freq_factor", 1));
    TRY(get_float(&r->high_freq_factor, scaling, "high_freq_factor", 4));
    TRY(get_float(&r->beta_fast, scaling, "beta_fast", 32));
    TRY(get_float(&r->beta_slow, scaling, "beta_slow", 1));
    TRY(get_float(&r->mscale, scaling, "mscale", 1));
    TRY(get_float(&r->mscale_all_dim, scaling, "mscale_all_dim", 0));
    TRY(get_size(&r->original_context, scaling, "original_max_position_embeddings",
                 r->kind == LM_ROPE_LLAMA3 ? 8192 : 4096));
out:
    return err;
}

static enum err read_quant(struct lm_quant *q, struct json o)
{
    const char *mode = "affine";
    enum err err;

    TRY(get_size(&q->bits, o, "bits", -1));
    TRY(get_size(&q->group_size, o, "group_size", -1));
    TRY(json_opt_string(&mode, o, "mode"));
    if (strlen(mode) >= sizeof q->mode)
        return json_fail(o, "unknown quantization mode '%s'", mode);
    strcpy(q->mode, mode);
out:
    return err;
}

static struct json quantization(const struct lm_config *c)
{
    struct json o = json_find(json_root(c->doc), "quantization");

    return json_kind(o) == JSON_OBJECT ? o : json_find(json_root(c->doc), "quantization_config");
}

enum err config_quant(struct lm_quant *out, const struct lm_config *c, const char *module)
{
    struct json own = c->doc ? json_find(quantization(c), module) : (struct json){ 0 };

    *out = c->quant;
    if (json_kind(own) == JSON_OBJECT)
        return read_quant(out, own);
    return ERR_OK;
}

static enum err read_ints(struct lm_config *c, struct json v, bool is_eos)
{
    int64_t n;
    enum err err = ERR_OK;

    if (json_kind(v) == JSON_NUMBER) {
        TRY(json_int(&n, v));
        return VEC_PUSH(&c->eos, (int32_t)n);
    }
    JSON_EACH(item, v)
    {
        TRY(json_int(&n, item));
        TRY(is_eos ? VEC_PUSH(&c->eos, (int32_t)n) : VEC_PUSH(&c->dense_layers, (int32_t)n));
    }
out:
    return err;
}

static enum err read_experts(struct lm_config *c, struct json o)
{
    enum err err = ERR_OK;

    if (!c->arch->has_experts)
        return ERR_OK;
    TRY(get_size(&c->experts, o, "num_experts", -1));
    TRY(get_size(&c->experts_per_token, o, "num_experts_per_tok", -1));
    TRY(get_size(&c->expert_intermediate, o, "moe_intermediate_size", -1));
    TRY(get_size(&c->sparse_step, o, "decoder_sparse_step", 1));
    TRY(json_opt_bool(&c->normalise_scores, o, "norm_topk_prob"));
    TRY(read_ints(c, json_find(o, "mlp_only_layers"), false));
    if (c->experts_per_token > c->experts)
        err = json_fail(json_find(o, "num_experts_per_tok"), "more than num_experts");
out:
    return err;
}

static enum err read_sizes(struct lm_config *c, struct json o)
{
    enum err err;

    TRY(get_size(&c->hidden, o, "hidden_size", -1));
    TRY(get_size(&c->layers, o, "num_hidden_layers", -1));
    TRY(get_size(&c->intermediate, o, "intermediate_size", -1));
    TRY(get_size(&c->heads, o, "num_attention_heads", -1));
    TRY(get_size(&c->kv_heads, o, "num_key_value_heads", c->heads));
    TRY(get_size(&c->head_dim, o, "head_dim", c->hidden / c->heads));
    TRY(get_size(&c->vocab, o, "vocab_size", -1));
    TRY(get_size(&c->context, o, "max_position_embeddings", INT32_MAX));
    TRY(get_float(&c->norm_eps, o, "rms_norm_eps", 1e-6));
    if (c->kv_heads < 1 || c->heads % c->kv_heads)
        err = json_fail(json_find(o, "num_key_value_heads"), "%d heads are not a multiple of %d",
                        c->heads, c->kv_heads);
    else if (c->head_dim < 2 || c->head_dim % 2)
        err = json_fail(json_find(o, "head_dim"), "%d is not a positive even number", c->head_dim);
out:
    return err;
}

enum err config_read(struct lm_config *c, struct json_doc *doc)
{
    struct json o = json_root(doc);
    const char *type;
    enum err err;

    *c = (struct lm_config){ .doc = doc };
    TRY(json_get_string(&type, o, "model_type"));
    if (!(c->arch = config_arch(type))) {
        err = ERR_ARG;
        goto out;
    }
    TRY(read_sizes(c, o));
    c->tied = true; /* a file that unties the head says so */
    TRY(json_opt_bool(&c->tied, o, "tie_word_embeddings"));
    c->attention_bias = c->arch->has_qkv_bias;
    TRY(json_opt_bool(&c->attention_bias, o, "attention_bias"));
    TRY(json_opt_bool(&c->mlp_bias, o, "mlp_bias"));
    TRY(read_rope(c, o));
    TRY(read_experts(c, o));
    TRY(read_ints(c, json_find(o, "eos_token_id"), true));
    if (json_kind(quantization(c)) == JSON_OBJECT)
        TRY(read_quant(&c->quant, quantization(c)));
out:
    return err;
}

enum err config_load(struct lm_config *c, const char *folder)
{
    char path[4096];
    struct json_doc *doc = NULL;
    enum err err;

    *c = (struct lm_config){ 0 };
    if ((size_t)snprintf(path, sizeof path, "%s/config.json", folder) >= sizeof path)
        return err_set(ERR_ARG, "the path is too long: %s", folder);
    TRY(json_load(&doc, path));
    err = config_read(c, doc);
out:
    return err;
}

void config_fini(struct lm_config *c)
{
    VEC_FINI(&c->dense_layers);
    VEC_FINI(&c->eos);
    json_destroy(&c->doc);
}

bool config_is_sparse(const struct lm_config *c, int layer)
{
    for (size_t i = 0; i < c->dense_layers.n; i++)
        if (c->dense_layers.v[i] == layer)
            return false;
    return c->experts > 0 && (layer + 1) % c->sparse_step == 0;
}
