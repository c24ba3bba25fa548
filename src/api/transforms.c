#include "transforms/transforms.h"
#include "api/fun_handle.h"

#include "eval/eval.h"

/* ---- evaluation ---- */

static int eval_list(struct call *c, mlx_vector_array outputs, bool async)
{
    const struct list *list = call_vec(c, outputs, "outputs");

    if (call_ok(c))
        c->err = eval_arrays(list->v, list->n, async);
    return CALL_END(c);
}

int mlx_eval(const mlx_vector_array outputs)
{
    struct call c = CALL_BARE;

    return eval_list(&c, outputs, false);
}

int mlx_async_eval(const mlx_vector_array outputs)
{
    struct call c = CALL_BARE;

    return eval_list(&c, outputs, true);
}

/* ---- gradients ---- */

int mlx_vjp(mlx_vector_array *res_0, mlx_vector_array *res_1, const mlx_closure fun,
            const mlx_vector_array primals, const mlx_vector_array cotangents)
{
    struct call c = CALL(res_0);
    struct fun *f = call_fun(&c, fun.ctx, "fun");
    const struct list *in = call_vec(&c, primals, "primals");
    const struct list *cotans = call_vec(&c, cotangents, "cotangents");
    struct outs values = { 0 }, grads = { 0 };

    call_ptr(&c, res_1, "res_1");
    if (call_ok(&c))
        c.err = transform_vjp_all(f, list_arrs(in), list_arrs(cotans), &values, &grads);
    if (call_ok(&c))
        c.err = box_set_outs_pair(res_0, res_1, &values, &grads);
    return CALL_END(&c);
}

int mlx_jvp(mlx_vector_array *res_0, mlx_vector_array *res_1, const mlx_closure fun,
            const mlx_vector_array primals, const mlx_vector_array tangents)
{
    struct call c = CALL(res_0);
    struct fun *f = call_fun(&c, fun.ctx, "fun");
    const struct list *in = call_vec(&c, primals, "primals");
    const struct list *tan = call_vec(&c, tangents, "tangents");
    struct outs values = { 0 }, results = { 0 };

    call_ptr(&c, res_1, "res_1");
    if (call_ok(&c))
        c.err = transform_jvp(f, list_arrs(in), list_arrs(tan), &values, &results);
    if (call_ok(&c))
        c.err = box_set_outs_pair(res_0, res_1, &values, &results);
    return CALL_END(&c);
}

int mlx_value_and_grad(mlx_closure_value_and_grad *res, const mlx_closure fun, const int *argnums,
                       size_t argnums_num)
{
    struct call c = CALL(res);
    struct fun *f = call_fun(&c, fun.ctx, "fun");
    struct ints list = call_ints(&c, argnums, argnums_num, "argnums");
    struct fun_grad *g = NULL;

    if (call_ok(&c))
        c.err = transform_value_and_grad(&g, f, list);
    if (call_ok(&c))
        c.err = box_set_fun(&res->ctx, g);
    return CALL_END(&c);
}

/* ---- functions with rules of their own ---- */

int mlx_checkpoint(mlx_closure *res, const mlx_closure fun)
{
    struct call c = CALL(res);
    struct fun *f = call_fun(&c, fun.ctx, "fun"), *g = NULL;

    if (call_ok(&c))
        c.err = transform_checkpoint(&g, f);
    if (call_ok(&c))
        c.err = box_set_fun(&res->ctx, g);
    return CALL_END(&c);
}

static int make_custom(struct call *c, mlx_closure *res, mlx_closure fun,
                       const struct custom_rules *rules)
{
    struct fun *f = call_fun(c, fun.ctx, "fun"), *g = NULL;

    if (call_ok(c))
        c->err = transform_custom(&g, f, rules);
    if (call_ok(c))
        c->err = box_set_fun(&res->ctx, g);
    return CALL_END(c);
}

int mlx_custom_function(mlx_closure *res, const mlx_closure fun, const mlx_closure_custom fun_vjp,
                        const mlx_closure_custom_jvp fun_jvp,
                        const mlx_closure_custom_vmap fun_vmap)
{
    struct call c = CALL(res);
    struct custom_rules rules = { .vjp = call_fun_opt(&c, fun_vjp.ctx),
                                  .jvp = call_fun_opt(&c, fun_jvp.ctx),
                                  .vmap = call_fun_opt(&c, fun_vmap.ctx) };

    return make_custom(&c, res, fun, &rules);
}

int mlx_custom_vjp(mlx_closure *res, const mlx_closure fun, const mlx_closure_custom fun_vjp)
{
    struct call c = CALL(res);
    struct custom_rules rules = { .vjp = call_fun(&c, fun_vjp.ctx, "fun_vjp") };

    return make_custom(&c, res, fun, &rules);
}

/* ---- vmap in its two halves ---- */

int mlx_detail_vmap_trace(mlx_vector_array *res_0, mlx_vector_array *res_1, const mlx_closure fun,
                          const mlx_vector_array inputs, const int *in_axes, size_t in_axes_num)
{
    struct call c = CALL(res_0);
    struct fun *f = call_fun(&c, fun.ctx, "fun");
    const struct list *in = call_vec(&c, inputs, "inputs");
    struct ints axes = call_ints(&c, in_axes, in_axes_num, "in_axes");
    struct outs traced_in = { 0 }, traced_out = { 0 };

    call_ptr(&c, res_1, "res_1");
    if (call_ok(&c))
        c.err = transform_vmap_trace(f, list_arrs(in), axes, &traced_in, &traced_out);
    if (call_ok(&c))
        c.err = box_set_outs_pair(res_0, res_1, &traced_in, &traced_out);
    return CALL_END(&c);
}

int mlx_detail_vmap_replace(mlx_vector_array *res, const mlx_vector_array inputs,
                            const mlx_vector_array s_inputs, const mlx_vector_array s_outputs,
                            const int *in_axes, size_t in_axes_num, const int *out_axes,
                            size_t out_axes_num)
{
    struct call c = CALL(res);
    const struct list *in = call_vec(&c, inputs, "inputs");
    const struct list *traced_in = call_vec(&c, s_inputs, "s_inputs");
    const struct list *traced_out = call_vec(&c, s_outputs, "s_outputs");
    struct vmap_params p = { .in_axes = call_ints(&c, in_axes, in_axes_num, "in_axes"),
                             .out_axes = call_ints(&c, out_axes, out_axes_num, "out_axes") };
    struct outs out = { 0 };

    if (call_ok(&c)) {
        p.inputs = list_arrs(in);
        p.traced_in = list_arrs(traced_in);
        p.traced_out = list_arrs(traced_out);
        c.err = transform_vmap_replace(&p, &out);
    }
    if (call_ok(&c))
        c.err = box_set_outs(res, &out);
    return CALL_END(&c);
}

/* ---- order ---- */

int mlx_depends(mlx_vector_array *res, const mlx_vector_array inputs,
                const mlx_vector_array dependencies)
{
    struct call c = CALL(res);
    const struct list *in = call_vec(&c, inputs, "inputs");
    const struct list *after = call_vec(&c, dependencies, "dependencies");
    struct outs out = { 0 };

    if (call_ok(&c))
        c.err = outs_init(&out, in->n);
    if (call_ok(&c) && in->n)
        c.err = strm_of(&c.strm, list_arrs(in).v[0]);
    if (call_ok(&c) && in->n)
        c.err = ops_depends(out.v, list_arrs(in), list_arrs(after), c.strm);
    if (call_ok(&c))
        c.err = box_set_outs(res, &out);
    outs_fini(&out);
    return CALL_END(&c);
}
