/* Tokenizers from the arrays of GGUF files: the same ids as those from tokenizer.json. */
#include "lm/tokenizer/tokenizer.h"

#include "support/data.h"
#include "support/testing.h"

#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"

static const char *const texts[] = {
    "Once upon a time, they'd say 12345 things... and MORE!",
    "Привет, мир! 你好，世界！ 안녕하세요",
    "  two spaces\n\n\tand\r\nlines   ",
    "re\xcc\x81sume\xcc\x81 nai\xcc\x88ve",
    "<|im_start|>user\nhi<|im_end|> <s> x </s>",
    "def f(x):\n    return x ** 2  # ok",
    "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 !",
};

/* What a converter would make of a tokenizer.json. */
struct arrays {
    struct tok_arrays a;
    const char **tokens;
    int32_t *types;
    char **merges;
};

static void free_arrays(struct arrays *x)
{
    for (size_t i = 0; i < x->a.n_merges; i++)
        mem_free(x->merges[i]);
    mem_free(x->merges);
    mem_free(x->tokens);
    mem_free(x->types);
}

static void set_token(struct arrays *x, int64_t id, const char *s, int32_t type)
{
    assert_in_range(id, 0, x->a.n_tokens - 1);
    x->tokens[id] = s;
    x->types[id] = type;
}

static void make_arrays(struct arrays *x, struct json root)
{
    struct json model, vocab, merges;
    const char *s, *left, *right;
    int64_t id;
    bool special;

    assert_ok(json_get(&model, root, "model", JSON_OBJECT));
    assert_ok(json_get(&vocab, model, "vocab", JSON_OBJECT));
    assert_ok(json_get(&merges, model, "merges", JSON_ARRAY));
    x->a.n_tokens = json_count(vocab) + json_count(json_find(root, "added_tokens")) + 2;
    x->a.n_merges = json_count(merges);
    x->a.tokens = x->tokens = mem_alloc_array(x->a.n_tokens, sizeof *x->tokens);
    x->a.types = x->types = mem_alloc_array(x->a.n_tokens, sizeof *x->types);
    x->merges = mem_alloc_array(x->a.n_merges, sizeof *x->merges);
    x->a.merges = (const char *const *)x->merges;
    for (size_t i = 0; i < x->a.n_tokens; i++)
        set_token(x, (int64_t)i, "\x01[unused]", 5);
    JSON_EACH(v, vocab)
    {
        assert_ok(json_int(&id, v));
        set_token(x, id, json_key(v), 1);
    }
    JSON_EACH(v, json_find(root, "added_tokens"))
    {
        assert_ok(json_get_int(&id, v, "id"));
        assert_ok(json_get_string(&s, v, "content"));
        assert_ok(json_get_bool(&special, v, "special"));
        set_token(x, id, s, special ? 3 : 4);
    }
    size_t n = 0;
    JSON_EACH(v, merges)
    {
        x->merges[n] = mem_alloc(512);
        if (json_kind(v) == JSON_STRING) {
            assert_ok(json_string(&s, v));
            snprintf(x->merges[n++], 512, "%s", s);
            continue;
        }
        assert_ok(json_string(&left, json_first(v)));
        assert_ok(json_string(&right, json_next(json_first(v))));
        snprintf(x->merges[n++], 512, "%s %s", left, right);
    }
}

static void assert_same_ids(struct tok *a, struct tok *b, const char *text)
{
    struct ids one = { 0 }, two = { 0 };
    struct str back = { 0 }, back_two = { 0 };

    assert_ok(tok_encode(a, text, strlen(text), true, &one));
    assert_ok(tok_encode(b, text, strlen(text), true, &two));
    assert_int_equal(one.n, two.n);
    assert_memory_equal(one.v, two.v, one.n * sizeof *one.v);
    assert_ok(tok_decode(a, &one, true, &back));
    assert_ok(tok_decode(b, &two, true, &back_two));
    assert_int_equal(back.n, back_two.n);
    assert_memory_equal(back.v, back_two.v, back.n);
    VEC_FINI(&one);
    VEC_FINI(&two);
    VEC_FINI(&back);
    VEC_FINI(&back_two);
}

static void test_same_as_tokenizer_json(void **state)
{
    static const struct {
        const char *file;
        struct tok_arrays a;
        const char *bos;
    } rows[] = {
        { "qwen.json", { .model = "gpt2", .pre = "qwen2", .unk = -1 }, NULL },
        { "llama3.json", { .model = "gpt2", .pre = "llama-bpe", .unk = -1 }, "<|begin_of_text|>" },
        { "smollm.json", { .model = "gpt2", .pre = "smollm", .unk = -1 }, NULL },
        { "sentencepiece.json", { .model = "llama", .unk = 0 }, "<s>" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arrays x = { .a = rows[i].a };
        struct json_doc *doc = NULL;
        struct str text = { 0 };
        struct tok *t = NULL, *u = NULL;
        char name[256];

        snprintf(name, sizeof name, "tokenizers/%s", rows[i].file);
        FILE *f = fopen(data_stored(name).v, "rb");
        assert_non_null(f);
        assert_ok(VEC_RESERVE(&text, 1 << 20));
        text.n = fread(text.v, 1, text.cap, f);
        fclose(f);
        assert_ok(tok_from_json(&t, text.v, text.n, name));
        assert_ok(json_parse(&doc, text.v, text.n, name));
        make_arrays(&x, json_root(doc));
        x.a.add_bos = rows[i].bos != NULL;
        x.a.bos = rows[i].bos ? tok_id(t, rows[i].bos) : -1;
        x.a.eos = x.a.pad = -1;
        assert_ok(tok_from_arrays(&u, &x.a));
        for (size_t k = 0; k < ARRAY_LEN(texts); k++)
            assert_same_ids(t, u, texts[k]);
        tok_destroy(&t);
        tok_destroy(&u);
        free_arrays(&x);
        json_destroy(&doc);
        VEC_FINI(&text);
    }
}

static const char *const small_tokens[] = { "<unk>", "<s>", "</s>", "<0x21>", "▁",   "a",
                                            "b",     "ab",  "ba",   "▁a",     "▁ab", "bab" };
static const int32_t small_types[] = { 2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1, 1 };
static const float small_scores[] = { 0, 0, 0, 0, -9, -8, -7, -2, -1, -3, -4, -5 };

static struct tok_arrays small(void)
{
    return (struct tok_arrays){ .model = "llama",
                                .tokens = small_tokens,
                                .n_tokens = ARRAY_LEN(small_tokens),
                                .types = small_types,
                                .scores = small_scores,
                                .bos = 1,
                                .eos = 2,
                                .unk = 0,
                                .pad = 99,
                                .add_bos = true,
                                .chat_template = "{{ x }}" };
}

static void test_merges_from_scores(void **state)
{
    static const int32_t expected[] = { 1, 9, 11, 3, 0, 5 }; /* <s> ▁a bab <0x21> <unk> a */
    struct tok_arrays a = small();
    struct tok *t = NULL;
    struct ids ids = { 0 };
    struct str text = { 0 };

    (void)state;
    assert_ok(tok_from_arrays(&t, &a));
    assert_ok(tok_encode(t, "abab!xya", 8, true, &ids));
    assert_int_equal(ids.n, ARRAY_LEN(expected));
    assert_memory_equal(ids.v, expected, sizeof expected);
    ids.n = 4;
    assert_ok(tok_decode(t, &ids, true, &text));
    assert_int_equal(text.n, 5);
    assert_memory_equal(text.v, "abab!", 5);
    assert_int_equal(tok_info(t)->bos, 1);
    assert_int_equal(tok_info(t)->pad, -1);
    assert_int_equal(tok_info(t)->eos_ids.n, 1);
    assert_string_equal(tok_info(t)->chat_template, "{{ x }}");
    assert_true(tok_is_special(t, 2) && !tok_is_special(t, 5));
    assert_string_equal(tok_token(t, 10), "▁ab");
    assert_int_equal(tok_id(t, "</s>"), 2);
    tok_destroy(&t);
    VEC_FINI(&ids);
    VEC_FINI(&text);
}

static void test_what_is_missing_has_a_name(void **state)
{
    struct tok_arrays a = small();
    struct tok *t = NULL;

    (void)state;
    a.scores = NULL;
    assert_fails(ERR_ARG, tok_from_arrays(&t, &a));
    assert_non_null(strstr(err_text(), "tokenizer.ggml.scores"));
    a.model = "gpt2";
    assert_fails(ERR_ARG, tok_from_arrays(&t, &a));
    assert_non_null(strstr(err_text(), "tokenizer.ggml.merges"));
    a.pre = "no-such-thing";
    assert_fails(ERR_UNSUPPORTED, tok_from_arrays(&t, &a));
    assert_non_null(strstr(err_text(), "qwen2"));
    a.model = "bert";
    assert_fails(ERR_UNSUPPORTED, tok_from_arrays(&t, &a));
    assert_non_null(strstr(err_text(), "tokenizer.ggml.model"));
    a.model = "gpt2";
    a.pre = NULL;
    a.merges = (const char *const[]){ "ab" };
    a.n_merges = 1;
    assert_fails(ERR_ARG, tok_from_arrays(&t, &a));
    assert_null(t);
}

static void test_every_allocation_may_fail(void **state)
{
    struct tok_arrays a = small();
    enum err err;
    size_t n = 0;

    (void)state;
    do {
        struct tok *t = NULL;
        struct ids ids = { 0 };
        struct str text = { 0 };
        mem_fail_after(++n);
        err = tok_from_arrays(&t, &a);
        if (err == ERR_OK)
            err = tok_encode(t, "abab!xya <s>", 12, true, &ids);
        if (err == ERR_OK)
            err = tok_decode(t, &ids, false, &text);
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        tok_destroy(&t);
        VEC_FINI(&ids);
        VEC_FINI(&text);
    } while (err != ERR_OK && n < 1000);
    assert_int_equal(err, ERR_OK);
    assert_true(n > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_tokenizer_json),
        cmocka_unit_test(test_merges_from_scores),
        cmocka_unit_test(test_what_is_missing_has_a_name),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
