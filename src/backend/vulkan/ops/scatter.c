/* Scatters: positions are sorted by where they go, so that those of one place are neighbours, in
 * their order. Nothing depends on which lane is first, and no type needs atomic operations. */
#include "backend/common/scatter.h"
#include "backend/common/families.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/index.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/scan.h"
#include "backend/vulkan/ops/sort.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"

#include <stdio.h>

/* Fewer updates than this one lane combines alone. */
#define MIN_CHUNK 64

struct job {
    struct be_scatter s;
    struct strm *strm;
    const struct arr *out;
    struct arr *keys, *places;   /* owned */
    struct shp key_shape;        /* of the axes that positions go along */
    int64_t key_stride[SHP_MAX]; /* by axis of the result, in keys */
    int64_t key_out[SHP_MAX];    /* by dimension of key_shape, in elements of the result */
    struct nest slice;           /* over the result and the updates, in elements, then in units */
    uint64_t dst_addr, updates_addr;
    uint32_t workgroup, chunk;
    int64_t per_unit; /* elements */
};
enum { DST, UPDATE };

/* ---- keys ---- */

/* Rows of the axes that positions go along are counted; the others are inside of slices. */
static enum err number_places(struct job *j)
{
    const struct be_scatter *s = &j->s;
    bool is_along[SHP_MAX] = { false };
    int64_t n = 1;

    for (int k = 0; k < s->n_index; k++)
        is_along[s->axis[k]] = true;
    for (int i = 0; i < s->position.ndim; i++)
        if (s->along[i] >= 0)
            is_along[s->along[i]] = true;
    for (int axis = 0; axis < j->out->ndim; axis++)
        if (is_along[axis]) {
            j->key_out[j->key_shape.ndim] = j->out->strides[axis];
            j->key_shape.d[j->key_shape.ndim++] = j->out->shape[axis];
        }
    for (int axis = j->out->ndim - 1; axis >= 0; axis--)
        if (is_along[axis]) {
            j->key_stride[axis] = n;
            n *= j->out->shape[axis];
        }
    if (n > SCATTER_NOWHERE || s->n > INT32_MAX)
        return err_set(ERR_UNSUPPORTED,
                       "[scatter] %zu positions in %lld places are more than Vulkan sorts.", s->n,
                       (long long)n);
    return ERR_OK;
}

static enum err new_numbers(struct arr **out, const struct job *j)
{
    struct shp shape = { .ndim = 1, .d = { (int32_t)j->s.n } };
    enum err err;

    TRY(arr_new_empty(out, &shape, DT_UINT32));
    err = arr_alloc(*out, j->strm->be);
out:
    return err;
}

static enum err walk_of(uint64_t *addr, struct vk_enc *e, const struct shp *shape,
                        const int64_t *strides)
{
    struct walk_args walk;
    struct nest nest;

    shp_collapse(&nest, shape, &strides, 1);
    launch_walk(&walk, nest.dim, nest.stride[0], nest.ndim);
    return vk_enc_args(e, addr, &walk, sizeof walk);
}

static enum err set_keys(struct scatter_keys_args *a, const struct job *j, struct vk_enc *e)
{
    const struct be_scatter *s = &j->s;
    int64_t strides[VK_MAX_INDEX][SHP_MAX], base[SHP_MAX];
    struct vk_index x[VK_MAX_INDEX];
    enum err err;

    for (int i = 0; i < s->position.ndim; i++)
        base[i] = s->along[i] < 0 ? 0 : j->key_stride[s->along[i]];
    TRY(walk_of(&a->base_walk, e, &s->position, base));
    for (int k = 0; k < s->n_index; k++) {
        be_scatter_index_strides(strides[k], s, k);
        x[k] = (struct vk_index){ .a = s->index[k],
                                  .shape = &s->position,
                                  .strides = strides[k],
                                  .stride = j->key_stride[s->axis[k]],
                                  .dim = j->out->shape[s->axis[k]],
                                  .last = s->last[k] };
    }
    err = vk_indices(e, &a->index_addr, x, a->n_index);
out:
    return err;
}

static enum err encode_keys(const struct job *j, struct vk_enc *e)
{
    struct scatter_keys_args a = { .n = (uint32_t)j->s.n, .n_index = (uint32_t)j->s.n_index };
    uint32_t workgroup = launch_loose_workgroup(j->s.n);
    struct vk_kernel kernel = { NULL, VARIANT_COUNT };
    enum err err;

    TRY(kern_pipe(&kernel.pipe, KERN_SCATTER_KEYS, -1, (uint32_t[]){ workgroup, 1, 1 }, 3));
    TRY(set_keys(&a, j, e));
    TRY(vk_enc_write(e, &a.keys, j->keys));
    err = vk_enc_dispatch(e, kernel, &a, sizeof a,
                          launch_grid((uint64_t)ceil_div((int64_t)j->s.n, workgroup)));
out:
    return err;
}

/* ---- variants ---- */

static int64_t item_size(const struct job *j)
{
    return (int64_t)dt_size((enum dtype)j->out->dtype);
}

static int64_t unit_size(const struct job *j, enum variant_id id)
{
    switch (id) {
    case VARIANT_SCATTER_PUT_ELEMENT:
    case VARIANT_SCATTER_FOLD_ELEMENT:
        return item_size(j);
    case VARIANT_SCATTER_FOLD_WIDE:
        return 16;
    default:
        return 16 >> (id - VARIANT_SCATTER_PUT_16);
    }
}

static bool are_whole(const struct shp *shape, const int64_t *strides, int64_t per_unit)
{
    for (int i = 0; i < shape->ndim; i++)
        if (shape->d[i] > 1 && strides[i] % per_unit)
            return false;
    return true;
}

/* A unit of several elements fits if every slice is a whole number of units, each of them
 * consecutive and aligned in both arrays. */
static enum variant_reason judge(void *job, enum variant_id id)
{
    const struct job *j = job;
    const struct nest *s = &j->slice;
    int64_t bytes = unit_size(j, id), per_unit = bytes / item_size(j);
    int last = s->ndim - 1;

    if (id == VARIANT_SCATTER_PUT_ELEMENT || id == VARIANT_SCATTER_FOLD_ELEMENT)
        return VARIANT_FITS;
    if (!gate_on(GATE_VK_SCATTER_WIDE))
        return VARIANT_OFF;
    if (per_unit <= 1)
        return VARIANT_DTYPE;
    if (last < 0 || s->dim[last] % per_unit)
        return VARIANT_SIZE;
    if ((j->dst_addr | j->updates_addr) % (uint64_t)bytes)
        return VARIANT_LAYOUT;
    for (int o = DST; o <= UPDATE; o++) {
        if (s->stride[o][last] != 1)
            return VARIANT_LAYOUT;
        for (int i = 0; i < last; i++)
            if (s->stride[o][i] % per_unit)
                return VARIANT_LAYOUT;
    }
    return are_whole(&j->key_shape, j->key_out, per_unit) &&
                   are_whole(&j->s.position, j->s.update_position, per_unit)
               ? VARIANT_FITS
               : VARIANT_LAYOUT;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct job *j = data;

    snprintf(text, size, "%s by %s, %zu positions of %zu elements",
             dt_name((enum dtype)j->out->dtype), update_kind_words.word[j->s.kind], j->s.n,
             j->s.slice_n);
}

static enum err build_put(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    static const enum kern_id kerns[] = { KERN_SCATTER_PUT_1, KERN_SCATTER_PUT_2,
                                          KERN_SCATTER_PUT_4, KERN_SCATTER_PUT_8,
                                          KERN_SCATTER_PUT_16 };
    struct job *j = job;
    int64_t bytes = unit_size(j, id);

    j->per_unit = bytes / item_size(j);
    return kern_pipe(pipe, kerns[launch_log2((uint64_t)bytes)], -1,
                     (uint32_t[]){ j->workgroup, 1, 1 }, 3);
}

/* How a fold combines: truth values are added by or, multiplied by and. */
static uint32_t fold_kind(const struct job *j)
{
    static const uint32_t kinds[] = { [UPDATE_MAX] = REDUCE_MAX,
                                      [UPDATE_MIN] = REDUCE_MIN,
                                      [UPDATE_SUM] = REDUCE_SUM,
                                      [UPDATE_PROD] = REDUCE_PROD };

    if (j->out->dtype == DT_BOOL && j->s.kind == UPDATE_SUM)
        return REDUCE_OR;
    if (j->out->dtype == DT_BOOL && j->s.kind == UPDATE_PROD)
        return REDUCE_AND;
    return kinds[j->s.kind];
}

static enum err fold_pipe(const struct vk_pipe **pipe, const struct job *j, bool is_join)
{
    enum kern_id kern = j->per_unit > 1 ? KERN_SCATTER_FOLD_WIDE : KERN_SCATTER_FOLD;
    uint32_t spec[] = { j->workgroup, 1, 1, fold_kind(j), is_join };

    return kern_pipe(pipe, kern, j->out->dtype, spec, ARRAY_LEN(spec));
}

static enum err build_fold(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    struct job *j = job;

    j->per_unit = unit_size(j, id) / item_size(j);
    return fold_pipe(pipe, j, false);
}

static const struct variant_table put_variants = {
    VARIANT_SCATTER_PUT_16,        VARIANT_SCATTER_PUT_ELEMENT, judge, build_put, describe,
    "positions x elements of each"
};
static const struct variant_table fold_variants = {
    VARIANT_SCATTER_FOLD_WIDE,     VARIANT_SCATTER_FOLD_ELEMENT, judge, build_fold, describe,
    "positions x elements of each"
};

/* ---- slices ---- */

static void collapse_slice(struct job *j)
{
    int64_t strides[SHP_MAX];
    const int64_t *both[] = { [DST] = strides, [UPDATE] = j->s.update_slice };

    for (int i = 0; i < j->s.slice.ndim; i++)
        strides[i] = j->out->strides[j->s.axis_of[i]];
    shp_collapse(&j->slice, &j->s.slice, both, 2);
}

static bool is_consecutive(const struct nest *n)
{
    return n->ndim <= 1 && (n->ndim == 0 || (n->stride[DST][0] == 1 && n->stride[UPDATE][0] == 1));
}

static enum err set_slice(struct scatter_args *a, struct job *j, struct vk_enc *e)
{
    struct walk_args walks[2];
    struct nest *s = &j->slice;
    int last = s->ndim - 1;

    if (j->per_unit > 1) {
        s->dim[last] /= j->per_unit;
        for (int i = 0; i < last; i++)
            for (int o = DST; o <= UPDATE; o++)
                s->stride[o][i] /= j->per_unit;
    }
    if (is_consecutive(s))
        return ERR_OK;
    for (int o = DST; o <= UPDATE; o++)
        launch_walk(&walks[o], s->dim, s->stride[o], s->ndim);
    return vk_enc_args(e, &a->slice_walk, walks, sizeof walks);
}

/* Strides in units. */
static enum err unit_walk(uint64_t *addr, struct vk_enc *e, const struct shp *shape,
                          const int64_t *strides, int64_t per_unit)
{
    int64_t in_units[SHP_MAX];

    for (int i = 0; i < shape->ndim; i++)
        in_units[i] = strides[i] / per_unit;
    return walk_of(addr, e, shape, in_units);
}

static enum err set_walks(struct scatter_args *a, struct job *j, struct vk_enc *e)
{
    enum err err;

    TRY(set_slice(a, j, e));
    TRY(unit_walk(&a->key_walk, e, &j->key_shape, j->key_out, j->per_unit));
    err = unit_walk(&a->position_walk, e, &j->s.position, j->s.update_position, j->per_unit);
out:
    return err;
}

static enum err read_order(struct scatter_args *a, const struct job *j, struct vk_enc *e)
{
    enum err err;

    TRY(vk_enc_read(e, &a->keys, j->keys));
    err = vk_enc_read(e, &a->places, j->places);
out:
    return err;
}

static struct vk_grid grid_of(const struct scatter_args *a, const struct job *j, uint64_t n)
{
    return launch_grid((uint64_t)ceil_div((int64_t)(n * a->slice), j->workgroup));
}

/* Parts of either end of every chunk. */
static size_t parts_size(const struct scatter_args *a, const struct job *j)
{
    size_t part = item_size(j) == 8 ? 8 : 4;

    return 2 * (size_t)ceil_div(a->n, a->chunk) * a->slice * (size_t)j->per_unit * part;
}

static enum err encode_join(struct scatter_args *a, const struct job *j, struct vk_enc *e)
{
    struct vk_kernel kernel = { NULL, VARIANT_COUNT };
    enum err err;

    TRY(fold_pipe(&kernel.pipe, j, true));
    TRY(read_order(a, j, e));
    vk_enc_scratch_read(e, a->parts, parts_size(a, j));
    TRY(vk_enc_write(e, &a->dst, j->out));
    err = vk_enc_dispatch(e, kernel, a, sizeof *a, grid_of(a, j, (a->n - 1) / a->chunk));
out:
    return err;
}

/* So that neither a chunk nor the number of chunks, which one lane may go through in the worst
 * case, is much larger than the other. */
static uint32_t chunk_of(size_t n)
{
    uint32_t forced = (uint32_t)gate_int(GATE_VK_SCATTER_CHUNK);

    return forced ? forced : MAX(MIN_CHUNK, 1u << (launch_log2(n) + 1) / 2);
}

static enum err encode_slices(struct job *j, struct vk_enc *e)
{
    bool is_put = j->s.kind == UPDATE_NONE;
    struct scatter_args a = { .n = (uint32_t)j->s.n, .chunk = chunk_of(j->s.n) };
    struct vk_kernel kernel;
    enum err err;

    TRY(vk_enc_write(e, &j->dst_addr, j->out));
    TRY(vk_enc_read(e, &j->updates_addr, j->s.updates));
    collapse_slice(j);
    j->workgroup = launch_loose_workgroup(j->s.n * j->s.slice_n);
    TRY(variant_pick(&kernel, is_put ? &put_variants : &fold_variants, j,
                     (int64_t[VARIANT_SIZES]){ (int64_t)j->s.n, (int64_t)j->s.slice_n }));
    TRY(set_walks(&a, j, e));
    TRY(read_order(&a, j, e));
    a.dst = j->dst_addr;
    a.updates = j->updates_addr;
    a.slice = j->s.slice_n / (uint64_t)j->per_unit;
    if (!is_put && a.n > a.chunk)
        TRY(vk_enc_scratch(e, &a.parts, parts_size(&a, j)));
    TRY(vk_enc_dispatch(e, kernel, &a, sizeof a, grid_of(&a, j, a.n)));
    if (!is_put && a.n > a.chunk)
        err = encode_join(&a, j, e);
out:
    return err;
}

static enum err encode(struct job *j)
{
    struct vk_enc *e;
    enum err err;

    TRY(number_places(j));
    TRY(new_numbers(&j->keys, j));
    TRY(new_numbers(&j->places, j));
    TRY(vk_enc_get(&e, j->strm));
    TRY(encode_keys(j, e));
    TRY(vk_sort_places(j->strm, j->places, j->keys));
    err = encode_slices(j, e);
out:
    return err;
}

/* Work that is encoded already may use the scratch of an op that failed later. */
static enum err let_go(struct arr **a, struct strm *s, enum err err)
{
    enum err held = *a && (*a)->buf ? s->be->hold(s, &(*a)->buf, 1) : ERR_OK;

    arr_unref(a);
    return err ? err : held;
}

enum err vk_scatter(const struct exec *x)
{
    struct job j = { .strm = x->strm, .out = x->out[0] };
    enum err err;

    if (!x->out[0]->size)
        return arr_alloc(x->out[0], x->strm->be);
    be_scatter_plan(&j.s, x);
    TRY(be_take_over(x->strm, x->out[0], x->in[0]));
    if (j.s.n && j.s.slice_n)
        err = encode(&j);
    err = let_go(&j.keys, x->strm, err);
    err = let_go(&j.places, x->strm, err);
out:
    return err;
}

/* ---- by a mask ---- */

static enum err encode_masked(const struct exec *x, const struct arr *counts, struct vk_enc *e)
{
    static const enum kern_id kerns[] = { KERN_MASKED_SCATTER_1, KERN_MASKED_SCATTER_2,
                                          KERN_MASKED_SCATTER_4, KERN_MASKED_SCATTER_8 };
    const struct arr *out = x->out[0], *values = x->in[2];
    struct masked_scatter_args a = { .n_rows = (uint64_t)out->shape[0] };
    uint32_t workgroup = launch_loose_workgroup(out->size);
    struct vk_kernel kernel = { NULL, VARIANT_COUNT };
    struct shp shape;
    enum err err;

    TRY(kern_pipe(&kernel.pipe, kerns[launch_log2(dt_size((enum dtype)out->dtype))], -1,
                  (uint32_t[]){ workgroup, 1, 1 }, 3));
    a.row_len = (uint32_t)(out->size / a.n_rows);
    a.n_values = (uint32_t)MIN(values->size / a.n_rows, UINT32_MAX);
    arr_shape(&shape, out);
    TRY(walk_of(&a.dst_walk, e, &shape, out->strides));
    arr_shape(&shape, values);
    TRY(walk_of(&a.value_walk, e, &shape, values->strides));
    TRY(vk_enc_read(e, &a.counts, counts));
    TRY(vk_enc_read(e, &a.values, values));
    TRY(vk_enc_write(e, &a.dst, out));
    err = vk_enc_dispatch(e, kernel, &a, sizeof a,
                          launch_grid((uint64_t)ceil_div((int64_t)out->size, workgroup)));
out:
    return err;
}

enum err vk_masked_scatter(const struct exec *x)
{
    struct arr *out = x->out[0], *counts = NULL;
    struct shp shape;
    struct vk_enc *e;
    enum err err;

    if (!out->size)
        return arr_alloc(out, x->strm->be);
    TRY(be_take_over(x->strm, out, x->in[0]));
    if (!x->in[2]->size)
        goto out;
    arr_shape(&shape, out);
    if (out->size / (size_t)out->shape[0] > UINT32_MAX)
        return err_set(ERR_UNSUPPORTED, "[masked_scatter] Rows of %s are too long for Vulkan.",
                       shp_text(&shape));
    TRY(arr_new_empty(&counts, &shape, DT_UINT32));
    TRY(be_copy_dense(x->strm, counts, x->in[1]));
    TRY(vk_scan_counts(x->strm, counts, (uint64_t)out->shape[0]));
    TRY(vk_enc_get(&e, x->strm));
    err = encode_masked(x, counts, e);
out:
    return let_go(&counts, x->strm, err);
}
