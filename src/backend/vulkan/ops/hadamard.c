/* The Hadamard transform of the last axis: passes over tiles that fit shared memory. */
#include "graph/hadamard.h"

#include "backend/common/rows.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"

/* Stages of a pass whose elements lie apart: 16 neighbours of each, which are a line of memory. */
#define APART_BITS 8
#define TILE_BITS 12
static_assert(1 << TILE_BITS == HADAMARD_TILE, "a tile is a power of two");
static_assert(HADAMARD_ROWS == HADAMARD_BASE_MAX, "room for the largest base");

struct job {
    struct hadamard_size size;
    const struct be_rows *rows;
    struct vk_enc *e;
    struct hadamard_args a;
    uint64_t from; /* what the pass before wrote; 0: there was none */
};

/* What a pass does besides where it does it. */
struct pass {
    uint32_t base; /* of sums; 1: none */
    bool is_last;
};

static size_t part_bytes(const struct job *j)
{
    return j->a.size * sizeof(float);
}

static enum err encode(struct job *j, const struct pass *pass)
{
    enum dtype t = (enum dtype)j->rows->in->dtype;
    uint32_t spec[] = { launch_workgroup(), 1, 1, pass->base, !j->from, pass->is_last };
    struct hadamard_args *a = &j->a;
    const struct vk_pipe *pipe;
    enum err err;

    TRY(kern_pipe(&pipe, KERN_HADAMARD, t, spec, ARRAY_LEN(spec)));
    a->rows = 0;
    if (pass->base > 1)
        TRY(vk_enc_args(j->e, &a->rows, hadamard_rows((int32_t)pass->base),
                        pass->base * sizeof(uint32_t)));
    if (j->from) {
        vk_enc_scratch_read(j->e, j->from, part_bytes(j));
        a->in_addr = j->from;
    } else {
        TRY(vk_enc_read(j->e, &a->in_addr, j->rows->in));
    }
    if (pass->is_last) {
        TRY(vk_enc_write(j->e, &a->out_addr, j->rows->out));
    } else {
        TRY(vk_enc_scratch(j->e, &a->out_addr, part_bytes(j)));
        j->from = a->out_addr;
    }
    err = vk_enc_dispatch(j->e, (struct vk_kernel){ pipe, VARIANT_COUNT }, a, sizeof *a,
                          launch_grid(a->n_tiles));
out:
    return err;
}

/* Tiles of neighbours: whole rows, or blocks of a power of two. */
static void set_dense(struct job *j, uint64_t unit)
{
    uint64_t tile = MIN(HADAMARD_TILE / unit * unit, j->a.size);

    j->a.tile = (uint32_t)tile;
    j->a.section = tile;
    j->a.pitch = 0;
    j->a.tiles_across = 1;
    j->a.log2_columns = 31;
    j->a.n_tiles = (j->a.size + tile - 1) / tile;
}

/* Tiles of points that are 2^log2_pitch elements apart, with some neighbours of each. */
static void set_apart(struct job *j, uint32_t points, int log2_pitch)
{
    uint32_t room = launch_log2(HADAMARD_TILE / points + 1) - 1;
    uint32_t columns = MIN(room, (uint32_t)log2_pitch);

    j->a.tile = points << columns;
    j->a.section = (uint64_t)points << log2_pitch;
    j->a.pitch = (uint64_t)1 << log2_pitch;
    j->a.tiles_across = 1u << ((uint32_t)log2_pitch - columns);
    j->a.log2_columns = columns;
    j->a.n_tiles = j->a.size / j->a.section * j->a.tiles_across;
}

static enum err encode_all(struct job *j)
{
    int k = j->size.log2;
    uint32_t base = (uint32_t)j->size.base;
    bool is_whole = (int64_t)base << k <= HADAMARD_TILE;
    enum err err = ERR_OK;

    while (k > TILE_BITS) {
        int bits = MIN(k - TILE_BITS, APART_BITS);
        k -= bits;
        set_apart(j, 1u << bits, k);
        j->a.first_bit = j->a.log2_columns;
        j->a.n_bits = (uint32_t)bits;
        TRY(encode(j, &(struct pass){ 1, false }));
    }
    set_dense(j, (uint64_t)(is_whole ? base : 1) << k);
    j->a.first_bit = 0;
    j->a.n_bits = j->a.log2_block = (uint32_t)k;
    TRY(encode(j, &(struct pass){ is_whole ? base : 1, is_whole || base == 1 }));
    if (is_whole || base == 1)
        goto out;
    set_apart(j, base, j->size.log2);
    j->a.n_bits = 0;
    j->a.log2_block = j->a.log2_columns;
    TRY(encode(j, &(struct pass){ base, true }));
out:
    return err;
}

enum err vk_hadamard(const struct exec *x)
{
    const struct hadamard_params *p = x->node->params;
    struct arr *in = x->in[0], *out = x->out[0];
    enum dtype t = (enum dtype)in->dtype;
    struct be_rows rows;
    enum err err;

    if (!kern_is_usable(KERN_HADAMARD, t))
        return err_set(ERR_UNSUPPORTED, "[hadamard_transform] no Vulkan kernel for %s", dt_name(t));
    if (!out->size)
        return arr_alloc(out, x->strm->be);
    TRY(be_rows_begin(&rows, x, in->ndim - 1));
    struct job j = { .rows = &rows, .a = { .size = in->size, .scale = p->scale } };
    (void)hadamard_size(&j.size, (int32_t)rows.length); /* op_infer has made sure */
    err = vk_enc_get(&j.e, x->strm);
    if (!err)
        err = encode_all(&j);
    err = be_rows_end(&rows, x->strm, err);
out:
    return err;
}
