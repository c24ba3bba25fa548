/* Every op between processes: dtypes, layouts, devices, groups. mpirun starts it.
 * usage: ops PROCESSES [gpu] */
#include "ranks.h"

#include "mlx/c/ext.h"

typedef int (*reduce_fn)(mlx_array *, const mlx_array, const mlx_distributed_group,
                         const mlx_stream);

static const mlx_dtype dtypes[] = { MLX_BOOL,     MLX_UINT8,    MLX_UINT16,  MLX_UINT32,
                                    MLX_UINT64,   MLX_INT8,     MLX_INT16,   MLX_INT32,
                                    MLX_INT64,    MLX_FLOAT16,  MLX_FLOAT32, MLX_FLOAT64,
                                    MLX_BFLOAT16, MLX_COMPLEX64 };
#define N_DTYPES (sizeof dtypes / sizeof dtypes[0])

static bool runs_on(mlx_dtype t, int stream)
{
    return stream == 0 || t != MLX_FLOAT64;
}

/* ---- what is expected, element by element ---- */

static int mine(int i)
{
    return element(rank, i);
}

static int total(int i)
{
    int v = 0;

    for (int r = 0; r < size; r++)
        v += element(r, i);
    return v;
}

static int most(int i)
{
    int v = 0;

    for (int r = 0; r < size; r++)
        v = element(r, i) > v ? element(r, i) : v;
    return v;
}

static int least(int i)
{
    int v = element(0, i);

    for (int r = 1; r < size; r++)
        v = element(r, i) < v ? element(r, i) : v;
    return v;
}

enum { N = 12 };
static int joined(int i)
{
    return element(i / N, i % N);
}

static int part(int i)
{
    return total(rank * (N / size) + i);
}

static const struct reduction {
    reduce_fn fn;
    int (*expected)(int i);
} reductions[] = { { mlx_distributed_all_sum, total },
                   { mlx_distributed_all_max, most },
                   { mlx_distributed_all_min, least } };

/* ---- dtypes and devices ---- */

static void test_place(void **state)
{
    mlx_array x = mlx_array_new_int(rank), y = mlx_array_new();

    (void)state;
    assert_true(size >= 1 && rank >= 0 && rank < size);
    assert_true(mlx_distributed_is_available(NULL));
    assert_true(mlx_distributed_is_available("mpi"));
    assert_false(mlx_distributed_is_available("ring"));
    assert_ok(mlx_distributed_all_gather(&y, x, everybody, cpu));
    assert_ok(mlx_array_eval(y));
    assert_int_equal(mlx_array_size(y), size);
    for (int i = 0; i < size; i++)
        assert_int_equal(mlx_array_data_int32(y)[i], i);
    mlx_array_free(x);
    mlx_array_free(y);
}

static void test_reductions(void **state)
{
    (void)state;
    for (int k = 0; k < n_streams; k++)
        for (size_t t = 0; t < N_DTYPES; t++)
            for (size_t r = 0; r < 3 && runs_on(dtypes[t], k); r++) {
                mlx_array x = vector_by(mine, N, dtypes[t], streams[k]), y = mlx_array_new();
                assert_ok(reductions[r].fn(&y, x, everybody, streams[k]));
                assert_same(y, vector_by(reductions[r].expected, N, dtypes[t], cpu));
                mlx_array_free(x);
            }
}

static void test_gather(void **state)
{
    (void)state;
    for (int k = 0; k < n_streams; k++)
        for (size_t t = 0; t < N_DTYPES; t++) {
            if (!runs_on(dtypes[t], k))
                continue;
            mlx_array x = vector_by(mine, N, dtypes[t], streams[k]), y = mlx_array_new();
            x = reshaped(x, (int[]){ 3, 4 }, 2, streams[k]);
            assert_ok(mlx_distributed_all_gather(&y, x, everybody, streams[k]));
            assert_same(y, reshaped(vector_by(joined, N * size, dtypes[t], cpu),
                                    (int[]){ 3 * size, 4 }, 2, cpu));
            mlx_array_free(x);
        }
}

static void test_scatter(void **state)
{
    (void)state;
    for (int k = 0; k < n_streams; k++)
        for (size_t t = 0; t < N_DTYPES; t++) {
            if (!runs_on(dtypes[t], k))
                continue;
            mlx_array x = vector_by(mine, N, dtypes[t], streams[k]), y = mlx_array_new();
            x = reshaped(x, (int[]){ 4, 3 }, 2, streams[k]);
            assert_ok(mlx_distributed_sum_scatter(&y, x, everybody, streams[k]));
            assert_same(y, reshaped(vector_by(part, N / size, dtypes[t], cpu),
                                    (int[]){ 4 / size, 3 }, 2, cpu));
            mlx_array_free(x);
        }
}

/* From everybody to the next one, in pairs that do not wait for each other. */
static int previous(int i)
{
    return element((rank + size - 1) % size, i);
}

static mlx_array passed_on(mlx_dtype t, mlx_stream at, bool like)
{
    mlx_array x = vector_by(mine, N, t, at), sent = mlx_array_new(), came = mlx_array_new();
    int from = (rank + size - 1) % size, to = (rank + 1) % size;

    for (int turn = 0; turn < 2; turn++)
        if ((rank + turn) % 2 == 0) {
            assert_ok(mlx_distributed_send(&sent, x, to, everybody, at));
            assert_ok(mlx_array_eval(sent));
        } else {
            assert_ok(like ? mlx_distributed_recv_like(&came, x, from, everybody, at)
                           : mlx_distributed_recv(&came, &(int){ N }, 1, t, from, everybody, at));
            assert_ok(mlx_array_eval(came));
        }
    assert_same(sent, x);
    return came;
}

static void test_messages(void **state)
{
    (void)state;
    if (size == 1)
        return;
    for (int k = 0; k < n_streams; k++)
        for (size_t t = 0; t < N_DTYPES; t++)
            if (runs_on(dtypes[t], k))
                assert_same(passed_on(dtypes[t], streams[k], t % 2),
                            vector_by(previous, N, dtypes[t], cpu));
}

static int products(int i)
{
    int v = 0;

    for (int r = 0; r < size; r++)
        v += element(r, i) * (element(r, i) - 1);
    return v;
}

/* What reads on a GPU what the CPU has brought, and the other way round, in one graph. */
static void test_gpu(void **state)
{
    uint64_t before = 0, after = 0;

    (void)state;
    if (n_streams == 1)
        return;
    assert_ok(mlx_stats_get(&before, "dispatches"));
    for (int i = 0; i < 3; i++) {
        mlx_array x = vector_by(mine, N, MLX_FLOAT32, streams[1]), y = mlx_array_new();
        assert_ok(mlx_multiply(&y, x, x, streams[1]));
        assert_ok(mlx_subtract(&x, y, x, streams[1]));
        assert_ok(mlx_distributed_all_sum(&y, x, everybody, streams[1]));
        assert_ok(mlx_multiply(&y, y, y, streams[1]));
        assert_ok(mlx_distributed_all_max(&y, y, everybody, streams[1]));
        assert_ok(mlx_sqrt(&y, y, streams[1]));
        assert_same(y, vector_by(products, N, MLX_FLOAT32, cpu));
        mlx_array_free(x);
    }
    assert_ok(mlx_stats_get(&after, "dispatches"));
    assert_true(after >= before + (size == 1 ? 1 : 9)); /* alone it is one graph of the GPU */
}

/* ---- layouts ---- */

/* Views of a 4 x 3 array, all of 12 elements or of none. */
enum view { TRANSPOSED, REVERSED, STRETCHED, STEPPED, NUMBER, EMPTY, VIEWS };

static mlx_array view_of(mlx_array base, enum view v, mlx_stream at)
{
    mlx_array a = mlx_array_new(), column = mlx_array_new();

    if (v == TRANSPOSED)
        assert_ok(mlx_transpose(&a, base, at));
    else if (v == REVERSED)
        assert_ok(mlx_slice(&a, base, (int[]){ 3, 2 }, 2, (int[]){ -5, -4 }, 2, (int[]){ -1, -1 },
                            2, at));
    else if (v == STEPPED)
        assert_ok(
            mlx_slice(&a, base, (int[]){ 0, 0 }, 2, (int[]){ 4, 3 }, 2, (int[]){ 1, 2 }, 2, at));
    else if (v == EMPTY)
        assert_ok(
            mlx_slice(&a, base, (int[]){ 0, 0 }, 2, (int[]){ 4, 0 }, 2, (int[]){ 1, 1 }, 2, at));
    else
        assert_ok(mlx_slice(&column, base, (int[]){ 0, 1 }, 2, (int[]){ 4, 2 }, 2, (int[]){ 1, 1 },
                            2, at));
    if (v == STRETCHED)
        assert_ok(mlx_broadcast_to(&a, column, (int[]){ 4, 3 }, 2, at));
    if (v == NUMBER)
        assert_ok(mlx_max(&a, column, false, at));
    mlx_array_free(column);
    return a;
}

static mlx_array base_of(int r)
{
    int32_t v[N];

    for (int i = 0; i < N; i++)
        v[i] = 100 * r + i;
    return mlx_array_new_data(v, (int[]){ 4, 3 }, 2, MLX_INT32);
}

/* The view of every process's base, joined or added up on this one. */
static mlx_array together(enum view v, bool sum)
{
    mlx_vector_array list = mlx_vector_array_new();
    mlx_array res = mlx_array_new();

    for (int r = 0; r < size; r++) {
        mlx_array base = base_of(r), a = view_of(base, v, cpu);
        assert_ok(mlx_expand_dims(&a, a, 0, cpu));
        assert_ok(mlx_vector_array_append_value(list, a));
        mlx_array_free(base);
        mlx_array_free(a);
    }
    assert_ok(mlx_concatenate_axis(&res, list, 0, cpu));
    if (sum)
        assert_ok(mlx_sum_axis(&res, res, 0, false, cpu));
    else if (mlx_array_ndim(res) > 1)
        assert_ok(mlx_flatten(&res, res, 0, 1, cpu));
    mlx_vector_array_free(list);
    return res;
}

static void test_layouts(void **state)
{
    (void)state;
    for (int k = 0; k < n_streams; k++)
        for (int v = 0; v < VIEWS; v++) {
            if (size == 1 && v == NUMBER) /* which a group of one leaves alone */
                continue;
            mlx_array base = base_of(rank);
            mlx_array x = view_of(base, (enum view)v, streams[k]), y = mlx_array_new();
            assert_ok(mlx_distributed_all_sum(&y, x, everybody, streams[k]));
            assert_same(y, together((enum view)v, true));
            y = mlx_array_new();
            assert_ok(mlx_distributed_all_gather(&y, x, everybody, streams[k]));
            assert_same(y, together((enum view)v, false));
            mlx_array_free(base);
            mlx_array_free(x);
        }
}

/* An array that nobody else needs is written over, one that somebody holds is not. */
static void test_in_place(void **state)
{
    uint64_t before = 0, after = 0;
    mlx_array x = vector_by(mine, N, MLX_INT32, cpu), y = mlx_array_new();

    (void)state;
    if (size == 1) {
        mlx_array_free(x);
        return;
    }
    assert_ok(mlx_array_eval(x));
    assert_ok(mlx_distributed_all_sum(&y, x, everybody, cpu));
    assert_same(y, vector_by(total, N, MLX_INT32, cpu));
    assert_same(x, vector_by(mine, N, MLX_INT32, cpu));
    x = vector_by(mine, N, MLX_INT64, cpu); /* the cast's result is nobody's but the sum's */
    assert_ok(mlx_distributed_all_sum(&x, x, everybody, cpu));
    assert_ok(mlx_stats_get(&before, "donations"));
    assert_ok(mlx_array_eval(x));
    assert_ok(mlx_stats_get(&after, "donations"));
    assert_int_equal(after, before + 1);
    assert_same(x, vector_by(total, N, MLX_INT64, cpu));
}

/* NaN wins, and of complex numbers the real part counts first. */
static void test_order(void **state)
{
    static const mlx_dtype floats[] = { MLX_FLOAT16, MLX_FLOAT32, MLX_FLOAT64, MLX_BFLOAT16 };

    (void)state;
    for (size_t t = 0; t < 4; t++)
        for (size_t r = 1; r < 3; r++) {
            float v = rank == size - 1 ? NAN : (float)rank, nan = NAN;
            mlx_array x = cast(vector_of(&v, 1), floats[t], cpu), y = mlx_array_new();
            assert_ok(reductions[r].fn(&y, x, everybody, cpu));
            assert_same(y, cast(vector_of(&nan, 1), floats[t], cpu));
            mlx_array_free(x);
        }
    float z[2] = { (float)(rank / 2), (float)(rank % 2 ? -rank : rank) };
    float last[2] = { (float)((size - 1) / 2), (float)(size == 1 ? 0 : size - 2) };
    mlx_array x = mlx_array_new_data(z, &(int){ 1 }, 1, MLX_COMPLEX64), y = mlx_array_new();
    assert_ok(mlx_distributed_all_max(&y, x, everybody, cpu));
    assert_same(y, mlx_array_new_data(last, &(int){ 1 }, 1, MLX_COMPLEX64));
    mlx_array_free(x);
}

/* ---- sizes and numbers ---- */

/* Longer than what libraries send at once, and cut into pieces of our own. */
static void test_large(void **state)
{
    const int n = 1 << 20;
    static const char *const chunks[] = { NULL, "65537" };

    (void)state;
    for (int c = 0; c < 2; c++) {
        mlx_array x = mlx_array_new(), y = mlx_array_new(), z = mlx_array_new(),
                  factor = mlx_array_new_int(size);
        assert_ok(mlx_setting_set("MLX_DIST_CHUNK", chunks[c]));
        assert_ok(mlx_arange(&x, 0, n, 1, MLX_INT32, cpu));
        assert_ok(mlx_distributed_all_sum(&y, x, everybody, cpu));
        assert_ok(mlx_multiply(&z, x, factor, cpu));
        assert_same(y, z);
        y = mlx_array_new(), z = mlx_array_new();
        assert_ok(mlx_distributed_sum_scatter(&y, x, everybody, cpu));
        assert_ok(mlx_distributed_all_gather(&y, y, everybody, cpu));
        assert_ok(mlx_multiply(&z, x, factor, cpu));
        assert_same(y, z);
        mlx_array_free(x);
        mlx_array_free(factor);
    }
    assert_ok(mlx_setting_set("MLX_DIST_CHUNK", NULL));
}

static void test_pieces(void **state)
{
    assert_ok(mlx_setting_set("MLX_DIST_CHUNK", "5"));
    test_reductions(state);
    test_gather(state);
    test_scatter(state);
    test_messages(state);
    assert_ok(mlx_setting_set("MLX_DIST_CHUNK", NULL));
}

static void test_unchecked(void **state)
{
    assert_ok(mlx_setting_set("MLX_DIST_CHECK", "0"));
    test_reductions(state);
    assert_ok(mlx_setting_set("MLX_DIST_CHECK", NULL));
}

/* Many in one graph, which nothing but the graph puts in order: what each process does before them,
 * and when it would be ready, has no influence on it. */
static void test_order_of_many(void **state)
{
    enum { MANY = 40 };
    mlx_vector_array outs = mlx_vector_array_new();

    (void)state;
    for (int i = 0; i < MANY; i++) {
        mlx_array x = number((float)(i + rank)), y = mlx_array_new();
        assert_ok(mlx_full(&x, &(int){ N }, 1, x, MLX_FLOAT32, cpu));
        for (int k = 0; k < (i * (rank + 1)) % 4; k++)
            assert_ok(mlx_sort_axis(&x, x, 0, cpu));
        assert_ok(mlx_distributed_all_sum(&y, x, everybody, cpu));
        assert_ok(mlx_vector_array_append_value(outs, y));
        mlx_array_free(x);
        mlx_array_free(y);
    }
    assert_ok(mlx_eval(outs));
    for (int i = 0; i < MANY; i++) {
        mlx_array y = number((float)(size * i + size * (size - 1) / 2));
        assert_ok(mlx_full(&y, &(int){ N }, 1, y, MLX_FLOAT32, cpu));
        assert_same(get(outs, (size_t)i), y);
    }
    mlx_vector_array_free(outs);
}

/* Sends that wait for their receivers, on a stream of their own: everybody sends and receives at
 * once. */
static void test_streams(void **state)
{
    const int n = 1 << 18;
    mlx_device dev = mlx_device_new_type(MLX_CPU, 0);
    mlx_stream other = mlx_stream_new_device(dev);
    mlx_array x = mlx_array_new(), sent = mlx_array_new(), came = mlx_array_new();

    (void)state;
    if (size > 1) {
        mlx_array first = mlx_array_new_int(rank), expected = mlx_array_new();
        int from = (rank + size - 1) % size;
        assert_ok(mlx_full(&x, &n, 1, first, MLX_INT32, cpu));
        assert_ok(mlx_array_eval(x)); /* or the receiving stream would have to make it first */
        assert_ok(mlx_distributed_send(&sent, x, (rank + 1) % size, everybody, other));
        assert_ok(mlx_distributed_recv_like(&came, x, from, everybody, cpu));
        mlx_vector_array both = mlx_vector_array_new_data((mlx_array[]){ sent, came }, 2);
        assert_ok(mlx_async_eval(both));
        mlx_vector_array_free(both);
        assert_ok(mlx_array_set_int(&first, from));
        assert_ok(mlx_full(&expected, &n, 1, first, MLX_INT32, cpu));
        assert_same(came, expected);
        assert_same(sent, x);
        mlx_array_free(first);
    }
    mlx_stream_free(other);
    mlx_device_free(dev);
}

/* ---- groups ---- */

/* Those of equal parity, the last one first. */
static void test_split(void **state)
{
    mlx_distributed_group half = mlx_distributed_group_new(), alone = mlx_distributed_group_new();
    mlx_array x = mlx_array_new_int(rank + 1), y = mlx_array_new();
    int sum = 0, n = (size + 1 - rank % 2) / 2, value = 0;

    (void)state;
    if (size == 1) {
        assert_fails(mlx_distributed_group_split(&half, everybody, 0, 0));
        assert_non_null(strstr(errors.text, "Cannot split the distributed group further."));
        mlx_array_free(x);
        return;
    }
    for (int r = rank % 2; r < size; r += 2)
        sum += r + 1;
    assert_ok(mlx_distributed_group_split(&half, everybody, rank % 2, size - rank));
    assert_int_equal(mlx_distributed_group_size(half), n);
    assert_int_equal(mlx_distributed_group_rank(half), n - 1 - rank / 2);
    assert_ok(mlx_distributed_all_sum(&y, x, half, cpu));
    /* A handle that is gone before the work is done leaves the group to it. */
    mlx_distributed_group_free(half);
    assert_ok(mlx_array_item_int32(&value, y));
    assert_int_equal(value, sum);
    for (int i = 0; i < 3; i++) {
        assert_ok(mlx_distributed_group_split(&alone, everybody, rank, -1));
        assert_int_equal(mlx_distributed_group_size(alone), 1);
        assert_int_equal(mlx_distributed_group_rank(alone), 0);
    }
    assert_ok(mlx_distributed_all_sum(&y, x, alone, cpu));
    assert_ok(mlx_array_item_int32(&value, y));
    assert_int_equal(value, rank + 1);
    assert_fails(mlx_distributed_send(&y, x, 0, alone, cpu));
    assert_non_null(strstr(errors.text, "Cannot send to a singleton group"));
    assert_fails(mlx_distributed_group_split(&alone, everybody, -1, 0));
    assert_non_null(strstr(errors.text, "MPI could not split this group"));
    mlx_distributed_group_free(alone);
    mlx_array_free(x);
    mlx_array_free(y);
}

static void test_wrong(void **state)
{
    mlx_array x = vector_by(mine, 5, MLX_FLOAT32, cpu), y = mlx_array_new();
    char text[128];

    (void)state;
    assert_fails(mlx_distributed_recv(&y, (int[]){ 2, -1 }, 2, MLX_INT8, 0, everybody, cpu));
    if (size == 1) {
        assert_fails(mlx_distributed_send(&y, x, 0, everybody, cpu));
        assert_non_null(strstr(errors.text, "Cannot send to a singleton group"));
        assert_fails(mlx_distributed_recv_like(&y, x, 0, everybody, cpu));
        assert_non_null(strstr(errors.text, "Cannot recv from a singleton group"));
        mlx_array_free(x);
        return;
    }
    assert_fails(mlx_distributed_send(&y, x, size, everybody, cpu));
    snprintf(text, sizeof text, "Invalid destination=%d for a group of size %d", size, size);
    assert_non_null(strstr(errors.text, text));
    assert_fails(mlx_distributed_recv_like(&y, x, -1, everybody, cpu));
    snprintf(text, sizeof text, "Invalid source=-1 for a group of size %d", size);
    assert_non_null(strstr(errors.text, text));
    assert_fails(mlx_distributed_sum_scatter(&y, x, everybody, cpu));
    snprintf(text, sizeof text, "[sum_scatter] Invalid shape=(5) for a group of size %d", size);
    assert_non_null(strstr(errors.text, text));
    mlx_array_free(x);
    mlx_array_free(y);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),         cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_gather),        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_messages),      cmocka_unit_test(test_gpu),
        cmocka_unit_test(test_layouts),       cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_order),         cmocka_unit_test(test_large),
        cmocka_unit_test(test_pieces),        cmocka_unit_test(test_unchecked),
        cmocka_unit_test(test_order_of_many), cmocka_unit_test(test_streams),
        cmocka_unit_test(test_split),         cmocka_unit_test(test_wrong),
    };

    if (start(argc, argv))
        return 1;
    int failed = cmocka_run_group_tests_name("dist_ops", tests, NULL, NULL);
    finish();
    return failed;
}
