#include "plan/plan.h"

#include "base/gate.h"
#include "base/hash.h"
#include "base/stat.h"
#include "eval/tape.h"
#include "graph/op.h"
#include "plan/plan_build.h"
#include "support/sim.h"
#include "support/testing.h"

static const struct shp vector = { .ndim = 1, .d = { 4 } };
static const struct shp other_shape = { .ndim = 1, .d = { 5 } };

static struct strm *stream;

/* ---- graphs ---- */

static struct arr *make(enum op_id op, const struct shp *shape, struct arr *const *in, size_t n)
{
    struct arr *a = NULL;

    assert_ok(arr_new_op(&a, .op = (uint16_t)op, .strm = stream, .in = in, .n_in = n,
                         .out = &(struct out_desc){ *shape, DT_FLOAT32 }));
    return a;
}

static struct arr *leaf(void)
{
    return sim_leaf(&vector, DT_FLOAT32, 1).a;
}

/* Consumes the reference. */
static struct arr *unary(enum op_id op, struct arr *a)
{
    struct arr *out = make(op, &vector, &a, 1);

    arr_unref(&a);
    return out;
}

/* Keeps the caller's references. */
static struct arr *binary(enum op_id op, struct arr *a, struct arr *b)
{
    return make(op, &vector, (struct arr *[]){ a, b }, 2);
}

/* ---- planning ---- */

struct planned {
    struct tape tape;
    struct plan *plan;
};

/* The graph of outs as one run. */
static struct planned plan_of(struct arr *const *outs, size_t n)
{
    struct planned p = { 0 };

    assert_ok(tape_build(&p.tape, outs, n, false));
    assert_true(p.tape.n > 0 && p.tape.n <= PLAN_MAX_NODES);
    for (size_t i = 0; i < p.tape.n; i++)
        p.tape.node[i]->mark = i;
    assert_ok(plan_get(&p.plan, stream, p.tape.node, p.tape.n));
    tape_release(&p.tape); /* a tape that owns nodes must stay where it is */
    return p;
}

/* ---- brute force: does the plan compute what the nodes say? ---- */

struct value {
    const struct arr *a;
    uint64_t digest;
};

struct machine {
    const struct planned *p;
    VEC(struct value) memory; /* arrays that steps have written */
    bool done[PLAN_MAX_NODES];
};

/* What an array of the run holds by definition; arrays from outside are told apart by address. */
static uint64_t defined(const struct planned *p, const struct arr *a)
{
    if (arr_is_scheduled(a))
        return hash_mix(HASH_SEED, (uintptr_t)a);
    const struct node *n = a->node;
    uint64_t h = hash_mix(hash_mix(HASH_SEED, n->op), (uint64_t)(a - n->out));
    h = hash_mix(h, a->dtype);
    for (int k = 0; k < n->n_in; k++)
        h = hash_mix(h, defined(p, n->in[k]));
    return h;
}

static uint64_t load(const struct machine *m, const struct arr *a)
{
    if (arr_is_scheduled(a))
        return defined(m->p, a);
    for (size_t i = 0; i < m->memory.n; i++)
        if (m->memory.v[i].a == a)
            return m->memory.v[i].digest;
    fail_msg("a step reads an array that no earlier step has written");
    return 0;
}

static void run_program(struct machine *m, const struct plan_step *step)
{
    const struct plan *plan = m->p->plan;
    const struct elem_program *f = step->program;
    uint64_t value[ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_INS];

    assert_true(f->n_in <= ELEM_PROGRAM_MAX_IN && f->n_ins <= ELEM_PROGRAM_MAX_INS &&
                f->n_out <= ELEM_PROGRAM_MAX_OUT);
    for (int i = 0; i < f->n_in; i++) {
        struct plan_input from = plan->inputs[step->first_in + (uint32_t)i];
        const struct arr *a = m->p->tape.node[from.node]->in[from.arg];
        assert_int_equal(f->in_dtype[i], a->dtype);
        value[i] = load(m, a);
    }
    for (int i = 0; i < f->n_ins; i++) {
        const struct elem_program_ins *ins = &f->ins[i];
        uint64_t h = hash_mix(hash_mix(hash_mix(HASH_SEED, ins->op), 0), ins->dtype);
        for (int k = 0; k < ins->n_args; k++) {
            assert_true(ins->arg[k] < f->n_in + i);
            h = hash_mix(h, value[ins->arg[k]]);
        }
        value[f->n_in + i] = h;
    }
    for (int o = 0; o < f->n_out; o++) {
        const struct arr *a =
            &m->p->tape.node[plan->outputs[step->first_out + (uint32_t)o]]->out[0];
        assert_ok(VEC_PUSH(&m->memory, (struct value){ a, value[f->out[o]] }));
    }
}

static void run_plain(struct machine *m, const struct node *n)
{
    for (int o = 0; o < n->n_out; o++) {
        uint64_t h = hash_mix(hash_mix(HASH_SEED, n->op), (uint64_t)o);
        h = hash_mix(h, n->out[o].dtype);
        for (int k = 0; k < n->n_in; k++)
            h = hash_mix(h, load(m, n->in[k]));
        assert_ok(VEC_PUSH(&m->memory, (struct value){ &n->out[o], h }));
    }
}

/* Runs the plan step by step. Every array that somebody outside the run holds must come out, with
 * the value that its node defines. */
static void check_plan(const struct planned *p)
{
    struct machine m = { .p = p };
    size_t nodes = 0;

    for (size_t i = 0; i < p->plan->n_step; i++) {
        const struct plan_step *step = &p->plan->step[i];
        assert_false(m.done[step->node]);
        m.done[step->node] = true;
        nodes += step->n_nodes;
        if (step->program)
            run_program(&m, step);
        else
            run_plain(&m, p->tape.node[step->node]);
    }
    assert_int_equal(nodes, p->tape.n);
    for (size_t i = 0; i < m.memory.n; i++)
        assert_true(m.memory.v[i].digest == defined(p, m.memory.v[i].a));
    for (size_t i = 0; i < p->tape.n; i++)
        for (int o = 0; o < p->tape.node[i]->n_out; o++) {
            const struct arr *a = &p->tape.node[i]->out[o];
            int inside = 0;
            for (size_t k = 0; k < p->tape.n; k++)
                for (int in = 0; in < p->tape.node[k]->n_in; in++)
                    inside += p->tape.node[k]->in[in] == a;
            if (ref_get(&a->rc) > inside)
                (void)load(&m, a);
        }
    VEC_FINI(&m.memory);
}

static void finish(struct planned *p)
{
    tape_fini(&p->tape);
}

/* ---- fusion ---- */

static void test_chain_is_one_program(void **state)
{
    struct arr *a = unary(OP_COS, unary(OP_SIN, unary(OP_EXP, leaf())));
    struct planned p = plan_of(&a, 1);

    (void)state;
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 1);
    const struct plan_step *step = &p.plan->step[0];
    assert_int_equal(step->node, 2);
    assert_int_equal(step->n_nodes, 3);
    assert_int_equal(step->n_in, 1);
    assert_int_equal(step->n_out, 1);
    assert_int_equal(step->program->n_ins, 3);
    assert_int_equal(step->program->ins[0].op, OP_EXP);
    assert_int_equal(step->program->ins[2].op, OP_COS);
    finish(&p);
    arr_unref(&a);
}

/* Of a run of chains that end with a held array each, so that every one is a step. */
static void test_equal_programs_are_one(void **state)
{
    struct arr *x = leaf(), *y = sim_leaf(&other_shape, DT_FLOAT32, 1).a;
    struct arr *outs[4] = { make(OP_EXP, &vector, &x, 1), make(OP_SIN, &vector, &x, 1),
                            make(OP_EXP, &other_shape, &y, 1), NULL };
    int64_t fuse = gate_set_int(GATE_PLAN_FUSE, 0);

    (void)state;
    outs[3] = make(OP_EXP, &vector, &outs[0], 1);
    struct planned p = plan_of(outs, 4);
    check_plan(&p);
    const struct plan_step *by_out[4] = { NULL };
    for (size_t i = 0; i < p.plan->n_step; i++)
        for (int o = 0; o < 4; o++)
            if (p.tape.node[p.plan->step[i].node] == outs[o]->node)
                by_out[o] = &p.plan->step[i];
    assert_int_equal(p.plan->n_step, 4);
    assert_ptr_equal(by_out[0]->program, by_out[3]->program);
    assert_ptr_not_equal(by_out[0]->program, by_out[1]->program); /* another op */
    assert_ptr_not_equal(by_out[0]->program, by_out[2]->program); /* another shape */
    finish(&p);
    gate_set_int(GATE_PLAN_FUSE, fuse);
    for (int o = 0; o < 4; o++)
        arr_unref(&outs[o]);
    arr_unref(&x);
    arr_unref(&y);
}

static void test_diamond_is_one_program(void **state)
{
    struct arr *top = unary(OP_EXP, leaf());
    struct arr *left = make(OP_SIN, &vector, &top, 1), *right = make(OP_COS, &vector, &top, 1);
    struct arr *a = binary(OP_ADD, left, right);

    (void)state;
    arr_unref(&top);
    arr_unref(&left);
    arr_unref(&right);
    struct planned p = plan_of(&a, 1);
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 1);
    assert_int_equal(p.plan->step[0].n_in, 1);
    assert_int_equal(p.plan->step[0].n_out, 1);
    finish(&p);
    arr_unref(&a);
}

static void test_held_intermediate_becomes_an_output(void **state)
{
    struct arr *middle = unary(OP_SIN, unary(OP_EXP, leaf()));
    struct arr *a = make(OP_COS, &vector, &middle, 1);
    struct planned p = plan_of(&a, 1);

    (void)state;
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 1);
    assert_int_equal(p.plan->step[0].n_out, 2);
    finish(&p);
    arr_unref(&a);
    arr_unref(&middle);
}

/* A consumer that is not part of this eval needs the bytes as much as a handle does. */
static void test_consumer_outside_the_run_counts_as_holder(void **state)
{
    struct arr *middle = unary(OP_EXP, leaf());
    struct arr *later = make(OP_SIN, &vector, &middle, 1);
    struct arr *a = make(OP_COS, &vector, &middle, 1);

    (void)state;
    arr_unref(&middle);
    struct planned p = plan_of(&a, 1);
    check_plan(&p);
    assert_int_equal(p.plan->step[p.plan->n_step - 1].n_out, 2);
    finish(&p);
    arr_unref(&a);
    arr_unref(&later);
}

static void test_one_input_used_often_is_loaded_once(void **state)
{
    struct arr *x = leaf();
    struct arr *sum = binary(OP_ADD, x, x), *a = binary(OP_MULTIPLY, sum, x);

    (void)state;
    arr_unref(&sum);
    struct planned p = plan_of(&a, 1);
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 1);
    assert_int_equal(p.plan->step[0].n_in, 1);
    finish(&p);
    arr_unref(&a);
    arr_unref(&x);
}

static void test_other_shapes_are_not_merged(void **state)
{
    struct arr *x = leaf(), *inner = make(OP_EXP, &other_shape, &x, 1);
    struct arr *a = make(OP_SIN, &vector, &inner, 1);

    (void)state;
    arr_unref(&inner);
    struct planned p = plan_of(&a, 1);
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 2);
    finish(&p);
    arr_unref(&a);
    arr_unref(&x);
}

static void test_ops_that_cannot_fuse_stand_alone(void **state)
{
    struct arr *x = unary(OP_EXP, leaf());
    struct arr *reduced = unary(OP_REDUCE, x), *a = unary(OP_SIN, reduced);
    struct planned p = plan_of(&a, 1);

    (void)state;
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 3);
    assert_null(p.plan->step[1].program);
    finish(&p);
    arr_unref(&a);
}

static void test_empty_arrays_run_nothing(void **state)
{
    struct shp none = { .ndim = 1, .d = { 0 } };
    struct arr *x = sim_leaf(&none, DT_FLOAT32, 1).a;
    struct arr *a = make(OP_EXP, &none, &x, 1);
    struct planned p = plan_of(&a, 1);

    (void)state;
    assert_int_equal(p.plan->n_step, 1);
    assert_null(p.plan->step[0].program);
    finish(&p);
    arr_unref(&a);
    arr_unref(&x);
}

/* ---- limits ---- */

static void test_long_chain_is_cut(void **state)
{
    struct arr *a = leaf();
    size_t length = 0;

    (void)state;
    for (int i = 0; i < 3 * ELEM_PROGRAM_MAX_INS + 1; i++)
        a = unary(OP_EXP, a);
    struct planned p = plan_of(&a, 1);
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 4);
    for (size_t i = 0; i < p.plan->n_step; i++)
        length += p.plan->step[i].program->n_ins;
    assert_int_equal(length, 3 * ELEM_PROGRAM_MAX_INS + 1);
    finish(&p);
    arr_unref(&a);
}

static void test_many_inputs_are_cut(void **state)
{
    struct arr *a = leaf();

    (void)state;
    for (int i = 0; i < 2 * ELEM_PROGRAM_MAX_IN; i++) {
        struct arr *x = leaf(), *next = binary(OP_ADD, a, x);
        arr_unref(&a);
        arr_unref(&x);
        a = next;
    }
    struct planned p = plan_of(&a, 1);
    check_plan(&p);
    assert_true(p.plan->n_step >= 2);
    finish(&p);
    arr_unref(&a);
}

static void test_many_outputs_are_cut(void **state)
{
    enum { HELD = 3 * ELEM_PROGRAM_MAX_OUT };
    struct arr *held[HELD];
    struct arr *x = leaf();

    (void)state;
    for (int i = 0; i < HELD; i++)
        held[i] = make(OP_EXP, &vector, i ? &held[i - 1] : &x, 1);
    struct planned p = plan_of(&held[HELD - 1], 1);
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 3);
    finish(&p);
    for (int i = 0; i < HELD; i++)
        arr_unref(&held[i]);
    arr_unref(&x);
}

/* ---- gates ---- */

static void test_gates_off_is_the_tape(void **state)
{
    struct arr *x = leaf(), *left = make(OP_SIN, &vector, &x, 1);
    struct arr *right = make(OP_REDUCE, &vector, &x, 1), *sum = binary(OP_ADD, left, right);
    struct arr *a = unary(OP_EXP, sum);

    (void)state;
    arr_unref(&left);
    arr_unref(&right);
    gate_set_int(GATE_PLAN_FUSE, 0);
    gate_set_int(GATE_PLAN_REORDER, 0);
    struct planned p = plan_of(&a, 1);
    gate_set_int(GATE_PLAN_FUSE, 1);
    gate_set_int(GATE_PLAN_REORDER, 1);
    check_plan(&p);
    assert_int_equal(p.plan->n_step, p.tape.n);
    for (size_t i = 0; i < p.plan->n_step; i++)
        assert_int_equal(p.plan->step[i].node, i);
    finish(&p);
    arr_unref(&a);
    arr_unref(&x);
}

/* ---- order ---- */

static void test_independent_steps_stand_side_by_side(void **state)
{
    enum { CHAINS = 4 };
    struct arr *end[CHAINS];

    (void)state;
    for (int c = 0; c < CHAINS; c++) /* reductions do not fuse, so every chain has two steps */
        end[c] = unary(OP_REDUCE, unary(OP_REDUCE, leaf()));
    struct planned p = plan_of(end, CHAINS);
    check_plan(&p);
    assert_int_equal(p.plan->n_step, 2 * CHAINS);
    for (int i = 0; i < CHAINS; i++) {
        const struct node *first = p.tape.node[p.plan->step[i].node];
        assert_true(arr_is_scheduled(first->in[0])); /* all beginnings before all ends */
    }
    finish(&p);
    for (int c = 0; c < CHAINS; c++)
        arr_unref(&end[c]);
}

/* ---- cache ---- */

enum variant { SAME, OTHER_OP, OTHER_DTYPE, OTHER_SHAPE, HELD, ONE_INPUT_TWICE, VARIANTS };

/* exp(x + y) and a variation of it. */
static void plan_variant(enum variant v, const struct plan **plan)
{
    struct arr *x = leaf(), *y = v == ONE_INPUT_TWICE ? arr_ref(x) : leaf(), *a = NULL;
    struct shp shape = v == OTHER_SHAPE ? other_shape : vector;
    struct arr *sum =
        make(v == OTHER_OP ? OP_SUBTRACT : OP_ADD, &shape, (struct arr *[]){ x, y }, 2);

    assert_ok(
        arr_new_op(&a, .op = OP_EXP, .strm = stream, .in = &sum, .n_in = 1,
                   .out = &(struct out_desc){ shape, v == OTHER_DTYPE ? DT_FLOAT16 : DT_FLOAT32 }));
    if (v != HELD)
        arr_unref(&sum);
    struct planned p = plan_of(&a, 1);
    check_plan(&p);
    *plan = p.plan;
    finish(&p);
    arr_unref(&a);
    arr_unref(&sum);
    arr_unref(&x);
    arr_unref(&y);
}

static void test_same_structure_is_found_again(void **state)
{
    const struct plan *first, *again;

    (void)state;
    uint64_t builds = stat_get(STAT_PLAN_BUILDS), hits = stat_get(STAT_PLAN_HITS);
    plan_variant(SAME, &first);
    plan_variant(SAME, &again);
    assert_ptr_equal(first, again);
    assert_int_equal(stat_get(STAT_PLAN_BUILDS) - builds, 1);
    assert_int_equal(stat_get(STAT_PLAN_HITS) - hits, 1);
}

static void test_other_structures_are_built(void **state)
{
    const struct plan *plan[VARIANTS], *again;

    (void)state;
    uint64_t builds = stat_get(STAT_PLAN_BUILDS);
    for (int v = 0; v < VARIANTS; v++)
        plan_variant((enum variant)v, &plan[v]);
    assert_int_equal(stat_get(STAT_PLAN_BUILDS) - builds, VARIANTS);
    for (int v = 0; v < VARIANTS; v++) {
        plan_variant((enum variant)v, &again);
        assert_ptr_equal(again, plan[v]);
    }
}

static void test_gates_are_part_of_the_structure(void **state)
{
    const struct plan *fused, *single, *again;

    (void)state;
    plan_variant(SAME, &fused);
    assert_int_equal(fused->n_step, 1);
    gate_set_int(GATE_PLAN_FUSE, 0);
    plan_variant(SAME, &single);
    assert_int_equal(single->n_step, 2);
    gate_set_int(GATE_PLAN_FUSE, 1);
    plan_variant(SAME, &again);
    assert_ptr_equal(again, fused);
}

static void test_cache_off_builds_every_time(void **state)
{
    const struct plan *plan;

    (void)state;
    gate_set_int(GATE_PLAN_CACHE, 0);
    uint64_t hits = stat_get(STAT_PLAN_HITS);
    plan_variant(SAME, &plan);
    plan_variant(SAME, &plan);
    gate_set_int(GATE_PLAN_CACHE, 1);
    assert_int_equal(stat_get(STAT_PLAN_HITS), hits);
}

static void test_cache_survives_more_structures_than_it_keeps(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++)
        for (int n = 1; n <= 700; n++) {
            struct shp shape = { .ndim = 1, .d = { n } };
            struct arr *x = leaf(), *a = make(OP_EXP, &shape, &x, 1);
            struct planned p = plan_of(&a, 1);
            check_plan(&p);
            finish(&p);
            arr_unref(&a);
            arr_unref(&x);
        }
}

/* The outputs of one node are different arrays: quotient + quotient is not quotient + remainder. */
static void test_siblings_are_told_apart(void **state)
{
    static const int pairs[][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct sim_arr x = { .a = leaf() }, parts[2];
        sim_node(parts, &(struct sim_node){ OP_DIVMOD, stream, vector, DT_FLOAT32, 2 },
                 (struct sim_arr[]){ x, x }, 2);
        struct arr *a = binary(OP_ADD, parts[pairs[i][0]].a, parts[pairs[i][1]].a);
        sim_drop(&parts[0]);
        sim_drop(&parts[1]);
        struct planned p = plan_of(&a, 1);
        check_plan(&p);
        finish(&p);
        arr_unref(&a);
        sim_drop(&x);
    }
}

/* More arrays from outside than the numbering has room for. */
static void test_many_outside_arrays_are_told_apart(void **state)
{
    enum { MANY = 3000 };
    struct arr *in[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++)
        in[i] = leaf();
    for (int twice = 1; twice >= 0; twice--) {
        struct arr *x = leaf(), *y = twice ? arr_ref(x) : leaf();
        struct arr *joined = make(OP_CONCATENATE, &vector, in, MANY);
        struct arr *sum = binary(OP_ADD, x, y);
        struct arr *outs[] = { sum, joined };
        struct planned p = plan_of(outs, 2);
        check_plan(&p);
        finish(&p);
        arr_unref(&sum);
        arr_unref(&joined);
        arr_unref(&x);
        arr_unref(&y);
    }
    for (int i = 0; i < MANY; i++)
        arr_unref(&in[i]);
}

/* ---- random runs ---- */

enum { POOL = 250 };

/* Some node over earlier ones of the pool; writes one or two arrays. */
static int random_node(struct rng *r, struct arr **pool, int n)
{
    static const enum op_id ops[] = { OP_EXP,    OP_SIN,     OP_ADD, OP_MULTIPLY, OP_ADD,   OP_ADD,
                                      OP_SELECT, OP_RESHAPE, OP_EXP, OP_REDUCE,   OP_DIVMOD };
    enum op_id op = ops[rng_below(r, (int)ARRAY_LEN(ops))];
    enum op_family family = op_table[op].family;
    int n_in = op == OP_SELECT ? 3 : family == OP_FAMILY_BINARY || op == OP_DIVMOD ? 2 : 1;
    int n_out = op == OP_DIVMOD ? 2 : 1;
    struct out_desc desc[2];
    struct arr *in[3];

    for (int i = 0; i < 2; i++)
        desc[i] = (struct out_desc){ rng_one_in(r, 6) ? other_shape : vector,
                                     rng_one_in(r, 6) ? DT_FLOAT16 : DT_FLOAT32 };
    for (int i = 0; i < n_in; i++)
        in[i] = pool[rng_one_in(r, 3) ? rng_below(r, n) : n - 1 - rng_below(r, MIN(n, 4))];
    assert_ok(node_new(&pool[n], &(struct node_params){ .op = (uint16_t)op,
                                                        .strm = stream,
                                                        .in = in,
                                                        .n_in = (size_t)n_in,
                                                        .out = desc,
                                                        .n_out = (size_t)n_out }));
    return n_out;
}

/* Plans a random graph of about `size` nodes in which handles are dropped at random. */
static void random_round(struct rng *r, int size, bool keep_plans)
{
    struct arr *pool[POOL + 2], *outs[4];
    int n = 0;

    for (; n < 3; n++)
        pool[n] = leaf();
    while (n < size)
        n += random_node(r, pool, n);
    for (int o = 0; o < 4; o++)
        outs[o] = arr_ref(pool[n - 1 - rng_below(r, MIN(n - 3, 8))]);
    for (int i = 0; i < n; i++)
        if (!rng_one_in(r, 8))
            arr_unref(&pool[i]);
    struct planned p = plan_of(outs, 4);
    check_plan(&p);
    finish(&p);
    if (!keep_plans)
        plan_cache_clear(stream);
    for (int o = 0; o < 4; o++)
        arr_unref(&outs[o]);
    for (int i = 0; i < n; i++)
        arr_unref(&pool[i]);
}

static void test_random_runs(void **state)
{
    struct rng rng = { 77 };

    (void)state;
    for (int round = 0; round < 400; round++) {
        gate_set_int(GATE_PLAN_FUSE, !rng_one_in(&rng, 5));
        gate_set_int(GATE_PLAN_REORDER, !rng_one_in(&rng, 5));
        random_round(&rng, 4 + rng_below(&rng, 60), false);
    }
    gate_set_int(GATE_PLAN_FUSE, 1);
    gate_set_int(GATE_PLAN_REORDER, 1);
}

/* Small graphs of few ops resemble each other: a key that leaves something out gives one of them
 * the plan of another. */
static void test_random_small_runs_share_a_cache(void **state)
{
    struct rng rng = { 78 };
    uint64_t hits = stat_get(STAT_PLAN_HITS);

    (void)state;
    for (int round = 0; round < 20000; round++)
        random_round(&rng, 5 + rng_below(&rng, 3), true);
    assert_true(stat_get(STAT_PLAN_HITS) - hits > 500);
}

/* ---- failures ---- */

static void test_no_memory_leaves_no_half_plan(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        struct arr *a = unary(OP_COS, unary(OP_SIN, unary(OP_EXP, leaf())));
        struct tape t = { 0 };
        struct plan *plan = NULL;
        assert_ok(tape_build(&t, &a, 1, false));
        for (size_t i = 0; i < t.n; i++)
            t.node[i]->mark = i;
        mem_fail_after(n);
        enum err err = plan_get(&plan, stream, t.node, t.n);
        mem_fail_after(0);
        if (!err) {
            struct planned p = { t, plan };
            check_plan(&p);
        }
        tape_fini(&t);
        arr_unref(&a);
        if (!err)
            break;
        assert_int_equal(err, ERR_NO_MEMORY);
        assert_true(n < 50);
    }
}

static int begin(void **state)
{
    (void)state;
    sim_begin();
    stream = sim_strm_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    mem_fail_after(0);
    sim_strm_free(&stream);
    sim_end();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_chain_is_one_program),
        TEST(test_equal_programs_are_one),
        TEST(test_diamond_is_one_program),
        TEST(test_held_intermediate_becomes_an_output),
        TEST(test_consumer_outside_the_run_counts_as_holder),
        TEST(test_one_input_used_often_is_loaded_once),
        TEST(test_other_shapes_are_not_merged),
        TEST(test_ops_that_cannot_fuse_stand_alone),
        TEST(test_empty_arrays_run_nothing),
        TEST(test_long_chain_is_cut),
        TEST(test_many_inputs_are_cut),
        TEST(test_many_outputs_are_cut),
        TEST(test_gates_off_is_the_tape),
        TEST(test_independent_steps_stand_side_by_side),
        TEST(test_same_structure_is_found_again),
        TEST(test_other_structures_are_built),
        TEST(test_gates_are_part_of_the_structure),
        TEST(test_cache_off_builds_every_time),
        TEST(test_cache_survives_more_structures_than_it_keeps),
        TEST(test_siblings_are_told_apart),
        TEST(test_many_outside_arrays_are_told_apart),
        TEST(test_random_runs),
        TEST(test_random_small_runs_share_a_cache),
        TEST(test_no_memory_leaves_no_half_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
