/* Random weights of a model's shape, for benches and tests. */
#include "base/hash.h"
#include "lm/model/graph.h"
#include "lm/model/weights.h"

/* Spread of a weight: what common initialisations use. */
#define SPREAD 0.02

struct random_weights {
    struct lm_weights base;
    struct lm_config config; /* borrows the caller's */
    uint64_t seed;
    struct strm *s;
};

static bool ends_with(const char *name, const char *part)
{
    size_t n = strlen(name), k = strlen(part);

    return n >= k && strcmp(name + n - k, part) == 0;
}

/* How the module that a tensor belongs to is packed. Norms are not. */
static struct lm_quant quant_of(const struct random_weights *r, const char *name)
{
    struct lm_quant q = { 0 };
    char module[192];
    const char *dot = strrchr(name, '.');
    size_t n = dot ? (size_t)(dot - name) : 0;

    if (n >= sizeof module || strstr(name, "norm"))
        return q;
    memcpy(module, name, n);
    module[n] = 0;
    if (config_quant(&q, NULL, &r->config, module) != ERR_OK)
        q.bits = 0;
    return q;
}

static bool random_has(struct lm_weights *src, const char *name)
{
    struct lm_quant q = quant_of((struct random_weights *)src, name);

    if (ends_with(name, ".scales"))
        return q.bits != 0;
    if (ends_with(name, ".biases"))
        return q.bits != 0 && strcmp(q.mode, "affine") == 0;
    return true;
}

static struct arr *key_for(struct lm_graph *g, uint64_t seed, const char *name)
{
    struct arr *key = NULL;
    enum err err = ops_random_key(&key, hash_bytes(hash_mix(HASH_SEED, seed), name, strlen(name)));

    return graph_own(g, key, err);
}

static struct arr *random_words(struct lm_graph *g, struct ints shape, struct arr *key)
{
    struct arr *a = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_random_bits(&a, shape, 4, key, g->s);
    return graph_own(g, a, err);
}

static struct arr *random_normal(struct lm_graph *g, struct ints shape, struct arr *key)
{
    struct arr *a = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_random_normal(
        &a, &(struct ops_random){ .shape = shape, .dtype = DT_FLOAT32, .key = key }, g->s);
    return g_astype(g, g_scale(g, graph_own(g, a, err), SPREAD), DT_BFLOAT16);
}

static struct arr *constant(struct lm_graph *g, struct ints shape, double value, enum dtype t)
{
    struct arr *a = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_fill(&a, shape, value, t, g->s);
    return graph_own(g, a, err);
}

/* A tensor of a packed module. Numbers from 0 to 2^bits - 1, shifted to the middle, times a scale
 * that gives them the spread of dense weights. */
static struct arr *packed_part(struct lm_graph *g, const struct lm_quant *q, const char *name,
                               struct ints shape, struct arr *key)
{
    double most = (double)((1 << q->bits) - 1), scale = SPREAD * 3.46 / most;

    if (ends_with(name, ".weight"))
        return random_words(g, shape, key);
    if (strcmp(q->mode, "affine") != 0) /* scales with an exponent alone, or nearly: 1/64 */
        return constant(g, shape, strcmp(q->mode, "nvfp4") == 0 ? 8 : 127 - 6, DT_UINT8);
    return constant(g, shape, ends_with(name, ".scales") ? scale : -scale * most / 2, DT_BFLOAT16);
}

static enum err random_get(struct lm_weights *src, struct arr **out, const char *name,
                           const struct shp *want)
{
    struct random_weights *r = (struct random_weights *)src;
    struct lm_quant q = quant_of(r, name);
    struct ints shape = { want->d, (size_t)want->ndim };
    struct lm_graph g;

    graph_begin(&g, r->s);
    struct arr *key = key_for(&g, r->seed, name), *a;
    if (q.bits && !ends_with(name, ".bias"))
        a = packed_part(&g, &q, name, shape, key);
    else if (strstr(name, "norm"))
        a = constant(&g, shape, 1, DT_BFLOAT16);
    else
        a = random_normal(&g, shape, key);
    graph_keep(&g, out, a);
    return graph_end(&g);
}

static void random_destroy(struct lm_weights *src)
{
    mem_free(src);
}

enum err weights_random(struct lm_weights **out, const struct lm_config *c, uint64_t seed,
                        struct strm *s)
{
    struct random_weights *r = mem_alloc(sizeof *r);

    if (!r)
        return ERR_NO_MEMORY;
    *r = (struct random_weights){ .base = { random_has, random_get, NULL, NULL, random_destroy },
                                  .config = *c,
                                  .seed = seed,
                                  .s = s };
    *out = &r->base;
    return ERR_OK;
}
