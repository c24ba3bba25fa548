#include "support/testing.h"

#include <pthread.h>
#include <string.h>

static void test_set_returns_the_code_and_keeps_the_text(void **state)
{
    (void)state;
    assert_int_equal(err_set(ERR_RANGE, "[take] index %d of %s", 7, "x"), ERR_RANGE);
    assert_string_equal(err_text(), "[take] index 7 of x");
    assert_int_equal(err_set(ERR_ARG, "second"), ERR_ARG);
    assert_string_equal(err_text(), "second");
}

static void test_percent_in_an_argument_is_data(void **state)
{
    (void)state;
    (void)err_set(ERR_RUNTIME, "%s", "100%s %n");
    assert_string_equal(err_text(), "100%s %n");
}

static void test_long_text_is_cut_and_terminated(void **state)
{
    char longer[2 * ERR_TEXT_MAX];

    (void)state;
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    (void)err_set(ERR_RUNTIME, "%s", longer);
    assert_int_equal(strlen(err_text()), ERR_TEXT_MAX - 1);
}

static void test_own_text_as_argument(void **state)
{
    (void)state;
    (void)err_set(ERR_DEVICE, "device lost");
    (void)err_set(ERR_DEVICE, "[eval] %s", err_text());
    assert_string_equal(err_text(), "[eval] device lost");
}

static void *other_thread(void *arg)
{
    bool *was_empty = arg;

    *was_empty = err_text()[0] == '\0';
    (void)err_set(ERR_ARG, "theirs");
    return NULL;
}

static void test_text_belongs_to_the_thread(void **state)
{
    pthread_t thread;
    bool was_empty = false;

    (void)state;
    (void)err_set(ERR_ARG, "ours");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &was_empty), 0);
    pthread_join(thread, NULL);
    assert_true(was_empty);
    assert_string_equal(err_text(), "ours");
}

static void test_note_keeps_the_first(void **state)
{
    struct err_note note = { 0 };

    (void)state;
    (void)err_set(ERR_DEVICE, "first");
    err_note_take(&note, ERR_DEVICE);
    (void)err_set(ERR_RUNTIME, "second");
    err_note_take(&note, ERR_RUNTIME);
    assert_int_equal(err_note_raise(&note), ERR_DEVICE);
    assert_string_equal(err_text(), "first");
}

static void test_note_is_raised_once(void **state)
{
    struct err_note note = { 0 };

    (void)state;
    (void)err_set(ERR_DEVICE, "lost");
    err_note_take(&note, ERR_DEVICE);
    assert_int_equal(err_note_raise(&note), ERR_DEVICE);
    (void)err_set(ERR_ARG, "later");
    assert_int_equal(err_note_raise(&note), ERR_OK);
    assert_string_equal(err_text(), "later");
}

static enum err step(int *calls, enum err result)
{
    ++*calls;
    return result;
}

static enum err three_steps(int *calls, enum err second)
{
    enum err err;

    TRY(step(calls, ERR_OK));
    TRY(step(calls, second));
    TRY(step(calls, ERR_OK));
out:
    return err;
}

static void test_try_stops_at_the_first_failure(void **state)
{
    int calls = 0;

    (void)state;
    assert_int_equal(three_steps(&calls, ERR_OK), ERR_OK);
    assert_int_equal(calls, 3);
    calls = 0;
    assert_int_equal(three_steps(&calls, ERR_OVERFLOW), ERR_OVERFLOW);
    assert_int_equal(calls, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_returns_the_code_and_keeps_the_text),
        cmocka_unit_test(test_percent_in_an_argument_is_data),
        cmocka_unit_test(test_long_text_is_cut_and_terminated),
        cmocka_unit_test(test_own_text_as_argument),
        cmocka_unit_test(test_text_belongs_to_the_thread),
        cmocka_unit_test(test_note_keeps_the_first),
        cmocka_unit_test(test_note_is_raised_once),
        cmocka_unit_test(test_try_stops_at_the_first_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
