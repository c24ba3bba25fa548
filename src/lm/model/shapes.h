/* Sizes of well-known models, so that they can be measured without their weights. */
#pragma once

#include "lm/model/config.h"

/* The config of "qwen3-0.6b-4bit-g128": a model's name, then -<bits>bit and -g<group> (4 bits in
 * groups of 64 unless said), or -bf16 for dense weights. ERR_ARG names the known models. */
MUST_CHECK enum err shapes_config(struct lm_config *c, const char *name);
