#include "graph/codec.h"

#include <string.h>

#include "graph/codec_gguf.h"

static void decode_bool(void *dst, const void *src, size_t n)
{
    const unsigned char *in = src;
    unsigned char *out = dst;

    for (size_t i = 0; i < n; i++)
        out[i] = in[i] != 0;
}

#define SWAP(bits, bytes)                                                                          \
    static void decode_swap##bytes(void *dst, const void *src, size_t n)                           \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
                                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            memcpy(&v, (const char *)src + i * sizeof v, sizeof v);                                \
            v = __builtin_bswap##bits(v);                                                          \
            memcpy((char *)dst + i * sizeof v, &v, sizeof v);                                      \
        }                                                                                          \
    }
SWAP(16, 2)
SWAP(32, 4)
SWAP(64, 8)

static void decode_f64_f32(void *dst, const void *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double wide;
        float narrow;
        memcpy(&wide, (const char *)src + i * sizeof wide, sizeof wide);
        narrow = (float)wide;
        memcpy((char *)dst + i * sizeof narrow, &narrow, sizeof narrow);
    }
}

const struct codec_info codec_table[CODEC_COUNT] = {
#define CODEC(id, in_, out_, fn) [CODEC_##id] = { .in = in_, .out = out_, .decode = fn },
#include "graph/codec.def"
#undef CODEC
};
