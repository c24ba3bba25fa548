/* Gradients of sorting, which is a permutation of the elements. */
#include "ops/build.h"
#include "ops/rules.h"

struct permutation {
    struct arr *from; /* which element is in each place */
    int axis;
};

/* The same everywhere near the input: nothing is differentiated through it. */
static enum err permutation_init(struct permutation *m, const struct op_apply *f)
{
    bool is_sort = f->op == OP_SORT;
    enum err err;

    m->axis = is_sort ? ((const struct axis_params *)f->params)->axis
                      : ((const struct partition_params *)f->params)->axis;
    TRY(ops_make_one(&m->from, is_sort ? OP_ARG_SORT : OP_ARG_PARTITION, f->params, f->in[0],
                     f->strm));
    STEP(m->from, ops_stop_gradient(&next, m->from, f->strm));
out:
    if (err)
        arr_unref(&m->from);
    return err;
}

/* Sort and Partition. */
enum err op_jvp_sort(struct jvp_call *c)
{
    struct permutation m = { NULL };
    enum err err;

    TRY(permutation_init(&m, &c->f));
    err = ops_take_along_axis(&c->result[0], c->tan[0], m.from, m.axis, c->f.strm);
out:
    arr_unref(&m.from);
    return err;
}

enum err op_vjp_sort(struct vjp_call *c)
{
    struct permutation m = { NULL };
    struct arr *zeros = NULL;
    enum err err;

    TRY(permutation_init(&m, &c->f));
    TRY(op_or_zeros(&zeros, NULL, c->f.in[0], c->f.strm));
    err = ops_scatter_axis(&c->result[0], zeros,
                           &(struct ops_scatter_axis){ m.from, c->cotan[0], m.axis, UPDATE_NONE },
                           c->f.strm);
out:
    arr_unref(&m.from);
    arr_unref(&zeros);
    return err;
}
