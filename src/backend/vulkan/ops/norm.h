/* Norms on Vulkan, for those who merge them with what comes before. */
#pragma once

#include "backend/vulkan/rt/encoder.h"

/* dst = norm(x), or sum = x + addend, rounded to the dtype, and dst = norm(sum). All are of one
 * dtype that the kernel has. dst and sum have row-major storage and may be that of x or addend
 * where these are row-major. */
struct vk_norm {
    bool is_centred;                 /* LayerNorm, else RMSNorm */
    const struct arr *x, *addend;    /* rows of consecutive elements; addend may be NULL */
    const struct arr *weight, *bias; /* may be NULL */
    float eps;
    const struct arr *dst, *sum; /* sum only beside an addend */
};
MUST_CHECK enum err vk_norm_encode(struct vk_enc *e, const struct vk_norm *n);

/* How the lanes of a team share a row. It depends on the length and dtype of the row alone, so that
 * the sum over a row has the same bits wherever it is computed. */
struct norm_team {
    uint32_t blocks;           /* of 16 bytes that a lane holds at a time: 1, 2 or 4 */
    uint32_t lanes, log2_team; /* lanes with a share of the row, in a team of a power of two */
    bool walks;                /* the row does not fit and is read in pieces */
};
/* For a kernel that holds rows: false if they do not fit. */
bool norm_hold_row(struct norm_team *t, uint32_t row_len, enum dtype type);
/* For one that walks over them. */
void norm_walk_row(struct norm_team *t, uint32_t row_len, enum dtype type);
/* For what must have the same sums as a norm: as the norm would do it. */
void norm_team_of(struct norm_team *t, uint32_t row_len, enum dtype type);
