/* Runs that are encoded from recordings give the bits that a first run gives: random graphs, run
 * again and again with other values, layouts, owners, sharers, parameters, lengths and settings,
 * against runs on a stream that forgets its plans and whose inputs nobody may write over. The last
 * run's results stay what they were while the next one runs. Every strategy for memory has a
 * process of its own.
 *
 * usage: unit_recording [seed [graphs]]; a failure prints the seed of its graph and the run. */
#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/wait.h"
#include "graph/memory.h"
#include "ops/ops.h"
#include "plan/plan.h"
#include "support/child.h"
#include "support/gpu.h"
#include "support/testing.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 32,
    HEAD = 64,  /* two rows are a position of the attention */
    ROOM = 16,  /* of its caches */
    PLACES = 3, /* positions that the graph can move to, from 0 on */
    LEAVES = 4, /* inputs that come in many layouts */
    OTHERS = 5, /* and those that do not */
    NODES = 16, /* random steps; some are made of several nodes */
    RESULTS = 6,
    MADE_MAX = 1000,
    RUNS = 14,
    WAYS = 5, /* in which the inputs of a graph come */
};

static uint64_t first_seed = 1;
static int n_graphs;

/* ---- how the inputs of a run come ---- */

enum lies { DENSE, TRANSPOSED, INSIDE, STEPPED, THINNED, REPEATED, LIES };

struct leaf_way {
    enum lies lies;
    int of;         /* INSIDE: the leaf whose bytes it shares, or its own number */
    bool is_held;   /* by the test, else only the graph has it */
    bool has_base;  /* the test holds what it is a view of */
    bool from_host; /* bytes that the device has not seen yet */
};

struct way {
    int32_t rows;
    struct leaf_way leaf[LEAVES];
    bool has_caches; /* the test holds them, too */
};

struct circumstances {
    struct way way;
    uint64_t values; /* seed of what the inputs hold */
    int32_t at;      /* where slices begin and positions stand */
    bool is_async, is_reference;
};

/* ---- graphs ---- */

enum other { MATRIX, WEIGHT, IDS, KEYS, VALUES };

struct graph {
    struct rng rng; /* of the structure */
    struct strm *s;
    int32_t rows, at;
    struct arr *leaf[LEAVES], *base[LEAVES], *other[OTHERS]; /* NULL where the test lets go */
    struct arr *read[LEAVES + OTHERS];                       /* the same, borrowed from the graph */
    struct arr *node[NODES];                                 /* borrowed likewise */
    int n_nodes;
    bool has_attention;
    struct arr *result[RESULTS];
    struct arr *also[NODES]; /* held but not asked for; may be NULL */
    struct arr *made[MADE_MAX];
    int n_made;
};

/* The graph owns what its functions make until it is complete. */
static struct arr *own(struct graph *g, struct arr *a)
{
    assert_in_range(g->n_made, 0, MADE_MAX - 1);
    return g->made[g->n_made++] = a;
}

#define OWN(g, call)                                                                               \
    do {                                                                                           \
        struct arr *out = NULL;                                                                    \
        assert_ok(call);                                                                           \
        return own(g, out);                                                                        \
    } while (0)

static struct arr *unary(struct graph *g, enum op_id op, struct arr *x)
{
    OWN(g, ops_unary(&out, op, x, g->s));
}

static struct arr *binary(struct graph *g, enum op_id op, struct arr *x, struct arr *y)
{
    OWN(g, ops_binary(&out, op, x, y, g->s));
}

static struct arr *reshaped(struct graph *g, struct arr *x, const int32_t *shape, size_t n)
{
    OWN(g, ops_reshape(&out, x, (struct ints){ shape, n }, g->s));
}
#define RESHAPED(g, x, ...)                                                                        \
    reshaped(g, x, (const int32_t[]){ __VA_ARGS__ }, ARRAY_LEN(((const int32_t[]){ __VA_ARGS__ })))

static struct arr *as_rows(struct graph *g, struct arr *x)
{
    return RESHAPED(g, x, g->rows, COLUMNS);
}

static struct arr *turned(struct graph *g, struct arr *x)
{
    OWN(g, ops_transpose(&out, x, INTS_ALL, g->s));
}

static struct arr *product(struct graph *g, struct arr *x, struct arr *y)
{
    OWN(g, ops_matmul(&out, x, y, g->s));
}

static struct arr *softmax(struct graph *g, struct arr *x)
{
    OWN(g, ops_softmax(&out, x, (struct ints){ (int32_t[]){ -1 }, 1 }, true, g->s));
}

static struct arr *converted(struct graph *g, struct arr *x, enum dtype t)
{
    OWN(g, ops_astype(&out, x, t, g->s));
}

/* Along axis 0. */
static struct arr *joined(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *in[] = { x, y };

    OWN(g, ops_concatenate(&out, (struct arrs){ in, 2 }, 0, g->s));
}

/* x[..., start:stop, ...] along an axis. */
static struct arr *part(struct graph *g, struct arr *x, int axis, int32_t start, int32_t stop)
{
    int32_t first[SHP_MAX] = { 0 }, end[SHP_MAX], step[SHP_MAX];
    size_t n = x->ndim;

    for (size_t i = 0; i < n; i++) {
        end[i] = x->shape[i];
        step[i] = 1;
    }
    first[axis] = start;
    end[axis] = stop;
    OWN(g, ops_slice(&out, x, &(struct ops_slice){ { first, n }, { end, n }, { step, n } }, g->s));
}

/* x with y from `start` on along an axis. */
static struct arr *updated(struct graph *g, struct arr *x, struct arr *y, int axis, int32_t start)
{
    int32_t first[SHP_MAX] = { 0 }, end[SHP_MAX], step[SHP_MAX];
    size_t n = x->ndim;

    for (size_t i = 0; i < n; i++) {
        end[i] = x->shape[i];
        step[i] = 1;
    }
    first[axis] = start;
    end[axis] = start + y->shape[axis];
    struct ops_slice_update u = { .update = y,
                                  .region = { { first, n }, { end, n }, { step, n } },
                                  .kind = UPDATE_NONE };
    OWN(g, ops_slice_update(&out, x, &u, g->s));
}

/* ---- random steps: [rows, COLUMNS] of two of these ---- */

static struct arr *make_unary(struct graph *g, struct arr *x, struct arr *y)
{
    static const enum op_id ops[] = { OP_SIN, OP_TANH, OP_NEGATIVE, OP_SIGMOID };

    (void)y;
    return unary(g, ops[rng_below(&g->rng, ARRAY_LEN(ops))], x);
}

static struct arr *make_binary(struct graph *g, struct arr *x, struct arr *y)
{
    static const enum op_id ops[] = { OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_MAXIMUM };

    return binary(g, ops[rng_below(&g->rng, ARRAY_LEN(ops))], x, y);
}

static struct arr *make_reduction(struct graph *g, struct arr *x, struct arr *y)
{
    int32_t axis = rng_below(&g->rng, 2);
    struct ops_axes axes = { .axes = { &axis, 1 }, .keepdims = true };
    struct arr *sum = NULL;

    assert_ok(ops_reduce(&sum, axis ? REDUCE_SUM : REDUCE_MAX, x, &axes, g->s));
    return binary(g, OP_SUBTRACT, y, own(g, sum));
}

static struct arr *make_softmax(struct graph *g, struct arr *x, struct arr *y)
{
    (void)y;
    return softmax(g, x);
}

static struct arr *make_product(struct graph *g, struct arr *x, struct arr *y)
{
    (void)y;
    return unary(g, OP_TANH, product(g, x, g->read[LEAVES + MATRIX]));
}

static struct arr *make_mixture(struct graph *g, struct arr *x, struct arr *y)
{
    return product(g, softmax(g, product(g, x, turned(g, y))), y);
}

/* The first rows behind the others. What is made of either has a length that changes. */
static struct arr *make_roll(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *others = part(g, x, 0, 1 + g->at, g->rows), *first = part(g, y, 0, 0, 1 + g->at);

    if (rng_one_in(&g->rng, 2))
        return joined(g, others, first);
    return joined(g, softmax(g, others), softmax(g, first));
}

static struct arr *make_update(struct graph *g, struct arr *x, struct arr *y)
{
    return updated(g, x, part(g, y, 0, 0, 1), 0, g->at);
}

static struct arr *make_turned(struct graph *g, struct arr *x, struct arr *y)
{
    return binary(g, OP_ADD, turned(g, unary(g, OP_SIN, turned(g, x))), y);
}

/* The elements in the order of the columns: a copy. */
static struct arr *make_reshaped(struct graph *g, struct arr *x, struct arr *y)
{
    (void)y;
    return as_rows(g, turned(g, x));
}

static struct arr *make_taken(struct graph *g, struct arr *x, struct arr *y)
{
    (void)y;
    OWN(g, ops_take(&out, x, g->read[LEAVES + IDS], 0, g->s));
}

static struct arr *make_norm(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *sum = binary(g, OP_ADD, x, y);

    OWN(g, ops_rms_norm(&out, sum, g->read[LEAVES + WEIGHT], 1e-5f, g->s));
}

static struct arr *rope(struct graph *g, struct arr *x)
{
    static const float base = 10000;
    struct ops_rope how = { .dims = HEAD, .base = &base, .scale = 1, .offset = g->at };

    OWN(g, ops_rope(&out, x, &how, g->s));
}

static struct arr *as_heads(struct graph *g, struct arr *x)
{
    return RESHAPED(g, x, 1, 1, g->rows / 2, HEAD);
}

static struct arr *make_rope(struct graph *g, struct arr *x, struct arr *y)
{
    (void)y;
    return as_rows(g, rope(g, as_heads(g, x)));
}

/* With what the caches hold, which are results from then on. */
static struct arr *make_attention(struct graph *g, struct arr *x, struct arr *y)
{
    int32_t end = g->at + g->rows / 2;
    struct arr *keys = g->read[LEAVES + KEYS], *values = g->read[LEAVES + VALUES], *out = NULL;

    if (g->has_attention)
        return binary(g, OP_ADD, x, y);
    g->has_attention = true;
    g->read[LEAVES + KEYS] = keys = updated(g, keys, rope(g, as_heads(g, x)), 2, g->at);
    g->read[LEAVES + VALUES] = values = updated(g, values, as_heads(g, y), 2, g->at);
    struct ops_sdpa a = { .q = rope(g, as_heads(g, y)),
                          .k = part(g, keys, 2, 0, end),
                          .v = part(g, values, 2, 0, end),
                          .scale = 0.125f,
                          .mask_mode = "" };
    assert_ok(ops_sdpa(&out, &a, g->s));
    return as_rows(g, own(g, out));
}

static struct arr *make_split(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *half[2] = { NULL, NULL };

    (void)y;
    assert_ok(ops_split(half, x, 2, 0, g->s));
    own(g, half[0]);
    own(g, half[1]);
    return joined(g, unary(g, OP_SIN, half[1]), half[0]);
}

static struct arr *make_quotient(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *out[2] = { NULL, NULL };

    assert_ok(ops_divmod(out, x, y, g->s));
    own(g, out[0]);
    own(g, out[1]);
    return rng_one_in(&g->rng, 2) ? out[1] : unary(g, OP_TANH, out[0]);
}

static struct ops_packed packed(struct graph *g, struct arr *x)
{
    static const int32_t group = 32, bits = 4;
    struct ops_quant how = { &group, &bits, "affine" };
    struct ops_quantized q = { { NULL }, 0 };

    assert_ok(ops_quantize(&q, x, &how, NULL, g->s));
    for (size_t i = 0; i < q.n; i++)
        own(g, q.v[i]);
    return (struct ops_packed){ q.v[0], q.v[1], q.v[2], how };
}

static struct arr *make_packed(struct graph *g, struct arr *x, struct arr *y)
{
    struct ops_packed w = packed(g, x);

    (void)y;
    OWN(g, ops_dequantize(&out, &w, &(struct ops_dequantize){ NULL, NULL }, g->s));
}

static struct arr *make_packed_product(struct graph *g, struct arr *x, struct arr *y)
{
    struct ops_packed w = packed(g, g->read[LEAVES + MATRIX]);
    struct arr *out = NULL;

    assert_ok(ops_quantized_matmul(&out, unary(g, OP_TANH, x), &w, true, g->s));
    return binary(g, OP_ADD, own(g, out), y);
}

static struct arr *make_sorted(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *order = NULL;

    assert_ok(ops_argsort(&order, x, 1, g->s));
    own(g, order);
    OWN(g, ops_take_along_axis(&out, y, order, 1, g->s));
}

static struct arr *make_half(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *sum = binary(g, OP_ADD, converted(g, unary(g, OP_SIN, x), DT_FLOAT16),
                             converted(g, unary(g, OP_SIN, y), DT_FLOAT16));

    return converted(g, sum, DT_FLOAT32);
}

static struct arr *make_repeated(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *row = part(g, x, 0, g->at, g->at + 1), *all = NULL;
    int32_t shape[] = { g->rows, COLUMNS };

    assert_ok(ops_broadcast_to(&all, row, (struct ints){ shape, 2 }, g->s));
    own(g, all);
    return rng_one_in(&g->rng, 2) ? all : binary(g, OP_MAXIMUM, all, y);
}

static struct arr *make_largest(struct graph *g, struct arr *x, struct arr *y)
{
    int32_t axis = 1;
    struct arr *at = NULL;

    assert_ok(ops_arg_reduce(&at, true, x,
                             &(struct ops_axes){ .axes = { &axis, 1 }, .keepdims = true }, g->s));
    return binary(g, OP_ADD, y, converted(g, own(g, at), DT_FLOAT32));
}

static struct arr *make_choice(struct graph *g, struct arr *x, struct arr *y)
{
    struct arr *less = binary(g, OP_LESS, x, y);

    OWN(g, ops_where(&out, less, y, x, g->s));
}

static struct arr *make_scan(struct graph *g, struct arr *x, struct arr *y)
{
    (void)y;
    OWN(g, ops_scan(&out, unary(g, OP_TANH, x),
                    &(struct ops_scan){ .kind = SCAN_SUM, .axis = 0, .inclusive = true }, g->s));
}

typedef struct arr *(*make_fn)(struct graph *g, struct arr *x, struct arr *y);
static const make_fn steps[] = {
    make_unary,   make_unary,          make_binary, make_binary,    make_reduction, make_softmax,
    make_product, make_mixture,        make_roll,   make_update,    make_turned,    make_reshaped,
    make_taken,   make_norm,           make_rope,   make_attention, make_split,     make_quotient,
    make_packed,  make_packed_product, make_sorted, make_half,      make_repeated,  make_largest,
    make_choice,  make_scan,
};

/* ---- inputs ---- */

static struct arr *data(struct rng *r, const int32_t *shape, int ndim)
{
    struct shp s = { .ndim = ndim };
    struct arr *a = NULL;

    memcpy(s.d, shape, (size_t)ndim * sizeof *shape);
    size_t n = shp_size(&s);
    float *v = mem_alloc_array(n, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)rng_below(r, 2048) / 1024 - 1;
    assert_ok(arr_new_data(&a, v, &s, DT_FLOAT32));
    mem_free(v);
    return a;
}

/* The same bytes in memory of the device, for good. */
static void move_to_device(struct arr **a, struct strm *s)
{
    struct arr *out = NULL;

    assert_ok(ops_unary(&out, OP_NEGATIVE, *a, s));
    assert_ok(eval_arrays(&out, 1, false));
    arr_unref(a);
    *a = out;
}

/* What a leaf is a view of. */
static struct arr *base_of(const struct circumstances *c, int leaf, struct strm *s)
{
    const struct leaf_way *w = &c->way.leaf[leaf];
    int32_t rows = c->way.rows;
    const int32_t shape[LIES][2] = { { rows * COLUMNS, 1 },     { COLUMNS, rows },
                                     { rows + 3, COLUMNS },     { 2 * rows, 2 * COLUMNS },
                                     { 2 * rows, 2 * COLUMNS }, { 1, COLUMNS } };
    struct arr *a = data(&(struct rng){ c->values + (uint64_t)leaf }, shape[w->lies], 2);

    if (!w->from_host)
        move_to_device(&a, s);
    return a;
}

/* Every every[0]-th row from `first` on, every every[1]-th column. */
static enum err some_of(struct arr **out, struct arr *base, int32_t first, const int32_t *every,
                        const struct circumstances *c, struct strm *s)
{
    const int32_t start[] = { first, 0 };
    const int32_t stop[] = { first + c->way.rows * every[0], COLUMNS * every[1] };
    struct ops_slice v = { { start, 2 }, { stop, 2 }, { every, 2 } };

    return ops_slice(out, base, &v, s);
}

static enum err view_of(struct arr **out, struct arr *base, const struct circumstances *c, int leaf,
                        struct strm *s)
{
    static const int32_t all[] = { 1, 1 }, corners[] = { 2, 2 }, columns[] = { 1, 2 };
    int32_t shape[] = { c->way.rows, COLUMNS };

    switch (c->way.leaf[leaf].lies) {
    case DENSE:
        return ops_reshape(out, base, (struct ints){ shape, 2 }, s);
    case TRANSPOSED:
        return ops_transpose(out, base, INTS_ALL, s);
    case INSIDE:
        return some_of(out, base, 1 + leaf % 3, all, c, s);
    case STEPPED:
        return some_of(out, base, 0, corners, c, s);
    case THINNED:
        return some_of(out, base, 0, columns, c, s);
    default:
        return ops_broadcast_to(out, base, (struct ints){ shape, 2 }, s);
    }
}

/* The reference's leaves share nothing. */
static void make_leaves(struct graph *g, const struct circumstances *c)
{
    for (int i = 0; i < LEAVES; i++) {
        int of = c->way.leaf[i].of;
        g->base[i] = of == i || c->is_reference ? base_of(c, of, g->s) : arr_ref(g->base[of]);
        assert_ok(view_of(&g->leaf[i], g->base[i], c, i, g->s));
        assert_ok(eval_arrays(&g->leaf[i], 1, false));
        g->read[i] = g->leaf[i];
    }
}

static void make_others(struct graph *g, const struct circumstances *c)
{
    struct rng r = { c->values + LEAVES };
    const int32_t cache[] = { 1, 1, ROOM, HEAD };
    uint32_t ids[ROOM];

    for (int i = 0; i < g->rows; i++)
        ids[i] = (uint32_t)rng_below(&r, g->rows);
    g->other[MATRIX] = data(&r, (const int32_t[]){ COLUMNS, COLUMNS }, 2);
    g->other[WEIGHT] = data(&r, (const int32_t[]){ COLUMNS }, 1);
    assert_ok(arr_new_data(&g->other[IDS], ids, &(struct shp){ 1, { g->rows } }, DT_UINT32));
    g->other[KEYS] = data(&r, cache, 4);
    g->other[VALUES] = data(&r, cache, 4);
    for (int i = KEYS; i <= VALUES; i++)
        move_to_device(&g->other[i], g->s);
    for (int i = 0; i < OTHERS; i++)
        g->read[LEAVES + i] = g->other[i];
}

/* ---- a graph ---- */

static struct arr *pick(struct graph *g)
{
    int n = LEAVES + g->n_nodes;
    int reach = rng_one_in(&g->rng, 2) ? n : MIN(n, 4), i = n - 1 - rng_below(&g->rng, reach);

    return i < LEAVES ? g->read[i] : g->node[i - LEAVES];
}

static struct arr *pick_node(struct graph *g)
{
    return g->node[rng_below(&g->rng, g->n_nodes)];
}

/* The last node, two others, a view of a node that may be a result itself, what the caches hold. */
static void choose_results(struct graph *g)
{
    g->result[0] = arr_ref(g->node[g->n_nodes - 1]);
    g->result[1] = arr_ref(pick_node(g));
    g->result[2] = arr_ref(pick_node(g));
    struct arr *seen = rng_one_in(&g->rng, 2) ? g->result[1] : pick_node(g);
    g->result[3] = arr_ref(rng_one_in(&g->rng, 2) ? turned(g, seen) : part(g, seen, 0, 1, g->rows));
    for (int i = 0; i < 2; i++)
        g->result[4 + i] = arr_ref(g->has_attention ? g->read[LEAVES + KEYS + i] : seen);
    for (int i = 0; i < g->n_nodes; i++)
        if (rng_one_in(&g->rng, 6))
            g->also[i] = arr_ref(g->node[i]);
}

/* Lets go of everything that others are to have alone. */
static void give_away(struct graph *g, const struct circumstances *c)
{
    while (g->n_made)
        arr_unref(&g->made[--g->n_made]);
    for (int i = 0; i < LEAVES; i++) {
        if (!c->is_reference && !c->way.leaf[i].is_held)
            arr_unref(&g->leaf[i]);
        if (!c->is_reference && !c->way.leaf[i].has_base)
            arr_unref(&g->base[i]);
    }
    for (int i = KEYS; i <= VALUES; i++)
        if (!c->is_reference && !c->way.has_caches)
            arr_unref(&g->other[i]);
}

/* The same seed gives the same structure. */
static void build(struct graph *g, uint64_t seed, const struct circumstances *c, struct strm *s)
{
    *g = (struct graph){ .rng = { seed }, .s = s, .rows = c->way.rows, .at = c->at };
    make_leaves(g, c);
    make_others(g, c);
    int n = 5 + rng_below(&g->rng, NODES - 5);
    for (int i = 0; i < n; i++) {
        struct arr *x = pick(g), *y = pick(g);
        g->node[g->n_nodes++] = steps[rng_below(&g->rng, ARRAY_LEN(steps))](g, x, y);
    }
    choose_results(g);
    give_away(g, c);
}

static void drop(struct graph *g)
{
    for (int i = 0; i < LEAVES; i++) {
        arr_unref(&g->leaf[i]);
        arr_unref(&g->base[i]);
    }
    for (int i = 0; i < OTHERS; i++)
        arr_unref(&g->other[i]);
    for (int i = 0; i < RESULTS; i++)
        arr_unref(&g->result[i]);
    for (int i = 0; i < NODES; i++)
        arr_unref(&g->also[i]);
}

/* ---- comparing ---- */

static const char *element(const struct arr *a, const char *first, size_t number)
{
    int64_t at = 0;

    for (int i = a->ndim - 1; i >= 0; i--) {
        at += (int64_t)(number % (size_t)a->shape[i]) * a->strides[i];
        number /= (size_t)a->shape[i];
    }
    return first + at * (int64_t)dt_size((enum dtype)a->dtype);
}

struct place {
    uint64_t seed;
    int run;
    const char *what;
};

static void same_array(struct arr *a, struct arr *want, const struct place *p, int number)
{
    const void *x, *y;

    assert_true(arr_same_shape(a, want) && a->dtype == want->dtype);
    assert_ok(arr_host(&x, a));
    assert_ok(arr_host(&y, want));
    for (size_t k = 0; k < a->size; k++)
        if (memcmp(element(a, x, k), element(want, y, k), dt_size((enum dtype)a->dtype)) != 0)
            fail_msg("seed %llu, run %d: %s %d is wrong at element %zu",
                     (unsigned long long)p->seed, p->run, p->what, number, k);
}

/* Arrays that only one of them holds, or that were not evaluated, are left out. */
static void same_arrays(struct arr *const *a, struct arr *const *want, int n, const struct place *p)
{
    for (int i = 0; i < n; i++)
        if (a[i] && want[i] && arr_is_scheduled(a[i])) {
            assert_true(arr_is_scheduled(want[i]));
            same_array(a[i], want[i], p, i);
        }
}

static void compare(struct graph *g, struct graph *want, uint64_t seed, int run)
{
    same_arrays(g->result, want->result, RESULTS, &(struct place){ seed, run, "result" });
    same_arrays(g->also, want->also, NODES, &(struct place){ seed, run, "held node" });
    same_arrays(g->leaf, want->leaf, LEAVES, &(struct place){ seed, run, "input" });
    same_arrays(g->base, want->base, LEAVES, &(struct place){ seed, run, "base of input" });
    same_arrays(g->other, want->other, OTHERS, &(struct place){ seed, run, "other input" });
}

/* ---- runs ---- */

static struct strm *stream, *forgetful;
static uint64_t recordings, hits, again; /* of the graphs, without what makes their inputs */

static enum err evaluate(struct graph *g, bool async)
{
    uint64_t before[] = { stat_get(STAT_RECORDINGS), stat_get(STAT_RECORDING_HITS),
                          stat_get(STAT_RECORDED_AGAIN) };
    enum err err = eval_arrays(g->result, RESULTS, async);

    recordings += stat_get(STAT_RECORDINGS) - before[0];
    hits += stat_get(STAT_RECORDING_HITS) - before[1];
    again += stat_get(STAT_RECORDED_AGAIN) - before[2];
    return err;
}

static struct circumstances as_reference(const struct circumstances *c)
{
    struct circumstances r = *c;

    r.is_reference = true;
    return r;
}

static void make_reference(struct graph *want, uint64_t seed, const struct circumstances *c)
{
    struct circumstances r = as_reference(c);

    plan_cache_clear(forgetful);
    build(want, seed, &r, forgetful);
    plan_cache_clear(forgetful);
    assert_ok(eval_arrays(want->result, RESULTS, false));
}

/* Two leaves share their bytes where both lie inside of more. */
static struct way random_way(struct rng *r)
{
    struct way w = { .rows = 4 + 2 * rng_below(r, 3), .has_caches = rng_one_in(r, 4) };
    int first = LEAVES;

    for (int i = 0; i < LEAVES; i++) {
        enum lies lies = rng_one_in(r, 3)   ? INSIDE
                         : rng_one_in(r, 2) ? DENSE
                                            : (enum lies)rng_below(r, LIES);
        if (lies == INSIDE)
            first = MIN(first, i);
        w.leaf[i] = (struct leaf_way){ .lies = lies,
                                       .of = lies == INSIDE ? first : i,
                                       .is_held = rng_one_in(r, 4),
                                       .has_base = rng_one_in(r, 4),
                                       .from_host = rng_one_in(r, 5) };
    }
    return w;
}

/* w with one thing changed, which one is given by a number, in one leaf or in all. */
static struct way other_way(struct way w, int what, struct rng *r)
{
    int one = rng_one_in(r, 2) ? -1 : rng_below(r, LEAVES);

    w.rows = what == 3 ? 4 + 2 * rng_below(r, 3) : w.rows;
    w.has_caches ^= what == 1;
    for (int i = 0; i < LEAVES; i++) {
        struct leaf_way *l = &w.leaf[i];
        if (what == 2 && l->lies == INSIDE)
            l->of = i;
        if (one >= 0 && one != i)
            continue;
        l->is_held ^= what == 0;
        l->has_base ^= what == 1;
        if (what == 4 && l->lies != INSIDE)
            l->lies = l->lies == STEPPED ? THINNED : rng_one_in(r, 2) ? STEPPED : TRANSPOSED;
        l->from_host ^= what == 5;
    }
    return w;
}

static const enum gate flipped[] = {
    GATE_PLAN_FUSE,       GATE_PLAN_REORDER,    GATE_PLAN_QMM_NORM,  GATE_VK_NORM_NATIVE,
    GATE_VK_SDPA_NATIVE,  GATE_VK_QMM_NATIVE,   GATE_VK_REDUCE_WIDE, GATE_PLAN_ADD_RMSNORM,
    GATE_PLAN_ATTN_HEADS, GATE_PLAN_ROPE_CACHE, GATE_VK_GATHER_WIDE, GATE_PLAN_NORM_ROPE,
};

/* The last run's results are compared once more when the next one is over. */
static void check_graph(uint64_t seed)
{
    static struct graph g[2], want[2];
    struct rng rng = { ~seed };
    struct way ways[WAYS];
    struct circumstances c = { .at = 0 };
    enum gate gate = flipped[seed % ARRAY_LEN(flipped)];

    ways[0] = random_way(&rng);
    for (int i = 1; i < WAYS; i++)
        ways[i] = other_way(ways[0], (int)(seed + (uint64_t)i) % 6, &rng);
    for (int run = 0; run < RUNS; run++) {
        int now = run % 2;
        c.way = ways[run < 4 ? 0 : rng_below(&rng, WAYS)];
        c.values = seed * 1000 + (uint64_t)run * 10;
        c.at = run % 3 == 1 ? c.at : rng_below(&rng, PLACES);
        c.is_async = rng_one_in(&rng, 2);
        if (run == RUNS / 2 || run == RUNS - 2)
            gate_set_int(gate, run != RUNS / 2);
        make_reference(&want[now], seed, &c);
        build(&g[now], seed, &c, stream);
        assert_ok(evaluate(&g[now], c.is_async));
        compare(&g[now], &want[now], seed, run);
        if (run > 0)
            compare(&g[!now], &want[!now], seed, run - 1);
        drop(&g[!now]);
        drop(&want[!now]);
    }
    drop(&g[(RUNS - 1) % 2]);
    drop(&want[(RUNS - 1) % 2]);
}

static void open_streams(void)
{
    const struct dev gpu = { DEV_GPU, 0 };

    assert_ok(strm_new(&stream, gpu));
    assert_ok(strm_new(&forgetful, gpu));
}

static void random_graphs(void)
{
    int n = n_graphs ? n_graphs : 40;

    if (!gpu_is_tested())
        return;
    open_streams();
    size_t active = memory_active();
    for (int i = 0; i < n; i++)
        check_graph(first_seed + (uint64_t)i);
    assert_ok(strm_synchronize(stream));
    plan_cache_clear(stream);
    plan_cache_clear(forgetful);
    assert_int_equal(memory_active(), active);
    print_message("%d graphs: %llu recordings, %llu hits, %llu steps again\n", n,
                  (unsigned long long)recordings, (unsigned long long)hits,
                  (unsigned long long)again);
    assert_true(hits >= 2 * (uint64_t)n && again >= 2 * (uint64_t)n);
}

/* ---- no memory in the middle ---- */

/* Evaluates with the n-th allocation failing, then once more. True if the first time went well.
 * After a failure the graph is as it was, but where inputs were written over in place: then it may
 * be impossible to evaluate it, and a new one takes its place. */
static bool try_without_memory(uint64_t seed, const struct circumstances *c, struct graph *want,
                               size_t n)
{
    static struct graph g;

    build(&g, seed, c, stream);
    mem_fail_after(n);
    enum err err = eval_arrays(g.result, RESULTS, false);
    mem_fail_after(0);
    assert_true(!err || err == ERR_NO_MEMORY);
    enum err later = err ? eval_arrays(g.result, RESULTS, false) : ERR_OK;
    if (later) {
        assert_false(c->is_reference);
        drop(&g);
        build(&g, seed, c, stream);
        assert_ok(eval_arrays(g.result, RESULTS, false));
    }
    compare(&g, want, seed, (int)n);
    drop(&g);
    return !err;
}

/* forgets: a plan and a recording are made; moves: one is found, and steps are recorded again. */
static void fail_everywhere(uint64_t seed, const struct circumstances *c, bool forgets, bool moves)
{
    static struct graph want[2];
    struct circumstances at[2] = { *c, *c };
    bool done[2] = { false, false };

    at[1].at = c->at + moves;
    for (int i = 0; i < 2; i++)
        make_reference(&want[i], seed, &at[i]);
    for (size_t n = 1; !done[0] || !done[1]; n += 1 + n / 16) {
        int i = (int)(n % 2);
        if (forgets)
            plan_cache_clear(stream);
        for (int k = 0; k < 2; k++)
            done[k ^ i] = try_without_memory(seed, &at[k ^ i], &want[k ^ i], n);
        assert_true(n < 100000);
    }
    for (int i = 0; i < 2; i++)
        drop(&want[i]);
}

static void no_memory(void)
{
    if (!gpu_is_tested())
        return;
    open_streams();
    size_t active = memory_active();
    for (uint64_t seed = first_seed; seed < first_seed + 3; seed++)
        for (int held = 0; held < 2; held++) {
            struct circumstances c = { .way = random_way(&(struct rng){ seed }), .values = seed };
            c.is_reference = held; /* nothing can be written over */
            fail_everywhere(seed, &c, true, false);
            fail_everywhere(seed, &c, false, false);
            fail_everywhere(seed, &c, false, true);
        }
    assert_ok(strm_synchronize(stream));
    plan_cache_clear(stream);
    plan_cache_clear(forgetful);
    assert_int_equal(memory_active(), active);
}

/* ---- */

static void in_child(void (*fn)(void), const char *memory)
{
    const char *settings[] = { "MLX_VK_MEMORY", memory, "MLX_VK_RECORD", "1", NULL };

    if (!test_in_child(fn, settings))
        fail_msg("%s", memory);
}

static void test_random_graphs(void **state)
{
    (void)state;
    in_child(random_graphs, "unified");
    in_child(random_graphs, "bar");
    in_child(random_graphs, "staged");
}

static void test_no_memory(void **state)
{
    (void)state;
    in_child(no_memory, "unified");
    in_child(no_memory, "staged");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_no_memory),
    };

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        n_graphs = atoi(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
