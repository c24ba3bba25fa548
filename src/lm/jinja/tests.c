/* What follows `is`. */
#include "lm/jinja/builtin.h"
#include "lm/jinja/parser.h"

#define TEST(name, holds)                                                                          \
    static struct jval test_##name(struct jin *j, struct jval v, const struct jargs *a)            \
    {                                                                                              \
        (void)j;                                                                                   \
        (void)a;                                                                                   \
        return jv_bool(holds);                                                                     \
    }

static bool is_callable(struct jval v)
{
    /* Jinja's Undefined has a __call__, which fails. */
    return v.kind == J_MACRO || v.kind == J_FUNCTION || v.kind == J_METHOD || v.kind == J_JOINER ||
           v.kind == J_LOOP || v.kind == J_UNDEFINED;
}

/* What has a length and elements by number or key. */
static bool is_sequence(struct jval v)
{
    return is_str(v) || is_seq(v) || v.kind == J_DICT || v.kind == J_RANGE || v.kind == J_UNDEFINED;
}

static bool is_same(struct jval a, struct jval b)
{
    if (a.kind != b.kind)
        return false;
    if (a.kind == J_NONE)
        return true;
    return a.kind == J_BOOL ? a.b == b.b : a.kind == J_FLOAT ? a.f == b.f : a.i == b.i;
}

static int compare(struct jin *j, struct jval v, const struct jargs *a, const char *op)
{
    return jv_compare(j, v, a->v[0], op);
}

static bool is_odd(struct jin *j, struct jval v)
{
    if (v.kind == J_FLOAT)
        return v.f - 2 * (double)(int64_t)(v.f / 2) == 1;
    return jin_want_int(j, v) % 2 != 0;
}

static bool divides(struct jin *j, struct jval v, const struct jargs *a)
{
    struct jval rest = jin_arithmetic(j, OP_MOD, v, a->v[0]);

    return jin_ok(j) && jv_equal(j, rest, jv_int(0));
}

TEST(boolean, v.kind == J_BOOL)
TEST(callable, is_callable(v))
TEST(defined, v.kind != J_UNDEFINED)
TEST(divisibleby, divides(j, v, a))
TEST(eq, jv_equal(j, v, a->v[0]))
TEST(escaped, v.safe)
TEST(even, !is_odd(j, v))
TEST(false, v.kind == J_BOOL && !v.b)
TEST(float, v.kind == J_FLOAT)
TEST(ge, compare(j, v, a, ">=") == 0 || compare(j, v, a, ">=") == 1)
TEST(gt, compare(j, v, a, ">") == 1)
TEST(in, jv_contains(j, a->v[0], v))
TEST(integer, v.kind == J_INT)
TEST(iterable, jv_is_iterable(v))
TEST(le, compare(j, v, a, "<=") <= 0)
TEST(lower, jin_is_lower(jv_to_str(j, v)))
TEST(lt, compare(j, v, a, "<") < 0)
TEST(mapping, v.kind == J_DICT)
TEST(ne, !jv_equal(j, v, a->v[0]))
TEST(none, v.kind == J_NONE)
TEST(number, is_number(v))
TEST(odd, is_odd(j, v))
TEST(sameas, is_same(v, a->v[0]))
TEST(sequence, is_sequence(v))
TEST(string, is_str(v))
TEST(true, v.kind == J_BOOL && v.b)
TEST(undefined, v.kind == J_UNDEFINED)
TEST(upper, jin_is_upper(jv_to_str(j, v)))
TEST(filter, is_str(v) && jin_filter(v.s))
TEST(test, is_str(v) && jin_test(v.s))

static const struct jfn tests[] = {
    { "!=", "other", 1, test_ne },
    { "<", "other", 1, test_lt },
    { "<=", "other", 1, test_le },
    { "==", "other", 1, test_eq },
    { ">", "other", 1, test_gt },
    { ">=", "other", 1, test_ge },
    { "boolean", "", 0, test_boolean },
    { "callable", "", 0, test_callable },
    { "defined", "", 0, test_defined },
    { "divisibleby", "num", 1, test_divisibleby },
    { "eq", "other", 1, test_eq },
    { "equalto", "other", 1, test_eq },
    { "escaped", "", 0, test_escaped },
    { "even", "", 0, test_even },
    { "false", "", 0, test_false },
    { "filter", "", 0, test_filter },
    { "float", "", 0, test_float },
    { "ge", "other", 1, test_ge },
    { "greaterthan", "other", 1, test_gt },
    { "gt", "other", 1, test_gt },
    { "in", "seq", 1, test_in },
    { "integer", "", 0, test_integer },
    { "iterable", "", 0, test_iterable },
    { "le", "other", 1, test_le },
    { "lessthan", "other", 1, test_lt },
    { "lower", "", 0, test_lower },
    { "lt", "other", 1, test_lt },
    { "mapping", "", 0, test_mapping },
    { "ne", "other", 1, test_ne },
    { "none", "", 0, test_none },
    { "number", "", 0, test_number },
    { "odd", "", 0, test_odd },
    { "sameas", "other", 1, test_sameas },
    { "sequence", "", 0, test_sequence },
    { "string", "", 0, test_string },
    { "test", "", 0, test_test },
    { "true", "", 0, test_true },
    { "undefined", "", 0, test_undefined },
    { "upper", "", 0, test_upper },
};

const struct jfn *jin_test(const struct jstr *name)
{
    return jin_row(tests, ARRAY_LEN(tests), name);
}
