#include "support/case_table.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "support/testing.h"

/* ---- reading ---- */

static bool take(struct case_reader *r, void *out, size_t n)
{
    if ((size_t)(r->end - r->at) < n)
        return false;
    memcpy(out, r->at, n);
    r->at += n;
    return true;
}

static bool take_u8(struct case_reader *r, int *out)
{
    uint8_t v = 0;
    bool ok = take(r, &v, 1);

    *out = v;
    return ok;
}

static bool take_text(struct case_reader *r, char *out, size_t size)
{
    uint16_t n = 0;

    if (!take(r, &n, 2) || n >= size)
        return false;
    out[n] = '\0';
    return take(r, out, n);
}

static bool take_array(struct case_reader *r, struct case_array *a)
{
    int code, ndim;
    uint32_t begin;

    if (!take_u8(r, &code) || !take_u8(r, &ndim) || code >= DT_COUNT || ndim > SHP_MAX)
        return false;
    a->dtype = (enum dtype)code;
    a->shape = (struct shp){ .ndim = ndim };
    if (!take(r, a->shape.d, (size_t)ndim * sizeof a->shape.d[0]) || !take(r, &begin, 4) ||
        begin > r->data_size || shp_size(&a->shape) * dt_size(a->dtype) > r->data_size - begin)
        return false;
    a->bytes = r->data + begin;
    return true;
}

static bool take_input(struct case_reader *r, struct case_input *in)
{
    int present;

    if (!take_u8(r, &present))
        return false;
    in->present = present;
    in->n_views = 0;
    if (!present)
        return true;
    if (!take_array(r, &in->base) || !take_u8(r, &in->n_views) || in->n_views > 2)
        return false;
    for (int i = 0; i < in->n_views; i++) {
        struct case_view *v = &in->view[i];
        int kind;
        if (!take_u8(r, &kind) || !take_u8(r, &v->n) || v->n > CASE_INTS ||
            !take(r, v->v, (size_t)v->n * sizeof v->v[0]))
            return false;
        v->kind = (enum case_view_kind)kind;
    }
    return true;
}

static bool take_param(struct case_reader *r, struct case_param *p)
{
    char kind = 0;
    uint16_t n = 0;

    *p = (struct case_param){ 0 };
    if (!take(r, &kind, 1))
        return false;
    if (kind == 'd')
        return take(r, &p->d, sizeof p->d);
    if (kind == 's')
        return take_text(r, p->text, sizeof p->text);
    if (!take(r, &n, 2) || n > CASE_INTS || !take(r, p->wide, n * sizeof p->wide[0]))
        return false;
    p->n = n;
    for (int i = 0; i < n; i++)
        p->v[i] = (int)p->wide[i];
    return true;
}

/* Finds rows and data in the unpacked table. */
static bool find_parts(struct case_reader *r, size_t size)
{
    uint32_t data_size;

    *r = (struct case_reader){ .table = r->table, .at = r->table, .end = r->table + size };
    if (!take(r, &r->left, 4) || !take(r, &data_size, 4) || data_size > (size_t)(r->end - r->at))
        return false;
    r->end -= data_size;
    r->data = r->end;
    r->data_size = data_size;
    return true;
}

bool case_open(struct case_reader *r, const unsigned char *file, size_t size)
{
    uint32_t unpacked;
    uLongf n;

    *r = (struct case_reader){ 0 };
    if (size < 8 || memcmp(file, "MLXC", 4) != 0)
        return false;
    memcpy(&unpacked, file + 4, 4);
    n = unpacked;
    r->table = malloc(n);
    return r->table && uncompress(r->table, &n, file + 8, size - 8) == Z_OK && n == unpacked &&
           find_parts(r, n);
}

void case_close(struct case_reader *r)
{
    free(r->table);
}

static bool take_row(struct case_reader *r, struct case_row *row)
{
    int tolerance, cpu_only;

    if (!take_text(r, row->family, sizeof row->family) || !take_text(r, row->fn, sizeof row->fn) ||
        !take_text(r, row->note, sizeof row->note))
        return false;
    if (!take_u8(r, &row->n_in) || row->n_in > CASE_INPUTS)
        return false;
    for (int i = 0; i < row->n_in; i++)
        if (!take_input(r, &row->in[i]))
            return false;
    if (!take_u8(r, &row->n_params) || row->n_params > CASE_PARAMS)
        return false;
    for (int i = 0; i < row->n_params; i++)
        if (!take_param(r, &row->param[i]))
            return false;
    if (!take_u8(r, &row->n_out) || row->n_out > CASE_OUTPUTS)
        return false;
    for (int i = 0; i < row->n_out; i++)
        if (!take_array(r, &row->out[i]))
            return false;
    if (!take_u8(r, &tolerance) || !take(r, &row->scale, 8) || !take_u8(r, &cpu_only))
        return false;
    row->tolerance = (enum case_tolerance)tolerance;
    row->cpu_only = cpu_only;
    return true;
}

bool case_next(struct case_reader *r, struct case_row *row)
{
    if (r->left == 0 || !take_row(r, row))
        return false;
    r->left--;
    return true;
}

/* ---- comparing ---- */

/* NumPy's defaults for float32; half types within about one unit in the last place; a float16 near
 * zero within one subnormal step. */
static const struct {
    double rtol, atol, epsilon, normal; /* distance of 1 to the next; smallest normal number */
} precision[DT_COUNT] = {
    [DT_FLOAT16] = { 1e-3, 1e-7, 0x1p-10, 0x1p-14 },
    [DT_FLOAT32] = { 1e-5, 1e-8, FLT_EPSILON, FLT_MIN },
    [DT_FLOAT64] = { 1e-12, 1e-15, DBL_EPSILON, DBL_MIN },
    [DT_BFLOAT16] = { 1e-2, 1e-8, 0x1p-7, FLT_MIN },
    [DT_COMPLEX64] = { 1e-5, 1e-8, FLT_EPSILON, FLT_MIN },
};

/* Vulkan lets a float32 division be off by 2.5 units in the last place. */
#define DIVISION_ULP 2.5

static double load_half(enum dtype t, const void *p)
{
    uint16_t h;

    memcpy(&h, p, 2);
    return t == DT_FLOAT16 ? dt_f16_to_f32(h) : dt_bf16_to_f32(h);
}

/* One component of a floating element. */
static double load(enum dtype t, const void *p, int component)
{
    float f;
    double d;

    switch (t) {
    case DT_FLOAT16:
    case DT_BFLOAT16:
        return load_half(t, p);
    case DT_FLOAT64:
        memcpy(&d, p, sizeof d);
        return d;
    default:
        memcpy(&f, (const char *)p + component * 4, sizeof f);
        return f;
    }
}

static bool number_fits(double got, double want, double magnitude, enum dtype t,
                        const struct case_rule *rule)
{
    double limit = precision[t].rtol * (magnitude + rule->scale) + precision[t].atol;

    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (rule->tolerance == CASE_BITS && !signbit(got) != !signbit(want))
        return false;
    if (got == want)
        return true;
    if (isinf(want) || isinf(got))
        return false;
    /* A device may flush subnormal operands, too: the least normal number less one is itself then.
     */
    if (rule->on_gpu && fabs(want) < precision[t].normal && fabs(got) <= precision[t].normal)
        return rule->tolerance != CASE_BITS;
    if (rule->tolerance == CASE_DIVISION && rule->on_gpu)
        return fabs(got - want) <= rule->slack * DIVISION_ULP * precision[t].epsilon * fabs(want);
    return rule->tolerance == CASE_CLOSE && fabs(got - want) <= rule->slack * limit;
}

static bool element_fits(enum dtype t, const void *got, const void *want,
                         const struct case_rule *rule)
{
    if (!dt_is_inexact(t))
        return memcmp(got, want, dt_size(t)) == 0;
    int components = t == DT_COMPLEX64 ? 2 : 1;
    double magnitude = fabs(load(t, want, 0));
    if (components == 2)
        magnitude = hypot(load(t, want, 0), load(t, want, 1));
    for (int c = 0; c < components; c++)
        if (!number_fits(load(t, got, c), load(t, want, c), magnitude, t, rule))
            return false;
    return true;
}

static const char *element_text(enum dtype t, const void *p, char *out, size_t size)
{
    uint64_t bits = 0;

    if (dt_is_inexact(t)) {
        int n = snprintf(out, size, "%.9g", load(t, p, 0));
        if (t == DT_COMPLEX64)
            snprintf(out + n, size - (size_t)n, "%+.9gi", load(t, p, 1));
        return out;
    }
    memcpy(&bits, p, dt_size(t));
    int shift = 64 - 8 * (int)dt_size(t);
    if (dt_table[t].kind == DT_KIND_I)
        snprintf(out, size, "%lld", (long long)(int64_t)(bits << shift) >> shift);
    else
        snprintf(out, size, "%llu", (unsigned long long)bits);
    return out;
}

static const char *at(const struct case_result *r, const int32_t *index)
{
    int64_t offset = 0;

    for (int i = 0; i < r->shape.ndim; i++)
        offset += index[i] * r->strides[i];
    return (const char *)r->first + offset * (int64_t)dt_size(r->dtype);
}

static const char *compare_elements(const struct case_result *got, const struct case_result *want,
                                    const struct case_rule *rule)
{
    static char text[512];
    int32_t index[SHP_MAX] = { 0 };
    struct shp place = { .ndim = got->shape.ndim };
    char first_got[64] = "", first_want[64] = "";
    size_t bad = 0;

    do {
        const char *g = at(got, index), *w = at(want, index);
        if (element_fits(got->dtype, g, w, rule) || bad++)
            continue;
        memcpy(place.d, index, sizeof place.d);
        element_text(got->dtype, g, first_got, sizeof first_got);
        element_text(got->dtype, w, first_want, sizeof first_want);
    } while (next_index(index, &got->shape));
    if (bad == 0)
        return "";
    snprintf(text, sizeof text, "%zu of %zu differ, first at %s: %s for %s", bad,
             shp_size(&got->shape), shp_text(&place), first_got, first_want);
    return text;
}

const char *case_compare(const struct case_result *got, const struct case_result *want,
                         const struct case_rule *rule)
{
    static char text[2 * SHP_TEXT_MAX + 64];

    if (got->dtype != want->dtype) {
        snprintf(text, sizeof text, "dtype %s for %s", dt_name(got->dtype), dt_name(want->dtype));
        return text;
    }
    if (!shp_equal(&got->shape, &want->shape)) {
        snprintf(text, sizeof text, "shape %s for %s", shp_text(&got->shape),
                 shp_text(&want->shape));
        return text;
    }
    return shp_size(&got->shape) ? compare_elements(got, want, rule) : "";
}
