/* Products with quantized matrices on Vulkan. */
#pragma once

#include "backend/vulkan/encoder.h"
#include "backend/vulkan/kern.h"

/* Unpacks a dense matrix into out, whose dtype is that of scales and biases in affine mode. */
struct vk_dequantize {
    struct quant_params q;
    const struct arr *w, *scales;
    const struct arr *biases, *global_scale; /* NULL: none */
    const struct arr *out;
};
MUST_CHECK enum err vk_dequantize_encode(struct vk_enc *e, const struct vk_dequantize *d);
