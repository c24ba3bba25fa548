/* Rotary positions beyond the plain ones: linear, llama3, yarn. */
#pragma once

#include "lm/model.h"

/* Fills rope_freqs, rope_scale and rope_mscale of m from its config. */
MUST_CHECK enum err rope_prepare(struct lm_model *m);
