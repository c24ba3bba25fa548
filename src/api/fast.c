/* Fused ops of neural networks. */
#include "api/handle.h"

int mlx_fast_rms_norm(mlx_array *res, const mlx_array x, const mlx_array weight, float eps,
                      const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *in = call_arr(&c, x, "x");
    struct arr *w = call_arr_opt(&c, weight);

    if (call_ok(&c))
        c.err = ops_rms_norm(&c.out, in, w, eps, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_fast_layer_norm(mlx_array *res, const mlx_array x, const mlx_array weight,
                        const mlx_array bias, float eps, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *in = call_arr(&c, x, "x");
    struct ops_layer_norm n = { call_arr_opt(&c, weight), call_arr_opt(&c, bias), eps };

    if (call_ok(&c))
        c.err = ops_layer_norm(&c.out, in, &n, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_fast_rope(mlx_array *res, const mlx_array x, int dims, bool traditional,
                  mlx_optional_float base, float scale, int offset, const mlx_array freqs,
                  const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *in = call_arr(&c, x, "x");
    struct ops_rope r = { .dims = dims,
                          .traditional = traditional,
                          .base = base.has_value ? &base.value : NULL,
                          .scale = scale,
                          .offset = offset,
                          .freqs = call_arr_opt(&c, freqs) };

    if (call_ok(&c))
        c.err = ops_rope(&c.out, in, &r, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_fast_rope_dynamic(mlx_array *res, const mlx_array x, int dims, bool traditional,
                          mlx_optional_float base, float scale, const mlx_array offset,
                          const mlx_array freqs, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *in = call_arr(&c, x, "x");
    struct ops_rope r = { .dims = dims,
                          .traditional = traditional,
                          .base = base.has_value ? &base.value : NULL,
                          .scale = scale,
                          .offset_array = call_arr(&c, offset, "offset"),
                          .freqs = call_arr_opt(&c, freqs) };

    if (call_ok(&c))
        c.err = ops_rope(&c.out, in, &r, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_fast_cross_entropy(mlx_array *res, const mlx_array logits, const mlx_array targets,
                           const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, logits, "logits"), *at = call_arr(&c, targets, "targets");

    if (call_ok(&c))
        c.err = ops_cross_entropy(&c.out, x, at, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_fast_gated_delta_update(mlx_vector_array *res, const mlx_array q, const mlx_array k,
                                const mlx_array v, const mlx_array gamma, const mlx_array beta,
                                const mlx_array initial_state, const mlx_array mask,
                                const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *outs[2] = { NULL };
    struct ops_delta d = { .q = call_arr(&c, q, "q"),
                           .k = call_arr(&c, k, "k"),
                           .v = call_arr(&c, v, "v"),
                           .gamma = call_arr(&c, gamma, "gamma"),
                           .beta = call_arr(&c, beta, "beta"),
                           .state = call_arr_opt(&c, initial_state),
                           .mask = call_arr_opt(&c, mask) };

    if (call_ok(&c))
        c.err = ops_gated_delta(outs, &d, c.strm);
    if (call_ok(&c))
        c.err = box_set_vec(res, outs, 2);
    return CALL_END(&c);
}

int mlx_fast_scaled_dot_product_attention(mlx_array *res, const mlx_array queries,
                                          const mlx_array keys, const mlx_array values, float scale,
                                          const char *mask_mode, const mlx_array mask_arr,
                                          const mlx_array sinks, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ops_sdpa a = { .q = call_arr(&c, queries, "queries"),
                          .k = call_arr(&c, keys, "keys"),
                          .v = call_arr(&c, values, "values"),
                          .scale = scale,
                          .mask_mode = call_ptr(&c, mask_mode, "mask_mode"),
                          .mask = call_arr_opt(&c, mask_arr),
                          .sinks = call_arr_opt(&c, sinks) };

    if (call_ok(&c))
        c.err = ops_sdpa(&c.out, &a, c.strm);
    return CALL_END_ARR(&c, res);
}
