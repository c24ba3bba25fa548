/* The table of primitives, and their states as bytes. */
#include "io/mlxfn_prim.h"

#include <stdio.h>

/* ---- the table ---- */

#define CONCAT_(a, b) a##b
#define CONCAT(a, b) CONCAT_(a, b)

#define NUMBER(field)                                                                              \
    { .kind = PRIM_NUMBER, .width = sizeof((P *)0)->field, .at = offsetof(P, field) },
#define REAL(field)                                                                                \
    { .kind = PRIM_FLOAT, .width = sizeof((P *)0)->field, .at = offsetof(P, field) },
#define I32 NUMBER
#define F32 REAL
#define F64 REAL
#define BYTES NUMBER
#define BOOL(field) { .kind = PRIM_BOOL, .at = offsetof(P, field) },
#define DTYPE(field) { .kind = PRIM_DTYPE, .at = offsetof(P, field) },
#define ENUM(field, type) { .kind = PRIM_ENUM, .at = offsetof(P, field), .words = &type##_words },
#define EITHER(field, no, yes)                                                                     \
    { .kind = PRIM_EITHER, .at = offsetof(P, field), .value = yes, .unset = no },
#define FLAG(field) EITHER(field, 0, 1)
#define LETTER(field, no, yes)                                                                     \
    { .kind = PRIM_LETTER, .at = offsetof(P, field), .value = yes, .unset = no },
#define LIST_OF(n, d, field, bytes)                                                                \
    { .kind = PRIM_LIST,                                                                           \
      .width = bytes,                                                                              \
      .at = offsetof(P, d[0] field),                                                               \
      .count = offsetof(P, n),                                                                     \
      .step = sizeof((P *)0)->d[0] },
#define INTS(d) LIST_OF(n, d, , 4)
#define WIDE_INTS(d)                                                                               \
    { .kind = PRIM_LIST,                                                                           \
      .width = 4,                                                                                  \
      .above = 4,                                                                                  \
      .at = offsetof(P, d[0]),                                                                     \
      .count = offsetof(P, n),                                                                     \
      .step = sizeof((P *)0)->d[0] },
#define COLUMN(n, d, field) LIST_OF(n, d, .field, 4)
#define COLUMN64(n, d, field) LIST_OF(n, d, .field, 8)
#define IS(v) { .kind = PRIM_IS, .value = v },
#define IS_BOOL(v) { .kind = PRIM_IS_BOOL, .value = v },
#define ANY_BOOL { .kind = PRIM_ANY_BOOL },

/* The fields of a row, in which P is the struct that they fill. */
#define PRIM(name_, op_, params_, make_word, adapt_word, state_list)                               \
    static const struct prim_field *CONCAT(state_, __LINE__)(void)                                 \
    {                                                                                              \
        typedef struct params_##_params P;                                                         \
        static const struct prim_field list[] = { state_list{ .at = sizeof(P) } };                 \
        return list;                                                                               \
    }
#include "io/mlxfn.def"

const struct prim prim_table[] = {
#define PRIM(name_, op_, params_, make_word, adapt_word, ...)                                      \
    { .name = name_,                                                                               \
      .op = OP_##op_,                                                                              \
      .params_size = sizeof(struct params_##_params),                                              \
      .fields = CONCAT(state_, __LINE__),                                                          \
      .make = make_##make_word,                                                                    \
      .adapt = adapt_##adapt_word },
#define OWNING(name_, op_, make_word, word)                                                        \
    { .name = name_,                                                                               \
      .op = OP_##op_,                                                                              \
      .params_size = sizeof(struct no_params),                                                     \
      .fields = CONCAT(state_, __LINE__),                                                          \
      .make = make_##make_word,                                                                    \
      .read_state = read_##word,                                                                   \
      .write_state = write_##word },
#include "io/mlxfn.def"
};
const size_t prim_count = ARRAY_LEN(prim_table);

/* ---- bytes of a file ---- */

enum err bytes_fail(const struct bytes_in *b, const char *what)
{
    return err_set(ERR_RUNTIME, "[import_function] %s: %s", source_name(b->src), what);
}

static enum err refill(struct bytes_in *b)
{
    uint64_t left = source_size(b->src) - b->at;

    b->have = b->at;
    b->n = (size_t)MIN(left, sizeof b->buf);
    enum err err = source_read(b->src, b->buf, b->n, b->at);
    return err ? err_set(err, "[import_function] %s", err_text()) : ERR_OK;
}

static enum err bytes_skip_check(const struct bytes_in *b, uint64_t n)
{
    return source_holds(b->src, b->at, n) ? ERR_OK : bytes_fail(b, "the file is cut off");
}

enum err bytes_get(struct bytes_in *b, void *out, size_t n)
{
    char *to = out;
    enum err err;

    TRY(bytes_skip_check(b, n));
    for (size_t now; n; n -= now, to += now, b->at += now) {
        if (b->at < b->have || b->at - b->have >= b->n)
            TRY(refill(b));
        size_t from = (size_t)(b->at - b->have);
        now = MIN(n, b->n - from);
        memcpy(to, b->buf + from, now);
    }
out:
    return err;
}

enum err bytes_get_count(struct bytes_in *b, size_t *out, size_t each)
{
    uint64_t n;
    enum err err;

    TRY(bytes_get(b, &n, sizeof n));
    if (n > (source_size(b->src) - b->at) / each)
        return bytes_fail(b, "a list is longer than the file");
    *out = (size_t)n;
out:
    return err;
}

enum err bytes_get_bool(struct bytes_in *b, bool *out)
{
    unsigned char v;
    enum err err;

    TRY(bytes_get(b, &v, 1));
    if (v > 1)
        return bytes_fail(b, "a truth value is neither 0 nor 1");
    *out = v;
out:
    return err;
}

enum err bytes_get_dtype(struct bytes_in *b, enum dtype *out)
{
    struct {
        int32_t id;
        uint8_t size;
    } v;
    enum err err;

    TRY(bytes_get(b, &v.id, sizeof v.id));
    TRY(bytes_get(b, &v.size, sizeof v.size));
    if (v.id < 0 || v.id >= DT_COUNT || dt_size((enum dtype)v.id) != v.size)
        return bytes_fail(b, "a dtype that is not known");
    *out = (enum dtype)v.id;
out:
    return err;
}

enum err bytes_put(bytes_out *b, const void *v, size_t n)
{
    enum err err = VEC_RESERVE(b, n);

    if (err || !n)
        return err;
    memcpy(b->v + b->n, v, n);
    b->n += n;
    return ERR_OK;
}

/* ---- reading a state ---- */

/* What is no number of its own: an int32 in the params. */
static enum err read_choice(struct bytes_in *b, const struct prim_field *f, int32_t *out)
{
    int32_t end = f->kind == PRIM_EITHER ? 2 : f->words->n, v;
    enum err err;

    TRY(bytes_get(b, &v, sizeof v));
    if (v < 0 || v >= end)
        return bytes_fail(b, "a parameter has a value that it cannot have");
    *out = f->kind == PRIM_ENUM ? v : v ? f->value : f->unset;
out:
    return err;
}

/* Several lists may be columns of the same records. */
static enum err read_list(struct bytes_in *b, const struct prim_field *first,
                          const struct prim_field *f, char *params)
{
    int32_t *count = (int32_t *)(void *)(params + f->count);
    bool is_known = false;
    size_t n = 0;
    enum err err;

    for (const struct prim_field *before = first; before < f; before++)
        is_known |= before->kind == PRIM_LIST && before->count == f->count;
    TRY(bytes_get_count(b, &n, f->width + (size_t)f->above));
    if (n > SHP_MAX || (is_known && n != (size_t)*count))
        return bytes_fail(b, "a parameter has a length that it cannot have");
    *count = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        uint64_t above = 0;
        TRY(bytes_get(b, params + f->at + i * f->step, f->width));
        TRY(bytes_get(b, &above, f->above));
        if (above)
            return bytes_fail(b, "a parameter has a value that it cannot have");
    }
out:
    return err;
}

/* A text that does not begin with the letter for "no" says yes, as to MLX. */
static enum err read_letter(struct bytes_in *b, const struct prim_field *f, int32_t *out)
{
    char letter = 0;
    size_t n;
    enum err err;

    TRY(bytes_get_count(b, &n, 1));
    if (n)
        TRY(bytes_get(b, &letter, 1));
    b->at += n ? n - 1 : 0; /* which are there: the length was compared with the file's */
    *out = letter != f->unset;
out:
    return err;
}

/* *fits is false where a constant is not there. */
static enum err read_field(struct bytes_in *b, const struct prim_field *first,
                           const struct prim_field *f, char *params, bool *fits)
{
    int32_t *i32 = (int32_t *)(void *)(params + f->at), number;
    bool flag = false;
    enum dtype t;
    enum err err;

    switch (f->kind) {
    case PRIM_NUMBER:
    case PRIM_FLOAT:
        return bytes_get(b, params + f->at, f->width);
    case PRIM_LIST:
        return read_list(b, first, f, params);
    case PRIM_LETTER:
        return read_letter(b, f, i32);
    case PRIM_ENUM:
    case PRIM_EITHER:
        return read_choice(b, f, i32);
    case PRIM_DTYPE:
        TRY(bytes_get_dtype(b, &t));
        *i32 = (int32_t)t;
        break;
    case PRIM_IS:
        TRY(bytes_get(b, &number, sizeof number));
        *fits = number == f->value;
        break;
    default:
        TRY(bytes_get_bool(b, &flag));
        if (f->kind == PRIM_BOOL)
            *i32 = flag;
        *fits = f->kind != PRIM_IS_BOOL || flag == f->value;
        break;
    }
out:
    return err;
}

static enum err read_row(struct bytes_in *b, const struct prim *p, union prim_params *params,
                         bool *fits)
{
    const struct prim_field *first = p->fields();
    enum err err = ERR_OK;

    memset(params, 0, sizeof *params);
    *fits = true;
    for (const struct prim_field *f = first; f->kind != PRIM_END && *fits; f++)
        TRY(read_field(b, first, f, (char *)params, fits));
out:
    return err;
}

enum err prim_read(const struct prim **out, union prim_params *params, struct bytes_in *b,
                   const char *name)
{
    uint64_t start = b->at;
    bool is_known = false, fits;
    enum err err = ERR_OK;

    for (size_t i = 0; i < prim_count; i++) {
        if (strcmp(prim_table[i].name, name) != 0)
            continue;
        is_known = true;
        b->at = start;
        TRY(read_row(b, &prim_table[i], params, &fits));
        if (fits) {
            *out = &prim_table[i];
            return ERR_OK;
        }
    }
    err = err_set(ERR_ARG, "[import_function] Unable to deserialize primitive %.64s%s", name,
                  is_known ? " with parameters that are not known" : "");
out:
    return err;
}

/* ---- writing a state ---- */

/* Divide rounds quotients of integers downwards; MLX's rounds them towards zero. */
static bool is_floor_divide(const struct node *n)
{
    return n->op == OP_DIVIDE && !dt_is_inexact((enum dtype)n->out[0].dtype);
}

const struct prim *prim_of(const struct node *n)
{
    bool is_floored = is_floor_divide(n);

    for (size_t i = 0; i < prim_count; i++)
        if (prim_table[i].op == n->op &&
            (!is_floored || strcmp(prim_table[i].name, "FloorDivide") == 0))
            return &prim_table[i];
    return NULL;
}

enum err bytes_put_dtype(bytes_out *b, enum dtype t)
{
    int32_t id = (int32_t)t;
    uint8_t size = (uint8_t)dt_size(t);
    enum err err;

    TRY(bytes_put(b, &id, sizeof id));
    err = bytes_put(b, &size, sizeof size);
out:
    return err;
}

static enum err write_list(bytes_out *b, const struct prim_field *f, const char *params)
{
    const int32_t *count = (const int32_t *)(const void *)(params + f->count);
    uint64_t n = (uint64_t)*count;
    enum err err;

    TRY(bytes_put(b, &n, sizeof n));
    for (uint64_t i = 0; i < n; i++) {
        TRY(bytes_put(b, params + f->at + i * f->step, f->width));
        TRY(bytes_put(b, &(uint64_t){ 0 }, f->above));
    }
out:
    return err;
}

static enum err write_letter(bytes_out *b, const struct prim_field *f, bool is_set)
{
    char letter = is_set ? (char)f->value : f->unset;
    uint64_t n = 1;
    enum err err;

    TRY(bytes_put(b, &n, sizeof n));
    err = bytes_put(b, &letter, 1);
out:
    return err;
}

static enum err write_field(bytes_out *b, const struct prim_field *f, const char *params)
{
    bool is_constant = f->kind == PRIM_IS || f->kind == PRIM_IS_BOOL || f->kind == PRIM_ANY_BOOL;
    int32_t v = is_constant ? f->value : *(const int32_t *)(const void *)(params + f->at);
    uint8_t flag = v != 0;

    switch (f->kind) {
    case PRIM_NUMBER:
    case PRIM_FLOAT:
        return bytes_put(b, params + f->at, f->width);
    case PRIM_LIST:
        return write_list(b, f, params);
    case PRIM_LETTER:
        return write_letter(b, f, v != 0);
    case PRIM_DTYPE:
        return bytes_put_dtype(b, (enum dtype)v);
    case PRIM_EITHER:
        v = v == f->value;
        return bytes_put(b, &v, sizeof v);
    case PRIM_ENUM:
    case PRIM_IS:
        return bytes_put(b, &v, sizeof v);
    default:
        return bytes_put(b, &flag, sizeof flag);
    }
}

enum err prim_write(bytes_out *b, const struct prim *p, const void *params)
{
    enum err err = ERR_OK;

    for (const struct prim_field *f = p->fields(); f->kind != PRIM_END; f++)
        TRY(write_field(b, f, params));
out:
    return err;
}

/* ---- a state as arguments ---- */

static int64_t number_at(const char *at, size_t width)
{
    int32_t narrow;
    int64_t wide;

    if (width == sizeof wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

static double real_at(const char *at, size_t width)
{
    float narrow;
    double wide;

    if (width == sizeof wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

static void put_ints(struct mlxfn_arg *a, const struct prim_field *f, const char *params)
{
    size_t n = (size_t)number_at(params + f->count, sizeof(int32_t));

    a->n = MIN(n, MLXFN_ARG_INTS);
    for (size_t i = 0; i < a->n; i++)
        a->ints[i] = number_at(params + f->at + i * f->step, f->width);
}

static void put_arg(struct mlxfn_arg *a, const struct prim_field *f, const char *params)
{
    static const uint8_t kinds[] = {
        [PRIM_NUMBER] = ARG_INT,   [PRIM_FLOAT] = ARG_FLOAT,   [PRIM_BOOL] = ARG_BOOL,
        [PRIM_DTYPE] = ARG_DTYPE,  [PRIM_ENUM] = ARG_INT,      [PRIM_EITHER] = ARG_INT,
        [PRIM_LETTER] = ARG_TEXT,  [PRIM_LIST] = ARG_INTS,     [PRIM_IS] = ARG_INT,
        [PRIM_IS_BOOL] = ARG_BOOL, [PRIM_ANY_BOOL] = ARG_BOOL,
    };
    bool is_constant = f->kind == PRIM_IS || f->kind == PRIM_IS_BOOL || f->kind == PRIM_ANY_BOOL;

    *a = (struct mlxfn_arg){ .kind = (enum mlxfn_arg_kind)kinds[f->kind] };
    if (f->kind == PRIM_LIST)
        put_ints(a, f, params);
    else if (f->kind == PRIM_FLOAT)
        a->real = real_at(params + f->at, f->width);
    else if (f->kind == PRIM_NUMBER)
        a->number = number_at(params + f->at, f->width);
    else
        a->number = is_constant ? f->value : number_at(params + f->at, sizeof(int32_t));
    if (f->kind == PRIM_EITHER)
        a->number = a->number == f->value;
    if (f->kind == PRIM_LETTER)
        a->text[0] = a->number ? (char)f->value : f->unset;
}

size_t prim_args(struct mlxfn_arg args[MLXFN_ARGS], const struct prim *p, const void *params)
{
    size_t n = 0;

    for (const struct prim_field *f = p->fields(); f->kind != PRIM_END && n < MLXFN_ARGS; f++)
        put_arg(&args[n++], f, params);
    return n;
}
