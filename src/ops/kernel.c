/* Kernels of callers: what a module says about itself against what a call gives it. */
#include "graph/kernel.h"

#include <inttypes.h>

#include "backend/backend.h"
#include "ops/build.h"
#include "ops/rules.h"

enum err op_infer_vulkan_kernel(struct infer_call *c)
{
    FITS(c->state);
    const struct kernel_call *k = kernel_call_of(c->state);
    FITS(c->n_in == k->n_in + k->has_init && k->n_out <= MAX(OP_MAX_OUT, c->n_in));
    if (k->has_init)
        FITS(!c->in[k->n_in]->ndim && c->in[k->n_in]->dtype == DT_FLOAT32);
    memcpy(c->out, k->out, k->n_out * sizeof *k->out);
    c->n_out = k->n_out;
    return ERR_OK;
}

/* ---- arrays ---- */

static uint64_t bytes_of(const struct shp *shape, enum dtype t)
{
    int64_t size;

    return shp_size_checked(shape, &size) ? (uint64_t)size * dt_size(t) : UINT64_MAX;
}

static enum err take_outputs(struct kernel_call *c, const struct ops_kernel *k)
{
    size_t n_empty = 0;

    if (!k->n_out)
        return err_set(ERR_ARG, "[vulkan_kernel] Must specify at least one output.");
    if (k->in.n + k->n_out > KERNEL_MAX_ARRAYS)
        return err_set(ERR_ARG, "[vulkan_kernel] %zu inputs and %zu outputs: %d are possible.",
                       k->in.n, k->n_out, KERNEL_MAX_ARRAYS);
    if (k->n_out > MAX((size_t)OP_MAX_OUT, k->in.n))
        return err_set(ERR_ARG, "[vulkan_kernel] %zu outputs: %zu are possible.", k->n_out,
                       MAX((size_t)OP_MAX_OUT, k->in.n));
    for (size_t i = 0; i < k->n_out; i++) {
        uint64_t bytes = bytes_of(&k->out[i].shape, k->out[i].dtype);
        if (bytes > INT64_MAX)
            return err_set(ERR_OVERFLOW, "[vulkan_kernel] Output %zu is too large.", i);
        n_empty += bytes == 0;
        c->out[i].dtype = k->out[i].dtype;
        c->out[i].shape.ndim = k->out[i].shape.ndim;
        for (int d = 0; d < k->out[i].shape.ndim; d++)
            c->out[i].shape.d[d] = k->out[i].shape.d[d];
    }
    if (n_empty && n_empty < k->n_out)
        return err_set(ERR_ARG, "[vulkan_kernel] Some outputs have no elements, others do.");
    c->n_in = (uint32_t)k->in.n;
    c->n_out = (uint32_t)k->n_out;
    return ERR_OK;
}

static uint64_t array_bytes(const struct kernel_call *c, const struct ops_kernel *k, uint32_t i)
{
    if (i < c->n_in)
        return arr_nbytes(k->in.v[i]);
    return bytes_of(&c->out[i - c->n_in].shape, c->out[i - c->n_in].dtype);
}

/* A buffer of a size that the module knows is read and written as a whole. */
static enum err check_sizes(const struct kernel_call *c, const struct ops_kernel *k)
{
    const struct spirv_info *info = &c->module->info;

    for (size_t i = 0; i < info->binding.n; i++) {
        const struct spirv_binding *b = &info->binding.v[i];
        bool is_in = b->binding < c->n_in;
        uint64_t bytes = array_bytes(c, k, b->binding);
        if (bytes < b->min_size)
            return err_set(ERR_ARG,
                           "[vulkan_kernel] %s %u has %" PRIu64 " bytes, but binding %u of the "
                           "module at least %" PRIu64 ".",
                           is_in ? "Input" : "Output", is_in ? b->binding : b->binding - c->n_in,
                           bytes, b->binding, b->min_size);
    }
    return ERR_OK;
}

static enum err check_bindings(struct kernel_call *c, const struct ops_kernel *k)
{
    const struct spirv_info *info = &c->module->info;
    uint32_t n = c->n_in + c->n_out;

    c->by_address = !info->binding.n;
    if (c->by_address)
        return ERR_OK;
    uint32_t declared = info->binding.v[info->binding.n - 1].binding + 1;
    if (declared != n)
        return err_set(ERR_ARG,
                       "[vulkan_kernel] %u inputs and %u outputs, but the module's bindings end "
                       "with %u.",
                       c->n_in, c->n_out, declared - 1);
    return check_sizes(c, k);
}

/* ---- constants ---- */

static enum err take_push(struct kernel_call *c, const struct ops_kernel *k)
{
    uint32_t addresses = c->by_address ? (c->n_in + c->n_out) * 8 : 0;
    size_t expected = align_up(c->module->info.push_size, 4);

    if (k->push_size > KERNEL_PUSH_MAX - MIN(addresses, KERNEL_PUSH_MAX))
        return err_set(ERR_ARG, "[vulkan_kernel] %zu bytes of push constants%s: %d are there.",
                       k->push_size, addresses ? " behind the addresses of the arrays" : "",
                       KERNEL_PUSH_MAX);
    if (addresses + align_up(k->push_size, 4) != expected)
        return err_set(ERR_ARG,
                       "[vulkan_kernel] %zu bytes of push constants%s, but the module has %zu.",
                       k->push_size + addresses, addresses ? " with addresses" : "", expected);
    if (k->push_size)
        memcpy(c->push, k->push, k->push_size);
    c->push_size = (uint32_t)align_up(k->push_size, 4);
    return ERR_OK;
}

static enum err take_specs(struct kernel_call *c, const struct ops_kernel *k)
{
    const struct spirv_info *info = &c->module->info;

    for (size_t i = 0; i < info->spec.n; i++)
        c->spec[i] = info->spec.v[i].value;
    for (size_t i = 0; i < k->n_spec; i++) {
        int at = spirv_find_spec(info, k->spec[i].id);
        if (at < 0)
            return err_set(ERR_ARG,
                           "[vulkan_kernel] The module has no specialization constant %u of 32 "
                           "bits.",
                           k->spec[i].id);
        c->spec[at] = k->spec[i].value;
    }
    return ERR_OK;
}

/* ---- workgroups ---- */

static enum err take_local(struct kernel_call *c, const struct ops_kernel *k)
{
    const struct spirv_info *info = &c->module->info;

    for (int i = 0; i < 3; i++) {
        int spec = info->local_spec[i];
        if (k->local[i] < 0 || k->local[i] > UINT32_MAX)
            return err_set(ERR_ARG, "[vulkan_kernel] Workgroups of %" PRId64 " threads.",
                           k->local[i]);
        if (spec >= 0 && k->local[i])
            c->spec[spec] = (uint32_t)k->local[i];
        c->local[i] = spec >= 0 ? c->spec[spec] : info->local_size[i];
        if (k->local[i] && c->local[i] != (uint32_t)k->local[i])
            return err_set(ERR_ARG,
                           "[vulkan_kernel] Workgroups of %" PRId64 " threads along axis %d, but "
                           "the module's have %u.",
                           k->local[i], i, c->local[i]);
        if (!c->local[i])
            return err_set(ERR_ARG, "[vulkan_kernel] Workgroups without threads.");
    }
    return ERR_OK;
}

static enum err take_grid(struct kernel_call *c, const struct ops_kernel *k)
{
    for (int i = 0; i < 3; i++) {
        int64_t n = k->grid[i];
        if (n >= 1 && !k->in_groups)
            n = ceil_div(n, c->local[i]);
        if (n < 1 || n > UINT32_MAX)
            return err_set(
                ERR_ARG, "[vulkan_kernel] A grid of %" PRId64 " x %" PRId64 " x %" PRId64 " %s.",
                k->grid[0], k->grid[1], k->grid[2], k->in_groups ? "workgroups" : "threads");
        c->groups[i] = (uint32_t)n;
    }
    return ERR_OK;
}

/* ---- the node ---- */

static enum err check(struct kernel_call *c, const struct ops_kernel *k, const struct strm *s)
{
    enum err err;

    if (s->dev.type != DEV_GPU || !s->be->kernel_check)
        return err_set(ERR_ARG, "[vulkan_kernel] Only supports the GPU.");
    TRY(take_outputs(c, k));
    TRY(check_bindings(c, k));
    TRY(take_push(c, k));
    TRY(take_specs(c, k));
    TRY(take_local(c, k));
    TRY(take_grid(c, k));
    err = s->be->kernel_check(c);
out:
    return err;
}

/* The arrays, then the value that outputs begin with. */
static enum err take_inputs(struct arr **in, const struct ops_kernel *k)
{
    for (size_t i = 0; i < k->in.n; i++)
        in[i] = arr_ref(k->in.v[i]);
    if (k->init_array)
        in[k->in.n] = arr_ref(k->init_array);
    else if (k->init)
        return arr_new_number(&in[k->in.n], *k->init, DT_FLOAT32);
    return ERR_OK;
}

static bool has_init(const struct ops_kernel *k)
{
    return k->init || k->init_array;
}

enum err ops_vulkan_kernel(struct arr **outs, const struct ops_kernel *k, struct strm *s)
{
    struct kernel_call *c = mem_alloc(sizeof *c); /* zeroed: calls are compared by their bytes */
    struct arr *in[KERNEL_MAX_ARRAYS + 1] = { NULL };
    struct ops_inputs inputs = { .arrs = { in, k->in.n + has_init(k) } };
    enum err err = ERR_NO_MEMORY;

    if (!c)
        return err;
    c->module = k->module;
    memcpy(c->name, k->name, MIN(strlen(k->name), sizeof c->name - 1));
    c->copies = !k->keeps_strides;
    c->has_init = has_init(k);
    TRY(check(c, k, s));
    TRY(take_inputs(in, k));
    TRY(kernel_call_new(&inputs.state, c));
    err = ops_make_with(outs, OP_VULKAN_KERNEL, NULL, &inputs, s);
out:
    op_state_unref(&inputs.state);
    arr_unref_all(in, ARRAY_LEN(in));
    mem_free(c);
    return err;
}
