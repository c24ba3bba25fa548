/* What the tests of the Vulkan runtime share: streams, arrays of GPU memory, and the probe kernel.
 */
#pragma once

#include "backend/backend.h"
#include "backend/vulkan/rt/encoder.h"
#include "backend/vulkan/rt/pipeline.h"

/* A GPU stream of the calling thread; fails the test if there is no device. */
struct strm *vkt_stream(void);

/* n uint32 elements of GPU memory. */
struct arr *vkt_array(struct strm *s, int32_t n);

struct vkt_probe {
    struct arr *in; /* NULL: the block, or the element number, is the input */
    const uint32_t *block;
    size_t block_size; /* bytes */
    struct arr *out;
    uint32_t mul, add;
    uint32_t group; /* of the write; 0: none */
};

/* Encodes out[i] = in[i] * mul + add over all elements of out. */
void vkt_encode(struct strm *s, const struct vkt_probe *p);

/* Waits for the stream, fails the test on an error, and gives the elements on the host. */
const uint32_t *vkt_read(struct strm *s, struct arr *a);
