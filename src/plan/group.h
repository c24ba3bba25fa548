/* Groups: nodes of different ops that a backend can run as one step.
 *
 * A kind of group has slots, one node each. Core finds the nodes (rewrite*.c) once for all runs of
 * the same structure; the backend looks at shapes, dtypes, layouts and params of this run and takes
 * the group or leaves it, and then its nodes run one by one. Rounding is that of the single ops:
 * every node's result has the node's dtype before the next one reads it, so that a group gives the
 * same bits where it keeps the order of summation. */
#pragma once

#include <assert.h>

#include "base/common.h"

struct node;

enum group_kind {
    GROUP_NONE,
    GROUP_QMM,      /* quantized products of one input */
    GROUP_ATTN,     /* the heads of an attention, and it; found before GROUP_HEADS */
    GROUP_HEADS,    /* norm, rope, cache update of the heads of queries, keys and values */
    GROUP_ADD_NORM, /* a sum and its norm */
    GROUP_EMBED,    /* rows of a packed table, unpacked */
    GROUP_KIND_COUNT
};

#define GROUP_MAX_PRODUCTS 4

/* GROUP_QMM: x -> [RMSNorm] -> 1 to 4 QuantizedMatmul with equal params, then at most one of
 *   LAST = Add(product, residual) or Add(residual, product), for one product
 *   SIGMOID = Sigmoid(first), GATED = first * SIGMOID, LAST = GATED * second, for two products;
 *   factors in any order. */
enum {
    QMM_NORM,
    QMM_PRODUCT,
    QMM_SIGMOID = QMM_PRODUCT + GROUP_MAX_PRODUCTS,
    QMM_GATED,
    QMM_LAST,
};

/* GROUP_HEADS: one to GROUP_MAX_HEADS parts that do not depend on each other, each
 *   x -> [RMSNorm] -> [up to two views] -> [RoPE] -> [SliceUpdate: source is in[0]].
 * The first has a RoPE; the others have one with the same inputs, or none. Params of RoPEs are no
 * part of the structure (the offset changes with every token): the backend compares them. */
enum { HEADS_NORM, HEADS_VIEW, HEADS_VIEW2, HEADS_ROPE, HEADS_UPDATE, HEADS_SLOTS };
#define GROUP_MAX_HEADS 3

/* GROUP_ATTN: three parts as in GROUP_HEADS, of queries, keys and values, then
 *   [KEYS = Slice(second SliceUpdate)], [VALUES = Slice(third)], SDPA(queries, keys, values, ...).
 * Nobody else reads the queries. Bounds of slices and updates are no part of the structure. A
 * backend that takes the group may need more than one dispatch for it; it counts the row
 * ATTN_HEADS itself. */
enum { ATTN_KEYS = GROUP_MAX_HEADS * HEADS_SLOTS, ATTN_VALUES, ATTN_SDPA };

/* GROUP_ADD_NORM: Add -> RMSNorm. */
enum { ADD_NORM_ADD, ADD_NORM_NORM };

/* GROUP_EMBED: words, scales and sometimes biases, each Gather -> [Squeeze or Reshape] and all with
 * the same indices, -> Quantize, which unpacks them. */
enum { EMBED_GATHER, EMBED_VIEW = EMBED_GATHER + 3, EMBED_UNPACK = EMBED_VIEW + 3 };

#define GROUP_SLOTS (ATTN_SDPA + 1)
static_assert(GROUP_SLOTS > QMM_LAST, "every kind finds room");
static_assert(GROUP_SLOTS <= 32, "struct group has a bit for each");

/* Arrays that enter a group: x, norm weight, three per product, residual. Heads need fewer. */
#define GROUP_MAX_IN (3 + 3 * GROUP_MAX_PRODUCTS)

struct group {
    enum group_kind kind;
    struct node *node[GROUP_SLOTS]; /* by slot, NULL where absent */
    uint32_t wanted;                /* bit of a slot: its result is needed outside of the group */
};

static inline bool group_wants(const struct group *g, int slot)
{
    return g->wanted >> slot & 1;
}

/* Why a group ran node by node. */
enum group_reason {
    GROUP_TAKEN,
    GROUP_DTYPE,
    GROUP_LAYOUT,
    GROUP_SIZE,
    GROUP_PARAMS,
    GROUP_OFF, /* a setting, or the kernel failed before */
    GROUP_REASON_COUNT
};
