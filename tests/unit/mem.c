#include "base/mem.h"

#include "support/testing.h"

#include <pthread.h>

static void test_memory_is_zeroed(void **state)
{
    (void)state;
    for (size_t n = 1; n < 5000; n = n * 3 + 1) {
        unsigned char *p = mem_alloc(n);
        assert_non_null(p);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, n);
        mem_free(p);
    }
}

static void test_size_zero_is_a_pointer(void **state)
{
    void *a = mem_alloc(0), *b = mem_alloc_array(0, 16), *c = mem_alloc_aligned(0);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(NULL);
}

static void test_product_that_overflows_is_refused(void **state)
{
    (void)state;
    (void)err_set(ERR_OK, "%s", "");
    assert_null(mem_alloc_array(SIZE_MAX / 2, 3));
    assert_true(err_text()[0] != '\0');
    assert_null(mem_alloc_aligned(SIZE_MAX - 8));
}

static void test_payloads_start_on_a_cache_line(void **state)
{
    (void)state;
    for (size_t n = 1; n < 1000; n += 37) {
        unsigned char *p = mem_alloc_aligned(n);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        memset(p, 1, n);
        mem_free(p);
    }
}

static void test_strdup_copies(void **state)
{
    char text[] = "abc";
    char *copy = mem_strdup(text);

    (void)state;
    assert_non_null(copy);
    text[0] = 'x';
    assert_string_equal(copy, "abc");
    mem_free(copy);
}

/* ---- injection ---- */

/* Tries one allocation of every kind; returns how many succeeded. */
static int try_all(void)
{
    VEC(int) vec = { 0 };
    struct arena arena = { 0 };
    void *a = mem_alloc(8), *b = mem_alloc_array(2, 4), *c = mem_alloc_aligned(8);
    char *d = mem_strdup("x");
    enum err pushed = VEC_PUSH(&vec, 1);
    void *e = arena_alloc(&arena, 8);
    int n = !!a + !!b + !!c + !!d + (pushed == ERR_OK) + !!e;

    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(d);
    VEC_FINI(&vec);
    arena_fini(&arena);
    return n;
}

static void test_nth_allocation_fails_and_all_after_it(void **state)
{
    (void)state;
    for (int n = 1; n <= 7; n++) {
        mem_fail_after((size_t)n);
        assert_int_equal(try_all(), MIN(n - 1, 6));
        if (n <= 6)
            assert_int_equal(try_all(), 0);
        mem_fail_after(0);
        assert_int_equal(try_all(), 6);
    }
}

static void test_failure_has_a_text(void **state)
{
    (void)state;
    mem_fail_after(1);
    (void)err_set(ERR_OK, "%s", "");
    assert_null(mem_alloc(123));
    mem_fail_after(0);
    assert_non_null(strstr(err_text(), "123"));
}

static void *count_successes(void *arg)
{
    int *n = arg;

    for (int i = 0; i < 1000; i++) {
        void *p = mem_alloc(16);
        *n += p != NULL;
        mem_free(p);
    }
    return NULL;
}

static void test_injection_counts_over_threads(void **state)
{
    pthread_t thread[4];
    int n[4] = { 0 };

    (void)state;
    mem_fail_after(1501);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count_successes, &n[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    mem_fail_after(0);
    assert_int_equal(n[0] + n[1] + n[2] + n[3], 1500);
}

/* ---- vectors ---- */

struct odd { /* a size that is no power of two */
    char c[3];
};

static void test_vector_keeps_what_was_pushed(void **state)
{
    VEC(int) ints = { 0 };
    VEC(struct odd) odds = { 0 };

    (void)state;
    for (int i = 0; i < 10000; i++) {
        assert_ok(VEC_PUSH(&ints, i));
        assert_ok(VEC_PUSH(&odds, (struct odd){ { (char)i, (char)(i + 1), (char)(i >> 8) } }));
    }
    assert_int_equal(ints.n, 10000);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(ints.v[i], i);
        assert_int_equal(odds.v[i].c[1], (char)(i + 1));
    }
    VEC_FINI(&ints);
    VEC_FINI(&odds);
    assert_null(ints.v);
    assert_int_equal(ints.n + ints.cap, 0);
}

static void test_reserved_room_needs_no_allocation(void **state)
{
    VEC(uint64_t) v = { 0 };

    (void)state;
    assert_ok(VEC_RESERVE(&v, 100));
    assert_true(v.cap >= 100);
    mem_fail_after(1);
    for (uint64_t i = 0; i < 100; i++)
        assert_ok(VEC_PUSH(&v, i));
    mem_fail_after(0);
    VEC_FINI(&v);
}

static void test_vector_survives_a_failed_push(void **state)
{
    VEC(int) v = { 0 };

    (void)state;
    int full = 0;
    while (full < 20 || v.n < v.cap) {
        assert_ok(VEC_PUSH(&v, full));
        full++;
    }
    mem_fail_after(1);
    assert_fails(ERR_NO_MEMORY, VEC_PUSH(&v, -1));
    mem_fail_after(0);
    assert_int_equal(v.n, full);
    for (int i = 0; i < full; i++)
        assert_int_equal(v.v[i], i);
    assert_ok(VEC_PUSH(&v, full));
    assert_int_equal(v.v[full], full);
    VEC_FINI(&v);
}

static void test_impossible_reservation_is_refused(void **state)
{
    VEC(uint64_t) v = { 0 };

    (void)state;
    assert_fails(ERR_NO_MEMORY, VEC_RESERVE(&v, SIZE_MAX / 2));
    assert_ok(VEC_PUSH(&v, 1));
    assert_fails(ERR_NO_MEMORY, VEC_RESERVE(&v, SIZE_MAX));
    assert_fails(ERR_NO_MEMORY, VEC_RESERVE(&v, SIZE_MAX - 1));
    assert_int_equal(v.n, 1);
    VEC_FINI(&v);
    assert_null(v.v);

    VEC(char) bytes = { 0 };
    assert_ok(VEC_PUSH(&bytes, 1));
    assert_fails(ERR_NO_MEMORY, VEC_RESERVE(&bytes, SIZE_MAX));
    VEC_FINI(&bytes);
}

/* ---- arena ---- */

static void test_arena_pieces_are_aligned_zeroed_and_apart(void **state)
{
    enum { PIECES = 500 };
    struct arena arena = { 0 };
    struct rng rng = { 1 };
    unsigned char *piece[PIECES];
    size_t size[PIECES];

    (void)state;
    for (int i = 0; i < PIECES; i++) {
        size[i] = (size_t)rng_below(&rng, rng_one_in(&rng, 20) ? 20000 : 200);
        piece[i] = arena_alloc(&arena, size[i]);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % 16, 0);
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(piece[i][k], 0);
        memset(piece[i], i & 0xff, size[i]);
    }
    for (int i = 0; i < PIECES; i++)
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(piece[i][k], i & 0xff);
    arena_fini(&arena);
    assert_null(arena.head);
    arena_fini(&arena);
}

static void test_arena_survives_a_failure(void **state)
{
    struct arena arena = { 0 };
    int *first = arena_alloc(&arena, sizeof *first);

    (void)state;
    assert_non_null(first);
    assert_null(arena_alloc(&arena, SIZE_MAX));
    *first = 42;
    mem_fail_after(1);
    assert_null(arena_alloc(&arena, 1 << 20));
    assert_non_null(arena_alloc(&arena, 8)); /* still fits the block */
    mem_fail_after(0);
    assert_int_equal(*first, 42);
    assert_non_null(arena_alloc(&arena, 1 << 20));
    arena_fini(&arena);
}

/* ---- reference counts ---- */

struct shared {
    refcount rc;
    int *payload; /* written by every owner before it lets go */
    atomic_int early, freed;
};

static void *use_and_drop(void *arg)
{
    struct shared *s = arg;

    for (int i = 0; i < 2000; i++) {
        ref_inc(&s->rc);
        s->early += ref_dec(&s->rc);
    }
    __atomic_fetch_add(s->payload, 1, __ATOMIC_RELAXED);
    if (ref_dec(&s->rc)) {
        atomic_fetch_add(&s->freed, 1);
        mem_free(s->payload);
    }
    return NULL;
}

static void test_last_reference_is_dropped_once(void **state)
{
    struct shared s = { .payload = mem_alloc(sizeof(int)) };
    pthread_t thread[4];

    (void)state;
    assert_non_null(s.payload);
    atomic_init(&s.rc, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, use_and_drop, &s), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(s.early, 0);
    assert_int_equal(s.freed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed),
        cmocka_unit_test(test_size_zero_is_a_pointer),
        cmocka_unit_test(test_product_that_overflows_is_refused),
        cmocka_unit_test(test_payloads_start_on_a_cache_line),
        cmocka_unit_test(test_strdup_copies),
        cmocka_unit_test(test_nth_allocation_fails_and_all_after_it),
        cmocka_unit_test(test_failure_has_a_text),
        cmocka_unit_test(test_injection_counts_over_threads),
        cmocka_unit_test(test_vector_keeps_what_was_pushed),
        cmocka_unit_test(test_reserved_room_needs_no_allocation),
        cmocka_unit_test(test_vector_survives_a_failed_push),
        cmocka_unit_test(test_impossible_reservation_is_refused),
        cmocka_unit_test(test_arena_pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(test_arena_survives_a_failure),
        cmocka_unit_test(test_last_reference_is_dropped_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
