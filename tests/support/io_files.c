#include "support/io_files.h"
#include "eval/wait.h"

#include <stdio.h>

#include "support/data.h"
#include "support/testing.h"

struct good_array {
    const char *file, *name;
    enum dtype dtype;
    struct shp shape;
    size_t expected; /* place of its bytes in expected.bin */
};

#define bad_file io_bad_file
#define good_text io_good_text
#include "io/io_files.inc"

const struct io_bad_file *const io_bad_files = bad_files;
const size_t io_bad_file_count = ARRAY_LEN(bad_files);
const struct io_good_text *const io_good_texts = good_texts;
const size_t io_good_text_count = ARRAY_LEN(good_texts);

enum err io_files_open(struct source **out, const char *file)
{
    char name[512];

    snprintf(name, sizeof name, "io/%s", file);
    return source_open(out, data_made(name).v);
}

enum err io_files_load(struct io_content *out, const char *file, struct strm *s)
{
    struct source *src = NULL;
    enum err err;

    TRY(io_files_open(&src, file));
    TRY(io_content_load(out, file, src, s));
    for (size_t i = 0; i < out->arrays.list.n; i++) {
        const void *bytes;
        TRY(arr_host(&bytes, out->arrays.list.v[i].arr));
    }
out:
    source_unref(&src);
    return err;
}

/* ---- right files ---- */

static unsigned char *read_expected(void)
{
    struct source *src = NULL;
    unsigned char *bytes;

    assert_ok(io_files_open(&src, "expected.bin"));
    bytes = mem_alloc_aligned((size_t)source_size(src));
    assert_non_null(bytes);
    assert_ok(source_read(src, bytes, (size_t)source_size(src), 0));
    source_unref(&src);
    return bytes;
}

static struct arr *find(const struct io_content *c, const char *name)
{
    for (size_t i = 0; i < c->arrays.list.n; i++)
        if (strcmp(c->arrays.list.v[i].name, name) == 0)
            return c->arrays.list.v[i].arr;
    return NULL;
}

static void check_array(const struct io_content *c, const struct good_array *row,
                        const unsigned char *expected, struct strm *s)
{
    struct arr *a = find(c, row->name), *dense = NULL;
    const void *bytes;
    struct shp shape;

    if (!a)
        fail_msg("%s: '%s' is missing", row->file, row->name);
    assert_int_equal(a->dtype, row->dtype);
    arr_shape(&shape, a);
    assert_true(shp_equal(&shape, &row->shape));
    assert_ok(ops_contiguous(&dense, a, false, s));
    assert_ok(arr_host(&bytes, dense));
    if (a->size && memcmp(bytes, expected + row->expected, arr_nbytes(a)) != 0)
        fail_msg("%s: '%s' has other bytes", row->file, row->name);
    arr_unref(&dense);
}

static size_t rows_of_file(size_t i, bool *has_f64)
{
    const char *file = good_arrays[i].file;
    size_t n = 0;

    for (; i + n < ARRAY_LEN(good_arrays) && strcmp(good_arrays[i + n].file, file) == 0; n++)
        *has_f64 |= good_arrays[i + n].dtype == DT_FLOAT64;
    return n;
}

void io_files_check_right(struct strm *s, void (*each)(const struct arr *a))
{
    unsigned char *expected = read_expected();
    size_t n, checked = 0;

    for (size_t i = 0; i < ARRAY_LEN(good_arrays); i += n) {
        struct io_content c = { .arrays = { { 0 } } };
        bool has_f64 = false;
        n = rows_of_file(i, &has_f64);
        if (has_f64 && s->dev.type == DEV_GPU)
            continue;
        if (io_files_load(&c, good_arrays[i].file, s) != ERR_OK)
            fail_msg("%s: %s", good_arrays[i].file, err_text());
        assert_int_equal(c.arrays.list.n, n);
        for (size_t k = 0; k < n; k++) {
            check_array(&c, &good_arrays[i + k], expected, s);
            if (each)
                each(c.arrays.list.v[k].arr);
        }
        checked += n;
        io_content_fini(&c);
    }
    assert_true(checked > 250);
    mem_free(expected);
}
