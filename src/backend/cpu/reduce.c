/* Sums, products, extrema and logical reductions over any axes and layouts.
 *
 * Long reductions are cut into pieces of a fixed size whose results are combined at the end, so the
 * result depends on the shape alone and not on the number of threads. */
#include "backend/common/reduce_plan.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#include <math.h>

#define TILE 1024
/* Columns side by side where there are enough of them: rows of several pages keep the processor's
 * prefetching busy, and sums of so many bytes stay in the first-level cache. */
#define COLUMNS 4096
#define COLUMN_BYTES 16384
/* Pieces of work that are worth it. */
#define COLUMN_PIECES 8
/* Elements of the input that one piece of work covers. */
#define PIECE 65536
/* Rows that a column sum adds up before it moves on to the next level: keeps float32 accurate. */
#define CASCADE 128
#define CASCADE_LEVELS 4 /* the last one takes any number */
static_assert(CASCADE * UINT8_MAX <= INT16_MAX, "the first level adds bytes up in 16 bits");
/* So few elements per output are reduced side by side for many outputs, whatever the layout. */
#define SHORT_REDUCTION 16

struct task {
    struct cpu_src in;
    char *out;
    uint8_t in_type, acc_type, out_type; /* enum dtype; acc_type is never a half type */
    uint8_t op;                          /* enum op_id of the combining op */
    struct reduce_plan plan;
};

struct reduction {
    const struct task *t;
    const char *in; /* where the walk starts */
    size_t in_item, acc_item;
    bool dense; /* the elements of one output lie side by side and need no conversion */
    cpu_fold fold;
    cpu_kernel combine;
    struct nest red;  /* the reduced axes */
    struct nest kept; /* the kept axes; by columns without the lane */
    int64_t kept_out[SHP_MAX];
    size_t piece;           /* reduced positions per piece */
    size_t n_pieces;        /* per output, or per block of columns */
    size_t width, n_blocks; /* by columns: outputs side by side, blocks along the lane */
    size_t group;           /* by columns: rows without gaps that are added at a time */
    uint8_t row_type;       /* by columns: enum dtype of what the first level combines */
    cpu_kernel combine_rows;
    char *partial; /* results of pieces when there are several */
};

/* ---- shared ---- */

static void nest_from_axes(struct nest *n, const struct reduce_axes *a)
{
    n->ndim = a->n;
    n->n_operands = 1;
    memcpy(n->dim, a->dim, (size_t)a->n * sizeof a->dim[0]);
    memcpy(n->stride[0], a->in, (size_t)a->n * sizeof a->in[0]);
    if (a->n == 0) {
        n->ndim = 1;
        n->dim[0] = n->stride[0][0] = 1;
    }
}

/* Offset of position i of a nest in elements of the input, and in elements of the output. */
static int64_t kept_offset(const struct reduction *r, size_t i, int64_t *out)
{
    int64_t in = 0, rest = (int64_t)i;

    *out = 0;
    for (int d = r->kept.ndim - 1; d > 0; d--) {
        int64_t c = rest % r->kept.dim[d];
        rest /= r->kept.dim[d];
        in += c * r->kept.stride[0][d];
        *out += c * r->kept_out[d];
    }
    *out += rest * r->kept_out[0];
    return in + rest * r->kept.stride[0][0];
}

/* n elements of the input as another type: in place, or converted into tile. */
static const char *as_type(const struct reduction *r, struct cpu_vec tile, const char *src,
                           size_t n)
{
    enum dtype in = (enum dtype)r->t->in_type;

    if (in == tile.dtype)
        return src;
    cpu_convert(tile, (struct cpu_vec){ (char *)src, in }, n);
    return tile.data;
}

static const char *as_acc(const struct reduction *r, char *tile, const char *src, size_t n)
{
    return as_type(r, (struct cpu_vec){ tile, (enum dtype)r->t->acc_type }, src, n);
}

static void store(const struct reduction *r, int64_t index, const void *value, size_t n)
{
    enum dtype acc = (enum dtype)r->t->acc_type, out = (enum dtype)r->t->out_type;

    if (n == 1 && out == acc)
        memcpy(r->t->out + index * (int64_t)r->acc_item, value, r->acc_item);
    else
        cpu_convert((struct cpu_vec){ r->t->out + index * (int64_t)dt_size(out), out },
                    (struct cpu_vec){ (void *)value, acc }, n);
}

/* ---- by rows: one output at a time ---- */

/* Results of tiles, folded whenever the list is full. */
struct partials {
    size_t n;
    char value[64 * 8] __attribute__((aligned(64)));
};

static void partials_add(const struct reduction *r, struct partials *p, const char *x, size_t n)
{
    if (p->n == 64) {
        r->fold(p->value, p->value, 64);
        p->n = 1;
    }
    r->fold(p->value + p->n++ * r->acc_item, x, n);
}

/* *dst = the combination of reduced positions [begin, end) of the output that starts at in. */
static void reduce_run(const struct reduction *r, char *dst, const char *in, size_t begin,
                       size_t end)
{
    struct tile_walk w = { &r->red, 0, r->in_item };
    size_t row = (size_t)r->red.dim[r->red.ndim - 1];
    char raw[TILE * 8] __attribute__((aligned(64))), wide[TILE * 8] __attribute__((aligned(64)));
    struct partials p;

    p.n = 0;
    for (size_t i = begin, n; i < end; i += n) {
        n = MIN(TILE, end - i);
        if (row >= TILE)
            n = MIN(n, row - i % row);
        partials_add(r, &p, as_acc(r, wide, tile_gather(raw, in, &w, i, n), n), n);
    }
    r->fold(dst, p.value, p.n);
}

/* Work item i is piece i % n_pieces of output i / n_pieces. */
static void rows_range(void *arg, size_t begin, size_t end)
{
    const struct reduction *r = arg;

    for (size_t i = begin; i < end; i++) {
        size_t output = i / r->n_pieces, piece = i % r->n_pieces;
        size_t first = piece * r->piece, last = MIN(first + r->piece, r->t->plan.n_red);
        int64_t out;
        const char *in = r->in + kept_offset(r, output, &out) * (int64_t)r->in_item;
        char value[8] __attribute__((aligned(8)));

        if (r->n_pieces > 1) {
            reduce_run(r, r->partial + i * r->acc_item, in, first, last);
            continue;
        }
        if (r->dense && last <= TILE)
            r->fold(value, in, last);
        else
            reduce_run(r, value, in, first, last);
        store(r, out, value, 1);
    }
}

static void rows_finish(const struct reduction *r)
{
    for (size_t o = 0; r->n_pieces > 1 && o < r->t->plan.n_out; o++) {
        char value[8] __attribute__((aligned(8)));
        int64_t out;

        kept_offset(r, o, &out);
        r->fold(value, r->partial + o * r->n_pieces * r->acc_item, r->n_pieces);
        store(r, out, value, 1);
    }
}

static enum err reduce_rows(struct reduction *r)
{
    const struct reduce_plan *p = &r->t->plan;

    nest_from_axes(&r->kept, &p->kept);
    memcpy(r->kept_out, p->kept.out, sizeof r->kept_out);
    r->piece = PIECE;
    r->n_pieces = (p->n_red + PIECE - 1) / PIECE;
    if (r->n_pieces > 1 && !(r->partial = mem_alloc_aligned(p->n_out * r->n_pieces * r->acc_item)))
        return ERR_NO_MEMORY;
    cpu_parallel_for(p->n_out * r->n_pieces, PIECE / 2 / MIN(p->n_red, PIECE / 2), rows_range, r);
    rows_finish(r);
    return ERR_OK;
}

/* ---- by columns: outputs that lie side by side, one row of the input after the other ---- */

/* Sums of sums: level k holds the rows that did not fill CASCADE entries of level k - 1 yet. */
struct cascade {
    size_t count[CASCADE_LEVELS];
    char value[CASCADE_LEVELS][COLUMN_BYTES] __attribute__((aligned(64)));
    char wide[COLUMN_BYTES] __attribute__((aligned(64)));
};

/* What the first level holds, as accumulator values. */
static char *widen_rows(const struct reduction *r, struct cascade *c, size_t n)
{
    if (r->row_type == r->t->acc_type)
        return c->value[0];
    cpu_convert((struct cpu_vec){ c->wide, (enum dtype)r->t->acc_type },
                (struct cpu_vec){ c->value[0], (enum dtype)r->row_type }, n);
    return c->wide;
}

static void cascade_add(const struct reduction *r, struct cascade *c, const char *row, size_t n)
{
    for (int level = 0; level < CASCADE_LEVELS; level++) {
        char *acc = c->value[level];
        if (c->count[level]++ == 0)
            memcpy(acc, row, n * (level ? r->acc_item : dt_size((enum dtype)r->row_type)));
        else
            (level ? r->combine : r->combine_rows)(acc, acc, row, NULL, n);
        if (c->count[level] < CASCADE || level == CASCADE_LEVELS - 1)
            return;
        c->count[level] = 0;
        row = level ? acc : widen_rows(r, c, n);
    }
}

/* What the levels hold, combined; at least one does. */
static char *cascade_total(const struct reduction *r, struct cascade *c, size_t n)
{
    char *total = NULL;

    for (int level = 0; level < CASCADE_LEVELS; level++) {
        if (!c->count[level])
            continue;
        char *acc = level ? c->value[level] : widen_rows(r, c, n);
        if (total)
            r->combine(acc, acc, total, NULL, n);
        total = acc;
    }
    return total;
}

/* Where a block of columns begins, in elements. */
struct block {
    int64_t in, out;
    size_t width;
};

static struct block block_at(const struct reduction *r, size_t i)
{
    const struct reduce_plan *p = &r->t->plan;
    int64_t first = (int64_t)(i % r->n_blocks * r->width), out;
    int64_t in = kept_offset(r, i / r->n_blocks, &out);

    return (struct block){
        .in = in + first * p->kept.in[p->lane],
        .out = out + first * p->kept.out[p->lane],
        .width = MIN(r->width, (size_t)(p->kept.dim[p->lane] - first)),
    };
}

static void store_block(const struct reduction *r, const struct block *b, const char *value)
{
    int64_t step = r->t->plan.kept.out[r->t->plan.lane];

    if (step == 1) {
        store(r, b->out, value, b->width);
        return;
    }
    for (size_t i = 0; i < b->width; i++)
        store(r, b->out + (int64_t)i * step, value + i * r->acc_item, 1);
}

/* Combines the rows [first, last) of a block. With narrow rows that follow each other in memory,
 * r->group of them count as one wide row until the end. */
static const char *reduce_block_rows(const struct reduction *r, struct cascade *c,
                                     const struct block *b, size_t first, size_t last)
{
    const struct reduce_plan *p = &r->t->plan;
    size_t group = MIN(r->group, last - first), n = group * b->width, row = first;
    struct nest lane = {
        .ndim = 1, .n_operands = 1, .dim = { (int64_t)n }, .stride = { { p->kept.in[p->lane] } }
    };
    struct tile_walk columns = { &lane, 0, r->in_item };
    char raw[COLUMNS * 8] __attribute__((aligned(64))),
        wide[COLUMN_BYTES] __attribute__((aligned(64)));

    memset(c->count, 0, sizeof c->count);
    for (; row + group <= last; row += group) {
        int64_t at = b->in + nest_offset(&r->red, 0, row);
        const char *x = tile_gather(raw, r->in + at * (int64_t)r->in_item, &columns, 0, n);
        struct cpu_vec tile = { wide, (enum dtype)r->row_type };
        cascade_add(r, c, as_type(r, tile, x, n), n);
    }
    char *total = cascade_total(r, c, n);
    for (; group > 1; group -= group / 2)
        r->combine(total, total, total + (group - group / 2) * b->width * r->acc_item, NULL,
                   group / 2 * b->width);
    for (; row < last; row++) {
        int64_t at = b->in + nest_offset(&r->red, 0, row);
        const char *x = r->in + at * (int64_t)r->in_item;
        r->combine(total, total, as_acc(r, wide, x, b->width), NULL, b->width);
    }
    return total;
}

/* Work item i is piece i % n_pieces of block i / n_pieces. */
static void reduce_block(const struct reduction *r, size_t i)
{
    struct block b = block_at(r, i / r->n_pieces);
    size_t first = i % r->n_pieces * r->piece, last = MIN(first + r->piece, r->t->plan.n_red);
    struct cascade c;
    const char *total = reduce_block_rows(r, &c, &b, first, last);

    if (r->n_pieces > 1)
        memcpy(r->partial + i * r->width * r->acc_item, total, b.width * r->acc_item);
    else
        store_block(r, &b, total);
}

static void columns_range(void *arg, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        reduce_block(arg, i);
}

static void columns_finish(const struct reduction *r, size_t n_blocks)
{
    for (size_t i = 0; r->n_pieces > 1 && i < n_blocks; i++) {
        struct block b = block_at(r, i);
        char *sum = r->partial + i * r->n_pieces * r->width * r->acc_item;

        for (size_t k = 1; k < r->n_pieces; k++)
            r->combine(sum, sum, sum + k * r->width * r->acc_item, NULL, b.width);
        store_block(r, &b, sum);
    }
}

/* Outputs side by side in a block. The shape alone decides, as it does on the order of sums. */
static size_t block_width(const struct reduction *r, size_t lane)
{
    const struct reduce_plan *p = &r->t->plan;
    size_t wide = MIN(COLUMNS, COLUMN_BYTES / r->acc_item);
    size_t blocks = p->n_out / lane * ((lane + wide - 1) / wide);
    bool has_work = blocks * ((p->n_red + CASCADE - 1) / CASCADE) >= COLUMN_PIECES;

    return MIN(lane, has_work ? wide : TILE);
}

/* Sums of bytes, as many as the first level takes, fit 16 bits: half the work of 32. */
static void choose_row_type(struct reduction *r)
{
    const struct task *t = r->t;
    bool adds_bytes = t->op == OP_ADD && r->in_item == 1 && r->acc_item > 2;

    r->row_type = adds_bytes ? DT_INT16 : t->acc_type;
    r->combine_rows = cpu_kernels()->op[t->op][cpu_class_of[r->row_type]].fn;
}

static enum err reduce_columns(struct reduction *r)
{
    const struct reduce_plan *p = &r->t->plan;
    struct reduce_axes others = { 0 };
    size_t lane = (size_t)p->kept.dim[p->lane];

    for (int i = 0; i < p->kept.n; i++) {
        if (i == p->lane)
            continue;
        others.dim[others.n] = p->kept.dim[i];
        others.in[others.n] = p->kept.in[i];
        r->kept_out[others.n++] = p->kept.out[i];
    }
    nest_from_axes(&r->kept, &others);
    choose_row_type(r);
    r->width = block_width(r, lane);
    bool gapless = p->kept.in[p->lane] == 1 && p->red.n == 1 && p->red.in[0] == (int64_t)lane;
    r->group = gapless ? MAX(TILE / r->width, 1) : 1;
    r->n_blocks = (lane + r->width - 1) / r->width;
    r->piece = MAX(4 * PIECE / r->width, CASCADE);
    r->n_pieces = (p->n_red + r->piece - 1) / r->piece;
    size_t n_blocks = p->n_out / lane * r->n_blocks, items = n_blocks * r->n_pieces;
    if (r->n_pieces > 1 && !(r->partial = mem_alloc_aligned(items * r->width * r->acc_item)))
        return ERR_NO_MEMORY;
    cpu_parallel_for(items, PIECE / 2 / MIN(r->width * MIN(r->piece, p->n_red), PIECE / 2),
                     columns_range, r);
    columns_finish(r, n_blocks);
    return ERR_OK;
}

/* ---- the op ---- */

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct reduction r = { .t = t };
    enum dtype acc = (enum dtype)t->acc_type;
    enum err err = cpu_src_host(&r.in, &t->in);

    if (err != ERR_OK)
        return err;
    r.in_item = dt_size((enum dtype)t->in_type);
    r.acc_item = dt_size(acc);
    r.in += t->plan.offset * (int64_t)r.in_item;
    r.fold = cpu_kernels()->fold[t->op][cpu_class_of[acc]];
    r.combine = cpu_kernels()->op[t->op][cpu_class_of[acc]].fn;
    nest_from_axes(&r.red, &t->plan.red);
    r.dense = t->in_type == t->acc_type && r.red.ndim == 1 && r.red.stride[0][0] == 1;
    err = t->plan.walk == REDUCE_ROWS ? reduce_rows(&r) : reduce_columns(&r);
    mem_free(r.partial);
    return err;
}

/* Prefers columns where rows would be too short to be worth their overhead. */
static void widen_short_rows(struct reduce_plan *p)
{
    int longest = 0;

    for (int i = 1; i < p->kept.n; i++)
        if (p->kept.dim[i] >= p->kept.dim[longest])
            longest = i;
    if (p->walk == REDUCE_COLS || p->n_red > SHORT_REDUCTION || p->kept.n == 0 ||
        p->kept.dim[longest] < SHORT_REDUCTION)
        return;
    p->walk = REDUCE_COLS;
    p->lane = longest;
}

#define NONE 0 /* an empty axis was an error */
static const struct {
    uint8_t op, identity;
} folds[] = {
#define REDUCTION(id, public, identity, result, order, fold)                                       \
    [REDUCE_##id] = { OP_##fold, identity },
#include "ops/reduce.def"
};
#undef NONE

/* Nothing to combine: every output is the identity. */
static enum err fill_identity(const struct exec *x, enum reduce_kind kind)
{
    struct arr *out = x->out[0], *value = NULL;
    int64_t zero[SHP_MAX] = { 0 };
    struct shp shape;
    enum err err;

    TRY(arr_new_number(&value, folds[kind].identity, (enum dtype)out->dtype));
    arr_shape(&shape, out);
    TRY(cpu_copy(x->strm, &(struct be_copy){ .src = value,
                                             .dst = out,
                                             .shape = &shape,
                                             .src_strides = zero,
                                             .dst_strides = out->strides }));
    err = cpu_hold(x->strm, &value->buf, 1);
out:
    arr_unref(&value);
    return err;
}

enum err cpu_reduce(const struct exec *x)
{
    const struct reduce_params *p = x->node->params;
    struct arr *in = x->in[0], *out = x->out[0];
    enum dtype out_type = (enum dtype)out->dtype;
    struct task t = {
        .in_type = in->dtype,
        .acc_type = (uint8_t)(cpu_is_half(out_type) ? DT_FLOAT32 : out_type),
        .out_type = out->dtype,
        .op = folds[p->kind].op,
    };
    enum err err;

    TRY(arr_alloc(out, &be_cpu));
    if (in->size == 0)
        return fill_identity(x, (enum reduce_kind)p->kind);
    reduce_plan_make(&t.plan, in, p->axis, p->n, reduce_kind_order((enum reduce_kind)p->kind));
    widen_short_rows(&t.plan);
    t.in = cpu_src(in);
    t.out = cpu_dst(out);
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
