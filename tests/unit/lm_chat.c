/* Rendered chats against transformers: gen/gen_chat.py says what the fixtures hold.
 *
 * usage: unit_lm_chat [FIXTURES [TEMPLATES]]; with TEMPLATES the templates of the models are read
 * from that folder, and must be recognised; without, chats are made of the fixtures' styles. */
#include "lm/chat/chat_family.h"

#include "support/data.h"
#include "support/testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <zlib.h>

#include "base/json.h"
#include "base/mem.h"

#define MSGS_MAX 16
#define CHATML                                                                                     \
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "                  \
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"                                     \
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

static const char *fixtures, *templates;

/* ---- the fixtures ---- */

static size_t read_chat(struct chat_msg *msgs, struct json chats, int64_t index)
{
    struct json chat = json_first(chats);
    size_t n = 0;

    while (index-- > 0)
        chat = json_next(chat);
    JSON_EACH(v, chat)
    {
        assert_true(n < MSGS_MAX);
        msgs[n].reasoning = NULL;
        assert_ok(json_get_string(&msgs[n].role, v, "role"));
        assert_ok(json_get_string(&msgs[n].content, v, "content"));
        assert_ok(json_opt_string(&msgs[n].reasoning, v, "reasoning_content"));
        n++;
    }
    return n;
}

static struct chat_params read_params(struct json v)
{
    struct chat_params p = { 0 };
    bool think = false;

    assert_ok(json_get_bool(&p.add_generation_prompt, v, "add_generation_prompt"));
    assert_ok(json_opt_string(&p.date, v, "date_string"));
    assert_ok(json_opt_bool(&think, v, "enable_thinking"));
    if (json_find(v, "enable_thinking").node)
        p.thinking = think ? CHAT_THINK_ON : CHAT_THINK_OFF;
    return p;
}

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

static void check_case(const struct chat *c, const char *name, struct json chats, struct json v)
{
    struct chat_params params = read_params(v);
    struct chat_msg msgs[MSGS_MAX];
    struct str text = { 0 };
    int64_t index;

    assert_ok(json_get_int(&index, v, "chat"));
    size_t n = read_chat(msgs, chats, index);
    enum err err = chat_render(&text, c, msgs, n, &params);
    if (json_kind(json_find(v, "text")) == JSON_NULL) {
        assert_int_equal(err, ERR_ARG);
        assert_int_equal(text.n, 0);
    } else if (err != ERR_OK) {
        fail_msg("%s: chat %d: %s", name, (int)index, err_text());
    } else if (!is_expected(&text, v)) {
        fail_msg("%s: chat %d is rendered otherwise: %.*s", name, (int)index, (int)text.n, text.v);
    }
    VEC_FINI(&text);
}

/* The template of a model, terminated. */
static char *read_template(const char *name)
{
    char path[1024], *text = mem_alloc(1 << 20);
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.jinja", templates, name);
    f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read", path);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

/* A chat of the template itself, which must be known, or of the style that the fixtures name. */
static struct chat *open_chat(const char *name, struct json family, struct chat_source *source)
{
    struct chat *c = NULL;
    struct str ignored = { 0 };
    const char *style, *system;
    uint64_t form;

    assert_ok(json_get_string(&source->bos, family, "bos"));
    assert_ok(json_get_string(&source->eos, family, "eos"));
    assert_ok(json_get_string(&style, family, "style"));
    assert_ok(json_get_string(&system, family, "system"));
    if (!templates) {
        assert_non_null(chat_style(style));
        assert_ok(chat_create_styled(&c, source, chat_style(style)));
        assert_ok(str_add(&c->system, system, strlen(system)));
        return c;
    }
    char *text = read_template(name);
    source->template_text = text;
    if (chat_create(&c, source) != ERR_OK) {
        assert_ok(chat_form(&form, text, &ignored));
        fail_msg("%s is not known: TEMPLATE(0x%016" PRIx64 ", \"%s\")", name, form, style);
    }
    assert_string_equal(c->style->name, style);
    assert_int_equal(c->system.n, strlen(system));
    mem_free(text);
    return c;
}

static size_t check_family(struct json family, struct json chats)
{
    struct chat_source source = { 0 };
    const char *name;
    size_t n = 0;

    assert_ok(json_get_string(&name, family, "name"));
    struct chat *c = open_chat(name, family, &source);
    JSON_EACH(v, json_find(family, "cases"))
    {
        check_case(c, name, chats, v);
        n++;
    }
    chat_destroy(&c);
    return n;
}

static void test_same_as_transformers(void **state)
{
    struct json_doc *doc = NULL;
    struct json chats, families;
    size_t n = 0, cases = 0;

    (void)state;
    assert_ok(json_load(&doc, fixtures));
    assert_ok(json_get(&chats, json_root(doc), "chats", JSON_ARRAY));
    assert_ok(json_get(&families, json_root(doc), "families", JSON_ARRAY));
    JSON_EACH(v, families)
    {
        cases += check_family(v, chats);
        n++;
    }
    print_message("%zu chats of %zu templates\n", cases, n);
    assert_true(n >= 21 && cases > 1000);
    json_destroy(&doc);
}

/* ---- what fixtures cannot say ---- */

static const struct chat_msg two[] = { { "system", "S", NULL }, { "user", "U", NULL } };
static const struct chat_params prompt = { .add_generation_prompt = true };

static void assert_renders(const char *template_text, const struct chat_msg *msgs, size_t n,
                           const char *expected)
{
    struct chat_source source = { .template_text = template_text };
    struct chat *c = NULL;
    struct str text = { 0 };

    assert_ok(chat_create(&c, &source));
    assert_ok(chat_render(&text, c, msgs, n, &prompt));
    assert_ok(VEC_PUSH(&text, '\0'));
    assert_string_equal(text.v, expected);
    chat_destroy(&c);
    VEC_FINI(&text);
}

static void test_no_template_is_plain_text(void **state)
{
    (void)state;
    assert_renders(NULL, two + 1, 1, "U");
    assert_renders("", two, 2, "S\nU");
}

static void test_a_known_template(void **state)
{
    static const char system[] =
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\nIt\\'s you.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
        "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    (void)state;
    assert_renders(CHATML, two, 2,
                   "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
                   "<|im_start|>assistant\n");
    assert_renders(system, two + 1, 1,
                   "<|im_start|>system\nIt's you.<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
                   "<|im_start|>assistant\n");
}

/* What differs in one thing that changes the text is not known any more. */
static void test_unknown_templates(void **state)
{
    static const char *const unknown[] = {
        "{{ '<start_of_turn>' + role }}",
        "\n" CHATML,
        CHATML "\n\n\n",
        CHATML " {{ x }}",
        "{{ bos_token }}" CHATML,
        "{% if messages[0]['role'] == 'system' %}{{ 'Date' }}{% endif %}" CHATML,
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
        "message['content'] | trim + '<|im_end|>' + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
        /* Phi-4's marks */
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '<|im_sep|>' + "
        "message['content'] + '<|im_end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}",
        "{% for message in messages",
        "{{ 'an open literal",
        "{",
    };
    struct chat_source source = { .model_type = "gemma" };
    struct chat *c = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        source.template_text = unknown[i];
        assert_fails(ERR_UNSUPPORTED, chat_create(&c, &source));
        assert_non_null(strstr(err_text(), "--raw"));
        assert_non_null(strstr(err_text(), "gemma"));
        assert_null(c);
    }
}

static uint64_t form_of(const char *text)
{
    struct str system = { 0 };
    uint64_t form;

    assert_ok(chat_form(&form, text, &system));
    VEC_FINI(&system);
    return form;
}

/* Pairs of texts: the same number where both render the same, whatever the messages are. */
static void test_form(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        { "{{ m['role'] }}", "{{m.role}}", true },
        { "{{ m['role'] }}", "{{ m[\"role\"] }}", true },
        { "{{ m.strip() }}", "{{ m['strip']() }}", false },
        { "{{ 'a' + 'b' }}", "{{ \"ab\" }}", true },
        { "{{ x + 'a' + 'b' }}", "{{ x + 'ab' }}", true },
        { "{{ 'a' + x }}", "{{ 'a' + 'x' }}", false },
        { "{{ 'a\\n' }}", "{{ 'a\n' }}", true },
        { "{{ 'a\\\\n' }}", "{{ 'a\\n' }}", false },
        { "{{ 'a' }}{# note #}", "{{ 'a' }}", true },
        { "{% generation %}{{ a }}{% endgeneration %}", "{{ a }}", true },
        { "{% if a %}\n{{ b }}{% endif %}", "{% if a %}{{ b }}{% endif %}", true },
        { "{% if a %}\n\n{{ b }}{% endif %}", "{% if a %}{{ b }}{% endif %}", false },
        { "{% if a %}\n  {% if b %}{{ c }}{% endif %}{% endif %}",
          "{% if a %}{% if b %}{{ c }}{% endif %}{% endif %}", true },
        { "{% if a %}\n  {{ b }}{% endif %}", "{% if a %}{{ b }}{% endif %}", false },
        { "{% if a %}\n  {{- b }}{% endif %}", "{% if a %}{{ b }}{% endif %}", true },
        { "{% if a -%}\n  {{ b }}{% endif %}", "{% if a %}{{ b }}{% endif %}", true },
        { "x {% if a %}{% endif %}", "x{% if a %}{% endif %}", false },
        { "  {% if a %}{% endif %}", "{% if a %}{% endif %}", true },
        { "{{ a }}\n", "{{ a }}", true },
        { "{{ a }}\n\n", "{{ a }}", false },
        { "{{ ab }}", "{{ a b }}", false },
        { "{{ '}}' }}", "{{ '}' }}}", false },
        { "{{ '<|im_start|>system\\nA<|im_end|>\\n' }}",
          "{{ '<|im_start|>system\\nB<|im_end|>\\n' }}", true },
        { "{{ '<|im_start|>system\\nA<|im_end|>\\n' }}",
          "{{ '<|im_start|>system\\nA<|im_end|>\\n<|im_end|>\\n' }}", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if ((form_of(rows[i].a) == form_of(rows[i].b)) != rows[i].same)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
}

static struct chat *styled(const char *style)
{
    struct chat *c = NULL;

    assert_ok(chat_create_styled(&c, &(struct chat_source){ 0 }, chat_style(style)));
    return c;
}

static void test_date_of_today(void **state)
{
    struct chat *c = styled("llama3.2");
    struct str text = { 0 };
    char before[64], after[64];
    time_t now = time(NULL);
    struct tm tm;

    (void)state;
    strftime(before, sizeof before, "Date: December 2023\nToday Date: %d %b %Y\n\n",
             localtime_r(&now, &tm));
    assert_ok(chat_render(&text, c, two + 1, 1, &prompt));
    assert_ok(VEC_PUSH(&text, '\0'));
    now = time(NULL);
    strftime(after, sizeof after, "Date: December 2023\nToday Date: %d %b %Y\n\n",
             localtime_r(&now, &tm));
    assert_true(strstr(text.v, before) || strstr(text.v, after)); /* midnight may have passed */
    chat_destroy(&c);
    VEC_FINI(&text);
}

static void test_refusals(void **state)
{
    const struct chat_msg tool = { "tool", "x", NULL };
    struct chat *c = styled("llama3.1");
    struct str text = { 0 };

    (void)state;
    assert_fails(ERR_ARG, chat_render(&text, c, &tool, 1, &prompt));
    assert_non_null(strstr(err_text(), "tool"));
    assert_fails(ERR_ARG, chat_render(&text, c, &tool, 0, &prompt));
    assert_int_equal(text.n, 0);
    assert_string_equal(chat_family_name(c), "Llama 3");
    chat_destroy(&c);
    VEC_FINI(&text);
}

static void test_from_a_tokenizer(void **state)
{
    static const char json[] = "{\"model\":{\"vocab\":{\"<|im_start|>\":0},\"merges\":[]}}";
    struct tok *t = NULL;
    struct chat *c = NULL;

    (void)state;
    assert_ok(tok_from_json(&t, json, sizeof json - 1, "json"));
    assert_ok(chat_create_for(&c, t));
    assert_int_equal(chat_family(c), CHAT_PLAIN);
    chat_destroy(&c);
    tok_destroy(&t);
}

static void test_every_allocation_may_fail(void **state)
{
    struct chat_source source = { .template_text = CHATML, .bos = "<s>", .eos = "</s>" };
    enum err err;
    size_t n = 0;

    (void)state;
    do {
        struct chat *c = NULL;
        struct str text = { 0 };
        mem_fail_after(++n);
        err = chat_create(&c, &source);
        if (err == ERR_OK)
            err = chat_render(&text, c, two, 2, &prompt);
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        chat_destroy(&c);
        VEC_FINI(&text);
    } while (err != ERR_OK && n < 100);
    assert_int_equal(err, ERR_OK);
    assert_true(n > 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_transformers),
        cmocka_unit_test(test_no_template_is_plain_text),
        cmocka_unit_test(test_a_known_template),
        cmocka_unit_test(test_unknown_templates),
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_date_of_today),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_from_a_tokenizer),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    struct data_path stored = data_stored("chat.json");

    fixtures = argc > 1 ? argv[1] : stored.v;
    if (argc > 2)
        templates = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
