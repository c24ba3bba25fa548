/* Tokenizers that mean harm: what would take hours or fill the memory takes moments, or is refused.
 *
 * The sizes are such that a step which is quadratic runs into the time limit of the test. */
#include "lm/tokenizer/tokenizer.h"

#include "support/testing.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "lm/tokenizer/unorm.h"
#include "lm/tokenizer/vocab.h"

#define MODEL                                                                                      \
    "\"model\":{\"vocab\":{\"\":7,\"a\":0,\"b\":1,\"ab\":2,\" \":3},\"merges\":[\"a b\",\" \"]}"

static void repeat(struct str *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_ok(str_add(out, s, strlen(s)));
}

static enum err load(struct tok **t, struct text *json)
{
    enum err err = tok_from_json(t, json->s.v, json->s.n, "json");

    VEC_FINI(&json->s);
    return err;
}

static struct tok *load_parts(const char *parts)
{
    struct text json = { 0 };
    struct tok *t = NULL;

    assert_ok(text_add(&json, "{" MODEL "%s}", parts));
    assert_ok(load(&t, &json));
    return t;
}

static size_t count_ids(struct tok *t, const struct str *text)
{
    struct ids ids = { 0 };
    size_t n;

    assert_ok(tok_encode(t, text->v, text->n, false, &ids));
    n = ids.n;
    VEC_FINI(&ids);
    return n;
}

/* ---- time ---- */

static void test_marks_in_turn(void **state)
{
    struct unorm u = { 0 };
    struct str text = { 0 };
    bool cut;

    (void)state;
    assert_ok(unorm_add(&u, (struct unorm_step){ .kind = UNORM_NFC }));
    repeat(&text, "a", 1);
    repeat(&text, "\u0345\u0334\u0327", 1000000); /* classes 240, 1, 202 */
    assert_ok(unorm_apply(&u, &text, SIZE_MAX, &cut));
    assert_int_equal(text.n, 1 + 6 * 1000000);
    assert_memory_equal(text.v, "a\u0334\u0334", 5);
    assert_memory_equal(text.v + 1 + 2 * 1000000, "\u0327", 2);
    assert_memory_equal(text.v + text.n - 2, "\u0345", 2);
    VEC_FINI(&text);
    unorm_fini(&u);
}

/* Marks of one class stay in their order, others are put into theirs, and what can be composed is.
 */
static void test_order_of_marks(void **state)
{
    struct unorm u = { 0 };
    struct str text = { 0 };
    bool cut;

    (void)state;
    assert_ok(unorm_add(&u, (struct unorm_step){ .kind = UNORM_NFC }));
    repeat(&text, "a\u0323\u0302 a\u0302\u0323 o\u0308\u0304\u0301\u0328x\u0301\u0300", 1);
    assert_ok(unorm_apply(&u, &text, SIZE_MAX, &cut));
    static const char expected[] = "\u1ead \u1ead \u01eb\u0308\u0304\u0301x\u0301\u0300";
    assert_int_equal(text.n, sizeof expected - 1);
    assert_memory_equal(text.v, expected, text.n);
    VEC_FINI(&text);
    unorm_fini(&u);
}

static void test_long_added_tokens(void **state)
{
    struct text json = { 0 };
    struct str content = { 0 }, text = { 0 };
    struct tok *t = NULL;

    (void)state;
    repeat(&content, "a", 200000);
    assert_ok(text_add(&json,
                       "{" MODEL ",\"added_tokens\":[{\"id\":8,\"content\":\"%.*sb\","
                       "\"normalized\":false}]}",
                       (int)content.n, content.v));
    assert_ok(load(&t, &json));
    repeat(&text, "a", 8000000);
    assert_int_equal(count_ids(t, &text), 8000000);
    repeat(&text, "b", 1);
    assert_int_equal(count_ids(t, &text), 8000000 - 200000 + 1);
    tok_destroy(&t);
    VEC_FINI(&content);
    VEC_FINI(&text);
}

/* The white space beside each token is that of all others, too. */
static void test_tokens_of_white_space(void **state)
{
    struct tok *t =
        load_parts(",\"added_tokens\":[{\"id\":3,\"content\":\" \",\"normalized\":false,"
                   "\"lstrip\":true,\"rstrip\":true}]");
    struct str text = { 0 };

    (void)state;
    repeat(&text, "b", 1);
    repeat(&text, " ", 2000000);
    assert_true(count_ids(t, &text) > 1);
    tok_destroy(&t);
    VEC_FINI(&text);
}

static void test_longest_token_wins(void **state)
{
    struct tok *t =
        load_parts(",\"added_tokens\":[{\"id\":2,\"content\":\"ab\",\"normalized\":false},"
                   "{\"id\":11,\"content\":\"ba\",\"normalized\":false},"
                   "{\"id\":12,\"content\":\"aba\",\"normalized\":false}]");
    struct ids ids = { 0 };

    (void)state;
    assert_ok(tok_encode(t, "abaabbaab", 9, false, &ids));
    /* From the left: aba, ab, ba, ab. */
    static const int32_t first[] = { 12, 2, 11, 2 };
    assert_int_equal(ids.n, 4);
    assert_memory_equal(ids.v, first, sizeof first);
    ids.n = 0;
    assert_ok(tok_encode(t, "abaabaabbab", 11, false, &ids));
    static const int32_t second[] = { 12, 12, 2, 11, 1 };
    assert_int_equal(ids.n, 5);
    assert_memory_equal(ids.v, second, sizeof second);
    tok_destroy(&t);
    VEC_FINI(&ids);
}

/* Pairs that a hash with known constants puts into one chain. */
static void test_pairs_that_would_collide(void **state)
{
    const uint64_t c = 0x9e3779b97f4a7c15ull, mask = (1u << 20) - 1;
    struct merges m = { 0 };
    uint64_t inverse = c;

    (void)state;
    for (int i = 0; i < 5; i++)
        inverse *= 2 - c * inverse;
    assert_int_equal(c * inverse, 1);
    for (int32_t right = 0; right < 500000; right++) {
        uint64_t high = ((uint64_t)right * c) >> 32;
        int32_t left = (int32_t)((0 - high) * inverse & mask);
        assert_ok(merges_add(&m, (struct merge){ left, right, right, right }));
    }
    assert_int_equal(m.n, 500000);
    merges_fini(&m);
}

static void test_long_tokens_with_scores(void **state)
{
    struct str text = { 0 }, half = { 0 };
    const char *tokens[] = { "a", "aa", "b", NULL, NULL };
    static const float scores[] = { 0, -1, -2, -3, -4 };
    struct tok_arrays a = { .model = "llama",
                            .tokens = tokens,
                            .n_tokens = ARRAY_LEN(tokens),
                            .scores = scores,
                            .bos = -1,
                            .eos = -1,
                            .unk = -1,
                            .pad = -1,
                            .no_space_prefix = true };
    struct tok *t = NULL;

    (void)state;
    repeat(&text, "a", 4000000);
    repeat(&half, "a", 2000000);
    assert_ok(str_add(&text, "", 1));
    assert_ok(str_add(&half, "", 1));
    tokens[3] = half.v;
    tokens[4] = text.v;
    assert_ok(tok_from_arrays(&t, &a));
    text.n = 4;
    assert_int_equal(count_ids(t, &text), 2);
    tok_destroy(&t);
    VEC_FINI(&text);
    VEC_FINI(&half);
}

/* A decoder that strips the end of the whole text must not look at all of it again with every
 * token. */
static void test_decoded_ends(void **state)
{
    struct tok *t =
        load_parts(",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{"
                   "\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":2000000}]}");
    struct ids ids = { 0 };
    struct str text = { 0 };

    (void)state;
    assert_ok(VEC_PUSH(&ids, 0));
    for (size_t i = 0; i < 1000000; i++)
        assert_ok(VEC_PUSH(&ids, 3));
    assert_ok(tok_decode(t, &ids, false, &text));
    assert_int_equal(text.n, 1);
    text.n = 0;
    assert_ok(VEC_PUSH(&ids, 1));
    assert_ok(VEC_PUSH(&ids, 3));
    assert_ok(tok_decode(t, &ids, false, &text));
    assert_int_equal(text.n, 1000002);
    tok_destroy(&t);
    VEC_FINI(&ids);
    VEC_FINI(&text);
}

/* ---- memory ---- */

/* Each of these is refused when it is loaded, for the reason given. `many` is put in so often. */
static void test_sizes_are_refused(void **state)
{
    static const struct {
        const char *head, *many;
        size_t n;
        const char *tail, *says;
    } rows[] = {
        { ",\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"", "x", 1000000, "\"}",
          "65536 bytes" },
        { ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"",
          "x", 1000000, "\"}", "65536 bytes" },
        { ",\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"", "x",
          1000000, "\"}", "65536 bytes" },
        { ",\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"String\":\"", "x",
          1000000, "\"}}", "too long" },
        { ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[", "{\"type\":\"Digits\"},",
          300, "{\"type\":\"Digits\"}]}", "more than 256 parts" },
        { ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"s\":{\"ids\":"
          "[",
          "0,", 50000, "0]}},\"single\":[{\"SpecialToken\":{\"id\":\"s\"}},{\"Sequence\":{}}]}",
          "1024 ids" },
        { ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"s\":{\"ids\":"
          "[]}},"
          "\"single\":[",
          "{\"SpecialToken\":{\"id\":\"s\"}},", 20000, "{\"Sequence\":{}}]}", "1024 pieces" },
        { ",\"post_processor\":{\"type\":\"Sequence\",\"processors\":[",
          "{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"s\":{\"ids\":[0,0,0,0,0,0,0,0]}},"
          "\"single\":[{\"SpecialToken\":{\"id\":\"s\"}},{\"Sequence\":{}}]},",
          200, "{\"type\":\"ByteLevel\"}]}", "1024 ids" },
        { ",\"added_tokens\":[{\"id\":9,\"content\":\"", "x", ((size_t)16 << 20) + 1, "\"}]",
          "16777216 bytes" },
    };
    struct tok *t = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str s = { 0 };
        repeat(&s, "{" MODEL, 1);
        repeat(&s, rows[i].head, 1);
        repeat(&s, rows[i].many, rows[i].n);
        repeat(&s, rows[i].tail, 1);
        repeat(&s, "}", 1);
        (void)err_set(ERR_OK, "%s", "");
        assert_int_not_equal(tok_from_json(&t, s.v, s.n, "json"), ERR_OK);
        if (!strstr(err_text(), rows[i].says))
            fail_msg("row %zu says %s", i, err_text());
        assert_null(t);
        VEC_FINI(&s);
    }
}

#define REPLACE(from, to)                                                                          \
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"" from "\"},\"content\":\"" to "\"},"
#define TEN "aaaaaaaaaa"
#define MANY TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define TIMES_100 REPLACE("a", MANY)

#define LEVEL "{\"type\":\"ByteLevel\",\"use_regex\":false},"
#define REPEAT_10 LEVEL LEVEL LEVEL LEVEL LEVEL LEVEL LEVEL LEVEL LEVEL LEVEL
#define REPEAT_40 REPEAT_10 REPEAT_10 REPEAT_10 REPEAT_10

/* Texts that are multiplied until they fill the memory. */
static void test_growth_is_refused(void **state)
{
    static const char *const rows[] = {
        ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" TIMES_100 TIMES_100 TIMES_100
            TIMES_100 TIMES_100 TIMES_100 "{\"type\":\"NFC\"}]}",
        ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" REPEAT_40
        "{\"type\":\"Digits\"}]}",
    };
    struct str text = { 0 };
    struct ids ids = { 0 };

    (void)state;
    repeat(&text, "a\xc3\xa9", 1000000);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tok *t = load_parts(rows[i]);
        assert_fails(ERR_UNSUPPORTED, tok_encode(t, text.v, text.n, false, &ids));
        assert_non_null(strstr(err_text(), "bytes"));
        tok_destroy(&t);
    }
    struct tok *t =
        load_parts(",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" TIMES_100 TIMES_100
                       TIMES_100 TIMES_100 TIMES_100 "{\"type\":\"Fuse\"}]}");
    struct str out = { 0 };
    assert_ok(VEC_PUSH(&ids, 0));
    assert_fails(ERR_UNSUPPORTED, tok_decode(t, &ids, false, &out));
    tok_destroy(&t);
    VEC_FINI(&ids);
    VEC_FINI(&out);
    VEC_FINI(&text);
}

/* Many short texts between added tokens have no more room than one long one. */
static void test_growth_of_many_pieces(void **state)
{
    struct tok *t =
        load_parts(",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" TIMES_100
                   "{\"type\":\"Prepend\",\"prepend\":\"" MANY "\"}]},"
                   "\"added_tokens\":[{\"id\":8,\"content\":\"<>\",\"normalized\":false}]");
    struct str text = { 0 };
    struct ids ids = { 0 };

    (void)state;
    repeat(&text, "a<>", 3);
    assert_ok(tok_encode(t, text.v, text.n, false, &ids));
    repeat(&text, "a<>", 1000000);
    assert_fails(ERR_UNSUPPORTED, tok_encode(t, text.v, text.n, false, &ids));
    tok_destroy(&t);
    VEC_FINI(&text);
    VEC_FINI(&ids);
}

/* ---- bytes ---- */

static void test_gguf_tokens_are_utf8(void **state)
{
    static const float scores[] = { 0, 0 };
    const char *tokens[] = { "a", "\xf0\x9f\x98" };
    struct tok_arrays a = { .model = "llama",
                            .tokens = tokens,
                            .n_tokens = 2,
                            .scores = scores,
                            .bos = -1,
                            .eos = -1,
                            .unk = -1,
                            .pad = -1 };
    struct tok *t = NULL;

    (void)state;
    for (int32_t type = 0; type < 7; type++) {
        a.types = (const int32_t[]){ 1, type };
        assert_fails(ERR_ARG, tok_from_arrays(&t, &a));
        assert_non_null(strstr(err_text(), "tokenizer.ggml.tokens[1] is not UTF-8"));
    }
    tokens[1] = "aa";
    a.scores = (const float[]){ 0, NAN };
    assert_fails(ERR_ARG, tok_from_arrays(&t, &a));
    assert_null(t);
}

/* Nothing is added to NULL where a text has no bytes of its own left. */
static void test_nothing_left_of_a_text(void **state)
{
    struct tok *t =
        load_parts(",\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,"
                   "\"strip_right\":true},\"pre_tokenizer\":{\"type\":\"Metaspace\","
                   "\"replacement\":\"_\"},\"added_tokens\":[{\"id\":8,\"content\":\"<>\","
                   "\"normalized\":false},{\"id\":9,\"content\":\"  \"}]");
    static const char *const texts[] = { "", "  ", "<>", "<><>", " <> " };
    struct ids ids = { 0 };
    struct str out = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_ok(tok_encode(t, texts[i], strlen(texts[i]), true, &ids));
    assert_int_equal(ids.n, 4);
    assert_ok(VEC_PUSH(&ids, 9));
    assert_ok(VEC_PUSH(&ids, 7));
    assert_ok(tok_decode(t, &ids, false, &out));
    tok_destroy(&t);
    VEC_FINI(&ids);
    VEC_FINI(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_in_turn),
        cmocka_unit_test(test_order_of_marks),
        cmocka_unit_test(test_long_added_tokens),
        cmocka_unit_test(test_tokens_of_white_space),
        cmocka_unit_test(test_longest_token_wins),
        cmocka_unit_test(test_pairs_that_would_collide),
        cmocka_unit_test(test_long_tokens_with_scores),
        cmocka_unit_test(test_decoded_ends),
        cmocka_unit_test(test_sizes_are_refused),
        cmocka_unit_test(test_growth_is_refused),
        cmocka_unit_test(test_growth_of_many_pieces),
        cmocka_unit_test(test_gguf_tokens_are_utf8),
        cmocka_unit_test(test_nothing_left_of_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
