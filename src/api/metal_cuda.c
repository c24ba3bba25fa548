/* What belongs to Metal and CUDA: kernels of callers in their languages, and whether they are
 * there. Nothing of it runs here, so that only what decides about an error is kept: how many inputs
 * and outputs there are. */
#include "api/handle.h"

struct config_box {
    size_t outputs;
};

struct kernel_box {
    size_t inputs, outputs;
};

static enum err check_size(const char *name, size_t expected, size_t got)
{
    if (got == expected)
        return ERR_OK;
    return err_set(ERR_ARG, "[metal_kernel] Expected `%s` to have size %zu but got size %zu.", name,
                   expected, got);
}

/* ---- what works and fails in the same way for both ---- */

static void *config_new(const char *fn)
{
    struct call c = { .fn = fn };
    void *ctx = NULL;

    c.err = box_make(&ctx, sizeof(struct config_box));
    CALL_END(&c);
    return ctx;
}

static int config_add_output(const char *fn, void *ctx, const int *shape, size_t size,
                             mlx_dtype dtype)
{
    struct call c = { .fn = fn };
    struct config_box *config = call_box(&c, ctx, "kernel configuration", "cls");

    call_ints(&c, shape, size, "shape");
    call_dtype(&c, dtype);
    if (call_ok(&c))
        config->outputs++;
    return CALL_END(&c);
}

static int config_check(const char *fn, void *ctx)
{
    struct call c = { .fn = fn };

    call_box(&c, ctx, "kernel configuration", "cls");
    return CALL_END(&c);
}

static int config_check_template(const char *fn, void *ctx, const char *name, mlx_dtype dtype)
{
    struct call c = { .fn = fn };

    call_box(&c, ctx, "kernel configuration", "cls");
    call_ptr(&c, name, "name");
    call_dtype(&c, dtype);
    return CALL_END(&c);
}

#define CONFIG_FUNCTIONS(backend)                                                                  \
    mlx_fast_##backend##_kernel_config mlx_fast_##backend##_kernel_config_new(void)                \
    {                                                                                              \
        return (mlx_fast_##backend##_kernel_config){ config_new(__func__) };                       \
    }                                                                                              \
                                                                                                   \
    void mlx_fast_##backend##_kernel_config_free(mlx_fast_##backend##_kernel_config cls)           \
    {                                                                                              \
        mem_free(cls.ctx);                                                                         \
    }                                                                                              \
                                                                                                   \
    int mlx_fast_##backend##_kernel_config_add_output_arg(                                         \
        mlx_fast_##backend##_kernel_config cls, const int *shape, size_t size, mlx_dtype dtype)    \
    {                                                                                              \
        return config_add_output(__func__, cls.ctx, shape, size, dtype);                           \
    }                                                                                              \
                                                                                                   \
    int mlx_fast_##backend##_kernel_config_set_grid(mlx_fast_##backend##_kernel_config cls,        \
                                                    int grid1, int grid2, int grid3)               \
    {                                                                                              \
        return (void)grid1, (void)grid2, (void)grid3, config_check(__func__, cls.ctx);             \
    }                                                                                              \
                                                                                                   \
    int mlx_fast_##backend##_kernel_config_set_thread_group(                                       \
        mlx_fast_##backend##_kernel_config cls, int thread1, int thread2, int thread3)             \
    {                                                                                              \
        return (void)thread1, (void)thread2, (void)thread3, config_check(__func__, cls.ctx);       \
    }                                                                                              \
                                                                                                   \
    int mlx_fast_##backend##_kernel_config_set_init_value(mlx_fast_##backend##_kernel_config cls,  \
                                                          float value)                             \
    {                                                                                              \
        return (void)value, config_check(__func__, cls.ctx);                                       \
    }                                                                                              \
                                                                                                   \
    int mlx_fast_##backend##_kernel_config_set_verbose(mlx_fast_##backend##_kernel_config cls,     \
                                                       bool verbose)                               \
    {                                                                                              \
        return (void)verbose, config_check(__func__, cls.ctx);                                     \
    }                                                                                              \
                                                                                                   \
    int mlx_fast_##backend##_kernel_config_add_template_arg_dtype(                                 \
        mlx_fast_##backend##_kernel_config cls, const char *name, mlx_dtype dtype)                 \
    {                                                                                              \
        return config_check_template(__func__, cls.ctx, name, dtype);                              \
    }                                                                                              \
                                                                                                   \
    int mlx_fast_##backend##_kernel_config_add_template_arg_int(                                   \
        mlx_fast_##backend##_kernel_config cls, const char *name, int value)                       \
    {                                                                                              \
        return (void)value, config_check_template(__func__, cls.ctx, name, MLX_INT32);             \
    }                                                                                              \
                                                                                                   \
    int mlx_fast_##backend##_kernel_config_add_template_arg_bool(                                  \
        mlx_fast_##backend##_kernel_config cls, const char *name, bool value)                      \
    {                                                                                              \
        return (void)value, config_check_template(__func__, cls.ctx, name, MLX_BOOL);              \
    }                                                                                              \
                                                                                                   \
    void mlx_fast_##backend##_kernel_free(mlx_fast_##backend##_kernel cls)                         \
    {                                                                                              \
        mem_free(cls.ctx);                                                                         \
    }
CONFIG_FUNCTIONS(metal)
CONFIG_FUNCTIONS(cuda)

/* ---- kernels ---- */

/* The arguments of a new kernel, looked at. */
static struct call kernel_call(const char *fn, const char *const texts[3], struct kernel_box *k,
                               mlx_vector_string input_names, mlx_vector_string output_names)
{
    struct call c = { .fn = fn };

    call_ptr(&c, texts[0], "name");
    call_ptr(&c, texts[1], "source");
    call_ptr(&c, texts[2], "header");
    const struct list *in = call_box(&c, input_names.ctx, "vector", "input_names");
    const struct list *out = call_box(&c, output_names.ctx, "vector", "output_names");
    if (call_ok(&c))
        *k = (struct kernel_box){ in->n, out->n };
    return c;
}

mlx_fast_metal_kernel mlx_fast_metal_kernel_new(const char *name,
                                                const mlx_vector_string input_names,
                                                const mlx_vector_string output_names,
                                                const char *source, const char *header,
                                                bool ensure_row_contiguous, bool atomic_outputs)
{
    const char *const texts[] = { name, source, header };
    struct kernel_box k;
    struct call c = kernel_call(__func__, texts, &k, input_names, output_names);
    mlx_fast_metal_kernel res = { NULL };

    (void)ensure_row_contiguous, (void)atomic_outputs;
    if (call_ok(&c) && !k.outputs)
        c.err = err_set(ERR_ARG, "[metal_kernel] Must specify at least one output.");
    if (call_ok(&c))
        c.err = box_make(&res.ctx, sizeof(struct kernel_box));
    if (call_ok(&c))
        *(struct kernel_box *)res.ctx = k;
    CALL_END(&c);
    return res;
}

int mlx_fast_metal_kernel_apply(mlx_vector_array *outputs, mlx_fast_metal_kernel cls,
                                const mlx_vector_array inputs,
                                const mlx_fast_metal_kernel_config config, const mlx_stream stream)
{
    struct call c = CALL_OP(outputs, stream);
    const struct kernel_box *k = call_box(&c, cls.ctx, "kernel", "cls");
    const struct list *in = call_vec(&c, inputs, "inputs");
    const struct config_box *box = call_box(&c, config.ctx, "kernel configuration", "config");

    if (call_ok(&c))
        c.err = check_size("inputs", k->inputs, in->n);
    if (call_ok(&c))
        c.err = check_size("output_shapes", k->outputs, box->outputs);
    if (call_ok(&c))
        c.err = err_set(ERR_RUNTIME, "[metal_kernel] No Metal back-end.");
    return CALL_END(&c);
}

static enum err no_cuda(void)
{
    return err_set(ERR_RUNTIME, "[cuda_kernel] No CUDA back-end.");
}

mlx_fast_cuda_kernel mlx_fast_cuda_kernel_new(const char *name, const mlx_vector_string input_names,
                                              const mlx_vector_string output_names,
                                              const char *source, const char *header,
                                              bool ensure_row_contiguous, int shared_memory)
{
    const char *const texts[] = { name, source, header };
    struct kernel_box k;
    struct call c = kernel_call(__func__, texts, &k, input_names, output_names);

    (void)ensure_row_contiguous, (void)shared_memory;
    if (call_ok(&c))
        c.err = no_cuda();
    CALL_END(&c);
    return (mlx_fast_cuda_kernel){ NULL };
}

int mlx_fast_cuda_kernel_apply(mlx_vector_array *outputs, mlx_fast_cuda_kernel cls,
                               const mlx_vector_array inputs,
                               const mlx_fast_cuda_kernel_config config, const mlx_stream stream)
{
    struct call c = CALL_OP(outputs, stream);

    call_box(&c, cls.ctx, "kernel", "cls");
    call_vec(&c, inputs, "inputs");
    call_box(&c, config.ctx, "kernel configuration", "config");
    if (call_ok(&c))
        c.err = no_cuda();
    return CALL_END(&c);
}

/* ---- whether they are there ---- */

int mlx_metal_is_available(bool *res)
{
    struct call c = CALL(res);

    if (call_ok(&c))
        *res = false;
    return CALL_END(&c);
}

int mlx_cuda_is_available(bool *res)
{
    struct call c = CALL(res);

    if (call_ok(&c))
        *res = false;
    return CALL_END(&c);
}

int mlx_metal_start_capture(const char *path)
{
    struct call c = CALL_BARE;

    call_ptr(&c, path, "path");
    return CALL_END(&c);
}

int mlx_metal_stop_capture(void)
{
    return 0;
}
