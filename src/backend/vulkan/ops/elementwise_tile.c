#include "backend/vulkan/ops/elementwise_tile.h"

#include <stdlib.h>

/* A tile is a workgroup of 16 x 16 elements, or less where the extents ask for it: 64 bytes of
 * float32 in both directions. */
#define TILE 16
#define TILE_LEAST 4
/* Smaller arrays are in the caches as a whole. */
#define TILE_FROM (1u << 16)

static int64_t tile_extent(int64_t dim)
{
    int64_t t = TILE;

    while (dim % t != 0)
        t /= 2;
    return t;
}

/* The axis other than the last along which an input that strides along the last is consecutive. */
static int transposed_axis(const struct elem_job *job)
{
    const struct nest *n = job->nest;
    int last = n->ndim - 1;

    for (int i = 0; i < job->program->n_in; i++) {
        if (job->once_in >> i & 1 || llabs(n->stride[i][last]) < TILE)
            continue;
        for (int d = 0; d < last; d++)
            if (llabs(n->stride[i][d]) == 1)
                return d;
    }
    return -1;
}

/* Dimensions (..., a, ..., last) become (..., a / ta, last / tl, ta, tl). */
struct tiling {
    int axis, last;
    int64_t ta, tl;
};

static void tile_strides(int64_t *out, const int64_t *stride, const struct tiling *t)
{
    int at = 0;

    for (int d = 0; d < t->last; d++)
        if (d != t->axis)
            out[at++] = stride[d];
    out[at++] = stride[t->axis] * t->ta;
    out[at++] = stride[t->last] * t->tl;
    out[at++] = stride[t->axis];
    out[at] = stride[t->last];
}

static void tile_dims(struct nest *out, const struct nest *n, const struct tiling *t)
{
    out->ndim = 0;
    for (int d = 0; d < t->last; d++)
        if (d != t->axis)
            out->dim[out->ndim++] = n->dim[d];
    out->dim[out->ndim++] = n->dim[t->axis] / t->ta;
    out->dim[out->ndim++] = n->dim[t->last] / t->tl;
    out->dim[out->ndim++] = t->ta;
    out->dim[out->ndim++] = t->tl;
}

static void row_strides(int64_t *out, const struct nest *n)
{
    int64_t step = 1;

    for (int d = n->ndim - 1; d >= 0; d--) {
        out[d] = step;
        step *= n->dim[d];
    }
}

bool elem_tile(struct nest *out, const struct elem_job *job)
{
    const struct nest *n = job->nest;
    const struct elem_program *f = job->program;
    int64_t rows[SHP_MAX];

    if (!n || n->ndim < 2 || n->ndim > SHP_MAX - 2 || job->n < TILE_FROM)
        return false;
    struct tiling t = { .axis = transposed_axis(job), .last = n->ndim - 1 };
    if (t.axis < 0)
        return false;
    t.ta = tile_extent(n->dim[t.axis]);
    t.tl = tile_extent(n->dim[t.last]);
    if (t.ta < TILE_LEAST || t.tl < TILE_LEAST)
        return false;
    tile_dims(out, n, &t);
    row_strides(rows, n);
    for (int i = 0; i < f->n_in; i++)
        tile_strides(out->stride[i], n->stride[i], &t);
    for (int o = f->n_in; o < f->n_in + f->n_out; o++)
        tile_strides(out->stride[o], job->out_strided ? n->stride[o] : rows, &t);
    out->n_operands = f->n_in + f->n_out;
    return true;
}
