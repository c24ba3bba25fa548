#include "backend/common/conv_plan.h"

#include "backend/common/families.h"

enum { INPUT, WEIGHTS };

/* ---- inputs ---- */

static bool is_readable(const struct arr *a, int i)
{
    int last = a->ndim - 1;

    if (!a->size)
        return true;
    if (i == WEIGHTS)
        return a->flags & LAYOUT_ROW;
    return a->shape[last] == 1 || a->strides[last] == 1;
}

enum err conv_inputs_init(struct conv_inputs *c, const struct exec *x, enum dtype t)
{
    enum err err = ERR_OK;

    for (int i = 0; i < 2; i++) {
        struct shp shape;
        c->in[i] = x->in[i];
        if (is_readable(x->in[i], i) && (enum dtype)x->in[i]->dtype == t)
            continue;
        arr_shape(&shape, x->in[i]);
        TRY(arr_new_empty(&c->copies[i], &shape, t));
        TRY(be_copy_dense(x->strm, c->copies[i], x->in[i]));
        c->in[i] = c->copies[i];
    }
out:
    return err;
}

enum err conv_inputs_end(struct conv_inputs *c, struct strm *s, enum err err)
{
    for (int i = 0; i < 2; i++) {
        enum err held =
            c->copies[i] && c->copies[i]->buf ? s->be->hold(s, &c->copies[i]->buf, 1) : ERR_OK;
        err = err ? err : held;
        arr_unref(&c->copies[i]);
    }
    return err;
}

/* ---- the plan ---- */

void conv_plan_init(struct conv_plan *p, const struct exec *x, const struct conv_inputs *in)
{
    const struct conv_params *params = x->node->params;
    const struct arr *a = in->in[INPUT], *w = in->in[WEIGHTS], *y = x->out[0];
    int last = a->ndim - 1, missing = CONV_PLAN_AXES - params->n;

    *p = (struct conv_plan){ .n = a->shape[0],
                             .x_stride = a->shape[0] == 1 ? 0 : a->strides[0],
                             .groups = params->groups,
                             .c = w->shape[last],
                             .o = w->shape[0] / params->groups,
                             .taps = 1,
                             .m = a->shape[0] };
    for (int i = 0; i < CONV_PLAN_AXES; i++) {
        int from = i - missing;
        struct conv_axis *ax = &p->axis[i];
        *ax = (struct conv_axis){ 1, 1, 1, 1, 0, 1, 1, 0 };
        if (from < 0)
            continue;
        int64_t step = params->d[from].kernel_dilation;
        *ax = (struct conv_axis){ .in = a->shape[from + 1],
                                  .out = y->shape[from + 1],
                                  .kernel = w->shape[from + 1],
                                  .stride = params->d[from].stride,
                                  .start = -(int64_t)params->d[from].pad_lo,
                                  .step = step,
                                  .dilation = params->d[from].input_dilation,
                                  .x_stride = a->shape[from + 1] == 1 ? 0 : a->strides[from + 1] };
        if (params->flip) {
            ax->start += (ax->kernel - 1) * step;
            ax->step = -step;
        }
        p->taps *= ax->kernel;
        p->m *= ax->out;
    }
    if (!a->size)
        p->taps = 0;
    p->k = p->taps * p->c;
}
