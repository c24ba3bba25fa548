#include "backend/vulkan/ops/kernel.h"

#include "backend/common/families.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/rt/module.h"

enum err vk_kernel_check(const struct kernel_call *k)
{
    const struct vk_module *m;
    bool is_aligned;
    enum err err;

    TRY(vk_module_get(&m, k->module));
    TRY(vk_check_groups(k->local, k->groups));
    for (uint32_t i = 0; i < k->n_out && !k->by_address; i++) {
        int64_t size = 0;
        (void)shp_size_checked(&k->out[i].shape, &size); /* the constructor has made sure */
        TRY(vk_check_range(&is_aligned, 0, (uint64_t)size * dt_size(k->out[i].dtype)));
    }
out:
    return err;
}

/* One value for all elements. */
static enum err fill(struct strm *s, struct arr *out, struct arr *value)
{
    int64_t strides[SHP_MAX] = { 0 };
    struct shp shape;

    arr_shape(&shape, out);
    return s->be->copy(s, &(struct be_copy){ .src = value,
                                             .dst = out,
                                             .shape = &shape,
                                             .src_strides = strides,
                                             .dst_strides = out->strides });
}

struct job {
    const struct exec *x;
    const struct kernel_call *k;
    struct arr *in[KERNEL_MAX_ARRAYS];   /* as the kernel gets them, borrowed */
    struct arr *copy[KERNEL_MAX_ARRAYS]; /* of those, owned */
};

/* An array that is given as it lies. */
static enum err check_span(const struct job *j, uint32_t i, bool is_aligned)
{
    const struct arr *in = j->x->in[i];
    const struct spirv_binding *b = spirv_find_binding(&j->k->module->info, i);
    struct span s = arr_span(in);

    if (s.lo != (size_t)in->offset)
        return err_set(ERR_ARG,
                       "[vulkan_kernel] Input %u has negative strides: ensure_row_contiguous "
                       "copies it.",
                       i);
    if (!is_aligned)
        return err_set(ERR_ARG,
                       "[vulkan_kernel] Input %u begins at byte %lld of its buffer, which is no "
                       "multiple of minStorageBufferOffsetAlignment: ensure_row_contiguous copies "
                       "it.",
                       i, (long long)in->offset);
    if (b && s.size < b->min_size)
        return err_set(ERR_ARG,
                       "[vulkan_kernel] Input %u has fewer bytes in memory than its binding: "
                       "ensure_row_contiguous copies it.",
                       i);
    return ERR_OK;
}

/* A storage buffer begins at a multiple of the device's alignment. */
static enum err place_input(struct job *j, uint32_t i)
{
    struct arr *in = j->x->in[i];
    bool is_aligned = true;
    struct shp shape;
    enum err err = ERR_OK;

    j->in[i] = in;
    if (!in->size)
        return ERR_OK;
    if (!j->k->by_address)
        TRY(vk_check_range(&is_aligned, (uint64_t)in->offset, arr_span(in).size));
    if (!j->k->copies)
        return j->k->by_address ? ERR_OK : check_span(j, i, is_aligned);
    if (is_aligned && (in->flags & LAYOUT_ROW))
        return ERR_OK;
    arr_shape(&shape, in);
    TRY(arr_new_empty(&j->copy[i], &shape, (enum dtype)in->dtype));
    TRY(be_copy_dense(j->x->strm, j->copy[i], in));
    j->in[i] = j->copy[i];
out:
    return err;
}

static enum err place_all(struct job *j)
{
    const struct exec *x = j->x;
    enum err err = ERR_OK;

    for (uint32_t i = 0; i < j->k->n_in; i++)
        TRY(place_input(j, i));
    for (int o = 0; o < x->n_out; o++) {
        TRY(arr_alloc(x->out[o], x->strm->be));
        if (j->k->has_init)
            TRY(fill(x->strm, x->out[o], x->in[j->k->n_in]));
    }
out:
    return err;
}

static struct arr *array_of(const struct job *j, uint32_t i)
{
    return i < j->k->n_in ? j->in[i] : j->x->out[i - j->k->n_in];
}

/* Reads and writes of the dispatch; the addresses are put in front of the push constants. */
static enum err declare(struct job *j, struct vk_enc *e, struct vk_dispatch *d)
{
    uint32_t n = j->k->n_in + j->k->n_out;
    uint64_t addr[KERNEL_MAX_ARRAYS];
    enum err err = ERR_OK;

    for (uint32_t i = 0; i < n; i++)
        TRY(i < j->k->n_in ? vk_enc_read(e, &addr[i], array_of(j, i))
                           : vk_enc_write(e, &addr[i], array_of(j, i)));
    if (j->k->by_address) {
        memcpy(d->push, addr, n * sizeof *addr);
        d->push_size = n * (uint32_t)sizeof *addr;
    }
    memcpy(d->push + d->push_size, j->k->push, j->k->push_size);
    d->push_size += j->k->push_size;
out:
    return err;
}

static enum err encode(struct job *j)
{
    const struct kernel_call *k = j->k;
    const struct spirv_info *info = &k->module->info;
    uint32_t n_addr = k->by_address ? k->n_in + k->n_out : 0;
    struct vk_dispatch d = { .kernel.variant = VARIANT_COUNT,
                             .grid = { k->groups[0], k->groups[1], k->groups[2] } };
    struct vk_bound bound[VK_MAX_BOUND];
    const struct vk_module *m;
    struct vk_enc *e;
    enum err err;

    TRY(vk_module_get(&m, k->module));
    TRY(vk_module_pipe(&d.kernel.pipe, m, &(struct vk_module_pipe){ k->name, k->spec, n_addr }));
    TRY(vk_enc_get(&e, j->x->strm));
    err = declare(j, e, &d);
    for (size_t i = 0; i < info->binding.n; i++) {
        uint32_t number = info->binding.v[i].binding;
        bound[i] = (struct vk_bound){ number, array_of(j, number) };
    }
    if (err)
        vk_enc_drop(e);
    else if (k->by_address)
        err = vk_enc_dispatch(e, d.kernel, d.push, d.push_size, d.grid);
    else
        err = vk_enc_dispatch_bound(e, &d, bound, (uint32_t)info->binding.n);
out:
    return err;
}

enum err vk_vulkan_kernel(const struct exec *x)
{
    struct job j = { .x = x, .k = kernel_call_of(x->node->state) };
    struct buf *held[KERNEL_MAX_ARRAYS];
    size_t n = 0;
    enum err err;

    TRY(place_all(&j));
    err = encode(&j);
out:
    for (uint32_t i = 0; i < j.k->n_in; i++)
        if (j.copy[i] && j.copy[i]->buf)
            held[n++] = j.copy[i]->buf;
    if (n) {
        enum err failed = x->strm->be->hold(x->strm, held, n);
        err = err ? err : failed;
    }
    for (uint32_t i = 0; i < j.k->n_in; i++)
        arr_unref(&j.copy[i]);
    return err;
}
