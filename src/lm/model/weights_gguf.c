/* Weights from a GGUF file, under the names of model folders. */
#include <stdio.h>

#include "lm/gguf_model.h"
#include "lm/model/weights_list.h"

#define NAME_LENGTH 192

struct gguf_weights {
    struct lm_weights base;
    char *file;
    struct weights_list list; /* by the names in the file */
    enum dtype dtype;         /* of the activations */
    struct strm *s;
};

/* ---- names ---- */

/* Modules: those of a layer follow "model.layers.N." and "blk.N.". */
static const struct {
    const char *folder, *gguf;
} modules[] = {
    { "model.embed_tokens", "token_embd" },
    { "model.norm", "output_norm" },
    { "lm_head", "output" },
    { "input_layernorm", "attn_norm" },
    { "post_attention_layernorm", "ffn_norm" },
    { "self_attn.q_proj", "attn_q" },
    { "self_attn.k_proj", "attn_k" },
    { "self_attn.v_proj", "attn_v" },
    { "self_attn.o_proj", "attn_output" },
    { "self_attn.q_norm", "attn_q_norm" },
    { "self_attn.k_norm", "attn_k_norm" },
    { "mlp.gate_proj", "ffn_gate" },
    { "mlp.up_proj", "ffn_up" },
    { "mlp.down_proj", "ffn_down" },
    { "mlp.gate", "ffn_gate_inp" },
    { "mlp.switch_mlp.gate_proj", "ffn_gate_exps" },
    { "mlp.switch_mlp.up_proj", "ffn_up_exps" },
    { "mlp.switch_mlp.down_proj", "ffn_down_exps" },
};

struct gguf_name {
    char text[NAME_LENGTH];
};

/* What the file calls a tensor; one that is in no table keeps its name. */
static struct gguf_name name_of(const char *name)
{
    const char *part = strrchr(name, '.'), *module = name;
    struct gguf_name out;
    int layer, used = 0;
    bool in_layer = sscanf(name, "model.layers.%9d.%n", &layer, &used) == 1 && used;

    snprintf(out.text, sizeof out.text, "%s", name);
    if (in_layer)
        module += used;
    if (!part || part < module)
        return out;
    for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
        size_t n = strlen(modules[i].folder);
        if ((size_t)(part - module) != n || memcmp(module, modules[i].folder, n) != 0)
            continue;
        if (in_layer)
            snprintf(out.text, sizeof out.text, "blk.%d.%s%s", layer, modules[i].gguf, part);
        else
            snprintf(out.text, sizeof out.text, "%s%s", modules[i].gguf, part);
    }
    return out;
}

/* ---- the source ---- */

static bool gguf_has(struct lm_weights *base, const char *name)
{
    return weights_list_find(&((struct gguf_weights *)base)->list, name_of(name).text) != NULL;
}

static enum err gguf_get(struct lm_weights *base, struct arr **out, const char *name,
                         const struct shp *shape)
{
    struct gguf_weights *w = (struct gguf_weights *)base;
    struct gguf_name in_file = name_of(name);
    struct arr *a = weights_list_take(&w->list, in_file.text);

    (void)shape;
    if (!a)
        return err_set(ERR_ARG, "%s has no tensor %s, which the metadata asks for", w->file,
                       in_file.text);
    if (dt_is_inexact((enum dtype)a->dtype) && strcmp(name, LM_ROPE_FACTORS_NAME) != 0)
        return ops_astype(out, a, w->dtype, w->s);
    *out = arr_ref(a);
    return ERR_OK;
}

/* Tensors of one file are packed in different ways; their sizes tell how. */
static enum err gguf_quant(struct lm_weights *base, struct lm_quant *out, const char *module)
{
    struct gguf_weights *w = (struct gguf_weights *)base;
    char name[NAME_LENGTH];
    const struct arr *words, *scales;

    snprintf(name, sizeof name, "%s.weight", module);
    words = weights_list_find(&w->list, name_of(name).text);
    snprintf(name, sizeof name, "%s.scales", module);
    scales = weights_list_find(&w->list, name_of(name).text);
    if (!words || !scales || !words->ndim || !scales->ndim || !scales->shape[scales->ndim - 1])
        return err_set(ERR_ARG, "%s has no packed tensor %s", w->file, module);
    *out =
        (struct lm_quant){ .group_size = 32,
                           .bits = words->shape[words->ndim - 1] / scales->shape[scales->ndim - 1],
                           .mode = "affine" };
    return ERR_OK;
}

static enum err gguf_check_read(struct lm_weights *base, const struct lm_config *c)
{
    struct gguf_weights *w = (struct gguf_weights *)base;

    return weights_list_check_read(&w->list, c, w->file);
}

static void gguf_destroy(struct lm_weights *base)
{
    struct gguf_weights *w = (struct gguf_weights *)base;

    weights_list_fini(&w->list);
    mem_free(w->file);
    mem_free(w);
}

/* Of the rows that begin everything. */
static enum err activation_dtype(enum dtype *out, const struct gguf_weights *w)
{
    const struct arr *a = weights_list_find(&w->list, "token_embd.scales");

    if (!a)
        a = weights_list_find(&w->list, "token_embd.weight");
    if (!a || !dt_is_inexact((enum dtype)a->dtype))
        return err_set(ERR_ARG, "%s has no embedding of a floating point type", w->file);
    *out = (enum dtype)a->dtype;
    return ERR_OK;
}

enum err weights_from_gguf(struct lm_weights **out, struct gguf *g, const char *file,
                           struct strm *s)
{
    struct gguf_weights *w = mem_alloc(sizeof *w);
    enum err err = ERR_NO_MEMORY;

    if (!w)
        return ERR_NO_MEMORY;
    *w = (struct gguf_weights){
        .base = { gguf_has, gguf_get, gguf_quant, gguf_check_read, gguf_destroy }, .s = s
    };
    if (!(w->file = mem_strdup(file)))
        goto out;
    TRY(weights_list_init(&w->list, &g->arrays, file));
    TRY(activation_dtype(&w->dtype, w));
    *out = &w->base;
    w = NULL;
out:
    if (w)
        gguf_destroy(&w->base);
    return err;
}
