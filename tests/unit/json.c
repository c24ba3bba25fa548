#include "base/json.h"

#include "base/mem.h"
#include "support/data.h"
#include "support/testing.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct json_doc *parse(const char *text)
{
    struct json_doc *doc = NULL;

    assert_ok(json_parse(&doc, text, strlen(text), "doc.json"));
    return doc;
}

static void test_values_of_every_kind(void **state)
{
    struct json_doc *doc =
        parse("\xef\xbb\xbf {\"s\": \"h\\u00e9\\n\xe4\xb8\xad\", \"t\": true, \"f\":"
              " false, \"n\": -2.5e3, \"i\": 9007199254740992, \"z\": null,"
              " \"a\": [1, [2], {}], \"o\": {\"x\": {\"y\": 7}}} \n");
    struct json root = json_root(doc), v;
    const char *s = NULL;
    bool b = false;
    double d = 0;
    int64_t i = 0;

    (void)state;
    assert_ok(json_get_string(&s, root, "s"));
    assert_string_equal(s, "h\xc3\xa9\n\xe4\xb8\xad");
    assert_ok(json_get_bool(&b, root, "t"));
    assert_true(b);
    assert_ok(json_get_bool(&b, root, "f"));
    assert_false(b);
    assert_ok(json_get_number(&d, root, "n"));
    assert_true(d == -2500);
    assert_ok(json_get_int(&i, root, "i"));
    assert_true(i == INT64_C(1) << 53);
    assert_int_equal(json_kind(json_find(root, "z")), JSON_NULL);
    assert_int_equal(json_kind(json_find(root, "zz")), JSON_ABSENT);
    assert_ok(json_get(&v, root, "a", JSON_ARRAY));
    assert_int_equal(json_count(v), 3);
    assert_int_equal(json_kind(json_next(json_first(v))), JSON_ARRAY);
    assert_ok(json_get(&v, root, "o", JSON_OBJECT));
    assert_string_equal(json_key(json_first(v)), "x");
    assert_int_equal(json_count(json_find(root, "s")), 0);
    json_destroy(&doc);
    assert_null(doc);
}

static void test_order_and_duplicates(void **state)
{
    struct json_doc *doc = parse("{\"b\": 1, \"a\": 2, \"b\": 3}");
    const char *const keys[] = { "b", "a", "b" };
    int64_t i = 0;
    size_t n = 0;

    (void)state;
    JSON_EACH(v, json_root(doc))
    {
        assert_string_equal(json_key(v), keys[n]);
        assert_ok(json_int(&i, v));
        assert_int_equal(i, ++n);
    }
    assert_int_equal(n, 3);
    assert_ok(json_get_int(&i, json_root(doc), "b"));
    assert_int_equal(i, 3);
    json_destroy(&doc);
}

static void test_optional_members(void **state)
{
    struct json_doc *doc = parse("{\"n\": null, \"x\": 4}");
    struct json root = json_root(doc);
    const char *s = "default";
    int64_t i = 9;
    double d = 9;
    bool b = true;

    (void)state;
    assert_ok(json_opt_string(&s, root, "n"));
    assert_ok(json_opt_int(&i, root, "missing"));
    assert_ok(json_opt_bool(&b, root, "missing"));
    assert_ok(json_opt_number(&d, root, "x"));
    assert_string_equal(s, "default");
    assert_int_equal(i, 9);
    assert_true(b);
    assert_true(d == 4);
    assert_fails(ERR_ARG, json_opt_string(&s, root, "x"));
    assert_string_equal(err_text(), "doc.json: x: expected a string, found a number");
    json_destroy(&doc);
}

static void test_errors_name_the_place(void **state)
{
    struct json_doc *doc = parse("{\"model\": {\"sizes\": [1, 2.5, \"x\"], \"type\": 1e300}}");
    struct json root = json_root(doc), model, sizes;
    int64_t i;
    const char *s;

    (void)state;
    assert_ok(json_get(&model, root, "model", JSON_OBJECT));
    assert_ok(json_get(&sizes, model, "sizes", JSON_ARRAY));
    assert_fails(ERR_ARG, json_int(&i, json_next(json_first(sizes))));
    assert_string_equal(err_text(), "doc.json: model.sizes[1]: expected an integer, found 2.5");
    assert_fails(ERR_ARG, json_get_int(&i, model, "type"));
    assert_string_equal(err_text(), "doc.json: model.type: expected an integer, found 1e+300");
    assert_fails(ERR_ARG, json_get_string(&s, model, "name"));
    assert_string_equal(err_text(), "doc.json: model: \"name\" is missing");
    assert_fails(ERR_ARG, json_get_string(&s, root, "name"));
    assert_string_equal(err_text(), "doc.json: \"name\" is missing");
    assert_fails(ERR_ARG, json_get_string(&s, sizes, "name"));
    assert_string_equal(err_text(), "doc.json: model.sizes: expected an object, found an array");
    assert_fails(ERR_ARG, json_fail(model, "unknown model %d%%", 5));
    assert_string_equal(err_text(), "doc.json: model: unknown model 5%");
    json_destroy(&doc);
}

static void test_broken_text_is_refused(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        { "", "line 1, column 1: syntax error" },
        { "   ", "syntax error" },
        { "{\n  \"a\": tru\n}", "line 2, column 8: syntax error" },
        { "{\"a\": 1,}", "syntax error" },
        { "[1, 2", "syntax error" },
        { "[1]]", "line 1, column 4: text after the end" },
        { "{} x", "line 1, column 4: text after the end" },
        { "\"abc", "line 1, column 1: string without end" },
        { "\"abc\\", "string without end" },
        { "\"a\\\"", "string without end" },
        { "[\"a\nb\"]", "line 1, column 4: control character" },
        { "\"\\u0000\"", "U+0000" },
        { "\"\\ud800\"", "syntax error" },
        { "\"\\q\"", "syntax error" },
        { "\"\xff\"", "column 2: not UTF-8" },
        { "\"\xc0\x80\"", "not UTF-8" },
        { "\"\xed\xa0\x80\"", "not UTF-8" },
        { "\"\xf4\x90\x80\x80\"", "not UTF-8" },
        { "\"\xe4\xb8\"", "not UTF-8" },
        { "\xe4\xb8\xad", "unexpected character" },
        { "[1,\x01 2]", "column 4: unexpected character" },
        { "nul", "syntax error" },
        { "-", "syntax error" },
        { "{1: 2}", "syntax error" },
        { "{\"a\" 2}", "syntax error" },
    };
    struct json_doc *doc = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_fails(ERR_ARG, json_parse(&doc, rows[i].text, strlen(rows[i].text), "doc.json"));
        assert_null(doc);
        if (!strstr(err_text(), rows[i].error) || strncmp(err_text(), "doc.json: ", 10))
            fail_msg("\"%s\": \"%s\", expected \"%s\"", rows[i].text, err_text(), rows[i].error);
    }
    assert_fails(ERR_ARG, json_parse(&doc, "[1\0]", 4, "doc.json"));
    assert_fails(ERR_ARG, json_parse(&doc, "\"a\0\"", 4, "doc.json"));
}

/* A tower of brackets must neither overflow the stack nor be accepted. */
static void test_depth_is_limited(void **state)
{
    enum { TOWER = 1000000 };
    char *text = mem_alloc_aligned(TOWER);
    struct json_doc *doc = NULL;

    (void)state;
    assert_non_null(text);
    memset(text, '[', TOWER);
    assert_fails(ERR_ARG, json_parse(&doc, text, TOWER, "deep"));
    assert_non_null(strstr(err_text(), "column 513: nested too deeply"));
    memset(text + 512, ']', 512);
    assert_ok(json_parse(&doc, text, 1024, "deep"));
    json_destroy(&doc);
    mem_free(text);
}

static void test_files(void **state)
{
    struct json_doc *doc = NULL;
    FILE *f = fopen("json_test.json", "wb");

    (void)state;
    assert_non_null(f);
    assert_true(fputs("{\"a\": [1, 2]}", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_ok(json_load(&doc, "json_test.json"));
    assert_int_equal(json_count(json_find(json_root(doc), "a")), 2);
    json_destroy(&doc);
    remove("json_test.json");
    assert_fails(ERR_RUNTIME, json_load(&doc, "json_test.json"));
    assert_non_null(strstr(err_text(), "json_test.json: No such file"));
    assert_fails(ERR_RUNTIME, json_load(&doc, "/"));
}

/* What has no end, or waits for a writer, is no file; nor is what nobody can hold. */
static void test_no_files(void **state)
{
    struct json_doc *doc = NULL;

    (void)state;
    assert_fails(ERR_RUNTIME, json_load(&doc, "/dev/zero"));
    assert_non_null(strstr(err_text(), "/dev/zero: not a regular file"));
    assert_true(data_fifo("json_test.fifo"));
    assert_fails(ERR_RUNTIME, json_load(&doc, "json_test.fifo"));
    assert_non_null(strstr(err_text(), "json_test.fifo: not a regular file"));
    remove("json_test.fifo");
    FILE *f = fopen("json_test.json", "wb");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), (off_t)JSON_MAX_BYTES + 1), 0);
    assert_int_equal(fclose(f), 0);
    assert_fails(ERR_RUNTIME, json_load(&doc, "json_test.json"));
    assert_non_null(strstr(err_text(), "json_test.json: 268435457 bytes are more than"));
    remove("json_test.json");
}

static void test_no_memory_is_an_error(void **state)
{
    struct json_doc *doc = NULL;
    enum err err = ERR_NO_MEMORY;

    (void)state;
    for (size_t n = 1; err != ERR_OK; n++) {
        mem_fail_after(n);
        err = json_parse(&doc, "{\"a\": 1}", 8, "doc.json");
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        assert_true(n < 10);
    }
    json_destroy(&doc);
}

/* A vocabulary: parsing and walking it take a fraction of a second, whatever the machine does. */
static void test_large_objects(void **state)
{
    enum { MEMBERS = 150000 };
    char *text = mem_alloc_aligned((size_t)MEMBERS * 32 + 2), *p = text;
    struct json_doc *doc = NULL;
    int64_t sum = 0, i;
    clock_t start;

    (void)state;
    assert_non_null(text);
    *p++ = '{';
    for (int k = 0; k < MEMBERS; k++)
        p += sprintf(p, "%s\"token %d\": %d", k ? ", " : "", k, k);
    *p++ = '}';
    start = clock();
    assert_ok(json_parse(&doc, text, (size_t)(p - text), "vocab.json"));
    JSON_EACH(v, json_root(doc))
    {
        assert_ok(json_int(&i, v));
        sum += i;
    }
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
    assert_true(sum == (int64_t)MEMBERS * (MEMBERS - 1) / 2);
    json_destroy(&doc);
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_every_kind),
        cmocka_unit_test(test_order_and_duplicates),
        cmocka_unit_test(test_optional_members),
        cmocka_unit_test(test_errors_name_the_place),
        cmocka_unit_test(test_broken_text_is_refused),
        cmocka_unit_test(test_depth_is_limited),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_no_memory_is_an_error),
        cmocka_unit_test(test_large_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
