#include "backend/common/scatter.h"

/* Single elements, of which each has its place on the other axes. */
static void plan_axis(struct be_scatter *p, const struct exec *x)
{
    const struct scatter_axis_params *from = x->node->params;

    p->kind = (enum update_kind)from->kind;
    p->n_index = 1;
    p->axis[0] = from->axis;
    p->last[0] = x->in[0]->shape[from->axis] - 1;
    arr_shape(&p->position, p->updates);
    p->slice.ndim = 0;
    for (int i = 0; i < p->position.ndim; i++) {
        p->update_position[i] = p->updates->strides[i];
        p->along[i] = i == from->axis ? -1 : i;
    }
}

static bool is_indexed(const struct be_scatter *p, int axis)
{
    for (int k = 0; k < p->n_index; k++)
        if (p->axis[k] == axis)
            return true;
    return false;
}

static void add_position(struct be_scatter *p, int dim, int along)
{
    int i = p->position.ndim++;

    p->position.d[i] = p->updates->shape[dim];
    p->update_position[i] = p->updates->strides[dim];
    p->along[i] = along;
}

static void plan_slices(struct be_scatter *p, const struct exec *x)
{
    const struct scatter_params *from = x->node->params;
    int lead = p->updates->ndim - x->in[0]->ndim;

    p->kind = (enum update_kind)from->kind;
    p->n_index = from->n;
    for (int k = 0; k < from->n; k++) {
        p->axis[k] = from->axis[k];
        p->last[k] = x->in[0]->shape[from->axis[k]] - p->updates->shape[lead + from->axis[k]];
    }
    p->position.ndim = p->slice.ndim = 0;
    for (int i = 0; i < lead; i++)
        add_position(p, i, -1);
    for (int axis = 0; axis < x->in[0]->ndim; axis++) {
        int dim = lead + axis;
        if (is_indexed(p, axis)) {
            if (p->updates->shape[dim] != 1)
                add_position(p, dim, axis);
            continue;
        }
        int i = p->slice.ndim++;
        p->slice.d[i] = p->updates->shape[dim];
        p->update_slice[i] = p->updates->strides[dim];
        p->axis_of[i] = axis;
    }
}

void be_scatter_plan(struct be_scatter *p, const struct exec *x)
{
    p->updates = x->in[x->n_in - 1];
    p->index = x->in + 1;
    if (x->node->op == OP_SCATTER_AXIS)
        plan_axis(p, x);
    else
        plan_slices(p, x);
    p->n = shp_size(&p->position);
    p->slice_n = shp_size(&p->slice);
}

void be_scatter_index_strides(int64_t *strides, const struct be_scatter *p, int k)
{
    for (int i = 0; i < p->position.ndim; i++)
        strides[i] = i < p->index[k]->ndim ? p->index[k]->strides[i] : 0;
}
