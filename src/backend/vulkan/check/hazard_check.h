/* An independent look at what the encoders recorded (record.h): compares every access with every
 * earlier one that nothing separates from it, byte range by byte range. Slow and simple on purpose;
 * shares no code with the encoder's own tracking. */
#pragma once

#include "backend/vulkan/check/record.h"
#include "base/err.h"

struct hazard_report {
    size_t dispatches, barriers;
    size_t raw, war, waw; /* pairs of accesses of a stream that need a barrier and have none */
    size_t cross;         /* pairs of different streams with no wait between them */
    size_t reused;        /* pairs of different streams: memory given out again while in use */
    size_t needless;      /* barriers without which nothing would have gone wrong */
    char text[192];       /* the first finding */
};

MUST_CHECK enum err hazard_check(struct hazard_report *out, const struct vk_rec *rec, size_t n);

/* All findings but needless barriers. */
static inline size_t hazard_count(const struct hazard_report *r)
{
    return r->raw + r->war + r->waw + r->cross + r->reused;
}
