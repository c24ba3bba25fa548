#include "core/stat.h"

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
        cmocka_unit_test(test_every_counter_has_a_text),
        cmocka_unit_test(test_print_shows_what_moved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
