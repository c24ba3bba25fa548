/* Rotary positions beyond the plain ones: linear, llama3, yarn, or with factors from a file. */
#pragma once

#include "lm/model/model.h"

/* Fills rope_freqs, rope_scale and rope_mscale of m from its config, and from src where that has
 * the factors. */
MUST_CHECK enum err rope_prepare(struct lm_model *m, struct lm_weights *src);
