#include "lm/model/config.h"

#include <stdio.h>
#include <string.h>

#include "lm/model/config_numbers.h"

#define LLAMA                                                                                      \
    .reads_mlp_bias = true, .reads_rope_traditional = true, .reads_layer_types = true,             \
    .may_omit_tied = true, .rope_base = 1e4

static const struct lm_arch archs[] = {
    { "qwen3", "qwen3", .has_qk_norm = true },
    { "qwen3_moe", "qwen3moe", .has_qk_norm = true, .has_experts = true },
    { "qwen2", "qwen2", .has_qkv_bias = true, .reads_rope_traditional = true, .may_omit_tied = true,
      .rope_base = 1e6 },
    { "llama", "llama", .gguf_traditional = true, LLAMA },
    { "mistral", NULL, LLAMA },
};

static const char *arch_name(const struct lm_arch *a, bool is_gguf)
{
    return is_gguf ? a->gguf : a->model_type;
}

static const struct lm_arch *find_arch(const char *name, bool is_gguf)
{
    char known[128] = "";

    for (size_t i = 0; i < ARRAY_LEN(archs); i++) {
        const char *its = arch_name(&archs[i], is_gguf);
        if (!its)
            continue;
        if (strcmp(its, name) == 0)
            return &archs[i];
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", its);
    }
    err_set(ERR_ARG, "%s '%.60s' is not supported; known are %s",
            is_gguf ? "general.architecture" : "model_type", name, known);
    return NULL;
}

const struct lm_arch *config_arch(const char *model_type)
{
    return find_arch(model_type, false);
}

const struct lm_arch *config_arch_gguf(const char *name)
{
    return find_arch(name, true);
}

/* ---- numbers ---- */

/* Objects in which a number may stand; the first that has it counts, and others must not say
 * something else. */
struct places {
    struct lm_number_source base;
    struct json in[3];
};

static struct json find_number(const struct places *p, const struct lm_number *n)
{
    for (size_t i = 0; i < ARRAY_LEN(p->in); i++) {
        struct json v = json_find(p->in[i], n->key);
        if (json_kind(v) > JSON_NULL)
            return v;
    }
    return (struct json){ 0 };
}

static enum err get_number(const struct lm_number_source *s, const struct lm_number *n,
                           double *value, bool *found)
{
    const struct places *p = (const struct places *)s;
    struct json first = find_number(p, n);
    enum err err = ERR_OK;

    *found = first.node != NULL;
    if (!*found)
        return ERR_OK;
    TRY(json_number(value, first));
    for (size_t i = 0; i < ARRAY_LEN(p->in); i++) {
        double other = *value;
        TRY(json_opt_number(&other, p->in[i], n->key));
        if (other != *value)
            return json_fail(first, "there is %.10g and, elsewhere, %.10g", *value, other);
    }
out:
    return err;
}

static enum err fail_number(const struct lm_number_source *s, const struct lm_number *n,
                            const char *what)
{
    const struct places *p = (const struct places *)s;
    struct json v = find_number(p, n);

    return v.node ? json_fail(v, "%s", what) : json_fail(p->in[0], "%s: %s", n->key, what);
}

static struct places places_of(struct json a, struct json b, struct json c)
{
    return (struct places){ { get_number, fail_number }, { a, b, c } };
}

static struct places place_of(struct json o)
{
    return places_of(o, (struct json){ 0 }, (struct json){ 0 });
}

/* ---- what is not supported and would change the result ---- */

static enum err refuse_true(struct json o, const char *key)
{
    bool value = false;
    enum err err = json_opt_bool(&value, o, key);

    return !err && value ? json_fail(json_find(o, key), "it is not supported") : err;
}

static enum err refuse_other(struct json o, const char *key, double wanted)
{
    double value = wanted;
    enum err err = json_opt_number(&value, o, key);

    return !err && value != wanted ? json_fail(json_find(o, key), "%g is not supported", value)
                                   : err;
}

static enum err refuse_entries(struct json o)
{
    static const char *const flags[] = { "use_sliding_window", "use_mrope",
                                         "quantize_activations" };
    const char *act = "silu", *file = NULL;
    enum err err;

    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        TRY(refuse_true(o, flags[i]));
    TRY(refuse_other(o, "partial_rotary_factor", 1));
    TRY(json_opt_string(&act, o, "hidden_act"));
    if (strcmp(act, "silu") != 0 && strcmp(act, "swish") != 0)
        TRY(json_fail(json_find(o, "hidden_act"), "'%.60s' is not supported; silu is", act));
    TRY(json_opt_string(&file, o, "model_file"));
    if (file)
        err = json_fail(json_find(o, "model_file"), "a model with a program of its own");
out:
    return err;
}

/* ---- positions ---- */

/* Base and factor of "dynamic" change beyond the context only, where nothing is generated. */
static const struct {
    const char *name;
    enum lm_rope_kind kind;
    bool has_factor;
} rope_kinds[] = {
    { "default", LM_ROPE_PLAIN, false },      { "dynamic", LM_ROPE_PLAIN, true },
    { "linear", LM_ROPE_LINEAR, true },       { "llama3", LM_ROPE_LLAMA3, true },
    { "yarn", LM_ROPE_YARN, true },           { "deepseek_yarn", LM_ROPE_YARN, true },
    { "telechat3-yarn", LM_ROPE_YARN, true },
};

static enum err read_rope_kind(struct lm_rope *r, struct json scaling)
{
    const char *name = "default";
    char known[128] = "";
    enum err err;

    TRY(json_opt_string(&name, scaling, "rope_type"));
    TRY(json_opt_string(&name, scaling, "type"));
    for (size_t i = 0; i < ARRAY_LEN(rope_kinds); i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", rope_kinds[i].name);
        if (strcmp(rope_kinds[i].name, name) != 0)
            continue;
        r->kind = rope_kinds[i].kind;
        if (rope_kinds[i].has_factor && json_kind(json_find(scaling, "factor")) <= JSON_NULL)
            return json_fail(scaling, "\"factor\" is missing");
        return ERR_OK;
    }
    err = json_fail(scaling, "rope type '%.60s' is not supported; known are %s", name, known);
out:
    return err;
}

static enum err read_rope(struct lm_config *c, struct json o)
{
    struct json scaling = { 0 }, newer = { 0 };
    enum err err;

    TRY(json_opt(&scaling, o, "rope_scaling", JSON_OBJECT));
    TRY(json_opt(&newer, o, "rope_parameters", JSON_OBJECT));
    struct places p = places_of(o, scaling, newer);
    TRY(numbers_read(c, LM_NUMBERS_ROPE, &p.base));
    if (!c->rope.base && !(c->rope.base = (float)c->arch->rope_base))
        TRY(json_fail(o, "\"rope_theta\" is missing"));
    if (c->arch->reads_rope_traditional)
        TRY(json_opt_bool(&c->rope.traditional, o, "rope_traditional"));
    /* Newer files keep base and scaling together. */
    if (!scaling.node)
        scaling = newer;
    if (!scaling.node)
        goto out;
    TRY(read_rope_kind(&c->rope, scaling));
    TRY(refuse_other(scaling, "partial_rotary_factor", 1));
    if (json_kind(json_find(scaling, "attention_factor")) > JSON_NULL)
        TRY(json_fail(json_find(scaling, "attention_factor"), "it is not supported"));
    p = place_of(scaling);
    TRY(numbers_read(c, LM_NUMBERS_SCALING, &p.base));
    err = numbers_check_scaling(c, &p.base);
out:
    return err;
}

/* ---- packing ---- */

static const struct {
    const char *name;
    int32_t bits, group_size;
    bool is_fixed; /* nothing else is possible */
} modes[] = {
    { "affine", 4, 64, false },
    { "mxfp4", 4, 32, true },
    { "mxfp8", 8, 32, true },
    { "nvfp4", 4, 16, true },
};

static enum err check_quant(const struct lm_quant *q, struct json o, size_t mode)
{
    if (q->bits >= 1 && q->bits <= 8 && q->group_size >= 1 && q->group_size <= 1024 &&
        (!modes[mode].is_fixed ||
         (q->bits == modes[mode].bits && q->group_size == modes[mode].group_size)))
        return ERR_OK;
    return json_fail(o, "mode %s with %d bits in groups of %d is not supported", q->mode, q->bits,
                     q->group_size);
}

static enum err read_int32(int32_t *out, struct json o, const char *key)
{
    int64_t value = *out;
    enum err err = json_opt_int(&value, o, key);

    if (!err && (value < INT32_MIN || value > INT32_MAX))
        err = json_fail(json_find(o, key), "%lld is out of range", (long long)value);
    if (!err)
        *out = (int32_t)value;
    return err;
}

/* What a mode does without is its own. */
static enum err read_quant(struct lm_quant *q, struct json o)
{
    const char *mode = "affine";
    enum err err;

    TRY(json_opt_string(&mode, o, "mode"));
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (strcmp(modes[i].name, mode) != 0)
            continue;
        q->bits = modes[i].bits;
        q->group_size = modes[i].group_size;
        strcpy(q->mode, mode);
        TRY(read_int32(&q->bits, o, "bits"));
        TRY(read_int32(&q->group_size, o, "group_size"));
        return check_quant(q, o, i);
    }
    err = json_fail(o, "unknown quantization mode '%.60s'", mode);
out:
    return err;
}

/* MLX's own entry, else one that other tools share with it. */
static struct json quantization(const struct lm_config *c)
{
    struct json o = json_find(json_root(c->doc), "quantization");

    return json_kind(o) > JSON_NULL ? o : json_find(json_root(c->doc), "quantization_config");
}

static enum err read_quantization(struct lm_config *c)
{
    struct json o = quantization(c), bits = json_find(o, "bits");
    const char *method = NULL;
    enum err err;

    if (json_kind(o) <= JSON_NULL)
        return ERR_OK;
    if (json_kind(o) != JSON_OBJECT)
        return json_fail(o, "expected an object");
    if (json_kind(json_find(json_root(c->doc), "quantization")) <= JSON_NULL) {
        TRY(json_opt_string(&method, o, "quant_method"));
        for (size_t i = 0; i < ARRAY_LEN(modes) && method; i++)
            if (modes[i].is_fixed && strcmp(modes[i].name, method) == 0) {
                c->quant = (struct lm_quant){ modes[i].group_size, modes[i].bits, "" };
                strcpy(c->quant.mode, method);
                return ERR_OK;
            }
        if (method)
            return json_fail(json_find(o, "quant_method"), "'%.60s' is not supported", method);
    }
    if (json_kind(bits) <= JSON_NULL || json_kind(json_find(o, "group_size")) <= JSON_NULL)
        return json_fail(o, "\"bits\" or \"group_size\" is missing");
    err = read_quant(&c->quant, o);
out:
    return err;
}

enum err config_quant(struct lm_quant *out, bool *is_own, const struct lm_config *c,
                      const char *module)
{
    struct json own = c->doc ? json_find(quantization(c), module) : (struct json){ 0 };
    bool is_packed = true;
    enum err err = ERR_OK;

    *out = c->quant;
    if (is_own)
        *is_own = json_kind(own) != JSON_ABSENT;
    if (json_kind(own) == JSON_OBJECT)
        err = read_quant(out, own);
    else if (json_kind(own) != JSON_ABSENT)
        err = json_bool(&is_packed, own);
    if (!is_packed)
        out->bits = 0;
    return err;
}

/* ---- layers ---- */

static enum err read_layer_types(struct lm_config *c, struct json o)
{
    struct json types = { 0 };
    struct places p = place_of(o);
    bool has_window = false;
    size_t i = 0;
    enum err err;

    TRY(json_opt(&types, o, "layer_types", JSON_ARRAY));
    if (!types.node)
        return ERR_OK;
    if (json_count(types) != (size_t)c->layers)
        return json_fail(types, "it has %zu entries for %d layers", json_count(types), c->layers);
    JSON_EACH(type, types)
    {
        const char *name;
        TRY(json_string(&name, type));
        bool is_window = strcmp(name, "sliding_attention") == 0;
        if ((!is_window && strcmp(name, "full_attention") != 0) ||
            (is_window && !c->arch->reads_layer_types))
            return json_fail(types, "'%.60s' is not supported for a %s", name, c->arch->model_type);
        if (is_window)
            c->layer_flags.v[i] |= LM_LAYER_WINDOW;
        has_window |= is_window;
        i++;
    }
    if (has_window)
        err = numbers_read(c, LM_NUMBERS_WINDOW, &p.base);
out:
    return err;
}

static enum err read_dense_layers(struct lm_config *c, struct json o)
{
    struct json list = { 0 };
    int64_t n;
    enum err err;

    TRY(json_opt(&list, o, "mlp_only_layers", JSON_ARRAY));
    JSON_EACH(item, list)
    {
        TRY(json_int(&n, item));
        if (n >= 0 && n < c->layers)
            c->layer_flags.v[n] |= LM_LAYER_DENSE;
    }
out:
    return err;
}

static enum err read_experts(struct lm_config *c, struct json o)
{
    struct places p = place_of(o);
    enum err err = ERR_OK;

    if (!c->arch->has_experts)
        return ERR_OK;
    TRY(numbers_read(c, LM_NUMBERS_EXPERTS, &p.base));
    TRY(numbers_check_experts(c, &p.base));
    TRY(json_opt_bool(&c->normalise_scores, o, "norm_topk_prob"));
    err = read_dense_layers(c, o);
out:
    return err;
}

/* ---- all of it ---- */

static enum err read_sizes(struct lm_config *c, struct json o)
{
    struct places p = place_of(o);
    enum err err;

    TRY(numbers_read(c, LM_NUMBERS_MODEL, &p.base));
    TRY(numbers_read(c, LM_NUMBERS_VOCABULARY, &p.base));
    TRY(numbers_check_model(c, &p.base));
    TRY(VEC_RESERVE(&c->layer_flags, (size_t)c->layers));
    memset(c->layer_flags.v, 0, (size_t)c->layers);
    c->layer_flags.n = (size_t)c->layers;
out:
    return err;
}

static enum err read_flags(struct lm_config *c, struct json o)
{
    enum err err = ERR_OK;

    c->tied = true; /* a file that unties the head says so */
    TRY(json_opt_bool(&c->tied, o, "tie_word_embeddings"));
    if (!c->arch->may_omit_tied && json_kind(json_find(o, "tie_word_embeddings")) <= JSON_NULL)
        TRY(json_fail(o, "\"tie_word_embeddings\" is missing"));
    c->attention_bias = c->arch->has_qkv_bias;
    if (!c->arch->has_qkv_bias)
        TRY(json_opt_bool(&c->attention_bias, o, "attention_bias"));
    if (c->arch->reads_mlp_bias)
        TRY(json_opt_bool(&c->mlp_bias, o, "mlp_bias"));
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
    TRY(refuse_entries(o));
    TRY(read_sizes(c, o));
    TRY(read_flags(c, o));
    TRY(read_rope(c, o));
    TRY(read_layer_types(c, o));
    TRY(read_experts(c, o));
    err = read_quantization(c);
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
    VEC_FINI(&c->layer_flags);
    json_destroy(&c->doc);
}

static bool has_flag(const struct lm_config *c, int layer, int flag)
{
    return (size_t)layer < c->layer_flags.n && c->layer_flags.v[layer] & flag;
}

bool config_is_sparse(const struct lm_config *c, int layer)
{
    return c->experts > 0 && !has_flag(c, layer, LM_LAYER_DENSE) &&
           (layer + 1) % c->sparse_step == 0;
}

bool config_has_window(const struct lm_config *c, int layer)
{
    return has_flag(c, layer, LM_LAYER_WINDOW);
}
