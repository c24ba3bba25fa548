/* Dtypes: the table, MLX's promotion lattice, half-precision conversion. All functions are pure. */
#pragma once

#include <string.h>

#include "base/common.h"

enum dtype {
#define DTYPE(id, ...) DT_##id,
#include "graph/dtype.def"
#undef DTYPE
    DT_COUNT
};

enum dt_kind { DT_KIND_B, DT_KIND_U, DT_KIND_I, DT_KIND_F, DT_KIND_C };

struct dt_info {
    uint8_t size;
    uint8_t kind; /* enum dt_kind */
    const char *name;
};

extern const struct dt_info dt_table[DT_COUNT];

static inline size_t dt_size(enum dtype t)
{
    return dt_table[t].size;
}

static inline const char *dt_name(enum dtype t)
{
    return dt_table[t].name;
}

static inline bool dt_is_float(enum dtype t) /* real floating */
{
    return dt_table[t].kind == DT_KIND_F;
}

static inline bool dt_is_inexact(enum dtype t)
{
    return dt_table[t].kind >= DT_KIND_F;
}

static inline bool dt_is_integer(enum dtype t) /* without bool */
{
    return dt_table[t].kind == DT_KIND_U || dt_table[t].kind == DT_KIND_I;
}

/* The common type of a binary op. Symmetric. */
enum dtype dt_promote(enum dtype a, enum dtype b);

/* Inexact types stay, the rest promotes with float32. */
enum dtype dt_at_least_float(enum dtype t);

/* Round to nearest even, subnormals kept, NaN stays NaN. */
float dt_f16_to_f32(uint16_t h);
uint16_t dt_f32_to_f16(float f);

static inline float dt_bf16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint16_t dt_f32_to_bf16(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u); /* quiet the NaN, keep its sign */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* v as an integer type t has it in its low bits, rounded towards zero. C leaves a conversion out of
 * range open; this gives what MLX's give on x86: the lowest number of the type that is converted
 * through, whatever was too large, too small or no number. */
uint64_t dt_f64_to_int(double v, enum dtype t);
