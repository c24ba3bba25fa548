#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "cli/kernel.h"

static const struct {
    const char *brief, *name;
    mlx_dtype dtype;
} dtypes[] = {
    { "bool", "bool", MLX_BOOL },         { "u8", "uint8", MLX_UINT8 },
    { "u16", "uint16", MLX_UINT16 },      { "u32", "uint32", MLX_UINT32 },
    { "u64", "uint64", MLX_UINT64 },      { "i8", "int8", MLX_INT8 },
    { "i16", "int16", MLX_INT16 },        { "i32", "int32", MLX_INT32 },
    { "i64", "int64", MLX_INT64 },        { "f16", "float16", MLX_FLOAT16 },
    { "f32", "float32", MLX_FLOAT32 },    { "f64", "float64", MLX_FLOAT64 },
    { "bf16", "bfloat16", MLX_BFLOAT16 }, { "c64", "complex64", MLX_COMPLEX64 },
};

static bool is_word(const char *name, const char *word, size_t n)
{
    return strlen(name) == n && memcmp(name, word, n) == 0;
}

bool kernel_dtype(mlx_dtype *out, const char *word, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        if (is_word(dtypes[i].brief, word, n) || is_word(dtypes[i].name, word, n)) {
            *out = dtypes[i].dtype;
            return true;
        }
    return false;
}

/* A number that begins at *at, which moves behind it. */
static bool take_int(int *out, const char **at)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    long v = strtol(*at, &end, 10);
    if (errno || v > INT32_MAX)
        return false;
    *out = (int)v;
    *at = end;
    return true;
}

bool kernel_parse_out(struct kernel_out *out, const char *text)
{
    size_t n = strcspn(text, ":");
    const char *at = text + n;

    memset(out, 0, sizeof *out);
    if (!kernel_dtype(&out->dtype, text, n) || *at++ != ':')
        return false;
    do {
        if (out->ndim == KERNEL_MAX_DIMS || !take_int(&out->shape[out->ndim], &at))
            return false;
        out->ndim++;
    } while (*at++ == 'x');
    at--;
    if (*at == '=')
        out->file = at + 1;
    return !*at || (*at == '=' && at[1]);
}

bool kernel_parse_three(int out[3], const char *text)
{
    out[0] = out[1] = out[2] = 1;
    for (int i = 0; i < 3; i++) {
        if (!take_int(&out[i], &text))
            return false;
        if (!*text)
            return true;
        if (*text++ != ',')
            return false;
    }
    return false;
}

/* ---- numbers ---- */

static bool append(struct kernel_bytes *out, const void *v, size_t n)
{
    if (n > sizeof out->v - out->n)
        return false;
    memcpy(out->v + out->n, v, n);
    out->n += n;
    return true;
}

static bool append_float(struct kernel_bytes *out, mlx_dtype dtype, const char *text)
{
    char *end;
    double v = strtod(text, &end);
    float f = (float)v;

    if (end == text || *end)
        return false;
    return dtype == MLX_FLOAT64 ? append(out, &v, sizeof v) : append(out, &f, sizeof f);
}

static bool append_int(struct kernel_bytes *out, mlx_dtype dtype, const char *text)
{
    bool is_signed = dtype == MLX_INT32 || dtype == MLX_INT64;
    bool is_long = dtype == MLX_INT64 || dtype == MLX_UINT64;
    char *end;

    errno = 0;
    int64_t v = is_signed ? strtoll(text, &end, 0) : (int64_t)strtoull(text, &end, 0);
    if (errno || end == text || *end || (!is_signed && text[0] == '-'))
        return false;
    if (!is_long && (is_signed ? v != (int32_t)v : v != (int64_t)(uint32_t)v))
        return false;
    return append(out, &v, is_long ? 8 : 4);
}

/* One of them, which ends with a zero. */
static bool append_number(struct kernel_bytes *out, const char *text)
{
    size_t n = strcspn(text, ":");
    mlx_dtype dtype =
        strpbrk(text, ".eEn") && strncmp(text, "0x", 2) != 0 ? MLX_FLOAT32 : MLX_INT32;

    if (text[n]) {
        if (!kernel_dtype(&dtype, text, n))
            return false;
        text += n + 1;
    }
    if (dtype == MLX_FLOAT32 || dtype == MLX_FLOAT64)
        return append_float(out, dtype, text);
    if (dtype == MLX_INT32 || dtype == MLX_UINT32 || dtype == MLX_INT64 || dtype == MLX_UINT64)
        return append_int(out, dtype, text);
    return false;
}

bool kernel_parse_numbers(struct kernel_bytes *out, const char *text)
{
    char word[64];

    for (;; text++) {
        size_t n = strcspn(text, ",");
        if (n >= sizeof word)
            return false;
        memcpy(word, text, n);
        word[n] = 0;
        if (!append_number(out, word))
            return false;
        text += n;
        if (!*text)
            return true;
    }
}

bool kernel_parse_spec(uint32_t *id, uint32_t *bits, const char *text)
{
    struct kernel_bytes bytes = { .n = 0 };
    int number;

    if (!take_int(&number, &text) || *text++ != '=' || strchr(text, ',') ||
        !kernel_parse_numbers(&bytes, text) || bytes.n != sizeof *bits)
        return false;
    *id = (uint32_t)number;
    memcpy(bits, bytes.v, sizeof *bits);
    return true;
}
