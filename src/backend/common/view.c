/* Views: outputs that share their input's bytes (docs/runtime.md). Some copy when the layout asks.
 */
#include "backend/common/families.h"

/* Shares with the flags that shape and strides imply. */
static void share(struct arr *out, const struct arr *in, const int64_t *strides, size_t data_size,
                  int64_t element_offset)
{
    struct shp s;

    arr_shape(&s, out);
    arr_share(out, in, strides, shp_layout_flags(&s, strides, data_size), data_size,
              element_offset);
}

enum err be_copy_dense(struct strm *s, struct arr *out, struct arr *src)
{
    int64_t strides[SHP_MAX];
    struct shp shape;
    enum err err;

    TRY(arr_alloc(out, s->be));
    arr_shape(&shape, src);
    shp_row_strides(strides, &shape);
    err = s->be->copy(s, &(struct be_copy){ .src = src,
                                            .dst = out,
                                            .shape = &shape,
                                            .src_strides = src->strides,
                                            .dst_strides = strides });
out:
    return err;
}

/* ---- pure views ---- */

static enum err view_same(const struct exec *x)
{
    arr_share_all(x->out[0], x->in[0]);
    return ERR_OK;
}

static enum err view_alias(const struct exec *x)
{
    const struct alias_params *p = x->node->params;

    for (int o = 0; o < x->n_out; o++)
        arr_share_all(x->out[o], x->in[p->first + o]);
    return ERR_OK;
}

static enum err view_broadcast(const struct exec *x)
{
    const struct arr *in = x->in[0];
    struct arr *out = x->out[0];
    int64_t strides[SHP_MAX] = { 0 };
    int lead = out->ndim - in->ndim;

    for (int i = 0; i < in->ndim; i++)
        strides[lead + i] = in->shape[i] == out->shape[lead + i] ? in->strides[i] : 0;
    share(out, in, strides, in->data_size, 0);
    return ERR_OK;
}

static bool has_axis(const struct axes_params *p, int axis)
{
    for (int i = 0; i < p->n; i++)
        if (p->axis[i] == axis)
            return true;
    return false;
}

static enum err view_expand_dims(const struct exec *x)
{
    const struct axes_params *p = x->node->params;
    const struct arr *in = x->in[0];
    struct arr *out = x->out[0];
    int64_t strides[SHP_MAX];

    for (int i = 0, j = 0; i < out->ndim; i++)
        strides[i] = has_axis(p, i) ? 1 : in->strides[j++];
    arr_share(out, in, strides, in->flags, in->data_size, 0);
    return ERR_OK;
}

static enum err view_squeeze(const struct exec *x)
{
    const struct axes_params *p = x->node->params;
    const struct arr *in = x->in[0];
    int64_t strides[SHP_MAX];

    for (int i = 0, j = 0; i < in->ndim; i++)
        if (!has_axis(p, i))
            strides[j++] = in->strides[i];
    arr_share(x->out[0], in, strides, in->flags, in->data_size, 0);
    return ERR_OK;
}

static enum err view_transpose(const struct exec *x)
{
    const struct axes_params *p = x->node->params;
    const struct arr *in = x->in[0];
    int64_t strides[SHP_MAX];

    for (int i = 0; i < p->n; i++)
        strides[i] = in->strides[p->axis[i]];
    share(x->out[0], in, strides, in->data_size, 0);
    return ERR_OK;
}

/* Part of an array: the span shrinks to what the part reaches. */
static void share_part(struct arr *out, const struct arr *in, const int64_t *strides,
                       int64_t element_offset)
{
    struct shp s;

    arr_shape(&s, out);
    share(out, in, strides, shp_span(&s, strides), element_offset);
}

int64_t be_slice_strides(int64_t *strides, const struct arr *a, const struct slice_params *p)
{
    int64_t offset = 0;

    for (int i = 0; i < a->ndim; i++) {
        strides[i] = a->strides[i] * p->d[i].step;
        offset += a->strides[i] * p->d[i].start;
    }
    return offset;
}

static enum err view_slice(const struct exec *x)
{
    int64_t strides[SHP_MAX];
    int64_t offset = be_slice_strides(strides, x->in[0], x->node->params);

    share_part(x->out[0], x->in[0], strides, offset);
    return ERR_OK;
}

static enum err view_split(const struct exec *x)
{
    const struct split_params *p = x->node->params;
    const struct arr *in = x->in[0];
    int64_t start = 0;

    for (int o = 0; o < x->n_out; o++) {
        if (x->out[o]->size)
            share_part(x->out[o], in, in->strides, start * in->strides[p->axis]);
        start += x->out[o]->shape[p->axis];
    }
    return ERR_OK;
}

static enum err view_as_strided(const struct exec *x)
{
    const struct as_strided_params *p = x->node->params;
    struct arr *out = x->out[0];
    int64_t strides[SHP_MAX];
    struct shp s;

    if (!(x->in[0]->flags & LAYOUT_ROW))
        return err_set(ERR_RUNTIME, "[as_strided] The input must be row contiguous.");
    arr_shape(&s, out);
    for (int i = 0; i < p->n; i++)
        strides[i] = p->d[i].stride;
    unsigned flags = shp_layout_flags(&s, strides, out->size);
    /* Windows may overlap, and then the count of elements says nothing about holes. */
    if (!(flags & (LAYOUT_ROW | LAYOUT_COL)))
        flags &= ~(unsigned)LAYOUT_CONTIGUOUS;
    arr_share(out, x->in[0], strides, flags, shp_span(&s, strides), p->offset);
    return ERR_OK;
}

/* ---- views if the layout allows ---- */

/* Strides of out over in's bytes: every new dimension must divide the dimensions of in, merged
 * where they are contiguous, in order. False if it does not. */
static bool reshape_strides(int64_t *strides, const struct arr *out, const struct arr *in)
{
    struct nest nest;
    struct shp s;
    int j = 0;

    arr_shape(&s, in);
    shp_collapse(&nest, &s, &(const int64_t *){ in->strides }, 1);
    for (int i = 0; i < out->ndim; i++) {
        int64_t d = out->shape[i];
        strides[i] = 1;
        if (d == 1)
            continue;
        if (j == nest.ndim || nest.dim[j] % d != 0)
            return false;
        nest.dim[j] /= d;
        strides[i] = nest.dim[j] * nest.stride[0][j];
        if (nest.dim[j] == 1)
            j++;
    }
    return true;
}

static enum err view_reshape(const struct exec *x)
{
    struct arr *in = x->in[0], *out = x->out[0];
    int64_t strides[SHP_MAX];
    struct shp s;

    arr_shape(&s, out);
    if (in->flags & LAYOUT_ROW)
        shp_row_strides(strides, &s);
    else if (!reshape_strides(strides, out, in))
        return be_copy_dense(x->strm, out, in);
    share(out, in, strides, in->data_size, 0);
    return ERR_OK;
}

static bool can_reinterpret(const struct arr *in, size_t from, size_t to)
{
    return from == to || (in->flags & LAYOUT_ROW) ||
           (to < from && in->ndim && in->strides[in->ndim - 1] == 1);
}

/* The same bytes as another type: the last dimension counts other elements, the rest moves by as
 * many bytes as before. The stride of a last dimension of one element can be any number, so it is
 * not the new one's. */
static void share_bytes(struct arr *out, const struct arr *in, int64_t from, int64_t to)
{
    int64_t strides[SHP_MAX];

    if (from == to) {
        arr_share_all(out, in);
        return;
    }
    for (int i = 0; i < in->ndim; i++)
        strides[i] = i < in->ndim - 1 ? in->strides[i] * from / to : 1;
    share(out, in, strides, in->data_size * (size_t)from / (size_t)to, 0);
}

static enum err view_dtype(const struct exec *x)
{
    struct arr *in = x->in[0], *dense = NULL;
    size_t from = dt_size((enum dtype)in->dtype), to = dt_size((enum dtype)x->out[0]->dtype);
    struct shp s;
    enum err err = ERR_OK;

    if (can_reinterpret(in, from, to)) {
        share_bytes(x->out[0], in, (int64_t)from, (int64_t)to);
        return ERR_OK;
    }
    arr_shape(&s, in);
    TRY(arr_new_empty(&dense, &s, (enum dtype)in->dtype));
    TRY(be_copy_dense(x->strm, dense, in));
    share_bytes(x->out[0], dense, (int64_t)from, (int64_t)to);
out:
    arr_unref(&dense);
    return err;
}

static enum err view_contiguous(const struct exec *x)
{
    const struct contiguous_params *p = x->node->params;
    struct arr *in = x->in[0];
    unsigned wanted = LAYOUT_ROW | (p->allow_col_major ? LAYOUT_COL : 0u);

    if ((in->flags & wanted) && in->buf->size <= arr_nbytes(in) + ARR_DONATION_SLACK)
        return view_same(x);
    return be_copy_dense(x->strm, x->out[0], in);
}

enum err be_view(const struct exec *x)
{
    static const be_op_fn views[OP_COUNT] = {
        [OP_AS_STRIDED] = view_as_strided,
        [OP_BROADCAST] = view_broadcast,
        [OP_BROADCAST_AXES] = view_broadcast,
        [OP_CONTIGUOUS] = view_contiguous,
        [OP_COPY] = view_same,
        [OP_CUSTOM_TRANSFORMS] = view_alias,
        [OP_DEPENDS] = view_alias,
        [OP_EXPAND_DIMS] = view_expand_dims,
        [OP_FLATTEN] = view_reshape,
        [OP_NUMBER_OF_ELEMENTS] = view_same,
        [OP_RESHAPE] = view_reshape,
        [OP_SLICE] = view_slice,
        [OP_SPLIT] = view_split,
        [OP_SQUEEZE] = view_squeeze,
        [OP_STOP_GRADIENT] = view_same,
        [OP_TRANSPOSE] = view_transpose,
        [OP_UNFLATTEN] = view_reshape,
        [OP_VIEW] = view_dtype,
    };
    be_op_fn fn = views[x->node->op];

    return fn ? fn(x)
              : err_set(ERR_UNSUPPORTED, "[%s] The view has no implementation.",
                        op_name((enum op_id)x->node->op));
}
