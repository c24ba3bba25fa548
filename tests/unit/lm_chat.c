/* Rendered chats against transformers: gen/gen_chat.py says what the fixtures hold.
 *
 * usage: unit_lm_chat [FIXTURES [TEMPLATES]]; with TEMPLATES the templates of the models are read
 * from that folder, and must be recognised as the words in the fixtures are. */
#include "lm/chat.h"

#include "support/data.h"
#include "support/testing.h"

#include <stdio.h>
#include <time.h>
#include <zlib.h>

#include "core/json.h"
#include "core/mem.h"

#define MSGS_MAX 16
#define TURN "'<|im_start|>' + message "
#define HEADER "<|start_header_id|> message['content'] | trim + '<|eot_id|>' "

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

static size_t check_family(struct json family, struct json chats)
{
    struct chat_source source = { .has_im_start = true };
    struct chat *c = NULL;
    const char *name;
    char *text = NULL;
    size_t n = 0;

    assert_ok(json_get_string(&name, family, "name"));
    assert_ok(json_get_string(&source.template_text, family, "words"));
    assert_ok(json_get_string(&source.bos, family, "bos"));
    assert_ok(json_get_string(&source.eos, family, "eos"));
    if (templates)
        source.template_text = text = read_template(name);
    assert_ok(chat_create(&c, &source));
    if (chat_note(c))
        fail_msg("%s: %s", name, chat_note(c));
    JSON_EACH(v, json_find(family, "cases"))
    {
        check_case(c, name, chats, v);
        n++;
    }
    chat_destroy(&c);
    mem_free(text);
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
    assert_true(n >= 18 && cases > 600);
    json_destroy(&doc);
}

/* ---- what fixtures cannot say ---- */

static const struct chat_msg two[] = { { "system", "S", NULL }, { "user", "U", NULL } };
static const struct chat_params prompt = { .add_generation_prompt = true };

static void assert_renders(const char *template_text, const struct chat_msg *msgs, size_t n,
                           const char *expected)
{
    struct chat_source source = { .template_text = template_text, .has_im_start = true };
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

static void test_unknown_templates(void **state)
{
    static const char *const unknown[] = {
        "{{ '<start_of_turn>' + role }}",
        "'<|im_start|>' + message.content | trim",
        TURN "reasoning_mode /no_think",
        HEADER "macro",
        "<|start_header_id|>",
        TURN "</think> last_query_index reasoning_content enable_thinking is true",
        TURN "{{ bos_token }}",
        "[INST] without quotes",
        "<<SYS>>",
    };
    struct chat_source source = { .model_type = "gemma", .has_im_start = false };
    struct chat *c = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        source.template_text = unknown[i];
        source.has_im_start = false;
        assert_fails(ERR_UNSUPPORTED, chat_create(&c, &source));
        assert_non_null(strstr(err_text(), "--raw"));
        assert_non_null(strstr(err_text(), "gemma"));
        source.has_im_start = true;
        assert_ok(chat_create(&c, &source));
        assert_non_null(chat_note(c));
        assert_int_equal(chat_family(c), CHAT_CHATML);
        chat_destroy(&c);
    }
    assert_renders(unknown[0], two, 2,
                   "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
                   "<|im_start|>assistant\n");
}

static void test_date_of_today(void **state)
{
    static const char words[] =
        HEADER "Cutting Knowledge Date: May 2001\\n "
               "set date_string = \"26 Jul 2024\" strftime_now add_generation_prompt";
    struct chat_source source = { .template_text = words };
    struct str text = { 0 };
    struct chat *c = NULL;
    char before[64], after[64];
    time_t now = time(NULL);
    struct tm tm;

    (void)state;
    strftime(before, sizeof before, "Date: May 2001\nToday Date: %d %b %Y\n\n",
             localtime_r(&now, &tm));
    assert_ok(chat_create(&c, &source));
    assert_ok(chat_render(&text, c, two + 1, 1, &prompt));
    assert_ok(VEC_PUSH(&text, '\0'));
    now = time(NULL);
    strftime(after, sizeof after, "Date: May 2001\nToday Date: %d %b %Y\n\n",
             localtime_r(&now, &tm));
    assert_true(strstr(text.v, before) || strstr(text.v, after)); /* midnight may have passed */
    chat_destroy(&c);
    VEC_FINI(&text);
}

static void test_refusals(void **state)
{
    static const char llama31[] = HEADER "Cutting Knowledge Date: May 2001\\n "
                                         "set date_string = \"26 Jul 2024\"";
    const struct chat_msg tool = { "tool", "x", NULL };
    struct chat_source source = { .template_text = llama31 };
    struct str text = { 0 };
    struct chat *c = NULL;

    (void)state;
    assert_ok(chat_create(&c, &source));
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
    struct chat_source source = { .template_text =
                                      "'<|im_start|>' + message '<|im_start|>system\\nA"
                                      "<|im_end|>'",
                                  .bos = "<s>",
                                  .eos = "</s>" };
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
        cmocka_unit_test(test_unknown_templates),
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
