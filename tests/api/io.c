/* Files through the public interface: readers and writers of the caller, tables, GGUF contents. */
#include "api_test.h"

#include "mlx/c/ext.h"

#include <stdlib.h>
#include <unistd.h>

static const mlx_stream s = { NULL };

/* ---- a stream in memory ---- */

struct memory {
    char bytes[4096];
    size_t n, at;
    bool closed, bad;
    int freed;
};

static bool memory_is_open(void *desc)
{
    return !((struct memory *)desc)->closed;
}

static bool memory_good(void *desc)
{
    return !((struct memory *)desc)->bad;
}

static size_t memory_tell(void *desc)
{
    return ((struct memory *)desc)->at;
}

static void memory_seek(void *desc, int64_t off, int whence)
{
    struct memory *m = desc;

    m->at = (size_t)(off + (int64_t)(whence == SEEK_SET ? 0 : whence == SEEK_CUR ? m->at : m->n));
}

static void memory_read_at(void *desc, char *data, size_t n, size_t off)
{
    struct memory *m = desc;

    if (off > m->n || n > m->n - off)
        m->bad = true;
    else
        memcpy(data, m->bytes + off, n);
}

static void memory_read(void *desc, char *data, size_t n)
{
    struct memory *m = desc;

    memory_read_at(desc, data, n, m->at);
    m->at += n;
}

static void memory_write(void *desc, const char *data, size_t n)
{
    struct memory *m = desc;

    if (n > sizeof m->bytes - m->at) {
        m->bad = true;
        return;
    }
    memcpy(m->bytes + m->at, data, n);
    m->at += n;
    m->n = m->at > m->n ? m->at : m->n;
}

static const char *memory_label(void *desc)
{
    (void)desc;
    return "a piece of memory";
}

static void memory_free(void *desc)
{
    ((struct memory *)desc)->freed++;
}

static const mlx_io_vtable functions = {
    memory_is_open, memory_good,  memory_tell,  memory_seek, memory_read,
    memory_read_at, memory_write, memory_label, memory_free,
};

static mlx_array ramp(int n)
{
    mlx_array a = mlx_array_new();

    assert_ok(mlx_arange(&a, 0, n, 1, MLX_FLOAT32, s));
    return a;
}

/* ---- readers and writers ---- */

static void test_npy_through_streams(void **state)
{
    struct memory m = { .n = 0 };
    mlx_io_writer writer = mlx_io_writer_new(&m, functions);
    mlx_io_reader reader = mlx_io_reader_new(&m, functions);
    mlx_array a = ramp(6), back = mlx_array_new();
    mlx_string label = mlx_string_new();
    void *desc = NULL;

    (void)state;
    assert_ok(mlx_io_writer_descriptor(&desc, writer));
    assert_ptr_equal(desc, &m);
    desc = NULL;
    assert_ok(mlx_io_reader_descriptor(&desc, reader));
    assert_ptr_equal(desc, &m);
    assert_ok(mlx_io_writer_tostring(&label, writer));
    assert_text(label, "a piece of memory");
    label = mlx_string_new();
    assert_ok(mlx_io_reader_tostring(&label, reader));
    assert_text(label, "a piece of memory");

    assert_ok(mlx_save_writer(writer, a));
    mlx_io_writer_free(writer);
    assert_int_equal(m.freed, 1);
    m.at = 0;
    assert_ok(mlx_load_reader(&back, reader, s));
    mlx_io_reader_free(reader);
    assert_int_equal(m.freed, 1); /* the array still needs it */
    assert_floats(back, (float[]){ 0, 1, 2, 3, 4, 5 }, 6);
    assert_int_equal(m.freed, 2);
    mlx_array_free(a);
    mlx_array_free(back);
}

static void test_safetensors_through_streams(void **state)
{
    struct memory m = { .n = 0 };
    mlx_io_vtable without_offset = functions;
    mlx_map_string_to_array arrays = mlx_map_string_to_array_new(), back = { NULL };
    mlx_map_string_to_string texts = mlx_map_string_to_string_new(), texts_back = { NULL };
    mlx_array a = ramp(4);
    const char *text = NULL;

    (void)state;
    assert_ok(mlx_map_string_to_array_insert(arrays, "x", a));
    assert_ok(mlx_map_string_to_string_insert(texts, "key", "value"));
    mlx_io_writer writer = mlx_io_writer_new(&m, functions);
    assert_ok(mlx_save_safetensors_writer(writer, arrays, texts));
    mlx_io_writer_free(writer);
    without_offset.read_at_offset = NULL;
    mlx_io_reader reader = mlx_io_reader_new(&m, without_offset);
    assert_ok(mlx_load_safetensors_reader(&back, &texts_back, reader, s));
    mlx_io_reader_free(reader);
    assert_ok(mlx_map_string_to_array_get(&a, back, "x"));
    assert_floats(a, (float[]){ 0, 1, 2, 3 }, 4);
    assert_ok(mlx_map_string_to_string_get(&text, texts_back, "key"));
    assert_string_equal(text, "value");
    mlx_array_free(a);
    mlx_map_string_to_array_free(arrays);
    mlx_map_string_to_array_free(back);
    mlx_map_string_to_string_free(texts);
    mlx_map_string_to_string_free(texts_back);
    assert_int_equal(m.freed, 2);
}

static void test_streams_that_fail(void **state)
{
    struct memory m = { .closed = true };
    mlx_io_reader reader = mlx_io_reader_new(&m, functions);
    mlx_io_writer writer = mlx_io_writer_new(&m, functions);
    mlx_array a = ramp(2000), res = mlx_array_new();

    (void)state;
    assert_fails(mlx_load_reader(&res, reader, s));
    assert_non_null(strstr(errors.text, "Failed to open a piece of memory"));
    assert_fails(mlx_save_writer(writer, a));
    m.closed = false;
    assert_fails(mlx_save_writer(writer, a)); /* more than fits */
    assert_non_null(strstr(errors.text, "a piece of memory: writing failed"));
    m = (struct memory){ .n = 5 };
    assert_fails(mlx_load_reader(&res, reader, s));
    assert_non_null(strstr(errors.text, "Invalid header in a piece of memory"));
    m.n = 2000;
    assert_fails(mlx_load_reader(&res, reader, s));
    assert_null(res.ctx);
    mlx_io_reader_free(reader);
    mlx_io_writer_free(writer);
    mlx_array_free(a);

    errors.count = 0;
    mlx_io_vtable few = { .read = memory_read };
    assert_null(mlx_io_reader_new(&m, few).ctx);
    assert_null(mlx_io_writer_new(&m, few).ctx);
    assert_int_equal(errors.count, 2);
}

/* ---- files ---- */

static void test_files(void **state)
{
    mlx_map_string_to_array arrays = mlx_map_string_to_array_new(),
                            back = mlx_map_string_to_array_new();
    mlx_map_string_to_string none = mlx_map_string_to_string_new();
    mlx_array a = ramp(3), res = mlx_array_new();

    (void)state;
    assert_ok(mlx_map_string_to_array_insert(arrays, "x", a));
    assert_ok(mlx_save("api_io", a));
    assert_ok(mlx_load(&res, "api_io.npy", s));
    assert_floats(res, (float[]){ 0, 1, 2 }, 3);
    assert_ok(mlx_save_safetensors("api_io", arrays, none));
    assert_ok(mlx_load_safetensors(&back, &none, "api_io.safetensors", s));
    assert_ok(mlx_map_string_to_array_get(&res, back, "x"));
    assert_floats(res, (float[]){ 0, 1, 2 }, 3);
    for (int compressed = 0; compressed < 2; compressed++) {
        assert_ok(mlx_save_npz("api_io", arrays, compressed));
        assert_ok(mlx_load_npz(&back, "api_io.npz", s));
        assert_ok(mlx_map_string_to_array_get(&res, back, "x"));
        assert_floats(res, (float[]){ 0, 1, 2 }, 3);
    }
    unlink("api_io.npy");
    unlink("api_io.npz");
    unlink("api_io.safetensors");

    assert_fails(mlx_load(&res, "api_io.npy", s));
    assert_non_null(strstr(errors.text, "api_io.npy: No such file"));
    assert_fails(mlx_load_safetensors(&back, &none, "api_io.safetensors", s));
    assert_fails(mlx_load_npz(&back, "api_io.npz", s));
    assert_int_equal(mlx_map_string_to_array_get(&res, back, "x"), 0); /* as before */
    mlx_array_free(a);
    mlx_array_free(res);
    mlx_map_string_to_array_free(arrays);
    mlx_map_string_to_array_free(back);
    mlx_map_string_to_string_free(none);
}

/* ---- GGUF ---- */

static void fill_gguf(mlx_io_gguf g)
{
    mlx_array a = ramp(4), n = mlx_array_new_int(7);
    mlx_vector_string list = mlx_vector_string_new_data((const char *[]){ "a", "bc" }, 2);

    assert_ok(mlx_io_gguf_set_array(g, "second", a));
    assert_ok(mlx_io_gguf_set_array(g, "first", n));
    assert_ok(mlx_io_gguf_set_array(g, "first", a)); /* replaces */
    assert_ok(mlx_io_gguf_set_metadata_array(g, "number", n));
    assert_ok(mlx_io_gguf_set_metadata_string(g, "text", "old"));
    assert_ok(mlx_io_gguf_set_metadata_string(g, "text", "new"));
    assert_ok(mlx_io_gguf_set_metadata_vector_string(g, "texts", list));
    mlx_array_free(a);
    mlx_array_free(n);
    mlx_vector_string_free(list);
}

static void check_gguf(mlx_io_gguf g)
{
    mlx_vector_string keys = mlx_vector_string_new(), list = mlx_vector_string_new();
    mlx_array a = mlx_array_new();
    mlx_string text = mlx_string_new();
    const char *key = NULL;
    int32_t number = 0;
    bool flag = false;

    assert_ok(mlx_io_gguf_get_keys(&keys, g));
    assert_int_equal(mlx_vector_string_size(keys), 2);
    assert_ok(mlx_vector_string_get((char **)&key, keys, 0));
    assert_string_equal(key, "second");
    assert_ok(mlx_io_gguf_get_array(&a, g, "first"));
    assert_floats(a, (float[]){ 0, 1, 2, 3 }, 4);
    assert_int_equal(mlx_io_gguf_get_array(&a, g, "third"), 2);

    assert_ok(mlx_io_gguf_get_metadata_array(&a, g, "number"));
    assert_ok(mlx_array_item_int32(&number, a));
    assert_int_equal(number, 7);
    assert_int_equal(mlx_io_gguf_get_metadata_array(&a, g, "text"), 3);
    assert_int_equal(mlx_io_gguf_get_metadata_array(&a, g, "nothing"), 2);
    assert_int_equal(mlx_io_gguf_get_metadata_string(&text, g, "texts"), 3);
    assert_int_equal(mlx_io_gguf_get_metadata_vector_string(&list, g, "number"), 3);
    assert_ok(mlx_io_gguf_get_metadata_string(&text, g, "text"));
    assert_text(text, "new");
    assert_ok(mlx_io_gguf_get_metadata_vector_string(&list, g, "texts"));
    assert_int_equal(mlx_vector_string_size(list), 2);

    assert_ok(mlx_io_gguf_has_metadata_array(&flag, g, "number"));
    assert_true(flag);
    assert_ok(mlx_io_gguf_has_metadata_string(&flag, g, "number"));
    assert_false(flag);
    assert_ok(mlx_io_gguf_has_metadata_vector_string(&flag, g, "texts"));
    assert_true(flag);
    assert_int_equal(mlx_io_gguf_has_metadata_string(&flag, g, "nothing"), 2);
    assert_false(flag);
    mlx_array_free(a);
    mlx_vector_string_free(keys);
    mlx_vector_string_free(list);
}

static void test_gguf(void **state)
{
    mlx_io_gguf g = mlx_io_gguf_new(), back = { NULL };

    (void)state;
    fill_gguf(g);
    check_gguf(g);
    assert_ok(mlx_save_gguf("api_io", g));
    assert_ok(mlx_load_gguf(&back, "api_io.gguf", s));
    check_gguf(back);
    void *box = back.ctx;
    assert_ok(mlx_load_gguf(&back, "api_io.gguf", s));
    assert_ptr_equal(back.ctx, box);
    unlink("api_io.gguf");
    assert_fails(mlx_load_gguf(&back, "api_io.gguf", s));
    check_gguf(back);
    mlx_io_gguf_free(g);
    mlx_io_gguf_free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy_through_streams),
        cmocka_unit_test(test_safetensors_through_streams),
        cmocka_unit_test(test_streams_that_fail),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_gguf),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
