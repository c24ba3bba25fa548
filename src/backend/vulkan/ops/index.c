#include "backend/vulkan/ops/index.h"

struct entry {
    struct gather_index index;
    struct walk_args walk;
};

static enum err fill_entry(struct entry *to, const struct vk_index *x, struct vk_enc *e)
{
    struct nest nest;

    if (!dt_is_integer((enum dtype)x->a->dtype))
        return err_set(ERR_UNSUPPORTED, "[vulkan] cannot index with %s",
                       dt_name((enum dtype)x->a->dtype));
    shp_collapse(&nest, x->shape, &x->strides, 1);
    launch_walk(&to->walk, nest.dim, nest.stride[0], nest.ndim);
    to->index = (struct gather_index){ .stride = x->stride,
                                       .dim = x->dim,
                                       .last = x->last,
                                       .code = launch_index_code((enum dtype)x->a->dtype) };
    return vk_enc_read(e, &to->index.addr, x->a);
}

enum err vk_indices(struct vk_enc *e, uint64_t *addr, const struct vk_index *x, uint32_t n)
{
    struct entry *entries = n ? mem_alloc_array(n, sizeof *entries) : NULL;
    enum err err = ERR_OK;

    if (!n)
        return ERR_OK;
    if (!entries)
        return ERR_NO_MEMORY;
    for (uint32_t k = 0; k < n; k++)
        TRY(fill_entry(&entries[k], &x[k], e));
    err = vk_enc_args(e, addr, entries, n * sizeof entries[0], .n_addr = 1, .records = n);
out:
    mem_free(entries);
    return err;
}
