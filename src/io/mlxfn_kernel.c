/* Kernels of callers in files of exported functions: the module and what a call says besides. What
 * is read is compared with the module and the device as every call is, when nodes are made of it.
 */
#include "graph/kernel.h"
#include "io/mlxfn_prim.h"

/* ---- writing ---- */

static enum err put_block(bytes_out *b, const void *v, size_t n)
{
    uint64_t count = n;
    enum err err = bytes_put(b, &count, sizeof count);

    return err ? err : bytes_put(b, v, n);
}

static enum err put_specs(bytes_out *b, const struct kernel_call *k)
{
    const struct spirv_info *info = &k->module->info;
    uint64_t n = info->spec.n;
    enum err err;

    TRY(bytes_put(b, &n, sizeof n));
    for (size_t i = 0; i < info->spec.n; i++) {
        TRY(bytes_put(b, &info->spec.v[i].id, sizeof info->spec.v[i].id));
        TRY(bytes_put(b, &k->spec[i], sizeof k->spec[i]));
    }
out:
    return err;
}

enum err write_kernel(bytes_out *b, const struct op_state *s)
{
    const struct kernel_call *k = kernel_call_of(s);
    const char flags[] = { k->copies, k->has_init };
    enum err err;

    TRY(put_block(b, k->name, strlen(k->name)));
    TRY(put_block(b, k->module->words, k->module->n_words * sizeof *k->module->words));
    TRY(bytes_put(b, k->groups, sizeof k->groups));
    TRY(bytes_put(b, k->local, sizeof k->local));
    TRY(put_specs(b, k));
    TRY(put_block(b, k->push, k->push_size));
    err = bytes_put(b, flags, sizeof flags);
out:
    return err;
}

/* ---- reading ---- */

/* At most `room` bytes; *n of them. */
static enum err get_block(struct bytes_in *b, void *out, size_t *n, size_t room)
{
    enum err err;

    TRY(bytes_get_count(b, n, 1));
    if (*n > room)
        return bytes_fail(b, "a kernel's name or push constants are too long");
    err = bytes_get(b, out, *n);
out:
    return err;
}

static enum err get_module(struct bytes_in *b, struct kernel_call *k)
{
    char *bytes = NULL;
    size_t n;
    enum err err;

    TRY(bytes_get_count(b, &n, 1));
    err = ERR_NO_MEMORY;
    if (!(bytes = mem_alloc(n)))
        goto out;
    TRY(bytes_get(b, bytes, n));
    err = spirv_new(&k->module, bytes, n);
out:
    mem_free(bytes);
    return err;
}

static enum err get_specs(struct bytes_in *b, struct kernel_call *k)
{
    const struct spirv_info *info = &k->module->info;
    uint32_t pair[2];
    size_t n;
    enum err err;

    TRY(bytes_get_count(b, &n, sizeof pair));
    if (n != info->spec.n)
        return bytes_fail(b, "a kernel has other constants than its module");
    for (size_t i = 0; i < n; i++) {
        TRY(bytes_get(b, pair, sizeof pair));
        if (pair[0] != info->spec.v[i].id)
            return bytes_fail(b, "a kernel has other constants than its module");
        k->spec[i] = pair[1];
    }
out:
    return err;
}

static enum err get_call(struct bytes_in *b, struct kernel_call *k)
{
    size_t n;
    enum err err;

    TRY(get_block(b, k->name, &n, sizeof k->name - 1));
    TRY(get_module(b, k));
    TRY(bytes_get(b, k->groups, sizeof k->groups));
    TRY(bytes_get(b, k->local, sizeof k->local));
    TRY(get_specs(b, k));
    TRY(get_block(b, k->push, &n, sizeof k->push));
    k->push_size = (uint32_t)n;
    TRY(bytes_get_bool(b, &k->copies));
    err = bytes_get_bool(b, &k->has_init);
out:
    return err;
}

enum err read_kernel(struct op_state **out, struct bytes_in *b)
{
    struct kernel_call *k = mem_alloc(sizeof *k);
    enum err err = ERR_NO_MEMORY;

    if (!k)
        return err;
    TRY(get_call(b, k));
    err = kernel_call_new(out, k);
out:
    spirv_unref(&k->module);
    mem_free(k);
    return err;
}

/* ---- nodes ---- */

enum err make_kernel(struct prim_call *c)
{
    const struct kernel_call *k = kernel_call_of(c->state);
    const struct spirv_info *info = &k->module->info;
    struct ops_kernel_spec spec[SPIRV_MAX_SPEC];
    struct ops_kernel call = { .module = k->module,
                               .name = k->name,
                               .in = { c->in, c->n_in - (c->n_in ? k->has_init : 0) },
                               .out = c->made,
                               .n_out = c->n_made,
                               .grid = { k->groups[0], k->groups[1], k->groups[2] },
                               .in_groups = true,
                               .local = { k->local[0], k->local[1], k->local[2] },
                               .push = k->push,
                               .push_size = k->push_size,
                               .spec = spec,
                               .n_spec = info->spec.n,
                               .keeps_strides = !k->copies };

    if (k->has_init && !c->n_in)
        return err_set(ERR_ARG, "[import_function] A kernel lacks the value that it begins with.");
    if (k->has_init)
        call.init_array = c->in[c->n_in - 1];
    for (size_t i = 0; i < info->spec.n; i++)
        spec[i] = (struct ops_kernel_spec){ info->spec.v[i].id, k->spec[i] };
    return ops_vulkan_kernel(c->result, &call, c->strm);
}
