/* Groups of processes, and what they do together. */
#include "api/handle.h"

#include "dist/group.h"

struct group_box {
    struct dist_group *group; /* owned */
};

/* ---- groups ---- */

static struct dist_group *call_group(struct call *c, mlx_distributed_group g)
{
    const struct group_box *box = call_box(c, g.ctx, "distributed_group", "group");

    return box ? box->group : NULL;
}

/* May be empty: NULL then. */
static struct dist_group *call_group_opt(struct call *c, mlx_distributed_group g)
{
    return call_ok(c) && g.ctx ? ((const struct group_box *)g.ctx)->group : NULL;
}

/* Takes the reference. */
static enum err box_set_group(mlx_distributed_group *res, struct dist_group *g)
{
    enum err err = box_make(&res->ctx, sizeof(struct group_box));

    if (!err) {
        struct group_box *box = res->ctx;
        struct dist_group *old = box->group;
        box->group = g;
        g = old;
    }
    dist_unref(&g);
    return err;
}

mlx_distributed_group mlx_distributed_group_new(void)
{
    return (mlx_distributed_group){ NULL };
}

int mlx_distributed_group_free(mlx_distributed_group group)
{
    struct group_box *box = group.ctx;

    if (box)
        dist_unref(&box->group);
    mem_free(box);
    return 0;
}

int mlx_distributed_init(mlx_distributed_group *res, bool strict, const char *bk)
{
    struct call c = CALL(res);
    struct dist_group *g = NULL;

    if (call_ok(&c))
        c.err = dist_init(&g, bk, strict);
    if (call_ok(&c))
        c.err = box_set_group(res, g);
    return CALL_END(&c);
}

int mlx_distributed_group_rank(mlx_distributed_group group)
{
    struct call c = CALL_BARE;
    const struct dist_group *g = call_group(&c, group);

    CALL_END(&c);
    return g ? g->rank : 0;
}

int mlx_distributed_group_size(mlx_distributed_group group)
{
    struct call c = CALL_BARE;
    const struct dist_group *g = call_group(&c, group);

    CALL_END(&c);
    return g ? g->size : 0;
}

int mlx_distributed_group_split(mlx_distributed_group *res, mlx_distributed_group group, int color,
                                int key)
{
    struct call c = CALL(res);
    struct dist_group *g = call_group(&c, group), *part = NULL;

    if (call_ok(&c))
        c.err = dist_split(&part, g, color, key);
    if (call_ok(&c))
        c.err = box_set_group(res, part);
    return CALL_END(&c);
}

bool mlx_distributed_is_available(const char *bk)
{
    return dist_is_available(bk);
}

/* ---- ops ---- */

#define COLLECTIVE(name, op)                                                                       \
    int mlx_distributed_##name(mlx_array *res, const mlx_array x,                                  \
                               const mlx_distributed_group group, const mlx_stream s)              \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *a = call_arr(&c, x, "x");                                                      \
        struct dist_group *g = call_group_opt(&c, group);                                          \
        if (call_ok(&c))                                                                           \
            c.err = op;                                                                            \
        return CALL_END_ARR(&c, res);                                                              \
    }
COLLECTIVE(all_sum, ops_all_reduce(&c.out, a, ALL_REDUCE_SUM, g, c.strm))
COLLECTIVE(all_max, ops_all_reduce(&c.out, a, ALL_REDUCE_MAX, g, c.strm))
COLLECTIVE(all_min, ops_all_reduce(&c.out, a, ALL_REDUCE_MIN, g, c.strm))
COLLECTIVE(all_gather, ops_all_gather(&c.out, a, g, c.strm))
COLLECTIVE(sum_scatter, ops_sum_scatter(&c.out, a, g, c.strm))

int mlx_distributed_send(mlx_array *res, const mlx_array x, int dst,
                         const mlx_distributed_group group, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *a = call_arr(&c, x, "x");
    struct dist_group *g = call_group_opt(&c, group);

    if (call_ok(&c))
        c.err = ops_send(&c.out, a, dst, g, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_distributed_recv(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
                         int src, const mlx_distributed_group group, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ops_recv r = { call_ints(&c, shape, shape_num, "shape"), call_dtype(&c, dtype), src };
    struct dist_group *g = call_group_opt(&c, group);

    if (call_ok(&c))
        c.err = ops_recv(&c.out, &r, g, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_distributed_recv_like(mlx_array *res, const mlx_array x, int src,
                              const mlx_distributed_group group, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    const struct arr *a = call_arr(&c, x, "x");
    struct dist_group *g = call_group_opt(&c, group);

    if (call_ok(&c)) {
        struct ops_recv r = { { a->shape, a->ndim }, (enum dtype)a->dtype, src };
        c.err = ops_recv(&c.out, &r, g, c.strm);
    }
    return CALL_END_ARR(&c, res);
}
