/* Folders of tokenizers: the files beside tokenizer.json, and errors that name file and key. */
#include "lm/tokenizer/tokenizer.h"

#include "support/testing.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define TOKENIZER                                                                                   \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"<s>\":3,\"</s>\":4,"        \
    "\"<pad>\":5,\"Ġ\":6},\"merges\":[\"a b\"]},\"added_tokens\":[{\"id\":4,\"content\":\"</s>\"," \
    "\"special\":true,\"normalized\":false}],\"decoder\":{\"type\":\"ByteLevel\"},"                 \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"                        \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{"           \
    "\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<s>\":{\"ids\":[3]}}}}"

static const char *const names[] = {
    "tokenizer.json",         "tokenizer_config.json", "special_tokens_map.json",
    "generation_config.json", "config.json",           "chat_template.jinja"
};

struct folder {
    char path[64];
};

static void put(const struct folder *d, const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", d->path, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
}

static int make_folder(void **state)
{
    static struct folder d;

    strcpy(d.path, "/tmp/mlx-tokenizer-XXXXXX"); /* for mkdtemp */
    assert_non_null(mkdtemp(d.path));
    put(&d, "tokenizer.json", TOKENIZER);
    *state = &d;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *d = *state;
    char path[128];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", d->path, names[i]);
        unlink(path);
    }
    return rmdir(d->path);
}

static struct tok *load(const struct folder *d)
{
    struct tok *t = NULL;

    assert_ok(tok_load(&t, d->path));
    return t;
}

static void assert_ids(struct tok *t, const char *text, const char *expected)
{
    struct ids ids = { 0 };
    char got[256] = "";
    size_t n = 0;

    assert_ok(tok_encode(t, text, strlen(text), true, &ids));
    for (size_t i = 0; i < ids.n; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", i ? " " : "", (int)ids.v[i]);
    assert_string_equal(got, expected);
    VEC_FINI(&ids);
}

static void test_tokenizer_json_alone(void **state)
{
    struct tok *t = load(*state);
    const struct tok_info *info = tok_info(t);

    assert_ids(t, "ab</s>a", "3 2 4 0");
    assert_int_equal(tok_size(t), 7);
    assert_int_equal(info->bos, -1);
    assert_int_equal(info->eos_ids.n, 0);
    assert_null(info->chat_template);
    assert_null(info->model_type);
    tok_destroy(&t);
}

static void test_settings_are_read(void **state)
{
    put(*state, "tokenizer_config.json",
        "{\"bos_token\":{\"content\":\"<s>\"},\"eos_token\":\"</s>\",\"chat_template\":\"T\","
        "\"pad_token\":null,\"additional_special_tokens\":[\"b\"]}");
    put(*state, "special_tokens_map.json",
        "{\"pad_token\":\"<pad>\",\"bos_token\":\"<pad>\",\"unk_token\":\"no such token\"}");
    put(*state, "config.json", "{\"model_type\":\"llama\",\"eos_token_id\":2}");
    struct tok *t = load(*state);
    const struct tok_info *info = tok_info(t);

    assert_int_equal(info->bos, 3);
    assert_int_equal(info->eos, 4);
    assert_int_equal(info->pad, 5);
    assert_int_equal(info->unk, -1);
    assert_string_equal(info->chat_template, "T");
    assert_string_equal(info->model_type, "llama");
    assert_int_equal(info->eos_ids.n, 2);
    assert_int_equal(info->eos_ids.v[0], 2);
    assert_int_equal(info->eos_ids.v[1], 4);
    assert_true(tok_is_special(t, 3) && tok_is_special(t, 5) && tok_is_special(t, 1));
    assert_ids(t, "a<s>b", "3 0 3 1");
    tok_destroy(&t);

    put(*state, "generation_config.json", "{\"eos_token_id\":[4,1,4]}");
    put(*state, "chat_template.jinja", "from the file");
    put(*state, "tokenizer_config.json",
        "{\"eos_token\":\"</s>\",\"add_bos_token\":false,\"add_eos_token\":true,"
        "\"chat_template\":[{\"name\":\"tools\",\"template\":\"x\"},"
        "{\"name\":\"default\",\"template\":\"y\"}]}");
    t = load(*state);
    info = tok_info(t);
    assert_int_equal(info->bos, 5);
    assert_int_equal(info->eos_ids.n, 2);
    assert_int_equal(info->eos_ids.v[0], 4);
    assert_int_equal(info->eos_ids.v[1], 1);
    assert_string_equal(info->chat_template, "from the file");
    assert_ids(t, "ab", "2 4");
    tok_destroy(&t);
}

static void test_ends_beyond_the_vocabulary(void **state)
{
    put(*state, "generation_config.json", "{\"eos_token_id\":[1, 100, 1e15]}");
    struct tok *t = load(*state);

    assert_int_equal(tok_info(t)->eos_ids.n, 2);
    assert_int_equal(tok_info(t)->eos_ids.v[1], 100);
    tok_destroy(&t);
}

static void test_list_of_templates(void **state)
{
    put(*state, "tokenizer_config.json",
        "{\"chat_template\":[{\"name\":\"tools\",\"template\":\"x\"},"
        "{\"name\":\"default\",\"template\":\"y\"}]}");
    struct tok *t = load(*state);

    assert_string_equal(tok_info(t)->chat_template, "y");
    assert_null(tok_info(t)->tool_template);
    tok_destroy(&t);

    put(*state, "tokenizer_config.json",
        "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"x\"}]}");
    t = load(*state);
    assert_null(tok_info(t)->chat_template);
    assert_string_equal(tok_info(t)->tool_template, "x");
    assert_true(tok_info(t)->templates_need_name);
    tok_destroy(&t);

    put(*state, "chat_template.jinja", "from the file");
    t = load(*state);
    assert_string_equal(tok_info(t)->chat_template, "from the file");
    assert_null(tok_info(t)->tool_template);
    assert_false(tok_info(t)->templates_need_name);
    tok_destroy(&t);
}

/* Every line: a file, its text, and what the error says. */
static void test_errors_name_file_and_key(void **state)
{
    static const struct {
        const char *file, *text, *says;
    } rows[] = {
        { "tokenizer.json", "{", "tokenizer.json: line 1" },
        { "tokenizer.json", "{}", "tokenizer.json: \"model\" is missing" },
        { "tokenizer.json", "{\"model\":{\"type\":\"Unigram\"}}", "model: type \"Unigram\"" },
        { "tokenizer.json", "{\"model\":{}}", "model: \"vocab\" is missing" },
        { "tokenizer.json", "{\"model\":{\"vocab\":{}}}", "model: \"merges\" is missing" },
        { "tokenizer.json", "{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}",
          "impossible id -1" },
        { "tokenizer.json", "{\"model\":{\"vocab\":{\"a\":9999999},\"merges\":[]}}", "9999999" },
        { "tokenizer.json", "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}",
          "model.merges[0]: merge of \"aa\"" },
        { "tokenizer.json", "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}", "two tokens" },
        { "tokenizer.json", "{\"model\":{\"vocab\":{},\"merges\":[],\"dropout\":0.1}}", "dropout" },
        { "tokenizer.json",
          "{\"model\":{\"vocab\":{},\"merges\":[],\"end_of_word_suffix\":\"</w>\"}}", "suffix" },
        { "tokenizer.json",
          "{\"model\":{\"vocab\":{},\"merges\":[]},\"normalizer\":{\"type\":\"Precompiled\"}}",
          "normalizer: type \"Precompiled\" is not supported" },
        { "tokenizer.json",
          "{\"model\":{\"vocab\":{},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Split\","
          "\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}}",
          "pre_tokenizer.pattern: missing closing parenthesis" },
        { "tokenizer.json",
          "{\"model\":{\"vocab\":{},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Split\","
          "\"pattern\":{\"String\":\"a\"},\"behavior\":\"Sideways\"}}",
          "pre_tokenizer.behavior: unknown behavior \"Sideways\"" },
        { "tokenizer.json",
          "{\"model\":{\"vocab\":{},\"merges\":[]},\"decoder\":{\"type\":\"Strip\","
          "\"content\":\"ab\",\"start\":1,\"stop\":0}}",
          "decoder.content: expected one character" },
        { "tokenizer.json",
          "{\"model\":{\"vocab\":{},\"merges\":[]},\"post_processor\":{\"type\":"
          "\"TemplateProcessing\",\"single\":[],\"special_tokens\":{}}}",
          "post_processor.single: no sequence" },
        { "tokenizer.json",
          "{\"model\":{\"vocab\":{},\"merges\":[]},\"added_tokens\":[{\"id\":1}]}",
          "added_tokens[0]: \"content\" is missing" },
        { "tokenizer_config.json", "{\"eos_token\":7}", "tokenizer_config.json: eos_token" },
        { "tokenizer_config.json", "{\"chat_template\":[{\"name\":\"x\"}]}",
          "chat_template[0]: \"template\" is missing" },
        { "generation_config.json", "{\"eos_token_id\":\"x\"}",
          "generation_config.json: eos_token_id: expected an integer" },
        { "generation_config.json", "{\"eos_token_id\":[0, 1.5]}",
          "eos_token_id[1]: expected an integer" },
        { "generation_config.json", "{\"eos_token_id\":-1}", "eos_token_id: -1 is no token id" },
        { "config.json", "{\"eos_token_id\":[2, -7]}", "eos_token_id[1]: -7 is no token id" },
        { "generation_config.json", "[{\"eos_token_id\":1}]",
          "generation_config.json: expected an object" },
        { "config.json", "7", "config.json: expected an object" },
        { "tokenizer_config.json", "\"x\"", "tokenizer_config.json: expected an object" },
        { "special_tokens_map.json", "[]", "special_tokens_map.json: expected an object" },
    };
    struct folder *d = *state;
    struct tok *t = NULL;
    char path[128];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put(d, "tokenizer.json", TOKENIZER);
        put(d, rows[i].file, rows[i].text);
        (void)err_set(ERR_OK, "%s", "");
        assert_int_not_equal(tok_load(&t, d->path), ERR_OK);
        assert_null(t);
        if (!strstr(err_text(), rows[i].says) || !strstr(err_text(), rows[i].file))
            fail_msg("%s: says %s", rows[i].text, err_text());
        snprintf(path, sizeof path, "%s/%s", d->path, rows[i].file);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/tokenizer.json", d->path);
    unlink(path);
    assert_fails(ERR_RUNTIME, tok_load(&t, d->path));
    assert_non_null(strstr(err_text(), "tokenizer.json: No such file"));
}

/* Each is looked for among those before it. */
static void test_ends_are_limited(void **state)
{
    struct text config = { 0 };
    struct tok *t = NULL;

    assert_ok(text_add(&config, "{\"eos_token_id\":[0"));
    for (int i = 1; i < 1000000; i++)
        assert_ok(text_add(&config, ",%d", i));
    assert_ok(text_add(&config, "]}"));
    put(*state, "generation_config.json", config.s.v);
    assert_fails(ERR_ARG, tok_load(&t, ((struct folder *)*state)->path));
    assert_non_null(strstr(err_text(), "eos_token_id[1024]: more than 1024 ids"));
    VEC_FINI(&config.s);
}

static void test_every_allocation_may_fail(void **state)
{
    struct folder *d = *state;
    enum err err;
    size_t n = 0;

    put(d, "tokenizer_config.json",
        "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\","
        "\"chat_template\":\"T\",\"add_bos_token\":true}");
    put(d, "config.json", "{\"model_type\":\"llama\",\"eos_token_id\":[2,4]}");
    put(d, "chat_template.jinja", "from the file");
    do {
        struct tok *t = NULL;
        mem_fail_after(++n);
        err = tok_load(&t, d->path);
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        tok_destroy(&t);
    } while (err != ERR_OK && n < 1000);
    assert_int_equal(err, ERR_OK);
    assert_true(n > 30);
}

/* ---- streams ---- */

static void test_bytes_wait_for_their_character(void **state)
{
    static const char json[] =
        "{\"model\":{\"vocab\":{\"\xc3\xa4\":0,\"\xc2\xbd\":1,\"\xc4\xa0\":2,\"a\":3},"
        "\"merges\":[]},\"decoder\":{\"type\":\"ByteLevel\"}}"; /* 0xe4, 0xbd, 0x20 as tokens */
    static const struct {
        int32_t id;
        const char *text;
    } steps[] = {
        { 3, "a" }, { 0, "" },  { 1, "" }, { 2, "\xef\xbf\xbd " }, { 1, "\xef\xbf\xbd" },
        { 99, "" }, { -1, "" }, { 0, "" },
    };
    struct tok *t = NULL;
    struct tok_stream *s = NULL;
    struct str text = { 0 };

    (void)state;
    assert_ok(tok_from_json(&t, json, sizeof json - 1, "json"));
    assert_ok(tok_stream_create(&s, t, true));
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
            text.n = 0;
            assert_ok(tok_stream_add(s, steps[i].id, &text));
            assert_int_equal(text.n, strlen(steps[i].text));
            if (text.n)
                assert_memory_equal(text.v, steps[i].text, text.n);
        }
        text.n = 0;
        assert_ok(tok_stream_end(s, &text));
        assert_int_equal(text.n, 3);
        assert_memory_equal(text.v, "\xef\xbf\xbd", 3);
    }
    tok_stream_destroy(&s);
    tok_destroy(&t);
    VEC_FINI(&text);
}

/* Text that is not UTF-8 is tokenized as if it had U+FFFD there. */
static void test_input_need_not_be_utf8(void **state)
{
    static const char json[] = "{\"model\":{\"vocab\":{\"a\":0,\"\xef\xbf\xbd\":1},\"merges\":[]}}";
    struct tok *t = NULL;
    struct ids ids = { 0 };

    (void)state;
    assert_ok(tok_from_json(&t, json, sizeof json - 1, "json"));
    assert_ok(tok_encode(t,
                         "a\xff\xe4\xbd"
                         "a\xc0\x80\xed\xa0\x80\xe4",
                         11, false, &ids));
    static const int32_t expected[] = { 0, 1, 1, 0, 1, 1, 1, 1, 1, 1 };
    assert_int_equal(ids.n, ARRAY_LEN(expected));
    assert_memory_equal(ids.v, expected, sizeof expected);
    tok_destroy(&t);
    VEC_FINI(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tokenizer_json_alone, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_settings_are_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_ends_beyond_the_vocabulary, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_list_of_templates, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_errors_name_file_and_key, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_ends_are_limited, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_every_allocation_may_fail, make_folder, remove_folder),
        cmocka_unit_test(test_bytes_wait_for_their_character),
        cmocka_unit_test(test_input_need_not_be_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
