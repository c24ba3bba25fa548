/* Files of exported functions: those of MLX, and what is made of them again. */
#include "io/mlxfn.h"
#include "support/data.h"
#include "support/mlxfn_files.h"
#include "transforms/export.h"

#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check_file(const char *name, const char *path)
{
    struct imported *f = NULL;
    struct mlxfn_calls calls;
    struct mlxfn_call c;

    assert_ok(imported_new(&f, path));
    mlxfn_calls_init(&calls, name);
    assert_true(calls.n > 0);
    for (int i = 0; i < calls.n; i++) {
        struct outs out = { 0 };
        mlxfn_call_init(&c, &calls, i);
        assert_ok(imported_call(f, (struct arrs){ c.in, c.n_in }, &c.named, &out));
        mlxfn_compare(&c, name, out.v, out.n);
        outs_fini(&out);
        mlxfn_call_fini(&c);
    }
    mlxfn_calls_fini(&calls);
    imported_destroy(&f);
}

static void test_files_of_mlx(void **state)
{
    (void)state;
    for (size_t i = 0; i < mlxfn_count; i++)
        check_file(mlxfn_names[i], mlxfn_path(mlxfn_names[i]));
}

/* ---- written again ---- */

struct again {
    struct fun_named fun;
    struct imported *f;
};

static void again_destroy(void *self)
{
    (void)self;
}

static enum err call_again(struct fun_named *fun, struct arrs in, const struct io_arrays *named,
                           struct outs *out)
{
    return imported_call(((struct again *)fun)->f, in, named, out);
}

/* MLXFN_KEEP names a folder where what was written stays, for gen/mlxfn_files.py check. */
static void again_path(char *path, size_t size, const char *name)
{
    const char *folder = getenv("MLXFN_KEEP");

    snprintf(path, size, "%s/%s.mlxfn", folder ? folder : ".", name);
}

static void write_again(const char *name, const char *path)
{
    struct again a = { .fun = { .counted = { 1, again_destroy }, .call = call_again } };
    struct exporter_params p = { .path = path, .named = &a.fun };
    struct exporter *x = NULL;
    struct mlxfn_calls calls;
    struct mlxfn_call c;

    assert_ok(imported_new(&a.f, mlxfn_path(name)));
    assert_ok(exporter_new(&x, &p));
    mlxfn_calls_init(&calls, name);
    for (int i = 0; i < calls.n; i++) {
        mlxfn_call_init(&c, &calls, i);
        assert_ok(exporter_call(x, (struct arrs){ c.in, c.n_in }, &c.named));
        assert_fails(ERR_RUNTIME, exporter_call(x, (struct arrs){ c.in, c.n_in }, &c.named));
        mlxfn_call_fini(&c);
    }
    mlxfn_calls_fini(&calls);
    exporter_destroy(&x);
    imported_destroy(&a.f);
}

static void test_files_written_again(void **state)
{
    char path[512];

    (void)state;
    for (size_t i = 0; i < mlxfn_count; i++) {
        again_path(path, sizeof path, mlxfn_names[i]);
        write_again(mlxfn_names[i], path);
        check_file(mlxfn_names[i], path);
        if (!getenv("MLXFN_KEEP"))
            unlink(path);
    }
}

/* ---- written by hand ---- */

#include "io/mlxfn_wrong.inc"

static struct mlxfn *read_made(enum err *err, const char *kind, const char *name)
{
    struct source *src = NULL;
    struct mlxfn *f = NULL;
    char file[128];

    snprintf(file, sizeof file, "io/%s_%s.mlxfn", kind, name);
    struct data_path path = data_made(file);
    assert_ok(source_open(&src, path.v));
    *err = mlxfn_read(&f, src);
    source_unref(&src);
    return f;
}

static void test_wrong_files(void **state)
{
    enum err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct mlxfn *f = read_made(&err, "wrong", wrong[i]);
        if (f || err == ERR_OK || err == ERR_NO_MEMORY)
            fail_msg("%s was read, or ended with error %d", wrong[i], (int)err);
        assert_true(err_text()[0] != '\0');
    }
    read_made(&err, "wrong", "unknown");
    assert_int_equal(err, ERR_ARG);
    assert_string_equal(err_text(), "[import_function] Unable to deserialize primitive Frobnicate");
}

static struct arr *values_of(const struct shp *shape, double step)
{
    double complex v[64];

    for (int i = 0; i < 64; i++)
        v[i] = 0.25 + step * i;
    return arr_of(v, shape, DT_FLOAT32);
}

static void assert_same(struct arr *found, struct arr *want)
{
    double complex *a = arr_values(found), *b = arr_values(want);

    assert_true(found->dtype == want->dtype && arr_same_shape(found, want));
    for (size_t i = 0; i < want->size; i++)
        assert_true(a[i] == b[i]);
    mem_free(a);
    mem_free(b);
}

static void test_fast_ops(void **state)
{
    struct strm *s = test_stream();
    struct arr *x = values_of(SHAPE(1, 2, 3, 4), 0.1), *w = values_of(SHAPE(4), 0.3),
               *b = values_of(SHAPE(4), -0.2), *found[6] = { NULL }, *want[6] = { NULL };
    const float base = 10000;
    enum err err;
    struct mlxfn *f = read_made(&err, "right", "fast");

    (void)state;
    assert_ok(err);
    assert_ok(
        mlxfn_apply(found, f, &f->trace.v[0], (struct arrs){ (struct arr *[]){ x, w, b }, 3 }));
    assert_ok(ops_rms_norm(&want[0], x, w, 1e-5f, s));
    assert_ok(ops_rms_norm(&want[1], x, NULL, 1e-5f, s));
    assert_ok(ops_layer_norm(&want[2], x, &(struct ops_layer_norm){ w, b, 1e-5f }, s));
    assert_ok(ops_layer_norm(&want[3], x, &(struct ops_layer_norm){ NULL, NULL, 1e-5f }, s));
    assert_ok(ops_rope(&want[4], x,
                       &(struct ops_rope){ .dims = 4, .base = &base, .scale = 1, .offset = 5 }, s));
    assert_ok(ops_sdpa(
        &want[5],
        &(struct ops_sdpa){
            .q = want[0], .k = want[1], .v = want[2], .scale = 0.5f, .mask_mode = "causal" },
        s));
    for (int i = 0; i < 6; i++) {
        assert_same(found[i], want[i]);
        arr_unref(&found[i]);
        arr_unref(&want[i]);
    }
    mlxfn_destroy(&f);
    arr_unref(&x);
    arr_unref(&w);
    arr_unref(&b);
}

static void test_shared_constants(void **state)
{
    struct arr *x = values_of(SHAPE(3), 1), *y = values_of(SHAPE(1, 3), 1), *out[2] = { NULL };
    enum err err;
    struct mlxfn *f = read_made(&err, "right", "shared");

    (void)state;
    assert_ok(err);
    assert_int_equal(f->trace.n, 3);
    assert_ok(mlxfn_apply(out, f, &f->trace.v[0], (struct arrs){ &x, 1 }));
    double complex *v = arr_values(out[0]);
    assert_true(v[0] == 1.25 && v[2] == 5.25);
    mem_free(v);
    arr_unref(&out[0]);
    assert_ok(mlxfn_apply(out, f, &f->trace.v[1], (struct arrs){ &y, 1 }));
    assert_ptr_equal(out[1], y);
    v = arr_values(out[0]);
    assert_true(v[0] == 0.25 && v[1] == 2.5 && v[2] == 6.75);
    mem_free(v);
    arr_unref(&out[0]);
    arr_unref(&out[1]);
    mlxfn_destroy(&f);
    arr_unref(&x);
    arr_unref(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_mlx),     cmocka_unit_test(test_files_written_again),
        cmocka_unit_test(test_wrong_files),      cmocka_unit_test(test_fast_ops),
        cmocka_unit_test(test_shared_constants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
