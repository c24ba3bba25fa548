#include "lm/tokenizer/regex.h"

#include <stdio.h>

#include "support/testing.h"

#include "base/mem.h"

/* What stands between matches and the matches themselves, as pieces with '|' between them. */
static char *split(const char *pattern, const char *s, unsigned flags)
{
    static char out[1024];
    struct rx *rx = NULL;
    struct rx_iter it;
    size_t n = 0, prev = 0, len = strlen(s);
    bool found;

    assert_ok(rx_create(&rx, pattern, strlen(pattern), flags));
    rx_iter_init(&it, rx, s, len);
    for (;;) {
        assert_ok(rx_next(&it, &found));
        size_t start = found ? it.start : len, end = found ? it.end : len;
        if (start > prev)
            n += (size_t)snprintf(out + n, sizeof out - n, "%.*s|", (int)(start - prev), s + prev);
        if (!found)
            break;
        if (end > start)
            n += (size_t)snprintf(out + n, sizeof out - n, "%.*s|", (int)(end - start), s + start);
        prev = end;
    }
    rx_destroy(&rx);
    out[n ? n - 1 : 0] = '\0';
    return out;
}

/* The pieces that the Python package makes of the same (Split, isolated). */
static void test_reads_patterns_as_oniguruma_does(void **state)
{
    static const struct {
        const char *pattern, *text, *pieces;
    } rows[] = {
        { "\\d{1,3}+", "1234567a12", "1234567|a|12" },
        { "\\d{2}+", "1234567a12", "123456|7a|12" },
        { "(?:a|bc){2}+x", "abcabcx a", "abcabcx| a" },
        { "a++b|a", "aaab aa", "aaab| |a|a" },
        { "^b", "a\nb\nb", "a\n|b|\n|b" },
        { "a$", "a\na\r\na", "a|\na\r\n|a" },
        { ".+",
          "a\nb\r\nc\xc2\x85"
          "d\u2028e",
          "a|\n|b\r|\n|c\xc2\x85"
          "d\u2028e" },
        { "\\h+", "xyz abc12 g", "xyz |abc12| g" },
        { "[a-c[x-z]]+", "aaxxmm[]", "aaxx|mm[]" },
        { "\\d*", "ab12c3", "a|b|12|c|3" },
        { "(?i:'s|'ll)", "a'S 'LL 'ſ 'lL", "a|'S| |'LL| |'ſ| |'lL" },
        { "\\bw", "aw w-wéw 'w", "aw |w|-|w|éw '|w" },
        { "\\p{Han}+", "漢字kana", "漢字|kana" },
        { "\\p{Punct}", "a!$+~b", "a|!|$+~b" },
        { "\\p{^Alpha}+", "a!$é+~b", "a|!$|é|+~|b" },
        { "[^\\S\n]+", "a \t\n b", "a| \t|\n| |b" },
        { "(?<!a)[bc]", "ab bb", "ab |b|b" },
        { "\\x{4e00}\\u4e01", "x一丁", "x|一丁" },
        { "(?m:a.b)", "a\nb", "a\nb" },
        { "\\Aa|a\\z", "aaa", "a|a|a" },
        { "[\\w]+", "aé१_‿\u200d a\u0301 ⅷ²Ⓐ", "aé१_‿|\u200d |a\u0301| |ⅷ|²|Ⓐ" },
        { "\\w+", "aé१_‿\u200d a\u0301 ⅷ²Ⓐ", "aé१_‿|\u200d |a\u0301| |ⅷ²Ⓐ" },
        { "\\W+", "aé१_‿\u200d a\u0301 ⅷ²Ⓐ", "aé१_‿|\u200d |a\u0301| |ⅷ²Ⓐ" },
        { "", "abc", "a|b|c" },
        { " ?[^(\\s|[.,!?…。，、।۔،])]+", "hello, wor.ld (x)", "hello|,| wor|.|ld| (|x|)" },
        { "\\s+(?!\\S)|\\s+", "a   b  ", "a|  | |b|  " },
        { "\\s", "a\u180eb\u3000c", "a\u180eb|\u3000|c" },
        { "x{,2}y", "xxxy", "x|xxy" },
        { "{a}", "b{a}c", "b|{a}|c" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(split(rows[i].pattern, rows[i].text, 0), rows[i].pieces);
}

static void test_literal_stands_for_itself(void **state)
{
    (void)state;
    assert_string_equal(split("a.b[", "xa.b[yazb[", RX_LITERAL), "x|a.b[|yazb[");
    assert_string_equal(split("▁", "a▁b", RX_LITERAL), "a|▁|b");
    assert_string_equal(split("\\C", "a\\C", RX_LITERAL), "a|\\C");
}

static void test_impossible_patterns_are_errors(void **state)
{
    static const struct {
        const char *pattern;
        enum err err;
    } rows[] = {
        { "[a-z&&[^b]]", ERR_UNSUPPORTED },
        { "[a[^b]]", ERR_UNSUPPORTED },
        { "[\\W]", ERR_UNSUPPORTED },
        { "(a", ERR_ARG },
        { "[a", ERR_ARG },
        { "a\\", ERR_ARG },
        { "\\p{L", ERR_ARG },
        { "\\p{NoSuchThing}", ERR_ARG },
        { "*a", ERR_ARG },
        { "\\Ga", ERR_UNSUPPORTED },
        { "(*COMMIT)a", ERR_UNSUPPORTED },
    };
    struct rx *rx = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_fails(rows[i].err, rx_create(&rx, rows[i].pattern, strlen(rows[i].pattern), 0));
    assert_null(rx);
}

/* A subject whose backtracking is deeper than the JIT stack. */
static void test_long_subjects(void **state)
{
    size_t n = 3000000;
    char *s = mem_alloc(n);
    struct rx *rx = NULL;
    struct rx_iter it;
    bool found;

    (void)state;
    assert_non_null(s);
    memset(s, 'a', n);
    assert_ok(rx_create(&rx, "\\p{L}+", 6, 0));
    rx_iter_init(&it, rx, s, n);
    assert_ok(rx_next(&it, &found));
    assert_true(found && it.end == n);
    rx_destroy(&rx);

    assert_ok(rx_create(&rx, "(a|b|ab)+[cd]", 13, 0));
    rx_iter_init(&it, rx, s, n);
    assert_fails(ERR_RUNTIME, rx_next(&it, &found));
    rx_destroy(&rx);
    mem_free(s);
}

/* Goes through all matches, which must follow each other; returns what ended it. */
static enum err run_through(const char *pattern, const char *s, size_t n)
{
    struct rx *rx = NULL;
    struct rx_iter it;
    bool found = true;
    size_t last = 0;
    enum err err = ERR_OK;

    assert_ok(rx_create(&rx, pattern, strlen(pattern), 0));
    rx_iter_init(&it, rx, s, n);
    for (; found && err == ERR_OK; last = it.end) {
        err = rx_next(&it, &found);
        assert_true(err != ERR_OK || !found || (last <= it.start && it.start <= it.end));
    }
    rx_destroy(&rx);
    return err;
}

/* Patterns whose matches end before they begin, or begin within the one before; the steps that use
 * matches see an error. */
static void test_backward_matches_are_errors(void **state)
{
    static const struct {
        const char *pattern, *text;
    } rows[] = {
        { "(?<=(?1))b|(\\Ka)", "ab" },   { "(?=(?1))a|(ab\\K)", "ab" },
        { "(?=\\g<1>)|(ab\\K)", "xab" }, { "a|(?<=(?1))b|(\\Ka)", "ab" },
        { "(?<=(?1))|(\\Ka)b", "abab" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum err err = run_through(rows[i].pattern, rows[i].text, strlen(rows[i].text));
        if (i < 4) {
            assert_int_equal(err, ERR_UNSUPPORTED);
            assert_non_null(strstr(err_text(), "its \\K makes a match begin"));
        }
    }
    assert_string_equal(split("a\\Kb", "abxab", 0), "a|b|xa|b");
}

/* Far from any match, a search goes on window by window, over characters of every length. */
static void test_windows_do_not_show(void **state)
{
    static const char *const chars[] = { "a", "é", "世", "😀" };
    struct rx *rx = NULL;
    struct rx_iter it;
    bool found;

    (void)state;
    assert_ok(rx_create(&rx, "(?<=b)$|^b", 10, 0));
    for (size_t i = 0; i < ARRAY_LEN(chars); i++)
        for (size_t n = 1; n < 2000; n += n < 300 ? 1 : 97) {
            struct str s = { 0 };
            assert_ok(str_add(&s, "b", 1));
            for (size_t k = 0; k < n; k++)
                assert_ok(str_add_text(&s, chars[i]));
            assert_ok(str_add(&s, "b", 1));
            rx_iter_init(&it, rx, s.v, s.n);
            assert_ok(rx_next(&it, &found));
            assert_true(found && it.start == 0 && it.end == 1);
            assert_ok(rx_next(&it, &found));
            assert_true(found && it.start == s.n && it.end == s.n);
            assert_ok(rx_next(&it, &found));
            assert_false(found);
            VEC_FINI(&s);
        }
    rx_destroy(&rx);
}

/* Without limits on the whole of a search these take from hours to centuries. */
static void test_work_is_limited(void **state)
{
    static const struct {
        const char *pattern, *says; /* which limit */
        size_t n;
    } rows[] = {
        { "(a+)+[bc]", "match limit", 1000 },
        { "(?:a*a*){20}[bc]", "", 100000 }, /* the clock where the processor is emulated */
        { "a*\\p{L}*+(?<!a)[bc]", "takes too long", 60000 },
        { "(?:a?){3000}[bc]", "limit", 3000 },
        { "(a(?1)?b?)", "limit", 2000000 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *s = mem_alloc(rows[i].n);
        assert_non_null(s);
        memset(s, 'a', rows[i].n);
        enum err err = run_through(rows[i].pattern, s, rows[i].n);
        if (err != ERR_RUNTIME || !strstr(err_text(), rows[i].says))
            fail_msg("%s: %d %s", rows[i].pattern, (int)err, err_text());
        mem_free(s);
    }
}

static void test_long_patterns_are_refused(void **state)
{
    struct str s = { 0 };
    struct rx *rx = NULL;

    (void)state;
    for (size_t i = 0; i < 30000; i++)
        assert_ok(str_add(&s, "\\b", 2));
    assert_fails(ERR_ARG, rx_create(&rx, s.v, s.n, 0));
    for (size_t i = 0; i < 3000; i++)
        assert_ok(str_add(&s, "\\b", 2));
    assert_fails(ERR_UNSUPPORTED, rx_create(&rx, s.v, s.n, 0));
    assert_fails(ERR_UNSUPPORTED, rx_create(&rx, s.v, s.n, RX_LITERAL));
    VEC_FINI(&s);
}

static void test_every_allocation_may_fail(void **state)
{
    const char *pattern = "(?:a{1,3}+|[b[c]])\\s+(?!\\S)";
    struct rx *rx = NULL;
    enum err err;
    size_t n = 0;

    (void)state;
    do {
        mem_fail_after(++n);
        err = rx_create(&rx, pattern, strlen(pattern), 0);
        mem_fail_after(0);
        assert_true(err == ERR_OK || (err == ERR_NO_MEMORY && !rx));
        rx_destroy(&rx);
    } while (err != ERR_OK && n < 100);
    assert_int_equal(err, ERR_OK);
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_patterns_as_oniguruma_does),
        cmocka_unit_test(test_literal_stands_for_itself),
        cmocka_unit_test(test_impossible_patterns_are_errors),
        cmocka_unit_test(test_long_subjects),
        cmocka_unit_test(test_backward_matches_are_errors),
        cmocka_unit_test(test_windows_do_not_show),
        cmocka_unit_test(test_work_is_limited),
        cmocka_unit_test(test_long_patterns_are_refused),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
