/* What becomes of files and memory: lazy reading, bytes used in place, files that change, writing
 * aside, no memory. */
#include "base/gate.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/load.h"
#include "graph/memory.h"
#include "io/gguf.h"
#include "io/io.h"
#include "support/data.h"
#include "support/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct strm *cpu;

/* ---- helpers ---- */

static int count_entries(const char *folder, const char *part)
{
    DIR *dir = opendir(folder);
    int n = 0;

    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += e->d_name[0] != '.' && strstr(e->d_name, part) != NULL;
    closedir(dir);
    return n;
}

static int open_files(void)
{
    return count_entries("/proc/self/fd", "");
}

/* n float32 numbers from `first` on. */
static struct arr *numbers(int n, float first)
{
    struct arr *a = NULL;
    float *v = mem_alloc_array((size_t)n, sizeof *v);

    assert_non_null(v);
    for (int i = 0; i < n; i++)
        v[i] = first + (float)i;
    assert_ok(arr_new_data(&a, v, &(struct shp){ 1, { n } }, DT_FLOAT32));
    mem_free(v);
    return a;
}

static void check_numbers(struct arr *a, float first)
{
    const void *p;
    const float *v;

    assert_ok(arr_host(&p, a));
    v = p;
    for (size_t i = 0; i < a->size; i++)
        assert_true(v[i] == first + (float)i);
}

struct named {
    const char *name;
    struct arr *arr; /* reference taken over */
};

static enum err save(const char *path, const struct named *items, size_t n)
{
    struct io_arrays list = { { 0 } };
    struct io_texts none = { { 0 } };
    struct sink *out = NULL;
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++) /* takes all references, whatever happens */
        if (io_arrays_add(&list, items[i].name, items[i].arr) != ERR_OK)
            err = ERR_NO_MEMORY;
    TRY(err);
    TRY(sink_create(&out, path, ".safetensors"));
    TRY(io_save_safetensors(out, &list, &none));
    err = sink_commit(out);
out:
    sink_destroy(&out);
    io_arrays_fini(&list);
    return err;
}

#define SAVE(path, ...)                                                                            \
    save(path, (const struct named[]){ __VA_ARGS__ },                                              \
         ARRAY_LEN(((const struct named[]){ __VA_ARGS__ })))

static enum err load(struct io_arrays *out, const char *path)
{
    struct io_texts texts = { { 0 } };
    struct source *src = NULL;
    enum err err;

    TRY(source_open(&src, path));
    err = io_load_safetensors(out, &texts, src, cpu);
out:
    io_texts_fini(&texts);
    source_unref(&src);
    return err;
}

/* The array of that name, as a reference of its own. */
static struct arr *load_one(const char *path, const char *name)
{
    struct io_arrays list = { { 0 } };
    struct arr *a = NULL;

    assert_ok(load(&list, path));
    for (size_t i = 0; i < list.list.n; i++)
        if (strcmp(list.list.v[i].name, name) == 0)
            a = arr_ref(list.list.v[i].arr);
    io_arrays_fini(&list);
    assert_non_null(a);
    return a;
}

/* ---- reading when evaluated ---- */

static void test_large_arrays_are_used_in_place(void **state)
{
    int64_t old = gate_set_int(GATE_IO_MAP, 1);

    (void)state;
    assert_ok(
        SAVE("place.safetensors", { "large", numbers(100000, 1) }, { "small", numbers(9, 2) }));
    int files = open_files(); /* with those of a driver */
    size_t before = memory_active();
    struct arr *large = load_one("place.safetensors", "large");
    assert_int_equal(memory_active(), before); /* nothing was read */
    assert_int_equal(open_files(), files + 1);
    struct arr *small = load_one("place.safetensors", "small");
    assert_ok(eval_arrays((struct arr *[]){ large, small }, 2, false));
    assert_non_null(large->buf->dtor);
    assert_null(small->buf->dtor);
    assert_int_equal(memory_active(), before + 400000 + small->buf->size);
    check_numbers(large, 1);
    check_numbers(small, 2);
    assert_int_equal(open_files(), files + 1); /* the file of the small one is closed */
    arr_unref(&large);
    arr_unref(&small);
    assert_int_equal(open_files(), files);
    assert_int_equal(memory_active(), before);
    gate_set_int(GATE_IO_MAP, old);
    unlink("place.safetensors");
}

static void test_files_are_copied(void **state)
{
    (void)state;
    assert_ok(SAVE("copy.safetensors", { "x", numbers(100000, 1) }));
    struct arr *a = load_one("copy.safetensors", "x");
    check_numbers(a, 1);
    assert_null(a->buf->dtor);
    arr_unref(&a);
    unlink("copy.safetensors");
}

/* Large copies are shared between threads; each of them may find the end of the file. */
static void test_large_copies(void **state)
{
    enum { N = 3 << 20 };

    (void)state;
    for (int kept = 0; kept <= 4; kept++) {
        assert_ok(SAVE("threads.safetensors", { "x", numbers(N, 1) }));
        struct arr *a = load_one("threads.safetensors", "x");
        if (kept < 4) {
            assert_int_equal(truncate("threads.safetensors", kept * (N + 4)), 0);
            assert_fails(ERR_RUNTIME, eval_arrays(&a, 1, false));
            assert_non_null(strstr(err_text(), "'x' of threads.safetensors"));
        } else {
            check_numbers(a, 1);
        }
        arr_unref(&a);
    }
    unlink("threads.safetensors");
}

/* Bytes in place are never written by an op that takes over its input. */
static void test_bytes_in_place_are_not_donated(void **state)
{
    int64_t old = gate_set_int(GATE_IO_MAP, 1);
    struct arr *b = NULL;

    (void)state;
    assert_ok(SAVE("donate.safetensors", { "x", numbers(100000, 1) }));
    struct arr *a = load_one("donate.safetensors", "x");
    assert_ok(ops_unary(&b, OP_NEGATIVE, a, cpu));
    arr_unref(&a);
    assert_ok(eval_arrays(&b, 1, false));
    assert_null(b->buf->dtor);
    arr_unref(&b);
    a = load_one("donate.safetensors", "x");
    check_numbers(a, 1);
    arr_unref(&a);
    gate_set_int(GATE_IO_MAP, old);
    unlink("donate.safetensors");
}

static void test_dropped_unread(void **state)
{
    int files = open_files();
    struct io_arrays list = { { 0 } };

    (void)state;
    assert_ok(SAVE("drop.safetensors", { "x", numbers(100000, 1) }, { "y", numbers(3, 1) }));
    assert_ok(load(&list, "drop.safetensors"));
    io_arrays_fini(&list);
    assert_int_equal(open_files(), files);
    unlink("drop.safetensors");
}

/* ---- files that change ---- */

static void check_truncated(const char *path, int n, off_t length)
{
    assert_ok(SAVE(path, { "the tensor", numbers(n, 1) }));
    struct arr *a = load_one(path, "the tensor");
    assert_int_equal(truncate(path, length), 0);
    assert_fails(ERR_RUNTIME, eval_arrays(&a, 1, false));
    assert_non_null(strstr(err_text(), path));
    assert_non_null(strstr(err_text(), "'the tensor'"));
    arr_unref(&a);
    unlink(path);
}

static void test_truncated_before_it_was_read(void **state)
{
    (void)state;
    for (int is_mapped = 0; is_mapped <= 1; is_mapped++) {
        int64_t old = gate_set_int(GATE_IO_MAP, is_mapped);
        check_truncated("cut_small.safetensors", 100, 300);
        check_truncated("cut_large.safetensors", 100000, 300000);
        check_truncated("cut_all.safetensors", 100000, 0);
        gate_set_int(GATE_IO_MAP, old);
    }
}

/* What was read stays; with a mapping this would be SIGBUS. */
static void test_truncated_after_it_was_read(void **state)
{
    struct arr *sum = NULL;

    (void)state;
    assert_ok(SAVE("cut_later.safetensors", { "x", numbers(100000, 1) }));
    struct arr *a = load_one("cut_later.safetensors", "x");
    assert_ok(eval_arrays(&a, 1, false));
    assert_int_equal(truncate("cut_later.safetensors", 0), 0);
    check_numbers(a, 1);
    assert_ok(ops_unary(&sum, OP_NEGATIVE, a, cpu));
    assert_ok(eval_arrays(&sum, 1, false));
    arr_unref(&sum);
    arr_unref(&a);
    unlink("cut_later.safetensors");
}

static void test_deleted_before_it_was_read(void **state)
{
    (void)state;
    assert_ok(SAVE("gone.safetensors", { "x", numbers(100000, 1) }));
    struct arr *a = load_one("gone.safetensors", "x");
    unlink("gone.safetensors");
    check_numbers(a, 1);
    arr_unref(&a);
}

/* What was loaded keeps its bytes, read or not. */
static void test_saved_over(void **state)
{
    (void)state;
    assert_ok(SAVE("over.safetensors", { "x", numbers(100000, 1) }));
    struct arr *read = load_one("over.safetensors", "x"),
               *unread = load_one("over.safetensors", "x");
    check_numbers(read, 1);
    assert_ok(SAVE("over", { "x", numbers(50, 7) }));
    struct arr *fresh = load_one("over.safetensors", "x");
    check_numbers(read, 1);
    check_numbers(unread, 1);
    check_numbers(fresh, 7);
    /* A loaded array saved under its own name. */
    assert_ok(SAVE("over", { "x", arr_ref(unread) }));
    arr_unref(&fresh);
    fresh = load_one("over.safetensors", "x");
    check_numbers(fresh, 1);
    arr_unref(&read);
    arr_unref(&unread);
    arr_unref(&fresh);
    unlink("over.safetensors");
}

/* ---- writing ---- */

static struct arr *wrong_dtype(void)
{
    struct arr *a = NULL;

    assert_ok(arr_new_number(&a, 1, DT_FLOAT64));
    return a;
}

static void test_failed_save_changes_nothing(void **state)
{
    (void)state;
    assert_ok(SAVE("keep.safetensors", { "x", numbers(5, 3) }));
    assert_fails(ERR_RUNTIME, SAVE("keep.safetensors", { "x", wrong_dtype() }));
    assert_non_null(strstr(err_text(), "'x': float64"));
    assert_fails(ERR_ARG, SAVE("keep.safetensors", { "\xff", numbers(5, 3) }));
    struct arr *a = load_one("keep.safetensors", "x");
    check_numbers(a, 3);
    arr_unref(&a);
    assert_int_equal(count_entries(".", "keep.safetensors"), 1);
    unlink("keep.safetensors");
    assert_fails(ERR_RUNTIME, SAVE("no/such/folder", { "x", numbers(5, 3) }));
    assert_non_null(strstr(err_text(), "no/such/folder.safetensors"));
}

static void test_links_and_permissions_stay(void **state)
{
    struct stat st;

    (void)state;
    assert_ok(SAVE("target.safetensors", { "x", numbers(5, 3) }));
    assert_int_equal(chmod("target.safetensors", 0600), 0);
    assert_int_equal(symlink("target.safetensors", "link.safetensors"), 0);
    assert_ok(SAVE("link", { "x", numbers(6, 4) }));
    assert_int_equal(lstat("link.safetensors", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat("target.safetensors", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct arr *a = load_one("target.safetensors", "x");
    assert_int_equal(a->size, 6);
    arr_unref(&a);
    unlink("link.safetensors");
    unlink("target.safetensors");
}

static void test_what_is_no_file(void **state)
{
    struct sink *out = NULL;
    struct source *src = NULL;

    (void)state;
    assert_ok(sink_create(&out, "/dev/null", ""));
    assert_ok(sink_write(out, "x", 1));
    assert_ok(sink_commit(out));
    sink_destroy(&out);
    assert_fails(ERR_RUNTIME, source_open(&src, "/dev/null"));
    assert_fails(ERR_RUNTIME, source_open(&src, "."));
    assert_fails(ERR_RUNTIME, source_open(&src, "no such file"));
    assert_non_null(strstr(err_text(), "no such file: No such file"));
    assert_true(data_fifo("io_load.fifo"));
    assert_fails(ERR_RUNTIME, source_open(&src, "io_load.fifo")); /* and does not wait */
    assert_non_null(strstr(err_text(), "io_load.fifo: not a regular file"));
    unlink("io_load.fifo");
    int full = open("/dev/full", O_WRONLY);
    if (full >= 0) {
        close(full);
        assert_ok(sink_create(&out, "/dev/full", ""));
        assert_ok(sink_write(out, "x", 1)); /* kept back until there is more */
        assert_fails(ERR_RUNTIME, sink_commit(out));
        sink_destroy(&out);
    }
}

/* ---- round trips ---- */

static struct arr *sample(enum dtype t, const struct shp *shape)
{
    struct arr *a = NULL, *ramp = NULL, *shaped = NULL;
    int32_t n = (int32_t)shp_size(shape);

    assert_ok(ops_arange(&ramp, &(struct arange_params){ 0, n, 1 }, DT_INT32, cpu));
    assert_ok(ops_reshape(&shaped, ramp, (struct ints){ shape->d, (size_t)shape->ndim }, cpu));
    assert_ok(ops_astype(&a, shaped, t, cpu));
    arr_unref(&ramp);
    arr_unref(&shaped);
    return a;
}

static void check_same(struct arr *got, struct arr *want)
{
    struct arr *dense[2] = { NULL, NULL };
    const void *p[2];

    assert_int_equal(got->dtype, want->dtype);
    assert_true(arr_same_shape(got, want));
    assert_ok(io_make_dense(dense, (struct arrs){ (struct arr *[]){ got, want }, 2 }, false));
    for (int i = 0; i < 2; i++)
        assert_ok(arr_host(&p[i], dense[i]));
    if (got->size)
        assert_memory_equal(p[0], p[1], arr_nbytes(got));
    arr_unref(&dense[0]);
    arr_unref(&dense[1]);
}

/* Every dtype in several shapes and layouts. */
static void add_samples(struct io_arrays *list, bool (*wanted)(enum dtype))
{
    static const struct shp shapes[] = {
        { 2, { 3, 5 } }, { 0, { 0 } }, { 2, { 0, 4 } }, { 1, { 7 } }, { 3, { 33, 40, 30 } }
    };
    char name[64];

    for (int t = 0; t < DT_COUNT; t++)
        for (size_t i = 0; i < ARRAY_LEN(shapes) && wanted((enum dtype)t); i++) {
            struct arr *a = sample((enum dtype)t, &shapes[i]), *turned = NULL;
            snprintf(name, sizeof name, "%s.%zu", dt_name((enum dtype)t), i);
            assert_ok(ops_transpose(&turned, a, INTS_ALL, cpu));
            assert_ok(io_arrays_add(list, name, a));
            strcat(name, ".turned");
            assert_ok(io_arrays_add(list, name, turned));
        }
}

static bool all(enum dtype t)
{
    (void)t;
    return true;
}

static bool in_safetensors(enum dtype t)
{
    return t != DT_FLOAT64;
}

static bool in_gguf(enum dtype t)
{
    return t == DT_FLOAT32 || t == DT_FLOAT16 || t == DT_INT8 || t == DT_INT16 || t == DT_INT32;
}

static void check_lists(const struct io_arrays *got, const struct io_arrays *want)
{
    assert_int_equal(got->list.n, want->list.n);
    for (size_t i = 0; i < want->list.n; i++) {
        size_t k = 0;
        while (k < got->list.n && strcmp(got->list.v[k].name, want->list.v[i].name) != 0)
            k++;
        assert_true(k < got->list.n);
        check_same(got->list.v[k].arr, want->list.v[i].arr);
    }
}

static void test_round_trip_safetensors(void **state)
{
    struct io_arrays want = { { 0 } }, got = { { 0 } };
    struct io_texts texts = { { 0 } }, read = { { 0 } };
    struct sink *out = NULL;
    struct source *src = NULL;

    (void)state;
    add_samples(&want, in_safetensors);
    assert_ok(io_texts_add(&texts, "key \"\\\n", "value \x01 \xc3\xa9"));
    assert_ok(sink_create(&out, "trip", ".safetensors"));
    assert_ok(io_save_safetensors(out, &want, &texts));
    assert_ok(sink_commit(out));
    sink_destroy(&out);
    assert_ok(source_open(&src, "trip.safetensors"));
    assert_ok(io_load_safetensors(&got, &read, src, cpu));
    source_unref(&src);
    check_lists(&got, &want);
    assert_int_equal(read.list.n, 1);
    assert_string_equal(read.list.v[0].key, texts.list.v[0].key);
    assert_string_equal(read.list.v[0].value, texts.list.v[0].value);
    io_arrays_fini(&want);
    io_arrays_fini(&got);
    io_texts_fini(&texts);
    io_texts_fini(&read);
    unlink("trip.safetensors");
}

static void test_round_trip_npy_and_npz(void **state)
{
    struct io_arrays want = { { 0 } }, got = { { 0 } };
    struct sink *out = NULL;
    struct source *src = NULL;

    (void)state;
    add_samples(&want, all);
    for (int compressed = 0; compressed < 2; compressed++) {
        assert_ok(sink_create(&out, "trip", ".npz"));
        assert_ok(io_save_npz(out, &want, compressed));
        assert_ok(sink_commit(out));
        sink_destroy(&out);
        assert_ok(source_open(&src, "trip.npz"));
        assert_ok(io_load_npz(&got, src, cpu));
        source_unref(&src);
        check_lists(&got, &want);
        io_arrays_fini(&got);
    }
    for (size_t i = 0; i < want.list.n; i++) {
        struct arr *a = NULL;
        assert_ok(sink_create(&out, "trip", ".npy"));
        assert_ok(io_save_npy(out, want.list.v[i].arr));
        assert_ok(sink_commit(out));
        sink_destroy(&out);
        assert_ok(source_open(&src, "trip.npy"));
        assert_ok(io_load_npy(&a, src, cpu));
        source_unref(&src);
        check_same(a, want.list.v[i].arr);
        arr_unref(&a);
    }
    io_arrays_fini(&want);
    unlink("trip.npz");
    unlink("trip.npy");
}

static void put_value(struct gguf *g, struct gguf_value v, const char *key)
{
    v.key = mem_strdup(key);
    assert_non_null(v.key);
    assert_ok(gguf_set(g, &v));
}

static void test_round_trip_gguf(void **state)
{
    static const struct shp list = { 1, { 5 } };
    struct gguf want = { .metadata = { 0 } }, got = { .metadata = { 0 } };
    struct gguf_value text = { .kind = GGUF_STRING }, texts = { .kind = GGUF_STRINGS };
    struct sink *out = NULL;
    struct source *src = NULL;

    (void)state;
    add_samples(&want.arrays, in_gguf);
    assert_ok(gguf_value_add_text(&text, "a\0b", 3));
    put_value(&want, text, "text");
    for (int i = 0; i < 3; i++)
        assert_ok(gguf_value_add_text(&texts, "long text", (size_t)i * 4));
    put_value(&want, texts, "texts");
    for (int t = 0; t < DT_COUNT; t++)
        if (!dt_is_inexact((enum dtype)t) || t == DT_FLOAT32) {
            struct gguf_value v = { .kind = GGUF_ARRAY, .arr = sample((enum dtype)t, &list) };
            put_value(&want, v, dt_name((enum dtype)t));
        }
    put_value(&want, (struct gguf_value){ .arr = sample(DT_UINT32, &list) }, "texts too");
    struct arr *alignment = NULL;
    assert_ok(arr_new_number(&alignment, 64, DT_UINT32));
    put_value(&want, (struct gguf_value){ .arr = alignment }, GGUF_ALIGNMENT_KEY);
    assert_ok(sink_create(&out, "trip", ".gguf"));
    assert_ok(gguf_save(out, &want));
    assert_ok(sink_commit(out));
    sink_destroy(&out);
    assert_ok(source_open(&src, "trip.gguf"));
    assert_ok(gguf_load(&got, src, cpu));
    source_unref(&src);
    check_lists(&got.arrays, &want.arrays);
    assert_int_equal(got.metadata.n, want.metadata.n);
    for (size_t i = 0; i < got.metadata.n; i++) {
        const struct gguf_value *a = &got.metadata.v[i], *b = &want.metadata.v[i];
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->n_texts, b->n_texts);
        for (size_t k = 0; k < a->n_texts; k++) {
            assert_int_equal(a->texts[k].n, b->texts[k].n);
            assert_memory_equal(a->texts[k].s, b->texts[k].s, a->texts[k].n + 1);
        }
        if (a->kind == GGUF_ARRAY)
            check_same(a->arr, b->arr);
    }
    gguf_fini(&want);
    gguf_fini(&got);
    unlink("trip.gguf");
}

static void test_gguf_refuses_what_it_cannot_hold(void **state)
{
    static const struct shp matrix = { 2, { 2, 3 } }, none = { 1, { 0 } }, one = { 1, { 1 } };
    static const struct {
        enum dtype dtype;
        const struct shp *shape;
        const char *error;
    } rows[] = {
        { DT_FLOAT32, &matrix, "more than one dimension" },
        { DT_FLOAT32, &none, "Cannot save empty" },
        { DT_FLOAT16, &one, "float16 is not supported" },
        { DT_COMPLEX64, &one, "complex64 is not supported" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows) + 1; i++) {
        struct gguf g = { .metadata = { 0 } };
        struct sink *out = NULL;
        if (i < ARRAY_LEN(rows))
            put_value(&g, (struct gguf_value){ .arr = sample(rows[i].dtype, rows[i].shape) },
                      "the key");
        else
            assert_ok(io_arrays_add(&g.arrays, "the key", sample(DT_UINT8, &one)));
        assert_ok(sink_create(&out, "bad", ".gguf"));
        enum err err = gguf_save(out, &g);
        assert_true(err == ERR_RUNTIME || err == ERR_ARG);
        assert_non_null(strstr(err_text(), "'the key'"));
        assert_non_null(strstr(err_text(), i < ARRAY_LEN(rows) ? rows[i].error : "uint8"));
        sink_destroy(&out);
        gguf_fini(&g);
    }
    assert_int_equal(count_entries(".", "bad.gguf"), 0);
}

/* ---- readers and writers ---- */

struct stream {
    int calls, fail_at, freed;
};

static enum err stream_read(void *self, void *dst, size_t n, uint64_t offset)
{
    struct stream *s = self;

    if (++s->calls == s->fail_at)
        return err_set(ERR_RUNTIME, "the line is dead");
    for (size_t i = 0; i < n; i++)
        ((char *)dst)[i] = (char)(offset + i);
    return ERR_OK;
}

static void stream_free(void *self)
{
    ((struct stream *)self)->freed++;
}

static enum err stream_write(void *self, const void *bytes, size_t n)
{
    struct stream *s = self;

    (void)bytes;
    (void)n;
    return ++s->calls == s->fail_at ? err_set(ERR_RUNTIME, "the line is dead") : ERR_OK;
}

static void test_readers(void **state)
{
    struct stream s = { .fail_at = 2 };
    struct source *src = NULL;
    struct arr *a = NULL;
    const void *p;

    (void)state;
    assert_ok(source_new_reader(&src, &(struct source_reader){ &s, stream_read, stream_free, 1000 },
                                "wire"));
    for (int i = 0; i < 3; i++) {
        struct load_part part = { src, 10, CODEC_RAW, "numbers" };
        assert_ok(ops_load(&a, &part, &(struct shp){ 1, { i == 2 ? 991 : 5 } }, DT_UINT8, cpu));
        if (i == 0) {
            assert_ok(arr_host(&p, a));
            assert_memory_equal(p, "\n\x0b\x0c\r\x0e", 5);
        } else {
            assert_fails(ERR_RUNTIME, eval_arrays(&a, 1, false));
            assert_non_null(strstr(err_text(), "'numbers' of wire: "));
            assert_non_null(strstr(err_text(), i == 1 ? "the line is dead" : "the data end at"));
        }
        arr_unref(&a);
    }
    assert_int_equal(s.freed, 0);
    source_unref(&src);
    assert_int_equal(s.freed, 1);
}

static void test_writers(void **state)
{
    struct arr *a = numbers(100000, 0);

    (void)state;
    for (int fail_at = 0; fail_at < 4; fail_at++) {
        struct stream s = { .fail_at = fail_at };
        struct sink *out = NULL;
        assert_ok(sink_new_writer(&out, &(struct sink_writer){ &s, stream_write }, "wire"));
        enum err err = io_save_npy(out, a);
        if (!err)
            err = sink_commit(out);
        assert_int_equal(err, fail_at == 1 || fail_at == 2 ? ERR_RUNTIME : ERR_OK);
        if (err)
            assert_string_equal(err_text(), "[save] wire: the line is dead");
        sink_destroy(&out);
    }
    arr_unref(&a);
}

/* ---- no memory ---- */

static enum err save_and_load(void)
{
    struct io_arrays got = { { 0 } };
    struct gguf g = { .metadata = { 0 } };
    struct gguf_value v = { .kind = GGUF_STRINGS };
    struct sink *out = NULL;
    struct source *src = NULL;
    struct arr *a = NULL;
    const void *p;
    enum err err;

    TRY(arr_new_data(&a, "0123456789abcdef", &(struct shp){ 2, { 2, 2 } }, DT_FLOAT32));
    TRY(SAVE("memory.safetensors", { "x", arr_ref(a) }, { "y", arr_ref(a) }));
    TRY(load(&got, "memory.safetensors"));
    for (size_t i = 0; i < got.list.n; i++)
        TRY(arr_host(&p, got.list.v[i].arr));
    TRY(sink_create(&out, "memory", ".npz"));
    TRY(io_save_npz(out, &got, true));
    TRY(sink_commit(out));
    io_arrays_fini(&got);
    TRY(source_open(&src, "memory.npz"));
    TRY(io_load_npz(&got, src, cpu));
    source_unref(&src);
    sink_destroy(&out);
    TRY(io_arrays_add(&g.arrays, "x", arr_ref(a)));
    if (!(v.key = mem_strdup("key"))) {
        err = ERR_NO_MEMORY;
        goto out;
    }
    TRY(gguf_value_add_text(&v, "text", 4));
    TRY(gguf_set(&g, &v));
    TRY(sink_create(&out, "memory", ".gguf"));
    TRY(gguf_save(out, &g));
    TRY(sink_commit(out));
    gguf_fini(&g);
    TRY(source_open(&src, "memory.gguf"));
    TRY(gguf_load(&g, src, cpu));
    TRY(arr_host(&p, g.arrays.list.v[0].arr));
out:
    gguf_value_fini(&v);
    gguf_fini(&g);
    sink_destroy(&out);
    source_unref(&src);
    io_arrays_fini(&got);
    arr_unref(&a);
    return err;
}

/* Whichever allocation fails: an error, no leak, no file left over. */
static void test_no_memory(void **state)
{
    enum err err = ERR_NO_MEMORY;
    int files = open_files();

    (void)state;
    assert_ok(save_and_load());
    for (size_t n = 1; err != ERR_OK; n++) {
        memory_clear_cache();
        mem_fail_after(n);
        err = save_and_load();
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        assert_int_equal(open_files(), files);
        assert_true(n < 2000);
    }
    assert_int_equal(count_entries(".", "memory."), 3);
    assert_int_equal(count_entries(".", ".part"), 0);
    unlink("memory.safetensors");
    unlink("memory.npz");
    unlink("memory.gguf");
}

/* A folder of its own: tests run side by side. */
static int setup(void **state)
{
    static char folder[] = "/tmp/io_load_XXXXXX"; /* for mkdtemp */

    *state = folder;
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    return strm_default(&cpu, (struct dev){ DEV_CPU, 0 });
}

static int teardown(void **state)
{
    return chdir("/") != 0 || rmdir(*state) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_arrays_are_used_in_place),
        cmocka_unit_test(test_files_are_copied),
        cmocka_unit_test(test_large_copies),
        cmocka_unit_test(test_bytes_in_place_are_not_donated),
        cmocka_unit_test(test_dropped_unread),
        cmocka_unit_test(test_truncated_before_it_was_read),
        cmocka_unit_test(test_truncated_after_it_was_read),
        cmocka_unit_test(test_deleted_before_it_was_read),
        cmocka_unit_test(test_saved_over),
        cmocka_unit_test(test_failed_save_changes_nothing),
        cmocka_unit_test(test_links_and_permissions_stay),
        cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_round_trip_safetensors),
        cmocka_unit_test(test_round_trip_npy_and_npz),
        cmocka_unit_test(test_round_trip_gguf),
        cmocka_unit_test(test_gguf_refuses_what_it_cannot_hold),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_writers),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
