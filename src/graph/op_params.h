/* Parameters of ops: the structs of op_params.def, and what their field lists are good for.
 *
 * The structs have no padding (numbers of 8 bytes need an alignment of 4 only) and are
 * zero-initialised, so that equality is memcmp and a hash runs over the bytes. */
#pragma once

#include "base/common.h"
#include "base/err.h"
#include "graph/shape.h"

typedef int64_t op_i64 __attribute__((aligned(4)));
typedef double op_f64 __attribute__((aligned(4)));

/* How the values of an enum are written. */
struct op_words {
    const char *const *word;
    int n;
};

enum reduce_kind {
#define REDUCTION(id, ...) REDUCE_##id,
#include "ops/reduce.def"
};
extern const struct op_words reduce_kind_words;

#define WORDS(type, list)                                                                          \
    enum type { list };                                                                            \
    extern const struct op_words type##_words;
#define WORD(id, word) id,
#define PARAMS(name, fields)                                                                       \
    struct name##_params {                                                                         \
        fields                                                                                     \
    };
#define I32(field) int32_t field;
#define POSITION(field) int32_t field;
#define I64(field) op_i64 field;
#define F32(field) float field;
#define F64(field) op_f64 field;
#define BOOL(field) int32_t field;
#define DTYPE(field) int32_t field;
#define ENUM(field, type) int32_t field;
#define STRUCT(name, field, fields) struct name##_params field;
#define LIST(fields)                                                                               \
    int32_t n;                                                                                     \
    struct {                                                                                       \
        fields                                                                                     \
    } d[SHP_MAX];
#define INTS(field)                                                                                \
    int32_t n;                                                                                     \
    int32_t field[SHP_MAX];
#include "graph/op_params.def"

/* The structs by number, `none` first. */
enum op_params_id {
    PARAMS_none,
#define WORDS(...)
#define PARAMS(name, ...) PARAMS_##name,
#include "graph/op_params.def"
    PARAMS_COUNT
};

/* What lies behind a params pointer: `fixed` bytes, of which the last four are the length of the
 * list, if there is one, then as many items. */
struct op_params_layout {
    uint16_t fixed, item;
};
extern const struct op_params_layout op_params_layouts[PARAMS_COUNT];

/* Bytes of a params struct without what its list does not use. */
static inline size_t op_params_size(enum op_params_id id, const void *params)
{
    const struct op_params_layout *l = &op_params_layouts[id];

    if (!l->item)
        return l->fixed;
    return l->fixed + (size_t)((const int32_t *)params)[l->fixed / sizeof(int32_t) - 1] * l->item;
}

/* ERR_ARG unless every bool, enum, dtype and length is one that the field can have: what a file
 * says must be asked, what a constructor makes need not. */
MUST_CHECK enum err op_params_check(enum op_params_id id, const void *params);

/* True if nothing but positions differs. Both have as many bytes. */
bool op_params_differ_in_positions(enum op_params_id id, const void *a, const void *b);

/* "axis=1, kind=sum, axis=(0,2)"; what finds no room is left out. Returns buf. */
const char *op_params_print(enum op_params_id id, const void *params, char *buf, size_t size);
