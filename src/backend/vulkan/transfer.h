/* Copies between host and GPU memory, made on demand and complete when the call returns. They run
 * on the transfer queue, beside the streams. Thread-safety: safe. */
#pragma once

#include "backend/backend.h"

/* be->buf_mirror: a host-readable copy of a GPU buffer, or a GPU copy of a host buffer. */
enum err vk_buf_mirror(struct buf **out, struct buf *src);
