/* What the backends share of attention. */
#pragma once

#include "backend/backend.h"

/* The operands of one op: q [batch, heads, n_q, dim], k and v [batch, kv heads, n_k, dim]. Query
 * head h reads kv head h / group. */
struct attn {
    const struct sdpa_params *p;
    const struct arr *q, *k, *v, *mask, *sinks; /* the last two may be NULL */
    int32_t batch, heads, n_kv, group, n_q, n_k, dim, v_dim;
};
void attn_of(struct attn *a, const struct exec *x);

/* Gives the output storage in the order [batch, n_q, heads, dim], which the projection after it
 * reads without a copy. */
MUST_CHECK enum err attn_alloc(struct arr *out, const struct be *be);
