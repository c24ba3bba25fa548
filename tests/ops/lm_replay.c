/* Graphs that are run again: the same bits as graphs built anew, and who gets whose memory. */
#include "eval/replay.h"

#include "eval/wait.h"
#include "support/gpu.h"
#include "support/testing.h"

#include "backend/backend.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "lm/model/cache.h"

enum { HEADS = 2, ROOM = 24, DIM = 64, FIRST = 3, IN = 3 };

static struct strm *streams[2];
static int n_streams;

/* ---- one step of an attention with a cache ---- */

static struct arr *random_array(struct rng *r, const int32_t *shape, size_t ndim)
{
    struct shp s = { .ndim = (int)ndim };
    struct arr *a = NULL;

    memcpy(s.d, shape, ndim * sizeof *shape);
    size_t n = shp_size(&s);
    float *v = mem_alloc_array(n, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)rng_below(r, 2048) / 1024 - 1;
    assert_ok(arr_new_data(&a, v, &s, DT_FLOAT32));
    mem_free(v);
    return a;
}

struct step {
    struct arr *in[IN];  /* x, keys, values */
    struct arr *out[IN]; /* y, keys, values */
    struct arr *matrix;
    struct arr *inner; /* the attention's result, borrowed from the graph */
};

static void step_fini(struct step *s)
{
    for (int i = 0; i < IN; i++) {
        arr_unref(&s->in[i]);
        arr_unref(&s->out[i]);
    }
    arr_unref(&s->matrix);
}

/* x [1, HEADS, 1, DIM] at a position: the new key is a turned x, the value twice x, the result is
 * multiplied twice with the matrix. */
static enum err build(struct step *s, struct lm_moves *moves, int position, struct strm *strm)
{
    static const float base = 10000;
    struct ops_rope turn = { .dims = DIM, .base = &base, .scale = 1, .offset = position };
    struct lm_cache_layer layer = { arr_ref(s->in[1]), arr_ref(s->in[2]) };
    struct lm_cache cache = { .layer = &layer, .n_layers = 1, .used = position };
    struct lm_graph g;

    graph_begin(&g, strm);
    struct arr *x = s->in[0], *q = graph_moves(&g, g_rope(&g, x, &turn), LM_CACHE_AXIS);
    struct lm_cache_view all = cache_append(&g, &cache, 0, q, g_scale(&g, x, 2));
    struct arr *y = NULL;
    if (!g.err)
        y = g_sdpa(&g,
                   &(struct ops_sdpa){
                       .q = q, .k = all.keys, .v = all.values, .scale = 0.125f, .mask_mode = "" });
    s->inner = y;
    graph_keep(&g, &s->out[0], g_matmul(&g, g_matmul(&g, y, s->matrix), s->matrix));
    s->out[1] = layer.keys;
    s->out[2] = layer.values;
    if (moves) {
        *moves = g.moves;
        g.moves = (struct lm_moves){ 0 };
    }
    return graph_end(&g);
}

static enum err make_replay(struct replay **r, struct step *like, int position, struct strm *strm)
{
    struct step s = { .matrix = arr_ref(like->matrix) };
    struct lm_moves moves = { 0 };
    enum err err = ERR_OK;

    for (int i = 0; i < IN; i++)
        TRY(replay_placeholder(&s.in[i], like->in[i], strm));
    TRY(build(&s, &moves, position, strm));
    err = replay_new(r, &(struct replay_params){ .in = s.in,
                                                 .n_in = IN,
                                                 .out = s.out,
                                                 .n_out = IN,
                                                 .move = moves.v,
                                                 .n_moves = moves.n });
    like->inner = s.inner;
out:
    step_fini(&s);
    VEC_FINI(&moves);
    return err;
}

static void make_inputs(struct step *s, struct rng *r)
{
    s->in[0] = random_array(r, SHAPE(1, HEADS, 1, DIM));
    s->in[1] = random_array(r, SHAPE(1, HEADS, ROOM, DIM));
    s->in[2] = random_array(r, SHAPE(1, HEADS, ROOM, DIM));
    s->matrix = random_array(r, SHAPE(DIM, DIM));
}

static void assert_same(struct arr *a, struct arr *b)
{
    const void *x, *y;

    assert_true(arr_same_shape(a, b));
    assert_ok(arr_host(&x, a));
    assert_ok(arr_host(&y, b));
    assert_memory_equal(x, y, arr_nbytes(a));
}

/* Puts the caches that a run made in the place of the old ones, and another x before them. */
static void go_on(struct step *s, struct rng *r)
{
    for (int i = 0; i < IN; i++) {
        arr_unref(&s->in[i]);
        s->in[i] = i ? s->out[i] : NULL;
        s->out[i] = i ? NULL : s->out[i];
    }
    arr_unref(&s->out[0]);
    s->in[0] = random_array(r, SHAPE(1, HEADS, 1, DIM));
}

/* ---- tests ---- */

/* Positions one after the other, a jump, and a way back. In between the storage of an inner array
 * goes, so that a step that was encoded as before has to look again. */
static void check_positions(struct strm *strm)
{
    static const int positions[] = { 3, 4, 5, 6, 11, 12, 2, 3, 23 };
    struct step replayed = { 0 }, built = { 0 };
    struct replay *r = NULL;
    struct arr *first = NULL, *want_first = NULL;
    struct buf *taken = NULL; /* so that it does not come back */
    uint64_t repeated[ARRAY_LEN(positions)];
    int at = FIRST;

    make_inputs(&replayed, &(struct rng){ 1 });
    make_inputs(&built, &(struct rng){ 1 });
    assert_ok(make_replay(&r, &replayed, FIRST, strm));
    uint64_t replays = stat_get(STAT_REPLAYS), dispatches = stat_get(STAT_DISPATCHES);
    for (size_t i = 0; i < ARRAY_LEN(positions); i++) {
        if (i == 6) {
            taken = buf_ref(replayed.inner->buf);
            arr_give_back(replayed.inner);
        }
        repeated[i] = stat_get(STAT_REPEATED_STEPS);
        assert_ok(replay_run(r, replayed.in, replayed.out, positions[i] - at));
        repeated[i] = stat_get(STAT_REPEATED_STEPS) - repeated[i];
        at = positions[i];
        assert_ok(eval_arrays(replayed.out, IN, false));
        assert_ok(build(&built, NULL, at, strm));
        assert_ok(eval_arrays(built.out, IN, false));
        for (int k = 0; k < IN; k++)
            assert_same(replayed.out[k], built.out[k]);
        if (i == 0) {
            first = arr_ref(replayed.out[0]);
            want_first = arr_ref(built.out[0]);
        }
        go_on(&replayed, &(struct rng){ i });
        go_on(&built, &(struct rng){ i });
    }
    assert_int_equal(stat_get(STAT_REPLAYS) - replays, ARRAY_LEN(positions));
    if (strm->be->notes_new) {
        assert_int_equal(repeated[2], 0);
        assert_true(repeated[3] > 0 && repeated[5] == repeated[3] && repeated[6] < repeated[5]);
    }
    if (strm->dev.type == DEV_GPU)
        assert_true(stat_get(STAT_DISPATCHES) > dispatches);
    assert_same(first, want_first); /* later runs left it alone */
    arr_unref(&first);
    arr_unref(&want_first);
    buf_unref(&taken);
    step_fini(&replayed);
    step_fini(&built);
    replay_destroy(&r);
}

/* A cache that nobody else holds is written in place; one that somebody holds is not. */
static void check_memory(struct strm *strm)
{
    struct step s = { 0 };
    struct replay *r = NULL;

    make_inputs(&s, &(struct rng){ 2 });
    assert_ok(make_replay(&r, &s, FIRST, strm));
    assert_ok(replay_run(r, s.in, s.out, 0)); /* brings the bytes to the device */
    go_on(&s, &(struct rng){ 3 });
    const struct buf *keys = s.in[1]->buf, *values = s.in[2]->buf;
    struct arr *held = arr_ref(s.in[2]);
    assert_ok(replay_run(r, s.in, s.out, 1));
    assert_ptr_equal(s.out[1]->buf, keys);
    assert_ptr_not_equal(s.out[2]->buf, values);
    go_on(&s, &(struct rng){ 4 });
    /* The work is in flight when everything goes. */
    assert_ok(replay_run(r, s.in, s.out, 1));
    replay_destroy(&r);
    assert_ok(eval_arrays(s.out, IN, true));
    arr_unref(&held);
    step_fini(&s);
    assert_ok(strm_synchronize(strm));
}

/* What the graph alone holds is not written over, however well it would fit. */
static void check_constants(struct strm *strm)
{
    struct arr *x = NULL, *place = NULL, *constant = NULL, *y = NULL, *out = NULL;
    struct replay *r = NULL;
    const void *p;

    assert_ok(arr_new_number(&x, 1, DT_FLOAT32));
    assert_ok(replay_placeholder(&place, x, strm));
    assert_ok(arr_new_number(&constant, 5, DT_FLOAT32));
    assert_ok(ops_unary(&y, OP_NEGATIVE, constant, strm));
    arr_unref(&constant);
    assert_ok(ops_binary(&out, OP_ADD, y, place, strm));
    arr_unref(&y);
    assert_ok(replay_new(
        &r, &(struct replay_params){ .in = &place, .n_in = 1, .out = &out, .n_out = 1 }));
    arr_unref(&place);
    arr_unref(&out);
    for (int i = 0; i < 3; i++) {
        struct arr *in = arr_ref(x);
        assert_ok(replay_run(r, &in, &out, 0));
        assert_ok(arr_host(&p, out));
        assert_true(*(const float *)p == -4);
        arr_unref(&out);
    }
    arr_unref(&x);
    replay_destroy(&r);
}

static void test_runs(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++) {
        check_positions(streams[i]);
        check_memory(streams[i]);
        check_constants(streams[i]);
    }
}

/* An input from another stream is waited for. */
static void test_other_stream(void **state)
{
    struct arr *x = NULL, *slow = NULL, *place = NULL, *out = NULL;
    struct replay *r = NULL;
    const void *p;

    (void)state;
    for (int i = 0; i < n_streams; i++) {
        struct strm *other = streams[n_streams - 1 - i];
        assert_ok(arr_new_number(&x, 2, DT_FLOAT32));
        assert_ok(replay_placeholder(&place, x, streams[i]));
        assert_ok(ops_unary(&out, OP_SQUARE, place, streams[i]));
        assert_ok(replay_new(
            &r, &(struct replay_params){ .in = &place, .n_in = 1, .out = &out, .n_out = 1 }));
        arr_unref(&out);
        arr_unref(&place);
        assert_ok(ops_unary(&slow, OP_NEGATIVE, x, other));
        assert_ok(eval_arrays(&slow, 1, true));
        assert_ok(replay_run(r, &slow, &out, 0));
        assert_null(slow);
        assert_ok(arr_host(&p, out));
        assert_true(*(const float *)p == 4);
        arr_unref(&out);
        arr_unref(&x);
        replay_destroy(&r);
    }
}

/* ---- what could go wrong when steps are encoded as before ---- */

/* A matrix on the stream's device. */
static struct arr *device_array(struct rng *r, const int32_t *shape, size_t ndim, struct strm *s)
{
    struct arr *host = random_array(r, shape, ndim), *a = NULL;

    assert_ok(ops_unary(&a, OP_NEGATIVE, host, s));
    assert_ok(eval_arrays(&a, 1, false));
    arr_unref(&host);
    return a;
}

/* A graph of x and a constant. */
typedef struct arr *(*graph_fn)(struct lm_graph *g, struct arr *x, struct arr *constant, int n);

static struct arr *graph_of(graph_fn fn, struct lm_moves *moves, struct arr *x,
                            struct arr *constant, int n, struct strm *s)
{
    struct arr *out = NULL;
    struct lm_graph g;

    graph_begin(&g, s);
    graph_keep(&g, &out, fn(&g, x, constant, n));
    *moves = g.moves;
    g.moves = (struct lm_moves){ 0 };
    assert_ok(graph_end(&g));
    return out;
}

/* Runs fn with x[i] at n = 3 + i, built anew and replayed. other: arrays made after every run, of
 * which nobody else may write a byte. */
static void check_same(graph_fn fn, struct arr *const *x, int n_runs, struct arr *constant,
                       struct strm *s)
{
    struct arr *place = NULL, *other[32] = { 0 };
    struct lm_moves moves = { 0 };
    struct replay *r = NULL;

    assert_ok(replay_placeholder(&place, x[0], s));
    struct arr *out = graph_of(fn, &moves, place, constant, 3, s);
    assert_ok(replay_new(&r, &(struct replay_params){ .in = &place,
                                                      .n_in = 1,
                                                      .out = &out,
                                                      .n_out = 1,
                                                      .move = moves.v,
                                                      .n_moves = moves.n }));
    arr_unref(&place);
    arr_unref(&out);
    VEC_FINI(&moves);
    for (int i = 0; i < n_runs; i++) {
        struct arr *in = arr_ref(x[i]), *got = NULL;
        struct arr *want = graph_of(fn, &moves, x[i], constant, 3 + i, s);
        VEC_FINI(&moves);
        assert_ok(eval_arrays(&want, 1, false));
        assert_ok(replay_run(r, &in, &got, i > 0));
        assert_ok(eval_arrays(&got, 1, false));
        assert_same(got, want);
        for (int k = 4 * i; k < 4 * i + 4; k++)
            other[k] = device_array(&(struct rng){ (uint64_t)k }, SHAPE(32, 32), s);
        arr_unref(&got);
        arr_unref(&want);
    }
    for (int k = 0; k < 4 * n_runs; k++) {
        struct arr *want = device_array(&(struct rng){ (uint64_t)k }, SHAPE(32, 32), s);
        assert_same(other[k], want);
        arr_unref(&want);
        arr_unref(&other[k]);
    }
    replay_destroy(&r);
}

static struct arr *attend_to_constant(struct lm_graph *g, struct arr *x, struct arr *all, int n)
{
    struct arr *used = graph_moves(g, g_slice(g, all, 2, 0, n), 2);
    struct arr *y = g_sdpa(
        g, &(struct ops_sdpa){
               .q = g_scale(g, x, 2), .k = used, .v = used, .scale = 0.125f, .mask_mode = "" });

    return g_softmax(g, g_softmax(g, y, true), true);
}

/* The result takes over the storage of the second product, so that only the first one's stays. */
static struct arr *multiply_twice(struct lm_graph *g, struct arr *x, struct arr *matrix)
{
    struct arr *once = g_softmax(g, g_matmul(g, x, matrix), true);

    return g_softmax(g, g_matmul(g, once, matrix), true);
}

static struct arr *multiply_exp(struct lm_graph *g, struct arr *x, struct arr *matrix, int n)
{
    (void)n;
    return multiply_twice(g, g_unary(g, OP_EXP, x), matrix);
}

/* Every second element of every second row: the product makes a copy for itself. */
static struct arr *multiply_part(struct lm_graph *g, struct arr *x, struct arr *matrix, int n)
{
    struct ops_slice part = { { SHAPE(0, 0) }, { SHAPE(64, 64) }, { SHAPE(2, 2) } };
    struct arr *y = g_softmax(g, g_unary(g, OP_EXP, x), true), *v = NULL;

    (void)n;
    enum err err = ops_slice(&v, y, &part, g->s);
    return multiply_twice(g, graph_own(g, v, err), matrix);
}

static void check_steady(struct strm *s)
{
    struct rng rng = { 11 };
    struct arr *all = device_array(&rng, SHAPE(1, HEADS, ROOM, DIM), s);
    struct arr *q = device_array(&rng, SHAPE(1, HEADS, 1, DIM), s);
    struct arr *x = device_array(&rng, SHAPE(64, 64), s), *turned = NULL;
    struct arr *matrix = device_array(&rng, SHAPE(64, 64), s);
    struct arr *small = device_array(&rng, SHAPE(32, 32), s);

    assert_ok(ops_transpose(&turned, x, (struct ints){ SHAPE(1, 0) }, s));
    assert_ok(eval_arrays(&turned, 1, false));
    check_same(attend_to_constant, (struct arr *[]){ q, q, q, q, q, q }, 6, all, s);
    check_same(multiply_exp, (struct arr *[]){ x, x, x, x, turned, turned, turned, x }, 8, matrix,
               s);
    check_same(multiply_part, (struct arr *[]){ x, x, x, x, x, x }, 6, small, s);
    arr_unref(&all);
    arr_unref(&q);
    arr_unref(&x);
    arr_unref(&turned);
    arr_unref(&matrix);
    arr_unref(&small);
}

/* A sum writes over its first input, or, where somebody holds that, over the product inside. */
static void check_held_input(struct strm *s)
{
    struct rng rng = { 12 };
    struct arr *matrix = device_array(&rng, SHAPE(64, 64), s), *place[2] = { NULL, NULL };
    struct arr *out = NULL, *result = NULL, *want = NULL;
    struct replay *r = NULL;
    struct lm_graph g;

    for (int k = 0; k < 2; k++)
        assert_ok(replay_placeholder(&place[k], matrix, s));
    graph_begin(&g, s);
    graph_keep(&g, &out, g_binary(&g, OP_ADD, place[0], g_matmul(&g, place[1], matrix)));
    assert_ok(graph_end(&g));
    assert_ok(
        replay_new(&r, &(struct replay_params){ .in = place, .n_in = 2, .out = &out, .n_out = 1 }));
    arr_unref(&place[0]);
    arr_unref(&place[1]);
    arr_unref(&out);
    for (int i = 0; i < 6; i++) {
        struct arr *in[] = { device_array(&rng, SHAPE(64, 64), s),
                             device_array(&rng, SHAPE(64, 64), s) };
        struct arr *held = i == 3 ? arr_ref(in[0]) : NULL;
        assert_ok(replay_run(r, in, &out, 0));
        assert_ok(eval_arrays(&out, 1, false));
        if (i == 3) {
            result = arr_ref(out);
            assert_ok(ops_unary(&want, OP_NEGATIVE, result, s));
            assert_ok(eval_arrays(&want, 1, false));
        }
        arr_unref(&held);
        arr_unref(&out);
    }
    assert_ok(ops_unary(&out, OP_NEGATIVE, result, s));
    assert_same(out, want);
    arr_unref(&out);
    arr_unref(&result);
    arr_unref(&want);
    arr_unref(&matrix);
    replay_destroy(&r);
}

static void test_steady(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++) {
        check_steady(streams[i]);
        check_held_input(streams[i]);
    }
}

/* A constant that another stream is still making is waited for. */
static void test_late_constant(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++) {
        struct strm *s = streams[i], *other = streams[n_streams - 1 - i];
        struct rng rng = { 13 };
        struct arr *a = random_array(&rng, SHAPE(300, 300)), *late = NULL, *place = NULL;
        struct arr *out = NULL, *got = NULL, *one = NULL;
        struct replay *r = NULL;
        struct lm_graph g;

        graph_begin(&g, other);
        struct arr *x = a;
        for (int k = 0; k < 6; k++)
            x = g_softmax(&g, g_matmul(&g, x, a), true);
        graph_keep(&g, &late, x);
        assert_ok(graph_end(&g));
        assert_ok(eval_arrays(&late, 1, true));
        assert_ok(arr_new_number(&one, 0, DT_FLOAT32));
        assert_ok(replay_placeholder(&place, one, s));
        assert_ok(ops_binary(&out, OP_ADD, late, place, s));
        assert_ok(replay_new(
            &r, &(struct replay_params){ .in = &place, .n_in = 1, .out = &out, .n_out = 1 }));
        assert_ok(replay_run(r, &one, &got, 0));
        assert_ok(eval_arrays(&got, 1, false));
        assert_same(got, late);
        arr_unref(&a);
        arr_unref(&late);
        arr_unref(&place);
        arr_unref(&out);
        arr_unref(&got);
        replay_destroy(&r);
    }
}

/* ---- what cannot be ---- */

/* At the last position all of the cache is used: the update moves in place of a slice, too. */
static void test_last_position(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++) {
        struct step s = { 0 };
        struct replay *r = NULL;

        make_inputs(&s, &(struct rng){ 14 });
        assert_fails(ERR_ARG, make_replay(&r, &s, ROOM - 1, streams[i]));
        step_fini(&s);
    }
}

static void test_refusals(void **state)
{
    struct arr *x = NULL, *place = NULL, *unused = NULL, *y = NULL;
    struct replay *r = NULL;
    struct rng rng = { 5 };

    (void)state;
    for (int i = 0; i < n_streams; i++) {
        struct strm *s = streams[i];
        struct lm_graph g;
        x = random_array(&rng, SHAPE(1, 1, 8, 4));
        assert_ok(replay_placeholder(&place, x, s));
        assert_ok(replay_placeholder(&unused, x, s));
        graph_begin(&g, s);
        struct arr *part = g_slice(&g, place, 2, 0, 3);
        graph_keep(&g, &y, g_scale(&g, part, 2));
        struct replay_params p = { .in = &place, .n_in = 1, .out = &y, .n_out = 1, .n_moves = 1 };
        p.move = &(struct replay_move){ part, 2 };
        assert_fails(ERR_UNSUPPORTED, replay_new(&r, &p)); /* the product's shape would change */
        p.move = &(struct replay_move){ y, 2 };
        assert_fails(ERR_ARG, replay_new(&r, &p)); /* it has no position */
        p.n_moves = 0;
        p.in = &unused;
        assert_fails(ERR_ARG, replay_new(&r, &p));
        p.in = &place;
        p.out = &x;
        assert_fails(ERR_UNSUPPORTED, replay_new(&r, &p)); /* nothing to run */
        p.out = &y;
        assert_ok(graph_end(&g));
        assert_ok(replay_new(&r, &p));
        arr_unref(&place);
        arr_unref(&unused);
        arr_unref(&y);
        arr_unref(&x);
        x = random_array(&rng, SHAPE(1, 1, 8, 5));
        assert_fails(ERR_ARG, replay_run(r, &x, &y, 0));
        assert_null(x);
        replay_destroy(&r);
    }
}

/* Every allocation may fail: the error is reported, and everything goes. */
static void test_no_memory(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++)
        for (size_t n = 1, done = 0; !done; n++) {
            struct step s = { 0 };
            struct replay *r = NULL;

            make_inputs(&s, &(struct rng){ n });
            mem_fail_after(n);
            enum err err = make_replay(&r, &s, FIRST, streams[i]);
            if (!err)
                err = replay_run(r, s.in, s.out, 1);
            enum err later = strm_synchronize(streams[i]); /* of a task on the CPU */
            mem_fail_after(0);
            done = !err && !later;
            assert_true(done || err == ERR_NO_MEMORY || later == ERR_NO_MEMORY);
            replay_destroy(&r);
            step_fini(&s);
        }
}

static int setup(void **state)
{
    (void)state;
    if (strm_new(&streams[n_streams++], (struct dev){ DEV_CPU, 0 }) != ERR_OK)
        return -1;
    return gpu_is_tested() && strm_new(&streams[n_streams++], (struct dev){ DEV_GPU, 0 }) != ERR_OK
               ? -1
               : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),          cmocka_unit_test(test_other_stream),
        cmocka_unit_test(test_steady),        cmocka_unit_test(test_late_constant),
        cmocka_unit_test(test_last_position), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
