/* Compiled functions: what is kept of a trace, when it holds, and that random graphs give the same
 * bits whether they are built, compiled, differentiated or batched. The public side is in
 * tests/api/compile.c.
 *
 * usage: unit_compile [seed [graphs]]; a failure prints the seed of its graph. */
#include "transforms/compile.h"

#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/tape.h"
#include "eval/wait.h"
#include "graph/memory.h"
#include "graph/op.h"
#include "support/gpu.h"
#include "support/random_graph.h"
#include "transforms/transforms.h"
#include "transforms/walk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t first_seed = 1;
static int n_graphs;
static struct strm *cpu;

/* ---- functions ---- */

struct maker {
    struct fun base;
    enum err (*make)(struct maker *m, struct arrs in, struct outs *out);
    _Atomic int calls;
    struct arr *constant; /* borrowed; what some of them read from outside */
    uint64_t seed;
    struct strm *strm;
};

static enum err call_maker(struct fun *f, struct arrs in, struct outs *out)
{
    struct maker *m = (struct maker *)f;

    m->calls++;
    return m->make(m, in, out);
}

static void stays(void *self)
{
    (void)self;
}

static struct maker maker_of(enum err (*make)(struct maker *m, struct arrs in, struct outs *out))
{
    struct maker m = { .make = make, .strm = cpu };

    m.base.counted.destroy = stays;
    m.base.call = call_maker;
    atomic_init(&m.base.counted.rc, 1);
    return m;
}

static struct fun *compiled(struct maker *m)
{
    struct fun *f = NULL;

    assert_ok(transform_compile(&f, &m->base, &(struct compile_params){ .is_own = true }));
    return f;
}

static struct arr *number(float v)
{
    struct arr *a = NULL;

    assert_ok(arr_new_number(&a, v, DT_FLOAT32));
    return a;
}

static struct arr *vector(int32_t n, float first)
{
    float *v = mem_alloc_array((size_t)n, sizeof *v);
    struct arr *a = NULL;

    assert_non_null(v);
    for (int32_t i = 0; i < n; i++)
        v[i] = first + (float)i;
    assert_ok(arr_new_data(&a, v, &(struct shp){ 1, { n } }, DT_FLOAT32));
    mem_free(v);
    return a;
}

static float first_of(struct arr *a)
{
    const void *host;

    assert_ok(eval_arrays(&a, 1, false));
    assert_ok(arr_host(&host, a));
    return *(const float *)((const char *)host + a->offset);
}

/* Nodes that are still to run. */
static size_t count_nodes(const struct outs *o)
{
    struct walk w;

    tape_pause();
    enum err err = walk_whole_graph(&w, outs_arrs(o), (struct arrs){ NULL, 0 });
    tape_resume();
    assert_ok(err);
    size_t n = w.step.n;
    walk_fini(&w);
    return n;
}

/* A list of one result. */
static enum err one(struct outs *out, struct arr **a)
{
    enum err err = outs_init(out, 1);

    if (!err) {
        out->v[0] = *a;
        *a = NULL;
    }
    return err;
}

/* x * c + x, or x + x without a constant */
static enum err make_sum(struct maker *m, struct arrs in, struct outs *out)
{
    struct arr *y = NULL, *z = NULL;
    enum err err;

    if (m->constant)
        TRY(ops_binary(&y, OP_MULTIPLY, in.v[0], m->constant, m->strm));
    else
        y = arr_ref(in.v[0]);
    TRY(ops_binary(&z, OP_ADD, y, in.v[0], m->strm));
    err = one(out, &z);
out:
    arr_unref(&y);
    arr_unref(&z);
    return err;
}

/* ---- what is kept ---- */

static void check_call(struct fun *f, struct arr *x, float want)
{
    struct outs out = { 0 };

    assert_ok(f->call(f, (struct arrs){ &x, 1 }, &out));
    assert_int_equal(out.n, 1);
    assert_true(first_of(out.v[0]) == want);
    outs_fini(&out);
}

static void test_traced_once_for_shapes_and_dtypes(void **state)
{
    struct maker m = maker_of(make_sum);
    struct fun *f = compiled(&m), *g = compiled(&m);
    struct arr *x = vector(3, 1), *y = vector(4, 1), *z = number(1), *i = NULL;

    (void)state;
    for (int k = 0; k < 3; k++) {
        check_call(f, x, 2);
        assert_int_equal(m.calls, 1);
    }
    check_call(f, y, 2);
    check_call(f, z, 2);
    assert_int_equal(m.calls, 3);
    check_call(g, z, 2); /* compiled a second time, it has a cache of its own */
    assert_int_equal(m.calls, 4);
    assert_ok(ops_astype(&i, x, DT_INT32, cpu));
    struct outs out = { 0 };
    assert_ok(f->call(f, (struct arrs){ &i, 1 }, &out));
    assert_int_equal(out.v[0]->dtype, DT_INT32);
    assert_int_equal(m.calls, 5);
    outs_fini(&out);
    compile_clear();
    check_call(f, x, 2);
    assert_int_equal(m.calls, 6);
    arr_unref(&x);
    arr_unref(&y);
    arr_unref(&z);
    arr_unref(&i);
    counted_unref(f);
    counted_unref(g);
}

static void test_ids_and_constants_of_callers(void **state)
{
    struct maker m = maker_of(make_sum), other = maker_of(make_sum);
    struct fun *f[4];
    struct arr *x = number(2), *three = number(3);
    uint64_t list[] = { 1, 2 };

    (void)state;
    other.constant = three;
    for (size_t k = 0; k < 4; k++)
        assert_ok(transform_compile(
            &f[k], k == 3 ? &other.base : &m.base,
            &(struct compile_params){ .id = 7, .constants = list, .n_constants = k % 3 }));
    for (int k = 0; k < 3; k++)
        check_call(f[k], x, 4);
    assert_int_equal(m.calls, 3);
    check_call(f[3], x, 4); /* known by the number: not traced */
    assert_int_equal(other.calls, 0);
    compile_erase(8);
    check_call(f[3], x, 4);
    compile_erase(7);
    check_call(f[3], x, 8);
    assert_int_equal(other.calls, 1);
    compile_erase(7);
    for (int k = 0; k < 4; k++)
        counted_unref(f[k]);
    arr_unref(&x);
    arr_unref(&three);
}

/* Right for every size; what was traced for the last few is kept. */
static void test_shapeless(void **state)
{
    struct maker m = maker_of(make_sum);
    struct arr *c = number(3);
    struct fun *f = NULL;

    (void)state;
    m.constant = c;
    assert_ok(transform_compile(&f, &m.base,
                                &(struct compile_params){ .is_own = true, .is_shapeless = true }));
    for (int32_t n = 1; n <= 100; n++) {
        struct arr *x = vector(n, 2);
        check_call(f, x, 8);
        check_call(f, x, 8);
        arr_unref(&x);
        assert_int_equal(m.calls, n);
        assert_true(ref_get(&c->rc) <= 20);
    }
    struct arr *x = vector(90, 2);
    check_call(f, x, 8);
    assert_int_equal(m.calls, 100);
    arr_unref(&x);
    x = vector(10, 2);
    check_call(f, x, 8);
    assert_int_equal(m.calls, 101);
    arr_unref(&x);
    counted_unref(f);
    assert_int_equal(ref_get(&c->rc), 1);
    arr_unref(&c);
}

static void test_modes(void **state)
{
    struct maker m = maker_of(make_sum);
    struct fun *f = NULL;

    (void)state;
    compile_set_mode(COMPILE_DISABLED);
    assert_ok(transform_compile(&f, &m.base, &(struct compile_params){ .is_own = true }));
    assert_ptr_equal(f, &m.base);
    counted_unref(f);
    compile_set_mode(COMPILE_ENABLED);
}

/* ---- what is simplified ---- */

/* Results: (-x) + (-x) with a node for each minus sign, and one that nobody reads. */
static enum err make_twice(struct maker *m, struct arrs in, struct outs *out)
{
    struct arr *y[4] = { 0 };
    enum err err;

    TRY(ops_unary(&y[0], OP_NEGATIVE, in.v[0], m->strm));
    TRY(ops_unary(&y[1], OP_NEGATIVE, in.v[0], m->strm));
    TRY(ops_unary(&y[2], OP_EXP, in.v[0], m->strm));
    TRY(ops_binary(&y[3], OP_ADD, y[0], y[1], m->strm));
    err = one(out, &y[3]);
out:
    for (int i = 0; i < 4; i++)
        arr_unref(&y[i]);
    return err;
}

/* x + 2 + 2.0, with a scalar for each; and x with a stopped gradient and copied */
static enum err make_scalars(struct maker *m, struct arrs in, struct outs *out)
{
    struct arr *c[3] = { 0 }, *y[4] = { 0 };
    enum err err;

    TRY(arr_new_number(&c[0], 2, DT_FLOAT32));
    TRY(arr_new_number(&c[1], 2, DT_FLOAT32));
    TRY(arr_new_number(&c[2], -0.0, DT_FLOAT32));
    TRY(ops_stop_gradient(&y[0], in.v[0], m->strm));
    TRY(ops_copy(&y[1], y[0], m->strm));
    TRY(ops_binary(&y[2], OP_ADD, y[1], c[0], m->strm));
    TRY(ops_binary(&y[3], OP_ADD, in.v[0], c[1], m->strm));
    arr_unref(&y[0]);
    TRY(ops_binary(&y[0], OP_MULTIPLY, y[2], y[3], m->strm));
    arr_unref(&y[2]);
    TRY(ops_binary(&y[2], OP_ADD, y[0], c[2], m->strm));
    err = one(out, &y[2]);
out:
    for (int i = 0; i < 4; i++)
        arr_unref(&y[i]);
    for (int i = 0; i < 3; i++)
        arr_unref(&c[i]);
    return err;
}

/* Quotients and remainders of two equal divisions: q1 + r2 */
static enum err make_divisions(struct maker *m, struct arrs in, struct outs *out)
{
    struct arr *a[2] = { 0 }, *b[2] = { 0 }, *y = NULL;
    enum err err;

    TRY(ops_divmod(a, in.v[0], in.v[1], m->strm));
    TRY(ops_divmod(b, in.v[0], in.v[1], m->strm));
    TRY(ops_binary(&y, OP_ADD, a[0], b[1], m->strm));
    err = one(out, &y);
out:
    for (int i = 0; i < 2; i++) {
        arr_unref(&a[i]);
        arr_unref(&b[i]);
    }
    arr_unref(&y);
    return err;
}

/* The sum of two equal ranges, which are nodes without inputs */
static enum err make_ranges(struct maker *m, struct arrs in, struct outs *out)
{
    const struct arange_params range = { .start = 3, .stop = 7, .step = 1 };
    struct arr *a = NULL, *b = NULL, *y = NULL;
    enum err err;

    (void)in;
    TRY(ops_arange(&a, &range, DT_FLOAT32, m->strm));
    TRY(ops_arange(&b, &range, DT_FLOAT32, m->strm));
    TRY(ops_binary(&y, OP_ADD, a, b, m->strm));
    err = one(out, &y);
out:
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&y);
    return err;
}

/* Three times random bits: the third with another key. */
static enum err make_random(struct maker *m, struct arrs in, struct outs *out)
{
    struct arr *key = NULL;
    enum err err;

    TRY(outs_init(out, 3));
    for (size_t i = 0; i < 3; i++) {
        TRY(ops_random_key(&key, i < 2 ? 1 : 2));
        TRY(ops_random_bits(&out->v[i], (struct ints){ (int32_t[]){ 4 }, 1 }, 4, key, m->strm));
        arr_unref(&key);
    }
    (void)in;
out:
    arr_unref(&key);
    if (err)
        outs_fini(out);
    return err;
}

static size_t nodes_of(struct maker *m, struct arrs in, enum compile_mode mode, float want)
{
    struct outs out = { 0 };

    compile_set_mode(mode);
    struct fun *f = compiled(m);
    assert_ok(f->call(f, in, &out));
    compile_set_mode(COMPILE_ENABLED);
    size_t n = count_nodes(&out);
    assert_true(first_of(out.v[0]) == want);
    outs_fini(&out);
    counted_unref(f);
    return n;
}

static void test_equal_nodes_become_one(void **state)
{
    struct maker twice = maker_of(make_twice), scalars = maker_of(make_scalars),
                 divisions = maker_of(make_divisions), ranges = maker_of(make_ranges);
    struct arr *in[] = { number(7), number(2) };

    (void)state;
    assert_int_equal(nodes_of(&twice, (struct arrs){ in, 1 }, COMPILE_NO_SIMPLIFY, -14), 3);
    assert_int_equal(nodes_of(&twice, (struct arrs){ in, 1 }, COMPILE_ENABLED, -14), 2);
    assert_int_equal(nodes_of(&twice, (struct arrs){ in, 1 }, COMPILE_NO_FUSE, -14), 2);
    assert_int_equal(nodes_of(&scalars, (struct arrs){ in, 1 }, COMPILE_NO_SIMPLIFY, 81), 6);
    assert_int_equal(nodes_of(&scalars, (struct arrs){ in, 1 }, COMPILE_ENABLED, 81), 3);
    assert_int_equal(nodes_of(&divisions, (struct arrs){ in, 2 }, COMPILE_NO_SIMPLIFY, 4), 3);
    assert_int_equal(nodes_of(&divisions, (struct arrs){ in, 2 }, COMPILE_ENABLED, 4), 2);
    assert_int_equal(nodes_of(&ranges, (struct arrs){ in, 0 }, COMPILE_NO_SIMPLIFY, 6), 3);
    assert_int_equal(nodes_of(&ranges, (struct arrs){ in, 0 }, COMPILE_ENABLED, 6), 2);
    arr_unref(&in[0]);
    arr_unref(&in[1]);
}

static void test_other_keys_stay_apart(void **state)
{
    struct maker m = maker_of(make_random);
    struct fun *f = compiled(&m);
    struct outs out = { 0 };
    const void *bits[3];

    (void)state;
    assert_ok(f->call(f, (struct arrs){ NULL, 0 }, &out));
    assert_ok(eval_arrays(out.v, 3, false));
    for (int i = 0; i < 3; i++)
        assert_ok(arr_host(&bits[i], out.v[i]));
    assert_memory_equal(bits[0], bits[1], 16);
    assert_memory_not_equal(bits[0], bits[2], 16);
    outs_fini(&out);
    counted_unref(f);
}

/* ---- what results may be ---- */

/* The input, a constant, the input once more, a sum twice */
static enum err make_odd(struct maker *m, struct arrs in, struct outs *out)
{
    struct arr *y = NULL;
    enum err err;

    TRY(ops_binary(&y, OP_ADD, in.v[0], m->constant, m->strm));
    err =
        outs_copy(out, (struct arrs){ (struct arr *[]){ in.v[0], m->constant, in.v[0], y, y }, 5 });
out:
    arr_unref(&y);
    return err;
}

static void test_results_that_are_inputs_or_constants(void **state)
{
    struct maker m = maker_of(make_odd);
    struct arr *two = number(2), *x[] = { number(3), number(4) };
    struct fun *f = compiled(&m);

    (void)state;
    m.constant = two;
    for (int k = 0; k < 4; k++) {
        struct outs out = { 0 };
        assert_ok(f->call(f, (struct arrs){ x, 2 }, &out)); /* the second one is not read */
        assert_ptr_equal(out.v[0], x[0]);
        assert_ptr_equal(out.v[1], two);
        assert_ptr_equal(out.v[2], x[0]);
        assert_true(first_of(out.v[3]) == 5 && first_of(out.v[4]) == 5);
        outs_fini(&out);
    }
    counted_unref(f);
    assert_int_equal(ref_get(&two->rc), 1); /* forgotten with the function */
    arr_unref(&two);
    arr_unref(&x[0]);
    arr_unref(&x[1]);
}

static enum err make_nothing(struct maker *m, struct arrs in, struct outs *out)
{
    (void)m;
    (void)in;
    return outs_init(out, 0);
}

static void test_no_results(void **state)
{
    struct maker m = maker_of(make_nothing);
    struct arr *x = number(1);
    struct fun *f = compiled(&m);

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct outs out = { 0 };
        assert_ok(f->call(f, (struct arrs){ &x, 1 }, &out));
        assert_int_equal(out.n, 0);
        outs_fini(&out);
    }
    assert_int_equal(m.calls, 1);
    counted_unref(f);
    arr_unref(&x);
}

/* What a function reads from outside may be evaluated between two calls, or not at all. */
static void test_constants_that_are_lazy(void **state)
{
    struct maker m = maker_of(make_sum);
    struct arr *x = number(2), *c = number(-3), *lazy = NULL;
    struct fun *f = compiled(&m);

    (void)state;
    assert_ok(ops_unary(&lazy, OP_NEGATIVE, c, cpu));
    m.constant = lazy;
    check_call(f, x, 8);
    assert_false(arr_is_scheduled(lazy)); /* calls have copies of their own */
    assert_true(first_of(lazy) == 3);
    check_call(f, x, 8);
    arr_unref(&lazy);
    arr_unref(&c);
    check_call(f, x, 8);
    counted_unref(f);
    arr_unref(&x);
}

/* ---- what fails ---- */

static enum err make_evaluated(struct maker *m, struct arrs in, struct outs *out)
{
    struct arr *y = NULL;
    enum err err;

    TRY(ops_unary(&y, OP_NEGATIVE, in.v[0], m->strm));
    TRY(eval_arrays(&y, 1, m->seed));
    err = one(out, &y);
out:
    arr_unref(&y);
    return err;
}

static enum err make_failure_first(struct maker *m, struct arrs in, struct outs *out)
{
    return m->calls == 1 ? err_set(ERR_RUNTIME, "not yet") : make_sum(m, in, out);
}

static void test_failures(void **state)
{
    struct maker m = maker_of(make_sum), evaluated = maker_of(make_evaluated),
                 first = maker_of(make_failure_first);
    struct fun *f = compiled(&m), *g = compiled(&evaluated), *h = compiled(&first);
    struct arr *x = number(2);
    struct outs out = { 0 };

    (void)state;
    m.constant = x;
    assert_fails(ERR_ARG, f->call(f, (struct arrs){ &x, 1 }, &out));
    assert_string_equal(err_text(), "[compile] Attempting to compile a function with uncaptured "
                                    "inputs is not allowed.");
    assert_fails(ERR_ARG, g->call(g, (struct arrs){ &x, 1 }, &out));
    assert_string_equal(err_text(), "[eval] Attempting to eval an array during function "
                                    "transformations like compile or vmap is not allowed.");
    evaluated.seed = 1;
    assert_fails(ERR_ARG, g->call(g, (struct arrs){ &x, 1 }, &out));
    assert_string_equal(err_text(), "[async_eval] Not allowed inside a graph transformation.");
    assert_fails(ERR_RUNTIME, h->call(h, (struct arrs){ &x, 1 }, &out));
    assert_string_equal(err_text(), "not yet");
    check_call(h, x, 4);
    check_call(h, x, 4);
    assert_int_equal(first.calls, 2);
    counted_unref(f);
    counted_unref(g);
    counted_unref(h);
    arr_unref(&x);
}

/* With the n-th allocation failing, n = 1, 2, ...: an error that leaves nothing, and a cache that
 * works afterwards. */
static enum err compile_and_call_twice(struct maker *m, struct arrs in)
{
    struct fun *f = NULL;
    struct outs out = { 0 };
    enum err err;

    TRY(transform_compile(&f, &m->base, &(struct compile_params){ .is_own = true }));
    TRY(f->call(f, in, &out));
    outs_fini(&out);
    err = f->call(f, in, &out);
out:
    outs_fini(&out);
    counted_unref(f);
    return err;
}

static void test_without_memory(void **state)
{
    static enum err (*const makers[])(struct maker *, struct arrs,
                                      struct outs *) = { make_twice, make_scalars, make_divisions,
                                                         make_random, make_nothing };
    struct arr *x[] = { number(7), number(2) };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(makers); k++) {
        enum err err = ERR_NO_MEMORY;
        for (size_t n = 1; err; n++) {
            struct maker m = maker_of(makers[k]);
            mem_fail_after(n);
            err = compile_and_call_twice(&m, (struct arrs){ x, 2 });
            mem_fail_after(0);
            assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
            assert_int_equal(ref_get(&x[0]->rc), 1);
        }
    }
    arr_unref(&x[0]);
    arr_unref(&x[1]);
}

/* ---- inside of other transformations ---- */

/* A function that calls a compiled one, which reads what the outer one was given. */
struct outer {
    struct maker m, inner;
    struct fun *f;
};

static enum err make_outer(struct maker *m, struct arrs in, struct outs *out)
{
    struct outer *o = (struct outer *)m;
    struct arr *two = NULL;
    enum err err;

    o->inner.constant = in.v[0];
    TRY(arr_new_number(&two, 2, DT_FLOAT32));
    err = o->f->call(o->f, (struct arrs){ &two, 1 }, out);
out:
    arr_unref(&two);
    return err;
}

static void test_inner_function_that_reads_outer_arguments(void **state)
{
    struct outer o = { .m = maker_of(make_outer), .inner = maker_of(make_sum) };
    struct arr *x = number(3), *cotan = number(1);
    struct outs out = { 0 }, grads = { 0 };

    (void)state;
    o.f = compiled(&o.inner);
    struct fun *f = compiled(&o.m);
    check_call(f, x, 8);
    check_call(f, x, 8);
    assert_int_equal(o.m.calls, 1);
    assert_ok(transform_vjp_all(&o.m.base, (struct arrs){ &x, 1 }, (struct arrs){ &cotan, 1 }, &out,
                                &grads));
    assert_true(first_of(out.v[0]) == 8 && first_of(grads.v[0]) == 2);
    outs_fini(&out);
    outs_fini(&grads);
    counted_unref(f);
    counted_unref(o.f);
    arr_unref(&x);
    arr_unref(&cotan);
}

/* ---- random graphs ---- */

static enum err make_graph(struct maker *m, struct arrs in, struct outs *out)
{
    static struct graph g;
    enum err err;

    graph_make_leaves(&g, m->seed, m->strm);
    for (int i = 0; i < GRAPH_LEAVES; i++) {
        arr_unref(&g.a[i]);
        g.a[i] = arr_ref(in.v[i]);
    }
    graph_make_nodes(&g);
    err = outs_copy(
        out, (struct arrs){ (struct arr *[]){ g.a[g.n - 1], graph_pick(&g), graph_pick(&g) }, 3 });
    graph_drop(&g);
    return err;
}

/* Cotangents of ones; the results are the gradients. */
static enum err call_grads(struct fun *f, struct arrs in, struct outs *out)
{
    struct outs cotans = { 0 }, values = { 0 };
    struct strm *s;
    enum err err;

    TRY(f->call(f, in, &values));
    TRY(outs_init(&cotans, values.n));
    for (size_t i = 0; i < values.n; i++) {
        TRY(strm_of(&s, values.v[i]));
        TRY(ops_fill_like(&cotans.v[i], values.v[i], 1, (enum dtype)values.v[i]->dtype, s));
    }
    outs_fini(&values);
    err = transform_vjp_all(f, in, outs_arrs(&cotans), &values, out);
out:
    outs_fini(&values);
    outs_fini(&cotans);
    return err;
}

static enum err call_batch(struct fun *f, struct arrs in, struct outs *out)
{
    static const int32_t first[GRAPH_LEAVES];
    struct outs batch = { 0 }, places = { 0 }, traced = { 0 };
    enum err err;

    TRY(outs_init(&batch, in.n));
    for (size_t i = 0; i < in.n; i++) {
        struct arr *one = NULL;
        struct strm *s;
        TRY(strm_of(&s, in.v[i]));
        TRY(ops_expand_dims(&one, in.v[i], (struct ints){ first, 1 }, s));
        err = ops_concatenate(&batch.v[i], (struct arrs){ (struct arr *[]){ one, one }, 2 }, 0, s);
        arr_unref(&one);
        if (err)
            goto out;
    }
    TRY(transform_vmap_trace(f, outs_arrs(&batch), (struct ints){ first, in.n }, &places, &traced));
    err = transform_vmap_replace(&(struct vmap_params){ .inputs = outs_arrs(&batch),
                                                        .in_axes = { first, in.n },
                                                        .traced_in = outs_arrs(&places),
                                                        .traced_out = outs_arrs(&traced),
                                                        .out_axes = { first, traced.n } },
                                 out);
out:
    outs_fini(&batch);
    outs_fini(&places);
    outs_fini(&traced);
    return err;
}

static enum err call_plain(struct fun *f, struct arrs in, struct outs *out)
{
    return f->call(f, in, out);
}

/* The ways to call a function, which also make functions to be compiled. */
typedef enum err (*way_fn)(struct fun *f, struct arrs in, struct outs *out);
static const struct {
    way_fn call;
    const char *name;
} ways[] = { { call_plain, "plain" }, { call_grads, "gradients" }, { call_batch, "batch" } };

struct by_way {
    struct maker m;
    struct maker *of;
    way_fn call;
};

static enum err make_by_way(struct maker *m, struct arrs in, struct outs *out)
{
    struct by_way *b = (struct by_way *)m;

    return b->call(&b->of->base, in, out);
}

static void take(struct graph *g, struct outs *out)
{
    assert_ok(eval_arrays(out->v, out->n, false));
    for (g->n = 0; g->n < (int)out->n; g->n++)
        g->a[g->n] = arr_ref(out->v[g->n]);
    outs_fini(out);
}

/* Whether the way can be gone with this graph: not all ops have rules for all dtypes. */
static bool check_way(struct maker *m, struct arrs in, size_t way)
{
    struct by_way inside = { .m = maker_of(make_by_way), .of = m, .call = ways[way].call };
    struct graph want = { 0 }, got = { 0 };
    struct outs out = { 0 };
    char what[96];

    if (ways[way].call(&m->base, in, &out) != ERR_OK)
        return false;
    take(&want, &out);
    struct fun *f = compiled(m), *g = compiled(&inside.m);
    for (int k = 0; k < 4; k++) {
        enum err err = k < 2 ? ways[way].call(f, in, &out) : g->call(g, in, &out);
        snprintf(what, sizeof what, "seed %llu, %s, %s", (unsigned long long)m->seed,
                 ways[way].name, k < 2 ? "of the compiled function" : "compiled");
        if (err)
            fail_msg("%s: %s", what, err_text());
        take(&got, &out);
        graph_compare(&got, &want, what);
        graph_drop(&got);
    }
    graph_drop(&want);
    counted_unref(f);
    counted_unref(g);
    return true;
}

static void check_device(enum dev_type type, int graphs)
{
    static struct graph g;
    struct maker m = maker_of(make_graph);
    uint64_t dispatches = stat_get(STAT_DISPATCHES);
    int gone[ARRAY_LEN(ways)] = { 0 };

    assert_ok(strm_default(&m.strm, (struct dev){ type, 0 }));
    for (int i = 0; i < graphs; i++) {
        m.seed = first_seed + (uint64_t)i;
        compile_set_mode(i % 3 ? COMPILE_ENABLED : COMPILE_NO_SIMPLIFY);
        graph_make_leaves(&g, m.seed, m.strm);
        for (size_t way = 0; way < ARRAY_LEN(ways); way++)
            gone[way] += check_way(&m, (struct arrs){ g.a, GRAPH_LEAVES }, way);
        graph_drop(&g);
    }
    compile_set_mode(COMPILE_ENABLED);
    print_message("seeds from %llu: %d values, %d gradients, %d batches\n",
                  (unsigned long long)first_seed, gone[0], gone[1], gone[2]);
    assert_int_equal(gone[0], graphs);
    assert_true(gone[1] > graphs / 4 && gone[2] > graphs / 4);
    if (type == DEV_GPU)
        assert_true(stat_get(STAT_DISPATCHES) > dispatches);
}

static void test_on_the_cpu(void **state)
{
    (void)state;
    check_device(DEV_CPU, n_graphs ? n_graphs : 150);
}

static void test_on_the_gpu(void **state)
{
    (void)state;
    if (gpu_is_tested())
        check_device(DEV_GPU, n_graphs ? n_graphs : 20);
}

/* ---- memory, threads ---- */

static void test_memory_is_flat(void **state)
{
    struct maker m = maker_of(make_sum);
    struct fun *f = compiled(&m);
    struct arr *x = vector(1000, 0);
    size_t before = 0;

    (void)state;
    for (int k = 0; k < 10000; k++) {
        struct outs out = { 0 };
        assert_ok(f->call(f, (struct arrs){ &x, 1 }, &out));
        arr_unref(&x);
        assert_ok(eval_arrays(out.v, 1, false));
        x = arr_ref(out.v[0]);
        outs_fini(&out);
        if (k == 10)
            before = memory_active();
    }
    assert_int_equal(memory_active(), before);
    assert_int_equal(m.calls, 1);
    counted_unref(f);
    arr_unref(&x);
}

/* -(-(-x)): the input that only the call has is written over, and then the results are. */
static enum err make_chain(struct maker *m, struct arrs in, struct outs *out)
{
    struct arr *y = NULL, *next = NULL;
    enum err err;

    TRY(ops_unary(&y, OP_EXP, in.v[0], m->strm));
    for (int i = 0; i < 3; i++) {
        TRY(ops_softmax(&next, y, (struct ints){ (int32_t[]){ 0 }, 1 }, false, m->strm));
        arr_unref(&y);
        y = next;
        next = NULL;
    }
    err = one(out, &y);
out:
    arr_unref(&y);
    return err;
}

static void test_inputs_are_donated(void **state)
{
    struct maker m = maker_of(make_chain);
    struct fun *f = compiled(&m);
    struct arr *x = vector(1 << 16, 0), *given = NULL;
    struct outs out = { 0 };
    size_t size = arr_nbytes(x);

    (void)state;
    for (int k = 0; k < 2; k++) {
        assert_ok(ops_unary(&given, OP_NEGATIVE, x, cpu));
        assert_ok(eval_arrays(&given, 1, false));
        assert_ok(f->call(f, (struct arrs){ &given, 1 }, &out));
        arr_unref(&given);
        memory_reset_peak();
        size_t before = memory_active();
        assert_ok(eval_arrays(out.v, 1, false));
        assert_true(memory_peak() < before + size);
        outs_fini(&out);
    }
    counted_unref(f);
    arr_unref(&x);
}

struct thread {
    struct fun *f;
    enum err err;
    int wrong;
};

static void *call_often(void *arg)
{
    struct thread *t = arg;
    struct arr *x = NULL;

    t->err = arr_new_number(&x, 2, DT_FLOAT32);
    for (int k = 0; k < 200 && !t->err; k++) {
        struct outs out = { 0 };
        const void *host;
        t->err = t->f->call(t->f, (struct arrs){ &x, 1 }, &out);
        if (!t->err)
            t->err = eval_arrays(out.v, 1, false);
        if (!t->err)
            t->err = arr_host(&host, out.v[0]);
        t->wrong += !t->err && *(const float *)host != 4;
        outs_fini(&out);
        if (k % 50 == 49)
            compile_clear();
    }
    arr_unref(&x);
    return NULL;
}

static void test_threads(void **state)
{
    struct maker m = maker_of(make_sum);
    struct thread t[4] = { { 0 } };
    pthread_t id[4];

    (void)state;
    struct fun *f = compiled(&m);
    for (int i = 0; i < 4; i++) {
        t[i].f = f;
        assert_int_equal(pthread_create(&id[i], NULL, call_often, &t[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(id[i], NULL), 0);
        assert_ok(t[i].err);
        assert_int_equal(t[i].wrong, 0);
    }
    counted_unref(f);
}

static int begin(void **state)
{
    (void)state;
    if (dev_set_default((struct dev){ DEV_CPU, 0 }))
        return 1;
    return strm_default(&cpu, (struct dev){ DEV_CPU, 0 });
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traced_once_for_shapes_and_dtypes),
        cmocka_unit_test(test_ids_and_constants_of_callers),
        cmocka_unit_test(test_shapeless),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_equal_nodes_become_one),
        cmocka_unit_test(test_other_keys_stay_apart),
        cmocka_unit_test(test_results_that_are_inputs_or_constants),
        cmocka_unit_test(test_no_results),
        cmocka_unit_test(test_constants_that_are_lazy),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_inner_function_that_reads_outer_arguments),
        cmocka_unit_test(test_memory_is_flat),
        cmocka_unit_test(test_inputs_are_donated),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_on_the_gpu),
    };

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        n_graphs = atoi(argv[2]);
    return cmocka_run_group_tests(tests, begin, NULL);
}
