/* Rules of ops for transforms, called as transforms call them: vjp and jvp against finite
 * differences and against each other, vmap against a loop over the batch. */
#pragma once

#include "graph/op_call.h"
#include "ops/build.h"

#define RULE_IN 6

/* One application of an op, made by its constructor. */
struct rule_subject {
    const char *name;
    enum op_id op;
    /* Nodes of the op are what it makes, or the first inputs of that. */
    enum err (*make)(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                     struct strm *s);
    struct shp shape[RULE_IN];
    enum dtype dtype[RULE_IN]; /* float32 also stands for float64; int32 are indices below 3 */
    int n_in;
    unsigned grads; /* inputs that have gradients, as bits */
    bool is_curved; /* not linear in each input: differences take small steps */
    bool is_single; /* float32 only */
    bool no_vjp, no_jvp, no_vmap;
    double low, high; /* of float inputs; both 0: -1 to 1 */
};

/* In float64 and float32. */
void rules_check_cpu(const struct rule_subject *subjects, size_t n);
/* In float32, where a GPU is tested. */
void rules_check_gpu(const struct rule_subject *subjects, size_t n);
