/* Arithmetic, and order of many values. */
#include <math.h>

#include "lm/jinja/builtin.h"
#include "lm/jinja/parser.h"

static const char *const op_names[] = {
    [OP_ADD] = "+",       [OP_SUB] = "-", [OP_MUL] = "*",  [OP_DIV] = "/",
    [OP_FLOORDIV] = "//", [OP_MOD] = "%", [OP_POW] = "**",
};

static struct jval overflow(struct jin *j)
{
    return jin_fail(j, "integers beyond 64 bits are not supported");
}

static struct jval cannot(struct jin *j, int op, struct jval a, struct jval b)
{
    if (!jin_defined(j, a) || !jin_defined(j, b))
        return jv_none();
    return jin_fail(j, "unsupported operand type(s) for %s: '%s' and '%s'", op_names[op],
                    jv_type(a), jv_type(b));
}

/* ---- integers ---- */

static struct jval int_power(struct jin *j, int64_t base, int64_t exponent)
{
    int64_t result = 1;

    if (exponent < 0)
        return jv_float(pow((double)base, (double)exponent));
    for (; exponent; exponent >>= 1) {
        if (exponent & 1 && MUL_OVERFLOWS(result, base, &result))
            return overflow(j);
        if (exponent > 1 && MUL_OVERFLOWS(base, base, &base))
            return overflow(j);
    }
    return jv_int(result);
}

static struct jval int_arithmetic(struct jin *j, int op, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool divides = op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD, over = false;

    if (divides && b == 0)
        return jin_fail(j, "division by zero");
    if (op == OP_DIV)
        return jv_float((double)a / (double)b);
    if (divides && b == -1) /* the least integer has no opposite */
        return op == OP_MOD ? jv_int(0) : jin_negate(j, jv_int(a));
    switch (op) {
    case OP_SUB:
        over = __builtin_sub_overflow(a, b, &r);
        break;
    case OP_MUL:
        over = MUL_OVERFLOWS(a, b, &r);
        break;
    case OP_FLOORDIV:
        r = a / b - (a % b != 0 && (a < 0) != (b < 0));
        break;
    case OP_MOD:
        r = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
        break;
    default:
        return int_power(j, a, b);
    }
    return over ? overflow(j) : jv_int(r);
}

/* ---- floats ---- */

static double float_mod(double a, double b)
{
    double r = fmod(a, b);

    if (r != 0 && (r < 0) != (b < 0))
        r += b;
    return r != 0 ? r : copysign(0.0, b);
}

static struct jval float_arithmetic(struct jin *j, int op, double a, double b)
{
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
        return jin_fail(j, "division by zero");
    switch (op) {
    case OP_SUB:
        return jv_float(a - b);
    case OP_MUL:
        return jv_float(a * b);
    case OP_DIV:
        return jv_float(a / b);
    case OP_FLOORDIV:
        return jv_float(floor(a / b));
    case OP_MOD:
        return jv_float(float_mod(a, b));
    default:
        if (a < 0 && b != floor(b))
            return jin_fail(j, "complex numbers are not supported");
        return a == 0 && b < 0 ? jin_fail(j, "division by zero") : jv_float(pow(a, b));
    }
}

/* ---- sequences ---- */

static struct jval add_lists(struct jin *j, struct jval a, struct jval b)
{
    struct jval sum = jv_list(j, a.kind, a.l->n + b.l->n);

    for (size_t i = 0; i < a.l->n && jin_ok(j); i++)
        jv_push(j, sum, a.l->v[i]);
    for (size_t i = 0; i < b.l->n && jin_ok(j); i++)
        jv_push(j, sum, b.l->v[i]);
    return sum;
}

/* What is added to safe text is escaped. */
static struct jval add_text(struct jin *j, struct jval a, struct jval b)
{
    bool safe = a.safe || b.safe;
    struct jval sum;

    if (safe) {
        a = jin_escape(j, a);
        b = jin_escape(j, b);
    }
    if (!jin_ok(j))
        return jv_none();
    sum = jv_concat(j, a, b);
    sum.safe = safe;
    return sum;
}

static struct jval repeat(struct jin *j, struct jval v, int64_t times)
{
    struct str t = { 0 };
    struct jval all;

    times = MAX(times, 0);
    if (is_str(v)) {
        for (int64_t i = 0; i < times && v.s->n && jin_tick(j, 1); i++)
            jin_put(j, &t, v.s->v, v.s->n);
        all = jin_take(j, &t);
        all.safe = v.safe;
        return all;
    }
    all = jv_list(j, v.kind, 0);
    for (int64_t i = 0; v.l->n && i < times && jin_ok(j); i++)
        for (size_t k = 0; k < v.l->n && jin_ok(j); k++)
            jv_push(j, all, v.l->v[k]);
    return all;
}

/* ---- all of it ---- */

struct jval jin_add(struct jin *j, struct jval a, struct jval b)
{
    int64_t sum;

    if (is_int(a) && is_int(b))
        return ADD_OVERFLOWS(int_of(a), int_of(b), &sum) ? overflow(j) : jv_int(sum);
    if (is_number(a) && is_number(b))
        return jv_float(number_of(a) + number_of(b));
    if (is_str(a) && is_str(b))
        return add_text(j, a, b);
    if (is_seq(a) && a.kind == b.kind)
        return add_lists(j, a, b);
    return cannot(j, OP_ADD, a, b);
}

struct jval jin_arithmetic(struct jin *j, int op, struct jval a, struct jval b)
{
    bool repeats = (is_str(a) || is_seq(a)) && is_int(b);

    if (is_int(a) && is_int(b))
        return int_arithmetic(j, op, int_of(a), int_of(b));
    if (is_number(a) && is_number(b))
        return float_arithmetic(j, op, number_of(a), number_of(b));
    if (op == OP_MUL && repeats)
        return repeat(j, a, int_of(b));
    if (op == OP_MUL && (is_str(b) || is_seq(b)) && is_int(a))
        return repeat(j, b, int_of(a));
    if (op == OP_MOD && is_str(a))
        return jin_percent(j, a, b);
    return cannot(j, op, a, b);
}

struct jval jin_negate(struct jin *j, struct jval v)
{
    int64_t r;

    if (v.kind == J_FLOAT)
        return jv_float(-v.f);
    if (is_int(v))
        return __builtin_sub_overflow((int64_t)0, int_of(v), &r) ? overflow(j) : jv_int(r);
    return jin_defined(j, v) ? jin_fail(j, "bad operand type for unary -: '%s'", jv_type(v))
                             : jv_none();
}

/* ---- sorting: merges, so that what is equal keeps its order ---- */

struct sorting {
    struct jin *j;
    struct jval *keys, *values, *spare;
    bool reverse;
};

static bool goes_first(const struct sorting *s, struct jval a, struct jval b)
{
    return jv_compare(s->j, a, b, "<") == -1;
}

static void merge(struct sorting *s, size_t from, size_t middle, size_t to)
{
    size_t n = 0, a = from, b = middle;

    while ((a < middle || b < to) && jin_tick(s->j, 1)) {
        bool second = a == middle;
        if (!second && b < to)
            second = s->reverse ? goes_first(s, s->keys[a], s->keys[b])
                                : goes_first(s, s->keys[b], s->keys[a]);
        s->spare[n++] = s->keys[second ? b : a];
        s->spare[n++] = s->values[second ? b : a];
        second ? b++ : a++;
    }
    for (size_t i = 0; i < n / 2; i++) {
        s->keys[from + i] = s->spare[2 * i];
        s->values[from + i] = s->spare[2 * i + 1];
    }
}

void jin_sort(struct jin *j, struct jval *keys, struct jval *values, size_t n, bool reverse)
{
    struct sorting s = { j, keys, values, jin_alloc(j, (2 * n + 1) * sizeof *keys), reverse };

    for (size_t width = 1; s.spare && width < n && jin_ok(j); width *= 2)
        for (size_t at = 0; at + width < n && jin_ok(j); at += 2 * width)
            merge(&s, at, at + width, MIN(at + 2 * width, n));
}
