/* Quantized weights. */
#include "api/handle.h"

static struct ops_quant packing(struct call *c, const mlx_optional_int *group_size,
                                const mlx_optional_int *bits, const char *mode)
{
    return (struct ops_quant){ group_size->has_value ? &group_size->value : NULL,
                               bits->has_value ? &bits->value : NULL, call_ptr(c, mode, "mode") };
}

int mlx_quantize(mlx_vector_array *res, const mlx_array w, mlx_optional_int group_size,
                 mlx_optional_int bits, const char *mode, const mlx_array global_scale,
                 const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, w, "w"), *scale = call_arr_opt(&c, global_scale);
    struct ops_quant q = packing(&c, &group_size, &bits, mode);
    struct ops_quantized out = { 0 };

    if (call_ok(&c))
        c.err = ops_quantize(&out, x, &q, scale, c.strm);
    if (call_ok(&c))
        c.err = box_set_vec(res, out.v, out.n);
    return CALL_END(&c);
}

int mlx_dequantize(mlx_array *res, const mlx_array w, const mlx_array scales,
                   const mlx_array biases, mlx_optional_int group_size, mlx_optional_int bits,
                   const char *mode, const mlx_array global_scale, mlx_optional_dtype dtype,
                   const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ops_packed packed = { call_arr(&c, w, "w"), call_arr(&c, scales, "scales"),
                                 call_arr_opt(&c, biases), packing(&c, &group_size, &bits, mode) };
    enum dtype t = dtype.has_value ? call_dtype(&c, dtype.value) : DT_FLOAT32;
    struct ops_dequantize how = { call_arr_opt(&c, global_scale), dtype.has_value ? &t : NULL };

    if (call_ok(&c))
        c.err = ops_dequantize(&c.out, &packed, &how, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_quantized_matmul(mlx_array *res, const mlx_array x, const mlx_array w,
                         const mlx_array scales, const mlx_array biases, bool transpose,
                         mlx_optional_int group_size, mlx_optional_int bits, const char *mode,
                         const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *a = call_arr(&c, x, "x");
    struct ops_packed packed = { call_arr(&c, w, "w"), call_arr(&c, scales, "scales"),
                                 call_arr_opt(&c, biases), packing(&c, &group_size, &bits, mode) };

    if (call_ok(&c))
        c.err = ops_quantized_matmul(&c.out, a, &packed, transpose, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_gather_qmm_global_scale(mlx_array *res, const mlx_array x, const mlx_array w,
                                const mlx_array scales, const mlx_array biases,
                                const mlx_array lhs_indices, const mlx_array rhs_indices,
                                bool transpose, mlx_optional_int group_size, mlx_optional_int bits,
                                const char *mode, const mlx_array global_scale, bool sorted_indices,
                                const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *a = call_arr(&c, x, "x");
    struct ops_packed packed = { call_arr(&c, w, "w"), call_arr(&c, scales, "scales"),
                                 call_arr_opt(&c, biases), packing(&c, &group_size, &bits, mode) };
    struct ops_gather_qmm g = { call_arr_opt(&c, lhs_indices), call_arr_opt(&c, rhs_indices),
                                transpose, sorted_indices, call_arr_opt(&c, global_scale) };

    if (call_ok(&c))
        c.err = ops_gather_qmm(&c.out, a, &packed, &g, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_gather_qmm(mlx_array *res, const mlx_array x, const mlx_array w, const mlx_array scales,
                   const mlx_array biases, const mlx_array lhs_indices, const mlx_array rhs_indices,
                   bool transpose, mlx_optional_int group_size, mlx_optional_int bits,
                   const char *mode, bool sorted_indices, const mlx_stream s)
{
    return mlx_gather_qmm_global_scale(res, x, w, scales, biases, lhs_indices, rhs_indices,
                                       transpose, group_size, bits, mode, (mlx_array){ NULL },
                                       sorted_indices, s);
}

static struct ops_qqmm qqmm_operands(struct call *c, const mlx_array *in, struct ops_quant q)
{
    return (struct ops_qqmm){
        call_arr(c, in[0], "x"), call_arr(c, in[1], "w"), q,
        call_arr_opt(c, in[2]),  call_arr_opt(c, in[3]),  call_arr_opt(c, in[4])
    };
}

int mlx_qqmm(mlx_array *res, const mlx_array x, const mlx_array w, const mlx_array w_scales,
             mlx_optional_int group_size, mlx_optional_int bits, const char *mode,
             const mlx_array global_scale_x, const mlx_array global_scale_w, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    const mlx_array in[] = { x, w, w_scales, global_scale_x, global_scale_w };
    struct ops_qqmm v = qqmm_operands(&c, in, packing(&c, &group_size, &bits, mode));

    if (call_ok(&c))
        c.err = ops_qqmm(&c.out, &v, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_gather_qqmm(mlx_array *res, const mlx_array x, const mlx_array w, const mlx_array w_scales,
                    const mlx_array lhs_indices, const mlx_array rhs_indices,
                    mlx_optional_int group_size, mlx_optional_int bits, const char *mode,
                    const mlx_array global_scale_x, const mlx_array global_scale_w,
                    bool sorted_indices, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    const mlx_array in[] = { x, w, w_scales, global_scale_x, global_scale_w };
    struct ops_qqmm v = qqmm_operands(&c, in, packing(&c, &group_size, &bits, mode));
    struct arr *lhs = call_arr_opt(&c, lhs_indices), *rhs = call_arr_opt(&c, rhs_indices);

    (void)sorted_indices; /* changes nothing, as in MLX */
    if (call_ok(&c))
        c.err = ops_gather_qqmm(&c.out, &v, lhs, rhs, c.strm);
    return CALL_END_ARR(&c, res);
}
