/* What the targets of models share. */
#pragma once

#include "lm/model/config.h"
#include "lm/model/weights.h"

/* Makes the model of a config and these weights, both of which go, and lets it write two tokens,
 * the likeliest and drawn ones. All of it may fail. Models that are right but large are left alone.
 */
void lm_run(struct lm_config *c, struct lm_weights *weights, struct strm *s);
