/* The config of a model from the metadata of a GGUF file. */
#include <stdio.h>

#include "lm/gguf_model.h"

/* Architectures, and how their files differ from model folders: in those of llama the rows of
 * queries and keys are ordered for rotations of neighbours. */
static const struct gguf_arch {
    const char *name, *model_type;
    bool traditional;
} archs[] = {
    { "llama", "llama", true },
    { "qwen2", "qwen2", false },
    { "qwen3", "qwen3", false },
    { "qwen3moe", "qwen3_moe", false },
};

static enum err find_arch(const struct gguf_arch **out, const struct gguf *g)
{
    char known[128] = "";
    const char *name;
    enum err err;

    TRY(gguf_get_string(&name, g, "general.architecture"));
    for (size_t i = 0; i < ARRAY_LEN(archs); i++) {
        if (strcmp(archs[i].name, name) == 0) {
            *out = &archs[i];
            return ERR_OK;
        }
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", archs[i].name);
    }
    err = err_set(ERR_ARG, "general.architecture '%.60s' is not supported; known are %s", name,
                  known);
out:
    return err;
}

/* ---- keys, which begin with the name of the architecture ---- */

struct keys {
    const struct gguf *g;
    const struct gguf_arch *arch;
};

struct key {
    char text[96];
};

static struct key key_of(const struct keys *k, const char *rest)
{
    struct key key;

    snprintf(key.text, sizeof key.text, "%s.%s", k->arch->name, rest);
    return key;
}

/* A negative default: there must be one. */
static enum err get_number(double *out, const struct keys *k, const char *rest, double value)
{
    struct key key = key_of(k, rest);

    *out = value;
    return value < 0 || gguf_find(k->g, key.text) ? gguf_get_number(out, k->g, key.text) : ERR_OK;
}

static enum err get_size(int32_t *out, const struct keys *k, const char *rest, double value)
{
    double n;
    enum err err = get_number(&n, k, rest, value);

    if (err)
        return err;
    if (!(n >= 1 && n <= INT32_MAX))
        return err_set(ERR_ARG, "%s: %g is out of range", key_of(k, rest).text, n);
    *out = (int32_t)n;
    return ERR_OK;
}

static enum err get_float(float *out, const struct keys *k, const char *rest, double value)
{
    double n;
    enum err err = get_number(&n, k, rest, value);

    *out = (float)n;
    return err;
}

/* ---- parts ---- */

static struct arr *find_tensor(const struct gguf *g, const char *name)
{
    for (size_t i = 0; i < g->arrays.list.n; i++)
        if (strcmp(g->arrays.list.v[i].name, name) == 0)
            return g->arrays.list.v[i].arr;
    return NULL;
}

static enum err read_sizes(struct lm_config *c, const struct keys *k)
{
    const struct arr *table = find_tensor(k->g, "token_embd.weight");
    enum err err;

    if (!table || table->ndim != 2)
        return err_set(ERR_ARG, "the matrix token_embd.weight is missing");
    c->vocab = table->shape[0];
    TRY(get_size(&c->hidden, k, "embedding_length", -1));
    TRY(get_size(&c->layers, k, "block_count", -1));
    TRY(get_size(&c->intermediate, k, "feed_forward_length", -1));
    TRY(get_size(&c->heads, k, "attention.head_count", -1));
    TRY(get_size(&c->kv_heads, k, "attention.head_count_kv", c->heads));
    TRY(get_size(&c->head_dim, k, "attention.key_length", (double)(c->hidden / c->heads)));
    TRY(get_size(&c->context, k, "context_length", INT32_MAX));
    TRY(get_float(&c->norm_eps, k, "attention.layer_norm_rms_epsilon", -1));
    c->tied = !find_tensor(k->g, "output.weight");
    c->attention_bias = find_tensor(k->g, "blk.0.attn_q.bias") != NULL;
    if (c->heads % c->kv_heads)
        err = err_set(ERR_ARG, "%s: %d heads are not a multiple of %d",
                      key_of(k, "attention.head_count_kv").text, c->heads, c->kv_heads);
    else if (c->head_dim % 2)
        err = err_set(ERR_ARG, "%s: %d is not an even number",
                      key_of(k, "attention.key_length").text, c->head_dim);
out:
    return err;
}

static enum err read_scaling(struct lm_rope *r, const struct keys *k)
{
    struct key key = key_of(k, "rope.scaling.type");
    const char *name = "none";
    enum err err = ERR_OK;

    if (gguf_find(k->g, key.text))
        TRY(gguf_get_string(&name, k->g, key.text));
    if (strcmp(name, "linear") == 0)
        r->kind = LM_ROPE_LINEAR;
    else if (strcmp(name, "yarn") == 0)
        r->kind = LM_ROPE_YARN;
    else if (strcmp(name, "none") != 0)
        TRY(err_set(ERR_ARG, "%s: '%.60s' is not supported; known are none, linear, yarn", key.text,
                    name));
    if (find_tensor(k->g, LM_ROPE_FACTORS_NAME))
        r->kind = LM_ROPE_FACTORS;
out:
    return err;
}

static enum err read_rope(struct lm_rope *r, const struct keys *k)
{
    enum err err;

    TRY(read_scaling(r, k));
    TRY(get_float(&r->base, k, "rope.freq_base", 10000));
    TRY(get_float(&r->factor, k, "rope.scaling.factor", 1));
    TRY(get_size(&r->original_context, k, "rope.scaling.original_context_length", 4096));
    r->beta_fast = 32;
    r->beta_slow = 1;
    r->mscale = 1;
    r->traditional = k->arch->traditional;
    if (!(r->base > 0 && r->factor > 0))
        err = err_set(ERR_ARG, "rope: a base of %g and a factor of %g make no sense",
                      (double)r->base, (double)r->factor);
out:
    return err;
}

static enum err read_experts(struct lm_config *c, const struct keys *k)
{
    enum err err = ERR_OK;

    if (!c->arch->has_experts)
        return ERR_OK;
    TRY(get_size(&c->experts, k, "expert_count", -1));
    TRY(get_size(&c->experts_per_token, k, "expert_used_count", -1));
    TRY(get_size(&c->expert_intermediate, k, "expert_feed_forward_length", -1));
    c->sparse_step = 1;
    c->normalise_scores = true;
    if (c->experts_per_token > c->experts)
        err = err_set(ERR_ARG, "%s: more than there are", key_of(k, "expert_used_count").text);
out:
    return err;
}

enum err gguf_config(struct lm_config *c, const struct gguf *g)
{
    struct keys k = { .g = g };
    enum err err;

    *c = (struct lm_config){ 0 };
    TRY(find_arch(&k.arch, g));
    c->arch = config_arch(k.arch->model_type);
    TRY(read_sizes(c, &k));
    TRY(read_rope(&c->rope, &k));
    TRY(read_experts(c, &k));
out:
    return err;
}
