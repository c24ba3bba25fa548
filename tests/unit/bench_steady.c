/* The rule by which benches end their warm-up, against clocks as GPUs have them. */
#include "bench/steady.h"

#include "support/testing.h"

/* A load of 1 ms at full clock, and one fifth of it besides for the host. */
#define FAST 0.001
#define GAP 0.0002
#define SLOW (FAST * 1980 / 700)

/* A clock that is low for some time, and rises for some time. */
struct governor {
    double low, rise;
};

static double load_at(const struct governor *g, double now)
{
    double done = g->rise > 0 ? (now - g->low) / g->rise : now >= g->low;

    done = done < 0 ? 0 : done > 1 ? 1 : done;
    return FAST * 1980 / (700 + done * (1980 - 700));
}

/* Runs the load by the rule; returns when it ended. */
static double warm(struct steady *s, const struct steady_rule *rule, double bound,
                   const struct governor *g)
{
    double now = 7, seconds; /* no clock begins at 0 */

    steady_begin(s, rule, bound, now);
    do {
        seconds = load_at(g, now - 7);
        now += seconds + GAP;
    } while (!steady_add(s, seconds, now));
    return now - 7;
}

static void test_constant(void **state)
{
    struct governor full = { 0, 0 };
    struct steady s;

    (void)state;
    double end = warm(&s, &steady_later, 0, &full);
    assert_true(s.is_settled);
    assert_int_equal(s.n, 5);
    assert_true(end < 0.01);
    end = warm(&s, &steady_first, 0, &full);
    assert_true(s.is_settled);
    assert_true(end >= 1.5 && end < 1.51);
}

/* Times that agree because the clock has not begun to rise do not end the first warm-up, nor do
 * those of a clock that rises so slowly that neighbours agree. */
static void test_rising(void **state)
{
    static const struct governor cases[] = { { 0.3, 0.3 }, { 1.4, 0 }, { 1.4, 1.2 }, { 0, 2.5 } };
    struct steady s;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double end = warm(&s, &steady_first, 0, &cases[i]);
        assert_true(s.is_settled);
        assert_true(end >= cases[i].low + cases[i].rise);
        assert_true(s.high <= FAST * 1.021);
    }
}

/* With a time known that the load has had before, a low clock is seen at once, and a full one, too.
 */
static void test_bound(void **state)
{
    struct governor low = { 0.4, 0 }, full = { 0, 0 }, stays = { 100, 0 };
    struct steady s;

    (void)state;
    double end = warm(&s, &steady_later, FAST * 1.03, &low);
    assert_true(s.is_settled);
    assert_true(end > 0.4 && end < 0.42);
    assert_true(warm(&s, &steady_later, FAST * 1.03, &full) < 0.01);
    end = warm(&s, &steady_later, FAST * 1.03, &stays);
    assert_false(s.is_settled);
    assert_true(end >= 1.0 && end < 1.01);
    assert_true(s.low >= SLOW * 0.99);
}

/* What never agrees ends with the time; what does not fit starts the count anew. */
static void test_noise(void **state)
{
    struct steady s;
    double now = 0;

    (void)state;
    steady_begin(&s, &steady_later, 0, now);
    for (int i = 0; i < 999; i++)
        assert_false(steady_add(&s, i % 4 ? FAST : FAST * 1.1, now += FAST));
    assert_true(steady_add(&s, FAST, now += 2 * FAST));
    assert_false(s.is_settled);

    steady_begin(&s, &steady_later, 0, now);
    for (int i = 0; i < 4; i++)
        assert_false(steady_add(&s, FAST, now += FAST));
    assert_false(steady_add(&s, FAST * 2, now += FAST));
    for (int i = 0; i < 4; i++)
        assert_false(steady_add(&s, FAST, now += FAST));
    assert_true(steady_add(&s, FAST, now += FAST));
    assert_true(s.is_settled);
}

/* A drift of which each step is small is not steady. */
static void test_drift(void **state)
{
    struct steady s;
    double now = 0, seconds = FAST;

    (void)state;
    steady_begin(&s, &steady_later, 0, now);
    for (int i = 0; i < 100; i++, seconds *= 1.008)
        assert_false(steady_add(&s, seconds, now += FAST));
}

static void test_no_time(void **state)
{
    static const struct steady_rule none = { 5, 0.02, 0, 0, 0 };
    struct steady s;

    (void)state;
    steady_begin(&s, &none, 0, 3);
    assert_true(steady_add(&s, FAST, 3));
    assert_false(s.is_settled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant), cmocka_unit_test(test_rising),
        cmocka_unit_test(test_bound),    cmocka_unit_test(test_noise),
        cmocka_unit_test(test_drift),    cmocka_unit_test(test_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
