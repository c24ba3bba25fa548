#include "backend/vulkan/ops/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/encoder.h"
#include "base/gate.h"
#include "base/log.h"

#define F32 MM_BIT(DT_FLOAT32)
#define F16 MM_BIT(DT_FLOAT16)
#define BF16 MM_BIT(DT_BFLOAT16)
#define C64 MM_BIT(DT_COMPLEX64)
#define ANY (F32 | F16 | BF16 | C64)

/* More vectors than this are a matrix: the accumulators of a gemv would leave the registers. */
#define MAX_VECTORS 8
/* Cooperative tiles are for matrices; packing an operand for them needs reuse to pay off. */
#define MIN_COOP 16
#define MIN_COOP_PACKED 64
/* A part of k has at least this many steps of its kernel, and a tile is chosen for what splitting
 * gives only where the parts are much longer. */
#define MIN_SPLIT_STEPS 8
#define LONG_SPLIT_STEPS 32
/* A loop of a software device ends after 65,535 trips; a loop over k makes at most this many. */
#define SOFTWARE_MAX_STEPS 8192
/* Partial sums take at most this many bytes. */
#define MAX_PARTS ((int64_t)64 << 20)

#define FIRST VARIANT_GEMV_K_SHORT
#define LAST VARIANT_TILED_32X32_K8
#define ROW(name, ...) [VARIANT_##name - FIRST] = { VARIANT_##name, __VA_ARGS__ }

/* From large tiles, which reuse more, to small ones, which fill a device with little work. Names of
 * cooperative tiles are their sizes with fragments of 16 x 16. On an H200 at 4096 cubed the first
 * of them reaches 301 (f16) and 310 (bf16) TFLOP/s; shorter k with two stages 255 and 265, larger
 * tiles 257 and 267 at best, workgroup-scope matrices 71. */
static const struct mm_variant variants[LAST - FIRST + 1] = {
    ROW(GEMV_K_SHORT, MM_GEMV, { 8, 1, 128 }, ANY, .max_k = 256, .layout = MM_ALONG_K),
    ROW(GEMV_K_ROWS4, MM_GEMV, { 32, 4, 128 }, ANY, .fill = 400, .layout = MM_ALONG_K),
    ROW(GEMV_K_ROWS1, MM_GEMV, { 32, 1, 128 }, ANY, .fill = 100, .layout = MM_ALONG_K),
    ROW(GEMV_K_GROUP, MM_GEMV, { 256, 1, 256 }, ANY, .layout = MM_ALONG_K, .last = true),
    ROW(GEMV_X_WIDE, MM_GEMV, { 32, 1, 256 }, ANY, .fill = 200, .layout = MM_ACROSS_K),
    ROW(GEMV_X, MM_GEMV, { 8, 1, 256 }, ANY, .layout = MM_ACROSS_K, .last = true),
    ROW(COOP_128X128_K64, MM_COOP, { 2, 2, 4, 4, 4, 1 }, F16 | BF16, .fill = 150),
    ROW(COOP_128X128, MM_COOP, { 2, 4, 4, 2, 4, 1 }, F16 | BF16, .fill = 50),
    ROW(COOP_64X64, MM_COOP, { 2, 2, 2, 2, 4, 1 }, F16 | BF16, .fill = 50),
    ROW(COOP_32X64, MM_COOP, { 1, 2, 2, 2, 4, 1 }, F16 | BF16, .last = true),
    ROW(TILED_128X128, MM_TILED, { 128, 128, 16, 16, 8 }, F32 | F16 | BF16, .fill = 100),
    ROW(TILED_64X64, MM_TILED, { 64, 64, 16, 8, 4 }, F32 | F16 | BF16, .fill = 100),
    ROW(TILED_64X64_K8, MM_TILED, { 64, 64, 8, 8, 4 }, C64, .fill = 100),
    ROW(TILED_32X32, MM_TILED, { 32, 32, 16, 4, 4 }, F32 | F16 | BF16, .last = true),
    ROW(TILED_32X32_K8, MM_TILED, { 32, 32, 8, 4, 4 }, C64, .last = true),
};

/* Of sparse products; of masks only those that divide a block fit. One stage. */
#define SPARSE_FIRST VARIANT_SPARSE_COOP_128X128
#define SPARSE_LAST VARIANT_SPARSE_TILED_32X32
#define SPARSE(name, ...)                                                                          \
    [VARIANT_SPARSE_##name - SPARSE_FIRST] = { VARIANT_SPARSE_##name, __VA_ARGS__ }

static const struct mm_variant sparse_variants[SPARSE_LAST - SPARSE_FIRST + 1] = {
    SPARSE(COOP_128X128, MM_COOP, { 2, 4, 4, 2, 4, 1 }, F16 | BF16, .fill = 50),
    SPARSE(COOP_64X64, MM_COOP, { 2, 2, 2, 2, 4, 1 }, F16 | BF16, .fill = 50),
    SPARSE(COOP_32X32, MM_COOP, { 1, 2, 2, 1, 2, 1 }, F16 | BF16, .last = true),
    SPARSE(TILED_128X128, MM_TILED, { 128, 128, 16, 16, 8 }, F32 | F16 | BF16, .fill = 100),
    SPARSE(TILED_64X64, MM_TILED, { 64, 64, 16, 8, 4 }, F32 | F16 | BF16, .fill = 100),
    SPARSE(TILED_32X32, MM_TILED, { 32, 32, 16, 4, 4 }, F32 | F16 | BF16, .last = true),
};

bool mm_vectors_are_a(const struct mm_problem *q)
{
    return q->m <= q->n;
}

/* ---- what a tile means for its kernel ---- */

struct geometry {
    uint32_t threads, shared; /* of a workgroup; shared memory in bytes */
    int64_t m, n;             /* of the product in one workgroup */
    int64_t step;             /* of k in one trip */
};

/* The operand that a gemv reads as its matrix. */
static int matrix_of(const struct mm_problem *q)
{
    return mm_vectors_are_a(q) ? 1 : 0;
}

static void gemv_geometry(struct geometry *g, const uint32_t *tile, const struct mm_problem *q)
{
    uint32_t lanes = tile[0], rows = tile[1], lines = tile[2] / lanes;
    int matrix = matrix_of(q);
    uint32_t width = q->aligned[matrix] ? 16 / (uint32_t)dt_size(q->dtype) : 1;
    int64_t held = q->along_k[matrix] ? lines * rows : lanes * width;
    bool rows_are_n = mm_vectors_are_a(q);

    *g = (struct geometry){ .threads = tile[2],
                            .shared = 4 * 8 * tile[2],
                            .m = rows_are_n ? q->m : held,
                            .n = rows_are_n ? held : q->n,
                            .step = q->along_k[matrix] ? lanes * width : lines };
}

/* Shared memory of one operand in chunks of 16 bytes: rows of an odd number of chunks. */
static uint32_t coop_chunks(uint32_t rows, uint32_t k, bool along_k)
{
    return along_k ? rows * ((k / 8) | 1) : k * ((rows / 8) | 1);
}

/* Operands that the kernel cannot read are packed into rows first: a along k, b along n. */
static bool coop_along_k(const struct mm_problem *q, int i)
{
    return q->aligned[i] ? q->along_k[i] : i == 0;
}

static void coop_geometry(struct geometry *g, const uint32_t *tile, const struct mm_problem *q)
{
    const struct vk_limits *dev = vk_limits_get();
    uint32_t edge = dev->coopmat_edge, step = edge * tile[4], k = step * tile[5];
    uint32_t m = edge * tile[0] * tile[2], n = edge * tile[1] * tile[3];
    uint32_t strips = tile[0] * tile[1] * edge * (edge * tile[3] / 4 + 1);
    uint32_t staged = coop_chunks(m, k, coop_along_k(q, 0)) + coop_chunks(n, k, coop_along_k(q, 1));

    *g = (struct geometry){ .threads = dev->subgroup_size * tile[0] * tile[1],
                            .shared = 16 * MAX(staged, strips),
                            .m = m,
                            .n = n,
                            .step = step };
}

static void tiled_geometry(struct geometry *g, const uint32_t *tile, const struct mm_problem *q)
{
    uint32_t planes = q->dtype == DT_COMPLEX64 ? 2 : 1;

    *g = (struct geometry){ .threads = tile[0] / tile[3] * (tile[1] / tile[4]),
                            .shared = 2 * planes * tile[2] * 4 * (tile[0] + tile[1] + 4),
                            .m = tile[0],
                            .n = tile[1],
                            .step = tile[2] };
}

static bool is_power_of_two(uint32_t v)
{
    return v && !(v & (v - 1));
}

static bool gemv_tile_is_valid(const uint32_t *t)
{
    return is_power_of_two(t[0]) && is_power_of_two(t[2]) && t[0] <= t[2] && t[1] >= 1 &&
           t[1] <= 8 && t[2] % vk_limits_get()->max_subgroup == 0;
}

static bool coop_tile_is_valid(const uint32_t *t)
{
    return t[0] - 1 < 32 && t[1] - 1 < 32 && t[0] * t[1] <= 32 && t[2] - 1 < 4 && t[3] - 1 < 8 &&
           t[4] - 1 < 4 && t[5] - 1 < 2;
}

static bool tiled_tile_is_valid(const uint32_t *t)
{
    return t[2] && t[2] % 4 == 0 && t[3] && t[3] % 4 == 0 && t[4] && t[4] % 4 == 0 && t[0] &&
           t[0] % (4 * t[3]) == 0 && t[1] && t[1] % (8 * t[4]) == 0;
}

static const struct kernel {
    const char *name;
    int n_tile;
    uint32_t busy; /* invocations per compute unit that splitting k aims at */
    bool (*tile_is_valid)(const uint32_t *tile);
    void (*geometry)(struct geometry *out, const uint32_t *tile, const struct mm_problem *q);
} kernels[MM_KERNELS] = {
    [MM_GEMV] = { "gemv", 3, 1024, gemv_tile_is_valid, gemv_geometry },
    [MM_COOP] = { "coop", 6, 256, coop_tile_is_valid, coop_geometry },
    [MM_TILED] = { "tiled", 5, 256, tiled_tile_is_valid, tiled_geometry },
};

static enum kern_id kern_of(enum mm_kernel kernel, const struct mm_problem *q)
{
    enum dtype t = q->dtype;

    if (q->is_unfolded && kernel == MM_COOP)
        return t == DT_BFLOAT16 ? KERN_CONV_COOP_BF16 : KERN_CONV_COOP;
    if (q->is_unfolded)
        return KERN_CONV_TILED;
    if (q->is_sparse && kernel == MM_COOP)
        return t == DT_BFLOAT16 ? KERN_SPARSE_COOP_BF16 : KERN_SPARSE_COOP;
    if (q->is_sparse)
        return KERN_SPARSE_TILED;
    if (kernel == MM_COOP)
        return t == DT_BFLOAT16 ? KERN_GEMM_COOP_BF16 : KERN_GEMM_COOP;
    return kernel == MM_GEMV ? KERN_GEMV : KERN_GEMM_TILED;
}

/* ---- acceptance ---- */

static enum variant_reason judge_gemv(const struct mm_variant *v, const struct mm_problem *q)
{
    enum mm_layout_want have = q->along_k[matrix_of(q)] ? MM_ALONG_K : MM_ACROSS_K;

    if (!gate_on(GATE_VK_GEMV))
        return VARIANT_OFF;
    if (MIN(q->m, q->n) > MAX_VECTORS)
        return VARIANT_SIZE;
    return v->layout == MM_EITHER || v->layout == have ? VARIANT_FITS : VARIANT_LAYOUT;
}

/* Chunks are addressed by 32-bit byte offsets from the corner of a tile. */
static enum variant_reason judge_coop(const struct geometry *g, const struct mm_problem *q)
{
    int64_t least = MIN(MIN(q->m, q->n), q->k);
    int64_t reach = MAX(MAX(g->m, g->n), g->step) * 2;
    bool is_direct = q->aligned[0] && q->aligned[1];

    for (int i = 0; i < 2; i++) {
        int64_t ld = q->aligned[i] ? q->ld[i] : (i == 0 ? q->k : q->n) + 8;
        if (ld > INT32_MAX / reach || ld < -INT32_MAX / reach)
            return VARIANT_LAYOUT;
    }
    if (q->is_fixed && !is_direct)
        return VARIANT_LAYOUT;
    return least >= (is_direct ? MIN_COOP : MIN_COOP_PACKED) ? VARIANT_FITS : VARIANT_SIZE;
}

/* Tiles and steps do not cross the blocks of masks, whose factors matrix units do not take. */
static enum variant_reason judge_masks(const struct mm_variant *v, const struct geometry *g,
                                       const struct mm_problem *q)
{
    if (v->kernel == MM_COOP && q->has_factors)
        return VARIANT_DTYPE;
    return !q->block || !(q->block % g->m || q->block % g->n || q->block % g->step) ? VARIANT_FITS
                                                                                    : VARIANT_SIZE;
}

/* The kernel can run it. */
static enum variant_reason fits(const struct mm_variant *v, const struct geometry *g,
                                const struct mm_problem *q)
{
    const struct vk_limits *dev = vk_limits_get();

    if (!(v->dtypes & MM_BIT(q->dtype)))
        return VARIANT_DTYPE;
    if (v->kernel == MM_COOP && !gate_on(GATE_VK_COOPMAT))
        return VARIANT_OFF;
    if (!kern_is_usable(kern_of(v->kernel, q), q->dtype) || g->threads > dev->max_workgroup_size ||
        g->shared > dev->shared_memory)
        return VARIANT_DEVICE;
    if (v->kernel == MM_GEMV)
        return judge_gemv(v, q);
    if (judge_masks(v, g, q) != VARIANT_FITS)
        return judge_masks(v, g, q);
    return v->kernel == MM_COOP ? judge_coop(g, q) : VARIANT_FITS;
}

static int64_t groups_of(const struct geometry *g, const struct mm_problem *q)
{
    return ceil_div(q->m, g->m) * ceil_div(q->n, g->n);
}

/* The tile suits it: not too much of it hangs over the edges, and there is work for the device. */
static enum variant_reason suits(const struct mm_variant *v, const struct geometry *g,
                                 const struct mm_problem *q)
{
    int64_t groups = groups_of(g, q);
    int64_t long_parts = MAX(q->k / (LONG_SPLIT_STEPS * g->step), 1);
    double padded = (double)groups * (double)(g->m * g->n);

    if (v->last)
        return VARIANT_FITS;
    if (v->max_k && q->k > v->max_k)
        return VARIANT_SIZE;
    if (v->kernel != MM_GEMV && padded > 1.5 * (double)q->m * (double)q->n)
        return VARIANT_SIZE;
    return groups * q->n_batch * long_parts * 100 >= v->fill * vk_limits_get()->compute_units
               ? VARIANT_FITS
               : VARIANT_SIZE;
}

/* ---- a variant by name, or by kernel and tile, for measurements and bisection ---- */

#define MAX_TILE 4096 /* products of some of them fit 32 bits */

static bool parse_tile(struct mm_variant *out, const char *text)
{
    for (int k = 0; k < MM_KERNELS; k++) {
        size_t n = strlen(kernels[k].name);
        if (strncmp(text, kernels[k].name, n) != 0 || text[n] != ':')
            continue;
        *out = (struct mm_variant){ VARIANT_COUNT, .kernel = (enum mm_kernel)k, .dtypes = ANY };
        const char *at = text + n;
        for (int i = 0; i < kernels[k].n_tile; i++) {
            char *end;
            if (*at++ == '\0')
                return false;
            unsigned long v = strtoul(at, &end, 10);
            if (v > MAX_TILE)
                return false;
            out->tile[i] = (uint32_t)v;
            at = end;
        }
        return *at == '\0' && kernels[k].tile_is_valid(out->tile);
    }
    return false;
}

static void warn_unknown(const char *text)
{
    static _Atomic bool warned;
    char names[512] = "";
    size_t used = 0;

    if (warned)
        return;
    warned = true;
    for (size_t i = 0; i < ARRAY_LEN(variants) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, " %s",
                                 variant_name(variants[i].id));
    log_warn("%s: '%s' is no variant; there are%s", gate_table[GATE_VK_MATMUL_VARIANT].variable,
             text, names);
}

/* False if none is asked for or there is no such variant. */
static bool asked_for(struct mm_variant *out)
{
    const char *text = gate_text(GATE_VK_MATMUL_VARIANT);

    if (!text || !*text)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(variants); i++)
        if (strcasecmp(variant_name(variants[i].id), text) == 0) {
            *out = variants[i];
            return true;
        }
    if (parse_tile(out, text))
        return true;
    warn_unknown(text);
    return false;
}

/* ---- the choice ---- */

/* None is too short; there are more where a software device's loops ask for it. */
void mm_split(struct mm_choice *c, const struct mm_problem *q, uint32_t busy)
{
    const struct vk_limits *dev = vk_limits_get();
    int64_t steps = ceil_div(q->k, c->step);
    int64_t per_unit = MAX(busy / c->threads, 1);
    int64_t wanted = dev->compute_units * per_unit / c->groups;
    int64_t part_bytes = q->m * q->n * q->n_batch * (q->dtype == DT_COMPLEX64 ? 8 : 4);
    int64_t parts = MIN(MIN(wanted, steps / MIN_SPLIT_STEPS), MAX_PARTS / part_bytes);

    if (dev->is_software)
        parts = MAX(parts, ceil_div(steps, SOFTWARE_MAX_STEPS));
    parts = MAX(parts, 1);
    int64_t per_part = MAX(ceil_div(steps, parts), 1);
    c->splits = (uint32_t)MAX(ceil_div(steps, per_part), 1);
    c->k_split = (uint32_t)(per_part * c->step);
}

static const char *name_of(const struct mm_variant *v)
{
    return v->id == VARIANT_COUNT ? gate_text(GATE_VK_MATMUL_VARIANT) : variant_name(v->id);
}

static void choose(struct mm_choice *out, const struct mm_variant *v, const struct geometry *g,
                   const struct mm_problem *q)
{
    *out = (struct mm_choice){ .variant = v->id,
                               .kernel = v->kernel,
                               .kern = kern_of(v->kernel, q),
                               .n_tile = kernels[v->kernel].n_tile,
                               .threads = g->threads,
                               .groups = groups_of(g, q) * q->n_batch,
                               .step = g->step };
    memcpy(out->tile, v->tile, sizeof out->tile);
    mm_split(out, q, kernels[v->kernel].busy);
    log_line(LOG_TRACE, "matmul %s %lldx%lldx%lld: %s, k in %u parts", dt_name(q->dtype),
             (long long)q->m, (long long)q->n, (long long)q->k, name_of(v), out->splits);
}

struct pick {
    const struct mm_problem *q;
    struct geometry g; /* of the variant that was asked last */
};

static void describe(char *text, size_t size, const void *data)
{
    const struct mm_problem *q = ((const struct pick *)data)->q;

    snprintf(text, size, "%s, %lld batches of %lld x %lld x %lld, a %s k%s, b %s k%s",
             dt_name(q->dtype), (long long)q->n_batch, (long long)q->m, (long long)q->n,
             (long long)q->k, q->along_k[0] ? "along" : "across", q->aligned[0] ? ", aligned" : "",
             q->along_k[1] ? "along" : "across", q->aligned[1] ? ", aligned" : "");
}

static enum variant_reason judge_asked(struct pick *p, const struct mm_variant *v)
{
    kernels[v->kernel].geometry(&p->g, v->tile, p->q);
    return fits(v, &p->g, p->q);
}

enum variant_reason mm_judge(struct mm_choice *out, const struct mm_variant *v,
                             const struct mm_problem *q)
{
    struct pick p = { .q = q };
    enum variant_reason why = judge_asked(&p, v);

    why = why == VARIANT_FITS ? suits(v, &p.g, q) : why;
    if (why == VARIANT_FITS)
        choose(out, v, &p.g, q);
    return why;
}

static enum variant_reason judge_row(struct pick *p, const struct mm_variant *v)
{
    enum variant_reason why = judge_asked(p, v);

    return why == VARIANT_FITS ? suits(v, &p->g, p->q) : why;
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    return judge_row(job, &variants[id - FIRST]);
}

static enum variant_reason judge_sparse(void *job, enum variant_id id)
{
    return judge_row(job, &sparse_variants[id - SPARSE_FIRST]);
}

#define SIZES "m x n x k x batch"
static const struct variant_table table = { FIRST, LAST, judge, NULL, describe, SIZES };
static const struct variant_table sparse_table = { SPARSE_FIRST, SPARSE_LAST, judge_sparse,
                                                   NULL,         describe,    SIZES };

static const struct mm_variant *row_of(const struct mm_problem *q, enum variant_id id)
{
    return q->is_sparse ? &sparse_variants[id - SPARSE_FIRST] : &variants[id - FIRST];
}

/* Counts as if it were of the table, where it has a name. */
static bool takes_asked(struct pick *p, const struct mm_variant *v)
{
    const struct mm_problem *q = p->q;
    enum variant_reason why = judge_asked(p, v);

    if (v->id == VARIANT_COUNT)
        return why == VARIANT_FITS;
    return variant_takes(
        v->id, why,
        &(struct variant_problem){ describe, p, table.sizes, { q->m, q->n, q->k, q->n_batch } });
}

enum err mm_pick(struct mm_choice *out, const struct mm_problem *q)
{
    struct pick p = { .q = q };
    struct vk_kernel kernel;
    struct mm_variant asked;
    enum err err = ERR_OK;

    if (!q->is_sparse && asked_for(&asked) && takes_asked(&p, &asked)) {
        choose(out, &asked, &p.g, q);
        goto out;
    }
    TRY(variant_pick(&kernel, q->is_sparse ? &sparse_table : &table, &p,
                     (int64_t[VARIANT_SIZES]){ q->m, q->n, q->k, q->n_batch }));
    choose(out, row_of(q, kernel.variant), &p.g, q);
out:
    return err;
}
