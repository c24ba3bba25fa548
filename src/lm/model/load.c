#include "lm/model/load.h"

#include <stdarg.h>
#include <stdio.h>

#include "lm/model/rope.h"

#define MODULE_LENGTH 160
#define NAME_LENGTH (MODULE_LENGTH + 16)

struct loader {
    const struct lm_config *c;
    struct lm_weights *src;
};

static enum err get(struct loader *l, struct arr **out, const char *module, const char *part,
                    const struct lm_tensor *want)
{
    char name[NAME_LENGTH];

    snprintf(name, sizeof name, "%s.%s", module, part);
    return weights_get(out, l->src, name, want);
}

static bool has(struct loader *l, const char *module, const char *part)
{
    char name[NAME_LENGTH];

    snprintf(name, sizeof name, "%s.%s", module, part);
    return l->src->has(l->src, name);
}

/* The matrix of a module; experts > 0: one for each of them, stacked. */
struct matrix {
    int32_t experts, out, in;
    bool has_bias;
};

static struct lm_tensor matrix_tensor(const struct matrix *m, int32_t columns, enum lm_element e)
{
    if (m->experts)
        return (struct lm_tensor){ { .ndim = 3, .d = { m->experts, m->out, columns } }, e };
    return (struct lm_tensor){ { .ndim = 2, .d = { m->out, columns } }, e };
}

/* How the module's weights are packed. The files say whether they are; the config has to agree
 * where it has an entry for this module. */
static enum err find_packing(struct loader *l, struct lm_quant *q, const char *module)
{
    bool is_packed = has(l, module, "scales"), is_own = false;
    enum err err;

    *q = (struct lm_quant){ 0 };
    if (is_packed && l->src->quant)
        return l->src->quant(l->src, q, module);
    TRY(config_quant(q, &is_own, l->c, module));
    if (is_own && is_packed != (q->bits != 0))
        err = err_set(ERR_ARG, "%s: the config says that it is %spacked, but it has %s scales",
                      module, is_packed ? "not " : "", is_packed ? "" : "no");
    else if (!is_packed)
        q->bits = 0;
out:
    return err;
}

static enum err load_packed(struct loader *l, struct lm_linear *w, const char *module,
                            const struct matrix *m)
{
    const struct lm_quant *q = &w->quant;
    bool is_affine = strcmp(q->mode, "affine") == 0;
    enum err err;

    if (q->bits < 1 || q->bits > 8 || q->group_size < 1 || m->in % q->group_size ||
        (int64_t)m->in * q->bits % 32)
        return err_set(ERR_ARG,
                       "%s: rows of %d cannot be packed with %d bits in groups of %d; config and "
                       "weights disagree",
                       module, m->in, q->bits, q->group_size);
    struct lm_tensor words =
        matrix_tensor(m, (int32_t)((int64_t)m->in * q->bits / 32), LM_ELEMENT_WORD);
    struct lm_tensor scales =
        matrix_tensor(m, m->in / q->group_size, is_affine ? LM_ELEMENT_REAL : LM_ELEMENT_SCALE);
    TRY(get(l, &w->weight, module, "weight", &words));
    TRY(get(l, &w->scales, module, "scales", &scales));
    if (is_affine)
        TRY(get(l, &w->biases, module, "biases", &scales));
out:
    return err;
}

static struct lm_tensor vector_tensor(int32_t n)
{
    return (struct lm_tensor){ { .ndim = 1, .d = { n } }, LM_ELEMENT_REAL };
}

static enum err load_linear(struct loader *l, struct lm_linear *w, const char *module,
                            const struct matrix *m)
{
    struct lm_tensor whole = matrix_tensor(m, m->in, LM_ELEMENT_REAL), bias = vector_tensor(m->out);
    enum err err;

    TRY(find_packing(l, &w->quant, module));
    TRY(w->quant.bits ? load_packed(l, w, module, m)
                      : get(l, &w->weight, module, "weight", &whole));
    if (m->has_bias)
        TRY(get(l, &w->bias, module, "bias", &bias));
out:
    return err;
}

static enum err load_norm(struct loader *l, struct arr **out, const char *module, int32_t size)
{
    struct lm_tensor want = vector_tensor(size);

    return get(l, out, module, "weight", &want);
}

/* "model.layers.N." and the rest. */
struct module_name {
    char text[MODULE_LENGTH];
};

static struct module_name layer_module(int layer, const char *rest)
{
    struct module_name n;

    snprintf(n.text, sizeof n.text, "model.layers.%d.%s", layer, rest);
    return n;
}

static enum err load_attention(struct loader *l, struct lm_attention *a, int i)
{
    const struct lm_config *c = l->c;
    int32_t queries = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim;
    /* Qwen2 has biases on queries, keys and values only. */
    bool has_bias = c->attention_bias, has_out_bias = has_bias && !c->arch->has_qkv_bias;
    const struct {
        struct lm_linear *w;
        const char *name;
        struct matrix m;
    } parts[] = {
        { &a->q, "self_attn.q_proj", { 0, queries, c->hidden, has_bias } },
        { &a->k, "self_attn.k_proj", { 0, keys, c->hidden, has_bias } },
        { &a->v, "self_attn.v_proj", { 0, keys, c->hidden, has_bias } },
        { &a->o, "self_attn.o_proj", { 0, c->hidden, queries, has_out_bias } },
    };
    enum err err = ERR_OK;

    for (size_t p = 0; p < ARRAY_LEN(parts); p++)
        TRY(load_linear(l, parts[p].w, layer_module(i, parts[p].name).text, &parts[p].m));
    if (c->arch->has_qk_norm) {
        TRY(load_norm(l, &a->q_norm, layer_module(i, "self_attn.q_norm").text, c->head_dim));
        TRY(load_norm(l, &a->k_norm, layer_module(i, "self_attn.k_norm").text, c->head_dim));
    }
out:
    return err;
}

static enum err load_mlp(struct loader *l, struct lm_layer *layer, int i)
{
    const struct lm_config *c = l->c;
    const char *prefix = layer->is_sparse ? "mlp.switch_mlp" : "mlp";
    int32_t size = layer->is_sparse ? c->expert_intermediate : c->intermediate;
    int32_t experts = layer->is_sparse ? c->experts : 0;
    const struct {
        struct lm_linear *w;
        const char *name;
        struct matrix m;
    } parts[] = {
        { &layer->mlp.gate, "gate_proj", { experts, size, c->hidden, c->mlp_bias } },
        { &layer->mlp.up, "up_proj", { experts, size, c->hidden, c->mlp_bias } },
        { &layer->mlp.down, "down_proj", { experts, c->hidden, size, c->mlp_bias } },
    };
    enum err err = ERR_OK;

    for (size_t p = 0; p < ARRAY_LEN(parts); p++) {
        char rest[64];
        snprintf(rest, sizeof rest, "%s.%s", prefix, parts[p].name);
        TRY(load_linear(l, parts[p].w, layer_module(i, rest).text, &parts[p].m));
    }
    if (layer->is_sparse)
        TRY(load_linear(l, &layer->router, layer_module(i, "mlp.gate").text,
                        &(struct matrix){ 0, c->experts, c->hidden, false }));
out:
    return err;
}

static enum err load_layer(struct loader *l, struct lm_layer *layer, int i)
{
    int32_t hidden = l->c->hidden;
    enum err err;

    layer->is_sparse = config_is_sparse(l->c, i);
    TRY(load_norm(l, &layer->input_norm, layer_module(i, "input_layernorm").text, hidden));
    TRY(load_attention(l, &layer->attention, i));
    TRY(load_norm(l, &layer->post_norm, layer_module(i, "post_attention_layernorm").text, hidden));
    TRY(load_mlp(l, layer, i));
out:
    return err;
}

enum err load_weights(struct lm_model *m, struct lm_weights *src)
{
    const struct lm_config *c = &m->config;
    struct loader l = { c, src };
    struct matrix table = { 0, c->vocab, c->hidden, false };
    enum err err;

    TRY(load_linear(&l, &m->embed, "model.embed_tokens", &table));
    for (int i = 0; i < c->layers; i++)
        TRY(load_layer(&l, &m->layer[i], i));
    TRY(load_norm(&l, &m->norm, "model.norm", c->hidden));
    if (!c->tied)
        TRY(load_linear(&l, &m->head, "lm_head", &table));
out:
    return err;
}

/* ---- the model's life ---- */

enum err model_new(struct lm_model **out, struct lm_config *config, struct lm_weights *src)
{
    struct lm_model *m = mem_alloc(sizeof *m);
    enum err err = ERR_NO_MEMORY;

    if (!m) {
        config_fini(config);
        return ERR_NO_MEMORY;
    }
    m->config = *config;
    *config = (struct lm_config){ 0 };
    m->layer = mem_alloc_array((size_t)m->config.layers, sizeof *m->layer);
    if (!m->layer)
        goto out;
    TRY(load_weights(m, src)); /* whose shapes agree with the config from here on */
    TRY(rope_prepare(m, src));
    if (src->check_read)
        TRY(src->check_read(src, &m->config));
    *out = m;
    m = NULL;
out:
    model_destroy(&m);
    return err;
}

/* Visits every weight of the model, present or not. */
static enum err visit_linear(struct lm_linear *w, enum err (*fn)(struct arr **, void *), void *data)
{
    struct arr **parts[] = { &w->weight, &w->scales, &w->biases, &w->bias };
    enum err err = ERR_OK;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        TRY(fn(parts[i], data));
out:
    return err;
}

static enum err visit_layer(struct lm_layer *l, enum err (*fn)(struct arr **, void *), void *data)
{
    struct lm_linear *linears[] = { &l->attention.q, &l->attention.k, &l->attention.v,
                                    &l->attention.o, &l->mlp.gate,    &l->mlp.up,
                                    &l->mlp.down,    &l->router };
    struct arr **norms[] = { &l->input_norm, &l->post_norm, &l->attention.q_norm,
                             &l->attention.k_norm };
    enum err err = ERR_OK;

    for (size_t i = 0; i < ARRAY_LEN(linears); i++)
        TRY(visit_linear(linears[i], fn, data));
    for (size_t i = 0; i < ARRAY_LEN(norms); i++)
        TRY(fn(norms[i], data));
out:
    return err;
}

static enum err visit(struct lm_model *m, enum err (*fn)(struct arr **, void *), void *data)
{
    enum err err;

    TRY(visit_linear(&m->embed, fn, data));
    for (int i = 0; i < m->config.layers && m->layer; i++)
        TRY(visit_layer(&m->layer[i], fn, data));
    TRY(visit_linear(&m->head, fn, data));
    TRY(fn(&m->norm, data));
    err = fn(&m->rope_freqs, data);
out:
    return err;
}

static enum err drop(struct arr **weight, void *data)
{
    (void)data;
    arr_unref(weight);
    return ERR_OK;
}

void model_destroy(struct lm_model **pm)
{
    struct lm_model *m = *pm;

    *pm = NULL;
    if (!m)
        return;
    enum err err = visit(m, drop, NULL);
    (void)err; /* dropping cannot fail */
    mem_free(m->layer);
    config_fini(&m->config);
    mem_free(m);
}

struct each {
    enum err (*fn)(struct arr *weight, void *data);
    void *data;
};

static enum err call_each(struct arr **weight, void *data)
{
    const struct each *e = data;

    return *weight ? e->fn(*weight, e->data) : ERR_OK;
}

enum err model_each_weight(struct lm_model *m, enum err (*fn)(struct arr *weight, void *data),
                           void *data)
{
    return visit(m, call_each, &(struct each){ fn, data });
}
