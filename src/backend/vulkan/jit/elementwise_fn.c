#include "backend/vulkan/jit/elementwise_fn.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>

static const int8_t work_types[DT_COUNT] = {
    [DT_BOOL] = WORK_BOOL,    [DT_UINT8] = WORK_U32,     [DT_UINT16] = WORK_U32,
    [DT_UINT32] = WORK_U32,   [DT_UINT64] = WORK_U64,    [DT_INT8] = WORK_I32,
    [DT_INT16] = WORK_I32,    [DT_INT32] = WORK_I32,     [DT_INT64] = WORK_I64,
    [DT_FLOAT16] = WORK_F32,  [DT_FLOAT32] = WORK_F32,   [DT_FLOAT64] = -1,
    [DT_BFLOAT16] = WORK_F32, [DT_COMPLEX64] = WORK_C64,
};

static const char *const work_names[WORK_COUNT] = {
    "f32", "c64", "i32", "u32", "i64", "u64", "bool"
};

static const char *const op_ids[OP_COUNT] = {
#define OP(id, ...) [OP_##id] = #id,
#include "ops/ops.def"
};

int work_type(enum dtype t)
{
    return work_types[t];
}

uint32_t work_spv_type(struct spv *m, enum work_type w)
{
    switch (w) {
    case WORK_F32:
        return spv_type_float(m, 32);
    case WORK_C64:
        return spv_type_vector(m, spv_type_float(m, 32), 2);
    case WORK_I32:
    case WORK_I64:
        return spv_type_int(m, w == WORK_I32 ? 32 : 64, true);
    case WORK_U32:
    case WORK_U64:
        return spv_type_int(m, w == WORK_U32 ? 32 : 64, false);
    default:
        return spv_type_bool(m);
    }
}

/* ---- functions by op and type: the names say it all ---- */

#define NAME_MAX_LEN 40

static int16_t op_fns[OP_COUNT][WORK_COUNT];
static int16_t cast_fns[WORK_COUNT][WORK_COUNT];
static struct {
    int16_t load, store, round;
} dtype_fns[DT_COUNT];

static int16_t find(const char *format, const char *a, const char *b)
{
    char name[NAME_MAX_LEN];

    snprintf(name, sizeof name, format, a, b);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return (int16_t)spv_lib_find(name);
}

static void find_all(void)
{
    for (int w = 0; w < WORK_COUNT; w++) {
        for (int op = OP_NONE + 1; op < OP_COUNT; op++)
            op_fns[op][w] = find("%s_%s", op_ids[op], work_names[w]);
        for (int to = 0; to < WORK_COUNT; to++)
            cast_fns[w][to] = find("cast_%s_%s", work_names[w], work_names[to]);
    }
    for (int t = 0; t < DT_COUNT; t++) {
        dtype_fns[t].load = find("%s_%s", dt_name((enum dtype)t), "load");
        dtype_fns[t].store = find("%s_%s", dt_name((enum dtype)t), "store");
        dtype_fns[t].round = find("%s_%s", dt_name((enum dtype)t), "round");
    }
}

static void tables_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_all);
}

int elem_load_fn(enum dtype t)
{
    tables_ready();
    return dtype_fns[t].load;
}

int elem_store_fn(enum dtype t)
{
    tables_ready();
    return dtype_fns[t].store;
}

int elem_round_fn(enum dtype t)
{
    tables_ready();
    return dtype_fns[t].round;
}

/* ---- programs ---- */

/* Ops whose result is one of the values of its dtype because it is, up to the sign, one of the
 * arguments or a small integer. */
static bool is_closed(const struct elem_program_ins *ins)
{
    switch (ins->op) {
    case OP_ABS:
    case OP_NEGATIVE: /* of the lowest integer wraps */
        return dt_is_float((enum dtype)ins->dtype);
    case OP_SELECT:
    case OP_MAXIMUM:
    case OP_MINIMUM:
    case OP_CEIL:
    case OP_FLOOR:
    case OP_ROUND:
    case OP_SIGN:
    case OP_TO_FP8:
    case OP_FROM_FP8: /* every floating type has the 8-bit floats */
    case OP_RIGHT_SHIFT:
    case OP_BITWISE_AND:
    case OP_BITWISE_OR:
    case OP_BITWISE_XOR:
        return true;
    default:
        return false;
    }
}

static bool is_narrow(enum dtype t)
{
    return dt_size(t) < 4 && t != DT_BOOL;
}

static bool is_argument(const struct elem_program *f, int value)
{
    for (int i = value - f->n_in + 1; i < f->n_ins; i++)
        for (int a = 0; a < f->ins[i].n_args; a++)
            if (f->ins[i].arg[a] == value)
                return true;
    return false;
}

/* The type that an op computes in is that of its last argument: Select and comparisons. */
static enum dtype compute_dtype(const struct elem_program *f, const struct elem_program_ins *ins)
{
    return ins->n_args ? elem_program_dtype(f, ins->arg[ins->n_args - 1]) : (enum dtype)ins->dtype;
}

static enum err resolve(struct elem_call *call, const struct elem_program *f, int i)
{
    const struct elem_program_ins *ins = &f->ins[i];
    enum dtype from = compute_dtype(f, ins), to = (enum dtype)ins->dtype;
    int wf = work_type(from), wt = work_type(to);
    bool is_cast = ins->op == OP_ASTYPE;

    call->must_round = is_narrow(to) && !is_closed(ins) && is_argument(f, f->n_in + i);
    if (is_cast && wf >= 0 && wf == wt)
        call->fn = -1;
    else
        call->fn = wf < 0 || wt < 0 ? -1 : is_cast ? cast_fns[wf][wt] : op_fns[ins->op][wf];
    if (call->fn < 0 && !(is_cast && wf >= 0 && wf == wt))
        return err_set(ERR_UNSUPPORTED, "[%s] not available on the GPU for %s",
                       op_name((enum op_id)ins->op),
                       dt_name(wf < 0    ? from
                               : is_cast ? to
                                         : from));
    return ERR_OK;
}

enum err elem_resolve(struct elem_call *calls, const struct elem_program *f)
{
    enum err err = ERR_OK;

    tables_ready();
    for (int i = 0; i < f->n_in; i++)
        if (work_type((enum dtype)f->in_dtype[i]) < 0)
            return err_set(ERR_UNSUPPORTED, "[elementwise] %s is not available on the GPU",
                           dt_name((enum dtype)f->in_dtype[i]));
    for (int i = 0; i < f->n_ins && err == ERR_OK; i++)
        err = resolve(&calls[i], f, i);
    return err;
}

static uint32_t weight_of(int fn)
{
    return fn < 0 ? 0 : spv_lib_fns[fn].weight;
}

uint32_t elem_weight(const struct elem_program *f)
{
    struct elem_call calls[ELEM_PROGRAM_MAX_INS];
    uint32_t sum = 0;

    if (elem_resolve(calls, f) != ERR_OK)
        return 0;
    for (int i = 0; i < f->n_ins; i++) {
        sum += weight_of(calls[i].fn);
        if (calls[i].must_round)
            sum += weight_of(elem_round_fn((enum dtype)f->ins[i].dtype));
    }
    return sum;
}
