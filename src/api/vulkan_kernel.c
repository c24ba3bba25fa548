/* Kernels of callers. */
#include <pthread.h>
#include <stdio.h>

#include "api/handle.h"
#include "base/file.h"
#include "ops/kernel_glsl.h"
#include "spirv/glsl.h"
#include "spirv/module.h"

#define MAX_FILE ((size_t)64 << 20)
#define PUSH_MAX 256 /* more than any kernel may have; what it has says who runs it */

/* ---- configurations ---- */

struct config_box {
    VEC(struct out_desc) out;
    VEC(struct ops_kernel_spec) spec;
    VEC(struct kernel_macro) macro;
    int64_t grid[3], local[3];
    bool in_groups, has_grid, has_init, verbose;
    double init;
    char push[PUSH_MAX];
    size_t push_size;
};

mlx_fast_vulkan_kernel_config mlx_fast_vulkan_kernel_config_new(void)
{
    mlx_fast_vulkan_kernel_config res = { NULL };
    struct call c = CALL_BARE;

    c.err = box_make(&res.ctx, sizeof(struct config_box));
    CALL_END(&c);
    return res;
}

void mlx_fast_vulkan_kernel_config_free(mlx_fast_vulkan_kernel_config cls)
{
    struct config_box *box = cls.ctx;

    if (!box)
        return;
    for (size_t i = 0; i < box->macro.n; i++)
        mem_free(box->macro.v[i].name);
    VEC_FINI(&box->macro);
    VEC_FINI(&box->spec);
    VEC_FINI(&box->out);
    mem_free(box);
}

static struct config_box *config_of(struct call *c, mlx_fast_vulkan_kernel_config cls)
{
    return call_box(c, cls.ctx, "kernel configuration", "cls");
}

int mlx_fast_vulkan_kernel_config_add_output_arg(mlx_fast_vulkan_kernel_config cls,
                                                 const int *shape, size_t size, mlx_dtype dtype)
{
    struct call c = CALL_BARE;
    struct config_box *box = config_of(&c, cls);
    struct ints dims = call_ints(&c, shape, size, "shape");
    struct out_desc out = { .dtype = call_dtype(&c, dtype) };

    if (call_ok(&c))
        c.err = shp_make(&out.shape, dims.v, dims.n, "vulkan_kernel");
    if (call_ok(&c))
        c.err = VEC_PUSH(&box->out, out);
    return CALL_END(&c);
}

static int set_grid(struct call c, mlx_fast_vulkan_kernel_config cls, const int v[3],
                    bool in_groups)
{
    struct config_box *box = config_of(&c, cls);

    for (int i = 0; i < 3 && call_ok(&c); i++)
        box->grid[i] = v[i];
    if (call_ok(&c)) {
        box->in_groups = in_groups;
        box->has_grid = true;
    }
    return CALL_END(&c);
}

int mlx_fast_vulkan_kernel_config_set_grid(mlx_fast_vulkan_kernel_config cls, int grid1, int grid2,
                                           int grid3)
{
    return set_grid(CALL_BARE, cls, (const int[]){ grid1, grid2, grid3 }, false);
}

int mlx_fast_vulkan_kernel_config_set_groups(mlx_fast_vulkan_kernel_config cls, int groups1,
                                             int groups2, int groups3)
{
    return set_grid(CALL_BARE, cls, (const int[]){ groups1, groups2, groups3 }, true);
}

int mlx_fast_vulkan_kernel_config_set_thread_group(mlx_fast_vulkan_kernel_config cls, int thread1,
                                                   int thread2, int thread3)
{
    struct call c = CALL_BARE;
    struct config_box *box = config_of(&c, cls);

    if (call_ok(&c)) {
        box->local[0] = thread1;
        box->local[1] = thread2;
        box->local[2] = thread3;
    }
    return CALL_END(&c);
}

int mlx_fast_vulkan_kernel_config_set_init_value(mlx_fast_vulkan_kernel_config cls, float value)
{
    struct call c = CALL_BARE;
    struct config_box *box = config_of(&c, cls);

    if (call_ok(&c)) {
        box->has_init = true;
        box->init = value;
    }
    return CALL_END(&c);
}

int mlx_fast_vulkan_kernel_config_set_verbose(mlx_fast_vulkan_kernel_config cls, bool verbose)
{
    struct call c = CALL_BARE;
    struct config_box *box = config_of(&c, cls);

    if (call_ok(&c))
        box->verbose = verbose;
    return CALL_END(&c);
}

int mlx_fast_vulkan_kernel_config_set_push_constants(mlx_fast_vulkan_kernel_config cls,
                                                     const void *data, size_t size)
{
    struct call c = CALL_BARE;
    struct config_box *box = config_of(&c, cls);

    if (size)
        call_ptr(&c, data, "data");
    if (call_ok(&c) && size > PUSH_MAX)
        c.err = err_set(ERR_ARG, "[vulkan_kernel] %zu bytes of push constants.", size);
    if (call_ok(&c)) {
        if (size)
            memcpy(box->push, data, size);
        box->push_size = size;
    }
    return CALL_END(&c);
}

int mlx_fast_vulkan_kernel_config_set_specialization(mlx_fast_vulkan_kernel_config cls,
                                                     uint32_t constant_id, uint32_t bits)
{
    struct call c = CALL_BARE;
    struct config_box *box = config_of(&c, cls);

    if (call_ok(&c))
        c.err = VEC_PUSH(&box->spec, (struct ops_kernel_spec){ constant_id, bits });
    return CALL_END(&c);
}

static int add_macro(struct call c, mlx_fast_vulkan_kernel_config cls, const char *name,
                     struct kernel_macro m)
{
    struct config_box *box = config_of(&c, cls);

    call_ptr(&c, name, "name");
    if (call_ok(&c) && !(m.name = mem_strdup(name)))
        c.err = ERR_NO_MEMORY;
    if (call_ok(&c) && (c.err = VEC_PUSH(&box->macro, m)))
        mem_free(m.name);
    return CALL_END(&c);
}

int mlx_fast_vulkan_kernel_config_add_template_arg_dtype(mlx_fast_vulkan_kernel_config cls,
                                                         const char *name, mlx_dtype dtype)
{
    struct call c = CALL_BARE;
    struct kernel_macro m = { .kind = MACRO_DTYPE, .value = call_dtype(&c, dtype) };

    return add_macro(c, cls, name, m);
}

int mlx_fast_vulkan_kernel_config_add_template_arg_int(mlx_fast_vulkan_kernel_config cls,
                                                       const char *name, int value)
{
    return add_macro(CALL_BARE, cls, name,
                     (struct kernel_macro){ .kind = MACRO_INT, .value = value });
}

int mlx_fast_vulkan_kernel_config_add_template_arg_bool(mlx_fast_vulkan_kernel_config cls,
                                                        const char *name, bool value)
{
    return add_macro(CALL_BARE, cls, name,
                     (struct kernel_macro){ .kind = MACRO_BOOL, .value = value });
}

/* ---- kernels ---- */

struct names {
    char **v;
    size_t n;
};

/* What GLSL became. */
struct compiled {
    char *text;
    struct spirv_module *module;
};

struct kernel_box {
    char *name;
    bool keeps_strides, atomic_outputs;
    struct spirv_module *module; /* NULL: GLSL */
    char *source, *header;
    struct names in, out;
    pthread_mutex_t lock; /* guards the list */
    VEC(struct compiled) compiled;
};

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        mem_free(names->v[i]);
    mem_free(names->v);
}

static enum err names_copy(struct names *out, const struct list *from)
{
    char *const *texts = from->v;

    if (!(out->v = mem_alloc_array(from->n, sizeof *out->v)))
        return ERR_NO_MEMORY;
    for (; out->n < from->n; out->n++)
        if (!(out->v[out->n] = mem_strdup(texts[out->n])))
            return ERR_NO_MEMORY;
    return ERR_OK;
}

static void kernel_free(struct kernel_box *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->compiled.n; i++) {
        mem_free(k->compiled.v[i].text);
        spirv_unref(&k->compiled.v[i].module);
    }
    VEC_FINI(&k->compiled);
    names_fini(&k->in);
    names_fini(&k->out);
    spirv_unref(&k->module);
    mem_free(k->name);
    mem_free(k->source);
    mem_free(k->header);
    pthread_mutex_destroy(&k->lock);
    mem_free(k);
}

void mlx_fast_vulkan_kernel_free(mlx_fast_vulkan_kernel cls)
{
    kernel_free(cls.ctx);
}

static struct kernel_box *kernel_new(struct call *c, const char *name, bool keeps_strides)
{
    struct kernel_box *k = NULL;

    call_ptr(c, name, "name");
    if (call_ok(c) && !(k = mem_alloc(sizeof *k)))
        c->err = ERR_NO_MEMORY;
    if (!call_ok(c))
        return NULL;
    pthread_mutex_init(&k->lock, NULL);
    k->keeps_strides = keeps_strides;
    if (!(k->name = mem_strdup(name)))
        c->err = ERR_NO_MEMORY;
    return k;
}

/* The kernel as a handle, or nothing after a failure. */
static mlx_fast_vulkan_kernel kernel_end(const struct call *c, struct kernel_box *k)
{
    if (call_ok(c))
        return (mlx_fast_vulkan_kernel){ k };
    kernel_free(k);
    return (mlx_fast_vulkan_kernel){ NULL };
}

mlx_fast_vulkan_kernel mlx_fast_vulkan_kernel_new_spirv(const char *name, const void *spirv,
                                                        size_t size, bool ensure_row_contiguous)
{
    struct call c = CALL_BARE;
    struct kernel_box *k = kernel_new(&c, name, !ensure_row_contiguous);

    call_ptr(&c, spirv, "spirv");
    if (call_ok(&c))
        c.err = spirv_new(&k->module, spirv, size);
    CALL_END(&c);
    return kernel_end(&c, k);
}

mlx_fast_vulkan_kernel mlx_fast_vulkan_kernel_new_file(const char *name, const char *file,
                                                       bool ensure_row_contiguous)
{
    struct call c = CALL_BARE;
    struct kernel_box *k = kernel_new(&c, name, !ensure_row_contiguous);
    char *bytes = NULL;
    size_t n = 0;

    call_ptr(&c, file, "file");
    if (call_ok(&c))
        c.err = file_read(&bytes, &n, file, MAX_FILE);
    if (call_ok(&c))
        c.err = spirv_new(&k->module, bytes, n);
    mem_free(bytes);
    CALL_END(&c);
    return kernel_end(&c, k);
}

mlx_fast_vulkan_kernel mlx_fast_vulkan_kernel_new(const char *name,
                                                  const mlx_vector_string input_names,
                                                  const mlx_vector_string output_names,
                                                  const char *source, const char *header,
                                                  bool ensure_row_contiguous, bool atomic_outputs)
{
    struct call c = CALL_BARE;
    struct kernel_box *k = kernel_new(&c, name, !ensure_row_contiguous);
    const struct list *in = call_box(&c, input_names.ctx, "vector", "input_names");
    const struct list *out = call_box(&c, output_names.ctx, "vector", "output_names");

    call_ptr(&c, source, "source");
    call_ptr(&c, header, "header");
    if (call_ok(&c) && !out->n)
        c.err = err_set(ERR_ARG, "[vulkan_kernel] Must specify at least one output.");
    if (call_ok(&c) && (!(k->source = mem_strdup(source)) || !(k->header = mem_strdup(header))))
        c.err = ERR_NO_MEMORY;
    if (call_ok(&c))
        c.err = names_copy(&k->in, in);
    if (call_ok(&c))
        c.err = names_copy(&k->out, out);
    if (call_ok(&c))
        k->atomic_outputs = atomic_outputs;
    CALL_END(&c);
    return kernel_end(&c, k);
}

/* ---- calls ---- */

static enum err check_size(const char *name, size_t expected, size_t got)
{
    if (got == expected)
        return ERR_OK;
    return err_set(ERR_ARG, "[vulkan_kernel] Expected `%s` to have size %zu but got size %zu.",
                   name, expected, got);
}

/* Made under the lock: two threads compile the same text once. */
static enum err compile(struct spirv_module **out, struct kernel_box *k, const char *text)
{
    struct compiled new = { NULL, NULL };
    char *bytes = NULL;
    size_t n;
    enum err err = ERR_OK;

    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < k->compiled.n; i++)
        if (strcmp(k->compiled.v[i].text, text) == 0) {
            *out = k->compiled.v[i].module;
            goto out;
        }
    TRY(glsl_compile(&bytes, &n, text, k->name));
    TRY(spirv_new(&new.module, bytes, n));
    TRY((new.text = mem_strdup(text)) ? ERR_OK : ERR_NO_MEMORY);
    TRY(VEC_PUSH(&k->compiled, new));
    *out = new.module;
    new = (struct compiled){ NULL, NULL };
out:
    pthread_mutex_unlock(&k->lock);
    spirv_unref(&new.module);
    mem_free(new.text);
    mem_free(bytes);
    return err;
}

/* GLSL wants the grid in its push constants. */
static enum err prepare_glsl(struct ops_kernel *call, struct kernel_box *k,
                             const struct config_box *config, uint32_t grid[3])
{
    struct text text = { 0 };
    enum err err;

    TRY(check_size("inputs", k->in.n, call->in.n));
    TRY(check_size("output_shapes", k->out.n, call->n_out));
    if (call->push_size || call->n_spec) {
        err = err_set(ERR_ARG, "[vulkan_kernel] Push and specialization constants are for modules "
                               "of SPIR-V; GLSL has template values and inputs.");
        goto out;
    }
    for (int i = 0; i < 3; i++) {
        call->local[i] = MAX(call->local[i], 1);
        grid[i] = (uint32_t)(call->grid[i] * (call->in_groups ? call->local[i] : 1));
    }
    TRY(kernel_glsl_text(
        &text, &(struct kernel_glsl){ .in_names = (const char *const *)k->in.v,
                                      .out_names = (const char *const *)k->out.v,
                                      .in = call->in,
                                      .out = call->out,
                                      .n_out = call->n_out,
                                      .source = k->source,
                                      .header = k->header,
                                      .macro = config->macro.v,
                                      .n_macro = config->macro.n,
                                      .local = { call->local[0], call->local[1], call->local[2] },
                                      .atomic_outputs = k->atomic_outputs }));
    if (config->verbose)
        printf("%s", text.s.v);
    TRY(compile(&call->module, k, text.s.v));
    call->push = grid;
    call->push_size = 3 * sizeof *grid;
out:
    VEC_FINI(&text.s);
    return err;
}

static enum err apply(struct arr **outs, struct kernel_box *k, const struct list *in,
                      const struct config_box *config, struct strm *s)
{
    struct ops_kernel call = { .module = k->module,
                               .name = k->name,
                               .in = list_arrs(in),
                               .out = config->out.v,
                               .n_out = config->out.n,
                               .grid = { config->grid[0], config->grid[1], config->grid[2] },
                               .in_groups = config->in_groups,
                               .local = { config->local[0], config->local[1], config->local[2] },
                               .push = config->push,
                               .push_size = config->push_size,
                               .spec = config->spec.v,
                               .n_spec = config->spec.n,
                               .init = config->has_init ? &config->init : NULL,
                               .keeps_strides = k->keeps_strides };
    uint32_t grid[3];
    enum err err;

    if (!config->has_grid)
        return err_set(ERR_ARG, "[vulkan_kernel] The configuration has no grid.");
    if (!k->module)
        TRY(prepare_glsl(&call, k, config, grid));
    err = ops_vulkan_kernel(outs, &call, s);
out:
    return err;
}

int mlx_fast_vulkan_kernel_apply(mlx_vector_array *outputs, mlx_fast_vulkan_kernel cls,
                                 const mlx_vector_array inputs,
                                 const mlx_fast_vulkan_kernel_config config,
                                 const mlx_stream stream)
{
    struct call c = CALL_OP(outputs, stream);
    struct kernel_box *k = call_box(&c, cls.ctx, "kernel", "cls");
    const struct list *in = call_vec(&c, inputs, "inputs");
    const struct config_box *box = call_box(&c, config.ctx, "kernel configuration", "config");
    struct arr **outs = call_outs(&c, box ? box->out.n : 0);

    if (call_ok(&c))
        c.err = apply(outs, k, in, box, c.strm);
    call_set_outs(&c, outputs, outs, box ? box->out.n : 0);
    return CALL_END(&c);
}
