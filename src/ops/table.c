#include "ops/rules.h"

/* The words of the rows in ops.def. */
#define FUSE OPF_FUSE
#define BOOL_OUT OPF_BOOL_OUT
#define VIEW OPF_VIEW
#define HOST OPF_HOST
#define ORDERED OPF_ORDERED

/* A rule that is none is absent. */
#define op_vjp_none NULL
#define op_jvp_none NULL
#define op_vmap_none NULL

const struct op_info op_table[OP_COUNT] = {
    [OP_NONE] = { .name = "Leaf", .family = OP_FAMILY_NONE },
#define OP(id, name_, family_, params_, least, most, flags_, infer_, vjp_, jvp_, vmap_)            \
    [OP_##id] = { .name = name_,                                                                   \
                  .family = OP_FAMILY_##family_,                                                   \
                  .flags = flags_,                                                                 \
                  .params = PARAMS_##params_,                                                      \
                  .least_in = least,                                                               \
                  .most_in = most,                                                                 \
                  .infer = op_infer_##infer_,                                                      \
                  .vjp = op_vjp_##vjp_,                                                            \
                  .jvp = op_jvp_##jvp_,                                                            \
                  .vmap = op_vmap_##vmap_ },
#include "ops/ops.def"
};
