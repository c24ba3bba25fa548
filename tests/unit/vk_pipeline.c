/* Pipelines: found by key and specialization, built once by many threads, kept on disk. */
#include "support/child.h"
#include "support/data.h"
#include "support/testing.h"
#include "support/vk.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/rt/pipeline_cache.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/stat.h"

static const struct kern_blob *probe_blob(void)
{
    for (size_t i = 0; i < kern_blob_count; i++)
        if (kern_blobs[i].id == KERN_PROBE)
            return &kern_blobs[i];
    fail_msg("the probe kernel was not built");
    return NULL;
}

static enum err get(const struct vk_pipe **out, uint64_t key, uint32_t x)
{
    const struct kern_blob *b = probe_blob();
    const uint32_t spec[3] = { x, 1, 1 };

    return vk_pipe_get(out, &(struct vk_pipe_params){ .name = "probe",
                                                      .key = key,
                                                      .words = b->words,
                                                      .n_words = b->n_words,
                                                      .spec = spec,
                                                      .n_spec = 3 });
}

/* ---- in memory ---- */

static void test_key_and_specialization(void **state)
{
    const struct vk_pipe *a, *b, *c, *d;
    uint64_t builds = stat_get(STAT_PIPELINE_BUILDS), hits = stat_get(STAT_PIPELINE_HITS);

    (void)state;
    assert_ok(be_vulkan.open());
    assert_ok(get(&a, 1, 32));
    assert_ok(get(&b, 1, 32));
    assert_ok(get(&c, 1, 64));
    assert_ok(get(&d, 2, 32));
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_ptr_not_equal(a, d);
    assert_int_equal(stat_get(STAT_PIPELINE_BUILDS) - builds, 3);
    assert_int_equal(stat_get(STAT_PIPELINE_HITS) - hits, 1);
}

static void *build_in_thread(void *arg)
{
    const struct vk_pipe **out = arg;
    enum err err = get(out, 100, 16);

    return (void *)(uintptr_t)err;
}

static void test_built_once(void **state)
{
    const struct vk_pipe *pipe[8];
    pthread_t threads[8];
    uint64_t builds = stat_get(STAT_PIPELINE_BUILDS);

    (void)state;
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, build_in_thread, &pipe[i]), 0);
    for (int i = 0; i < 8; i++) {
        void *err;
        pthread_join(threads[i], &err);
        assert_null(err);
        assert_ptr_equal(pipe[i], pipe[0]);
    }
    assert_int_equal(stat_get(STAT_PIPELINE_BUILDS) - builds, 1);
}

static void test_prefetch(void **state)
{
    const struct kern_blob *b = probe_blob();
    struct vk_pipe_params p[6];
    uint32_t spec[6][3];
    const struct vk_pipe *pipe;
    uint64_t builds = stat_get(STAT_PIPELINE_BUILDS);

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        spec[i][0] = 1u << i;
        spec[i][1] = spec[i][2] = 1;
        p[i] = (struct vk_pipe_params){ .name = "probe",
                                        .key = 200,
                                        .words = b->words,
                                        .n_words = b->n_words,
                                        .spec = spec[i],
                                        .n_spec = 3 };
    }
    assert_ok(vk_pipe_prefetch(p, 6));
    assert_int_equal(stat_get(STAT_PIPELINE_BUILDS) - builds, 6);
    assert_ok(get(&pipe, 200, 4));
    assert_int_equal(stat_get(STAT_PIPELINE_BUILDS) - builds, 6);
    p[0].key = p[1].key = p[2].key = 201;
    vk_fault_set(VK_FAULT_PIPELINE, 1); /* one fails, the others are built */
    assert_fails(ERR_DEVICE, vk_pipe_prefetch(p, 3));
    assert_int_equal(stat_get(STAT_PIPELINE_BUILDS) - builds, 8);
    assert_ok(vk_pipe_prefetch(NULL, 0));
}

static void test_failure_can_be_retried(void **state)
{
    const struct vk_pipe *pipe = NULL;

    (void)state;
    vk_fault_set(VK_FAULT_PIPELINE, 1);
    assert_fails(ERR_DEVICE, get(&pipe, 300, 32));
    assert_null(pipe);
    assert_non_null(strstr(err_text(), "probe"));
    assert_ok(get(&pipe, 300, 32));
    assert_non_null(pipe);
}

static void test_limits(void **state)
{
    const struct kern_blob *b = probe_blob();
    const struct vk_limits *l = vk_limits_get();
    uint32_t spec[VK_MAX_SPEC + 1] = { 32, 1, 1 };
    const struct vk_pipe *pipe;
    struct vk_pipe_params p = { .name = "probe",
                                .key = 400,
                                .words = b->words,
                                .n_words = b->n_words,
                                .spec = spec,
                                .n_spec = VK_MAX_SPEC + 1 };

    (void)state;
    assert_fails(ERR_ARG, vk_pipe_get(&pipe, &p));
    p.n_spec = 3;
    p.subgroup_size = l->max_subgroup * 2;
    assert_fails(ERR_UNSUPPORTED, vk_pipe_get(&pipe, &p));
    if (l->caps & VK_CAP_SUBGROUP_SIZE) {
        p.subgroup_size = l->min_subgroup;
        assert_ok(vk_pipe_get(&pipe, &p));
    }
}

static void test_registry(void **state)
{
    const uint32_t spec[3] = { 64, 1, 1 };
    const struct vk_pipe *pipe;

    (void)state;
    assert_true(kern_is_usable(KERN_PROBE, -1));
    assert_false(kern_is_usable(KERN_PROBE, DT_FLOAT32));
    assert_fails(ERR_UNSUPPORTED, kern_pipe(&pipe, KERN_PROBE, DT_FLOAT32, spec, 3));
}

/* ---- on disk; each case in a process of its own ---- */

static char folder[64];

static char *file_in_folder(void)
{
    static char path[512];
    DIR *d = opendir(folder);
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    assert_true(n <= 1); /* no temporary files left behind */
    return n ? path : NULL;
}

static int warnings;

static void count_warnings(enum log_level level, const char *line, void *data)
{
    (void)data;
    if (level == LOG_WARN && strstr(line, "pipeline cache"))
        warnings++;
}

static void build_one(void)
{
    const struct vk_pipe *pipe;

    log_set_sink(count_warnings, NULL);
    assert_ok(be_vulkan.open());
    assert_ok(get(&pipe, 1, 32));
    vk_cache_save();
}

static void writes_file(void)
{
    build_one();
    assert_int_equal(warnings, 0);
    assert_non_null(file_in_folder());
}

static void complains_once(void)
{
    build_one();
    assert_int_equal(warnings, 1);
}

static void opens_only(void)
{
    assert_ok(be_vulkan.open());
    vk_cache_save();
    assert_null(file_in_folder());
}

static bool run(void (*fn)(void))
{
    return test_in_child(fn, (const char *[]){ "MLX_VK_CACHE_DIR", folder, NULL });
}

static void damage(const char *how)
{
    char *path = file_in_folder();

    assert_non_null(path);
    if (*how == 'p') { /* opening it for reading would wait for a writer */
        assert_int_equal(unlink(path), 0);
        assert_true(data_fifo(path));
        return;
    }
    FILE *f = fopen(path, *how == 'e' ? "wb" : "r+b");
    assert_non_null(f);
    if (*how == 'f') { /* a byte of the driver's data */
        fseek(f, 30, SEEK_SET);
        fputc('X', f);
    }
    if (*how == 'g')
        fputs("garbage!", f);
    fclose(f);
}

static int new_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", "/tmp/vk_pipeline_XXXXXX"); /* for mkdtemp */
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    char *path = file_in_folder();

    (void)state;
    if (path)
        unlink(path);
    return rmdir(folder);
}

static void test_file_is_written_and_read(void **state)
{
    (void)state;
    assert_true(run(opens_only)); /* nothing built, nothing written */
    assert_true(run(writes_file));
    assert_true(run(writes_file));
}

static void test_damaged_files(void **state)
{
    static const char *const ways[] = { "flip", "garbage", "empty", "pipe" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        assert_true(run(writes_file));
        damage(ways[i]);
        assert_true(run(complains_once));
        assert_true(run(writes_file)); /* and it was written anew */
    }
}

static void test_unwritable_folder(void **state)
{
    (void)state;
    assert_true(test_in_child(complains_once,
                              (const char *[]){ "MLX_VK_CACHE_DIR", "/dev/null/nowhere", NULL }));
}

static void test_switched_off(void **state)
{
    (void)state;
    assert_true(
        test_in_child(build_one, (const char *[]){ "MLX_VK_CACHE_DIR", folder,
                                                   "MLX_VK_ENABLE_PIPELINE_CACHE", "0", NULL }));
    assert_null(file_in_folder());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file_is_written_and_read, new_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_damaged_files, new_folder, drop_folder),
        cmocka_unit_test(test_unwritable_folder),
        cmocka_unit_test_setup_teardown(test_switched_off, new_folder, drop_folder),
        /* The device is open from here on. */
        cmocka_unit_test(test_key_and_specialization),
        cmocka_unit_test(test_built_once),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_failure_can_be_retried),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_registry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
