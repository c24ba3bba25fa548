#include "graph/op_params.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/dtype.h"

/* ---- sizes ---- */

/* Bytes up to the items of the list. */
#define WORDS(...)
#define PARAMS(name, fields) enum { fixed_##name = 0 fields };
#define I32(field) +4
#define POSITION(field) +4
#define I64(field) +8
#define F32(field) +4
#define F64(field) +8
#define BOOL(field) +4
#define DTYPE(field) +4
#define ENUM(field, type) +4
#define STRUCT(name, field, fields) fields
#define LIST(fields) +4
#define INTS(field) +4
#include "graph/op_params.def"

/* The whole struct: a sum of its fields, or there would be padding. */
#define WORDS(...)
#define PARAMS(name, fields)                                                                       \
    static_assert(sizeof(struct name##_params) == 0 fields, "padding in " #name "_params");
#define I32(field) +4
#define POSITION(field) +4
#define I64(field) +8
#define F32(field) +4
#define F64(field) +8
#define BOOL(field) +4
#define DTYPE(field) +4
#define ENUM(field, type) +4
#define STRUCT(name, field, fields) fields
#define LIST(fields) +4 + SHP_MAX *(0 fields)
#define INTS(field) +4 + SHP_MAX * 4
#include "graph/op_params.def"

const struct op_params_layout op_params_layouts[PARAMS_COUNT] = {
#define WORDS(...)
#define PARAMS(name, fields)                                                                       \
    [PARAMS_##name] = { fixed_##name, (sizeof(struct name##_params) - fixed_##name) / SHP_MAX },
#include "graph/op_params.def"
};

/* ---- words and fields ---- */

#define PARAMS(...)
#define WORDS(type, list)                                                                          \
    static const char *const type##_list[] = { list };                                             \
    const struct op_words type##_words = { type##_list, ARRAY_LEN(type##_list) };
#define WORD(id, word) [id] = word,
#include "graph/op_params.def"

static const char *const reduce_kind_list[] = {
#define REDUCTION(id, public, ...) #public,
#include "ops/reduce.def"
};
const struct op_words reduce_kind_words = { reduce_kind_list, ARRAY_LEN(reduce_kind_list) };

enum kind {
    KIND_I32,
    KIND_POSITION,
    KIND_I64,
    KIND_F32,
    KIND_F64,
    KIND_BOOL,
    KIND_DTYPE,
    KIND_ENUM,
    KIND_COUNT
};

/* Fields lie one after the other; those behind KIND_COUNT make up an item of the list. */
struct field {
    const char *name;
    enum kind kind;
    const struct op_words *words; /* of an enum */
};

#define WORDS(...)
#define PARAMS(name, fields) static const struct field fields_##name[] = { fields{ 0 } };
#define I32(field) { #field, KIND_I32, NULL },
#define POSITION(field) { #field, KIND_POSITION, NULL },
#define I64(field) { #field, KIND_I64, NULL },
#define F32(field) { #field, KIND_F32, NULL },
#define F64(field) { #field, KIND_F64, NULL },
#define BOOL(field) { #field, KIND_BOOL, NULL },
#define DTYPE(field) { #field, KIND_DTYPE, NULL },
#define ENUM(field, type) { #field, KIND_ENUM, &type##_words },
#define STRUCT(name, field, fields) fields
#define LIST(fields) { "n", KIND_COUNT, NULL }, fields
#define INTS(field) { "n", KIND_COUNT, NULL }, { #field, KIND_I32, NULL },
#include "graph/op_params.def"

static const struct field *const field_lists[PARAMS_COUNT] = {
    [PARAMS_none] = &(const struct field){ 0 },
#define WORDS(...)
#define PARAMS(name, ...) [PARAMS_##name] = fields_##name,
#include "graph/op_params.def"
};

/* ---- walking ---- */

/* The value of a field, at `at`. */
union value {
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
};

static size_t size_of(enum kind kind)
{
    return kind == KIND_I64 || kind == KIND_F64 ? 8 : 4;
}

static union value read_field(enum kind kind, const char **at)
{
    size_t size = size_of(kind);
    union value v = { .i64 = 0 };

    memcpy(&v, *at, size);
    *at += size;
    return v;
}

static bool is_possible(const struct field *f, union value v)
{
    switch (f->kind) {
    case KIND_BOOL:
        return v.i32 == 0 || v.i32 == 1;
    case KIND_DTYPE:
        return v.i32 >= 0 && v.i32 < DT_COUNT;
    case KIND_ENUM:
        return v.i32 >= 0 && v.i32 < f->words->n;
    case KIND_COUNT:
        return v.i32 >= 0 && v.i32 <= SHP_MAX;
    default:
        return true;
    }
}

/* Calls visit for every field in order, items of the list one after the other. */
static bool walk(enum op_params_id id, const void *params,
                 bool (*visit)(void *arg, const struct field *f, union value v), void *arg)
{
    const struct field *f = field_lists[id];
    const char *at = params;
    int32_t n = 0;

    for (; f->name && f->kind != KIND_COUNT; f++)
        if (!visit(arg, f, read_field(f->kind, &at)))
            return false;
    if (!f->name)
        return true;
    union value count = read_field(f->kind, &at);
    if (!visit(arg, f, count))
        return false;
    const struct field *item = f + 1;
    for (n = 0; n < count.i32; n++)
        for (f = item; f->name; f++)
            if (!visit(arg, f, read_field(f->kind, &at)))
                return false;
    return true;
}

static bool check_field(void *arg, const struct field *f, union value v)
{
    const struct field **bad = arg;

    *bad = f;
    return is_possible(f, v);
}

enum err op_params_check(enum op_params_id id, const void *params)
{
    const struct field *bad = NULL;

    if (walk(id, params, check_field, &bad))
        return ERR_OK;
    return err_set(ERR_ARG, "[params] The parameter %s has a value that it cannot have.",
                   bad->name);
}

/* What lies so many bytes behind the beginning. */
static enum kind kind_at(enum op_params_id id, size_t offset)
{
    const struct op_params_layout *l = &op_params_layouts[id];
    const struct field *f = field_lists[id];
    size_t at = 0;

    if (offset >= l->fixed) {
        at = offset - (offset - l->fixed) % l->item;
        while (f->kind != KIND_COUNT)
            f++;
        f++;
    }
    while (at + size_of(f->kind) <= offset)
        at += size_of(f++->kind);
    return f->kind;
}

bool op_params_differ_in_positions(enum op_params_id id, const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    size_t n = op_params_size(id, a) / sizeof *x;

    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i] && kind_at(id, i * sizeof *x) != KIND_POSITION)
            return false;
    return true;
}

struct print {
    char *buf;
    size_t size, used;
};

static void add(struct print *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add(struct print *p, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(p->buf + p->used, p->size - p->used, fmt, args);
    va_end(args);
    p->used = MIN(p->used + (size_t)MAX(n, 0), p->size - 1);
}

static bool print_field(void *arg, const struct field *f, union value v)
{
    struct print *p = arg;

    if (f->kind == KIND_COUNT)
        return true;
    add(p, "%s%s=", p->used ? ", " : "", f->name);
    switch (f->kind) {
    case KIND_I64:
        add(p, "%lld", (long long)v.i64);
        break;
    case KIND_F32:
        add(p, "%.9g", (double)v.f32);
        break;
    case KIND_F64:
        add(p, "%.17g", v.f64);
        break;
    case KIND_BOOL:
        add(p, "%s", v.i32 ? "true" : "false");
        break;
    case KIND_DTYPE:
        add(p, "%s", dt_name((enum dtype)v.i32));
        break;
    case KIND_ENUM:
        add(p, "%s", f->words->word[v.i32]);
        break;
    default:
        add(p, "%d", v.i32);
        break;
    }
    return true;
}

const char *op_params_print(enum op_params_id id, const void *params, char *buf, size_t size)
{
    struct print p = { buf, size, 0 };

    buf[0] = '\0';
    walk(id, params, print_field, &p);
    return buf;
}
