/* Ids and texts against the Python package: gen/gen_tokenizers.py says what the fixtures hold.
 *
 * usage: unit_lm_tokenizer [FOLDER], the fixtures; by default those of the source tree. */
#include "lm/tokenizer/tokenizer.h"

#include "support/data.h"
#include "support/testing.h"

#include <stdio.h>
#include <zlib.h>

#include "base/mem.h"

#define RANDOM_LISTS 300
#define MODEL_FILES_STEP 11

static const char *folder;
static struct str corpus;
static VEC(struct str) samples; /* into corpus */

static void read_file(struct str *out, const char *where, const char *name)
{
    char path[1024];
    FILE *f;
    size_t got;

    snprintf(path, sizeof path, "%s%s%s", where, *where ? "/" : "", name);
    f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read", path);
    do {
        assert_ok(VEC_RESERVE(out, 65536));
        got = fread(out->v + out->n, 1, 65536, f);
        out->n += got;
    } while (got);
    fclose(f);
}

static uint32_t read_u32(const struct str *s, size_t *at)
{
    uint32_t v;

    assert_true(*at + sizeof v <= s->n);
    memcpy(&v, s->v + *at, sizeof v);
    *at += sizeof v;
    return v;
}

static int load_corpus(void **state)
{
    (void)state;
    read_file(&corpus, "", data_made("tok_corpus.bin").v);
    for (size_t at = 0; at < corpus.n;) {
        size_t n = read_u32(&corpus, &at);
        assert_ok(VEC_PUSH(&samples, (struct str){ .v = corpus.v + at, .n = n }));
        at += n;
    }
    assert_true(samples.n > 2000);
    return 0;
}

static int free_corpus(void **state)
{
    (void)state;
    VEC_FINI(&samples);
    VEC_FINI(&corpus);
    return 0;
}

static uint32_t crc_more(uint32_t crc, const void *data, size_t n)
{
    return n ? (uint32_t)crc32(crc, data, (unsigned)n) : crc;
}

static void decode(struct tok *t, const struct ids *ids, bool skip, struct str *out)
{
    struct tok_stream *stream = NULL;
    struct str piece = { 0 };
    size_t was = out->n;

    assert_ok(tok_decode(t, ids, skip, out));

    /* One by one it is the same text, and every piece is text of its own. */
    size_t at = was;
    assert_ok(tok_stream_create(&stream, t, skip));
    for (size_t i = 0; i <= ids->n; i++) {
        piece.n = 0;
        assert_ok(i < ids->n ? tok_stream_add(stream, ids->v[i], &piece)
                             : tok_stream_end(stream, &piece));
        assert_true(at + piece.n <= out->n);
        if (piece.n)
            assert_memory_equal(out->v + at, piece.v, piece.n);
        for (size_t k = 0, len; k < piece.n; k += len) {
            assert_int_equal(u8_step(piece.v + k, piece.n - k).kind, U8_CHAR);
            len = u8_length(piece.v[k]);
        }
        at += piece.n;
    }
    assert_int_equal(at, out->n);
    tok_stream_destroy(&stream);
    VEC_FINI(&piece);
}

static void check_sample(struct tok *t, const char *name, size_t index, const struct str *expected,
                         size_t *at)
{
    const struct str *s = &samples.v[index];
    struct ids plain = { 0 }, full = { 0 };
    struct str text = { 0 };

    assert_ok(tok_encode(t, s->v, s->n, false, &plain));
    assert_ok(tok_encode(t, s->v, s->n, true, &full));
    uint32_t crc = crc_more(0, plain.v, plain.n * sizeof *plain.v);
    if (crc_more(crc, full.v, full.n * sizeof *full.v) != read_u32(expected, at)) {
        for (size_t i = 0; i < full.n; i++)
            print_error("%d ", (int)full.v[i]);
        fail_msg("%s: text %zu has other ids: %.*s", name, index, (int)s->n, s->v);
    }
    decode(t, &full, false, &text);
    assert_ok(VEC_PUSH(&text, '\0'));
    decode(t, &full, true, &text);
    if (crc_more(0, text.v, text.n) != read_u32(expected, at))
        fail_msg("%s: text %zu is decoded otherwise: %.*s", name, index, (int)text.n, text.v);
    VEC_FINI(&plain);
    VEC_FINI(&full);
    VEC_FINI(&text);
}

/* Ids that no text has, so that their bytes are mostly no text either. */
static void check_random(struct tok *t, const char *name, const struct str *expected, size_t *at)
{
    struct rng rng = { 7 };
    struct ids ids = { 0 };
    struct str text = { 0 };

    for (int i = 0; i < RANDOM_LISTS; i++) {
        int n = 1 + rng_below(&rng, 12);
        ids.n = text.n = 0;
        for (int k = 0; k < n; k++)
            assert_ok(VEC_PUSH(&ids, rng_below(&rng, (int)tok_size(t))));
        decode(t, &ids, true, &text);
        if (crc_more(0, text.v, text.n) != read_u32(expected, at))
            fail_msg("%s: random list %d is decoded otherwise: %.*s", name, i, (int)text.n, text.v);
    }
    VEC_FINI(&ids);
    VEC_FINI(&text);
}

static void check_tokenizer(void **state)
{
    const char *name = *state;
    struct str json = { 0 }, expected = { 0 };
    struct tok *t = NULL;
    char file[64];
    size_t at = 0;

    snprintf(file, sizeof file, "%s.json", name);
    read_file(&json, folder, file);
    snprintf(file, sizeof file, "%s.crc", name);
    read_file(&expected, folder, file);
    assert_ok(tok_from_json(&t, json.v, json.n, name));
    for (size_t i = 0; i < samples.n; i++)
        check_sample(t, name, i, &expected, &at);
    check_random(t, name, &expected, &at);
    assert_int_equal(at, expected.n);
    tok_destroy(&t);
    VEC_FINI(&json);
    VEC_FINI(&expected);
}

/* Every line is an object; the model goes into it. */
static void check_part(const struct str *line, const struct str *model, const struct str *expected,
                       size_t *at)
{
    struct str json = { 0 };
    struct tok *t = NULL;

    assert_ok(str_add(&json, line->v, line->n - 1));
    assert_ok(str_add(&json, ",\"model\":", 9));
    assert_ok(str_add(&json, model->v, model->n));
    assert_ok(str_add(&json, "}", 1));
    assert_ok(tok_from_json(&t, json.v, json.n, "parts"));
    char name[2048];
    snprintf(name, sizeof name, "%.*s", (int)line->n, line->v);
    for (size_t i = 0; i < samples.n; i += MODEL_FILES_STEP)
        check_sample(t, name, i, expected, at);
    tok_destroy(&t);
    VEC_FINI(&json);
}

static void check_parts(void **state)
{
    struct str lines = { 0 }, model = { 0 }, expected = { 0 };
    size_t at = 0, n = 0;

    (void)state;
    read_file(&lines, folder, "parts.jsonl");
    read_file(&model, folder, "parts.json");
    read_file(&expected, folder, "parts.crc");
    for (size_t start = 0, end; start < lines.n; start = end + 1, n++) {
        end = (size_t)((char *)memchr(lines.v + start, '\n', lines.n - start) - lines.v);
        struct str line = { .v = lines.v + start, .n = end - start };
        check_part(&line, &model, &expected, &at);
    }
    assert_int_equal(at, expected.n);
    assert_true(n > 50);
    VEC_FINI(&lines);
    VEC_FINI(&model);
    VEC_FINI(&expected);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        { "qwen", check_tokenizer, NULL, NULL, "qwen" },
        { "llama3", check_tokenizer, NULL, NULL, "llama3" },
        { "smollm", check_tokenizer, NULL, NULL, "smollm" },
        { "sentencepiece", check_tokenizer, NULL, NULL, "sentencepiece" },
        { "metaspace", check_tokenizer, NULL, NULL, "metaspace" },
        cmocka_unit_test(check_parts),
    };

    struct data_path stored = data_stored("tokenizers");

    folder = argc > 1 ? argv[1] : stored.v;
    return cmocka_run_group_tests(tests, load_corpus, free_corpus);
}
