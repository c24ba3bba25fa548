/* Infer rules: what they share. Private to ops. */
#pragma once

#include "core/op_call.h"

#define OP(id, name, family, params, least, most, flags, infer, ...)                               \
    enum err op_infer_##infer(struct infer_call *c);
#include "ops/ops.def"

/* The error for what no constructor makes. */
enum err infer_unfit(const struct infer_call *c);
#define FITS(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return infer_unfit(c);                                                                 \
    } while (0)

/* The first output is as a. */
static inline void infer_like(struct infer_call *c, const struct arr *a)
{
    c->out[0].dtype = (enum dtype)a->dtype;
    arr_shape(&c->out[0].shape, a);
}

static inline bool infer_has_axis(const struct arr *a, int32_t axis)
{
    return axis >= 0 && axis < a->ndim;
}

/* Whether numbers are ascending, without duplicates, and at least 0 but less than end. */
bool infer_is_set(const int32_t *v, int n, int end);
/* Whether numbers can be the dimensions of an array. */
bool infer_is_shape(const int32_t *v, int n);
