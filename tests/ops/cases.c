/* Runs the table of op cases: every row through the public interface on the CPU and on the GPU,
 * against the stored values and against each other.
 *
 * usage: ops_cases [family ... | coverage | table=FILE]; without arguments everything. FILE holds
 * other rows, such as those of tests/gen/random_cases.py. */
#include "eval/wait.h"
#include "support/case_table.h"
#include "support/gpu.h"
#include "support/infer.h"
#include "support/testing.h"

#include "api/handle.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "eval/tape.h"
#include "mlx/c/ext.h"
#include "mlx/c/mlx.h"

#include <stdio.h>
#include <unistd.h>

/* The table's file, as it lies in the build folder. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        "case_table_begin:\n"
        ".incbin \"" CASE_TABLE "\"\n"
        "case_table_end:\n"
        ".previous\n");
/* Hidden: else the places are looked up in a table, in which arm64's linker makes them one. */
extern const unsigned char case_table_begin[] __attribute__((visibility("hidden")));
extern const unsigned char case_table_end[] __attribute__((visibility("hidden")));

/* ---- calls ---- */

struct request {
    mlx_array in[CASE_INPUTS];
    mlx_vector_array list;
    const struct case_param *p;
    mlx_stream s;
    mlx_array out[CASE_OUTPUTS];
    int n_out;
};

static int spread(struct request *q, int status, mlx_vector_array results)
{
    q->n_out = status ? 0 : (int)MIN(mlx_vector_array_size(results), (size_t)CASE_OUTPUTS);
    for (int i = 0; i < q->n_out && !status; i++)
        status = mlx_vector_array_get(&q->out[i], results, (size_t)i);
    mlx_vector_array_free(results);
    return status;
}

/* The list becomes one of fewer inputs. */
static mlx_vector_array rest(struct request *q, int first)
{
    mlx_vector_array_free(q->list);
    q->list = mlx_vector_array_new();
    for (int i = first; i < CASE_INPUTS && q->in[i].ctx; i++)
        mlx_vector_array_append_value(q->list, q->in[i]);
    return q->list;
}

#define IN(i) q->in[i]
#define REST(i) rest(q, i)
#define ALL_IN q->list
#define INT(i) q->p[i].v[0]
#define AT(i, k) q->p[i].v[k]
#define B(i) (q->p[i].v[0] != 0)
#define D(i) q->p[i].d
#define T(i) ((mlx_dtype)q->p[i].v[0])
#define S(i) q->p[i].text
#define LIST(i) q->p[i].v, (size_t)q->p[i].n
#define OPT_LIST(i) B(i) ? q->p[(i) + 1].v : NULL, B(i) ? (size_t)q->p[(i) + 1].n : 0
#define LIST64(i) q->p[i].wide, (size_t)q->p[i].n
#define OPT_INT(i) ((mlx_optional_int){ .value = INT(i), .has_value = INT(i) != 0 })
#define OPT_T(i) ((mlx_optional_dtype){ .value = T(i), .has_value = INT(i) >= 0 })
#define OPT(i) ((mlx_optional_float){ .value = (float)D((i) + 1), .has_value = B(i) })

#define CASE(fn, ...)                                                                              \
    static int call_##fn(struct request *q)                                                        \
    {                                                                                              \
        q->n_out = 1;                                                                              \
        return mlx_##fn(&q->out[0], __VA_ARGS__, q->s);                                            \
    }
#define CASE_LIST(fn, ...)                                                                         \
    static int call_##fn(struct request *q)                                                        \
    {                                                                                              \
        mlx_vector_array results = mlx_vector_array_new();                                         \
        int status = mlx_##fn(&results, __VA_ARGS__, q->s);                                        \
        return spread(q, status, results);                                                         \
    }
#define CASE_PAIR(fn, ...)                                                                         \
    static int call_##fn(struct request *q)                                                        \
    {                                                                                              \
        q->n_out = 2;                                                                              \
        return mlx_##fn(&q->out[0], &q->out[1], __VA_ARGS__, q->s);                                \
    }
#include "ops/case_calls.def"
#undef CASE
#undef CASE_LIST
#undef CASE_PAIR

static int call_random_key(struct request *q)
{
    q->n_out = 1;
    return mlx_random_key(&q->out[0], (uint64_t)q->p[0].wide[0]);
}

/* Two draws from the thread's own sequence after a seed. */
static int call_random_seed(struct request *q)
{
    int status = mlx_random_seed((uint64_t)q->p[0].wide[0]);

    q->n_out = 2;
    for (int i = 0; i < 2 && !status; i++)
        status = mlx_random_bits(&q->out[i], (int[]){ 3 }, 1, 4, mlx_array_empty, q->s);
    return status;
}

static int call_depends(struct request *q)
{
    mlx_vector_array results = mlx_vector_array_new();

    return spread(q, mlx_depends(&results, q->list, q->list), results);
}

static int negate(mlx_vector_array *res, const mlx_vector_array in, void *stream)
{
    mlx_array x = mlx_array_new();

    int status = mlx_vector_array_get(&x, in, 0) || mlx_negative(&x, x, *(mlx_stream *)stream) ||
                 mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    return status;
}

static int no_gradient(mlx_vector_array *res, const mlx_vector_array primals,
                       const mlx_vector_array cotangents, const mlx_vector_array outputs)
{
    (void)res, (void)primals, (void)cotangents, (void)outputs;
    return 1;
}

/* A function with a gradient of its own, which hands what it computes through a node. */
static int call_custom_vjp(struct request *q)
{
    mlx_closure f = mlx_closure_new_func_payload(negate, &q->s, NULL), g = mlx_closure_new();
    mlx_closure_custom rule = mlx_closure_custom_new_func(no_gradient);
    mlx_vector_array results = mlx_vector_array_new();

    int status = mlx_custom_vjp(&g, f, rule) || mlx_closure_apply(&results, g, q->list);
    mlx_closure_custom_free(rule);
    mlx_closure_free(f);
    mlx_closure_free(g);
    return spread(q, status, results);
}

/* Through a file, which is gone before the array is evaluated. */
static int call_load(struct request *q)
{
    char path[] = "/tmp/load_case_XXXXXX.npy"; /* for mkstemps */
    int fd = mkstemps(path, 4);

    q->n_out = 1;
    if (fd < 0)
        return 1;
    close(fd);
    int status = mlx_save(path, q->in[0]);
    if (!status)
        status = mlx_load(&q->out[0], path, q->s);
    unlink(path);
    return status;
}

static const struct {
    const char *name;
    int (*call)(struct request *q);
} calls[] = {
#define CASE(fn, ...) { #fn, call_##fn },
#define CASE_LIST(fn, ...) { #fn, call_##fn },
#define CASE_PAIR(fn, ...) { #fn, call_##fn },
#include "ops/case_calls.def"
#undef CASE
#undef CASE_LIST
#undef CASE_PAIR
    { "depends", call_depends },
    { "custom_vjp", call_custom_vjp },
    { "random_key", call_random_key },
    { "random_seed", call_random_seed },
    { "load", call_load },
};

/* ---- one row on one device ---- */

static char last_error[512];

static void keep_error(const char *msg, void *data)
{
    (void)data;
    snprintf(last_error, sizeof last_error, "%s", msg);
}

static int apply_view(mlx_array *a, const struct case_view *v, mlx_stream s)
{
    int start[CASE_INTS], stop[CASE_INTS], step[CASE_INTS];
    size_t n = (size_t)v->n;

    switch (v->kind) {
    case CASE_TRANSPOSE:
        return mlx_transpose_axes(a, *a, v->v, n, s);
    case CASE_BROADCAST:
        return mlx_broadcast_to(a, *a, v->v, n, s);
    case CASE_RESHAPE:
        return mlx_reshape(a, *a, v->v, n, s);
    case CASE_SLICE:
        break;
    }
    for (size_t i = 0; i < n / 3; i++) {
        start[i] = v->v[3 * i];
        stop[i] = v->v[3 * i + 1];
        step[i] = v->v[3 * i + 2];
    }
    return mlx_slice(a, *a, start, n / 3, stop, n / 3, step, n / 3, s);
}

static int make_input(mlx_array *out, const struct case_input *in, mlx_stream s)
{
    int status = 0;

    *out = mlx_array_new();
    if (!in->present)
        return 0;
    *out = mlx_array_new_data(in->base.bytes, in->base.shape.d, in->base.shape.ndim,
                              (mlx_dtype)in->base.dtype);
    for (int i = 0; i < in->n_views && !status; i++)
        status = apply_view(out, &in->view[i], s);
    return status;
}

static int build(struct request *q, const struct case_row *row, mlx_stream s)
{
    int status = 0;

    *q = (struct request){ .p = row->param, .s = s, .list = mlx_vector_array_new() };
    for (int i = 0; i < CASE_OUTPUTS; i++)
        q->out[i] = mlx_array_new();
    for (int i = 0; i < row->n_in && !status; i++) {
        status = make_input(&q->in[i], &row->in[i], s);
        if (!status && row->in[i].present)
            status = mlx_vector_array_append_value(q->list, q->in[i]);
    }
    if (status)
        return status;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (strcmp(calls[i].name, row->fn) == 0)
            return calls[i].call(q);
    snprintf(last_error, sizeof last_error, "no such function in case_calls.def");
    return 1;
}

static void release(struct request *q)
{
    for (int i = 0; i < CASE_INPUTS; i++)
        mlx_array_free(q->in[i]);
    for (int i = 0; i < CASE_OUTPUTS; i++)
        mlx_array_free(q->out[i]);
    mlx_vector_array_free(q->list);
}

static struct arr *arr_of(mlx_array a)
{
    return ((struct arr_box *)a.ctx)->arr;
}

static struct case_result result_of(struct arr *a, const void *first)
{
    struct case_result r = { .dtype = (enum dtype)a->dtype, .strides = a->strides, .first = first };

    arr_shape(&r.shape, a);
    return r;
}

/* Every node is what its rule infers, and the rule survives any other parameters and inputs. */
static void check_rule(const struct node *n)
{
    static struct rng r = { 1 };
    const char *wrong = infer_again(n);

    for (int i = 0; i < 4 && !*wrong; i++)
        wrong = infer_changed(n, &r);
    if (*wrong)
        fail_msg("%s", wrong);
}

/* Walks what is still to be computed for a; marks the ops and says whether one of them dispatches,
 * which views and Load do not. */
static bool needs_work(struct arr *a, bool *ops)
{
    struct tape tape = { 0 };
    bool work = false;

    assert_ok(tape_build(&tape, &a, 1, false));
    for (size_t i = 0; i < tape.n; i++) {
        const struct node *n = tape.node[i];
        check_rule(n);
        ops[n->op] = true;
        work |= n->out[0].size && !(op_table[n->op].flags & OPF_VIEW) && n->op != OP_LOAD;
    }
    tape_fini(&tape);
    return work;
}

/* ---- comparing ---- */

enum { CPU, GPU, DEVICES };
static const char *const device_names[DEVICES] = { "cpu", "gpu" };
static mlx_stream streams[DEVICES];
static bool has_gpu;

/* Text of what is wrong, "" if nothing. */
static const char *check_stored(const struct case_row *row, const struct request *q, int device)
{
    struct case_rule rule = { row->tolerance, row->scale, device == GPU, 1 };

    if (q->n_out != row->n_out)
        return "another number of results";
    for (int i = 0; i < q->n_out; i++) {
        int64_t strides[SHP_MAX];
        const void *first = NULL;
        if (arr_host(&first, arr_of(q->out[i])) != ERR_OK)
            return err_text();
        struct case_result got = result_of(arr_of(q->out[i]), first);
        struct case_result want = { row->out[i].dtype, row->out[i].shape, strides,
                                    row->out[i].bytes };
        shp_row_strides(strides, &want.shape);
        const char *text = case_compare(&got, &want, &rule);
        if (*text)
            return text;
    }
    return "";
}

static const char *check_devices(const struct case_row *row, const struct request *cpu,
                                 const struct request *gpu)
{
    struct case_rule rule = { row->tolerance, row->scale, true, 2 };

    for (int i = 0; i < cpu->n_out; i++) {
        const void *on_cpu = NULL, *on_gpu = NULL;
        if (arr_host(&on_cpu, arr_of(cpu->out[i])) || arr_host(&on_gpu, arr_of(gpu->out[i])))
            return err_text();
        struct case_result want = result_of(arr_of(cpu->out[i]), on_cpu);
        struct case_result got = result_of(arr_of(gpu->out[i]), on_gpu);
        const char *text = case_compare(&got, &want, &rule);
        if (*text)
            return text;
    }
    return "";
}

/* Builds, evaluates and checks a row on one device. */
static const char *run_on(struct request *q, const struct case_row *row, int device)
{
    bool ops[OP_COUNT] = { false }, work = false;

    last_error[0] = '\0';
    if (build(q, row, streams[device]))
        return last_error;
    for (int i = 0; i < q->n_out; i++)
        work |= needs_work(arr_of(q->out[i]), ops);
    uint64_t before = stat_get(STAT_DISPATCHES);
    for (int i = 0; i < q->n_out; i++)
        if (mlx_array_eval(q->out[i]))
            return last_error;
    if (device == GPU && work && stat_get(STAT_DISPATCHES) == before)
        return "nothing was dispatched to the GPU";
    return check_stored(row, q, device);
}

/* ---- all rows ---- */

struct counter {
    char fn[48];
    int rows, failed;
};

static struct {
    char **families;
    int n_families;
    const char *table; /* a file with other rows, or NULL */
    struct counter counter[256];
    size_t n_counter;
    int rows, failed;
} run;

#define SHOWN_PER_FUNCTION 4

static struct counter *counter_of(const char *fn)
{
    for (size_t i = 0; i < run.n_counter; i++)
        if (strcmp(run.counter[i].fn, fn) == 0)
            return &run.counter[i];
    assert_true(run.n_counter < ARRAY_LEN(run.counter));
    struct counter *t = &run.counter[run.n_counter++];
    snprintf(t->fn, sizeof t->fn, "%s", fn);
    return t;
}

static bool is_wanted(const char *family)
{
    for (int i = 0; i < run.n_families; i++)
        if (strcmp(run.families[i], family) == 0)
            return true;
    return run.n_families == 0;
}

static void count(const struct case_row *row, const char *where, const char *problem)
{
    struct counter *t = counter_of(row->fn);

    t->rows++;
    run.rows++;
    if (!*problem)
        return;
    run.failed++;
    if (t->failed++ < SHOWN_PER_FUNCTION)
        print_error("%s %s %s: %s\n", where, row->fn, row->note, problem);
}

static void run_row(const struct case_row *row)
{
    struct request cpu, gpu;
    const char *problem = run_on(&cpu, row, CPU);
    bool both = !*problem;

    count(row, device_names[CPU], problem);
    if (has_gpu && !row->cpu_only) {
        problem = run_on(&gpu, row, GPU);
        both &= !*problem;
        count(row, device_names[GPU], problem);
        if (both)
            count(row, "gpu against cpu", check_devices(row, &cpu, &gpu));
        release(&gpu);
    }
    release(&cpu);
}

static void print_counter(void)
{
    for (size_t i = 0; i < run.n_counter; i++)
        print_message("%s %d%s", run.counter[i].fn, run.counter[i].rows,
                      i + 1 == run.n_counter || i % 8 == 7 ? "\n" : ", ");
    print_message("%d checks, %d failed\n", run.rows, run.failed);
}

/* The bytes of a file; free with mem_free. */
static unsigned char *read_file(size_t *size, const char *path)
{
    FILE *f = fopen(path, "rb");
    unsigned char *bytes = NULL;
    long n = -1;

    if (f && fseek(f, 0, SEEK_END) == 0)
        n = ftell(f);
    if (n >= 0 && fseek(f, 0, SEEK_SET) == 0)
        bytes = mem_alloc((size_t)n);
    if (!bytes || fread(bytes, 1, (size_t)n, f) != (size_t)n)
        fail_msg("%s cannot be read", path);
    fclose(f);
    *size = (size_t)n;
    return bytes;
}

static void open_table(struct case_reader *r)
{
    const unsigned char *begin = case_table_begin;
    size_t size = (size_t)(case_table_end - case_table_begin);

    if (run.table)
        begin = read_file(&size, run.table);
    if (!case_open(r, begin, size))
        fail_msg("the table of cases cannot be read");
    if (run.table)
        mem_free((void *)begin);
}

static void test_rows(void **state)
{
    static struct case_row row;
    struct case_reader r;

    (void)state;
    open_table(&r);
    while (case_next(&r, &row))
        if (is_wanted(row.family))
            run_row(&row);
    assert_int_equal(r.left, 0);
    case_close(&r);
    print_counter();
    assert_true(run.rows > 0);
    assert_int_equal(run.failed, 0);
}

/* Ops that several processes take part in (tests/dist), gradients that are ops (ops_fast_vjp_vk),
 * sizes that are read in shapeless files (api_export): no public function makes one by itself. And
 * kernels of callers (ops_kernel_vk), who say what they compute. */
static bool has_other_tests(enum op_id op)
{
    if (op == OP_NUMBER_OF_ELEMENTS || op == OP_BROADCAST_AXES)
        return true;
    switch (op_table[op].family) {
    case OP_FAMILY_VULKAN_KERNEL:
    case OP_FAMILY_DIST:
    case OP_FAMILY_NORM_VJP:
    case OP_FAMILY_SDPA_VJP:
        return true;
    default:
        return false;
    }
}

/* Every other op of the table of ops is reached by some row. */
static void test_coverage(void **state)
{
    static struct case_row row;
    struct case_reader r;
    bool ops[OP_COUNT] = { false };
    int missing = 0;

    (void)state;
    open_table(&r);
    while (case_next(&r, &row)) {
        struct request q;
        if (!build(&q, &row, streams[CPU]))
            for (int i = 0; i < q.n_out; i++)
                (void)needs_work(arr_of(q.out[i]), ops);
        release(&q);
    }
    case_close(&r);
    for (int op = OP_NONE + 1; op < OP_COUNT; op++)
        if (!ops[op] && !has_other_tests((enum op_id)op)) {
            print_error("%s has no row\n", op_name((enum op_id)op));
            missing++;
        }
    assert_int_equal(missing, 0);
}

static int open_devices(void **state)
{
    mlx_device gpu = mlx_device_new_type(MLX_GPU, 0);

    (void)state;
    mlx_set_error_handler(keep_error, NULL, NULL);
    streams[CPU] = mlx_default_cpu_stream_new();
    bool is_tested = gpu_is_tested();
    int status = mlx_device_is_available(&has_gpu, gpu);
    if (has_gpu)
        streams[GPU] = mlx_default_gpu_stream_new();
    mlx_device_free(gpu);
    if (is_tested && !has_gpu) {
        print_error("no Vulkan device: %s\n", err_text());
        return 1;
    }
    return status;
}

static int close_devices(void **state)
{
    (void)state;
    mlx_stream_free(streams[CPU]);
    mlx_stream_free(streams[GPU]);
    return 0;
}

int main(int argc, char **argv)
{
    bool coverage_only = argc == 2 && strcmp(argv[1], "coverage") == 0;
    const struct CMUnitTest rows[] = { cmocka_unit_test(test_rows) };
    const struct CMUnitTest coverage[] = { cmocka_unit_test(test_coverage) };
    int failed = 0;

    run.families = argv + 1;
    run.n_families = argc - 1;
    if (argc == 2 && strncmp(argv[1], "table=", 6) == 0) {
        run.table = argv[1] + 6;
        run.n_families = 0;
    }
    if (!coverage_only)
        failed += cmocka_run_group_tests(rows, open_devices, close_devices);
    if (coverage_only || argc == 1)
        failed += cmocka_run_group_tests(coverage, open_devices, close_devices);
    return failed;
}
