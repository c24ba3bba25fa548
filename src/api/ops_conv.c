/* Convolutions. */
#include "api/handle.h"

#define AXES(...)                                                                                  \
    ((struct ints){ (int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int) })

static int conv(struct call c, mlx_array *res, const mlx_array input, const mlx_array weight,
                struct ops_conv v)
{
    v.x = call_arr(&c, input, "input");
    v.w = call_arr(&c, weight, "weight");
    if (call_ok(&c))
        c.err = ops_conv(&c.out, &v, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_conv1d(mlx_array *res, const mlx_array input, const mlx_array weight, int stride,
               int padding, int dilation, int groups, const mlx_stream s)
{
    return conv(CALL_OP(res, s), res, input, weight,
                (struct ops_conv){ .stride = AXES(stride),
                                   .pad_lo = AXES(padding),
                                   .pad_hi = AXES(padding),
                                   .kernel_dilation = AXES(dilation),
                                   .groups = groups });
}

int mlx_conv2d(mlx_array *res, const mlx_array input, const mlx_array weight, int stride_0,
               int stride_1, int padding_0, int padding_1, int dilation_0, int dilation_1,
               int groups, const mlx_stream s)
{
    return conv(CALL_OP(res, s), res, input, weight,
                (struct ops_conv){ .stride = AXES(stride_0, stride_1),
                                   .pad_lo = AXES(padding_0, padding_1),
                                   .pad_hi = AXES(padding_0, padding_1),
                                   .kernel_dilation = AXES(dilation_0, dilation_1),
                                   .groups = groups });
}

int mlx_conv3d(mlx_array *res, const mlx_array input, const mlx_array weight, int stride_0,
               int stride_1, int stride_2, int padding_0, int padding_1, int padding_2,
               int dilation_0, int dilation_1, int dilation_2, int groups, const mlx_stream s)
{
    return conv(CALL_OP(res, s), res, input, weight,
                (struct ops_conv){ .stride = AXES(stride_0, stride_1, stride_2),
                                   .pad_lo = AXES(padding_0, padding_1, padding_2),
                                   .pad_hi = AXES(padding_0, padding_1, padding_2),
                                   .kernel_dilation = AXES(dilation_0, dilation_1, dilation_2),
                                   .groups = groups });
}

int mlx_conv_general(mlx_array *res, const mlx_array input, const mlx_array weight,
                     const int *stride, size_t stride_num, const int *padding_lo,
                     size_t padding_lo_num, const int *padding_hi, size_t padding_hi_num,
                     const int *kernel_dilation, size_t kernel_dilation_num,
                     const int *input_dilation, size_t input_dilation_num, int groups, bool flip,
                     const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ops_conv v = {
        .stride = call_ints(&c, stride, stride_num, "stride"),
        .pad_lo = call_ints(&c, padding_lo, padding_lo_num, "padding_lo"),
        .pad_hi = call_ints(&c, padding_hi, padding_hi_num, "padding_hi"),
        .kernel_dilation = call_ints(&c, kernel_dilation, kernel_dilation_num, "kernel_dilation"),
        .input_dilation = call_ints(&c, input_dilation, input_dilation_num, "input_dilation"),
        .groups = groups,
        .flip = flip,
    };

    return conv(c, res, input, weight, v);
}

static int transposed(struct call c, mlx_array *res, const mlx_array input, const mlx_array weight,
                      struct ops_conv_transpose v)
{
    v.x = call_arr(&c, input, "input");
    v.w = call_arr(&c, weight, "weight");
    if (call_ok(&c))
        c.err = ops_conv_transpose(&c.out, &v, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_conv_transpose1d(mlx_array *res, const mlx_array input, const mlx_array weight, int stride,
                         int padding, int dilation, int output_padding, int groups,
                         const mlx_stream s)
{
    return transposed(CALL_OP(res, s), res, input, weight,
                      (struct ops_conv_transpose){ .stride = AXES(stride),
                                                   .padding = AXES(padding),
                                                   .dilation = AXES(dilation),
                                                   .output_padding = AXES(output_padding),
                                                   .groups = groups });
}

int mlx_conv_transpose2d(mlx_array *res, const mlx_array input, const mlx_array weight,
                         int stride_0, int stride_1, int padding_0, int padding_1, int dilation_0,
                         int dilation_1, int output_padding_0, int output_padding_1, int groups,
                         const mlx_stream s)
{
    return transposed(
        CALL_OP(res, s), res, input, weight,
        (struct ops_conv_transpose){ .stride = AXES(stride_0, stride_1),
                                     .padding = AXES(padding_0, padding_1),
                                     .dilation = AXES(dilation_0, dilation_1),
                                     .output_padding = AXES(output_padding_0, output_padding_1),
                                     .groups = groups });
}

int mlx_conv_transpose3d(mlx_array *res, const mlx_array input, const mlx_array weight,
                         int stride_0, int stride_1, int stride_2, int padding_0, int padding_1,
                         int padding_2, int dilation_0, int dilation_1, int dilation_2,
                         int output_padding_0, int output_padding_1, int output_padding_2,
                         int groups, const mlx_stream s)
{
    return transposed(
        CALL_OP(res, s), res, input, weight,
        (struct ops_conv_transpose){ .stride = AXES(stride_0, stride_1, stride_2),
                                     .padding = AXES(padding_0, padding_1, padding_2),
                                     .dilation = AXES(dilation_0, dilation_1, dilation_2),
                                     .output_padding =
                                         AXES(output_padding_0, output_padding_1, output_padding_2),
                                     .groups = groups });
}
