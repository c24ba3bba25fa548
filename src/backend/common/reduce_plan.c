#include "backend/common/reduce_plan.h"

#include <stdlib.h>

static void axes_push(struct reduce_axes *a, int64_t dim, int64_t in, int64_t out)
{
    a->dim[a->n] = dim;
    a->in[a->n] = in;
    a->out[a->n] = out;
    a->n++;
}

/* Appends an axis inside the ones that are there, merged with the last where memory allows. */
static void axes_append(struct reduce_axes *a, int64_t dim, int64_t in, int64_t out)
{
    int last = a->n - 1;

    if (last >= 0 && a->in[last] == in * dim && a->dim[last] * dim <= INT32_MAX) {
        a->dim[last] *= dim;
        a->in[last] = in;
        a->out[last] = out;
    } else {
        axes_push(a, dim, in, out);
    }
}

/* Insertion by descending stride; broadcast axes come first, where they disturb no run. */
static void axes_sort(struct reduce_axes *a)
{
    for (int i = 1; i < a->n; i++) {
        int64_t dim = a->dim[i], in = a->in[i];
        int j = i;
        for (; j > 0 && a->in[j - 1] != 0 && (in == 0 || a->in[j - 1] < in); j--) {
            a->dim[j] = a->dim[j - 1];
            a->in[j] = a->in[j - 1];
        }
        a->dim[j] = dim;
        a->in[j] = in;
    }
}

static void axes_merge(struct reduce_axes *a)
{
    struct reduce_axes m;

    m.n = 0;
    for (int i = 0; i < a->n; i++)
        axes_append(&m, a->dim[i], a->in[i], 0);
    *a = m;
}

static void add_reduced(struct reduce_plan *p, int64_t dim, int64_t stride, enum reduce_order order)
{
    if (order == REDUCE_REPEATABLE && stride == 0 && dim > 0)
        return;
    if (order != REDUCE_IN_ORDER && stride < 0) {
        p->offset += stride * (dim - 1);
        stride = -stride;
    }
    axes_push(&p->red, dim, stride, 0);
}

static bool axis_in(const int32_t *axes, int n, int axis)
{
    for (int i = 0; i < n; i++)
        if (axes[i] == axis)
            return true;
    return false;
}

static size_t axes_size(const struct reduce_axes *a)
{
    size_t n = 1;

    for (int i = 0; i < a->n; i++)
        n *= (size_t)a->dim[i];
    return n;
}

/* The axis with the smallest step that moves at all; -1 if none does. */
static int smallest_step(const struct reduce_axes *a)
{
    int best = -1;

    for (int i = 0; i < a->n; i++)
        if (a->in[i] != 0 && (best < 0 || llabs(a->in[i]) <= llabs(a->in[best])))
            best = i;
    return best;
}

static void choose_walk(struct reduce_plan *p)
{
    int kept = smallest_step(&p->kept), red = smallest_step(&p->red);

    p->walk = REDUCE_ROWS;
    p->lane = 0;
    if (kept < 0 || red < 0 || llabs(p->kept.in[kept]) >= llabs(p->red.in[red]))
        return;
    p->walk = REDUCE_COLS;
    p->lane = kept;
}

void reduce_plan_make(struct reduce_plan *p, const struct arr *in, const int32_t *axes, int n,
                      enum reduce_order order)
{
    int64_t out_stride;

    p->offset = 0;
    p->kept.n = p->red.n = 0;
    p->n_out = 1;
    for (int i = 0; i < in->ndim; i++)
        if (!axis_in(axes, n, i))
            p->n_out *= (size_t)in->shape[i];
    out_stride = (int64_t)p->n_out;
    for (int i = 0; i < in->ndim; i++) {
        bool reduced = axis_in(axes, n, i);
        if (!reduced && in->shape[i])
            out_stride /= in->shape[i];
        if (in->shape[i] == 1)
            continue;
        if (reduced)
            add_reduced(p, in->shape[i], in->strides[i], order);
        else
            axes_append(&p->kept, in->shape[i], in->strides[i], out_stride);
    }
    if (order != REDUCE_IN_ORDER)
        axes_sort(&p->red);
    axes_merge(&p->red);
    p->n_red = axes_size(&p->red);
    choose_walk(p);
}

enum reduce_order reduce_kind_order(enum reduce_kind kind)
{
    static const uint8_t orders[] = {
#define REDUCTION(id, public, identity, result, order, ...) [REDUCE_##id] = REDUCE_##order,
#include "ops/reduce.def"
    };

    return (enum reduce_order)orders[kind];
}
