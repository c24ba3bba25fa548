/* Writing GGUF, version 3. */
#include "io/gguf.h"

/* ---- fields ---- */

static enum err put_u32(struct sink *out, uint32_t v)
{
    return sink_write(out, &v, sizeof v);
}

static enum err put_u64(struct sink *out, uint64_t v)
{
    return sink_write(out, &v, sizeof v);
}

static enum err put_text(struct sink *out, const char *s, size_t n)
{
    enum err err = put_u64(out, n);

    return err ? err : sink_write(out, s, n);
}

/* ---- metadata ---- */

/* The type of a number, or GGUF_VALUE_TYPES. */
static enum gguf_value_type value_type(enum dtype t)
{
    static const uint8_t types[DT_COUNT] = {
        [DT_BOOL] = GGUF_BOOL,
        [DT_UINT8] = GGUF_UINT8,
        [DT_UINT16] = GGUF_UINT16,
        [DT_UINT32] = GGUF_UINT32,
        [DT_UINT64] = GGUF_UINT64,
        [DT_INT8] = GGUF_INT8,
        [DT_INT16] = GGUF_INT16,
        [DT_INT32] = GGUF_INT32,
        [DT_INT64] = GGUF_INT64,
        [DT_FLOAT32] = GGUF_FLOAT32,
        [DT_FLOAT16] = GGUF_VALUE_TYPES,
        [DT_FLOAT64] = GGUF_VALUE_TYPES,
        [DT_BFLOAT16] = GGUF_VALUE_TYPES,
        [DT_COMPLEX64] = GGUF_VALUE_TYPES,
    };

    return (enum gguf_value_type)types[t];
}

static enum err put_array(struct sink *out, const struct gguf_value *v)
{
    enum gguf_value_type type = value_type((enum dtype)v->arr->dtype);
    struct arr *dense = NULL;
    enum err err;

    if (v->arr->ndim > 1)
        return err_set(
            ERR_RUNTIME,
            "[save_gguf] Metadata '%s': Cannot save arrays with more than one dimension.", v->key);
    if (v->arr->size == 0)
        return err_set(ERR_RUNTIME, "[save_gguf] Metadata '%s': Cannot save empty arrays.", v->key);
    if (type == GGUF_VALUE_TYPES)
        return err_set(ERR_ARG, "[save_gguf] Metadata '%s': array type %s is not supported.",
                       v->key, dt_name((enum dtype)v->arr->dtype));
    TRY(io_make_dense(&dense, (struct arrs){ &v->arr, 1 }, false));
    if (dense->ndim) {
        TRY(put_u32(out, GGUF_LIST));
        TRY(put_u32(out, type));
        TRY(put_u64(out, dense->size));
    } else {
        TRY(put_u32(out, type));
    }
    err = io_write_bytes(out, dense);
out:
    arr_unref(&dense);
    return err;
}

static enum err put_value(struct sink *out, const struct gguf_value *v)
{
    enum err err;

    TRY(put_text(out, v->key, strlen(v->key)));
    if (v->kind == GGUF_ARRAY)
        return put_array(out, v);
    if (v->kind == GGUF_STRING) {
        TRY(put_u32(out, GGUF_TEXT));
    } else {
        TRY(put_u32(out, GGUF_LIST));
        TRY(put_u32(out, GGUF_TEXT));
        TRY(put_u64(out, v->n_texts));
    }
    for (size_t i = 0; i < v->n_texts; i++)
        TRY(put_text(out, v->texts[i].s, v->texts[i].n));
out:
    return err;
}

/* ---- tensors ---- */

static const struct {
    enum dtype dtype;
    uint32_t number; /* in gguf_types.def */
} saved_types[] = {
    { DT_FLOAT32, 0 }, { DT_FLOAT16, 1 }, { DT_INT8, 24 }, { DT_INT16, 25 }, { DT_INT32, 26 },
};

static enum err find_type(uint32_t *out, const struct io_array *item)
{
    for (size_t i = 0; i < ARRAY_LEN(saved_types); i++)
        if (saved_types[i].dtype == item->arr->dtype) {
            *out = saved_types[i].number;
            return ERR_OK;
        }
    return err_set(ERR_RUNTIME, "[save_gguf] Tensor '%s': dtype %s is not supported", item->name,
                   dt_name((enum dtype)item->arr->dtype));
}

static enum err put_info(struct sink *out, const struct io_array *item, uint64_t offset)
{
    const struct arr *a = item->arr;
    uint32_t type = 0;
    enum err err;

    TRY(find_type(&type, item));
    if (a->ndim > GGUF_MAX_DIMS)
        return err_set(ERR_RUNTIME, "[save_gguf] Tensor '%s' has %d dimensions", item->name,
                       a->ndim);
    TRY(put_text(out, item->name, strlen(item->name)));
    TRY(put_u32(out, a->ndim));
    for (int i = a->ndim - 1; i >= 0; i--)
        TRY(put_u64(out, (uint64_t)a->shape[i]));
    TRY(put_u32(out, type));
    err = put_u64(out, offset);
out:
    return err;
}

static enum err put_padding(struct sink *out, uint64_t alignment)
{
    return sink_pad(out, (size_t)((alignment - sink_at(out) % alignment) % alignment));
}

static enum err put_tensors(struct sink *out, const struct gguf *g, uint64_t alignment)
{
    uint64_t offset = 0;
    struct arr *dense = NULL;
    enum err err = ERR_OK;

    for (size_t i = 0; i < g->arrays.list.n; i++) {
        TRY(put_info(out, &g->arrays.list.v[i], offset));
        offset += arr_nbytes(g->arrays.list.v[i].arr);
        offset += (alignment - offset % alignment) % alignment;
    }
    TRY(put_padding(out, alignment));
    for (size_t i = 0; i < g->arrays.list.n; i++) {
        TRY(io_make_dense(&dense, (struct arrs){ &g->arrays.list.v[i].arr, 1 }, false));
        TRY(io_write_bytes(out, dense));
        TRY(put_padding(out, alignment));
        arr_unref(&dense);
    }
out:
    arr_unref(&dense);
    return err;
}

enum err gguf_save(struct sink *out, const struct gguf *g)
{
    uint64_t alignment = 0;
    enum err err;

    TRY(gguf_alignment(&alignment, g));
    TRY(put_u32(out, GGUF_MAGIC));
    TRY(put_u32(out, GGUF_VERSION));
    TRY(put_u64(out, g->arrays.list.n));
    TRY(put_u64(out, g->metadata.n));
    for (size_t i = 0; i < g->metadata.n; i++)
        TRY(put_value(out, &g->metadata.v[i]));
    err = put_tensors(out, g, alignment);
out:
    return err;
}
