/* Sorting along an axis. */
#include "backend/vulkan/ops/sort.h"
#include "backend/common/rows.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"

/* Elements that a workgroup sorts in shared memory: keys of 8 bytes and places fill 24 KiB. */
#define MAX_TILE 2048

struct job {
    const struct arr *in, *out;
    bool is_arg;
    uint32_t tile;
    size_t key_bytes;
    struct sort_args a;
};

/* Pairs of keys and places, for all elements. */
struct runs {
    uint64_t keys, places;
};

static size_t keys_size(const struct job *j)
{
    return j->in->size * j->key_bytes;
}

static size_t places_size(const struct job *j)
{
    return j->in->size * sizeof(uint32_t);
}

static enum err new_runs(struct runs *r, const struct job *j, struct vk_enc *e)
{
    enum err err;

    TRY(vk_enc_scratch(e, &r->keys, keys_size(j)));
    err = vk_enc_scratch(e, &r->places, places_size(j));
out:
    return err;
}

/* What a pass writes: other runs, or the result, for which it needs the elements. */
static enum err set_target(struct job *j, struct vk_enc *e, struct runs *to)
{
    enum err err = ERR_OK;

    if (to) {
        TRY(new_runs(to, j, e));
        j->a.to_keys = to->keys;
        j->a.to_places = to->places;
    } else {
        TRY(vk_enc_write(e, &j->a.out_addr, j->out));
    }
out:
    return err;
}

static enum err encode_tiles(struct job *j, struct vk_enc *e, struct runs *to)
{
    uint32_t workgroup = MIN(launch_workgroup(), MAX(j->tile / 2, 1));
    uint32_t spec[] = { workgroup, 1, 1, j->tile, j->is_arg, to != NULL };
    const struct vk_pipe *pipe;
    enum err err;

    TRY(kern_pipe(&pipe, KERN_SORT_TILE, j->in->dtype, spec, ARRAY_LEN(spec)));
    TRY(vk_enc_read(e, &j->a.in_addr, j->in));
    TRY(set_target(j, e, to));
    err = vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_COUNT }, &j->a, sizeof j->a,
                          launch_grid(j->a.n_rows * j->a.tiles));
out:
    return err;
}

static enum err encode_merge(struct job *j, struct vk_enc *e, const struct runs *from,
                             struct runs *to)
{
    static const enum kern_id kerns[] = { KERN_SORT_MERGE_1, KERN_SORT_MERGE_2, KERN_SORT_MERGE_4,
                                          KERN_SORT_MERGE_8 };
    enum kern_id kern = kerns[launch_log2(dt_size((enum dtype)j->in->dtype))];
    uint32_t workgroup = launch_workgroup();
    uint32_t spec[] = { workgroup, 1, 1, j->is_arg, to != NULL };
    uint64_t lanes = j->a.n_rows * (uint64_t)ceil_div(j->a.row_len, SORT_PER_LANE);
    const struct vk_pipe *pipe;
    enum err err;

    TRY(kern_pipe(&pipe, kern, -1, spec, ARRAY_LEN(spec)));
    vk_enc_scratch_read(e, from->keys, keys_size(j));
    vk_enc_scratch_read(e, from->places, places_size(j));
    j->a.from_keys = from->keys;
    j->a.from_places = from->places;
    TRY(vk_enc_read(e, &j->a.in_addr, j->in));
    TRY(set_target(j, e, to));
    err = vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_COUNT }, &j->a, sizeof j->a,
                          launch_grid((uint64_t)ceil_div((int64_t)lanes, workgroup)));
out:
    return err;
}

static enum err encode(struct job *j, struct vk_enc *e)
{
    struct runs runs[2];
    int at = 0;
    enum err err;

    TRY(encode_tiles(j, e, j->a.tiles > 1 ? &runs[0] : NULL));
    for (uint64_t run = j->tile; run < j->a.row_len; run *= 2, at = !at) {
        j->a.run = (uint32_t)run;
        TRY(encode_merge(j, e, &runs[at], run * 2 < j->a.row_len ? &runs[!at] : NULL));
    }
out:
    return err;
}

static int axis_of(const struct node *n)
{
    if (n->op == OP_PARTITION || n->op == OP_ARG_PARTITION)
        return ((const struct partition_params *)n->params)->axis;
    return ((const struct axis_params *)n->params)->axis;
}

static struct job job_of(const struct arr *in, const struct arr *out, uint64_t n_rows,
                         uint32_t length)
{
    size_t item = dt_size((enum dtype)in->dtype);
    struct job j = { .in = in,
                     .out = out,
                     .tile = MIN(1u << launch_log2(length), MAX_TILE),
                     .key_bytes = item == 8 ? 8 : 4 };

    j.a = (struct sort_args){ .n_rows = n_rows,
                              .row_len = length,
                              .tiles = (uint32_t)ceil_div(length, j.tile) };
    return j;
}

enum err vk_sort_places(struct strm *s, struct arr *out, const struct arr *in)
{
    struct job j = job_of(in, out, 1, (uint32_t)in->size);
    struct vk_enc *e;
    enum err err = vk_enc_get(&e, s);

    j.is_arg = true;
    return err ? err : encode(&j, e);
}

enum err vk_sort(const struct exec *x)
{
    enum dtype t = (enum dtype)x->in[0]->dtype;
    struct be_rows rows;
    struct vk_enc *e;
    enum err err;

    if (!kern_is_usable(KERN_SORT_TILE, t))
        return err_set(ERR_UNSUPPORTED, "[sort] no Vulkan kernel for %s", dt_name(t));
    TRY(be_rows_begin(&rows, x, axis_of(x->node)));
    struct job j = job_of(rows.in, rows.out, rows.n, rows.length);
    j.is_arg = x->node->op == OP_ARG_SORT || x->node->op == OP_ARG_PARTITION;
    err = vk_enc_get(&e, x->strm);
    if (!err)
        err = encode(&j, e);
    err = be_rows_end(&rows, x->strm, err);
out:
    return err;
}
