/* Files of every format, written by tests/gen/io_files.py: right ones give the arrays that NumPy
 * put into them, wrong ones an error that says why and where. */
#include "eval/wait.h"
#include "support/io_files.h"
#include "support/testing.h"

#include "base/log.h"

#include <stdio.h>

static struct strm *cpu;

static void test_right_files(void **state)
{
    (void)state;
    io_files_check_right(cpu, NULL);
}

static void test_texts(void **state)
{
    struct io_content c = { .arrays = { { 0 } } };

    (void)state;
    assert_ok(io_files_load(&c, io_good_texts[0].file, cpu));
    assert_int_equal(c.texts.list.n, io_good_text_count);
    for (size_t i = 0; i < io_good_text_count; i++) {
        assert_string_equal(c.texts.list.v[i].key, io_good_texts[i].key);
        assert_string_equal(c.texts.list.v[i].value, io_good_texts[i].value);
    }
    io_content_fini(&c);
}

static void test_files_without_arrays(void **state)
{
    static const char *const files[] = { "empty.safetensors", "null.safetensors", "none.npz",
                                         "metadata.gguf" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct io_content c = { .arrays = { { 0 } } };
        assert_ok(io_files_load(&c, files[i], cpu));
        assert_int_equal(c.arrays.list.n, 0);
        io_content_fini(&c);
    }
}

/* ---- wrong files ---- */

/* Every error names the file; the table says what else. */
static void test_wrong_files(void **state)
{
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < io_bad_file_count; i++) {
        struct io_content c = { .arrays = { { 0 } } };
        enum err err;

        (void)err_set(ERR_OK, "%s", "");
        err = io_files_load(&c, io_bad_files[i].file, cpu);
        if ((err != ERR_RUNTIME && err != ERR_ARG) || !strstr(err_text(), io_bad_files[i].error) ||
            !strstr(err_text(), io_bad_files[i].file)) {
            print_error("%s: error %d: \"%s\", expected \"%s\"\n", io_bad_files[i].file, (int)err,
                        err_text(), io_bad_files[i].error);
            bad++;
        }
        io_content_fini(&c);
    }
    assert_int_equal(bad, 0);
}

/* The k-th damage: the first k bytes, then one byte changed. */
static void load_damaged(const char *file, struct source *src, size_t k)
{
    size_t n = (size_t)source_size(src), length = MIN(k, n);
    char *bytes = mem_alloc(length);
    struct source *memory = NULL;
    struct io_content c = { .arrays = { { 0 } } };
    const void *p;

    assert_non_null(bytes);
    assert_ok(source_read(src, bytes, length, 0));
    if (k >= n)
        bytes[k - n] ^= (char)(1 << k % 8);
    assert_ok(source_new_memory(&memory, bytes, length, "damaged"));
    enum err err = io_content_load(&c, file, memory, cpu);
    for (size_t i = 0; !err && i < c.arrays.list.n; i++)
        err = arr_host(&p, c.arrays.list.v[i].arr);
    io_content_fini(&c);
    source_unref(&memory);
}

/* ---- log lines ---- */

static void keep_line(enum log_level level, const char *line, void *data)
{
    (void)level;
    snprintf(data, 200, "%s", line);
}

/* Loads a file; line gets the last log line. */
static void load_logged(char line[static 200], const char *file)
{
    struct io_content c = { .arrays = { { 0 } } };

    line[0] = 0;
    log_set_sink(keep_line, line);
    assert_ok(io_files_load(&c, file, cpu));
    log_set_sink(NULL, NULL);
    io_content_fini(&c);
}

static void test_unclaimed_bytes(void **state)
{
    char line[200];

    (void)state;
    load_logged(line, "behind.safetensors");
    assert_non_null(strstr(line, "behind.safetensors: 5 bytes belong to no tensor"));
    load_logged(line, "gap.safetensors");
    assert_non_null(strstr(line, "gap.safetensors: 3 bytes belong to no tensor"));
    load_logged(line, "all.safetensors");
    assert_string_equal(line, "");
}

/* Every prefix of small files, and every byte changed: never a crash, and if there is a result it
 * can be read. Sanitizers see what a comparison cannot. */
static void test_damaged_files(void **state)
{
    static const char *const files[] = { "gap.safetensors", "bfloat16_t.npy", "overlap.npz",
                                         "key_twice.gguf",  "clash.gguf",     "truth.safetensors" };

    char line[200];

    (void)state;
    log_set_sink(keep_line, line);
    for (size_t f = 0; f < ARRAY_LEN(files); f++) {
        struct source *src = NULL;
        assert_ok(io_files_open(&src, files[f]));
        for (size_t k = 0; k < 2 * source_size(src); k++)
            load_damaged(files[f], src, k);
        source_unref(&src);
    }
    log_set_sink(NULL, NULL);
}

/* ---- metadata of GGUF ---- */

static void test_gguf_metadata(void **state)
{
    static const struct {
        const char *key;
        enum dtype dtype;
        double value;
    } numbers[] = {
        { "u8", DT_UINT8, 7 },
        { "i8", DT_INT8, -7 },
        { "u16", DT_UINT16, 60000 },
        { "i16", DT_INT16, -300 },
        { "u32", DT_UINT32, 4294967295 },
        { "i32", DT_INT32, -70000 },
        { "f32", DT_FLOAT32, 1.5 },
        { "bool", DT_BOOL, 1 },
        { "u64", DT_UINT64, 0x1p63 },
        { "i64", DT_INT64, -0x1p40 },
        { "f64", DT_FLOAT32, 2.25 },
    };
    struct gguf g = { .metadata = { 0 } };
    struct source *src = NULL;
    const struct gguf_value *v;
    const void *p;
    const char *s;
    double d;

    (void)state;
    assert_ok(io_files_open(&src, "metadata.gguf"));
    assert_ok(gguf_load(&g, src, cpu));
    source_unref(&src);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        assert_ok(gguf_get_number(&d, &g, numbers[i].key));
        assert_true(d == numbers[i].value);
        v = gguf_find(&g, numbers[i].key);
        assert_int_equal(v->arr->dtype, numbers[i].dtype);
        assert_int_equal(v->arr->ndim, 0);
    }
    assert_ok(gguf_get_string(&s, &g, "text"));
    assert_string_equal(s, "h\xc3\xa9llo");
    assert_fails(ERR_ARG, gguf_get_number(&d, &g, "text"));
    assert_fails(ERR_ARG, gguf_get_number(&d, &g, "u16s"));
    assert_fails(ERR_ARG, gguf_get_string(&s, &g, "u8"));
    assert_null(gguf_find(&g, "missing"));

    v = gguf_find(&g, "u16s");
    assert_int_equal(v->kind, GGUF_ARRAY);
    assert_ok(arr_host(&p, v->arr));
    assert_memory_equal(p, ((uint16_t[]){ 1, 2, 3 }), 6);
    v = gguf_find(&g, "bools");
    assert_ok(arr_host(&p, v->arr));
    assert_memory_equal(p, ((uint8_t[]){ 0, 1, 1 }), 3);
    v = gguf_find(&g, "f64s");
    assert_ok(arr_host(&p, v->arr));
    assert_memory_equal(p, ((float[]){ 0.1f, -3 }), 8);
    assert_int_equal(gguf_find(&g, "none")->arr->size, 0);
    assert_int_equal(gguf_find(&g, "no texts")->n_texts, 0);
    v = gguf_find(&g, "texts");
    assert_int_equal(v->kind, GGUF_STRINGS);
    assert_int_equal(v->n_texts, 3);
    assert_string_equal(v->texts[0].s, "a");
    assert_int_equal(v->texts[1].n, 0);
    assert_string_equal(v->texts[2].s, "\xe4\xb8\xad");
    gguf_fini(&g);
}

static int setup(void **state)
{
    (void)state;
    return strm_default(&cpu, (struct dev){ DEV_CPU, 0 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_files),          cmocka_unit_test(test_texts),
        cmocka_unit_test(test_files_without_arrays), cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_unclaimed_bytes),      cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_gguf_metadata),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
