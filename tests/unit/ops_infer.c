/* Shapes and dtypes that constructors infer, against those of MLX. Nothing is evaluated. */
#include <stdio.h>

#include "support/infer.h"
#include "support/testing.h"

#include "eval/stream.h"
#include "ops/ops.h"

static struct strm *s;

/* Inputs, arguments and results of one call. */
#define MAX_ARRAYS 16
struct io {
    struct arr *in[MAX_ARRAYS], *out[MAX_ARRAYS];
    size_t n_in, n_out;
    int32_t args[16];
    size_t n_args;
};

static struct arr **reserve(struct io *x, size_t n)
{
    assert_true(n <= MAX_ARRAYS);
    x->n_out = n;
    return x->out;
}

/* ---- calls that need more than an expression ---- */

static enum err slice_triples(struct arr **out, struct arr *a, struct ints v)
{
    int32_t part[3][SHP_MAX];

    for (size_t i = 0; i < v.n; i++)
        part[i % 3][i / 3] = v.v[i];
    struct ops_slice p = { { part[0], v.n / 3 }, { part[1], v.n / 3 }, { part[2], v.n / 3 } };
    return ops_slice(out, a, &p, s);
}

static enum err pad_pairs(struct arr **out, struct arr *a, struct ints v, const char *mode)
{
    int32_t axes[SHP_MAX], low[SHP_MAX], high[SHP_MAX];
    size_t n = v.n / 2;
    struct arr *zero = NULL;

    for (size_t i = 0; i < n; i++) {
        axes[i] = (int32_t)i;
        low[i] = v.v[2 * i];
        high[i] = v.v[2 * i + 1];
    }
    assert_ok(arr_new_number(&zero, 0, DT_INT32));
    struct ops_pad p = { { axes, n }, { low, n }, { high, n }, zero, mode };
    enum err err = ops_pad(out, a, &p, s);
    arr_unref(&zero);
    return err;
}

static enum err take_zeros(struct arr **out, struct arr *a, struct ints shape, const int32_t *axis)
{
    struct arr *indices = NULL;

    assert_ok(ops_fill(&indices, shape, 0, DT_INT32, s));
    enum err err = axis ? ops_take(out, a, indices, *axis, s) : ops_take_flat(out, a, indices, s);
    arr_unref(&indices);
    return err;
}

/* The first half of the axes is of a, the second of b. */
static enum err tensordot_halves(struct arr **out, struct arr *a, struct arr *b, struct ints v)
{
    size_t n = v.n / 2;

    return ops_tensordot(out, &(struct ops_tensordot){ a, b, { v.v, n }, { v.v + n, n } }, s);
}

/* A start of 0 on each axis. */
static struct ops_start start_zeros(struct ints axes)
{
    struct ops_start start = { NULL, axes };
    int32_t n = (int32_t)axes.n;

    assert_ok(ops_fill(&start.at, (struct ints){ &n, 1 }, 0, DT_INT32, s));
    return start;
}

/* The number of axes, the axes, the size. */
static enum err slice_zeros(struct arr **out, struct arr *a, struct ints v)
{
    size_t n = (size_t)v.v[0];
    struct ops_start start = start_zeros((struct ints){ v.v + 1, n });
    enum err err = ops_slice_dynamic(out, a, &start, (struct ints){ v.v + 1 + n, v.n - 1 - n }, s);

    arr_unref(&start.at);
    return err;
}

static enum err update_zeros(struct arr **out, struct arr *a, struct arr *b, struct ints axes)
{
    struct ops_start start = start_zeros(axes);
    enum err err = ops_slice_update_dynamic(out, a, b, &start, s);

    arr_unref(&start.at);
    return err;
}

static enum err split_key(struct arr **out, int n)
{
    struct arr *key = NULL;

    assert_ok(ops_random_key(&key, 0));
    enum err err = ops_random_split_num(out, key, n, s);
    arr_unref(&key);
    return err;
}

/* ---- calls by name ---- */

#define ARGS ((struct ints){ v, x->n_args })
#define FROM(n) ((struct ints){ v + (n), x->n_args - (n) })
#define IN ((struct arrs){ in, n_in })
#define OUTS(n) reserve(x, (size_t)(n))
#define LAST (&(struct ops_axes){ { (int32_t[]){ -1 }, 1 }, false })
#define FIRST (&(struct ops_axes){ { (int32_t[]){ 0 }, 1 }, false })

#define INFER(name, call)                                                                          \
    static enum err call_##name(struct io *x)                                                      \
    {                                                                                              \
        struct arr **out = x->out, *const *in = x->in, *a = in[0], *b = in[1];                     \
        const int32_t *v = x->args;                                                                \
        size_t n_in = x->n_in;                                                                     \
        (void)out, (void)a, (void)b, (void)v, (void)n_in;                                          \
        return call;                                                                               \
    }
#include "infer_ops.def"
#undef INFER

static const struct {
    const char *name;
    enum err (*fn)(struct io *x);
} calls[] = {
#define INFER(name, call) { #name, call_##name },
#include "infer_ops.def"
#undef INFER
};

static enum err call_by_name(const char *name, struct io *x)
{
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].fn(x);
    fail_msg("no call for %s", name);
    return ERR_ARG;
}

static void io_fini(struct io *x)
{
    for (size_t i = 0; i < MAX_ARRAYS; i++) {
        arr_unref(&x->in[i]);
        arr_unref(&x->out[i]);
    }
}

/* ---- dtypes ---- */

static const char letters[] = "b1248acilhfdBz!";

static char dtype_letter(const char *op, enum dtype t, const enum dtype *u)
{
    struct io x = { .n_in = u ? 2 : 1, .n_out = 1 };
    struct shp shape = { 2, { 2, 2 } };

    assert_ok(arr_new_data(&x.in[0], NULL, &shape, t));
    if (u)
        assert_ok(arr_new_data(&x.in[1], NULL, &shape, *u));
    enum err err = call_by_name(op, &x);
    char found = err ? '!' : letters[x.out[0]->dtype];
    if (err)
        assert_null(x.out[0]);
    io_fini(&x);
    return found;
}

static void check_dtypes(const char *op, const char *expected)
{
    bool binary = strlen(expected) > DT_COUNT;

    for (int i = 0; expected[i]; i++) {
        enum dtype t = (enum dtype)(binary ? i / DT_COUNT : i), u = (enum dtype)(i % DT_COUNT);
        char found = dtype_letter(op, t, binary ? &u : NULL);
        if (found != expected[i])
            fail_msg("%s of %s and %s: %c instead of %c", op, dt_name(t),
                     binary ? dt_name(u) : "nothing", found, expected[i]);
    }
}

static void test_dtypes(void **state)
{
    (void)state;
#define DTYPES(op, expected) check_dtypes(op, expected);
#define SHAPES(...)
#include "infer_cases.def"
#undef DTYPES
#undef SHAPES
}

/* ---- shapes ---- */

/* Reads "1,2,3" up to anything else; returns what follows. */
static const char *read_ints(int32_t *v, size_t *n, const char *text)
{
    for (*n = 0; *text && *text != ')';) {
        char *end;
        v[(*n)++] = (int32_t)strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return text;
}

/* Reads "(1,2) (3)". */
static void read_inputs(struct io *x, const char *text)
{
    for (; *text; text += *text == ' ') {
        int32_t dims[SHP_MAX];
        struct shp shape;
        size_t n;
        text = read_ints(dims, &n, text + 1) + 1;
        assert_ok(shp_make(&shape, dims, n, "test"));
        assert_ok(arr_new_data(&x->in[x->n_in++], NULL, &shape, DT_FLOAT32));
    }
}

static void check_shapes(const char *op, const char *in, const char *args, const char *expected)
{
    struct io x = { .n_out = 1 };
    char found[256] = "!";
    size_t used = 0;

    read_inputs(&x, in);
    read_ints(x.args, &x.n_args, args);
    if (call_by_name(op, &x) == ERR_OK)
        for (size_t i = 0; i < x.n_out; i++) {
            struct shp shape;
            arr_shape(&shape, x.out[i]);
            used += (size_t)snprintf(found + used, sizeof found - used, "%s%s", i ? " " : "",
                                     shp_text(&shape));
        }
    if (strcmp(found, expected) != 0)
        fail_msg("%s of %s with %s: %s instead of %s (%s)", op, in, args, found, expected,
                 err_text());
    io_fini(&x);
}

static void test_shapes(void **state)
{
    (void)state;
#define DTYPES(...)
#define SHAPES(op, in, args, expected) check_shapes(op, in, args, expected);
#include "infer_cases.def"
#undef DTYPES
#undef SHAPES
}

/* ---- what the nodes are ---- */

static struct arr *leaf(const int32_t *dims, size_t n)
{
    struct shp shape;
    struct arr *a = NULL;

    assert_ok(shp_make(&shape, dims, n, "test"));
    assert_ok(arr_new_data(&a, NULL, &shape, DT_FLOAT32));
    return a;
}

/* Ops with nothing to do return their input. */
static void test_identities(void **state)
{
    static const struct {
        const char *op;
        int32_t args[9];
        size_t n;
    } cases[] = {
        { "reshape", { 2, 1, 3 }, 3 },
        { "flatten", { 1, 1 }, 2 },
        { "unflatten", { 0, 2 }, 2 },
        { "expand_dims", { 0 }, 0 },
        { "squeeze", { 0 }, 0 },
        { "transpose", { 0, 1, 2 }, 3 },
        { "moveaxis", { 1, -2 }, 2 },
        { "swapaxes", { 2, -1 }, 2 },
        { "broadcast_to", { 2, 1, 3 }, 3 },
        { "slice", { 0, 2, 1, 0, 1, 1, 0, 9, 1 }, 9 },
        { "atleast_2d", { 0 }, 0 },
        { "split_sections", { 0 }, 1 },
        { "concatenate", { 0 }, 1 },
        { "repeat", { 1, 0 }, 2 },
        { "tile", { 1, 1, 1 }, 3 },
        { "sum", { 0 }, 1 },
        { "conjugate", { 0 }, 0 },
        { "real", { 0 }, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct io x = { .n_in = 1, .n_out = 1, .n_args = cases[i].n };
        memcpy(x.args, cases[i].args, sizeof cases[i].args);
        x.in[0] = leaf((int32_t[]){ 2, 1, 3 }, 3);
        assert_ok(call_by_name(cases[i].op, &x));
        if (x.out[0] != x.in[0])
            fail_msg("%s made a node", cases[i].op);
        assert_int_equal(ref_get(&x.in[0]->rc), 2);
        io_fini(&x);
    }
}

/* The nodes of a chain, outermost first, by the names of their ops. */
static void assert_chain(const struct arr *a, const char *const *names)
{
    for (; *names; names++) {
        assert_string_equal(op_name((enum op_id)a->node->op), *names);
        if (a->node->n_in)
            a = a->node->in[0];
    }
}

static void test_decompositions(void **state)
{
    struct arr *a = leaf((int32_t[]){ 4, 2, 3 }, 3), *b = leaf((int32_t[]){ 3, 5 }, 2), *r = NULL;
    struct ops_axes first = { { (int32_t[]){ 0 }, 1 }, false };

    (void)state;
    assert_ok(ops_matmul(&r, a, b, s));
    assert_chain(r, (const char *[]){ "Unflatten", "Matmul", "Flatten", NULL });
    arr_unref(&r);
    assert_ok(ops_reduce(&r, REDUCE_SUM, a, &first, s));
    assert_chain(r, (const char *[]){ "Squeeze", "Reduce", NULL });
    arr_unref(&r);
    assert_ok(ops_std(&r, a, &first, 0, s));
    assert_chain(
        r, (const char *[]){ "Sqrt", "Multiply", "Squeeze", "Reduce", "Square", "Subtract", NULL });
    arr_unref(&r);
    assert_ok(ops_unary(&r, OP_EXP, a, s));
    assert_chain(r, (const char *[]){ "Exp", "Leaf", NULL });
    arr_unref(&r);
    arr_unref(&a);
    arr_unref(&b);
}

static void test_split_is_one_node(void **state)
{
    struct arr *a = leaf((int32_t[]){ 6, 2 }, 2), *parts[3] = { NULL };

    (void)state;
    assert_ok(ops_split(parts, a, 3, 0, s));
    assert_ptr_equal(parts[0]->node, parts[2]->node);
    assert_ptr_equal(parts[2], &parts[0]->node->out[2]);
    assert_int_equal(((struct split_params *)parts[0]->node->params)->axis, 0);
    for (int i = 0; i < 3; i++)
        arr_unref(&parts[i]);
    arr_unref(&a);
}

static void test_slice_params(void **state)
{
    static const struct {
        int32_t in[3], start, stop, step;
    } cases[] = {
        /* of ten elements */
        { { 2, 8, 2 }, 2, 8, 2 },     { { -3, 100, 1 }, 7, 10, 1 }, { { 9, -11, -1 }, 9, -1, -1 },
        { { 100, 0, -4 }, 9, 0, -4 }, { { 3, 4, 5 }, 3, 4, 1 },     { { 8, 2, 1 }, 8, 8, 1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arr *a = leaf((int32_t[]){ 10 }, 1), *r = NULL;
        assert_ok(slice_triples(&r, a, (struct ints){ cases[i].in, 3 }));
        const struct slice_params *p = r->node->params;
        assert_int_equal(p->n, 1);
        assert_int_equal(p->d[0].start, cases[i].start);
        assert_int_equal(p->d[0].stop, cases[i].stop);
        assert_int_equal(p->d[0].step, cases[i].step);
        arr_unref(&r);
        arr_unref(&a);
    }
}

/* ---- errors that a table of shapes cannot show ---- */

static void test_error_codes(void **state)
{
    struct arr *a = leaf((int32_t[]){ 2, 3 }, 2), *z = NULL, *r = NULL;
    struct ops_axes bad = { { (int32_t[]){ 5 }, 1 }, false };

    (void)state;
    assert_ok(arr_new_number(&z, 1, DT_COMPLEX64));
    assert_fails(ERR_RANGE, ops_reduce(&r, REDUCE_SUM, a, &bad, s));
    assert_fails(ERR_RANGE, ops_mean(&r, a, &bad, s));
    assert_fails(ERR_RANGE, ops_moveaxis(&r, a, 2, 0, s));
    assert_fails(ERR_RANGE, ops_swapaxes(&r, a, 0, -3, s));
    assert_fails(ERR_RUNTIME, ops_binary(&r, OP_BITWISE_AND, a, a, s));
    assert_fails(ERR_ARG, ops_unary(&r, OP_FLOOR, z, s));
    assert_fails(ERR_OVERFLOW, ops_repeat(&r, a, INT32_MAX, 0, s));
    assert_fails(ERR_OVERFLOW, ops_tile(&r, a, (struct ints){ (int32_t[]){ INT32_MAX }, 1 }, s));
    assert_fails(ERR_ARG, ops_clip(&r, a, NULL, NULL, s));
    assert_fails(ERR_ARG, slice_triples(&r, a, (struct ints){ (int32_t[]){ 0, 1, 1 }, 3 }));
    assert_fails(ERR_ARG,
                 slice_triples(&r, a, (struct ints){ (int32_t[]){ 0, 1, 1, 0, 1, 0 }, 6 }));
    assert_fails(ERR_ARG,
                 pad_pairs(&r, a, (struct ints){ (int32_t[]){ 1, 1, 1, 1 }, 4 }, "mirror"));
    assert_fails(ERR_ARG, ops_random_bits(&r, (struct ints){ NULL, 0 }, 3, NULL, s));
    assert_fails(ERR_ARG, ops_random_bits(&r, (struct ints){ NULL, 0 }, 4, a, s));
    assert_fails(ERR_ARG, ops_take(&r, a, a, 0, s));
    assert_fails(ERR_ARG, ops_view(&r, a, DT_COMPLEX64, s));
    assert_null(r);
    arr_unref(&a);
    arr_unref(&z);
}

static void test_too_many_dims(void **state)
{
    int32_t ones[SHP_MAX + 1], axis = 0;
    struct arr *a = NULL, *r = NULL;

    (void)state;
    for (int i = 0; i <= SHP_MAX; i++)
        ones[i] = 1;
    a = leaf(ones, SHP_MAX);
    assert_fails(ERR_ARG, ops_expand_dims(&r, a, (struct ints){ &axis, 1 }, s));
    assert_fails(ERR_ARG, ops_reshape(&r, a, (struct ints){ ones, SHP_MAX + 1 }, s));
    assert_fails(ERR_ARG, ops_unflatten(&r, a, 0, (struct ints){ ones, 2 }, s));
    assert_fails(ERR_ARG, ops_tile(&r, a, (struct ints){ ones, SHP_MAX + 1 }, s));
    assert_fails(ERR_ARG, ops_stack(&r, (struct arrs){ (struct arr *[]){ a, a }, 2 }, 0, s));
    assert_fails(ERR_ARG, ops_repeat(&r, a, 2, 0, s));
    assert_fails(ERR_ARG, ops_inner(&r, a, a, s));
    assert_null(r);
    arr_unref(&a);
}

/* Whatever a file may say of a node. */
static void test_rules_survive_anything(void **state)
{
    struct rng r = { 1 };

    (void)state;
    for (int op = OP_NONE; op < OP_COUNT; op++)
        for (int i = 0; i < 2000; i++) {
            const char *wrong = infer_random((enum op_id)op, &r);
            if (*wrong)
                fail_msg("%s", wrong);
        }
}

/* Every op of the table has a name, a family and, where it has parameters, their size. */
static void test_table(void **state)
{
    (void)state;
    for (int i = OP_NONE + 1; i < OP_COUNT; i++) {
        assert_non_null(op_table[i].name);
        assert_in_range(op_table[i].family, OP_FAMILY_NONE + 1, OP_FAMILY_COUNT - 1);
    }
    assert_int_equal(op_table[OP_ADD].params, PARAMS_none);
    assert_int_equal(op_table[OP_SLICE].params, PARAMS_slice);
    assert_int_equal(op_table[OP_ADD].flags, OPF_FUSE);
    assert_int_equal(op_table[OP_EQUAL].flags, OPF_FUSE | OPF_BOOL_OUT);
    assert_int_equal(op_table[OP_SQUEEZE].flags, OPF_VIEW);
}

static int setup(void **state)
{
    (void)state;
    return strm_default(&s, (struct dev){ DEV_CPU, 0 }) == ERR_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_decompositions),
        cmocka_unit_test(test_split_is_one_node),
        cmocka_unit_test(test_rules_survive_anything),
        cmocka_unit_test(test_slice_params),
        cmocka_unit_test(test_error_codes),
        cmocka_unit_test(test_too_many_dims),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
