/* From a source of tensors to the weights of a model. */
#pragma once

#include "lm/model/model.h"

/* Fills the weights of m, whose config is set. After a failure model_destroy cleans up. */
MUST_CHECK enum err load_weights(struct lm_model *m, struct lm_weights *src);
