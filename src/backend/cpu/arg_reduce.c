/* Position of the largest or smallest element along one axis; the first of several.
 *
 * As in MLX the first NaN beats everything. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/kernels_scalar.h"
#include "backend/cpu/tile.h"

#define TILE 1024
#define PARALLEL_ELEMENTS 32768
/* Fewer columns than this are not worth a walk by columns. */
#define LANES_MIN 16

struct task {
    struct cpu_src in;
    uint32_t *out;
    uint8_t in_type, wide_type; /* enum dtype; half types are compared as float32 */
    bool is_max;
    size_t n_out;
    int64_t length, stride; /* of the axis */
    struct nest kept;       /* the other axes */
};

struct best {
    uint32_t index;
    bool found;
    char value[8] __attribute__((aligned(8)));
};

/* Looks at n elements, of which the first has position `first` on the axis. */
typedef void (*scan_fn)(struct best *best, const void *x, size_t n, uint32_t first);

/* BEATS(a, b) is the order; complex numbers go by real part, then by imaginary part, and with a NaN
 * in either they are one. */
#define LESS(a, b) ((a) < (b) || ((a) != (a) && (b) == (b)))
#define GREATER(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#define C_LESS(a, b) (!c_isnan(b) && (c_isnan(a) || c_greater(b, a)))
#define C_GREATER(a, b) (!c_isnan(b) && (c_isnan(a) || c_greater(a, b)))

#define SCAN(name, T, BEATS)                                                                       \
    static void name(struct best *best, const void *x, size_t n, uint32_t first)                   \
    {                                                                                              \
        const T *v = x;                                                                            \
        T top;                                                                                     \
        if (!best->found) {                                                                        \
            memcpy(best->value, v, sizeof top);                                                    \
            best->index = first;                                                                   \
            best->found = true;                                                                    \
        }                                                                                          \
        memcpy(&top, best->value, sizeof top);                                                     \
        for (size_t i = 0; i < n; i++) {                                                           \
            if (BEATS(v[i], top)) {                                                                \
                top = v[i];                                                                        \
                best->index = first + (uint32_t)i;                                                 \
            }                                                                                      \
        }                                                                                          \
        memcpy(best->value, &top, sizeof top);                                                     \
    }

#define SCANS(id, T)                                                                               \
    SCAN(min_##id, T, LESS)                                                                        \
    SCAN(max_##id, T, GREATER)
SCANS(U8, uint8_t)
SCANS(U16, uint16_t)
SCANS(U32, uint32_t)
SCANS(U64, uint64_t)
SCANS(I8, int8_t)
SCANS(I16, int16_t)
SCANS(I32, int32_t)
SCANS(I64, int64_t)
SCANS(F32, float)
SCANS(F64, double)
SCAN(min_C64, float _Complex, C_LESS)
SCAN(max_C64, float _Complex, C_GREATER)

#define ROW(id) [CPU_##id] = { min_##id, max_##id }
static const scan_fn scans[CPU_CLASS_COUNT][2] = {
    [CPU_B] = { min_U8, max_U8 },
    ROW(U8),
    ROW(U16),
    ROW(U32),
    ROW(U64),
    ROW(I8),
    ROW(I16),
    ROW(I32),
    ROW(I64),
    ROW(F32),
    ROW(F64),
    ROW(C64),
};

/* A tile without NaN whose extremum does not beat the best so far needs no scan. */
static bool can_skip(const struct task *t, const struct best *best, const char *x, size_t n)
{
    enum op_id op = t->is_max ? OP_MAXIMUM : OP_MINIMUM;
    uint8_t class = cpu_class_of[t->wide_type];
    char top[8] __attribute__((aligned(8))), joined[8] __attribute__((aligned(8)));
    size_t item = dt_size((enum dtype)t->wide_type);

    if (!best->found || class == CPU_C64)
        return false;
    cpu_kernels()->fold[op][class](top, x, n);
    /* On a tie the second operand stays, which is the earlier one; a NaN in the tile shows. */
    cpu_kernels()->op[op][class].fn(joined, top, best->value, NULL, 1);
    return memcmp(joined, best->value, item) == 0;
}

static uint32_t find(const struct task *t, const char *in)
{
    enum dtype from = (enum dtype)t->in_type, to = (enum dtype)t->wide_type;
    struct nest axis = {
        .ndim = 1, .n_operands = 1, .dim = { t->length }, .stride = { { t->stride } }
    };
    struct tile_walk w = { &axis, 0, dt_size(from) };
    scan_fn scan = scans[cpu_class_of[to]][t->is_max];
    char raw[TILE * 8] __attribute__((aligned(64))), wide[TILE * 8] __attribute__((aligned(64)));
    struct best best = { .found = false };

    for (size_t i = 0, n; i < (size_t)t->length; i += n) {
        n = MIN(TILE, (size_t)t->length - i);
        const char *x = tile_gather(raw, in, &w, i, n);
        if (from != to) {
            cpu_convert((struct cpu_vec){ wide, to }, (struct cpu_vec){ (char *)x, from }, n);
            x = wide;
        }
        if (!can_skip(t, &best, x, n))
            scan(&best, x, n, (uint32_t)i);
    }
    return best.index;
}

struct run {
    const struct task *t;
    const char *in;
    int lane; /* by columns: the kept dimension along which the input is dense */
};

/* ---- one output at a time ---- */

static void run_range(void *arg, size_t begin, size_t end)
{
    const struct run *r = arg;
    int64_t item = (int64_t)dt_size((enum dtype)r->t->in_type);

    for (size_t i = begin; i < end; i++)
        r->t->out[i] = find(r->t, r->in + nest_offset(&r->t->kept, 0, i) * item);
}

/* ---- by columns: many outputs, one row of the input after the other ---- */

/* A dimension for the columns, or -1 if the axis itself is dense. */
static int find_lane(const struct task *t)
{
    for (int d = 0; t->stride != 1 && d < t->kept.ndim; d++)
        if (t->kept.stride[0][d] == 1 && t->kept.dim[d] >= LANES_MIN)
            return d;
    return -1;
}

static size_t blocks_per_lane(const struct run *r)
{
    return ((size_t)r->t->kept.dim[r->lane] + TILE - 1) / TILE;
}

/* The block of columns i: where it starts in the input and in the output, and the step there. */
struct block {
    int64_t in, out, out_step;
    size_t width;
};

static struct block block_at(const struct run *r, size_t i)
{
    const struct nest *n = &r->t->kept;
    size_t first = i % blocks_per_lane(r) * TILE;
    int64_t rest = (int64_t)(i / blocks_per_lane(r)), step = 1;
    struct block b = { .width = MIN(TILE, (size_t)n->dim[r->lane] - first) };

    for (int d = n->ndim - 1; d >= 0; d--) {
        int64_t c = (int64_t)first;
        if (d == r->lane) {
            b.out_step = step;
        } else {
            c = rest % n->dim[d];
            rest /= n->dim[d];
        }
        b.in += c * n->stride[0][d];
        b.out += c * step;
        step *= n->dim[d];
    }
    return b;
}

static void run_block(const struct run *r, const struct block *b)
{
    const struct task *t = r->t;
    enum dtype from = (enum dtype)t->in_type, to = (enum dtype)t->wide_type;
    int64_t item = (int64_t)dt_size(from);
    cpu_arg pick = (t->is_max ? cpu_kernels()->arg_max : cpu_kernels()->arg_min)[cpu_class_of[to]];
    char best[TILE * 8] __attribute__((aligned(64))), wide[TILE * 8] __attribute__((aligned(64)));
    uint32_t index[TILE] = { 0 };

    for (int64_t i = 0; i < t->length; i++) {
        const char *x = r->in + (b->in + i * t->stride) * item;
        if (from != to) {
            cpu_convert((struct cpu_vec){ wide, to }, (struct cpu_vec){ (char *)x, from },
                        b->width);
            x = wide;
        }
        if (i == 0)
            memcpy(best, x, b->width * dt_size(to));
        else
            pick(best, index, x, (uint32_t)i, b->width);
    }
    for (size_t i = 0; i < b->width; i++)
        t->out[b->out + (int64_t)i * b->out_step] = index[i];
}

static void run_blocks(void *arg, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        struct block b = block_at(arg, i);
        run_block(arg, &b);
    }
}

/* ---- the op ---- */

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    struct run r = { .t = t, .lane = find_lane(t) };
    size_t grain = (size_t)(PARALLEL_ELEMENTS / t->length) + 1;
    enum err err = cpu_src_host(&r.in, &t->in);

    if (err != ERR_OK)
        return err;
    if (r.lane < 0) {
        cpu_parallel_for(t->n_out, grain, run_range, &r);
        return ERR_OK;
    }
    size_t lane = (size_t)t->kept.dim[r.lane];
    cpu_parallel_for(t->n_out / lane * blocks_per_lane(&r), grain / MIN(lane, TILE) + 1, run_blocks,
                     &r);
    return ERR_OK;
}

enum err cpu_arg_reduce(const struct exec *x)
{
    const struct arg_reduce_params *p = x->node->params;
    const struct arr *in = x->in[0];
    struct arr *out = x->out[0];
    enum dtype type = (enum dtype)in->dtype;
    struct task t = {
        .in_type = in->dtype,
        .wide_type = (uint8_t)(cpu_is_half(type) ? DT_FLOAT32 : type),
        .is_max = p->is_max,
        .n_out = out->size,
        .length = in->shape[p->axis],
        .stride = in->strides[p->axis],
    };
    struct shp kept;
    enum err err;

    TRY(arr_alloc(out, &be_cpu));
    t.in = cpu_src(in);
    t.out = (uint32_t *)cpu_dst(out);
    arr_shape(&kept, out);
    nest_make(&t.kept, &kept, in->strides);
    err = cpu_enqueue(x->strm, run_task, &t, sizeof t);
out:
    return err;
}
