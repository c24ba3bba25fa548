/* Rendered chats against transformers: gen/gen_chat.py says what the fixtures hold.
 *
 * usage: unit_lm_chat [FIXTURES] */
#include "lm/chat/chat.h"

#include "support/data.h"
#include "support/testing.h"

#include <stdio.h>
#include <zlib.h>

#include "base/json.h"
#include "base/mem.h"

#define CHATML                                                                                     \
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "                  \
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"                                     \
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

static const char *fixtures;

/* ---- the fixtures ---- */

static const char *chat_of(struct json chats, struct json v)
{
    struct json chat = json_first(chats);
    const char *messages;
    int64_t index;

    assert_ok(json_get_int(&index, v, "chat"));
    while (index-- > 0)
        chat = json_next(chat);
    assert_ok(json_string(&messages, chat));
    return messages;
}

static struct chat_params read_params(struct json v)
{
    struct chat_params p = { 0 };
    bool think = false;

    assert_ok(json_get_bool(&p.add_generation_prompt, v, "add_generation_prompt"));
    assert_ok(json_opt_string(&p.more, v, "more"));
    assert_ok(json_opt_string(&p.tools, v, "tools"));
    assert_ok(json_opt_string(&p.documents, v, "documents"));
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

static void check_case(const struct chat *c, const char *name, const char *messages, struct json v)
{
    struct chat_params params = read_params(v);
    struct str text = { 0 };
    enum err err = chat_render_json(&text, c, messages, &params);

    if (json_kind(json_find(v, "text")) == JSON_NULL) {
        assert_int_equal(err, ERR_ARG);
        assert_int_equal(text.n, 0);
    } else if (err != ERR_OK) {
        fail_msg("%s: %s: %s", name, messages, err_text());
    } else if (!is_expected(&text, v)) {
        fail_msg("%s: %s is rendered otherwise: %.*s", name, messages, (int)text.n, text.v);
    }
    VEC_FINI(&text);
}

static size_t check_template(struct json template, struct json chats)
{
    struct chat_source source = { 0 };
    struct chat *c = NULL;
    const char *name;
    size_t n = 0;

    assert_ok(json_get_string(&name, template, "name"));
    assert_ok(json_get_string(&source.template_text, template, "template"));
    assert_ok(json_get_string(&source.bos, template, "bos"));
    assert_ok(json_get_string(&source.eos, template, "eos"));
    if (!*source.bos)
        source.bos = NULL;
    assert_ok(chat_create(&c, &source));
    JSON_EACH(v, json_find(template, "cases"))
    {
        check_case(c, name, chat_of(chats, v), v);
        n++;
    }
    chat_destroy(&c);
    return n;
}

static void test_same_as_transformers(void **state)
{
    struct json_doc *doc = NULL;
    struct json chats, list;
    size_t n = 0, cases = 0;

    (void)state;
    assert_ok(json_load(&doc, fixtures));
    assert_ok(json_get(&chats, json_root(doc), "chats", JSON_ARRAY));
    assert_ok(json_get(&list, json_root(doc), "templates", JSON_ARRAY));
    JSON_EACH(v, list)
    {
        cases += check_template(v, chats);
        n++;
    }
    print_message("%zu chats of %zu templates\n", cases, n);
    assert_true(n >= 6 && cases > 600);
    json_destroy(&doc);
}

/* ---- what fixtures cannot say ---- */

static const struct chat_msg two[] = { { "system", "S", NULL }, { "user", "U", NULL } };
static const struct chat_params prompt = { .add_generation_prompt = true };

static void assert_renders(const struct chat_source *source, const struct chat_msg *msgs, size_t n,
                           const struct chat_params *params, const char *expected)
{
    struct chat *c = NULL;
    struct str text = { 0 };

    assert_ok(chat_create(&c, source));
    assert_ok(chat_render(&text, c, msgs, n, params));
    assert_ok(VEC_PUSH(&text, '\0'));
    assert_string_equal(text.v, expected);
    chat_destroy(&c);
    VEC_FINI(&text);
}

static void test_no_template_is_plain_text(void **state)
{
    static const struct chat_source none = { .template_text = NULL },
                                    empty = { .template_text = "" };
    struct chat *c = NULL;

    (void)state;
    assert_renders(&none, two + 1, 1, &prompt, "U");
    assert_renders(&empty, two, 2, &prompt, "S\nU");
    assert_ok(chat_create(&c, &none));
    assert_true(chat_is_plain(c));
    chat_destroy(&c);
}

static void test_messages(void **state)
{
    static const struct chat_source chatml = { .template_text = CHATML };
    static const struct chat_msg odd[] = { { "user", "\"\\\n\x01\xff\xc3\xa9</think>", NULL } };

    (void)state;
    assert_renders(&chatml, two, 2, &prompt,
                   "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
                   "<|im_start|>assistant\n");
    assert_renders(&chatml, odd, 1, &(struct chat_params){ 0 },
                   "<|im_start|>user\n\"\\\n\x01\xef\xbf\xbd\xc3\xa9</think><|im_end|>\n");
}

static void test_variables(void **state)
{
    static const struct chat_source source = {
        .template_text = "{{ bos_token }}{{ eos_token is defined }}{{ unk_token }}{{ pad_token }}"
                         "{{ tools }}{{ documents }}{{ enable_thinking }}{{ x }}"
                         "{{ messages[0].thinking }}{{ messages[0].reasoning_content }}",
        .tool_template = "tools {{ tools|tojson }}",
        .bos = "<s>",
        .unk = "<u>",
        .pad = "<p>",
    };
    static const struct chat_msg msg = { "assistant", "a", "why" };

    (void)state;
    assert_renders(&source, &msg, 1, &(struct chat_params){ .thinking = CHAT_THINK_OFF },
                   "<s>False<u><p>NoneNoneFalsewhywhy");
    assert_renders(&source, &msg, 1,
                   &(struct chat_params){ .more = " {\"x\": [1, 2.0], \"bos_token\": \"!\", "
                                                  "\"messages\": 1} " },
                   "!False<u><p>NoneNone[1, 2.0]whywhy");
    assert_renders(&source, &msg, 1, &(struct chat_params){ .more = "{ }" },
                   "<s>False<u><p>NoneNonewhywhy");
    assert_renders(&source, &msg, 1, &(struct chat_params){ .tools = "[{\"a\": 1.0}]" },
                   "tools [{\"a\": 1.0}]");
}

static void test_date(void **state)
{
    static const struct chat_source source = { .template_text = "{{ strftime_now('%d %b %Y') }}" };

    (void)state;
    assert_renders(&source, two, 1, &(struct chat_params){ .now = 1732017600 }, "19 Nov 2024");
}

static void test_wrong_templates(void **state)
{
    static const char *const wrong[] = {
        "{% for message in messages", "{{ 'an open literal", "{% if x %}", "{{ 1 + }}",
        "{% include 'other' %}",
    };
    struct chat_source source = { 0 };
    struct chat *c = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        source.template_text = wrong[i];
        assert_fails(ERR_ARG, chat_create(&c, &source));
        assert_non_null(strstr(err_text(), "line 1 of the template"));
        assert_non_null(strstr(err_text(), "--raw"));
        assert_null(c);
    }
    source = (struct chat_source){ .needs_name = true };
    assert_fails(ERR_ARG, chat_create(&c, &source));
    assert_non_null(strstr(err_text(), "default"));
}

static void test_refusals(void **state)
{
    static const struct {
        const char *messages, *says;
    } rows[] = {
        { "[{\"role\":\"system\",\"content\":\"x\"}]", "No system message, please" },
        { "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
          "{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}]}]",
          "message 1 has a part that is no text, which models cannot read here: image_url" },
        { "[{\"role\":\"user\",\"content\":[1]}]", "message 1 has a part that is no object" },
        { "[1]", "message 1 is no object" },
        { "[]", "there are no messages" },
        { "{}", "the messages are no list" },
        { "[{\"role\":\"user\"", "variables of a template" },
    };
    static const struct chat_source source = {
        .template_text = "{% if messages[0].role == 'system' %}"
                         "{{ raise_exception('No system message, please') }}{% endif %}",
    };
    struct chat_params params = { .more = "[]" };
    struct chat *c = NULL;
    struct str text = { 0 };

    (void)state;
    assert_ok(chat_create(&c, &source));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_fails(ERR_ARG, chat_render_json(&text, c, rows[i].messages, &prompt));
        if (!strstr(err_text(), rows[i].says))
            fail_msg("%s: %s", rows[i].messages, err_text());
    }
    assert_fails(ERR_ARG, chat_render(&text, c, two, 0, &prompt));
    assert_fails(ERR_ARG, chat_render(&text, c, two, 2, &params));
    assert_non_null(strstr(err_text(), "expected an object"));
    params.more = "{";
    assert_fails(ERR_ARG, chat_render(&text, c, two, 2, &params));
    assert_int_equal(text.n, 0);
    chat_destroy(&c);
}

static void test_from_a_tokenizer(void **state)
{
    static const char json[] = "{\"model\":{\"vocab\":{\"<|im_start|>\":0},\"merges\":[]}}";
    struct tok *t = NULL;
    struct chat *c = NULL;

    (void)state;
    assert_ok(tok_from_json(&t, json, sizeof json - 1, "json"));
    assert_ok(chat_create_for(&c, t));
    assert_true(chat_is_plain(c));
    chat_destroy(&c);
    tok_destroy(&t);
}

static void test_every_allocation_may_fail(void **state)
{
    struct chat_source source = {
        .template_text = CHATML, .tool_template = "x", .bos = "<s>", .eos = "</s>"
    };
    const struct chat_params params = { .add_generation_prompt = true, .more = "{\"a\": 1}" };
    enum err err;
    size_t n = 0;

    (void)state;
    do {
        struct chat *c = NULL;
        struct str text = { 0 };
        mem_fail_after(++n);
        err = chat_create(&c, &source);
        if (err == ERR_OK)
            err = chat_render(&text, c, two, 2, &params);
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        chat_destroy(&c);
        VEC_FINI(&text);
    } while (err != ERR_OK && n < 1000);
    assert_int_equal(err, ERR_OK);
    assert_true(n > 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_transformers),
        cmocka_unit_test(test_no_template_is_plain_text),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_date),
        cmocka_unit_test(test_wrong_templates),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_from_a_tokenizer),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    struct data_path stored = data_stored("chat.json");

    fixtures = argc > 1 ? argv[1] : stored.v;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
