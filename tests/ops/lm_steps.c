/* Decode steps of mlx-lm's models, as MLX exported them (tests/gen/lm_steps.py): graphs that others
 * made, whose values are MLX's, and whose dispatches show what plans see of them. MLX on a CPU has
 * no fast ops: norms, RoPE and attention are there in single ops. */
#include "base/stat.h"
#include "eval/eval.h"
#include "io/mlxfn_node.h"
#include "support/gpu.h"
#include "support/mlxfn_files.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name;
    uint64_t dispatches; /* of one step, at most */
} steps[] = {
    { "llama", 118 },       { "qwen2", 124 }, { "qwen3", 138 },      { "qwen3_moe", 167 },
    { "gemma3_text", 174 }, { "phi3", 120 },  { "starcoder2", 139 },
};

/* The file's function, whose nodes run on a device of that type. */
static struct mlxfn *read_step(const char *name, enum dev_type type)
{
    struct source *src = NULL;
    struct mlxfn *f = NULL;

    assert_ok(source_open(&src, mlxfn_path(name)));
    assert_ok(mlxfn_read(&f, src));
    source_unref(&src);
    for (size_t i = 0; i < f->trace.v[0].node.n; i++)
        f->trace.v[0].node.v[i].dev = (struct dev){ type, 0 };
    return f;
}

/* The models are of bfloat16, whose rounding decides about a few percent of a result. Ours may be
 * up to 1.5 times as far as MLX's from what the step gives in float32. */
static void compare(struct arr *found, struct arr *want, struct arr *exact, const char *name)
{
    double complex *a = arr_values(found), *b = arr_values(want), *c = arr_values(exact);
    double ours = 0, theirs = 0;

    if (found->dtype != want->dtype || !arr_same_shape(found, want))
        fail_msg("%s: a result has another dtype or shape", name);
    for (size_t i = 0; i < want->size; i++) {
        assert_true(isfinite(creal(a[i])));
        ours = fmax(ours, cabs(a[i] - c[i]));
        theirs = fmax(theirs, cabs(b[i] - c[i]));
    }
    if (ours > 1.5 * theirs)
        fail_msg("%s: wrong by %g, MLX by %g", name, ours, theirs);
    mem_free(a);
    mem_free(b);
    mem_free(c);
}

static uint64_t run_step(const struct mlxfn *f, struct mlxfn_call *c, struct mlxfn_call *exact,
                         const char *name)
{
    struct arr *out[MLXFN_ARRAYS] = { NULL };
    uint64_t before = stat_get(STAT_DISPATCHES);

    assert_ok(mlxfn_apply(out, f, &f->trace.v[0], (struct arrs){ c->in, c->n_in }));
    assert_ok(eval_arrays(out, c->n_out, false));
    uint64_t dispatches = stat_get(STAT_DISPATCHES) - before;
    for (size_t i = 0; i < c->n_out; i++) {
        compare(out[i], c->out[i], exact->out[i], name);
        arr_unref(&out[i]);
    }
    return dispatches;
}

static uint64_t check_step(const char *model, enum dev_type type)
{
    struct mlxfn_calls calls;
    struct mlxfn_call c, exact;
    uint64_t dispatches = 0;
    char name[64];

    snprintf(name, sizeof name, "steps/%s", model);
    struct mlxfn *f = read_step(name, type);
    mlxfn_calls_init(&calls, name);
    mlxfn_call_init(&c, &calls, 0);
    mlxfn_call_init(&exact, &calls, 1);
    for (int i = 0; i < 3; i++) /* found again: planned, then recorded, then as recorded */
        dispatches = run_step(f, &c, &exact, name);
    mlxfn_call_fini(&c);
    mlxfn_call_fini(&exact);
    mlxfn_calls_fini(&calls);
    mlxfn_destroy(&f);
    return dispatches;
}

static void test_on_the_cpu(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        assert_int_equal(check_step(steps[i].name, DEV_CPU), 0);
}

static void test_on_the_gpu(void **state)
{
    (void)state;
    if (!gpu_is_tested())
        return;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        uint64_t found = check_step(steps[i].name, DEV_GPU);
        if (found == 0 || found > steps[i].dispatches)
            fail_msg("%s: %llu dispatches", steps[i].name, (unsigned long long)found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_on_the_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
