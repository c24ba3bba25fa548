/* Plan rewrites that put nodes of different ops into one step: what they find, and that the result
 * is that of the nodes one by one. */
#include "plan/rewrite.h"

#include "base/gate.h"
#include "eval/eval.h"
#include "support/sim.h"
#include "support/testing.h"

static const struct shp row = { .ndim = 3, .d = { 1, 1, 8 } };
static const struct shp heads = { .ndim = 4, .d = { 1, 1, 2, 4 } };
static const struct shp cache_shape = { .ndim = 4, .d = { 1, 2, 16, 4 } };
static const struct quantized_matmul_params four_bits = { .q = { 64, 4, 0 }, .transpose = 1 };
static const struct quantized_matmul_params eight_bits = { .q = { 64, 8, 0 }, .transpose = 1 };

static struct strm *stream;

/* ---- graphs; arguments are borrowed unless they say otherwise ---- */

static struct sim_arr make(enum op_id op, const struct shp *shape, const struct sim_arr *in,
                           size_t n)
{
    return sim_op(&(struct sim_node){ op, stream, *shape, DT_FLOAT32, 1 }, in, n);
}

static struct sim_arr leaf(uint64_t seed)
{
    return sim_leaf(&row, DT_FLOAT32, seed);
}

static struct sim_arr add(struct sim_arr a, struct sim_arr b)
{
    return make(OP_ADD, &row, (struct sim_arr[]){ a, b }, 2);
}

static struct sim_arr mul(struct sim_arr a, struct sim_arr b)
{
    return make(OP_MULTIPLY, &row, (struct sim_arr[]){ a, b }, 2);
}

static struct sim_arr norm(struct sim_arr x)
{
    struct sim_arr weight = leaf(11), out;

    out = make(OP_RMS_NORM, x.a->ndim == 4 ? &heads : &row, (struct sim_arr[]){ x, weight }, 2);
    sim_drop(&weight);
    return out;
}

static struct sim_arr qmm(struct sim_arr x, uint64_t weight,
                          const struct quantized_matmul_params *params)
{
    struct sim_arr in[4] = { x, leaf(weight), leaf(weight + 1), leaf(weight + 2) };
    struct sim_arr out = sim_op_params(
        &(struct sim_node){ OP_QUANTIZED_MATMUL, stream, row, DT_FLOAT32, 1 }, params, in, 4);

    for (int i = 1; i < 4; i++)
        sim_drop(&in[i]);
    return out;
}

static struct sim_arr matmul(struct sim_arr x, struct sim_arr w)
{
    return make(OP_MATMUL, &row, (struct sim_arr[]){ x, w }, 2);
}

/* The matrices of w that numbers say. */
static struct sim_arr gather_qmm(struct sim_arr x, uint64_t weight, struct sim_arr numbers)
{
    struct sim_arr in[6] = {
        x, leaf(weight), leaf(weight + 1), leaf(weight + 2), numbers, numbers
    };
    struct sim_arr out = sim_op_params(
        &(struct sim_node){ OP_GATHER_QMM, stream, row, DT_FLOAT32, 1 }, &four_bits, in, 6);

    for (int i = 1; i < 4; i++)
        sim_drop(&in[i]);
    return out;
}

/* Replaces *a by b, dropping the old one. */
static void become(struct sim_arr *a, struct sim_arr b)
{
    sim_drop(a);
    *a = b;
}

static struct sim_arr silu_mul(struct sim_arr gate, struct sim_arr up, bool swap)
{
    struct sim_arr s = make(OP_SIGMOID, &row, &gate, 1);
    become(&s, swap ? mul(s, gate) : mul(gate, s));
    become(&s, swap ? mul(up, s) : mul(s, up));
    return s;
}

/* The first n arrays are evaluated, compared and dropped. */
static void eval_and_drop(struct sim_arr *a, size_t n)
{
    struct arr *outs[8];

    for (size_t i = 0; i < n; i++)
        outs[i] = a[i].a;
    assert_ok(eval_arrays(outs, n, false));
    for (size_t i = 0; i < n; i++) {
        assert_true(sim_is_right(&a[i]));
        sim_drop(&a[i]);
    }
}

/* Steps that the device was asked for since the last call. */
static size_t steps(void)
{
    size_t n = sim_count(SIM_STEP);

    sim_log_clear();
    return n;
}

/* ---- quantized products ---- */

static void test_siblings_and_their_norm_are_one_step(void **state)
{
    struct sim_arr x = leaf(1), h = norm(x), out[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        out[i] = qmm(h, 20 + 10 * (uint64_t)i, &four_bits);
    sim_drop(&h);
    sim_drop(&x);
    eval_and_drop(out, 3);
    assert_int_equal(steps(), 1);
    assert_int_equal(rewrite_hits(REWRITE_QMM_SIBLINGS), 1);
    assert_int_equal(rewrite_hits(REWRITE_QMM_NORM), 1);
}

static void test_norm_that_others_read_stays(void **state)
{
    struct sim_arr x = leaf(1), h = norm(x), out[3] = { { 0 } };

    (void)state;
    out[0] = qmm(h, 20, &four_bits);
    out[1] = qmm(h, 30, &four_bits);
    out[2] = h;
    sim_drop(&x);
    eval_and_drop(out, 3);
    assert_int_equal(steps(), 2);
    assert_int_equal(rewrite_hits(REWRITE_QMM_NORM), 0);
}

static void test_other_packing_is_no_sibling(void **state)
{
    struct sim_arr x = leaf(1), out[2];

    (void)state;
    out[0] = qmm(x, 20, &four_bits);
    out[1] = qmm(x, 30, &eight_bits);
    sim_drop(&x);
    eval_and_drop(out, 2);
    assert_int_equal(steps(), 2);
    assert_int_equal(rewrite_hits(REWRITE_QMM_SIBLINGS), 0);
}

/* The same structure with another packing must not get the first one's plan. */
static void test_packing_is_part_of_the_structure(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct sim_arr x = leaf(1), out[2];
        out[0] = qmm(x, 20, &four_bits);
        out[1] = qmm(x, 30, i ? &eight_bits : &four_bits);
        sim_drop(&x);
        eval_and_drop(out, 2);
        assert_int_equal(steps(), i ? 2 : 1);
    }
    (void)state;
}

static void test_residual(void **state)
{
    for (int swap = 0; swap < 2; swap++) {
        struct sim_arr x = leaf(1), y = qmm(x, 20, &four_bits);
        become(&y, swap ? add(x, y) : add(y, x));
        sim_drop(&x);
        eval_and_drop(&y, 1);
        assert_int_equal(steps(), 1);
    }
    assert_int_equal(rewrite_hits(REWRITE_EPILOGUE), 2);
    (void)state;
}

/* What is added may itself be made after the product. */
static void test_late_residual(void **state)
{
    struct sim_arr x = leaf(1), y = qmm(x, 20, &four_bits), late = make(OP_REDUCE, &row, &x, 1);

    (void)state;
    become(&y, add(y, late));
    sim_drop(&late);
    sim_drop(&x);
    eval_and_drop(&y, 1);
    assert_int_equal(steps(), 2);
    assert_int_equal(rewrite_hits(REWRITE_EPILOGUE), 1);
}

static void test_silu_mul(void **state)
{
    for (int i = 0; i < 4; i++) {
        struct sim_arr x = leaf(1), h = norm(x);
        struct sim_arr a = qmm(h, 20, &four_bits), b = qmm(h, 30, &four_bits);
        struct sim_arr y = i & 2 ? silu_mul(b, a, i & 1) : silu_mul(a, b, i & 1);
        sim_drop(&a);
        sim_drop(&b);
        sim_drop(&h);
        sim_drop(&x);
        eval_and_drop(&y, 1);
        assert_int_equal(steps(), 1);
    }
    assert_int_equal(rewrite_hits(REWRITE_PAIR_EPILOGUE), 4);
    assert_int_equal(rewrite_hits(REWRITE_QMM_NORM), 4);
    (void)state;
}

static void test_gate_that_others_read_stays(void **state)
{
    struct sim_arr x = leaf(1), a = qmm(x, 20, &four_bits), b = qmm(x, 30, &four_bits);
    struct sim_arr out[2] = { silu_mul(a, b, false), a };

    (void)state;
    sim_drop(&b);
    sim_drop(&x);
    eval_and_drop(out, 2);
    assert_int_equal(rewrite_hits(REWRITE_PAIR_EPILOGUE), 0);
    assert_int_equal(rewrite_hits(REWRITE_QMM_SIBLINGS), 1);
    steps();
}

/* ---- what follows on a product ---- */

static struct sim_arr unary(enum op_id op, struct sim_arr a)
{
    struct sim_arr out = make(op, &row, &a, 1);

    sim_drop(&a);
    return out;
}

/* (y + bias) * tanh(y + bias) + x, y gone afterwards. */
static struct sim_arr tail(struct sim_arr y, struct sim_arr bias, struct sim_arr x)
{
    struct sim_arr z;

    become(&y, add(y, bias));
    z = make(OP_TANH, &row, &y, 1);
    become(&z, mul(y, z));
    become(&z, add(z, x));
    sim_drop(&y);
    return z;
}

static void test_programs_behind_all_products(void **state)
{
    struct sim_arr x = leaf(1), w = leaf(2), bias = leaf(3);
    struct sim_arr y[] = { matmul(x, w), qmm(x, 20, &four_bits), gather_qmm(x, 20, w) };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(y); i++) {
        struct sim_arr z = tail(y[i], bias, x);
        eval_and_drop(&z, 1);
        assert_int_equal(steps(), 1);
    }
    assert_int_equal(rewrite_hits(REWRITE_EPILOGUE), 3);
    sim_drop(&bias);
    sim_drop(&w);
    sim_drop(&x);
}

/* The program ends where somebody else reads. */
static void test_program_ends_with_what_is_read(void **state)
{
    struct sim_arr x = leaf(1), w = leaf(2), y = unary(OP_TANH, matmul(x, w));
    struct sim_arr out[2] = { unary(OP_EXP, add(y, x)), y };

    (void)state;
    sim_drop(&w);
    sim_drop(&x);
    eval_and_drop(out, 2);
    assert_int_equal(steps(), 2); /* with tanh; the sum and exp */
    assert_int_equal(rewrite_hits(REWRITE_EPILOGUE), 1);
}

static void test_gathers_of_other_matrices_are_no_pair(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct sim_arr x = leaf(1), n = leaf(2), other = leaf(3);
        struct sim_arr a = gather_qmm(x, 20, n), b = gather_qmm(x, 30, i ? other : n);
        struct sim_arr y = silu_mul(a, b, false);
        sim_drop(&a);
        sim_drop(&b);
        sim_drop(&n);
        sim_drop(&other);
        sim_drop(&x);
        eval_and_drop(&y, 1);
        assert_int_equal(steps(), 1 + i);
    }
    assert_int_equal(rewrite_hits(REWRITE_PAIR_EPILOGUE), 1);
    assert_int_equal(rewrite_hits(REWRITE_EPILOGUE), 1); /* of one, the other is a side input */
    (void)state;
}

/* Nine arrays are more than a program reads besides its product. */
static void test_too_many_side_inputs(void **state)
{
    struct sim_arr x = leaf(1), w = leaf(2), y = matmul(x, w);

    (void)state;
    for (uint64_t i = 0; i <= GROUP_MAX_SIDES; i++) {
        struct sim_arr side = leaf(10 + i);
        become(&y, add(y, side));
        sim_drop(&side);
    }
    sim_drop(&w);
    sim_drop(&x);
    eval_and_drop(&y, 1);
    assert_int_equal(steps(), 2);
    assert_int_equal(rewrite_hits(REWRITE_EPILOGUE), 1);
}

/* ---- heads ---- */

static struct sim_arr rope_of(struct sim_arr x, bool has_norm)
{
    struct sim_arr h = has_norm ? norm(x) : (struct sim_arr){ arr_ref(x.a), x.digest, x.offset };

    become(&h, make(OP_TRANSPOSE, &heads, &h, 1));
    become(&h, make(OP_ROPE, &heads, &h, 1));
    return h;
}

static struct sim_arr update_of(struct sim_arr x, const struct sim_arr *cache)
{
    struct sim_arr in[2] = { *cache, x };

    return make(OP_SLICE_UPDATE, &cache_shape, in, 2);
}

static void test_heads(void **state)
{
    struct sim_arr x = sim_leaf(&heads, DT_FLOAT32, 3);
    struct sim_arr cache = sim_leaf(&cache_shape, DT_FLOAT32, 4);
    struct sim_arr out[3] = { rope_of(x, true), rope_of(x, true), rope_of(x, false) };

    (void)state;
    become(&out[1], update_of(out[1], &cache));
    become(&out[2], update_of(out[2], &cache));
    sim_drop(&cache);
    sim_drop(&x);
    eval_and_drop(out, 3);
    assert_int_equal(steps(), 3);
    assert_int_equal(rewrite_hits(REWRITE_NORM_ROPE), 2);
    assert_int_equal(rewrite_hits(REWRITE_ROPE_CACHE), 2);
}

/* An attention to what two caches hold after their updates. */
static struct sim_arr attention(struct sim_arr q, struct sim_arr keys, struct sim_arr values)
{
    struct sim_arr in[3] = { q, make(OP_SLICE, &heads, &keys, 1),
                             make(OP_SLICE, &heads, &values, 1) };
    struct sim_arr out = make(OP_SDPA, &heads, in, 3);

    sim_drop(&in[1]);
    sim_drop(&in[2]);
    return out;
}

/* out: the attention, the two caches. late: the queries depend on the new keys. */
static void make_attention(struct sim_arr *out, bool has_norm, bool has_view, bool late)
{
    struct sim_arr x = sim_leaf(&heads, DT_FLOAT32, 3);
    struct sim_arr cache = sim_leaf(&cache_shape, DT_FLOAT32, 4), k = rope_of(x, has_norm);
    struct sim_arr v = has_view ? make(OP_TRANSPOSE, &heads, &x, 1)
                                : (struct sim_arr){ arr_ref(x.a), x.digest, x.offset };

    out[1] = update_of(k, &cache);
    out[2] = update_of(v, &cache);
    if (late)
        become(&x, make(OP_REDUCE, &heads, &out[1], 1));
    struct sim_arr q = rope_of(x, has_norm);
    out[0] = attention(q, out[1], out[2]);
    sim_drop(&q);
    sim_drop(&k);
    sim_drop(&v);
    sim_drop(&cache);
    sim_drop(&x);
}

static void test_attention(void **state)
{
    struct sim_arr out[3];

    (void)state;
    for (int i = 0; i < 4; i++) {
        bool has_norm = i & 1, has_view = i & 2;
        make_attention(out, has_norm, has_view, false);
        eval_and_drop(out, 3);
        assert_int_equal(steps(), 1);
    }
    assert_int_equal(rewrite_hits(REWRITE_ATTN_HEADS), 4);
    assert_int_equal(rewrite_hits(REWRITE_QKV_PLACEMENT), 4);
    assert_int_equal(rewrite_hits(REWRITE_NORM_ROPE), 2);
    make_attention(out, true, true, true);
    eval_and_drop(out, 3);
    assert_int_equal(rewrite_hits(REWRITE_QKV_PLACEMENT), 4);
    assert_int_equal(rewrite_hits(REWRITE_NORM_ROPE), 4); /* two groups of their own */
    steps();
}

static void test_heads_without_their_attention(void **state)
{
    struct sim_arr out[3];

    (void)state;
    gate_set_int(GATE_PLAN_ATTN_HEADS, 0);
    for (int i = 0; i < 4; i++) {
        bool has_norm = i & 1, has_view = i & 2;
        make_attention(out, has_norm, has_view, false);
        eval_and_drop(out, 3);
        assert_int_equal(steps(), 4); /* the group, two slices, the attention */
    }
    gate_set_int(GATE_PLAN_ATTN_HEADS, 1);
    assert_int_equal(rewrite_hits(REWRITE_ATTN_HEADS), 0);
    assert_int_equal(rewrite_hits(REWRITE_QKV_PLACEMENT), 4);
    assert_int_equal(rewrite_hits(REWRITE_NORM_ROPE), 2);
}

/* Queries that somebody else reads are stored; what keys and values hold may be read by all. */
static void test_attention_that_shares(void **state)
{
    struct sim_arr x = sim_leaf(&heads, DT_FLOAT32, 3);
    struct sim_arr cache = sim_leaf(&cache_shape, DT_FLOAT32, 4), q = rope_of(x, true);
    struct sim_arr k = rope_of(x, true), out[4];

    (void)state;
    out[1] = update_of(k, &cache);
    out[2] = update_of(x, &cache);
    out[0] = attention(q, out[1], out[2]);
    out[3] = q;
    sim_drop(&k);
    sim_drop(&x);
    sim_drop(&cache);
    eval_and_drop(out, 4);
    assert_int_equal(steps(), 4);
    assert_int_equal(rewrite_hits(REWRITE_QKV_PLACEMENT), 1);
    assert_int_equal(rewrite_hits(REWRITE_ATTN_HEADS), 0);
    make_attention(out, true, true, false);
    out[3] = make(OP_SDPA, &heads, out, 3);
    eval_and_drop(out, 4);
    assert_int_equal(rewrite_hits(REWRITE_ATTN_HEADS), 1);
    steps();
}

/* Caches that nobody keeps stay inside. */
static void test_attention_alone(void **state)
{
    struct sim_arr out[3];

    (void)state;
    make_attention(out, true, true, false);
    sim_drop(&out[1]);
    sim_drop(&out[2]);
    eval_and_drop(out, 1);
    assert_int_equal(steps(), 1);
    assert_int_equal(rewrite_hits(REWRITE_ATTN_HEADS), 1);
}

static void test_add_and_norm(void **state)
{
    struct sim_arr x = leaf(1), y = leaf(2), sum = add(x, y), out[2] = { norm(sum), sum };

    (void)state;
    sim_drop(&x);
    sim_drop(&y);
    eval_and_drop(out, 2);
    assert_int_equal(steps(), 1);
    assert_int_equal(rewrite_hits(REWRITE_ADD_RMSNORM), 1);
}

/* ---- rows of a packed table ---- */

/* What the third operand is. */
enum third { NO_BIASES, BIASES, BIASES_OF_OTHER_ROWS, GLOBAL_SCALE, THIRDS };

static struct sim_arr rows_of(struct sim_arr table, struct sim_arr ids, enum op_id view)
{
    struct sim_arr rows = make(OP_GATHER, &row, (struct sim_arr[]){ table, ids }, 2);

    if (view != OP_GATHER)
        become(&rows, make(view, &row, &rows, 1));
    return rows;
}

static struct sim_arr embedding(struct sim_arr ids, enum op_id view, enum third third)
{
    struct sim_arr other = leaf(9), table = leaf(20), in[3], out;
    size_t n = third == NO_BIASES ? 2 : 3;

    in[0] = rows_of(table, ids, view);
    in[1] = rows_of(table, ids, view);
    in[2] = third == GLOBAL_SCALE ? leaf(8) : rows_of(table, third == BIASES ? ids : other, view);
    out = make(OP_QUANTIZE, &row, in, n);
    for (int i = 0; i < 3; i++)
        sim_drop(&in[i]);
    sim_drop(&table);
    sim_drop(&other);
    return out;
}

static void test_embedding(void **state)
{
    static const enum op_id views[] = { OP_GATHER, OP_SQUEEZE, OP_RESHAPE };
    static const enum third thirds[] = { NO_BIASES, BIASES, GLOBAL_SCALE };
    struct sim_arr ids = leaf(1);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(views); i++)
        for (size_t k = 0; k < ARRAY_LEN(thirds); k++) {
            struct sim_arr out = embedding(ids, views[i], thirds[k]);
            eval_and_drop(&out, 1);
            assert_int_equal(steps(), 1);
        }
    assert_int_equal(rewrite_hits(REWRITE_EMBEDDING), 9);
    sim_drop(&ids);
}

/* What else is read, the backend has to make sense of. */
static void test_embedding_with_other_rows(void **state)
{
    struct sim_arr ids = leaf(1), out = embedding(ids, OP_SQUEEZE, BIASES_OF_OTHER_ROWS);

    (void)state;
    eval_and_drop(&out, 1);
    assert_int_equal(steps(), 3); /* the other rows, their view, the group */
    assert_int_equal(rewrite_hits(REWRITE_EMBEDDING), 1);
    sim_drop(&ids);
}

static void test_embedding_of_columns_stays(void **state)
{
    struct sim_arr ids = leaf(1), out = embedding(ids, OP_TRANSPOSE, BIASES);

    (void)state;
    eval_and_drop(&out, 1);
    assert_int_equal(rewrite_hits(REWRITE_EMBEDDING), 0);
    sim_drop(&ids);
    steps();
}

static void test_rows_that_others_read_stay(void **state)
{
    struct sim_arr ids = leaf(1), table = leaf(2), words = rows_of(table, ids, OP_GATHER);
    struct sim_arr scales = rows_of(table, ids, OP_SQUEEZE);
    struct sim_arr out[2] = { make(OP_QUANTIZE, &row, (struct sim_arr[]){ words, scales }, 2),
                              words };

    (void)state;
    sim_drop(&scales);
    sim_drop(&table);
    sim_drop(&ids);
    eval_and_drop(out, 2);
    assert_int_equal(rewrite_hits(REWRITE_EMBEDDING), 0);
    steps();
}

/* ---- all together ---- */

static const enum gate gates[] = {
#define REWRITE(id, ...) GATE_PLAN_##id,
#include "plan/rewrite.def"
#undef REWRITE
};

static void set_gates(uint32_t mask)
{
    for (size_t i = 0; i < ARRAY_LEN(gates); i++)
        gate_set_int(gates[i], mask >> i & 1);
}

static void test_refused_groups_run_node_by_node(void **state)
{
    struct sim_arr x = leaf(1), h = norm(x);
    struct sim_arr a = qmm(h, 20, &four_bits), b = qmm(h, 30, &four_bits);
    struct sim_arr y = silu_mul(a, b, false);

    (void)state;
    sim_answer_groups(GROUP_SIZE);
    sim_drop(&a);
    sim_drop(&b);
    sim_drop(&h);
    sim_drop(&x);
    eval_and_drop(&y, 1);
    assert_int_equal(steps(), 4); /* the elementwise ones are a program */
    assert_int_equal(rewrite_hits(REWRITE_PAIR_EPILOGUE), 0);
    assert_int_equal(rewrite_rejects(REWRITE_PAIR_EPILOGUE, GROUP_SIZE), 1);
}

enum { POOL = 120 };

static struct sim_arr random_attention(struct sim_arr a, struct sim_arr b, struct sim_arr c,
                                       bool has_norm)
{
    struct sim_arr q = rope_of(a, has_norm), k = rope_of(b, has_norm);

    become(&k, update_of(k, &c));
    struct sim_arr v = update_of(a, &b), out = attention(q, k, v);
    sim_drop(&q);
    sim_drop(&k);
    sim_drop(&v);
    return out;
}

static struct sim_arr random_node(struct rng *r, const struct sim_arr *pool, int n)
{
    struct sim_arr a = pool[rng_one_in(r, 4) ? rng_below(r, n) : n - 1 - rng_below(r, MIN(n, 3))];
    struct sim_arr b = pool[rng_one_in(r, 2) ? rng_below(r, n) : n - 1 - rng_below(r, MIN(n, 3))];

    switch (rng_below(r, 14)) {
    case 0:
    case 1:
        return qmm(a, 20, rng_one_in(r, 5) ? &eight_bits : &four_bits);
    case 2:
        return norm(a);
    case 3:
        return make(OP_SIGMOID, &row, &a, 1);
    case 4:
        return mul(a, b);
    case 5:
        return make(OP_ROPE, &row, &a, 1);
    case 6:
        return make(OP_SLICE_UPDATE, &row, (struct sim_arr[]){ a, b }, 2);
    case 7:
        return make(OP_RESHAPE, &row, &a, 1);
    case 8:
        return random_attention(a, b, pool[rng_below(r, n)], rng_one_in(r, 2));
    case 9:
        return embedding(a, rng_one_in(r, 2) ? OP_SQUEEZE : OP_RESHAPE,
                         (enum third)rng_below(r, THIRDS));
    case 10:
        return matmul(a, b);
    case 11:
        return gather_qmm(a, 20 + 3 * (uint64_t)rng_below(r, 2), pool[rng_below(r, 3)]);
    case 12:
        return make(rng_one_in(r, 2) ? OP_TANH : OP_SQUARE, &row, &a, 1);
    default:
        return add(a, b);
    }
}

static void random_round(struct rng *r)
{
    struct sim_arr pool[POOL], out[4];
    int n = 0, size = 8 + rng_below(r, POOL - 8);

    for (; n < 3; n++)
        pool[n] = leaf((uint64_t)n);
    for (; n < size; n++)
        pool[n] = random_node(r, pool, n);
    for (int o = 0; o < 4; o++) {
        out[o] = pool[n - 1 - rng_below(r, 5)];
        arr_ref(out[o].a);
    }
    for (int i = 0; i < n; i++)
        if (!rng_one_in(r, 10))
            sim_drop(&pool[i]);
    eval_and_drop(out, 4);
    for (int i = 0; i < n; i++)
        sim_drop(&pool[i]);
}

static void test_random_graphs(void **state)
{
    struct rng rng = { 5 };

    (void)state;
    for (int round = 0; round < 600; round++) {
        set_gates(rng_one_in(&rng, 2) ? UINT32_MAX : (uint32_t)rng_next(&rng));
        sim_answer_groups(rng_one_in(&rng, 4) ? GROUP_LAYOUT : GROUP_TAKEN);
        random_round(&rng);
    }
    for (int id = REWRITE_QMM_SIBLINGS; id < REWRITE_COUNT; id++)
        assert_true(rewrite_hits((enum rewrite)id) > 0);
    steps();
}

/* ---- */

static int begin(void **state)
{
    (void)state;
    sim_begin();
    stream = sim_strm_new();
    set_gates(UINT32_MAX);
    rewrite_reset();
    return 0;
}

static int end(void **state)
{
    (void)state;
    sim_strm_free(&stream);
    sim_end();
    set_gates(UINT32_MAX);
    return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_siblings_and_their_norm_are_one_step),
        TEST(test_norm_that_others_read_stays),
        TEST(test_other_packing_is_no_sibling),
        TEST(test_packing_is_part_of_the_structure),
        TEST(test_residual),
        TEST(test_late_residual),
        TEST(test_silu_mul),
        TEST(test_gate_that_others_read_stays),
        TEST(test_programs_behind_all_products),
        TEST(test_program_ends_with_what_is_read),
        TEST(test_gathers_of_other_matrices_are_no_pair),
        TEST(test_too_many_side_inputs),
        TEST(test_heads),
        TEST(test_attention),
        TEST(test_heads_without_their_attention),
        TEST(test_attention_that_shares),
        TEST(test_attention_alone),
        TEST(test_add_and_norm),
        TEST(test_embedding),
        TEST(test_embedding_with_other_rows),
        TEST(test_embedding_of_columns_stays),
        TEST(test_rows_that_others_read_stay),
        TEST(test_refused_groups_run_node_by_node),
        TEST(test_random_graphs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
