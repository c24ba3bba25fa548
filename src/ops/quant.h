/* Checks of packed matrices, in MLX's words. Private to ops. */
#pragma once

#include "ops/build.h"

MUST_CHECK enum err quant_parse_mode(struct quant_params *p, const struct ops_quant *q,
                                     const char *op);
MUST_CHECK enum err quant_check_sizes(const struct quant_params *p, const char *op);
/* g may be NULL. */
MUST_CHECK enum err quant_check_global_scale(const struct arr *g, const struct quant_params *p,
                                             const char *op);
/* Words, scales and biases belong together. */
MUST_CHECK enum err quant_check_packed(const struct ops_packed *w, const struct quant_params *p,
                                       const char *op);
/* x fits the packed matrix w; *outer is the last dimension of their product. */
MUST_CHECK enum err quant_check_inner(int32_t *outer, const struct arr *x, const struct arr *w,
                                      const struct quantized_matmul_params *p, const char *op);
