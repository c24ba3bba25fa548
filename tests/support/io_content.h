/* What a file of any format holds. */
#pragma once

#include "eval/stream.h"
#include "io/gguf.h"
#include "io/io.h"

struct io_content {
    struct io_arrays arrays;
    struct io_texts texts;
};
void io_content_fini(struct io_content *c);

/* Loads src as the extension of file says. */
MUST_CHECK enum err io_content_load(struct io_content *out, const char *file, struct source *src,
                                    struct strm *s);
