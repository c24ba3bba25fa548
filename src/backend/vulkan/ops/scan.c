/* Scans along an axis. */
#include "backend/vulkan/ops/scan.h"
#include "backend/common/rows.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"

static_assert((int)SCAN_MAX == SCAN_OP_MAX && (int)SCAN_LOGADDEXP == SCAN_OP_LOGADDEXP,
              "the kernel counts as the core does");

/* One scan of rows; in and out are addresses because inner ones go over totals. */
struct pass {
    enum dtype type;
    enum scan_kind kind;
    uint64_t in, out, carry;
    uint64_t rows;
    uint32_t length;
    bool reverse;
    uint32_t begin;
};

/* What the kernel accumulates in, which is what totals are. */
static enum dtype total_dtype(enum dtype t)
{
    switch (dt_table[t].kind) {
    case DT_KIND_I:
        return dt_size(t) == 8 ? DT_INT64 : DT_INT32;
    case DT_KIND_U:
        return dt_size(t) == 8 ? DT_UINT64 : DT_UINT32;
    case DT_KIND_C:
        return t;
    default:
        return DT_FLOAT32;
    }
}

static uint32_t chunk_length(void)
{
    return launch_workgroup() * SCAN_PER_LANE;
}

/* Reads and writes are declared by the caller. */
static enum err dispatch(struct vk_enc *e, const struct pass *p, bool is_total)
{
    uint32_t workgroup = launch_workgroup();
    uint32_t spec[] = { workgroup, 1, 1, (uint32_t)p->kind, is_total, workgroup };
    struct scan_args a = { .in_addr = p->in,
                           .out_addr = p->out,
                           .carry_addr = p->carry,
                           .n_rows = p->rows,
                           .row_len = p->length,
                           .chunks = (uint32_t)ceil_div(p->length, chunk_length()),
                           .reverse = p->reverse,
                           .begin = p->begin };
    const struct vk_pipe *pipe;
    enum err err;

    TRY(kern_pipe(&pipe, KERN_SCAN, p->type, spec, ARRAY_LEN(spec)));
    err = vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_COUNT }, &a, sizeof a,
                          launch_grid(a.n_rows * a.chunks));
out:
    return err;
}

/* What comes before each chunk of the rows of p, into new scratch memory. Chunks of totals are few,
 * so this goes two levels deep at most for rows of 2^32 elements. */
static enum err carry_in(uint64_t *carry, struct vk_enc *e, const struct pass *p,
                         const struct arr *in)
{
    enum dtype type = total_dtype(p->type);
    uint32_t chunks = (uint32_t)ceil_div(p->length, chunk_length());
    size_t bytes = p->rows * chunks * dt_size(type);
    struct pass totals = *p, scan = { .type = type,
                                      .kind = p->kind,
                                      .rows = p->rows,
                                      .length = chunks,
                                      .begin = SCAN_BEGIN_NEUTRAL };
    enum err err;

    if (in)
        TRY(vk_enc_read(e, &totals.in, in));
    else
        vk_enc_scratch_read(e, p->in, p->rows * p->length * dt_size(p->type));
    TRY(vk_enc_scratch(e, &totals.out, bytes));
    TRY(dispatch(e, &totals, true));
    scan.in = totals.out;
    if (chunks > chunk_length())
        TRY(carry_in(&scan.carry, e, &scan, NULL));
    vk_enc_scratch_read(e, scan.in, bytes);
    if (scan.carry)
        vk_enc_scratch_read(e, scan.carry,
                            p->rows * (size_t)ceil_div(chunks, chunk_length()) * dt_size(type));
    TRY(vk_enc_scratch(e, &scan.out, bytes));
    TRY(dispatch(e, &scan, false));
    *carry = scan.out;
out:
    return err;
}

static enum err encode(struct vk_enc *e, struct pass *p, const struct arr *in,
                       const struct arr *out)
{
    size_t chunks = (size_t)ceil_div(p->length, chunk_length());
    enum err err = ERR_OK;

    if (chunks > 1)
        TRY(carry_in(&p->carry, e, p, in));
    if (p->carry)
        vk_enc_scratch_read(e, p->carry, p->rows * chunks * dt_size(total_dtype(p->type)));
    TRY(vk_enc_read(e, &p->in, in));
    TRY(vk_enc_write(e, &p->out, out));
    err = dispatch(e, p, false);
out:
    return err;
}

static enum err encode_in_order(struct vk_enc *e, struct pass *p, const struct arr *in,
                                const struct arr *out)
{
    uint32_t workgroup = launch_workgroup();
    uint32_t spec[] = { workgroup, 1, 1 };
    struct scan_args a = { .n_rows = p->rows,
                           .row_len = p->length,
                           .chunks = 1,
                           .reverse = p->reverse,
                           .begin = p->begin };
    const struct vk_pipe *pipe;
    enum err err;

    TRY(kern_pipe(&pipe, KERN_SCAN_ORDER, p->type, spec, ARRAY_LEN(spec)));
    TRY(vk_enc_read(e, &a.in_addr, in));
    TRY(vk_enc_write(e, &a.out_addr, out));
    err = vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_COUNT }, &a, sizeof a,
                          launch_grid((uint64_t)ceil_div((int64_t)p->rows, workgroup)));
out:
    return err;
}

enum err vk_scan_counts(struct strm *s, const struct arr *counts, uint64_t rows)
{
    struct pass p = { .type = (enum dtype)counts->dtype,
                      .kind = SCAN_SUM,
                      .rows = rows,
                      .length = (uint32_t)(counts->size / rows),
                      .begin = SCAN_BEGIN_FIRST };
    struct vk_enc *e;
    enum err err = vk_enc_get(&e, s);

    return err ? err : encode(e, &p, counts, counts);
}

enum err vk_scan(const struct exec *x)
{
    const struct scan_params *params = x->node->params;
    enum dtype t = (enum dtype)x->out[0]->dtype;
    bool in_order = t == DT_COMPLEX64 && params->kind == SCAN_LOGADDEXP;
    struct be_rows rows;
    struct vk_enc *e;
    enum err err;

    if (!kern_is_usable(in_order ? KERN_SCAN_ORDER : KERN_SCAN, t))
        return err_set(ERR_UNSUPPORTED, "[scan] no Vulkan kernel for %s", dt_name(t));
    TRY(be_rows_begin(&rows, x, params->axis));
    struct pass p = { .type = t,
                      .kind = (enum scan_kind)params->kind,
                      .rows = rows.n,
                      .length = rows.length,
                      .reverse = params->reverse,
                      .begin = params->inclusive ? SCAN_BEGIN_FIRST : SCAN_BEGIN_ZERO };
    err = vk_enc_get(&e, x->strm);
    if (!err)
        err = (in_order ? encode_in_order : encode)(e, &p, rows.in, rows.out);
    err = be_rows_end(&rows, x->strm, err);
out:
    return err;
}
