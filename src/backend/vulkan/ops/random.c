/* Random bits from keys. */
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"

static enum err set_keys(struct random_args *a, const struct arr *keys, struct vk_enc *e)
{
    const int64_t *strides = keys->strides;
    struct walk_args walk;
    struct nest nest;
    struct shp shape;

    arr_shape(&shape, keys);
    shape.ndim--; /* the last axis holds the two words of a key */
    a->word_stride = strides[shape.ndim];
    shp_collapse(&nest, &shape, &strides, 1);
    if (nest.ndim <= 1) {
        a->key_stride = nest.ndim ? nest.stride[0][0] : 0;
        return ERR_OK;
    }
    launch_walk(&walk, nest.dim, nest.stride[0], nest.ndim);
    return vk_enc_args(e, &a->key_walk, &walk, sizeof walk);
}

static enum err encode(const struct exec *x, struct vk_enc *e)
{
    const struct arr *keys = x->in[0], *out = x->out[0];
    struct random_args a = { .n_keys = keys->size / 2 };
    const struct vk_pipe *pipe;
    uint64_t words;
    enum err err;

    a.key_bytes = arr_nbytes(out) / a.n_keys;
    words = (a.key_bytes + 3) / 4;
    if (words > UINT32_MAX) /* the counter has 32 bits */
        return err_set(ERR_UNSUPPORTED, "[random_bits] more than 16 GiB from one key");
    a.is_odd = words % 2;
    a.pairs = (uint32_t)(words / 2) + a.is_odd;
    TRY(set_keys(&a, keys, e));
    TRY(vk_enc_read(e, &a.key_addr, keys));
    TRY(vk_enc_write(e, &a.out_addr, out));
    uint32_t workgroup = launch_loose_workgroup(a.n_keys * a.pairs);
    TRY(kern_pipe(&pipe, KERN_RANDOM_BITS, -1, (uint32_t[]){ workgroup, 1, 1 }, 3));
    TRY(vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_COUNT }, &a, sizeof a,
                        launch_grid((uint64_t)ceil_div((int64_t)(a.n_keys * a.pairs), workgroup))));
out:
    return err;
}

enum err vk_random_bits(const struct exec *x)
{
    struct vk_enc *e;
    enum err err;

    TRY(arr_alloc(x->out[0], x->strm->be));
    if (!x->out[0]->size)
        goto out;
    TRY(vk_enc_get(&e, x->strm));
    TRY(encode(x, e));
out:
    return err;
}
