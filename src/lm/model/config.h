/* config.json of a model folder: what a model is made of. */
#pragma once

#include "base/common.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"

/* How weights are packed; bits 0 = they are not. */
struct lm_quant {
    int32_t group_size, bits;
    char mode[8]; /* affine, mxfp4, mxfp8, nvfp4 */
};

enum lm_rope_kind {
    LM_ROPE_PLAIN,
    LM_ROPE_LINEAR,
    LM_ROPE_LLAMA3,
    LM_ROPE_YARN,
    LM_ROPE_FACTORS, /* the weights have a tensor of factors, one for each frequency */
};

/* That tensor. */
#define LM_ROPE_FACTORS_NAME "rope_freqs.weight"

struct lm_rope {
    enum lm_rope_kind kind;
    bool traditional;
    float base, factor;
    float low_freq_factor, high_freq_factor; /* llama3 */
    float beta_fast, beta_slow;              /* yarn */
    float mscale, mscale_all_dim;            /* yarn */
    int32_t original_context;
};

/* What tells architectures apart; a row of a table. */
struct lm_arch {
    const char *model_type;
    const char *gguf;      /* general.architecture; NULL: files call it otherwise */
    bool gguf_traditional; /* there the rows of queries and keys are ordered for such a rope */
    bool has_qk_norm;      /* norms over the heads of queries and keys */
    bool has_qkv_bias; /* always, and on these only; others have biases where the config says so */
    bool has_experts;
    /* entries of config.json that count */
    bool reads_mlp_bias, reads_rope_traditional, reads_layer_types;
    bool may_omit_tied;
    double rope_base; /* where none is given; 0: one must be */
};

/* What is special about single layers. */
enum { LM_LAYER_DENSE = 1, LM_LAYER_WINDOW = 2 };

struct lm_config {
    const struct lm_arch *arch;
    int32_t hidden, layers, intermediate, heads, kv_heads, head_dim, vocab, context;
    float norm_eps;
    bool tied; /* the output head is the embedding */
    bool attention_bias, mlp_bias;
    struct lm_rope rope;
    struct lm_quant quant;
    /* mixture of experts */
    int32_t experts, experts_per_token, expert_intermediate, sparse_step;
    bool normalise_scores;
    int32_t window;           /* positions that the layers with one attend to, their own included */
    VEC(uint8_t) layer_flags; /* for each layer, or empty */
    struct json_doc *doc;     /* for the quantization of single layers */
};

/* Reads a parsed config.json, which the config owns from then on, whatever the outcome. ERR_ARG
 * names the file, the key and the value. Entries that would change the result and are not supported
 * are errors, too. */
MUST_CHECK enum err config_read(struct lm_config *c, struct json_doc *doc);
/* folder/config.json. */
MUST_CHECK enum err config_load(struct lm_config *c, const char *folder);
void config_fini(struct lm_config *c);

/* The row of a model_type; NULL with an error that names the known ones. */
const struct lm_arch *config_arch(const char *model_type);
/* The same by what a GGUF file calls it. */
const struct lm_arch *config_arch_gguf(const char *name);

/* How the weight of a module is packed, bits 0 = not at all: the entry of that module in
 * config.json, else the one for all. *is_own (may be NULL): the module has an entry of its own. */
MUST_CHECK enum err config_quant(struct lm_quant *out, bool *is_own, const struct lm_config *c,
                                 const char *module);

/* True if the layer has a mixture of experts. */
bool config_is_sparse(const struct lm_config *c, int layer);
/* True if the layer attends to the last config.window positions only. */
bool config_has_window(const struct lm_config *c, int layer);
