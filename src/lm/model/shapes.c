#include "lm/model/shapes.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *model_type;
    int32_t hidden, layers, intermediate, heads, kv_heads, head_dim, vocab;
    float rope_base;
    bool tied;
    int32_t experts, experts_per_token, expert_intermediate; /* 0: no mixture */
} shapes[] = {
    { "qwen3-0.6b", "qwen3", 1024, 28, 3072, 16, 8, 128, 151936, 1e6F, true },
    { "qwen3-1.7b", "qwen3", 2048, 28, 6144, 16, 8, 128, 151936, 1e6F, true },
    { "qwen3-4b", "qwen3", 2560, 36, 9728, 32, 8, 128, 151936, 1e6F, true },
    { "qwen3-8b", "qwen3", 4096, 36, 12288, 32, 8, 128, 151936, 1e6F, false },
    { "qwen3-30b-a3b", "qwen3_moe", 2048, 48, 6144, 32, 4, 128, 151936, 1e6F, false, 128, 8, 768 },
    { "llama-3.2-1b", "llama", 2048, 16, 8192, 32, 8, 64, 128256, 5e5F, true },
    { "smollm2-135m", "llama", 576, 30, 1536, 9, 3, 64, 49152, 1e5F, true },
};

static enum err unknown(const char *name)
{
    char known[256] = "";

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", shapes[i].name);
    }
    return err_set(ERR_ARG,
                   "no model shape is called '%s'; known are %s, each with -bf16 or -<bits>bit and "
                   "-g<group> behind it",
                   name, known);
}

/* What stands behind the model's name. */
static bool read_packing(struct lm_quant *q, const char *text)
{
    int used = 0;

    *q = (struct lm_quant){ .group_size = 64, .bits = 4, .mode = "affine" };
    if (strcmp(text, "-bf16") == 0) {
        q->bits = 0;
        return true;
    }
    if (sscanf(text, "-%9dbit%n", &q->bits, &used) == 1)
        text += used;
    used = 0;
    if (sscanf(text, "-g%9d%n", &q->group_size, &used) == 1)
        text += used;
    bool has_bits = q->bits >= 2 && q->bits <= 8 && q->bits != 7;
    return !*text && has_bits &&
           (q->group_size == 32 || q->group_size == 64 || q->group_size == 128);
}

enum err shapes_config(struct lm_config *c, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        size_t n = strlen(shapes[i].name);
        struct lm_quant quant;
        if (strncmp(name, shapes[i].name, n) != 0 || !read_packing(&quant, name + n))
            continue;
        *c = (struct lm_config){ .arch = config_arch(shapes[i].model_type),
                                 .hidden = shapes[i].hidden,
                                 .layers = shapes[i].layers,
                                 .intermediate = shapes[i].intermediate,
                                 .heads = shapes[i].heads,
                                 .kv_heads = shapes[i].kv_heads,
                                 .head_dim = shapes[i].head_dim,
                                 .vocab = shapes[i].vocab,
                                 .context = 40960,
                                 .norm_eps = 1e-6F,
                                 .tied = shapes[i].tied,
                                 .rope = { .base = shapes[i].rope_base },
                                 .experts = shapes[i].experts,
                                 .experts_per_token = shapes[i].experts_per_token,
                                 .expert_intermediate = shapes[i].expert_intermediate,
                                 .sparse_step = 1,
                                 .normalise_scores = true,
                                 .quant = quant };
        return ERR_OK;
    }
    return unknown(name);
}
