#include "transforms/parts.h"

#include "eval/stream.h"
#include "transforms/transforms.h"

/* An op as a function of some of its inputs; the others are as they are. */
struct parts {
    struct fun base;
    const struct op_apply *f;
    const int *at; /* which inputs the arguments are; NULL: all, in order */
};

static enum err vjp(struct vjp_call *c);

/* What the op gives, of other ops: a gradient is that of what its op is made of. */
static enum err make(struct outs *out, const struct op_apply *f)
{
    int inputs[OP_MAX_OUT];
    struct op_apply of;
    enum err err;

    TRY(outs_init(out, f->n_out));
    if (ops_gradient_of(&of, inputs, f))
        err = vjp(&(struct vjp_call){ .f = of,
                                      .cotan = &f->in[f->n_in - 1],
                                      .wanted = inputs,
                                      .n_wanted = f->n_out,
                                      .result = out->v });
    else
        err = ops_parts(out->v, f);
out:
    if (err)
        outs_fini(out);
    return err;
}

static enum err call(struct fun *fun, struct arrs in, struct outs *out)
{
    const struct parts *p = (const struct parts *)fun;
    struct op_apply f = *p->f;
    struct arr **all = mem_alloc_array(f.n_in, sizeof *all);
    enum err err;

    if (!all)
        return ERR_NO_MEMORY;
    memcpy(all, f.in, f.n_in * sizeof *all);
    for (size_t i = 0; i < in.n; i++)
        all[p->at ? (size_t)p->at[i] : i] = in.v[i];
    f.in = all;
    err = make(out, &f);
    mem_free(all);
    return err;
}

static struct parts parts_of(const struct op_apply *f, const int *at)
{
    return (struct parts){ .base.call = call, .f = f, .at = at };
}

/* Inputs of the op, by number; borrowed. NULL: no memory. */
static struct arr **pick(const struct op_apply *f, const int *at, size_t n)
{
    struct arr **v = mem_alloc_array(n, sizeof *v);

    for (size_t i = 0; v && i < n; i++)
        v[i] = f->in[at[i]];
    return v;
}

/* Hands what is in o over. */
static void give(struct arr **result, struct outs *o)
{
    for (size_t i = 0; i < o->n; i++) {
        result[i] = o->v[i];
        o->v[i] = NULL;
    }
}

/* ---- gradients ---- */

/* The cotangents, with zeros for those that are not there. */
static enum err all_cotangents(struct outs *o, const struct vjp_call *c)
{
    enum err err;

    TRY(outs_init(o, c->f.n_out));
    for (size_t i = 0; i < o->n; i++)
        if (c->cotan[i])
            o->v[i] = arr_ref(c->cotan[i]);
        else
            TRY(ops_fill_like(&o->v[i], c->out[i], 0, (enum dtype)c->out[i]->dtype, c->f.strm));
out:
    return err;
}

static enum err vjp(struct vjp_call *c)
{
    struct parts p = parts_of(&c->f, c->wanted);
    struct arr **primals = pick(&c->f, c->wanted, c->n_wanted);
    struct outs cotans = { 0 }, again = { 0 }, grads = { 0 };
    enum err err = ERR_NO_MEMORY;

    if (!primals)
        return err;
    TRY(all_cotangents(&cotans, c));
    TRY(transform_vjp_all(&p.base, (struct arrs){ primals, c->n_wanted }, outs_arrs(&cotans),
                          &again, &grads));
    give(c->result, &grads);
out:
    outs_fini(&cotans);
    outs_fini(&again);
    outs_fini(&grads);
    mem_free(primals);
    return err;
}

/* ---- tangents ---- */

static enum err jvp(struct jvp_call *c)
{
    struct arr **primals = mem_alloc_array(c->f.n_in, sizeof *primals);
    struct arr **tangents = mem_alloc_array(c->f.n_in, sizeof *tangents);
    int *at = mem_alloc_array(c->f.n_in, sizeof *at);
    struct parts p = parts_of(&c->f, at);
    struct outs again = { 0 }, out = { 0 };
    size_t n = 0;
    enum err err = ERR_NO_MEMORY;

    if (!primals || !tangents || !at)
        goto out;
    for (size_t i = 0; i < c->f.n_in; i++)
        if (c->tan[i]) {
            primals[n] = c->f.in[i];
            tangents[n] = c->tan[i];
            at[n++] = (int)i;
        }
    TRY(transform_jvp(&p.base, (struct arrs){ primals, n }, (struct arrs){ tangents, n }, &again,
                      &out));
    give(c->result, &out);
out:
    outs_fini(&again);
    outs_fini(&out);
    mem_free(primals);
    mem_free(tangents);
    mem_free(at);
    return err;
}

/* ---- batches ---- */

static enum err vmap(struct vmap_call *c)
{
    struct parts p = parts_of(&c->f, NULL);
    struct arrs inputs = { c->f.in, c->f.n_in };
    struct ints axes = { c->axis, c->f.n_in };
    int32_t *front = mem_alloc_array(c->f.n_out, sizeof *front);
    struct outs in = { 0 }, traced = { 0 }, out = { 0 };
    enum err err = ERR_NO_MEMORY;

    if (!front)
        return err;
    TRY(transform_vmap_trace(&p.base, inputs, axes, &in, &traced));
    TRY(transform_vmap_replace(&(struct vmap_params){ .inputs = inputs,
                                                      .in_axes = axes,
                                                      .traced_in = outs_arrs(&in),
                                                      .traced_out = outs_arrs(&traced),
                                                      .out_axes = { front, c->f.n_out } },
                               &out));
    give(c->result, &out);
    for (size_t i = 0; i < c->f.n_out; i++)
        c->out_axis[i] = 0;
out:
    outs_fini(&in);
    outs_fini(&traced);
    outs_fini(&out);
    mem_free(front);
    return err;
}

const struct by_parts transform_by_parts = { vjp, jvp, vmap };
