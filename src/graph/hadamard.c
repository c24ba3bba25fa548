#include "graph/hadamard.h"

/* Those of Sloane's collection that MLX takes. The first is symmetric. */
static const uint32_t rows_1[] = { 1 };
static const uint32_t rows_12[] = { 0xffd, 0x554, 0xc37, 0x691, 0x0df, 0xa45,
                                    0x373, 0x919, 0xdc3, 0x469, 0x70f, 0x1a5 };
static const uint32_t rows_20[] = { 0x6cc21, 0xd1c42, 0xab884, 0x5f108, 0xb6610, 0x9c83e, 0x3945d,
                                    0x7289b, 0xe5117, 0xca60f, 0xf05ac, 0xe8b58, 0xd92b1, 0xba163,
                                    0x7c2c6, 0x08592, 0x10b05, 0x2122a, 0x42074, 0x840c9 };
static const uint32_t rows_28[] = { 0x3296181, 0x6528382, 0xc854704, 0x92a8e08, 0x2751c10,
                                    0x4ca7820, 0x994b0c0, 0x4b980bc, 0x9534178, 0x2a6c271,
                                    0x54d8463, 0xa9b0847, 0x536500f, 0xa4ce01e, 0x7804cda,
                                    0xf009935, 0xe21326a, 0xc6224d5, 0x8e409ab, 0x1e81356,
                                    0x3d0262d, 0x030ed66, 0x041dacd, 0x083b51b, 0x1072ab6,
                                    0x20e15ec, 0x41c2b59, 0x81856b3 };

static const struct {
    int32_t n;
    const uint32_t *rows;
} bases[] = { { 1, rows_1 }, { 12, rows_12 }, { 20, rows_20 }, { 28, rows_28 } };

bool hadamard_size(struct hadamard_size *out, int32_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(bases); i++)
        for (int k = 0; k <= HADAMARD_LOG2_MAX && (int64_t)bases[i].n << k <= n; k++)
            if ((int64_t)bases[i].n << k == n) {
                *out = (struct hadamard_size){ bases[i].n, k };
                return true;
            }
    return false;
}

const uint32_t *hadamard_rows(int32_t base)
{
    size_t i = 0;

    while (bases[i].n != base)
        i++;
    return bases[i].rows;
}
