/* Codecs: how the bytes of a file become the bytes of an array (codec.def). */
#pragma once

#include "base/common.h"

enum codec {
#define CODEC(id, ...) CODEC_##id,
#include "graph/codec.def"
#undef CODEC
    CODEC_COUNT
};

/* Decodes n blocks. Writes dst front to back and never reads it, so that it may be memory of a GPU
 * that the host only writes well. Any bytes are valid input. */
typedef void (*codec_fn)(void *dst, const void *src, size_t n);

struct codec_info {
    uint16_t in, out; /* bytes of a block in the file and in the array */
    codec_fn decode;  /* NULL for RAW */
};

extern const struct codec_info codec_table[CODEC_COUNT];
