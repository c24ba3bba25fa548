/* Copies between host and GPU memory, made on demand and complete when the call returns. They run
 * on the transfer queue, beside the streams. Thread-safety: safe. */
#pragma once

#include "backend/backend.h"

/* be->buf_mirror: a host-readable copy of a GPU buffer, or memory for a GPU copy of a host buffer,
 * which is filled before the first command that reads it is handed over. */
enum err vk_buf_mirror(struct buf **out, struct buf *src, struct span want);

/* Fills a GPU copy with the bytes of its source, which are complete; the first caller does it. */
MUST_CHECK enum err vk_upload_fill(struct buf *copy, const struct buf *src);
bool vk_upload_is_filled(const struct buf *copy);

/* be->buf_takes_host_writes, be->buf_write: straight into mapped GPU memory. */
bool vk_buf_takes_host_writes(void);
enum err vk_buf_write(struct buf *b, const void *data, size_t size);

/* be->buf_fill: straight into mapped GPU memory, or through a staging buffer. */
enum err vk_buf_fill(struct buf *b, size_t size, be_fill_fn fn, void *arg);
