/* safetensors: 8 bytes with the length of the header, the header as JSON, the data. */
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/load.h"
#include "io/io.h"

/* The limit of the format's own implementation. */
#define HEADER_MAX 100000000

#define METADATA "__metadata__"

static const struct st_type {
    const char *name;
    enum dtype dtype;
    enum codec codec;
} types[] = {
    { "F32", DT_FLOAT32, CODEC_RAW },   { "F16", DT_FLOAT16, CODEC_RAW },
    { "BF16", DT_BFLOAT16, CODEC_RAW }, { "I64", DT_INT64, CODEC_RAW },
    { "I32", DT_INT32, CODEC_RAW },     { "I16", DT_INT16, CODEC_RAW },
    { "I8", DT_INT8, CODEC_RAW },       { "U64", DT_UINT64, CODEC_RAW },
    { "U32", DT_UINT32, CODEC_RAW },    { "U16", DT_UINT16, CODEC_RAW },
    { "U8", DT_UINT8, CODEC_RAW },      { "BOOL", DT_BOOL, CODEC_BOOL },
    { "C64", DT_COMPLEX64, CODEC_RAW }, { "F8_E4M3", DT_UINT8, CODEC_RAW },
    { "F8_E8M0", DT_UINT8, CODEC_RAW }, /* load only: a dtype's first row names it when saving */
};

/* ---- loading ---- */

struct extent {
    int64_t begin, end;
    const char *name;
};

struct loader {
    struct source *src;
    struct strm *strm;
    struct io_arrays *out;
    struct io_texts *metadata;
    uint64_t data; /* where it begins */
    VEC(struct extent) extents;
};

/* Texts get the name of the function at the end of io_load_safetensors. */
static enum err PRINTF_LIKE(3, 4)
    fail(const struct loader *l, const char *tensor, const char *fmt, ...)
{
    char what[ERR_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return err_set(ERR_RUNTIME, "Tensor '%s' of %s: %s", tensor, source_name(l->src), what);
}

static enum err read_header(struct json_doc **out, struct loader *l)
{
    uint64_t size = source_size(l->src), n = 0;
    const char *name = source_name(l->src);
    char *text = NULL;
    enum err err;

    if (size < sizeof n)
        return err_set(ERR_RUNTIME, "%s has only %llu bytes", name, (unsigned long long)size);
    TRY(source_read(l->src, &n, sizeof n, 0));
    if (n == 0 || n >= HEADER_MAX)
        return err_set(ERR_RUNTIME, "%s: invalid header length %llu", name, (unsigned long long)n);
    if (n > size - sizeof n)
        return err_set(ERR_RUNTIME,
                       "%s: the header is %llu bytes long but the file is only "
                       "%llu bytes. Perhaps an incomplete download or corrupt file?",
                       name, (unsigned long long)n, (unsigned long long)size);
    if (!(text = mem_alloc_aligned((size_t)n)))
        return ERR_NO_MEMORY;
    TRY(source_read(l->src, text, (size_t)n, sizeof n));
    TRY(json_parse(out, text, (size_t)n, name));
    l->data = sizeof n + n;
out:
    mem_free(text);
    return err;
}

static enum err read_metadata(struct io_texts *out, struct json v)
{
    const char *text;
    enum err err = ERR_OK;

    if (json_kind(v) == JSON_NULL)
        return ERR_OK;
    if (json_kind(v) != JSON_OBJECT)
        return json_fail(v, "expected an object");
    JSON_EACH(member, v)
    {
        TRY(json_string(&text, member));
        TRY(io_texts_add(out, json_key(member), text));
    }
out:
    return err;
}

static const struct st_type *find_type(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

static enum err read_shape(struct shp *out, struct json v)
{
    enum err err = ERR_OK;

    out->ndim = 0;
    JSON_EACH(dim, v)
    {
        int64_t d;
        TRY(json_int(&d, dim));
        if (d < 0 || d > INT32_MAX || out->ndim == SHP_MAX)
            return json_fail(v, "not a shape that an array can have");
        out->d[out->ndim++] = (int32_t)d;
    }
out:
    return err;
}

static enum err read_extent(struct extent *out, struct json v)
{
    struct json first = json_first(v), second = json_next(first);
    enum err err;

    if (json_count(v) != 2)
        return json_fail(v, "must have exactly 2 entries");
    TRY(json_int(&out->begin, first));
    TRY(json_int(&out->end, second));
out:
    return err;
}

static enum err check_extent(const struct loader *l, const struct extent *e,
                             const struct shp *shape, enum dtype t)
{
    int64_t size, bytes, room = (int64_t)(source_size(l->src) - l->data);

    if (!shp_size_checked(shape, &size) || MUL_OVERFLOWS(size, (int64_t)dt_size(t), &bytes))
        return fail(l, e->name, "the shape is too large");
    if (e->begin < 0 || e->end < e->begin || e->end - e->begin != bytes)
        return fail(l, e->name, "invalid data offsets (%lld, %lld). Expecting %lld bytes.",
                    (long long)e->begin, (long long)e->end, (long long)bytes);
    if (e->end > room)
        return fail(l, e->name,
                    "invalid data offsets (%lld, %lld) exceeding the size of the file. Perhaps an "
                    "incomplete download or corrupt file?",
                    (long long)e->begin, (long long)e->end);
    return ERR_OK;
}

static enum err read_tensor(struct loader *l, struct json v)
{
    struct extent e = { .name = json_key(v) };
    const struct st_type *type;
    const char *type_name;
    struct json shape_list, offsets;
    struct shp shape;
    struct arr *a = NULL;
    enum err err;

    TRY(json_get_string(&type_name, v, "dtype"));
    TRY(json_get(&shape_list, v, "shape", JSON_ARRAY));
    TRY(json_get(&offsets, v, "data_offsets", JSON_ARRAY));
    if (!(type = find_type(type_name)))
        return json_fail(v, "unsupported dtype %s", type_name);
    TRY(read_shape(&shape, shape_list));
    TRY(read_extent(&e, offsets));
    TRY(check_extent(l, &e, &shape, type->dtype));
    TRY(VEC_PUSH(&l->extents, e));
    TRY(ops_load(&a,
                 &(struct load_part){ .source = l->src,
                                      .offset = l->data + (uint64_t)e.begin,
                                      .codec = type->codec,
                                      .name = e.name },
                 &shape, type->dtype, l->strm));
    err = io_arrays_add(l->out, e.name, a);
out:
    return err;
}

static int compare_extents(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Tensors must not share bytes. Bytes that belong to none are let pass, as MLX does, but somebody
 * who misses a tensor should hear of them. */
static enum err check_cover(struct loader *l)
{
    uint64_t room = source_size(l->src) - l->data, used = 0;
    int64_t at = 0;

    if (l->extents.n)
        qsort(l->extents.v, l->extents.n, sizeof l->extents.v[0], compare_extents);
    for (size_t i = 0; i < l->extents.n; i++) {
        const struct extent *e = &l->extents.v[i];
        if (e->begin < at)
            return fail(l, e->name, "its data overlap those of another tensor");
        used += (uint64_t)(e->end - e->begin);
        at = e->end;
    }
    if (used != room)
        log_warn("%s: %llu bytes belong to no tensor", source_name(l->src),
                 (unsigned long long)(room - used));
    return ERR_OK;
}

static enum err read_entries(struct loader *l, const struct json_doc *doc)
{
    struct json root = json_root(doc);
    enum err err = ERR_OK;

    if (json_kind(root) != JSON_OBJECT)
        return json_fail(root, "the header is no object");
    JSON_EACH(v, root)
    if (strcmp(json_key(v), METADATA) == 0)
        TRY(read_metadata(l->metadata, v));
    else
        TRY(read_tensor(l, v));
    TRY(check_cover(l));
    err = io_arrays_check_unique(l->out, source_name(l->src));
out:
    return err;
}

enum err io_load_safetensors(struct io_arrays *out, struct io_texts *metadata, struct source *src,
                             struct strm *s)
{
    struct loader l = { .src = src, .strm = s, .out = out, .metadata = metadata };
    struct json_doc *doc = NULL;
    enum err err;

    TRY(read_header(&doc, &l));
    err = read_entries(&l, doc);
out:
    json_destroy(&doc);
    VEC_FINI(&l.extents);
    if (!err)
        return ERR_OK;
    io_arrays_fini(out);
    io_texts_fini(metadata);
    return err_set(err == ERR_NO_MEMORY ? err : ERR_RUNTIME, "[load_safetensors] %s", err_text());
}

/* ---- saving ---- */

static const char *type_name(enum dtype t)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].dtype == t)
            return types[i].name;
    return NULL;
}

static int compare_tensors(const void *a, const void *b)
{
    const struct io_array *x = *(struct io_array *const *)a, *y = *(struct io_array *const *)b;
    int by_size = (int)dt_size((enum dtype)y->arr->dtype) - (int)dt_size((enum dtype)x->arr->dtype);

    return by_size ? by_size : strcmp(x->name, y->name);
}

static enum err add_metadata(struct text *t, const struct io_texts *metadata)
{
    enum err err;

    TRY(text_add(t, "{\"" METADATA "\":%s", metadata->list.n ? "{" : "null"));
    for (size_t i = 0; i < metadata->list.n; i++) {
        if (i)
            TRY(text_add(t, ","));
        TRY(json_add_string(t, metadata->list.v[i].key));
        TRY(text_add(t, ":"));
        TRY(json_add_string(t, metadata->list.v[i].value));
    }
    if (metadata->list.n)
        err = text_add(t, "}");
out:
    return err;
}

static enum err add_tensor(struct text *t, const struct io_array *item, uint64_t offset)
{
    const struct arr *a = item->arr;
    const char *type = type_name((enum dtype)a->dtype);
    enum err err;

    if (!type)
        return err_set(ERR_RUNTIME, "[save_safetensors] Tensor '%s': %s cannot be saved.",
                       item->name, dt_name((enum dtype)a->dtype));
    TRY(text_add(t, ","));
    TRY(json_add_string(t, item->name));
    TRY(text_add(t, ":{\"dtype\":\"%s\",\"shape\":[", type));
    for (int i = 0; i < a->ndim; i++)
        TRY(text_add(t, "%s%d", i ? "," : "", a->shape[i]));
    err = text_add(t, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
                   (unsigned long long)(offset + arr_nbytes(a)));
out:
    return err;
}

static enum err make_header(struct text *t, struct io_array *const *order, size_t n,
                            const struct io_texts *metadata)
{
    uint64_t offset = 0;
    enum err err;

    TRY(add_metadata(t, metadata));
    for (size_t i = 0; i < n; i++) {
        TRY(add_tensor(t, order[i], offset));
        offset += arr_nbytes(order[i]->arr);
    }
    TRY(text_add(t, "}"));
    /* Data begin on a multiple of 8 bytes. */
    err = text_add(t, "%*s", (int)(align_up(t->s.n, 8) - t->s.n), "");
out:
    return err;
}

static enum err write_all(struct sink *out, const struct text *header, struct arr *const *dense,
                          size_t n)
{
    uint64_t length = header->s.n;
    enum err err;

    TRY(sink_write(out, &length, sizeof length));
    TRY(sink_write(out, header->s.v, header->s.n));
    for (size_t i = 0; i < n; i++)
        TRY(io_write_bytes(out, dense[i]));
out:
    return err;
}

enum err io_save_safetensors(struct sink *out, const struct io_arrays *a,
                             const struct io_texts *metadata)
{
    size_t n = a->list.n;
    struct io_array **order = mem_alloc_array(n, sizeof *order);
    struct arr **arrays = mem_alloc_array(n, sizeof *arrays),
               **dense = mem_alloc_array(n, sizeof *dense);
    struct text header = { 0 };
    enum err err = ERR_NO_MEMORY;

    if (!order || !arrays || !dense)
        goto out;
    for (size_t i = 0; i < n; i++)
        order[i] = &a->list.v[i];
    qsort(order, n, sizeof *order, compare_tensors);
    for (size_t i = 0; i < n; i++)
        arrays[i] = order[i]->arr;
    TRY(make_header(&header, order, n, metadata));
    TRY(io_make_dense(dense, (struct arrs){ arrays, n }, false));
    err = write_all(out, &header, dense, n);
    for (size_t i = 0; i < n; i++)
        arr_unref(&dense[i]);
out:
    VEC_FINI(&header.s);
    mem_free(order);
    mem_free(arrays);
    mem_free(dense);
    return err;
}
