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

struct elem_program;
struct node;

enum group_kind {
    GROUP_NONE,
    GROUP_PRODUCT,  /* products of one input, and what follows element by element */
    GROUP_ATTN,     /* the heads of an attention, and it; found before GROUP_HEADS */
    GROUP_HEADS,    /* norm, rope, cache update of the heads of queries, keys and values */
    GROUP_ADD_NORM, /* a sum and its norm */
    GROUP_EMBED,    /* rows of a packed table, unpacked */
    GROUP_KIND_COUNT
};

#define GROUP_MAX_PRODUCTS 4
/* Elementwise nodes behind a product, and what they read besides. */
#define GROUP_MAX_TAIL 16
#define GROUP_MAX_SIDES 8

/* GROUP_PRODUCT: a product (Matmul, AddMM, GatherMM, QuantizedMatmul, GatherQMM) or several of one
 * op with equal params and the same x and, of gathers, the same indices. Either
 *   one or two of the same shape, then elementwise nodes of that shape, of which only the last is
 *   read by others and has the products' dtype. They are a program: its first inputs are the
 *   products, the others (at most GROUP_MAX_SIDES) are the first that the group reads; or
 *   up to four QuantizedMatmul, and nothing behind them.
 * In front of QuantizedMatmul there may be an RMSNorm or a LayerNorm. */
enum {
    PRODUCT_NORM,
    PRODUCT_FIRST,
    PRODUCT_TAIL = PRODUCT_FIRST + GROUP_MAX_PRODUCTS,
    PRODUCT_END = PRODUCT_TAIL + GROUP_MAX_TAIL
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

#define GROUP_SLOTS ((int)PRODUCT_END)
static_assert(GROUP_SLOTS > (int)ATTN_SDPA, "every kind finds room");
static_assert(GROUP_SLOTS <= 32, "struct group has a bit for each");

/* Arrays that enter a group: side inputs, x, norm weight, indices, three per product. Heads need
 * fewer. */
#define GROUP_MAX_IN (GROUP_MAX_SIDES + 4 + 3 * GROUP_MAX_PRODUCTS)

struct group {
    enum group_kind kind;
    struct node *node[GROUP_SLOTS]; /* by slot, NULL where absent */
    uint32_t wanted;                /* bit of a slot: its result is needed outside of the group */
    const struct elem_program *program; /* program of the elementwise nodes, or NULL */
    /* Rows of rewrite.def that the backend carried out node by node while it took the others; it
     * counts why. */
    uint32_t *apart;
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
