/* The config of a model from the metadata of a GGUF file. */
#include <stdio.h>

#include "lm/gguf_model.h"
#include "lm/model/config_numbers.h"

/* ---- keys, which begin with the name of the architecture ---- */

struct keys {
    struct lm_number_source base;
    const struct gguf *g;
    const struct lm_arch *arch;
};

struct key {
    char text[96];
};

static struct key key_of(const struct keys *k, const char *rest)
{
    struct key key;

    snprintf(key.text, sizeof key.text, "%s.%s", k->arch->gguf, rest);
    return key;
}

static enum err get_number(const struct lm_number_source *s, const struct lm_number *n,
                           double *value, bool *found)
{
    const struct keys *k = (const struct keys *)s;

    *found = false;
    if (!n->gguf_key)
        return ERR_OK;
    struct key key = key_of(k, n->gguf_key);
    *found = gguf_find(k->g, key.text) != NULL;
    return *found ? gguf_get_number(value, k->g, key.text) : ERR_OK;
}

static enum err fail_number(const struct lm_number_source *s, const struct lm_number *n,
                            const char *what)
{
    const struct keys *k = (const struct keys *)s;

    return err_set(ERR_ARG, "%s: %s", key_of(k, n->gguf_key ? n->gguf_key : n->key).text, what);
}

/* Numbers that would change the result if they were others than these. */
static enum err refuse_other(const struct keys *k, const char *rest, double wanted)
{
    struct key key = key_of(k, rest);
    double value = wanted;
    enum err err = ERR_OK;

    if (gguf_find(k->g, key.text))
        TRY(gguf_get_number(&value, k->g, key.text));
    if (value != wanted)
        err = err_set(ERR_ARG, "%s: %g is not supported; %g is", key.text, value, wanted);
out:
    return err;
}

static enum err refuse_others(const struct lm_config *c, const struct keys *k)
{
    const struct {
        const char *key;
        double wanted;
    } rows[] = {
        { "rope.dimension_count", c->head_dim },
        { "attention.value_length", c->head_dim },
        { "rope.scaling.attn_factor", 1 },
        { "rope.scale_linear", 1 },
        { "expert_gating_func", 1 },
        { "expert_weights_scale", 1 },
        { "expert_shared_count", 0 },
        { "leading_dense_block_count", 0 },
    };
    enum err err = ERR_OK;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        TRY(refuse_other(k, rows[i].key, rows[i].wanted));
out:
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

    if (!table || table->ndim != 2 || table->shape[0] < 1)
        return err_set(ERR_ARG, "the matrix token_embd.weight is missing");
    c->vocab = table->shape[0];
    TRY(numbers_read(c, LM_NUMBERS_MODEL, &k->base));
    TRY(numbers_check_model(c, &k->base));
    c->tied = !find_tensor(k->g, "output.weight");
    c->attention_bias = find_tensor(k->g, "blk.0.attn_q.bias") != NULL;
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

static enum err read_rope(struct lm_config *c, const struct keys *k)
{
    enum err err;

    TRY(read_scaling(&c->rope, k));
    TRY(numbers_read(c, LM_NUMBERS_ROPE, &k->base));
    if (!c->rope.base)
        c->rope.base = 10000; /* of the format, whatever the architecture */
    TRY(numbers_read(c, LM_NUMBERS_SCALING, &k->base));
    TRY(numbers_check_scaling(c, &k->base));
    c->rope.traditional = k->arch->gguf_traditional;
out:
    return err;
}

static enum err read_experts(struct lm_config *c, const struct keys *k)
{
    enum err err = ERR_OK;

    if (!c->arch->has_experts)
        return ERR_OK;
    TRY(numbers_read(c, LM_NUMBERS_EXPERTS, &k->base));
    TRY(numbers_check_experts(c, &k->base));
    c->normalise_scores = true;
out:
    return err;
}

enum err gguf_config(struct lm_config *c, const struct gguf *g)
{
    struct keys k = { .base = { get_number, fail_number }, .g = g };
    const char *name;
    enum err err;

    *c = (struct lm_config){ 0 };
    TRY(gguf_get_string(&name, g, "general.architecture"));
    if (!(k.arch = config_arch_gguf(name)))
        return ERR_ARG;
    c->arch = k.arch;
    TRY(read_sizes(c, &k));
    TRY(read_rope(c, &k));
    TRY(read_experts(c, &k));
    err = refuse_others(c, &k);
out:
    return err;
}
