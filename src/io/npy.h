/* npy inside archives. Private to io. */
#pragma once

#include "base/text.h"
#include "io/io.h"

/* Everything that stands before the data of a, which comes from io_make_dense. */
MUST_CHECK enum err npy_header(struct text *out, const struct arr *a);
