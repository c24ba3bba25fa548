/* cmocka with what it needs, checks for functions that return enum err, and random numbers that are
 * the same on every machine. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "graph/shape.h"

/* The call succeeds; the error text is shown where it does not. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        enum err code_ = (call);                                                                   \
        if (code_ != ERR_OK)                                                                       \
            fail_msg("%s: error %d: %s", #call, (int)code_, err_text());                           \
    } while (0)

/* The call fails with this code and leaves a text. */
#define assert_fails(code, call)                                                                   \
    do {                                                                                           \
        (void)err_set(ERR_OK, "%s", "");                                                           \
        assert_int_equal(call, code);                                                              \
        assert_true(err_text()[0] != '\0');                                                        \
    } while (0)

/* splitmix64 */
struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* Uniform in [0, n). */
static inline int rng_below(struct rng *r, int n)
{
    return (int)(rng_next(r) % (uint64_t)n);
}

/* True with probability 1/n. */
static inline bool rng_one_in(struct rng *r, int n)
{
    return rng_below(r, n) == 0;
}

/* Advances a row-major index; false after the last one. */
static inline bool next_index(int32_t *index, const struct shp *s)
{
    for (int i = s->ndim - 1; i >= 0; i--) {
        if (++index[i] < s->d[i])
            return true;
        index[i] = 0;
    }
    return false;
}
