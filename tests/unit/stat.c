#include "base/stat.h"

#include "support/testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *count(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++) {
        stat_add(STAT_DISPATCHES, 1);
        stat_add(STAT_BYTES_UPLOADED, 3);
    }
    return NULL;
}

static void test_counters_add_up_over_threads(void **state)
{
    pthread_t thread[4];

    (void)state;
    stat_reset();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(stat_get(STAT_DISPATCHES), 40000);
    assert_int_equal(stat_get(STAT_BYTES_UPLOADED), 120000);
    assert_int_equal(stat_get(STAT_BARRIERS), 0);
    stat_reset();
    for (int i = 0; i < STAT_COUNT; i++)
        assert_int_equal(stat_get((enum stat)i), 0);
}

/* More threads at a time than have counters of their own, and their successors. */
#define CROWD 100

static pthread_barrier_t all_count;

static void *count_in_crowd(void *arg)
{
    (void)arg;
    stat_add(STAT_BARRIERS, 1);
    pthread_barrier_wait(&all_count); /* nobody has left before everybody has begun */
    stat_add(STAT_BARRIERS, 1);
    return NULL;
}

static void test_a_crowd_is_counted(void **state)
{
    pthread_t thread[CROWD];

    (void)state;
    stat_reset();
    for (uint64_t round = 1; round <= 3; round++) {
        pthread_barrier_init(&all_count, NULL, CROWD);
        for (int i = 0; i < CROWD; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, count_in_crowd, NULL), 0);
        for (int i = 0; i < CROWD; i++)
            pthread_join(thread[i], NULL);
        pthread_barrier_destroy(&all_count);
        assert_int_equal(stat_get(STAT_BARRIERS), round * 2 * CROWD);
    }
}

/* What a thread counts while its other variables are taken down is not lost. */
static void count_late(void *arg)
{
    (void)arg;
    stat_add(STAT_RETIRES, 1);
}

static pthread_key_t late;

static void *count_at_the_end(void *arg)
{
    (void)arg;
    pthread_setspecific(late, &late);
    stat_add(STAT_RETIRES, 1);
    return NULL;
}

static void test_the_end_of_a_thread_is_counted(void **state)
{
    pthread_t thread;

    (void)state;
    stat_reset();
    assert_int_equal(pthread_key_create(&late, count_late), 0);
    assert_int_equal(pthread_create(&thread, NULL, count_at_the_end, NULL), 0);
    pthread_join(thread, NULL);
    pthread_key_delete(late);
    assert_int_equal(stat_get(STAT_RETIRES), 2);
}

static void test_every_counter_has_a_text(void **state)
{
    (void)state;
    for (int i = 0; i < STAT_COUNT; i++)
        assert_true(stat_text[i] && stat_text[i][0]);
}

static void test_print_shows_what_moved(void **state)
{
    char *text = NULL;
    size_t size = 0;

    (void)state;
    stat_reset();
    stat_add(STAT_BARRIERS, 12345678901234u);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    stat_print(out);
    fclose(out);
    assert_non_null(strstr(text, "12345678901234  barriers\n"));
    assert_null(strstr(text, "dispatches"));
    free(text);
    stat_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters_add_up_over_threads),
        cmocka_unit_test(test_a_crowd_is_counted),
        cmocka_unit_test(test_the_end_of_a_thread_is_counted),
        cmocka_unit_test(test_every_counter_has_a_text),
        cmocka_unit_test(test_print_shows_what_moved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
