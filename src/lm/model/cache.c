#include "lm/model/cache.h"

enum err cache_init(struct lm_cache *c, int n_layers)
{
    *c = (struct lm_cache){ .n_layers = n_layers };
    c->layer = mem_alloc_array((size_t)n_layers, sizeof *c->layer);
    return c->layer ? ERR_OK : ERR_NO_MEMORY;
}

void cache_reset(struct lm_cache *c)
{
    for (int i = 0; i < c->n_layers && c->layer; i++) {
        arr_unref(&c->layer[i].keys);
        arr_unref(&c->layer[i].values);
    }
    c->used = 0;
}

void cache_fini(struct lm_cache *c)
{
    cache_reset(c);
    mem_free(c->layer);
    *c = (struct lm_cache){ 0 };
}

void cache_trim(struct lm_cache *c, int32_t used)
{
    c->used = MIN(c->used, used);
}

/* Room for n more positions behind the used ones, in whole steps. */
static struct arr *with_room(struct lm_graph *g, struct arr *old, const struct lm_cache *c,
                             const struct arr *like)
{
    int32_t n = like->shape[LM_CACHE_AXIS];

    if (old && c->used + n <= old->shape[LM_CACHE_AXIS])
        return old;
    int32_t more = (n + LM_CACHE_STEP - 1) / LM_CACHE_STEP * LM_CACHE_STEP;
    struct arr *fresh = g_zeros(g, SHAPE(like->shape[0], like->shape[1], more, like->shape[3]),
                                (enum dtype)like->dtype);
    if (!old)
        return fresh;
    return g_concatenate(g, g_slice(g, old, LM_CACHE_AXIS, 0, c->used), fresh, LM_CACHE_AXIS);
}

static struct arr *append(struct lm_graph *g, struct arr **kept, const struct lm_cache *c,
                          struct arr *update)
{
    if (g->err)
        return NULL;
    struct arr *all =
        g_slice_update(g, with_room(g, *kept, c, update), update, LM_CACHE_AXIS, c->used);
    struct arr *used = g_slice(g, all, LM_CACHE_AXIS, 0, c->used + update->shape[LM_CACHE_AXIS]);
    graph_keep(g, kept, graph_moves(g, all, LM_CACHE_AXIS));
    return graph_moves(g, used, LM_CACHE_AXIS);
}

struct lm_cache_view cache_append(struct lm_graph *g, struct lm_cache *c, int layer,
                                  struct arr *keys, struct arr *values)
{
    struct lm_cache_layer *l = &c->layer[layer];

    return (struct lm_cache_view){ .keys = append(g, &l->keys, c, keys),
                                   .values = append(g, &l->values, c, values) };
}

void cache_advance(struct lm_cache *c, int32_t n)
{
    c->used += n;
}

size_t cache_arrays(const struct lm_cache *c, struct arr **out)
{
    size_t n = 0;

    for (int i = 0; i < c->n_layers; i++) {
        if (!c->layer[i].keys)
            continue;
        out[n++] = c->layer[i].keys;
        out[n++] = c->layer[i].values;
    }
    return n;
}
