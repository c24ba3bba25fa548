/* Loading into GPU memory: the bytes get there without a copy on the host that stays, and what
 * fails leaves the stream in order. Run with every memory strategy. */
#include "eval/wait.h"
#include "support/io_files.h"
#include "support/testing.h"

#include "backend/backend.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "graph/load.h"
#include "graph/memory.h"
#include "support/vk.h"

#include <stdio.h>
#include <unistd.h>

static struct strm *gpu;

static void check_home(const struct arr *a)
{
    if (a->size)
        assert_ptr_equal(a->buf->home, &be_vulkan);
}

static void test_files(void **state)
{
    (void)state;
    io_files_check_right(gpu, check_home);
}

/* ---- a file of many staging pieces ---- */

#define WORDS ((size_t)9 << 20) /* 36 MiB of uint32, and a few bytes more in the file */

/* An open file without name: word i holds i * 2654435761. */
static struct source *large_file(size_t offset)
{
    char path[] = "/tmp/load_vk_XXXXXX", fd_path[64]; /* for mkstemp */
    int fd = mkstemp(path);
    uint32_t *words = mem_alloc_aligned(WORDS * 4 + offset);
    struct source *src = NULL;

    assert_true(fd >= 0);
    assert_non_null(words);
    memset(words, 0xff, offset);
    for (size_t i = 0; i < WORDS; i++)
        memcpy((char *)words + offset + 4 * i, &(uint32_t){ (uint32_t)i * 2654435761u }, 4);
    assert_int_equal(write(fd, words, WORDS * 4 + offset), (ssize_t)(WORDS * 4 + offset));
    mem_free(words);
    snprintf(fd_path, sizeof fd_path, "/proc/self/fd/%d", fd);
    assert_ok(source_open(&src, fd_path));
    unlink(path);
    close(fd);
    return src;
}

static struct arr *load_words(struct source *src, size_t offset, enum codec codec)
{
    struct load_part part = { src, offset, codec, "words" };
    struct arr *a = NULL;

    assert_ok(ops_load(&a, &part, &(struct shp){ 1, { (int32_t)WORDS } }, DT_UINT32, gpu));
    return a;
}

static void check_words(struct arr *a, bool swapped)
{
    const void *p;
    const uint32_t *v;

    assert_ok(arr_host(&p, a));
    v = p;
    for (size_t i = 0; i < WORDS; i++) {
        uint32_t want = (uint32_t)i * 2654435761u;
        if (v[i] != (swapped ? __builtin_bswap32(want) : want))
            fail_msg("word %zu is %u", i, v[i]);
    }
}

static void test_large(void **state)
{
    static const struct {
        size_t offset;
        enum codec codec;
    } rows[] = { { 0, CODEC_RAW }, { 3, CODEC_RAW }, { 8, CODEC_SWAP4 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct source *src = large_file(rows[i].offset);
        size_t before = memory_active();
        uint64_t uploaded = stat_get(STAT_BYTES_UPLOADED);
        struct arr *a = load_words(src, rows[i].offset, rows[i].codec);

        source_unref(&src);
        assert_int_equal(memory_active(), before);
        assert_ok(eval_arrays(&a, 1, false));
        check_home(a);
        /* The weights exist once: no mirror, nothing else counted. */
        assert_null(atomic_load(&a->buf->mirror));
        assert_int_equal(memory_active(), before + a->buf->size);
        assert_true(a->buf->size < WORDS * 4 + WORDS);
        if (!be_vulkan.is_unified())
            assert_int_equal(stat_get(STAT_BYTES_UPLOADED), uploaded + WORDS * 4);
        check_words(a, rows[i].codec == CODEC_SWAP4);
        arr_unref(&a);
    }
}

/* The GPU computes with what was loaded, in the same evaluation. */
static void test_used_at_once(void **state)
{
    struct source *src = large_file(0);
    struct arr *a = load_words(src, 0, CODEC_RAW), *b = NULL;
    uint64_t dispatches = stat_get(STAT_DISPATCHES);
    const void *p;

    (void)state;
    assert_ok(ops_binary(&b, OP_ADD, a, a, gpu));
    assert_ok(arr_host(&p, b));
    assert_true(stat_get(STAT_DISPATCHES) > dispatches);
    for (size_t i = 0; i < WORDS; i += 997)
        assert_int_equal(((const uint32_t *)p)[i], (uint32_t)i * 2654435761u * 2);
    arr_unref(&a);
    arr_unref(&b);
    source_unref(&src);
}

/* ---- failures ---- */

struct faulty {
    int calls;
};

static enum err faulty_read(void *self, void *dst, size_t n, uint64_t offset)
{
    struct faulty *f = self;

    (void)offset;
    memset(dst, 1, n);
    return f->calls-- > 0 ? ERR_OK : err_set(ERR_RUNTIME, "the line is dead");
}

/* In the middle of an array where there are several pieces. */
static void test_reading_fails(void **state)
{
    (void)state;
    for (int calls = 0; calls < 3; calls++) {
        struct faulty f = { calls };
        struct source_reader r = { .self = &f, .read = faulty_read, .size = WORDS * 4 };
        struct source *src = NULL;
        size_t before = memory_active();
        assert_ok(source_new_reader(&src, &r, "wire"));
        struct arr *a = load_words(src, 0, CODEC_SWAP4);
        assert_fails(ERR_RUNTIME, eval_arrays(&a, 1, false));
        assert_string_equal(err_text(), "[load] Tensor 'words' of wire: the line is dead");
        arr_unref(&a);
        source_unref(&src);
        assert_int_equal(memory_active(), before);
    }
    test_used_at_once(state); /* the stream goes on */
}

static void test_float64_is_refused(void **state)
{
    struct source *src = NULL;
    struct arr *a = NULL;

    (void)state;
    assert_ok(io_files_open(&src, "float64_0_1.npy"));
    assert_fails(ERR_ARG, io_load_npy(&a, src, gpu));
    assert_non_null(strstr(err_text(), "float64 is not supported on the GPU"));
    source_unref(&src);
}

static int setup(void **state)
{
    (void)state;
    gpu = vkt_stream();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_used_at_once),
        cmocka_unit_test(test_reading_fails),
        cmocka_unit_test(test_float64_is_refused),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
