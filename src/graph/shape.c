#include "graph/shape.h"

#include <stdio.h>
#include <string.h>

enum err shp_make(struct shp *out, const int32_t *dims, size_t n, const char *op)
{
    if (n > SHP_MAX)
        return err_set(ERR_ARG, "[%s] Arrays have at most %d dimensions, got %zu.", op, SHP_MAX, n);
    if (n && !dims)
        return err_set(ERR_ARG, "[%s] The shape is missing.", op);
    out->ndim = (int)n;
    for (size_t i = 0; i < n; i++) {
        if (dims[i] < 0)
            return err_set(ERR_ARG, "[%s] Negative dimension %d in the shape.", op, dims[i]);
        out->d[i] = dims[i];
    }
    return ERR_OK;
}

size_t shp_size(const struct shp *s)
{
    size_t n = 1;

    for (int i = 0; i < s->ndim; i++)
        n *= (size_t)s->d[i];
    return n;
}

enum err shp_broadcast(struct shp *out, const struct shp *a, const struct shp *b, const char *op)
{
    struct shp r = { .ndim = MAX(a->ndim, b->ndim) };

    for (int i = 0; i < r.ndim; i++) {
        int ia = i - (r.ndim - a->ndim), ib = i - (r.ndim - b->ndim);
        int32_t da = ia < 0 ? 1 : a->d[ia], db = ib < 0 ? 1 : b->d[ib];
        if (da != db && da != 1 && db != 1)
            return err_set(ERR_ARG, "[%s] Shapes %s and %s cannot be broadcast.", op, shp_text(a),
                           shp_text(b));
        r.d[i] = da == 1 ? db : da;
    }
    *out = r;
    return ERR_OK;
}

enum err shp_axis(int *out, int axis, int ndim, const char *op)
{
    int ax = axis < 0 ? axis + ndim : axis;

    if (ax < 0 || ax >= ndim)
        return err_set(ERR_RANGE, "[%s] Axis %d is out of bounds for array with %d dimensions.", op,
                       axis, ndim);
    *out = ax;
    return ERR_OK;
}

const char *shp_print(const struct shp *s, char *buf, size_t n)
{
    size_t used = (size_t)snprintf(buf, n, "(");

    for (int i = 0; i < s->ndim && used < n; i++)
        used += (size_t)snprintf(buf + used, n - used, i ? ",%d" : "%d", s->d[i]);
    if (used < n)
        snprintf(buf + used, n - used, ")");
    return buf;
}

void shp_row_strides(int64_t *strides, const struct shp *s)
{
    int64_t step = 1;

    for (int i = s->ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= s->d[i];
    }
}

unsigned shp_layout_flags(const struct shp *s, const int64_t *strides, size_t data_size)
{
    size_t reached = 1;
    int64_t row = 1, col = 1;
    unsigned flags = LAYOUT_ROW | LAYOUT_COL;

    for (int i = 0, j = s->ndim - 1; i < s->ndim; i++, j--) {
        if (strides[i] > 0)
            reached *= (size_t)s->d[i];
        if (s->d[i] != 1 && strides[i] != col)
            flags &= ~(unsigned)LAYOUT_COL;
        if (s->d[j] != 1 && strides[j] != row)
            flags &= ~(unsigned)LAYOUT_ROW;
        col *= s->d[i];
        row *= s->d[j];
    }
    return reached == data_size ? flags | LAYOUT_CONTIGUOUS : flags;
}

size_t shp_span(const struct shp *s, const int64_t *strides)
{
    int64_t low = 0, high = 0;

    for (int i = 0; i < s->ndim; i++) {
        int64_t reach = strides[i] * ((int64_t)s->d[i] - 1);
        if (s->d[i] == 0)
            return 0;
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    return (size_t)(high - low + 1);
}

static bool mergeable(const struct nest *n, const int64_t *const *strides, int dim, int64_t size)
{
    int last = n->ndim - 1;

    for (int k = 0; k < n->n_operands; k++)
        if (n->stride[k][last] != strides[k][dim] * size)
            return false;
    return n->dim[last] * size <= INT32_MAX;
}

void shp_collapse(struct nest *out, const struct shp *s, const int64_t *const *strides,
                  int n_operands)
{
    out->ndim = 0;
    out->n_operands = n_operands;
    for (int i = 0; i < s->ndim; i++) {
        if (s->d[i] == 1)
            continue;
        if (out->ndim && mergeable(out, strides, i, s->d[i]))
            out->dim[out->ndim - 1] *= s->d[i];
        else
            out->dim[out->ndim++] = s->d[i];
        for (int k = 0; k < n_operands; k++)
            out->stride[k][out->ndim - 1] = strides[k][i];
    }
}
