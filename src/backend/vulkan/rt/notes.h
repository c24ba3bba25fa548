/* Dispatches that are written down while they are encoded, and encoded again as they were.
 *
 * A note has everything but the choice that led to it: pipeline, push constants, grid, and the
 * bytes that are read and written, so that barriers are decided anew each time; reading constants
 * needs none. Argument blocks and scratch memory of noted steps belong to the book. */
#pragma once

#include "backend/vulkan/rt/encoder.h"
#include "backend/vulkan/rt/hazard.h"

struct vk_note {
    const struct vk_pipe *pipe;
    struct vk_grid grid;
    enum variant_id variant;
    uint32_t push_size;
    uint32_t first_range, n_read, n_write;
    unsigned char push[VK_PUSH_MAX];
};

/* For be_vulkan; see backend.h. */
enum err vk_notes_new(struct be_notes **out);
void vk_notes_free(struct be_notes **b, struct strm *s);
enum err vk_notes_begin(struct be_notes *b, struct strm *s);
int32_t vk_notes_end(struct be_notes *b, struct strm *s, const struct buf *const *constants,
                     size_t n);
enum err vk_notes_repeat(const struct be_notes *b, struct strm *s, int32_t number);

/* ---- for the encoder, of the book that is open ---- */

/* A dispatch with the accesses that are declared. */
void vk_notes_add(struct be_notes *b, const struct vk_note *n, const struct hazard *h);
/* The step does something that cannot be repeated. */
void vk_notes_refuse(struct be_notes *b);
/* Temporaries of the step, which are kept for its repetitions. */
void vk_notes_keep(struct be_notes *b, struct buf *const *bufs, size_t n);
/* As vk_enc_args and vk_enc_scratch, for as long as the book lives. */
MUST_CHECK enum err vk_notes_args(struct be_notes *b, uint64_t *addr, const void *args,
                                  size_t size);
MUST_CHECK enum err vk_notes_scratch(struct be_notes *b, uint64_t *addr, size_t size);
