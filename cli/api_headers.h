/* Coverage of mlx-c by header, generated from the public headers. */
#pragma once

#include <stddef.h>

struct api_header {
    const char *name;
    int declared, total;
};

extern const struct api_header api_headers[];
extern const size_t api_header_count;
