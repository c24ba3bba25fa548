/* Function transformations (docs/runtime.md, Transformations). Out-parameters hold nothing before,
 * and nothing after a failure; what they hold then is a lazy graph like every other. */
#pragma once

#include "transforms/fun.h"

struct vjp_params {
    struct fun *fun;
    struct arrs primals;
    struct arrs cotans;  /* of the outputs, but for those that stop_gradient made */
    struct ints argnums; /* of the primals with gradients: ascending, without duplicates */
    bool is_of_first;    /* the first output is differentiated, the others are only handed over */
};
MUST_CHECK enum err transform_vjp(const struct vjp_params *p, struct outs *outs,
                                  struct outs *grads);
/* Of all primals. */
MUST_CHECK enum err transform_vjp_all(struct fun *fun, struct arrs primals, struct arrs cotans,
                                      struct outs *outs, struct outs *grads);
MUST_CHECK enum err transform_jvp(struct fun *fun, struct arrs primals, struct arrs tangents,
                                  struct outs *outs, struct outs *tangents_out);

/* A function that gives what fun gives, and the gradients of its first result, a scalar, with
 * respect to the arguments that argnums names (negative: counted from the end). */
MUST_CHECK enum err transform_value_and_grad(struct fun_grad **out, struct fun *fun,
                                             struct ints argnums);

/* The two halves of vmap. An axis of -1: no batch. trace calls fun on placeholders (`in`: those, or
 * the inputs that have no batch); replace makes of what it gave the same over the batch. */
MUST_CHECK enum err transform_vmap_trace(struct fun *fun, struct arrs inputs, struct ints axes,
                                         struct outs *in, struct outs *out);
struct vmap_params {
    struct arrs inputs;
    struct ints in_axes;
    struct arrs traced_in, traced_out;
    struct ints out_axes;
};
MUST_CHECK enum err transform_vmap_replace(const struct vmap_params *p, struct outs *out);

/* A function with rules of its own; what is NULL follows from fun. Without any of them, fun. */
struct custom_rules {
    struct fun_vjp *vjp;
    struct fun_jvp *jvp;
    struct fun_vmap *vmap;
};
MUST_CHECK enum err transform_custom(struct fun **out, struct fun *fun,
                                     const struct custom_rules *rules);
/* fun, of whose graph gradients keep nothing but the inputs: it is built again for them. */
MUST_CHECK enum err transform_checkpoint(struct fun **out, struct fun *fun);
