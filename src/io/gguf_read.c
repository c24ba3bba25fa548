/* Reading GGUF: magic, version, counts; metadata; descriptions of the tensors; their data, each
 * aligned. */
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "graph/load.h"
#include "io/gguf.h"

#define KEY_MAX 65535
/* Sizes that the smallest entries have; more entries than fit are a lie. */
#define MIN_ENTRY 13
#define MIN_TENSOR 24

#define WEIGHT ".weight"

/* ---- numbers and texts, one after the other ---- */

struct reader {
    struct source *src;
    struct strm *strm;
    struct gguf *out;
    uint64_t at;      /* of the next byte */
    uint64_t have, n; /* place and number of the bytes in buf */
    const char *what; /* key or tensor that is being read, for errors */
    const char *kind; /* "Metadata" or "Tensor" */
    uint64_t alignment;
    uint8_t buf[65536];
};

static enum err PRINTF_LIKE(2, 3) fail(const struct reader *r, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (!r->what)
        return err_set(ERR_RUNTIME, "[load_gguf] %s: %s", source_name(r->src), text);
    return err_set(ERR_RUNTIME, "[load_gguf] %s '%.200s' of %s: %s", r->kind, r->what,
                   source_name(r->src), text);
}

static uint64_t left(const struct reader *r)
{
    return source_size(r->src) - r->at;
}

static enum err refill(struct reader *r)
{
    r->n = MIN(left(r), sizeof r->buf);
    r->have = r->at;
    return source_read(r->src, r->buf, (size_t)r->n, r->at);
}

static enum err take(struct reader *r, void *dst, size_t n)
{
    enum err err = ERR_OK;

    if (n > left(r))
        return fail(r, "the file ends early. Perhaps an incomplete download or corrupt file?");
    if (n > sizeof r->buf) {
        TRY(source_read(r->src, dst, n, r->at));
        r->at += n;
        return ERR_OK;
    }
    if (r->at < r->have || r->at + n > r->have + r->n)
        TRY(refill(r));
    memcpy(dst, r->buf + (r->at - r->have), n);
    r->at += n;
out:
    return err;
}

static enum err take_u32(struct reader *r, uint32_t *out)
{
    return take(r, out, sizeof *out);
}

static enum err take_u64(struct reader *r, uint64_t *out)
{
    return take(r, out, sizeof *out);
}

/* A terminated copy. */
static enum err take_text(struct reader *r, struct gguf_text *out, uint64_t max)
{
    uint64_t n = 0;
    char *s;
    enum err err;

    TRY(take_u64(r, &n));
    if (n > left(r) || n > max)
        return fail(r, "a text of %llu bytes is longer than it can be", (unsigned long long)n);
    if (!(s = mem_alloc((size_t)n + 1)))
        return ERR_NO_MEMORY;
    if ((err = take(r, s, (size_t)n)) != ERR_OK)
        mem_free(s);
    else
        *out = (struct gguf_text){ s, (size_t)n };
out:
    return err;
}

/* A text that names something. */
static enum err take_name(struct reader *r, char **out)
{
    struct gguf_text t = { 0 };
    enum err err;

    r->what = NULL;
    TRY(take_text(r, &t, KEY_MAX));
    if (strlen(t.s) != t.n) {
        mem_free(t.s);
        return fail(r, "a name holds a zero byte");
    }
    *out = t.s;
out:
    return err;
}

/* ---- metadata ---- */

static const struct {
    uint8_t size; /* in the file; 0: has none of its own */
    uint8_t dtype;
    uint8_t codec;
} value_types[GGUF_VALUE_TYPES] = {
    [GGUF_UINT8] = { 1, DT_UINT8, CODEC_RAW },         [GGUF_INT8] = { 1, DT_INT8, CODEC_RAW },
    [GGUF_UINT16] = { 2, DT_UINT16, CODEC_RAW },       [GGUF_INT16] = { 2, DT_INT16, CODEC_RAW },
    [GGUF_UINT32] = { 4, DT_UINT32, CODEC_RAW },       [GGUF_INT32] = { 4, DT_INT32, CODEC_RAW },
    [GGUF_FLOAT32] = { 4, DT_FLOAT32, CODEC_RAW },     [GGUF_BOOL] = { 1, DT_BOOL, CODEC_BOOL },
    [GGUF_UINT64] = { 8, DT_UINT64, CODEC_RAW },       [GGUF_INT64] = { 8, DT_INT64, CODEC_RAW },
    [GGUF_FLOAT64] = { 8, DT_FLOAT32, CODEC_F64_F32 },
};

/* A leaf in host memory, whatever the default device is: metadata are read by the host. */
static enum err new_leaf(struct arr **out, void *bytes, const struct shp *shape, enum dtype t)
{
    struct arr *a = NULL;
    enum err err;

    TRY(arr_new_empty(&a, shape, t));
    TRY(arr_adopt(a, bytes, mem_free, bytes));
    atomic_store(&a->status, ARR_AVAILABLE);
    *out = a;
    a = NULL;
out:
    arr_unref(&a);
    return err;
}

/* n numbers of the file; a scalar where n is the shape's size of a 0-d array. */
static enum err take_numbers(struct reader *r, struct arr **out, uint32_t type,
                             const struct shp *shape)
{
    size_t n = shp_size(shape), size = value_types[type].size;
    enum dtype t = (enum dtype)value_types[type].dtype;
    const struct codec_info *c = &codec_table[value_types[type].codec];
    char *bytes = NULL;
    enum err err;

    if (n == 0)
        return arr_new_data(out, NULL, shape, t);
    if (!(bytes = mem_alloc_aligned(n * size)))
        return ERR_NO_MEMORY;
    TRY(take(r, bytes, n * size));
    if (c->decode) /* forwards, and never longer than what is read */
        c->decode(bytes, bytes, n);
    TRY(new_leaf(out, bytes, shape, t));
    bytes = NULL;
out:
    mem_free(bytes);
    return err;
}

static enum err take_texts(struct reader *r, struct gguf_value *v, uint64_t n)
{
    enum err err = ERR_OK;

    if (n > left(r) / sizeof(uint64_t))
        return fail(r, "a list of %llu texts does not fit the file", (unsigned long long)n);
    if (!(v->texts = mem_alloc_array((size_t)n, sizeof *v->texts)))
        return ERR_NO_MEMORY;
    for (; v->n_texts < n; v->n_texts++)
        TRY(take_text(r, &v->texts[v->n_texts], UINT64_MAX));
out:
    return err;
}

static enum err take_list(struct reader *r, struct gguf_value *v)
{
    uint32_t type = 0;
    uint64_t n = 0;
    enum err err;

    TRY(take_u32(r, &type));
    TRY(take_u64(r, &n));
    if (type == GGUF_LIST)
        return err_set(ERR_ARG,
                       "[load_gguf] Metadata '%.200s' of %s: Only supports loading 1-layer of "
                       "nested arrays.",
                       v->key, source_name(r->src));
    if (type == GGUF_TEXT) {
        v->kind = GGUF_STRINGS;
        return take_texts(r, v, n);
    }
    if (type >= GGUF_VALUE_TYPES)
        return fail(r, "unknown type %u", type);
    if (n > INT32_MAX || n > left(r) / value_types[type].size)
        return fail(r, "a list of %llu numbers does not fit the file", (unsigned long long)n);
    err = take_numbers(r, &v->arr, type, &(struct shp){ .ndim = 1, .d = { (int32_t)n } });
out:
    return err;
}

static enum err take_value(struct reader *r, struct gguf_value *v)
{
    uint32_t type = 0;
    enum err err;

    TRY(take_u32(r, &type));
    if (type >= GGUF_VALUE_TYPES)
        return fail(r, "unknown type %u", type);
    if (type == GGUF_TEXT) {
        v->kind = GGUF_STRING;
        return take_texts(r, v, 1);
    }
    if (type == GGUF_LIST)
        return take_list(r, v);
    err = take_numbers(r, &v->arr, type, &(struct shp){ .ndim = 0 });
out:
    return err;
}

static enum err check_keys(struct reader *r)
{
    size_t n = r->out->metadata.n;
    const char **keys = mem_alloc_array(n, sizeof *keys);

    if (!keys)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        keys[i] = r->out->metadata.v[i].key;
    r->what = io_find_duplicate(keys, n);
    mem_free(keys);
    return r->what ? fail(r, "the key is there twice") : ERR_OK;
}

static enum err take_metadata(struct reader *r, uint64_t count)
{
    struct gguf_value v = { 0 };
    enum err err = ERR_OK;

    r->kind = "Metadata";
    for (uint64_t i = 0; i < count; i++) {
        TRY(take_name(r, &v.key));
        r->what = v.key;
        TRY(take_value(r, &v));
        TRY(VEC_PUSH(&r->out->metadata, v));
        v = (struct gguf_value){ 0 };
    }
    err = check_keys(r);
out:
    r->what = NULL;
    gguf_value_fini(&v);
    return err;
}

/* ---- tensors ---- */

enum form { FORM_NONE, FORM_PLAIN, FORM_AFFINE };

struct tensor_type {
    uint32_t number;
    const char *name;
    int32_t block; /* elements */
    uint8_t form, dtype;
    uint8_t codec[3];
};

static const struct tensor_type tensor_types[] = {
#define GGUF_TYPE(number, name, block, form, dtype, c0, c1, c2)                                    \
    { number, name, block, FORM_##form, DT_##dtype, { c0, c1, c2 } },
#include "io/gguf_types.def"
#undef GGUF_TYPE
};

struct tensor {
    char *name;
    struct shp shape; /* MLX's order, in elements */
    const struct tensor_type *type;
    uint64_t offset, bytes; /* in the data, later in the file */
};

struct tensors {
    VEC(struct tensor) list;
};

static enum err take_shape(struct reader *r, struct shp *out)
{
    uint32_t ndim = 0;
    uint64_t d = 0;
    enum err err;

    TRY(take_u32(r, &ndim));
    if (ndim > GGUF_MAX_DIMS)
        return fail(r, "it has %u dimensions", ndim);
    out->ndim = (int)ndim;
    for (int i = out->ndim - 1; i >= 0; i--) {
        TRY(take_u64(r, &d));
        if (d > INT32_MAX)
            return fail(r, "a dimension of %llu is too large", (unsigned long long)d);
        out->d[i] = (int32_t)d;
    }
out:
    return err;
}

static enum err find_type(const struct reader *r, const struct tensor_type **out, uint32_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(tensor_types); i++)
        if (tensor_types[i].number == number)
            *out = &tensor_types[i];
    if (!*out)
        return fail(r, "unknown type %u", number);
    if ((*out)->form == FORM_NONE)
        return fail(r, "tensors of type %s cannot be loaded", (*out)->name);
    return ERR_OK;
}

/* Bytes in the file. */
static enum err measure(const struct reader *r, struct tensor *t)
{
    const struct tensor_type *type = t->type;
    int64_t size, bytes;

    if (type->block > 1 && (t->shape.ndim == 0 || t->shape.d[t->shape.ndim - 1] % type->block))
        return fail(r, "%s needs a last dimension that is a multiple of %d", type->name,
                    type->block);
    /* A plain copy has blocks of one byte; the others say what an element or block takes. */
    int64_t unit = type->codec[0] == CODEC_RAW ? (int64_t)dt_size((enum dtype)type->dtype)
                                               : codec_table[type->codec[0]].in;
    if (!shp_size_checked(&t->shape, &size) || MUL_OVERFLOWS(size / type->block, unit, &bytes) ||
        MUL_OVERFLOWS(size, 8, &size))
        return fail(r, "the shape is too large");
    t->bytes = (uint64_t)bytes;
    return ERR_OK;
}

static enum err take_tensor(struct reader *r, struct tensor *t)
{
    uint32_t type = 0;
    enum err err;

    TRY(take_name(r, &t->name));
    r->what = t->name;
    TRY(take_shape(r, &t->shape));
    TRY(take_u32(r, &type));
    TRY(take_u64(r, &t->offset));
    TRY(find_type(r, &t->type, type));
    err = measure(r, t);
out:
    return err;
}

static enum err take_tensors(struct reader *r, struct tensors *out, uint64_t count)
{
    struct tensor t = { 0 };
    enum err err = ERR_OK;

    r->kind = "Tensor";
    for (uint64_t i = 0; i < count; i++) {
        t = (struct tensor){ 0 };
        TRY(take_tensor(r, &t));
        TRY(VEC_PUSH(&out->list, t));
        t.name = NULL;
    }
out:
    r->what = NULL;
    mem_free(t.name);
    return err;
}

static int compare_tensors(const void *a, const void *b)
{
    const struct tensor *x = *(const struct tensor *const *)a,
                        *y = *(const struct tensor *const *)b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static enum err check_overlaps(struct reader *r, const struct tensors *t)
{
    const struct tensor **order = mem_alloc_array(t->list.n, sizeof *order);
    uint64_t at = 0;
    enum err err = ERR_OK;

    if (!order)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < t->list.n; i++)
        order[i] = &t->list.v[i];
    qsort(order, t->list.n, sizeof *order, compare_tensors);
    for (size_t i = 0; i < t->list.n && !err; i++) {
        r->what = order[i]->name;
        if (order[i]->offset < at)
            err = fail(r, "its data overlap those of another tensor");
        at = order[i]->offset + order[i]->bytes;
    }
    mem_free(order);
    return err;
}

/* Offsets become places in the file. */
static enum err place_tensors(struct reader *r, struct tensors *t)
{
    uint64_t data = r->at + (r->alignment - r->at % r->alignment) % r->alignment;
    uint64_t room = data <= source_size(r->src) ? source_size(r->src) - data : 0;

    for (size_t i = 0; i < t->list.n; i++) {
        struct tensor *one = &t->list.v[i];
        r->what = one->name;
        if (one->offset % r->alignment)
            return fail(r, "its offset %llu is not aligned", (unsigned long long)one->offset);
        if (one->offset > room || one->bytes > room - one->offset)
            return fail(r,
                        "its data (%llu bytes at %llu) extend past the end of the file. Perhaps an "
                        "incomplete download or corrupt file?",
                        (unsigned long long)one->bytes, (unsigned long long)one->offset);
        one->offset += data;
    }
    return check_overlaps(r, t);
}

/* ---- arrays ---- */

struct piece {
    const char *name;
    struct shp shape;
    enum dtype dtype;
    enum codec codec;
};

static enum err add_array(struct reader *r, const struct tensor *t, const struct piece *p)
{
    struct load_part part = {
        .source = r->src, .offset = t->offset, .codec = p->codec, .name = t->name
    };
    struct arr *a = NULL;
    enum err err = ops_load(&a, &part, &p->shape, p->dtype, r->strm);

    return err ? err : io_arrays_add(&r->out->arrays, p->name, a);
}

/* "x.weight" -> "x.scales" */
static enum err make_name(struct text *out, const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(WEIGHT);
    size_t stem = n >= m && strcmp(name + n - m, WEIGHT) == 0 ? n - m : n;

    return text_add(out, "%.*s%s", (int)stem, name, suffix);
}

static enum err add_affine(struct reader *r, const struct tensor *t)
{
    static const char *const suffix[] = { NULL, ".scales", ".biases" };
    int last = t->shape.ndim - 1;
    int32_t words = codec_table[t->type->codec[0]].out / (int32_t)sizeof(uint32_t);
    enum err err = ERR_OK;

    for (int i = 0; i < 3; i++) {
        struct text name = { 0 };
        struct piece p = { .name = t->name,
                           .shape = t->shape,
                           .dtype = i ? DT_FLOAT16 : (enum dtype)t->type->dtype,
                           .codec = (enum codec)t->type->codec[i] };
        p.shape.d[last] = p.shape.d[last] / t->type->block * (i ? 1 : words);
        if (i && (err = make_name(&name, t->name, suffix[i])) == ERR_OK)
            p.name = name.s.v;
        if (!err)
            err = add_array(r, t, &p);
        VEC_FINI(&name.s);
        TRY(err);
    }
out:
    return err;
}

static enum err add_plain(struct reader *r, const struct tensor *t)
{
    return add_array(r, t,
                     &(struct piece){ .name = t->name,
                                      .shape = t->shape,
                                      .dtype = (enum dtype)t->type->dtype,
                                      .codec = (enum codec)t->type->codec[0] });
}

static enum err add_arrays(struct reader *r, const struct tensors *t)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < t->list.n; i++) {
        const struct tensor *one = &t->list.v[i];
        TRY(one->type->form == FORM_AFFINE ? add_affine(r, one) : add_plain(r, one));
    }
    err = io_arrays_check_unique(&r->out->arrays, source_name(r->src));
    if (err == ERR_RUNTIME)
        err = err_set(err, "[load_gguf] %s; this can happen with quantized tensors", err_text());
out:
    return err;
}

/* ---- the file ---- */

static enum err take_counts(struct reader *r, uint64_t *tensors, uint64_t *metadata)
{
    uint32_t magic = 0, version = 0;
    enum err err;

    TRY(take_u32(r, &magic));
    if (magic != GGUF_MAGIC)
        return fail(r, "it does not begin as GGUF files do");
    TRY(take_u32(r, &version));
    if (version < 2 || version > GGUF_VERSION)
        return fail(r, "version %u of the format cannot be read%s", version,
                    version >= 1u << 16 ? " (big-endian files cannot)" : "");
    TRY(take_u64(r, tensors));
    TRY(take_u64(r, metadata));
    if (*tensors > left(r) / MIN_TENSOR || *metadata > left(r) / MIN_ENTRY)
        err = fail(r, "%llu tensors and %llu metadata entries do not fit the file",
                   (unsigned long long)*tensors, (unsigned long long)*metadata);
out:
    return err;
}

static enum err read_file(struct reader *r)
{
    struct tensors t = { 0 };
    uint64_t n_tensors = 0, n_metadata = 0;
    enum err err;

    TRY(take_counts(r, &n_tensors, &n_metadata));
    TRY(take_metadata(r, n_metadata));
    if (gguf_alignment(&r->alignment, r->out) != ERR_OK)
        return fail(r, "%s", err_text());
    TRY(take_tensors(r, &t, n_tensors));
    TRY(place_tensors(r, &t));
    err = add_arrays(r, &t);
out:
    for (size_t i = 0; i < t.list.n; i++)
        mem_free(t.list.v[i].name);
    VEC_FINI(&t.list);
    return err;
}

enum err gguf_load(struct gguf *out, struct source *src, struct strm *s)
{
    struct reader *r = mem_alloc(sizeof *r);
    enum err err;

    if (!r)
        return ERR_NO_MEMORY;
    r->src = src;
    r->strm = s;
    r->out = out;
    err = read_file(r);
    mem_free(r);
    if (err)
        gguf_fini(out);
    return err;
}
