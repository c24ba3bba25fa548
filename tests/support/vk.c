#include "support/vk.h"

#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/kern.h"
#include "support/testing.h"

#define GROUP_SIZE 64
#define GRID_MAX 65535u

struct strm *vkt_stream(void)
{
    struct strm *s = NULL;

    assert_ok(strm_new(&s, (struct dev){ DEV_GPU, 0 }));
    return s;
}

struct arr *vkt_array(struct strm *s, int32_t n)
{
    struct shp shape = { 1, { n } };
    struct arr *a = NULL;

    assert_ok(arr_new_empty(&a, &shape, DT_UINT32));
    assert_ok(arr_alloc(a, s->be));
    return a;
}

void vkt_encode(struct strm *s, const struct vkt_probe *p)
{
    const uint32_t spec[3] = { GROUP_SIZE, 1, 1 };
    struct probe_args args = { .n = (uint32_t)p->out->size, .mul = p->mul, .add = p->add };
    const struct vk_pipe *pipe = NULL;
    struct vk_enc *e = NULL;

    assert_ok(kern_pipe(&pipe, KERN_PROBE, -1, spec, 3));
    assert_ok(vk_enc_get(&e, s));
    if (p->in)
        assert_ok(vk_enc_read(e, &args.in_addr, p->in));
    else if (p->block)
        assert_ok(vk_enc_args(e, &args.in_addr, p->block, p->block_size));
    assert_ok(vk_enc_write_part(e, &args.out_addr, p->out, p->group));
    uint32_t groups = (args.n + GROUP_SIZE - 1) / GROUP_SIZE;
    struct vk_grid grid = { MIN(groups, GRID_MAX), (groups + GRID_MAX - 1) / GRID_MAX, 1 };
    assert_ok(
        vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_COUNT }, &args, sizeof args, grid));
}

const uint32_t *vkt_read(struct strm *s, struct arr *a)
{
    const void *host = NULL;

    assert_ok(strm_synchronize(s));
    assert_ok(buf_host(&host, a->buf));
    return (const uint32_t *)((const char *)host + a->offset);
}
