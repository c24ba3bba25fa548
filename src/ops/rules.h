/* The rules of ops.def, and what they share. Private to ops. */
#pragma once

#include "graph/op_call.h"

#define OP(id, name, family, params, least, most, flags, infer, vjp, jvp, vmap)                    \
    enum err op_infer_##infer(struct infer_call *c);                                               \
    enum err op_vjp_##vjp(struct vjp_call *c);                                                     \
    enum err op_jvp_##jvp(struct jvp_call *c);                                                     \
    enum err op_vmap_##vmap(struct vmap_call *c);
#include "ops/ops.def"

/* ---- infer ---- */

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

/* ---- transforms ---- */

/* ERR_UNSUPPORTED: the op has such a rule, but not for these parameters or inputs. */
enum err op_no_rule(enum op_id op, const char *rule);
/* The sum of what is there of two; NULL if nothing is. */
MUST_CHECK enum err op_sum_of_two(struct arr **out, struct arr *const part[2], struct strm *s);
/* t where a equals y, else 0. */
MUST_CHECK enum err op_where_equal(struct arr **out, struct arr *a, struct arr *y, struct arr *t,
                                   struct strm *s);
/* t, or where it is NULL zeros like the array that it belongs to. */
MUST_CHECK enum err op_or_zeros(struct arr **out, struct arr *t, struct arr *like, struct strm *s);

/* A struct of parameters to change: nodes keep no more of it than they use. */
static inline void op_own_params(void *out, const struct op_apply *f)
{
    memcpy(out, f->params, op_params_size((enum op_params_id)op_table[f->op].params, f->params));
}
