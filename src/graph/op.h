/* The op table: one row of ops.def per op. */
#pragma once

#include "base/common.h"
#include "graph/dtype.h"
#include "graph/op_params.h"

struct arr;
struct node;

enum op_id {
    OP_NONE, /* leaf or detached */
#define OP(id, ...) OP_##id,
#include "ops/ops.def"
    OP_COUNT
};

/* What runs the op. */
enum op_family {
    OP_FAMILY_NONE,
#define FUSED(id) OP_FAMILY_##id,
#define COMMON(id, ...) OP_FAMILY_##id,
#define OWN(id, ...) OP_FAMILY_##id,
#define CPU_ONLY(id, ...) OP_FAMILY_##id,
#define GPU_ONLY(id, ...) OP_FAMILY_##id,
#include "ops/families.def"
    OP_FAMILY_COUNT
};

enum op_flags {
    OPF_FUSE = 1,     /* may be part of an elementwise program */
    OPF_BOOL_OUT = 2, /* binary: the result is bool */
    OPF_VIEW = 4,     /* shares its input's bytes */
    OPF_HOST = 8,     /* the host fills the result when the op is encoded */
    OPF_ORDERED = 16, /* done once for each node, in the order of the tape: others wait for it */
};

/* Rules: op_call.h. */
struct infer_call;
struct vjp_call;
struct jvp_call;
struct vmap_call;
typedef enum err (*op_infer_fn)(struct infer_call *);
typedef enum err (*op_vjp_fn)(struct vjp_call *);
typedef enum err (*op_jvp_fn)(struct jvp_call *);
typedef enum err (*op_vmap_fn)(struct vmap_call *);

struct op_info {
    const char *name;
    uint8_t family; /* enum op_family */
    uint8_t flags;  /* enum op_flags */
    uint8_t params; /* enum op_params_id */
    uint16_t least_in, most_in;
    op_infer_fn infer;
    op_vjp_fn vjp;
    op_jvp_fn jvp;
    op_vmap_fn vmap;
};

extern const struct op_info op_table[OP_COUNT];

/* The binary op by which an update combines old and new elements; OP_NONE: the new one replaces. */
static inline enum op_id op_of_update(enum update_kind kind)
{
    static const uint16_t ops[] = { [UPDATE_MAX] = OP_MAXIMUM,
                                    [UPDATE_MIN] = OP_MINIMUM,
                                    [UPDATE_SUM] = OP_ADD,
                                    [UPDATE_PROD] = OP_MULTIPLY,
                                    [UPDATE_NONE] = OP_NONE };

    return (enum op_id)ops[kind];
}

/* What a reduction of elements of type t gives. */
enum dtype op_reduce_dtype(enum reduce_kind kind, enum dtype t);

static inline const char *op_name(enum op_id id)
{
    return op_table[id].name;
}
