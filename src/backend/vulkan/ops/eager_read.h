/* Results that are copied to the host along with the work that makes them: where the host cannot
 * read GPU memory fast, that saves reading them a submission of its own and the wait for it. */
#pragma once

#include "backend/backend.h"

/* be->eager_read. */
enum err vk_eager_read(struct buf **out, struct strm *s, struct buf *src, struct span want);
