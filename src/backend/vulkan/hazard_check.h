/* An independent look at what the encoders recorded (record.h): compares every access with every
 * earlier one that no barrier separates from it, byte range by byte range. Slow and simple on
 * purpose; shares no code with the encoder's own tracking. */
#pragma once

#include "backend/vulkan/record.h"
#include "core/err.h"

struct hazard_report {
    size_t dispatches, barriers;
    size_t raw, war, waw; /* pairs of accesses that need a barrier and have none */
    size_t needless;      /* barriers without which nothing would have gone wrong */
    char text[160];       /* the first finding */
};

MUST_CHECK enum err hazard_check(struct hazard_report *out, const struct vk_rec *rec, size_t n);
