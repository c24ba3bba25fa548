#include "bench/bench.h"

#include <math.h>

/* ---- operands ---- */

int bench_fill(mlx_array *out, const int *shape, size_t n, mlx_dtype dtype, mlx_stream s)
{
    mlx_array low = mlx_array_new_float(0.5f), high = mlx_array_new_float(1.5f);
    mlx_array key = mlx_array_new(), uniform = mlx_array_new();
    int rc = mlx_random_key(&key, 7);

    rc |= mlx_random_uniform(&uniform, low, high, shape, n, MLX_FLOAT32, key, s);
    rc |= mlx_astype(out, uniform, dtype, s);
    rc |= mlx_array_eval(*out);
    mlx_array_free(low);
    mlx_array_free(high);
    mlx_array_free(key);
    mlx_array_free(uniform);
    return rc;
}

static int setup_vectors(struct bench_state *s)
{
    int n = (int)(s->bytes / 4);
    int rc = bench_fill(&s->in[0], &n, 1, MLX_FLOAT32, s->stream);

    return rc | bench_fill(&s->in[1], &n, 1, MLX_FLOAT32, s->stream);
}

/* The largest power of two whose square fits the size: 8192 for 512 MB. */
static int square_edge(const struct bench_state *s)
{
    int edge = 1;

    while (4 * (size_t)edge * (size_t)edge * 4 <= s->bytes)
        edge *= 2;
    return edge;
}

static int setup_square(struct bench_state *s)
{
    int shape[2] = { square_edge(s), square_edge(s) };

    return bench_fill(&s->in[0], shape, 2, MLX_FLOAT32, s->stream);
}

static int setup_rows(struct bench_state *s)
{
    int n = square_edge(s), rc = setup_square(s);

    rc |= mlx_arange(&s->in[1], n - 1, -1, -1, MLX_INT32, s->stream);
    return rc | mlx_array_eval(s->in[1]);
}

#define ROW_WIDTH 1024
#define ROWS_OF_A_PLACE 16

/* n numbers below end. */
static int fill_numbers(mlx_array *out, int n, int end, mlx_stream s)
{
    mlx_array low = mlx_array_new_int(0), high = mlx_array_new_int(end), key = mlx_array_new();
    int rc = mlx_random_key(&key, 11);

    rc |= mlx_random_randint(out, low, high, &n, 1, MLX_INT32, key, s);
    rc |= mlx_array_eval(*out);
    mlx_array_free(low);
    mlx_array_free(high);
    mlx_array_free(key);
    return rc;
}

/* A table of rows, and as many numbers of them. */
static int setup_gather_rows(struct bench_state *s)
{
    int shape[2] = { (int)(s->bytes / (2 * ROW_WIDTH)), ROW_WIDTH };
    int rc = bench_fill(&s->in[0], shape, 2, MLX_BFLOAT16, s->stream);

    return rc | fill_numbers(&s->in[1], shape[0], shape[0], s->stream);
}

/* A table, numbers of its rows, and a row for each number. */
static int setup_scatter_rows(struct bench_state *s)
{
    int n = (int)(s->bytes / (2 * ROW_WIDTH)), places = n / ROWS_OF_A_PLACE + 1;
    int table[2] = { places, ROW_WIDTH }, rows[3] = { n, 1, ROW_WIDTH };
    int rc = bench_fill(&s->in[0], table, 2, MLX_BFLOAT16, s->stream);

    rc |= fill_numbers(&s->in[1], n, places, s->stream);
    return rc | bench_fill(&s->in[2], rows, 3, MLX_BFLOAT16, s->stream);
}

static int setup_product(struct bench_state *s, mlx_dtype dtype)
{
    int shape[2] = { bench_options.edge, bench_options.edge };
    int rc = bench_fill(&s->in[0], shape, 2, dtype, s->stream);

    return rc | bench_fill(&s->in[1], shape, 2, dtype, s->stream);
}

static int setup_product_f32(struct bench_state *s)
{
    return setup_product(s, MLX_FLOAT32);
}

static int setup_product_f16(struct bench_state *s)
{
    return setup_product(s, MLX_FLOAT16);
}

static int setup_product_bf16(struct bench_state *s)
{
    return setup_product(s, MLX_BFLOAT16);
}

/* A layer of an image network: 3 x 3 weights over CONV_CHANNELS, as many after it. */
#define CONV_IMAGES 32
#define CONV_SIDE 56
#define CONV_CHANNELS 256

static int setup_conv(struct bench_state *s, mlx_dtype dtype)
{
    int images[4] = { CONV_IMAGES, CONV_SIDE, CONV_SIDE, CONV_CHANNELS };
    int weights[4] = { CONV_CHANNELS, 3, 3, CONV_CHANNELS };
    int rc = bench_fill(&s->in[0], images, 4, dtype, s->stream);

    return rc | bench_fill(&s->in[1], weights, 4, dtype, s->stream);
}

static int setup_conv_f32(struct bench_state *s)
{
    return setup_conv(s, MLX_FLOAT32);
}

static int setup_conv_bf16(struct bench_state *s)
{
    return setup_conv(s, MLX_BFLOAT16);
}

/* As many lines as fit into the size: 64 of a million for 512 MB. */
static int setup_lines(struct bench_state *s, int n, mlx_dtype dtype)
{
    size_t lines = s->bytes / (size_t)n / mlx_dtype_size(dtype);
    int shape[2] = { lines ? (int)lines : 1, n };

    return bench_fill(&s->in[0], shape, 2, dtype, s->stream);
}

static int setup_lines_1k(struct bench_state *s)
{
    return setup_lines(s, 1 << 10, MLX_COMPLEX64);
}

static int setup_lines_3k(struct bench_state *s)
{
    return setup_lines(s, 3000, MLX_COMPLEX64);
}

static int setup_lines_prime(struct bench_state *s)
{
    return setup_lines(s, 4099, MLX_COMPLEX64);
}

static int setup_lines_1m(struct bench_state *s)
{
    return setup_lines(s, 1 << 20, MLX_COMPLEX64);
}

static int setup_reals_1m(struct bench_state *s)
{
    return setup_lines(s, 1 << 20, MLX_FLOAT32);
}

/* ---- results ---- */

/* Two halves put together: nothing but a copy. */
static int build_copy(mlx_array *out, const struct bench_state *s)
{
    mlx_vector_array parts = mlx_vector_array_new();
    int half = (int)(mlx_array_size(s->in[0]) / 2), whole = 2 * half, zero = 0, one = 1;
    mlx_array part = mlx_array_new();
    int rc = mlx_slice(&part, s->in[0], &zero, 1, &half, 1, &one, 1, s->stream);

    rc |= mlx_vector_array_append_value(parts, part);
    rc |= mlx_slice(&part, s->in[0], &half, 1, &whole, 1, &one, 1, s->stream);
    rc |= mlx_vector_array_append_value(parts, part);
    rc |= mlx_concatenate(out, parts, s->stream);
    mlx_array_free(part);
    mlx_vector_array_free(parts);
    return rc;
}

static int build_add(mlx_array *out, const struct bench_state *s)
{
    return mlx_add(out, s->in[0], s->in[1], s->stream);
}

static int build_exp(mlx_array *out, const struct bench_state *s)
{
    return mlx_exp(out, s->in[0], s->stream);
}

/* Eight ops over two inputs, one result. */
static int build_chain(mlx_array *out, const struct bench_state *s)
{
    int rc = mlx_multiply(out, s->in[0], s->in[1], s->stream);

    rc |= mlx_add(out, *out, s->in[0], s->stream);
    rc |= mlx_sqrt(out, *out, s->stream);
    rc |= mlx_subtract(out, *out, s->in[1], s->stream);
    rc |= mlx_abs(out, *out, s->stream);
    rc |= mlx_maximum(out, *out, s->in[0], s->stream);
    rc |= mlx_square(out, *out, s->stream);
    return rc | mlx_negative(out, *out, s->stream);
}

static int build_sum(mlx_array *out, const struct bench_state *s)
{
    return mlx_sum(out, s->in[0], false, s->stream);
}

static int build_row_sum(mlx_array *out, const struct bench_state *s)
{
    return mlx_sum_axis(out, s->in[0], 1, false, s->stream);
}

static int build_col_sum(mlx_array *out, const struct bench_state *s)
{
    return mlx_sum_axis(out, s->in[0], 0, false, s->stream);
}

static int build_sort_rows(mlx_array *out, const struct bench_state *s)
{
    return mlx_sort_axis(out, s->in[0], 1, s->stream);
}

static int build_cumsum_rows(mlx_array *out, const struct bench_state *s)
{
    return mlx_cumsum(out, s->in[0], 1, false, true, s->stream);
}

static int build_softmax(mlx_array *out, const struct bench_state *s)
{
    return mlx_softmax_axis(out, s->in[0], -1, true, s->stream);
}

static int build_transpose(mlx_array *out, const struct bench_state *s)
{
    int rc = mlx_transpose(out, s->in[0], s->stream);

    return rc | mlx_contiguous(out, *out, false, s->stream);
}

static int build_matmul(mlx_array *out, const struct bench_state *s)
{
    return mlx_matmul(out, s->in[0], s->in[1], s->stream);
}

static int build_conv(mlx_array *out, const struct bench_state *s)
{
    return mlx_conv2d(out, s->in[0], s->in[1], 1, 1, 1, 1, 1, 1, 1, s->stream);
}

/* Every row, the last one first. */
static int build_gather(mlx_array *out, const struct bench_state *s)
{
    return mlx_take_axis(out, s->in[0], s->in[1], 0, s->stream);
}

static int build_gather_rows(mlx_array *out, const struct bench_state *s)
{
    return mlx_gather_single(out, s->in[0], s->in[1], 0, (int[]){ 1, ROW_WIDTH }, 2, s->stream);
}

static int build_scatter_add(mlx_array *out, const struct bench_state *s)
{
    return mlx_scatter_add_single(out, s->in[0], s->in[1], s->in[2], 0, s->stream);
}

static int build_fft(mlx_array *out, const struct bench_state *s)
{
    int n = mlx_array_dim(s->in[0], 1);

    return mlx_fft_fft(out, s->in[0], n, 1, MLX_FFT_NORM_BACKWARD, s->stream);
}

static int build_rfft(mlx_array *out, const struct bench_state *s)
{
    int n = mlx_array_dim(s->in[0], 1);

    return mlx_fft_rfft(out, s->in[0], n, 1, MLX_FFT_NORM_BACKWARD, s->stream);
}

/* ---- work of one result ---- */

static double one_operand(const struct bench_state *s)
{
    return (double)mlx_array_nbytes(s->in[0]);
}

static double elements(const struct bench_state *s)
{
    return (double)mlx_array_size(s->in[0]);
}

static double two_operands(const struct bench_state *s)
{
    return 2.0 * one_operand(s);
}

static double three_operands(const struct bench_state *s)
{
    return 3.0 * one_operand(s);
}

/* The rows, and the table twice. */
static double rows_and_table(const struct bench_state *s)
{
    return two_operands(s) + (double)mlx_array_nbytes(s->in[2]);
}

static double cube(const struct bench_state *s)
{
    double n = mlx_array_dim(s->in[0], 0);

    return 2.0 * n * n * n;
}

/* Products of the weights with each position. */
static double positions(const struct bench_state *s)
{
    double n = (double)mlx_array_size(s->in[0]) / CONV_CHANNELS;

    return 2.0 * n * (double)mlx_array_size(s->in[1]);
}

/* Of a transform by powers of two, as it is usually counted. */
static double complex_lines(const struct bench_state *s)
{
    return 5.0 * (double)mlx_array_size(s->in[0]) * log2(mlx_array_dim(s->in[0], 1));
}

static double real_lines(const struct bench_state *s)
{
    return complex_lines(s) / 2;
}

#define TB "TB/s", 1e12
#define TFLOP "TFLOP/s", 1e12
#define GELEM "Gelem/s", 1e9

const struct bench_case bench_cases[] = {
    { "copy", "concatenate two halves, f32", setup_vectors, build_copy, two_operands, TB, 4.0 },
    { "add", "a + b, f32", setup_vectors, build_add, three_operands, TB, 4.0 },
    { "exp", "exp(a), f32", setup_vectors, build_exp, two_operands, TB, 4.0 },
    { "chain", "eight elementwise ops fused, f32", setup_vectors, build_chain, three_operands, TB,
      4.0 },
    { "sum", "sum over all, f32", setup_vectors, build_sum, one_operand, TB, 3.9 },
    { "row_sum", "sum over rows, f32", setup_square, build_row_sum, one_operand, TB, 3.0 },
    { "col_sum", "sum over columns, f32", setup_square, build_col_sum, one_operand, TB, 3.0 },
    { "softmax", "softmax of rows, f32", setup_square, build_softmax, two_operands, TB, 3.0 },
    { "sort_rows", "rows in ascending order, f32", setup_square, build_sort_rows, elements, GELEM,
      8.0 },
    { "cumsum_rows", "running sums of rows, f32", setup_square, build_cumsum_rows, two_operands, TB,
      2.0 },
    { "transpose", "transposed copy, f32", setup_square, build_transpose, two_operands, TB, 2.2 },
    { "gather", "rows in another order, f32", setup_rows, build_gather, two_operands, TB, 0 },
    { "gather_rows", "random rows of 1024, bf16", setup_gather_rows, build_gather_rows,
      two_operands, TB, 2.8 },
    { "scatter_add", "rows of 1024 added to 1/16 as many, bf16", setup_scatter_rows,
      build_scatter_add, rows_and_table, TB, 2.8 },
    { "fft_1k", "lines of 2^10, complex", setup_lines_1k, build_fft, complex_lines, TFLOP, 0 },
    { "fft_3000", "lines of 3000, complex", setup_lines_3k, build_fft, complex_lines, TFLOP, 0 },
    { "fft_4099", "lines of a prime, complex", setup_lines_prime, build_fft, complex_lines, TFLOP,
      0 },
    { "fft_1m", "lines of 2^20, complex", setup_lines_1m, build_fft, complex_lines, TFLOP, 0 },
    { "rfft_1m", "lines of 2^20, real", setup_reals_1m, build_rfft, real_lines, TFLOP, 0 },
    { "matmul_f32", "square product", setup_product_f32, build_matmul, cube, TFLOP, 40.0 },
    { "matmul_f16", "square product", setup_product_f16, build_matmul, cube, TFLOP, 280.0 },
    { "matmul_bf16", "square product", setup_product_bf16, build_matmul, cube, TFLOP, 280.0 },
    { "conv2d_f32", "32 x 56 x 56 x 256, 3 x 3 weights", setup_conv_f32, build_conv, positions,
      TFLOP, 0 },
    { "conv2d_bf16", "32 x 56 x 56 x 256, 3 x 3 weights", setup_conv_bf16, build_conv, positions,
      TFLOP, 0 },
};

const size_t bench_case_count = sizeof bench_cases / sizeof bench_cases[0];
