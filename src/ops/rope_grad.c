/* Rotary positions by parts, and their rules: a rotation is linear, and undone by turning back. */
#include <math.h>

#include "ops/build.h"
#include "ops/parts.h"
#include "ops/rules.h"
#include "ops/vmap.h"

/* ---- by parts ---- */

static struct arr *freqs_of(const struct op_apply *f)
{
    return ((const struct rope_params *)f->params)->has_freqs ? f->in[f->n_in - 1] : NULL;
}

/* By how much each pair turns from one position to the next. */
static enum err turns(struct arr **out, const struct op_apply *f)
{
    const struct rope_params *p = f->params;
    int32_t n = p->dims / 2;
    struct shp shape = { .ndim = 1, .d = { n } };

    if (p->has_freqs)
        return ops_reciprocal(out, freqs_of(f), f->strm);
    float *v = mem_alloc_array((size_t)n, sizeof *v);
    if (!v)
        return ERR_NO_MEMORY;
    for (int32_t i = 0; i < n; i++)
        v[i] = (float)pow((double)p->base, -(double)i / (double)n);
    enum err err = arr_new_data(out, v, &shape, DT_FLOAT32);
    mem_free(v);
    return err;
}

/* The offset as it goes with positions of batches: one, or behind the batch what x has more. */
static enum err offsets(struct arr **out, const struct op_apply *f)
{
    const struct rope_params *p = f->params;
    struct shp shape = { .ndim = f->in[0]->ndim - 1 };

    if (!p->has_offset)
        return arr_new_number(out, p->offset, DT_INT32);
    if (f->in[1]->size == 1)
        return ops_reshape(out, f->in[1], (struct ints){ NULL, 0 }, f->strm);
    for (int i = 0; i < shape.ndim; i++)
        shape.d[i] = i ? 1 : f->in[0]->shape[0];
    return ops_reshape(out, f->in[1], shp_ints(&shape), f->strm);
}

/* Angles of positions and pairs. */
static enum err angles(struct arr **out, const struct op_apply *f)
{
    static const int32_t last = -1;
    const struct rope_params *p = f->params;
    struct arr *x = f->in[0], *at = NULL, *y = NULL;
    struct arange_params all = { .stop = x->shape[x->ndim - 2], .step = 1 };
    enum err err;

    TRY(ops_arange(&at, &all, DT_INT32, f->strm));
    TRY(offsets(&y, f));
    STEP(at, ops_binary(&next, OP_ADD, at, y, f->strm));
    STEP(at, ops_astype(&next, at, DT_FLOAT32, f->strm));
    STEP(y, arr_new_number(&next, (double)p->scale, DT_FLOAT32));
    STEP(at, ops_binary(&next, OP_MULTIPLY, at, y, f->strm));
    STEP(at, ops_expand_dims(&next, at, (struct ints){ &last, 1 }, f->strm));
    STEP(y, turns(&next, f));
    TRY(ops_binary(out, OP_MULTIPLY, at, y, f->strm));
out:
    arr_unref(&at);
    arr_unref(&y);
    return err;
}

/* (a, b) rotated: a cos - b sin, a sin + b cos */
static enum err turn(struct arr *pair[2], struct arr *cos, struct arr *sin, struct strm *s)
{
    struct arr *y[4] = { NULL };
    enum err err;

    TRY(ops_binary(&y[0], OP_MULTIPLY, pair[0], cos, s));
    TRY(ops_binary(&y[1], OP_MULTIPLY, pair[1], sin, s));
    TRY(ops_binary(&y[2], OP_MULTIPLY, pair[0], sin, s));
    TRY(ops_binary(&y[3], OP_MULTIPLY, pair[1], cos, s));
    STEP(pair[0], ops_binary(&next, OP_SUBTRACT, y[0], y[1], s));
    STEP(pair[1], ops_binary(&next, OP_ADD, y[2], y[3], s));
out:
    arr_unref_all(y, 4);
    return err;
}

/* What turns, cut into the two of each pair along an axis of theirs. */
static enum err rotated(struct arr **out, struct arr *x, const struct op_apply *f)
{
    const struct rope_params *p = f->params;
    int32_t half = p->dims / 2, axis = p->traditional ? -1 : -2;
    int32_t shape[2] = { p->traditional ? half : 2, p->traditional ? 2 : half };
    struct arr *pair[2] = { NULL, NULL }, *angle = NULL, *cos = NULL, *sin = NULL, *y = NULL;
    enum err err;

    TRY(angles(&angle, f));
    STEP(angle, ops_expand_dims(&next, angle, (struct ints){ &axis, 1 }, f->strm));
    TRY(ops_unary(&cos, OP_COS, angle, f->strm));
    TRY(ops_unary(&sin, OP_SIN, angle, f->strm));
    if (!p->forward)
        STEP(sin, ops_unary(&next, OP_NEGATIVE, sin, f->strm));
    TRY(ops_unflatten(&y, x, -1, (struct ints){ shape, 2 }, f->strm));
    TRY(ops_split(pair, y, 2, axis, f->strm));
    TRY(turn(pair, cos, sin, f->strm));
    STEP(y, ops_concatenate(&next, (struct arrs){ pair, 2 }, axis, f->strm));
    TRY(ops_flatten(out, y, -2, -1, f->strm));
out:
    arr_unref_all(pair, 2);
    arr_unref(&angle);
    arr_unref(&cos);
    arr_unref(&sin);
    arr_unref(&y);
    return err;
}

enum err rope_parts(struct arr **out, const struct op_apply *f)
{
    const struct rope_params *p = f->params;
    struct arr *x = f->in[0], *wide = NULL, *part[2] = { NULL, NULL };
    int32_t size = x->shape[x->ndim - 1];
    enum dtype t = dtype_of(x) == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    enum err err;

    TRY(ops_astype(&wide, x, t, f->strm));
    TRY(ops_slice_axis(&part[0], wide, x->ndim - 1, (int32_t[]){ 0, p->dims }, f->strm));
    STEP(part[0], rotated(&next, part[0], f));
    if (p->dims < size) {
        TRY(ops_slice_axis(&part[1], wide, x->ndim - 1, (int32_t[]){ p->dims, size }, f->strm));
        STEP(part[0], ops_concatenate(&next, (struct arrs){ part, 2 }, -1, f->strm));
    }
    TRY(ops_astype(out, part[0], dtype_of(x), f->strm));
out:
    arr_unref(&wide);
    arr_unref_all(part, 2);
    return err;
}

/* ---- rules ---- */

/* The node with another x, turning forth or back. */
static enum err with(struct arr **out, const struct op_apply *f, struct arr *x, bool back)
{
    struct rope_params p = *(const struct rope_params *)f->params;
    struct arr *in[3];

    memcpy(in, f->in, f->n_in * sizeof in[0]);
    in[0] = x;
    if (back)
        p.forward = !p.forward;
    return ops_make(out, OP_ROPE, &p, (struct arrs){ in, f->n_in }, f->strm);
}

/* Offsets are whole numbers and have no gradient. */
enum err op_vjp_rope(struct vjp_call *c)
{
    struct arr *freqs = freqs_of(&c->f);

    for (size_t i = 0; freqs && i < c->n_wanted; i++)
        if (c->wanted[i] == (int)c->f.n_in - 1)
            return c->f.by_parts->vjp(c);
    return c->wanted[0] == 0 ? with(&c->result[0], &c->f, c->cotan[0], true) : ERR_OK;
}

enum err op_jvp_rope(struct jvp_call *c)
{
    if (freqs_of(&c->f) && c->tan[c->f.n_in - 1])
        return c->f.by_parts->jvp(c);
    return c->tan[0] ? with(&c->result[0], &c->f, c->tan[0], false) : ERR_OK;
}

/* Of x alone, the batch is one more axis of heads. */
enum err op_vmap_rope(struct vmap_call *c)
{
    struct arr *x = NULL;
    enum err err;

    for (size_t i = 1; i < c->f.n_in; i++)
        if (c->axis[i] != VMAP_NONE)
            return c->f.by_parts->vmap(c);
    TRY(ops_moveaxis(&x, c->f.in[0], c->axis[0], 1, c->f.strm));
    TRY(with(&c->result[0], &c->f, x, false));
    c->out_axis[0] = 1;
out:
    arr_unref(&x);
    return err;
}
