/* Graphs that are built once and called: the same bits as graphs built anew, and who gets whose
 * memory. */
#include "eval/program.h"

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
    graph_keep(&g, &s->out[0], g_matmul(&g, g_matmul(&g, y, s->matrix), s->matrix));
    s->out[1] = layer.keys;
    s->out[2] = layer.values;
    if (moves) {
        *moves = g.moves;
        g.moves = (struct lm_moves){ 0 };
    }
    return graph_end(&g);
}

static enum err make_program(struct program **p, const struct step *like, int position,
                             struct strm *strm)
{
    struct step s = { .matrix = arr_ref(like->matrix) };
    struct lm_moves moves = { 0 };
    enum err err = ERR_OK;

    for (int i = 0; i < IN; i++)
        TRY(program_placeholder(&s.in[i], like->in[i]));
    TRY(build(&s, &moves, position, strm));
    err = program_new(p, &(struct program_params){ .in = s.in,
                                                   .n_in = IN,
                                                   .out = s.out,
                                                   .n_out = IN,
                                                   .move = moves.v,
                                                   .n_moves = moves.n });
out:
    step_fini(&s);
    VEC_FINI(&moves);
    return err;
}

/* A program of one input and one result. */
static struct program *program_of(struct arr *place, struct arr *out, const struct lm_moves *moves)
{
    struct program *p = NULL;

    assert_ok(program_new(&p, &(struct program_params){ .in = &place,
                                                        .n_in = 1,
                                                        .out = &out,
                                                        .n_out = 1,
                                                        .move = moves ? moves->v : NULL,
                                                        .n_moves = moves ? moves->n : 0 }));
    return p;
}

/* Calls p, so many positions further on, and begins to evaluate the n results. */
static enum err run(struct program *p, struct arr **in, struct arr **out, size_t n, int by)
{
    enum err err;

    program_advance(p, by);
    TRY(program_call(p, in, out));
    err = eval_arrays(out, n, true);
out:
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

/* A program and graphs built anew, side by side on equal inputs. */
struct pair {
    struct step called, built;
    struct program *p;
};

static void pair_begin(struct pair *p, uint64_t seed, struct strm *strm)
{
    *p = (struct pair){ 0 };
    make_inputs(&p->called, &(struct rng){ seed });
    make_inputs(&p->built, &(struct rng){ seed });
    assert_ok(make_program(&p->p, &p->called, FIRST, strm));
}

static void pair_end(struct pair *p)
{
    step_fini(&p->called);
    step_fini(&p->built);
    program_destroy(&p->p);
}

static void assert_same_results(struct pair *p)
{
    for (int k = 0; k < IN; k++)
        assert_same(p->called.out[k], p->built.out[k]);
}

/* Positions one after the other, a jump, and a way back. The caches are the caller's bytes in the
 * first call and the program's from the second one on: after these two nothing is recorded. */
static void check_positions(struct strm *strm)
{
    static const int positions[] = { 3, 4, 5, 6, 11, 12, 2, 3, 23 };
    struct pair p;
    struct arr *first = NULL, *want_first = NULL;
    uint64_t recordings = 0, hits = 0, dispatches = stat_get(STAT_DISPATCHES);
    int at = FIRST;

    pair_begin(&p, 1, strm);
    for (size_t i = 0; i < ARRAY_LEN(positions); i++) {
        uint64_t recordings_before = stat_get(STAT_RECORDINGS);
        uint64_t hits_before = stat_get(STAT_RECORDING_HITS);
        assert_ok(run(p.p, p.called.in, p.called.out, IN, positions[i] - at));
        recordings += i < 2 ? 0 : stat_get(STAT_RECORDINGS) - recordings_before;
        hits += i < 2 ? 0 : stat_get(STAT_RECORDING_HITS) - hits_before;
        at = positions[i];
        assert_ok(build(&p.built, NULL, at, strm));
        assert_ok(eval_arrays(p.built.out, IN, false));
        assert_same_results(&p);
        if (i == 0) {
            first = arr_ref(p.called.out[0]);
            want_first = arr_ref(p.built.out[0]);
        }
        go_on(&p.called, &(struct rng){ i });
        go_on(&p.built, &(struct rng){ i });
    }
    if (strm->dev.type == DEV_GPU) {
        assert_int_equal(recordings, 0);
        assert_int_equal(hits, ARRAY_LEN(positions) - 2);
        assert_true(stat_get(STAT_DISPATCHES) > dispatches);
    }
    assert_same(first, want_first); /* later calls left it alone */
    arr_unref(&first);
    arr_unref(&want_first);
    pair_end(&p);
}

/* Calls that read what others make are one graph. */
static void check_calls_in_a_row(struct strm *strm)
{
    struct pair p;
    struct arr *y[6];

    pair_begin(&p, 6, strm);
    for (size_t i = 0; i < ARRAY_LEN(y); i++) {
        program_advance(p.p, i > 0);
        assert_ok(program_call(p.p, p.called.in, p.called.out));
        y[i] = arr_ref(p.called.out[0]);
        go_on(&p.called, &(struct rng){ i });
    }
    assert_ok(eval_arrays(y, ARRAY_LEN(y), false));
    for (size_t i = 0; i < ARRAY_LEN(y); i++) {
        assert_ok(build(&p.built, NULL, FIRST + (int)i, strm));
        assert_same(y[i], p.built.out[0]);
        go_on(&p.built, &(struct rng){ i });
        arr_unref(&y[i]);
    }
    for (int k = 1; k < IN; k++)
        assert_same(p.called.in[k], p.built.in[k]);
    pair_end(&p);
}

/* A cache that nobody else holds is written in place; one that somebody holds is not. */
static void check_memory(struct strm *strm)
{
    struct step s = { 0 };
    struct program *p = NULL;

    make_inputs(&s, &(struct rng){ 2 });
    assert_ok(make_program(&p, &s, FIRST, strm));
    assert_ok(run(p, s.in, s.out, IN, 0)); /* brings the bytes to the device */
    go_on(&s, &(struct rng){ 3 });
    const struct buf *keys = s.in[1]->buf, *values = s.in[2]->buf;
    struct arr *held = arr_ref(s.in[2]);
    assert_ok(run(p, s.in, s.out, IN, 1));
    assert_ptr_equal(s.out[1]->buf, keys);
    assert_ptr_not_equal(s.out[2]->buf, values);
    go_on(&s, &(struct rng){ 4 });
    /* The work is in flight when everything goes. */
    assert_ok(run(p, s.in, s.out, IN, 1));
    program_destroy(&p);
    assert_ok(eval_arrays(s.out, IN, true));
    arr_unref(&held);
    step_fini(&s);
    assert_ok(strm_synchronize(strm));
}

/* What the graph alone holds is not written over, however well it would fit. */
static void check_constants(struct strm *strm)
{
    struct arr *x = NULL, *place = NULL, *constant = NULL, *y = NULL, *out = NULL;
    const void *host;

    assert_ok(arr_new_number(&x, 1, DT_FLOAT32));
    assert_ok(program_placeholder(&place, x));
    assert_ok(arr_new_number(&constant, 5, DT_FLOAT32));
    assert_ok(ops_unary(&y, OP_NEGATIVE, constant, strm));
    arr_unref(&constant);
    assert_ok(ops_binary(&out, OP_ADD, y, place, strm));
    arr_unref(&y);
    struct program *p = program_of(place, out, NULL);
    arr_unref(&place);
    arr_unref(&out);
    for (int i = 0; i < 3; i++) {
        struct arr *in = arr_ref(x);
        assert_ok(run(p, &in, &out, 1, 0));
        assert_ok(arr_host(&host, out));
        assert_true(*(const float *)host == -4);
        arr_unref(&out);
    }
    arr_unref(&x);
    program_destroy(&p);
}

static void test_runs(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++) {
        check_positions(streams[i]);
        check_calls_in_a_row(streams[i]);
        check_memory(streams[i]);
        check_constants(streams[i]);
    }
}

/* An input from another stream is waited for. */
static void test_other_stream(void **state)
{
    struct arr *x = NULL, *slow = NULL, *place = NULL, *out = NULL;
    const void *host;

    (void)state;
    for (int i = 0; i < n_streams; i++) {
        struct strm *other = streams[n_streams - 1 - i];
        assert_ok(arr_new_number(&x, 2, DT_FLOAT32));
        assert_ok(program_placeholder(&place, x));
        assert_ok(ops_unary(&out, OP_SQUARE, place, streams[i]));
        struct program *p = program_of(place, out, NULL);
        arr_unref(&out);
        arr_unref(&place);
        assert_ok(ops_unary(&slow, OP_NEGATIVE, x, other));
        assert_ok(eval_arrays(&slow, 1, true));
        assert_ok(run(p, &slow, &out, 1, 0));
        assert_null(slow);
        assert_ok(arr_host(&host, out));
        assert_true(*(const float *)host == 4);
        arr_unref(&out);
        arr_unref(&x);
        program_destroy(&p);
    }
}

/* ---- what could go wrong when a run is encoded as before ---- */

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

/* Runs fn with x[i] at n = 3 + i, built anew and called. other: arrays made after every run, of
 * which nobody else may write a byte. */
static void check_same(graph_fn fn, struct arr *const *x, int n_runs, struct arr *constant,
                       struct strm *s)
{
    struct arr *place = NULL, *other[32] = { 0 };
    struct lm_moves moves = { 0 };

    assert_ok(program_placeholder(&place, x[0]));
    struct arr *out = graph_of(fn, &moves, place, constant, 3, s);
    struct program *p = program_of(place, out, &moves);
    arr_unref(&place);
    arr_unref(&out);
    VEC_FINI(&moves);
    for (int i = 0; i < n_runs; i++) {
        struct arr *in = arr_ref(x[i]), *got = NULL;
        struct arr *want = graph_of(fn, &moves, x[i], constant, 3 + i, s);
        VEC_FINI(&moves);
        assert_ok(eval_arrays(&want, 1, false));
        assert_ok(run(p, &in, &got, 1, i > 0));
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
    program_destroy(&p);
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
    struct program *p = NULL;
    struct lm_graph g;

    for (int k = 0; k < 2; k++)
        assert_ok(program_placeholder(&place[k], matrix));
    graph_begin(&g, s);
    graph_keep(&g, &out, g_binary(&g, OP_ADD, place[0], g_matmul(&g, place[1], matrix)));
    assert_ok(graph_end(&g));
    assert_ok(program_new(
        &p, &(struct program_params){ .in = place, .n_in = 2, .out = &out, .n_out = 1 }));
    arr_unref(&place[0]);
    arr_unref(&place[1]);
    arr_unref(&out);
    for (int i = 0; i < 6; i++) {
        struct arr *in[] = { device_array(&rng, SHAPE(64, 64), s),
                             device_array(&rng, SHAPE(64, 64), s) };
        struct arr *held = i == 3 ? arr_ref(in[0]) : NULL;
        assert_ok(run(p, in, &out, 1, 0));
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
    program_destroy(&p);
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
        struct lm_graph g;

        graph_begin(&g, other);
        struct arr *x = a;
        for (int k = 0; k < 6; k++)
            x = g_softmax(&g, g_matmul(&g, x, a), true);
        graph_keep(&g, &late, x);
        assert_ok(graph_end(&g));
        assert_ok(eval_arrays(&late, 1, true));
        assert_ok(arr_new_number(&one, 0, DT_FLOAT32));
        assert_ok(program_placeholder(&place, one));
        assert_ok(ops_binary(&out, OP_ADD, late, place, s));
        struct program *p = program_of(place, out, NULL);
        assert_ok(run(p, &one, &got, 1, 0));
        assert_same(got, late);
        arr_unref(&a);
        arr_unref(&late);
        arr_unref(&place);
        arr_unref(&out);
        arr_unref(&got);
        program_destroy(&p);
    }
}

/* ---- what cannot be ---- */

/* At the last position all of the cache is used, without a slice: what moves is an update that is
 * named already. */
static void test_last_position(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++) {
        struct step s = { 0 };
        struct program *p = NULL;

        make_inputs(&s, &(struct rng){ 14 });
        assert_fails(ERR_ARG, make_program(&p, &s, ROOM - 1, streams[i]));
        assert_null(p);
        step_fini(&s);
    }
}

/* What is wrong is said when the program is made. */
static void check_refusals(struct strm *s)
{
    struct arr *x = NULL, *place = NULL, *unused = NULL, *y = NULL, *sum = NULL;
    struct program *p = NULL;
    struct lm_graph g;

    assert_ok(arr_new_number(&x, 1, DT_FLOAT32));
    assert_ok(program_placeholder(&unused, x));
    arr_unref(&x);
    x = random_array(&(struct rng){ 5 }, SHAPE(1, 1, 8, 4));
    assert_ok(program_placeholder(&place, x));
    graph_begin(&g, s);
    struct arr *part = g_slice(&g, place, 2, 0, 3);
    graph_keep(&g, &y, g_scale(&g, part, 2));
    struct program_params q = { .in = &place, .n_in = 1, .out = &y, .n_out = 1, .n_moves = 1 };
    q.move = &(struct program_move){ part, 2 };
    assert_fails(ERR_UNSUPPORTED, program_new(&p, &q)); /* the product's shape would change */
    q.move = &(struct program_move){ y, 2 };
    assert_fails(ERR_ARG, program_new(&p, &q)); /* it has no position */
    q.move = (struct program_move[]){ { part, 2 }, { part, 2 } };
    q.n_moves = 2;
    assert_fails(ERR_ARG, program_new(&p, &q)); /* twice */
    q.n_moves = 0;
    q.in = &unused;
    assert_fails(ERR_ARG, program_new(&p, &q)); /* nobody names its placeholder */
    q.in = &place;
    graph_keep(&g, &sum, g_binary(&g, OP_ADD, y, unused));
    q.out = &sum;
    assert_fails(ERR_ARG, program_new(&p, &q)); /* nobody names the other placeholder */
    assert_null(p);
    assert_ok(graph_end(&g));
    arr_unref(&x);
    arr_unref(&place);
    arr_unref(&unused);
    arr_unref(&y);
    arr_unref(&sum);
}

/* An input of another shape or dtype stays the caller's. */
static void check_other_inputs(struct strm *s)
{
    struct rng rng = { 15 };
    struct arr *x = random_array(&rng, SHAPE(8, 4)), *place = NULL, *y = NULL, *out = NULL;
    struct arr *other[] = { random_array(&rng, SHAPE(8, 5)), random_array(&rng, SHAPE(32)), NULL };

    assert_ok(program_placeholder(&place, x));
    assert_ok(ops_unary(&y, OP_EXP, place, s));
    struct program *p = program_of(place, y, NULL);
    assert_ok(ops_astype(&other[2], x, DT_INT32, s));
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        struct arr *in = other[i];
        assert_fails(ERR_ARG, program_call(p, &in, &out));
        assert_ptr_equal(in, other[i]);
        assert_null(out);
        arr_unref(&other[i]);
    }
    assert_ok(run(p, &x, &out, 1, 0));
    assert_null(x);
    arr_unref(&place);
    arr_unref(&y);
    arr_unref(&out);
    program_destroy(&p);
}

static void test_refusals(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++) {
        check_refusals(streams[i]);
        check_other_inputs(streams[i]);
    }
}

/* Makes and runs a program with the n-th allocation failing; true if there were not as many. */
static bool try_without_memory(size_t n, struct strm *strm)
{
    struct step s = { 0 };
    struct program *p = NULL;
    bool is_called = false;

    make_inputs(&s, &(struct rng){ n });
    mem_fail_after(n);
    enum err err = make_program(&p, &s, FIRST, strm);
    if (!err) {
        program_advance(p, 1);
        err = program_call(p, s.in, s.out);
        is_called = !err;
    }
    for (int i = 0; i < IN; i++) {
        assert_true(is_called ? !s.in[i] && s.out[i] : s.in[i] && !s.out[i]);
        assert_true(is_called || ref_get(&s.in[i]->rc) == 1);
    }
    if (is_called)
        err = eval_arrays(s.out, IN, true);
    enum err later = strm_synchronize(strm); /* of a task on the CPU */
    mem_fail_after(0);
    assert_true(!err || err == ERR_NO_MEMORY);
    assert_true(!later || later == ERR_NO_MEMORY);
    program_destroy(&p);
    step_fini(&s);
    return !err && !later;
}

/* Every allocation may fail: the error is reported, and everything goes. */
static void test_no_memory(void **state)
{
    (void)state;
    for (int i = 0; i < n_streams; i++)
        for (size_t n = 1; !try_without_memory(n, streams[i]); n++)
            assert_true(n < 10000);
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
