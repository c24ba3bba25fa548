/* Going through the steps of a new plan without encoding them, to learn which pipelines they need;
 * those that are missing are then built in several threads.
 *
 * While a thread rehearses, ops run as always, but buffers have addresses and no memory, the
 * encoder takes part in nothing, and pipelines that are not there are only noted. So whatever an op
 * does to choose its kernels is what it will do again when it is encoded. */
#pragma once

#include "backend/backend.h"
#include "backend/vulkan/rt/pipeline.h"

/* Where the GPU's copies of host memory, argument blocks and scratch pretend to lie. */
#define REHEARSAL_ADDR ((uint64_t)1 << 40)

/* True while the calling thread rehearses. */
bool rehearsal_is_on(void);

/* A buffer without memory, with an address of its own that is aligned as those of others are;
 * released with rehearsal_buf_free. */
MUST_CHECK enum err rehearsal_buf(struct buf **out, size_t size);
bool rehearsal_owns(const struct buf *b);
void rehearsal_buf_free(struct buf *b);

/* Notes a pipeline that is not there; copies everything. */
MUST_CHECK enum err rehearsal_want(const struct vk_pipe_params *p);

/* True the first time that the rehearsal comes to this program, given by a hash: only then its
 * module need be emitted and wanted. */
bool rehearsal_is_new(uint64_t program);

/* ---- entries of the backend table ---- */
bool vk_rehearse_begin(struct strm *s);
void vk_rehearse_end(struct strm *s);
