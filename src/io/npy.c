/* npy: magic, version, length of the header, the header as a Python dictionary, the data. */
#include "io/npy.h"

#include "graph/load.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_LENGTH 6

/* NumPy itself refuses more than 10,000 bytes unless told otherwise. */
#define HEADER_MAX (1 << 20)

/* Data begin on a multiple of this, as NumPy writes them. */
#define ALIGNMENT 64

static const struct npy_type {
    const char *name; /* without byte order */
    enum dtype dtype;
    enum codec codec, swapped; /* for either byte order */
} types[] = {
    { "b1", DT_BOOL, CODEC_BOOL, CODEC_BOOL },      { "i1", DT_INT8, CODEC_RAW, CODEC_RAW },
    { "i2", DT_INT16, CODEC_RAW, CODEC_SWAP2 },     { "i4", DT_INT32, CODEC_RAW, CODEC_SWAP4 },
    { "i8", DT_INT64, CODEC_RAW, CODEC_SWAP8 },     { "u1", DT_UINT8, CODEC_RAW, CODEC_RAW },
    { "u2", DT_UINT16, CODEC_RAW, CODEC_SWAP2 },    { "u4", DT_UINT32, CODEC_RAW, CODEC_SWAP4 },
    { "u8", DT_UINT64, CODEC_RAW, CODEC_SWAP8 },    { "f2", DT_FLOAT16, CODEC_RAW, CODEC_SWAP2 },
    { "f4", DT_FLOAT32, CODEC_RAW, CODEC_SWAP4 },   { "f8", DT_FLOAT64, CODEC_RAW, CODEC_SWAP8 },
    { "c8", DT_COMPLEX64, CODEC_RAW, CODEC_SWAP4 }, { "V2", DT_BFLOAT16, CODEC_RAW, CODEC_SWAP2 },
};

/* ---- the dictionary ---- */

struct header {
    const struct npy_type *type;
    bool swapped, column_major;
    struct shp shape;
    bool has_descr, has_order, has_shape;
};

struct parser {
    const char *at; /* of terminated text */
    const char *file;
    struct header h;
};

static enum err fail(const struct parser *p, const char *what)
{
    return err_set(ERR_RUNTIME, "[load] Invalid header in %s: %s", p->file, what);
}

static void skip_space(struct parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

static bool accept(struct parser *p, const char *word)
{
    size_t n = strlen(word);

    skip_space(p);
    if (strncmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* A quoted word without escapes, at most n - 1 bytes. */
static enum err parse_quoted(struct parser *p, char *out, size_t n)
{
    skip_space(p);
    char quote = *p->at;
    if (quote != '\'' && quote != '"')
        return fail(p, "expected a quoted word");
    const char *end = strchr(p->at + 1, quote);
    size_t length = end ? (size_t)(end - p->at) - 1 : n;
    if (length >= n)
        return fail(p, "a quoted word has no end or is too long");
    memcpy(out, p->at + 1, length);
    out[length] = '\0';
    p->at = end + 1;
    return ERR_OK;
}

static enum err unsupported(const struct parser *p, const char *descr)
{
    return err_set(ERR_ARG, "[load] %s: Unsupported array protocol type-string: %s", p->file,
                   descr);
}

static enum err parse_descr(struct parser *p)
{
    char text[32];
    enum err err;

    skip_space(p);
    if (*p->at == '[')
        return unsupported(p, "a structure");
    TRY(parse_quoted(p, text, sizeof text));
    const char *name = text[0] && strchr("<>=|", text[0]) ? text + 1 : text;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].name, name) == 0)
            p->h.type = &types[i];
    if (!p->h.type)
        return unsupported(p, text);
    p->h.swapped = text[0] == '>';
    p->h.has_descr = true;
out:
    return err;
}

static enum err parse_order(struct parser *p)
{
    p->h.column_major = accept(p, "True");
    p->h.has_order = p->h.column_major || accept(p, "False");
    return p->h.has_order ? ERR_OK : fail(p, "fortran_order is neither True nor False");
}

static enum err parse_shape(struct parser *p)
{
    if (!accept(p, "("))
        return fail(p, "the shape is no tuple");
    while (!accept(p, ")")) {
        int64_t d = 0;
        if (*p->at < '0' || *p->at > '9' || p->h.shape.ndim == SHP_MAX)
            return fail(p, "not a shape that an array can have");
        for (; *p->at >= '0' && *p->at <= '9' && d <= INT32_MAX; p->at++)
            d = d * 10 + (*p->at - '0');
        (void)accept(p, "L"); /* Python 2 wrote long integers so */
        if (d > INT32_MAX || (!accept(p, ",") && *p->at != ')'))
            return fail(p, "not a shape that an array can have");
        p->h.shape.d[p->h.shape.ndim++] = (int32_t)d;
    }
    p->h.has_shape = true;
    return ERR_OK;
}

static enum err parse_entry(struct parser *p)
{
    char key[32];
    enum err err;

    TRY(parse_quoted(p, key, sizeof key));
    if (!accept(p, ":"))
        return fail(p, "expected a colon");
    if (strcmp(key, "descr") == 0 && !p->h.has_descr)
        err = parse_descr(p);
    else if (strcmp(key, "fortran_order") == 0 && !p->h.has_order)
        err = parse_order(p);
    else if (strcmp(key, "shape") == 0 && !p->h.has_shape)
        err = parse_shape(p);
    else
        err = fail(p, "an unknown or repeated key");
out:
    return err;
}

static enum err parse_dictionary(struct parser *p)
{
    enum err err = ERR_OK;

    if (!accept(p, "{"))
        return fail(p, "no dictionary");
    while (!accept(p, "}")) {
        TRY(parse_entry(p));
        if (!accept(p, ",") && *p->at != '}')
            return fail(p, "expected a comma");
    }
    skip_space(p);
    if (*p->at || !p->h.has_descr || !p->h.has_order || !p->h.has_shape)
        err = fail(p, *p->at ? "something follows the dictionary" : "a key is missing");
out:
    return err;
}

/* ---- loading ---- */

/* Reads the text of the header, terminated; *data is where the data begin. */
static enum err read_header(char **out, uint64_t *data, struct source *src)
{
    unsigned char start[MAGIC_LENGTH + 2 + 4] = { 0 };
    struct parser p = { .file = source_name(src) };
    char *text = NULL;
    enum err err;

    if (!source_holds(src, 0, MAGIC_LENGTH + 4))
        return fail(&p, "the file is too short");
    TRY(source_read(src, start, MIN(sizeof start, source_size(src)), 0));
    if (memcmp(start, MAGIC, MAGIC_LENGTH) != 0)
        return fail(&p, "it does not begin as npy files do");
    if (start[6] < 1 || start[6] > 3)
        return err_set(ERR_RUNTIME, "[load] Unsupported npy format version %d in %s", start[6],
                       p.file);
    uint32_t n = start[8] | (uint32_t)start[9] << 8;
    if (start[6] > 1)
        n |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
    *data = MAGIC_LENGTH + (start[6] > 1 ? 6u : 4u);
    if (n > HEADER_MAX || !source_holds(src, *data, n))
        return fail(&p, "it is longer than it can be");
    if (!(text = mem_alloc((size_t)n + 1)))
        return ERR_NO_MEMORY;
    TRY(source_read(src, text, n, *data));
    *data += n;
    if (strlen(text) != n) {
        err = fail(&p, "it contains a zero byte");
        goto out;
    }
    *out = text;
    text = NULL;
out:
    mem_free(text);
    return err;
}

static void reverse(struct shp *s)
{
    for (int i = 0; i < s->ndim / 2; i++) {
        int32_t d = s->d[i];
        s->d[i] = s->d[s->ndim - 1 - i];
        s->d[s->ndim - 1 - i] = d;
    }
}

static enum err make_array(struct arr **out, const struct header *h, const struct load_part *part,
                           struct strm *s)
{
    struct shp stored = h->shape;
    struct arr *a = NULL;
    enum err err;

    if (h->column_major)
        reverse(&stored);
    TRY(ops_load(&a, part, &stored, h->type->dtype, s));
    if (!h->column_major || stored.ndim < 2) {
        *out = a;
        return ERR_OK;
    }
    err = ops_transpose(out, a, INTS_ALL, s);
out:
    arr_unref(&a);
    return err;
}

enum err io_load_npy(struct arr **out, struct source *src, struct strm *s)
{
    struct parser p = { .file = source_name(src) };
    char *text = NULL;
    uint64_t data = 0;
    int64_t size;
    enum err err;

    TRY(read_header(&text, &data, src));
    p.at = text;
    TRY(parse_dictionary(&p));
    const struct npy_type *t = p.h.type;
    if (!shp_size_checked(&p.h.shape, &size) ||
        MUL_OVERFLOWS(size, (int64_t)dt_size(t->dtype), &size)) {
        err = fail(&p, "the shape is too large");
        goto out;
    }
    struct load_part part = {
        .source = src, .offset = data, .codec = p.h.swapped ? t->swapped : t->codec, .name = ""
    };
    err = make_array(out, &p.h, &part, s);
out:
    mem_free(text);
    return err;
}

/* ---- saving ---- */

static enum err add_dictionary(struct text *t, const struct arr *a)
{
    const char *type = NULL;
    enum err err;

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].dtype == a->dtype)
            type = types[i].name;
    /* MLX reads dtype and order at fixed positions: keys in this order, no other space. */
    TRY(text_add(t, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
                 dt_size((enum dtype)a->dtype) > 1 ? '<' : '|', type,
                 a->flags & LAYOUT_COL ? "True" : "False"));
    for (int i = 0; i < a->ndim; i++)
        TRY(text_add(t, "%d, ", a->shape[i]));
    err = text_add(t, ")}");
out:
    return err;
}

enum err npy_header(struct text *out, const struct arr *a)
{
    struct text dict = { 0 };
    enum err err;

    TRY(add_dictionary(&dict, a));
    bool is_long = dict.s.n + ALIGNMENT > UINT16_MAX;
    size_t start = MAGIC_LENGTH + (is_long ? 6 : 4);
    size_t length = align_up(start + dict.s.n + 1, ALIGNMENT) - start;
    unsigned char head[MAGIC_LENGTH + 6];

    memcpy(head, MAGIC, MAGIC_LENGTH);
    head[6] = is_long ? 2 : 1;
    head[7] = 0;
    for (int i = 0; i < 4; i++)
        head[8 + i] = (unsigned char)(length >> (8 * i));
    TRY(VEC_RESERVE(&out->s, start));
    memcpy(out->s.v + out->s.n, head, start);
    out->s.n += start;
    err = text_add(out, "%s%*s\n", dict.s.v, (int)(length - dict.s.n - 1), "");
out:
    VEC_FINI(&dict.s);
    return err;
}

enum err io_save_npy(struct sink *out, struct arr *a)
{
    struct text header = { 0 };
    struct arr *dense = NULL;
    enum err err;

    TRY(io_make_dense(&dense, (struct arrs){ &a, 1 }, true));
    TRY(npy_header(&header, dense));
    TRY(sink_write(out, header.s.v, header.s.n));
    err = io_write_bytes(out, dense);
out:
    VEC_FINI(&header.s);
    arr_unref(&dense);
    return err;
}
