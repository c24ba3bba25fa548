/* Templates against Jinja2 as transformers sets it up: gen/gen_jinja.py says what the fixtures
 * hold.
 *
 * usage: unit_lm_jinja [FIXTURES]
 *        unit_lm_jinja --render: reads templates and variables from standard input, each with its
 *        length as four bytes before it, and writes whether it worked, the length, the text */
#include "lm/jinja/jinja.h"

#include "support/data.h"
#include "support/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zlib.h>

#include "base/json.h"
#include "base/mem.h"

#define NOW 1732017600 /* as in gen_jinja.py */

static const char *fixtures;

static enum err render(struct str *out, const char *template, const char *vars,
                       const struct jinja_limits *limits)
{
    struct jinja_request r = { .vars = vars, .n_vars = strlen(vars), .now = NOW };
    struct jinja *t = NULL;
    enum err err;

    if (limits)
        r.limits = *limits;
    TRY(jinja_create(&t, template, strlen(template)));
    err = jinja_render(out, t, &r);
out:
    jinja_destroy(&t);
    return err;
}

/* ---- the fixtures ---- */

static bool is_expected(const struct str *text, struct json v)
{
    const char *expected = NULL;
    int64_t crc = -1;

    assert_ok(json_opt_string(&expected, v, "text"));
    if (expected)
        return text->n == strlen(expected) && (!text->n || memcmp(text->v, expected, text->n) == 0);
    assert_ok(json_get_int(&crc, v, "crc"));
    return (int64_t)crc32(0, (const unsigned char *)text->v, (unsigned)text->n) == crc;
}

static void check(const char *template, const char *vars, struct json v)
{
    struct str text = { 0 };
    enum err err = render(&text, template, vars, NULL);

    if (json_kind(json_find(v, "text")) == JSON_NULL) {
        if (err != ERR_ARG)
            fail_msg("%s\nis not refused: %.*s", template, (int)text.n, text.v);
        assert_int_equal(text.n, 0);
    } else if (err != ERR_OK) {
        fail_msg("%s\n%s", template, err_text());
    } else if (!is_expected(&text, v)) {
        fail_msg("%s\nis rendered otherwise: %.*s", template, (int)text.n, text.v);
    }
    VEC_FINI(&text);
}

static void test_features(void **state)
{
    struct json_doc *doc = NULL;
    const char *vars, *template;
    struct json features;
    size_t n = 0;

    (void)state;
    assert_ok(json_load(&doc, fixtures));
    assert_ok(json_get_string(&vars, json_root(doc), "vars"));
    assert_ok(json_get(&features, json_root(doc), "features", JSON_ARRAY));
    JSON_EACH(v, features)
    {
        assert_ok(json_get_string(&template, v, "template"));
        check(template, vars, v);
        n++;
    }
    print_message("%zu templates\n", n);
    assert_true(n > 100);
    json_destroy(&doc);
}

static void test_conversations(void **state)
{
    struct json_doc *doc = NULL;
    const char *vars, *template;
    struct json drawn, files;
    size_t n = 0;

    (void)state;
    assert_ok(json_load(&doc, fixtures));
    assert_ok(json_get(&drawn, json_root(doc), "drawn", JSON_ARRAY));
    assert_ok(json_get(&files, json_root(doc), "files", JSON_ARRAY));
    JSON_EACH(file, files)
    {
        struct json v = json_first(drawn);
        assert_ok(json_get_string(&template, file, "template"));
        JSON_EACH(result, json_find(file, "results"))
        {
            assert_ok(json_string(&vars, v));
            check(template, vars, result);
            v = json_next(v);
            n++;
        }
    }
    print_message("%zu conversations\n", n);
    assert_true(n >= 360);
    json_destroy(&doc);
}

/* ---- errors and limits ---- */

static void assert_refused(const char *template, const char *vars,
                           const struct jinja_limits *limits, const char *says)
{
    struct str text = { 0 };

    if (render(&text, template, vars, limits) != ERR_ARG)
        fail_msg("%s is not refused", template);
    if (!strstr(err_text(), says))
        fail_msg("%s: %s", template, err_text());
    assert_int_equal(text.n, 0);
    VEC_FINI(&text);
}

static void test_errors_have_lines(void **state)
{
    static const struct {
        const char *template, *says;
    } rows[] = {
        { "a\n\n{{ x.y }}", "line 3 of the template: 'x' is undefined" },
        { "a\n{% if %}", "line 2 of the template: expected an expression" },
        { "\n\n{{ 1", "line 3 of the template: a tag has no end" },
        { "{% for x in [1] %}\n{{ x + 'a' }}{% endfor %}", "line 2 of the template: unsupported" },
        { "\n{{ raise_exception('No system message!') }}", "refuses this: No system message!" },
        { "{{ 'a'|nothing }}", "no filter named 'nothing'" },
        { "{% include 'a' %}", "expected a statement, found 'include'" },
        { "{{ d.a.b }}", "line 1 of the template: 'dict object' has no attribute 'a'" },
        { "{{ d.update({}) }}", "nothing that templates may use" },
        { "{{ 9223372036854775807 + 1 }}", "beyond 64 bits" },
        { "{{ 99999999999999999999 }}", "beyond 64 bits" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_refused(rows[i].template, "{\"d\": {}}", NULL, rows[i].says);
}

static void test_variables(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{\"a\"}",
        "{\"a\":1,}",
        "{\"a\":01}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":99999999999999999999}",
        "{} x",
        "{\"a\":\"\n\"}",
    };
    struct str text = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_refused("x", bad[i], NULL, "variables");
    assert_ok(render(&text, "{{ a }}{{ b }}", "{\"a\":\"\\ud83d\\ude42\\u0000\",\"b\":1e2}", NULL));
    assert_int_equal(text.n, 10);
    assert_memory_equal(text.v,
                        "\xf0\x9f\x99\x82\0"
                        "100.0",
                        10);
    VEC_FINI(&text);
}

/* What is too much of ends with an error that says so. */
static void test_limits(void **state)
{
    static const struct jinja_limits few = { .steps = 200000,
                                             .memory = 1 << 20,
                                             .output = 1 << 16 };
    static const struct {
        const char *template, *says;
    } rows[] = {
        { "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}", "steps" },
        { "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested" },
        { "{{ 'abcdefgh' * 100000 }}", "writes more than" },
        { "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(99) %}"
          "{% set ns.x = ns.x + ns.x %}{% endfor %}",
          "memory" },
        { "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}"
          "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
          "more than" },
        { "{{ range(100001) }}", "Range too big" },
        { "{{ '%99999999d' % 1 }}", "width" },
    };
    struct str deep = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_refused(rows[i].template, "{}", &few, rows[i].says);
    assert_ok(str_add_text(&deep, "{{ "));
    for (int i = 0; i < 100000; i++)
        assert_ok(str_add_text(&deep, "("));
    for (int i = 0; i < 100000; i++)
        assert_ok(str_add_text(&deep, ")"));
    assert_ok(str_add_text(&deep, " }}"));
    assert_ok(VEC_PUSH(&deep, '\0'));
    assert_refused(deep.v, "{}", NULL, "nested deeper");
    deep.n = 0;
    for (int i = 0; i < 100000; i++)
        assert_ok(str_add_text(&deep, "["));
    assert_ok(VEC_PUSH(&deep, '\0'));
    assert_refused("x", deep.v, NULL, "nested deeper");
    VEC_FINI(&deep);
}

static void test_every_allocation_may_fail(void **state)
{
    static const char template[] =
        "{% macro f(a) %}{{ a|upper }}{% endmacro %}{% for x in l|sort %}"
        "{{ f(x) ~ {'a': [x]}|tojson }}{{ 'a%s' % x }}{% endfor %}";
    enum err err;
    size_t n = 0;

    (void)state;
    do {
        struct str text = { 0 };
        mem_fail_after(++n);
        err = render(&text, template, "{\"l\": [\"b\", \"a\"]}", NULL);
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        VEC_FINI(&text);
    } while (err != ERR_OK && n < 1000);
    assert_int_equal(err, ERR_OK);
    assert_true(n > 10);
}

/* ---- for gen_jinja.py ---- */

/* NULL at the end of the input. */
static char *read_part(void)
{
    uint32_t n;
    char *text;

    if (fread(&n, sizeof n, 1, stdin) != 1 || !(text = calloc(1, (size_t)n + 1)))
        return NULL;
    if (n && fread(text, 1, n, stdin) != n) {
        free(text);
        return NULL;
    }
    return text;
}

static int render_input(void)
{
    char *template, *vars;

    while ((template = read_part()) && (vars = read_part())) {
        struct str out = { 0 };
        uint8_t ok = render(&out, template, vars, NULL) == ERR_OK;
        const char *text = ok ? out.v : err_text();
        uint32_t n = ok ? (uint32_t)out.n : (uint32_t)strlen(text);
        fwrite(&ok, sizeof ok, 1, stdout);
        fwrite(&n, sizeof n, 1, stdout);
        fwrite(n ? text : "", 1, n, stdout);
        fflush(stdout);
        VEC_FINI(&out);
        free(template);
        free(vars);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_conversations),
        cmocka_unit_test(test_errors_have_lines),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    struct data_path stored = data_stored("jinja.json");

    setenv("TZ", "UTC", 1);
    tzset();
    if (argc > 1 && strcmp(argv[1], "--render") == 0)
        return render_input();
    fixtures = argc > 1 ? argv[1] : stored.v;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
