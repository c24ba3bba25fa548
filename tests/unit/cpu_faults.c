/* Every allocation on the way from the graph through the CPU backend may fail: the result is an
 * error or the right value, and the stream works on. */
#include "eval/eval.h"
#include "graph/memory.h"
#include "support/arrays.h"

struct inputs {
    struct arr *a, *b, *index, *half;
};

typedef enum err (*graph_fn)(struct arr **out, const struct inputs *in, struct strm *s);

static enum err chain(struct arr **out, const struct inputs *in, struct strm *s)
{
    struct arr *sum = NULL;
    enum err err;

    TRY(ops_binary(&sum, OP_ADD, in->a, in->b, s));
    err = ops_unary(out, OP_EXP, sum, s);
out:
    arr_unref(&sum);
    return err;
}

static enum err concatenate(struct arr **out, const struct inputs *in, struct strm *s)
{
    struct arr *parts[3] = { in->a, in->b, in->a };

    return ops_concatenate(out, (struct arrs){ parts, 3 }, 1, s);
}

static enum err reshape_copy(struct arr **out, const struct inputs *in, struct strm *s)
{
    struct arr *turned = NULL;
    enum err err;

    TRY(ops_transpose(&turned, in->a, INTS_ALL, s));
    err = ops_flatten(out, turned, 0, -1, s);
out:
    arr_unref(&turned);
    return err;
}

static enum err pad(struct arr **out, const struct inputs *in, struct strm *s)
{
    struct arr *zero = NULL;
    enum err err;

    TRY(arr_new_number(&zero, 0, DT_FLOAT32));
    err =
        ops_pad_symmetric(out, in->a, 1, &(struct ops_pad){ .value = zero, .mode = "constant" }, s);
out:
    arr_unref(&zero);
    return err;
}

static enum err sum(struct arr **out, const struct inputs *in, struct strm *s)
{
    return ops_reduce(out, REDUCE_SUM, in->a, &(struct ops_axes){ INTS_ALL, false }, s);
}

static enum err sum_of_rows(struct arr **out, const struct inputs *in, struct strm *s)
{
    int32_t axis = 0;

    return ops_reduce(out, REDUCE_SUM, in->a, &(struct ops_axes){ { &axis, 1 }, false }, s);
}

static enum err take(struct arr **out, const struct inputs *in, struct strm *s)
{
    return ops_take(out, in->a, in->index, 0, s);
}

static enum err product(struct arr **out, const struct inputs *in, struct strm *s)
{
    struct arr *turned = NULL;
    enum err err;

    TRY(ops_transpose(&turned, in->half, INTS_ALL, s));
    err = ops_matmul(out, in->half, turned, s);
out:
    arr_unref(&turned);
    return err;
}

static enum err softmax(struct arr **out, const struct inputs *in, struct strm *s)
{
    int32_t last = -1;

    return ops_softmax(out, in->half, (struct ints){ &last, 1 }, true, s);
}

static enum err argmax(struct arr **out, const struct inputs *in, struct strm *s)
{
    return ops_arg_reduce(out, true, in->a, &(struct ops_axes){ INTS_ALL, false }, s);
}

static enum err bits(struct arr **out, const struct inputs *in, struct strm *s)
{
    struct arr *key = NULL;
    int32_t shape[] = { 5, 7 };
    enum err err;

    (void)in;
    TRY(ops_random_key(&key, 1));
    err = ops_random_bits(out, (struct ints){ shape, 2 }, 4, key, s);
out:
    arr_unref(&key);
    return err;
}

static const graph_fn graphs[] = { chain, concatenate, reshape_copy, pad,    sum, sum_of_rows,
                                   take,  product,     softmax,      argmax, bits };

/* Builds and evaluates; on success compares with the bytes of an undisturbed run. */
static bool attempt(graph_fn graph, const struct inputs *in, const void *want, size_t n)
{
    struct strm *s = test_stream();
    struct arr *out = NULL;

    mem_fail_after(n);
    enum err err = graph(&out, in, s);
    if (!err)
        err = eval_arrays(&out, 1, false);
    mem_fail_after(0);
    if (err) {
        assert_int_equal(err, ERR_NO_MEMORY);
    } else {
        void *got = arr_bytes(out);
        assert_memory_equal(got, want, arr_nbytes(out));
        mem_free(got);
    }
    arr_unref(&out);
    return err == ERR_OK;
}

static void test_every_allocation_fails(void **state)
{
    struct rng r = { 1 };
    struct inputs in = { arr_random(&r, SHAPE(400, 300), DT_FLOAT32, LAY_DENSE),
                         arr_random(&r, SHAPE(400, 300), DT_FLOAT32, LAY_DENSE),
                         arr_of((double complex[]){ 3, 1, 2 }, SHAPE(3), DT_INT32),
                         arr_random(&r, SHAPE(40, 30), DT_BFLOAT16, LAY_DENSE) };

    (void)state;
    for (size_t g = 0; g < ARRAY_LEN(graphs); g++) {
        struct arr *good = NULL;
        assert_ok(graphs[g](&good, &in, test_stream()));
        void *want = arr_bytes(good);
        bool done = false;
        for (size_t n = 1; !done && n < 200; n++) {
            memory_clear_cache(); /* cached buffers need no allocation */
            done = attempt(graphs[g], &in, want, n);
        }
        assert_true(done);
        mem_free(want);
        arr_unref(&good);
    }
    struct arr *all[] = { in.a, in.b, in.index, in.half };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        arr_unref(&all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation_fails) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
