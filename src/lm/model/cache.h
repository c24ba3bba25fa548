/* Keys and values of the tokens so far, one pair of arrays per layer.
 *
 * The arrays have room for more positions than are used and grow in steps; an update writes into
 * them in place, because the cache holds the only reference. */
#pragma once

#include "graph/array.h"
#include "lm/model/graph.h"

/* Positions by which a cache grows. */
#define LM_CACHE_STEP 256
/* The axis of positions. */
#define LM_CACHE_AXIS 2

struct lm_cache_layer {
    struct arr *keys, *values; /* [1, heads, room, head_dim] */
};

struct lm_cache {
    struct lm_cache_layer *layer;
    int n_layers;
    int32_t used; /* positions that count, of every layer once a step is complete */
};

MUST_CHECK enum err cache_init(struct lm_cache *c, int n_layers);
void cache_fini(struct lm_cache *c);
/* Forgets all positions and gives the memory back. */
void cache_reset(struct lm_cache *c);
/* Takes back all positions from `used` on. */
void cache_trim(struct lm_cache *c, int32_t used);

/* Appends keys and values [1, heads, T, head_dim] to a layer, and gives all of that layer's, the
 * new ones included. */
struct lm_cache_view {
    struct arr *keys, *values;
};
struct lm_cache_view cache_append(struct lm_graph *g, struct lm_cache *c, int layer,
                                  struct arr *keys, struct arr *values);
/* After all layers have appended n positions. */
void cache_advance(struct lm_cache *c, int32_t n);

/* The arrays of all layers, borrowed, into out, which has room for 2 * n_layers. Returns how many
 * there are. */
size_t cache_arrays(const struct lm_cache *c, struct arr **out);
