/* What processes do together (dist/comm.h). A node has its group as a state of its own, so that no
 * two of them count as equal: what is received twice is two things. They run on a stream of the
 * CPU, whatever stream was asked for, as in MLX; arrays of a GPU come and go through host memory.
 */
#include "dist/dist_state.h"
#include "eval/stream.h"
#include "ops/build.h"
#include "ops/rules.h"

/* ---- what the results are ---- */

enum err op_infer_all_gather(struct infer_call *c)
{
    const struct processes_params *p = c->params;
    struct shp *shape = &c->out[0].shape;

    FITS(p->n >= 1);
    infer_like(c, c->in[0]);
    if (!shape->ndim) {
        shape->ndim = 1;
        shape->d[0] = p->n;
        return ERR_OK;
    }
    return ops_dim(&shape->d[0], (int64_t)shape->d[0] * p->n, "all_gather");
}

enum err op_infer_reduce_scatter(struct infer_call *c)
{
    const struct processes_params *p = c->params;

    FITS(p->n >= 1 && c->in[0]->ndim && c->in[0]->shape[0] % p->n == 0);
    infer_like(c, c->in[0]);
    c->out[0].shape.d[0] /= p->n;
    return ERR_OK;
}

enum err op_infer_recv(struct infer_call *c)
{
    const struct recv_params *p = c->params;

    FITS(infer_is_shape(p->shape, p->n));
    c->out[0].dtype = (enum dtype)p->dtype;
    c->out[0].shape.ndim = p->n;
    memcpy(c->out[0].shape.d, p->shape, (size_t)p->n * sizeof *p->shape);
    return ERR_OK;
}

/* ---- constructors ---- */

struct dist_op {
    enum op_id op;
    const void *params;
    struct arr *x; /* NULL: Recv */
};

static enum err make(struct arr **out, const struct dist_op *d, struct dist_group *g,
                     struct strm *s)
{
    struct ops_inputs in = { .arrs = { &d->x, d->x ? 1 : 0 } };
    enum err err;

    if (s->dev.type != DEV_CPU)
        TRY(strm_default(&s, (struct dev){ DEV_CPU, 0 }));
    TRY(dist_state_new(&in.state, g));
    err = ops_make_with(out, d->op, d->params, &in, s);
    op_state_unref(&in.state);
out:
    return err;
}

/* A reference to g, or to the group of all processes. */
static enum err take_group(struct dist_group **out, struct dist_group *g)
{
    if (!g)
        return dist_init(out, NULL, false);
    *out = dist_ref(g);
    return ERR_OK;
}

enum err ops_all_reduce(struct arr **out, struct arr *x, enum all_reduce_kind kind,
                        struct dist_group *group, struct strm *s)
{
    const struct all_reduce_params p = { .kind = kind };
    struct dist_group *g = NULL;
    enum err err;

    TRY(take_group(&g, group));
    err = g->size == 1 ? ops_same(out, x)
                       : make(out, &(struct dist_op){ OP_ALL_REDUCE, &p, x }, g, s);
out:
    dist_unref(&g);
    return err;
}

enum err ops_all_gather(struct arr **out, struct arr *x, struct dist_group *group, struct strm *s)
{
    struct processes_params p = { 0 };
    struct dist_group *g = NULL;
    enum err err;

    TRY(take_group(&g, group));
    p.n = g->size;
    err = g->size == 1 ? ops_same(out, x)
                       : make(out, &(struct dist_op){ OP_ALL_GATHER, &p, x }, g, s);
out:
    dist_unref(&g);
    return err;
}

enum err ops_sum_scatter(struct arr **out, struct arr *x, struct dist_group *group, struct strm *s)
{
    struct processes_params p = { 0 };
    struct dist_group *g = NULL;
    struct shp shape;
    enum err err;

    TRY(take_group(&g, group));
    p.n = g->size;
    arr_shape(&shape, x);
    if (g->size == 1)
        err = ops_same(out, x);
    else if (x->ndim && x->shape[0] % g->size == 0)
        err = make(out, &(struct dist_op){ OP_REDUCE_SCATTER, &p, x }, g, s);
    else
        err = err_set(ERR_ARG,
                      "[sum_scatter] Invalid shape=%s for a group of size %d. The first dimension "
                      "(axis 0) must be divisible by the group size and input mst have at least "
                      "one.",
                      shp_text(&shape), g->size);
out:
    dist_unref(&g);
    return err;
}

/* MLX's words; what: "destination" or "source". */
static enum err check_peer(const struct dist_group *g, int rank, const char *what)
{
    bool is_send = what[0] == 'd';

    if (g->size == 1)
        return err_set(ERR_ARG, "Cannot %s a singleton group", is_send ? "send to" : "recv from");
    if (rank < 0 || rank >= g->size)
        return err_set(ERR_ARG, "Invalid %s=%d for a group of size %d", what, rank, g->size);
    return ERR_OK;
}

enum err ops_send(struct arr **out, struct arr *x, int dst, struct dist_group *group,
                  struct strm *s)
{
    const struct send_params p = { .rank = dst };
    struct dist_group *g = NULL;
    enum err err;

    TRY(take_group(&g, group));
    TRY(check_peer(g, dst, "destination"));
    err = make(out, &(struct dist_op){ OP_SEND, &p, x }, g, s);
out:
    dist_unref(&g);
    return err;
}

enum err ops_recv(struct arr **out, const struct ops_recv *r, struct dist_group *group,
                  struct strm *s)
{
    struct recv_params p = { .rank = r->src, .dtype = (int32_t)r->dtype };
    struct dist_group *g = NULL;
    struct shp shape;
    enum err err;

    TRY(take_group(&g, group));
    TRY(check_peer(g, r->src, "source"));
    TRY(shp_make(&shape, r->shape.v, r->shape.n, "recv"));
    p.n = shape.ndim;
    memcpy(p.shape, shape.d, (size_t)shape.ndim * sizeof *p.shape);
    err = make(out, &(struct dist_op){ OP_RECV, &p, NULL }, g, s);
out:
    dist_unref(&g);
    return err;
}

/* ---- transforms ---- */

static enum all_reduce_kind kind_of(const struct op_apply *f)
{
    return (enum all_reduce_kind)((const struct all_reduce_params *)f->params)->kind;
}

/* Each process has the gradient of its own loss, of which the others' parts are not asked, whatever
 * the reduction: MLX's convention. */
enum err op_vjp_all_reduce(struct vjp_call *c)
{
    return ops_same(&c->result[0], c->cotan[0]);
}

enum err op_jvp_all_reduce(struct jvp_call *c)
{
    return ops_all_reduce(&c->result[0], c->tan[0], kind_of(&c->f), dist_group_of(c->f.state),
                          c->f.strm);
}

enum err op_vmap_all_reduce(struct vmap_call *c)
{
    c->out_axis[0] = c->axis[0];
    return ops_all_reduce(&c->result[0], c->f.in[0], kind_of(&c->f), dist_group_of(c->f.state),
                          c->f.strm);
}

/* This process's part. */
enum err op_vjp_all_gather(struct vjp_call *c)
{
    const struct arr *x = c->f.in[0];
    int32_t n = x->ndim ? x->shape[0] : 1, first = dist_group_of(c->f.state)->rank * n;
    struct arr *part = NULL;
    enum err err;

    TRY(ops_slice_axis(&part, c->cotan[0], 0, (int32_t[]){ first, first + n }, c->f.strm));
    err = ops_reshape(&c->result[0], part, shape_of(x), c->f.strm);
out:
    arr_unref(&part);
    return err;
}

enum err op_jvp_all_gather(struct jvp_call *c)
{
    return ops_all_gather(&c->result[0], c->tan[0], dist_group_of(c->f.state), c->f.strm);
}

/* Arrays are joined along their first axis, so the batch goes behind it: MLX leaves it where it is,
 * and joins batches where that is in front. */
enum err op_vmap_all_gather(struct vmap_call *c)
{
    int behind = MIN(1, c->f.in[0]->ndim - 1);
    struct arr *x = NULL;
    enum err err;

    TRY(ops_moveaxis(&x, c->f.in[0], c->axis[0], behind, c->f.strm));
    if (!behind)
        STEP(x, ops_expand_dims(&next, x, (struct ints){ (int32_t[]){ 0 }, 1 }, c->f.strm));
    c->out_axis[0] = 1;
    err = ops_all_gather(&c->result[0], x, dist_group_of(c->f.state), c->f.strm);
out:
    arr_unref(&x);
    return err;
}

enum err op_vmap_send(struct vmap_call *c)
{
    const struct send_params *p = c->f.params;

    c->out_axis[0] = c->axis[0];
    return ops_send(&c->result[0], c->f.in[0], p->rank, dist_group_of(c->f.state), c->f.strm);
}
