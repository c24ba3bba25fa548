/* Runs elementwise programs in tiles: every instruction is one loop over a tile that stays in the
 * first-level cache, so a chain costs one pass over memory, and each instruction still rounds to
 * its own dtype. */
#include "backend/common/elementwise.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/tile.h"

#define MAX_VALUES (ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_INS)
/* Room for the tiles of one program: most of a first-level cache of 32 KiB, on the stack. */
#define SCRATCH_BYTES 28672
#define TILE_MAX 1024
#define TILE_ALIGN 16 /* elements; with it every tile starts on a cache line */
/* Operands that are dense along another dimension than the output come in blocks of so many rows
 * and columns. Shorter sides are not worth it. */
#define PANEL_COLS 64
#define PANEL_MIN 16
#define PANELS 2
/* Instructions times elements below which a second thread costs more than it brings. */
#define PARALLEL_WORK 65536

/* How the values of an input come into a tile. */
enum load {
    LOAD_DIRECT, /* used in place */
    LOAD_SPLAT,  /* one element, repeated */
    LOAD_GATHER, /* strided */
    LOAD_PANEL,  /* strided, but dense along the dimension `across` */
};

struct task {
    struct elem_program program;
    size_t n;
    uint32_t scalar_in;
    bool strided;
    bool overlaps; /* an output took over the buffer of an input */
    struct cpu_src in[ELEM_PROGRAM_MAX_IN];
    char *out[ELEM_PROGRAM_MAX_OUT];
    struct nest nest; /* strided only, and then the last part of the payload */
};

struct step {
    cpu_kernel fn;
    uint8_t arg[3], n_args;
    uint8_t result;   /* value */
    uint8_t round_to; /* DT_FLOAT16, DT_BFLOAT16, or anything else for no rounding */
    int8_t direct;    /* output that the result is written to, or -1: a tile */
};

struct program {
    const struct task *task;
    const struct cpu_kernels *k;
    const char *base[ELEM_PROGRAM_MAX_IN];
    uint8_t load[ELEM_PROGRAM_MAX_IN];
    int across, n_panels;  /* across: dimension of the nest, or -1 without panels */
    uint8_t panel[PANELS]; /* inputs */
    struct step step[ELEM_PROGRAM_MAX_INS];
    uint8_t slot[MAX_VALUES];          /* tile of a value */
    bool stored[ELEM_PROGRAM_MAX_OUT]; /* output is copied from its value at the end of a tile */
    size_t slot_bytes, tile;
};

/* ---- from program to program ---- */

static cpu_kernel find_kernel(const struct cpu_kernels *k, const struct elem_program *program,
                              const struct elem_program_ins *ins)
{
    int key = ins->arg[ins->op == OP_SELECT];
    uint8_t from = cpu_class_of[elem_program_dtype(program, key)], to = cpu_class_of[ins->dtype];

    if (ins->op == OP_ASTYPE)
        return k->convert[from][to];
    const struct cpu_kernel_row *row = &k->op[ins->op][from];
    return row->result == to ? row->fn : NULL;
}

static enum err check_supported(const struct elem_program *program)
{
    const struct cpu_kernels *k = cpu_kernels();

    for (int i = 0; i < program->n_ins; i++)
        if (!find_kernel(k, program, &program->ins[i]))
            return err_set(ERR_UNSUPPORTED, "[%s] Not supported for %s on the CPU.",
                           op_name((enum op_id)program->ins[i].op),
                           dt_name(elem_program_dtype(program, program->ins[i].arg[0])));
    return ERR_OK;
}

static bool all_zero(const int64_t *v, int n)
{
    for (int i = 0; i < n; i++)
        if (v[i])
            return false;
    return true;
}

static bool is_row_major(const struct nest *nest, int operand)
{
    int64_t step = 1;

    for (int i = nest->ndim - 1; i >= 0; i--) {
        if (nest->stride[operand][i] != step)
            return false;
        step *= nest->dim[i];
    }
    return true;
}

static enum load input_load(const struct task *t, int i)
{
    if (!t->strided)
        return t->scalar_in >> i & 1 ? LOAD_SPLAT : LOAD_DIRECT;
    if (all_zero(t->nest.stride[i], t->nest.ndim))
        return LOAD_SPLAT;
    return is_row_major(&t->nest, i) ? LOAD_DIRECT : LOAD_GATHER;
}

/* Whether input i lies dense along dimension d and far apart along the last one. */
static bool is_turned(const struct nest *n, int i, int d)
{
    int64_t inner = n->stride[i][n->ndim - 1];

    return inner != 0 && inner != 1 && n->stride[i][d] == 1 && n->dim[d] >= PANEL_MIN;
}

static void choose_panels(struct program *p)
{
    const struct nest *n = &p->task->nest;

    p->across = -1;
    if (!p->task->strided || n->dim[n->ndim - 1] < PANEL_MIN)
        return;
    for (int i = 0; i < p->task->program.n_in && p->n_panels < PANELS; i++)
        for (int d = 0; d < n->ndim - 1; d++)
            if (p->load[i] == LOAD_GATHER && (p->across < 0 || p->across == d) &&
                is_turned(n, i, d)) {
                p->across = d;
                p->load[i] = LOAD_PANEL;
                p->panel[p->n_panels++] = (uint8_t)i;
            }
}

/* The output that value v can be written to without a tile in between, or -1. */
static int direct_output(const struct elem_program *program, int v, bool allowed)
{
    if (!allowed || cpu_is_half(elem_program_dtype(program, v)))
        return -1;
    for (int o = 0; o < program->n_out; o++)
        if (program->out[o] == v)
            return o;
    return -1;
}

/* last[v]: the last instruction that reads v, -1 if none does. */
static void find_last_uses(int8_t last[MAX_VALUES], const struct elem_program *program)
{
    memset(last, -1, MAX_VALUES);
    for (int i = 0; i < program->n_ins; i++)
        for (int a = 0; a < program->ins[i].n_args; a++)
            last[program->ins[i].arg[a]] = (int8_t)i;
}

static bool is_output(const struct elem_program *program, int v)
{
    for (int o = 0; o < program->n_out; o++)
        if (program->out[o] == v)
            return true;
    return false;
}

struct slots {
    int n;
    bool busy[MAX_VALUES];
};

static uint8_t slot_take(struct slots *s)
{
    int i = 0;

    while (i < s->n && s->busy[i])
        i++;
    s->n = MAX(s->n, i + 1);
    s->busy[i] = true;
    return (uint8_t)i;
}

/* Inputs keep a tile each; a result's tile is free again after its last reader. */
static int assign_slots(struct program *p, const struct elem_program *program, const int8_t *last)
{
    struct slots s = { 0 };

    for (int i = 0; i < program->n_in; i++)
        if (p->load[i] == LOAD_SPLAT || p->load[i] == LOAD_GATHER ||
            cpu_is_half(elem_program_dtype(program, i)))
            p->slot[i] = slot_take(&s);
    for (int i = 0; i < program->n_ins; i++) {
        int result = program->n_in + i;
        if (p->step[i].direct < 0)
            p->slot[result] = slot_take(&s);
        for (int a = 0; a < program->ins[i].n_args; a++) {
            int v = program->ins[i].arg[a];
            if (v >= program->n_in && last[v] == i && p->step[v - program->n_in].direct < 0 &&
                !is_output(program, v))
                s.busy[p->slot[v]] = false;
        }
    }
    return s.n;
}

static void make_step(struct program *p, const struct elem_program *program, int i, bool read_later)
{
    const struct elem_program_ins *ins = &program->ins[i];
    struct step *s = &p->step[i];
    bool last = i == program->n_ins - 1;

    s->fn = find_kernel(p->k, program, ins);
    s->n_args = ins->n_args;
    memcpy(s->arg, ins->arg, sizeof s->arg);
    s->result = (uint8_t)(program->n_in + i);
    /* A half that only goes out is rounded by the store. */
    s->round_to = read_later ? ins->dtype : DT_FLOAT32;
    s->direct = (int8_t)direct_output(program, s->result, last || !p->task->overlaps);
    if (s->direct >= 0)
        p->stored[s->direct] = false;
}

static enum err make_program(struct program *p, const struct task *t)
{
    const struct elem_program *program = &t->program;
    int8_t last[MAX_VALUES];
    size_t width = 4;
    enum err err = ERR_OK;

    *p = (struct program){ .task = t, .k = cpu_kernels() };
    for (int i = 0; i < program->n_in; i++) {
        TRY(cpu_src_host(&p->base[i], &t->in[i]));
        p->load[i] = (uint8_t)input_load(t, i);
    }
    choose_panels(p);
    for (int o = 0; o < program->n_out; o++)
        p->stored[o] = true;
    find_last_uses(last, program);
    for (int i = 0; i < program->n_ins; i++)
        make_step(p, program, i, last[program->n_in + i] >= 0);
    for (int v = 0; v < program->n_in + program->n_ins; v++)
        width = MAX(width, (size_t)cpu_class_size[cpu_class_of[elem_program_dtype(program, v)]]);
    size_t n_slots = (size_t)MAX(assign_slots(p, program, last), 1);
    /* Never below a panel's width: 44 values of 8 bytes leave room for 80. */
    p->tile = MIN(TILE_MAX, SCRATCH_BYTES / (n_slots * width) / TILE_ALIGN * TILE_ALIGN);
    p->slot_bytes = p->tile * width;
out:
    return err;
}

/* ---- running ---- */

/* One thread's view of a program while it works through a range. */
struct run {
    const struct program *p;
    const char *value[MAX_VALUES]; /* first element of the current tile */
    size_t panel_row;              /* row of the panels that the tile belongs to */
    char scratch[SCRATCH_BYTES] __attribute__((aligned(64)));
    char panel[PANELS][TILE_BLOCK_ROWS * PANEL_COLS * 8] __attribute__((aligned(64)));
};

static char *tile_of(struct run *r, int v)
{
    return r->scratch + r->p->slot[v] * r->p->slot_bytes;
}

static const char *panel_row(const struct run *r, int input, size_t item)
{
    int k = r->p->panel[0] == input ? 0 : 1;

    return r->panel[k] + r->panel_row * PANEL_COLS * item;
}

/* Brings n elements from position `first` of input i into r->value[i]. */
static void load_input(struct run *r, int i, size_t first, size_t n)
{
    const struct program *p = r->p;
    enum dtype t = (enum dtype)p->task->program.in_dtype[i];
    size_t item = dt_size(t);
    uint16_t halves[TILE_MAX];
    const char *raw = p->base[i] + first * item;

    if (p->load[i] == LOAD_SPLAT)
        return; /* done once for the whole range */
    if (p->load[i] == LOAD_GATHER)
        raw = tile_gather(cpu_is_half(t) ? (char *)halves : tile_of(r, i), p->base[i],
                          &(struct tile_walk){ &p->task->nest, i, item }, first, n);
    if (p->load[i] == LOAD_PANEL)
        raw = panel_row(r, i, item);
    if (cpu_is_half(t)) {
        cpu_widen((float *)tile_of(r, i), raw, t, n);
        raw = tile_of(r, i);
    }
    r->value[i] = raw;
}

static void splat_input(struct run *r, int i)
{
    const struct program *p = r->p;
    enum dtype t = (enum dtype)p->task->program.in_dtype[i];
    char *dst = tile_of(r, i);

    if (cpu_is_half(t))
        cpu_widen((float *)dst, p->base[i], t, 1);
    else
        memcpy(dst, p->base[i], dt_size(t));
    tile_splat(dst, dst, cpu_class_size[cpu_class_of[t]], MIN(p->tile, p->task->n));
    r->value[i] = dst;
}

static void run_step(struct run *r, const struct step *s, size_t first, size_t n)
{
    const struct program *p = r->p;
    enum dtype t = elem_program_dtype(&p->task->program, s->result);
    char *dst =
        s->direct < 0 ? tile_of(r, s->result) : p->task->out[s->direct] + first * dt_size(t);
    const char *arg[3] = { NULL, NULL, NULL };

    for (int a = 0; a < s->n_args; a++)
        arg[a] = r->value[s->arg[a]];
    s->fn(dst, arg[0], arg[1], arg[2], n);
    if (s->round_to == DT_FLOAT16)
        p->k->round_f16((float *)dst, n);
    else if (s->round_to == DT_BFLOAT16)
        p->k->round_bf16((float *)dst, n);
    r->value[s->result] = dst;
}

static void store_output(struct run *r, int o, size_t first, size_t n)
{
    const struct program *p = r->p;
    int v = p->task->program.out[o];
    enum dtype t = elem_program_dtype(&p->task->program, v);
    char *dst = p->task->out[o] + first * dt_size(t);

    if (cpu_is_half(t))
        cpu_narrow(dst, (const float *)r->value[v], t, n);
    else if (dst != r->value[v])
        memcpy(dst, r->value[v], n * dt_size(t));
}

static void run_tile(struct run *r, size_t first, size_t n)
{
    const struct program *p = r->p;
    const struct elem_program *program = &p->task->program;

    for (int i = 0; i < program->n_in; i++)
        load_input(r, i, first, n);
    for (int i = 0; i < program->n_ins; i++)
        run_step(r, &p->step[i], first, n);
    for (int o = 0; o < program->n_out; o++)
        if (p->stored[o])
            store_output(r, o, first, n);
}

static void start_run(struct run *r, const struct program *p)
{
    r->p = p;
    for (int i = 0; i < p->task->program.n_in; i++)
        if (p->load[i] == LOAD_SPLAT)
            splat_input(r, i);
}

static void run_range(void *arg, size_t begin, size_t end)
{
    const struct program *p = arg;
    const struct task *t = p->task;
    size_t row = t->strided ? (size_t)t->nest.dim[t->nest.ndim - 1] : 0;
    struct run r;

    start_run(&r, p);
    for (size_t i = begin, n; i < end; i += n) {
        n = MIN(p->tile, end - i);
        /* Long rows end a tile, so that a row with unit stride is read in place. */
        if (row >= p->tile)
            n = MIN(n, row - i % row);
        run_tile(&r, i, n);
    }
}

/* ---- panels ---- */

/* The corner of a block: its position in every dimension but the last. */
struct corner {
    int64_t c[SHP_MAX];
    size_t rows; /* along `across` */
};

static struct corner corner_of(const struct program *p, size_t strip)
{
    const struct nest *n = &p->task->nest;
    int64_t blocks = ceil_div(n->dim[p->across], TILE_BLOCK_ROWS), rest = (int64_t)strip / blocks;
    int64_t row = (int64_t)strip % blocks * TILE_BLOCK_ROWS;
    struct corner k = { .rows = (size_t)MIN(TILE_BLOCK_ROWS, n->dim[p->across] - row) };

    for (int d = n->ndim - 2; d >= 0; d--) {
        if (d == p->across)
            continue;
        k.c[d] = rest % n->dim[d];
        rest /= n->dim[d];
    }
    k.c[p->across] = row;
    return k;
}

static void load_panels(struct run *r, const struct corner *k, int64_t col, size_t cols)
{
    const struct program *p = r->p;
    const struct nest *n = &p->task->nest;

    for (int i = 0; i < p->n_panels; i++) {
        const int64_t *stride = n->stride[p->panel[i]];
        size_t item = dt_size((enum dtype)p->task->program.in_dtype[p->panel[i]]);
        int64_t at = col * stride[n->ndim - 1];
        for (int d = 0; d < n->ndim - 1; d++)
            at += k->c[d] * stride[d];
        tile_transpose(&(struct tile_block){ .src = p->base[p->panel[i]] + at * (int64_t)item,
                                             .dst = r->panel[i],
                                             .src_stride = stride[n->ndim - 1],
                                             .dst_stride = PANEL_COLS,
                                             .rows = k->rows,
                                             .cols = cols },
                       item);
    }
}

/* Position of row `row` of a block in the output. */
static size_t output_index(const struct program *p, const struct corner *k, size_t row, int64_t col)
{
    const struct nest *n = &p->task->nest;
    int64_t index = 0;

    for (int d = 0; d < n->ndim - 1; d++)
        index = index * n->dim[d] + k->c[d] + (d == p->across ? (int64_t)row : 0);
    return (size_t)(index * n->dim[n->ndim - 1] + col);
}

static void run_strips(void *arg, size_t begin, size_t end)
{
    const struct program *p = arg;
    int64_t width = p->task->nest.dim[p->task->nest.ndim - 1];
    struct run r;

    start_run(&r, p);
    for (size_t s = begin; s < end; s++) {
        struct corner k = corner_of(p, s);
        for (int64_t col = 0; col < width; col += PANEL_COLS) {
            size_t cols = (size_t)MIN(PANEL_COLS, width - col);
            load_panels(&r, &k, col, cols);
            for (r.panel_row = 0; r.panel_row < k.rows; r.panel_row++)
                run_tile(&r, output_index(p, &k, r.panel_row, col), cols);
        }
    }
}

/* ---- tasks ---- */

static enum err run_task(void *payload)
{
    const struct task *t = payload;
    size_t grain = PARALLEL_WORK / (t->program.n_ins + 1u);
    struct program p;
    enum err err = make_program(&p, t);

    if (err != ERR_OK)
        return err;
    if (p.across < 0) {
        cpu_parallel_for(t->n, grain, run_range, &p);
        return ERR_OK;
    }
    const struct nest *n = &t->nest;
    size_t rows = (size_t)n->dim[p.across], width = (size_t)n->dim[n->ndim - 1];
    size_t strips = t->n / (rows * width) * ((rows + TILE_BLOCK_ROWS - 1) / TILE_BLOCK_ROWS);
    cpu_parallel_for(strips, grain / (TILE_BLOCK_ROWS * width) + 1, run_strips, &p);
    return ERR_OK;
}

static bool shares_buffer(const struct exec *x)
{
    for (int o = 0; o < x->n_out; o++)
        for (int i = 0; i < x->n_in; i++)
            if (x->out[o]->buf == x->in[i]->buf)
                return true;
    return false;
}

enum err cpu_elementwise(const struct exec *x)
{
    struct elem_walk w;
    struct task t;
    enum err err;

    TRY(check_supported(x->program));
    TRY(elem_prepare(&w, x, &be_cpu));
    if (w.n == 0)
        goto out;
    t.program = *x->program;
    t.n = w.n;
    t.strided = w.kind == ELEM_STRIDED;
    t.scalar_in = w.kind == ELEM_SCALAR ? UINT32_MAX : w.scalar_in;
    t.overlaps = shares_buffer(x);
    for (int i = 0; i < x->n_in; i++)
        t.in[i] = cpu_src(x->in[i]);
    for (int o = 0; o < x->n_out; o++)
        t.out[o] = cpu_dst(x->out[o]);
    if (t.strided)
        t.nest = w.nest;
    err = cpu_enqueue(x->strm, run_task, &t, t.strided ? sizeof t : offsetof(struct task, nest));
out:
    return err;
}
