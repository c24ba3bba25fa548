/* Shapes and strides as values. Dimensions are int32 as in MLX, strides int64 in elements. */
#pragma once

#include "base/common.h"
#include "base/err.h"

/* More dimensions than this are refused with an error when an array is made. */
#define SHP_MAX 32

struct shp {
    int ndim;
    int32_t d[SHP_MAX];
};

/* What a layout says about itself; meaningful once the array is evaluated (docs/runtime.md). */
enum layout_flags {
    LAYOUT_CONTIGUOUS = 1, /* no holes: every element of the span is reached */
    LAYOUT_ROW = 2,
    LAYOUT_COL = 4,
    LAYOUT_ALL = 7,
};

/* Makes a shape from a caller's list; refuses a null list with n > 0, n > SHP_MAX, negatives. */
MUST_CHECK enum err shp_make(struct shp *out, const int32_t *dims, size_t n, const char *op);

/* Product of the dimensions; 1 for ndim 0. Sizes are checked when an array is made. */
size_t shp_size(const struct shp *s);
/* The product of the dimensions that are not 0, which no stride of an empty array exceeds either.
 * False when it does not fit int64. */
static inline bool shp_volume_checked(const struct shp *s, int64_t *volume)
{
    bool fits = true;

    *volume = 1;
    for (int i = 0; i < s->ndim; i++)
        fits &= !MUL_OVERFLOWS(*volume, (int64_t)(s->d[i] ? s->d[i] : 1), volume);
    return fits;
}

/* False when the volume does not fit int64. */
static inline bool shp_size_checked(const struct shp *s, int64_t *size)
{
    bool fits = shp_volume_checked(s, size);

    for (int i = 0; i < s->ndim; i++)
        if (s->d[i] == 0)
            *size = 0;
    return fits;
}

/* A call of memcmp or memcpy takes longer than a few dimensions. */
static inline bool shp_same_dims(const int32_t *a, const int32_t *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static inline bool shp_equal(const struct shp *a, const struct shp *b)
{
    return a->ndim == b->ndim && shp_same_dims(a->d, b->d, a->ndim);
}

/* NumPy broadcasting of two shapes. ERR_ARG names both shapes. */
MUST_CHECK enum err shp_broadcast(struct shp *out, const struct shp *a, const struct shp *b,
                                  const char *op);

/* Negative axes count from the end. ERR_ARG when out of range. */
MUST_CHECK enum err shp_axis(int *out, int axis, int ndim, const char *op);

/* "(2,3)" as MLX prints it. Writes at most n bytes, returns buf. */
const char *shp_print(const struct shp *s, char *buf, size_t n);
#define SHP_TEXT_MAX (SHP_MAX * 12 + 4)
/* For error texts: shp_text(s) is valid until the end of the enclosing block. */
#define shp_text(s) shp_print(s, (char[SHP_TEXT_MAX]){ 0 }, SHP_TEXT_MAX)

/* Row-major strides. */
void shp_row_strides(int64_t *strides, const struct shp *s);

/* Flags of (shape, strides) for a buffer that spans data_size elements. */
unsigned shp_layout_flags(const struct shp *s, const int64_t *strides, size_t data_size);

/* Elements between the lowest and the highest reachable one, inclusive; 0 for empty shapes. */
size_t shp_span(const struct shp *s, const int64_t *strides);

/* A loop nest over one shape with several operands, after merging adjacent dimensions that are
 * contiguous for every operand and dropping those of size 1. At least one dimension remains unless
 * the shape is empty or a scalar. */
#define NEST_OPERANDS 16
struct nest {
    int ndim, n_operands;
    int64_t dim[SHP_MAX];
    int64_t stride[NEST_OPERANDS][SHP_MAX];
};
void shp_collapse(struct nest *out, const struct shp *s, const int64_t *const *strides,
                  int n_operands);
