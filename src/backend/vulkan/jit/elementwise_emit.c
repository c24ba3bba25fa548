#include "backend/vulkan/jit/elementwise_emit.h"

#include "backend/vulkan/jit/elementwise_code.h"
#include "backend/vulkan/kernels/args.h"

#define MAX_LANES 8
#define MAX_UNROLL 4
#define MAX_WORDS (MAX_LANES * 2) /* of one operand's group: 8-byte elements */
#define MAX_OPERANDS (ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_OUT)
#define MAX_VALUES (ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_INS)

struct group {                 /* one of the thread's groups of elements */
    uint32_t index, is_inside; /* inside: to be stored */
    uint32_t load;             /* the index, or the last group if it is outside */
    uint32_t word[ELEM_PROGRAM_MAX_IN][MAX_WORDS];
    uint32_t offset[MAX_OPERANDS]; /* in elements, strided operands only */
    uint32_t result[ELEM_PROGRAM_MAX_OUT][MAX_LANES];
};

struct emit {
    struct spv m;
    const struct elem_program *f;
    const struct elem_class *c;
    struct elem_call calls[ELEM_PROGRAM_MAX_INS];
    struct words words;
    uint32_t t_u32, t_u64, t_index;
    uint32_t push, args; /* the push constants; pointer to the argument block */
    SpvStorageClass args_storage;
    int next_index; /* the next index word of the argument block */
    uint32_t addr[MAX_OPERANDS];
    uint32_t n_groups;
    uint32_t once[ELEM_PROGRAM_MAX_IN]; /* values of inputs that are one element */
    uint32_t variables[5];
    int n_variables;
    struct group groups[MAX_UNROLL];
};

static bool is_wide(const struct emit *e)
{
    return e->c->flags & ELEM_WIDE;
}

static bool is_once(const struct emit *e, int in)
{
    return e->c->once_in >> in & 1;
}

static bool is_strided(const struct emit *e, int operand)
{
    if (!e->c->dims)
        return false;
    return operand < e->f->n_in ? !is_once(e, operand) : e->c->flags & ELEM_OUT_STRIDED;
}

static enum dtype operand_dtype(const struct emit *e, int operand)
{
    return elem_program_dtype(e->f,
                              operand < e->f->n_in ? operand : e->f->out[operand - e->f->n_in]);
}

static uint32_t operand_size(const struct emit *e, int operand)
{
    return (uint32_t)dt_size(operand_dtype(e, operand));
}

/* Lanes that one access of the operand covers. */
static uint32_t operand_lanes(const struct emit *e, int operand)
{
    return operand < e->f->n_in && (e->c->splat_in | e->c->once_in) >> operand & 1 ? 1
                                                                                   : e->c->lanes;
}

static bool is_arange(const struct elem_program *f)
{
    return f->n_ins == 1 && f->ins[0].op == OP_ARANGE;
}

struct elem_args elem_args_size(const struct elem_program *f, const struct elem_class *c)
{
    int strided = c->flags & ELEM_OUT_STRIDED ? f->n_out : 0;

    for (int i = 0; i < f->n_in; i++)
        strided += !(c->once_in >> i & 1);
    return (struct elem_args){
        .n_long = f->n_in + f->n_out + (is_arange(f) ? 2 : 0),
        .n_index = 1 + (c->dims ? (c->dims - 1) * elem_dim_words(c) + strided * c->dims : 0),
    };
}

/* ---- small pieces of code ---- */

static uint32_t u32(struct emit *e, uint32_t v)
{
    return spv_const_u32(&e->m, v);
}

static uint32_t index_const(struct emit *e, uint32_t v)
{
    return is_wide(e) ? spv_const_u64(&e->m, v) : u32(e, v);
}

static uint32_t vector_of(struct emit *e, uint32_t scalar, uint32_t n)
{
    return spv_type_vector(&e->m, scalar, n);
}

/* ---- the argument block ---- */

static uint32_t array_of(struct emit *e, uint32_t type, int n, uint32_t stride)
{
    uint32_t id = spv_global_new(&e->m, SpvOpTypeArray, 0, SPV_WORDS(type, u32(e, (uint32_t)n)));

    spv_decorate(&e->m, SPV_WORDS(id, SpvDecorationArrayStride, stride));
    return id;
}

static uint32_t block_of(struct emit *e, const uint32_t *members, int n, uint32_t second_offset)
{
    uint32_t id = spv_global_new(&e->m, SpvOpTypeStruct, 0, members, n);

    spv_decorate(&e->m, SPV_WORDS(id, SpvDecorationBlock));
    spv_decorate_member(&e->m, SPV_WORDS(id, 0, SpvDecorationOffset, 0));
    if (n > 1)
        spv_decorate_member(&e->m, SPV_WORDS(id, 1, SpvDecorationOffset, second_offset));
    return id;
}

static uint32_t global_variable(struct emit *e, SpvStorageClass storage, uint32_t type)
{
    uint32_t pointer = spv_type_pointer(&e->m, storage, type);
    uint32_t id = spv_global_new(&e->m, SpvOpVariable, pointer, SPV_WORDS((uint32_t)storage));

    e->variables[e->n_variables++] = id;
    return id;
}

static void declare_args(struct emit *e)
{
    struct elem_args size = elem_args_size(e->f, e->c);
    uint32_t members[2] = {
        array_of(e, e->t_u64, size.n_long, 8),
        array_of(e, e->t_index, size.n_index, is_wide(e) ? 8 : 4),
    };
    uint32_t block = block_of(e, members, 2, (uint32_t)size.n_long * 8);

    if (e->c->flags & ELEM_ARGS_IN_MEMORY) {
        e->args_storage = SpvStorageClassPhysicalStorageBuffer;
        e->args = block; /* the pointer is made in main */
        block = block_of(e, &e->t_u64, 1, 0);
    } else {
        e->args_storage = SpvStorageClassPushConstant;
    }
    e->push = global_variable(e, SpvStorageClassPushConstant, block);
    if (e->args_storage == SpvStorageClassPushConstant)
        e->args = e->push;
}

static void find_args(struct emit *e)
{
    uint32_t pointer = spv_type_pointer(&e->m, SpvStorageClassPushConstant, e->t_u64);

    if (e->args_storage == SpvStorageClassPushConstant)
        return;
    uint32_t at = spv_op(&e->m, SpvOpAccessChain, pointer, e->push, u32(e, 0));
    uint32_t addr = spv_op(&e->m, SpvOpLoad, e->t_u64, at);
    e->args =
        spv_op(&e->m, SpvOpConvertUToPtr, spv_type_pointer(&e->m, e->args_storage, e->args), addr);
}

static uint32_t load_arg(struct emit *e, uint32_t member, uint32_t i, uint32_t type)
{
    uint32_t pointer = spv_type_pointer(&e->m, e->args_storage, type);
    uint32_t at = spv_op(&e->m, SpvOpAccessChain, pointer, e->args, u32(e, member), u32(e, i));

    if (e->args_storage == SpvStorageClassPushConstant)
        return spv_op(&e->m, SpvOpLoad, type, at);
    return spv_op(&e->m, SpvOpLoad, type, at, SpvMemoryAccessAlignedMask, type == e->t_u64 ? 8 : 4);
}

static uint32_t next_index_arg(struct emit *e)
{
    return load_arg(e, 1, (uint32_t)e->next_index++, e->t_index);
}

/* ---- which groups this thread has ---- */

static uint32_t input(struct emit *e, SpvBuiltIn which, uint32_t type)
{
    uint32_t id = global_variable(e, SpvStorageClassInput, type);

    spv_decorate(&e->m, SPV_WORDS(id, SpvDecorationBuiltIn, (uint32_t)which));
    return spv_op(&e->m, SpvOpLoad, type, id);
}

static uint32_t builtin(struct emit *e, SpvBuiltIn which, uint32_t component)
{
    uint32_t v = input(e, which, vector_of(e, e->t_u32, 3));

    if (which != SpvBuiltInWorkgroupId)
        return spv_op(&e->m, SpvOpCompositeExtract, e->t_u32, v, component);
    /* Workgroups are numbered x first; a grid has no more than 65,535 of them in x for sure. */
    uint32_t x = spv_op(&e->m, SpvOpCompositeExtract, e->t_u32, v, 0);
    uint32_t y = spv_op(&e->m, SpvOpCompositeExtract, e->t_u32, v, 1);
    uint32_t row = spv_op(&e->m, SpvOpIMul, e->t_u32, y, builtin(e, SpvBuiltInNumWorkgroups, 0));
    return spv_op(&e->m, SpvOpIAdd, e->t_u32, row, x);
}

static uint32_t to_index(struct emit *e, uint32_t v)
{
    return is_wide(e) ? spv_op(&e->m, SpvOpUConvert, e->t_u64, v) : v;
}

static void place_groups(struct emit *e)
{
    uint32_t local = e->c->threads;
    uint32_t number = to_index(e, builtin(e, SpvBuiltInWorkgroupId, 0));
    uint32_t lane = to_index(e, builtin(e, SpvBuiltInLocalInvocationId, 0));
    uint32_t start =
        spv_op(&e->m, SpvOpIMul, e->t_index, number, index_const(e, local * e->c->unroll));
    uint32_t first = spv_op(&e->m, SpvOpIAdd, e->t_index, start, lane);
    uint32_t last = spv_op(&e->m, SpvOpISub, e->t_index, e->n_groups, index_const(e, 1));

    for (uint32_t u = 0; u < e->c->unroll; u++) {
        struct group *g = &e->groups[u];

        g->index =
            u == 0 ? first : spv_op(&e->m, SpvOpIAdd, e->t_index, first, index_const(e, u * local));
        g->is_inside = spv_op(&e->m, SpvOpULessThan, spv_type_bool(&e->m), g->index, e->n_groups);
        g->load = spv_op(&e->m, SpvOpSelect, e->t_index, g->is_inside, g->index, last);
    }
}

/* ---- strides ---- */

struct dim_args {
    uint32_t extent, multiplier, shift;
};

/* i / extent for i < 2^31, by a multiplication; see elem_divisor in elementwise.c. */
static uint32_t divide(struct emit *e, uint32_t i, const struct dim_args *d)
{
    if (is_wide(e))
        return spv_op(&e->m, SpvOpUDiv, e->t_index, i, d->extent);
    uint32_t pair = spv_global(&e->m, SpvOpTypeStruct, 0, SPV_WORDS(e->t_u32, e->t_u32));
    uint32_t product = spv_op(&e->m, SpvOpUMulExtended, pair, i, d->multiplier);
    uint32_t high = spv_op(&e->m, SpvOpCompositeExtract, e->t_u32, product, 1);
    uint32_t sum = spv_op(&e->m, SpvOpIAdd, e->t_u32, high, i);
    return spv_op(&e->m, SpvOpShiftRightLogical, e->t_u32, sum, d->shift);
}

static void add_offset(struct emit *e, struct group *g, int operand, uint32_t at, uint32_t stride)
{
    uint32_t term = spv_op(&e->m, SpvOpIMul, e->t_index, at, stride);
    uint32_t *sum = &g->offset[operand];

    *sum = *sum ? spv_op(&e->m, SpvOpIAdd, e->t_index, *sum, term) : term;
}

/* From the number of a group to the offsets of its operands, innermost dimension first. */
static void unravel(struct emit *e, struct group *g, const struct dim_args *dims,
                    const uint32_t (*strides)[32])
{
    int n_operands = e->f->n_in + e->f->n_out;
    uint32_t rest = g->load;

    for (int d = e->c->dims - 1; d >= 0; d--) {
        uint32_t at = rest;

        if (d > 0) {
            rest = divide(e, at, &dims[d]);
            uint32_t whole = spv_op(&e->m, SpvOpIMul, e->t_index, rest, dims[d].extent);
            at = spv_op(&e->m, SpvOpISub, e->t_index, at, whole);
        }
        for (int o = 0; o < n_operands; o++)
            if (is_strided(e, o))
                add_offset(e, g, o, at, strides[o][d]);
    }
}

static void place_operands(struct emit *e)
{
    struct dim_args dims[32] = { 0 };
    uint32_t strides[MAX_OPERANDS][32];

    for (int d = 1; d < e->c->dims; d++) {
        dims[d].extent = next_index_arg(e);
        if (!is_wide(e)) {
            dims[d].multiplier = next_index_arg(e);
            dims[d].shift = next_index_arg(e);
        }
    }
    for (int o = 0; o < e->f->n_in + e->f->n_out; o++)
        for (int d = 0; is_strided(e, o) && d < e->c->dims; d++)
            strides[o][d] = next_index_arg(e);
    for (int u = 0; u < e->c->unroll && e->c->dims; u++)
        unravel(e, &e->groups[u], dims, strides);
}

/* Address of the operand's part of a group. */
static uint32_t address(struct emit *e, const struct group *g, int operand)
{
    bool strided = is_strided(e, operand);
    uint32_t unit = operand_size(e, operand) * (strided ? 1 : e->c->lanes);
    uint32_t at = strided ? g->offset[operand] : g->load;

    if (!is_wide(e))
        at = spv_op(&e->m, strided ? SpvOpSConvert : SpvOpUConvert, e->t_u64, at);
    uint32_t bytes = spv_op(&e->m, SpvOpIMul, e->t_u64, at, spv_const_u64(&e->m, unit));
    return spv_op(&e->m, SpvOpIAdd, e->t_u64, e->addr[operand], bytes);
}

/* ---- the program ---- */

/* Start or step of an Arange: a 64-bit word whose low bits are the working type's. */
static uint32_t arange_arg(struct emit *e, int i, uint32_t type)
{
    uint32_t v = load_arg(e, 0, (uint32_t)(e->f->n_out + i), e->t_u64);
    enum work_type w = (enum work_type)work_type((enum dtype)e->f->ins[0].dtype);

    if (w == WORK_U64)
        return v;
    if (w == WORK_U32)
        return spv_op(&e->m, SpvOpUConvert, type, v);
    if (w == WORK_I64 || w == WORK_C64)
        return spv_op(&e->m, SpvOpBitcast, type, v);
    return spv_op(&e->m, SpvOpBitcast, type, spv_op(&e->m, SpvOpUConvert, e->t_u32, v));
}

static uint32_t arange_value(struct emit *e, const struct group *g, uint32_t lane, uint32_t type)
{
    uint32_t i = is_wide(e) ? spv_op(&e->m, SpvOpUConvert, e->t_u32, g->index) : g->index;
    uint32_t scaled = spv_op(&e->m, SpvOpIMul, e->t_u32, i, u32(e, e->c->lanes));
    uint32_t at = spv_op(&e->m, SpvOpIAdd, e->t_u32, scaled, u32(e, lane));

    return spv_op(&e->m, SpvOpFunctionCall, type, spv_lib_id(&e->m, e->calls[0].fn),
                  arange_arg(e, 0, type), arange_arg(e, 1, type), at);
}

static uint32_t run(struct emit *e, const struct group *g, uint32_t lane, int i,
                    const uint32_t *values)
{
    struct elem_code code = { &e->m, e->f, e->calls, &e->words };

    if (!is_arange(e->f))
        return elem_instruction(&code, i, values);
    enum work_type w = (enum work_type)work_type((enum dtype)e->f->ins[i].dtype);
    return elem_settle(&code, i, arange_value(e, g, lane, work_spv_type(&e->m, w)));
}

static void compute_lane(struct emit *e, struct group *g, uint32_t lane)
{
    const struct elem_program *f = e->f;
    uint32_t values[MAX_VALUES];

    for (int i = 0; i < f->n_in; i++)
        values[i] = is_once(e, i)
                        ? e->once[i]
                        : words_value(&e->words, g->word[i], operand_lanes(e, i) > 1 ? lane : 0,
                                      (enum dtype)f->in_dtype[i]);
    for (int i = 0; i < f->n_ins; i++)
        values[f->n_in + i] = run(e, g, lane, i, values);
    for (int o = 0; o < f->n_out; o++)
        g->result[o][lane] = values[f->out[o]];
}

/* ---- main ---- */

static void load_group(struct emit *e, struct group *g, int in)
{
    uint32_t bytes = operand_size(e, in) * operand_lanes(e, in), at = address(e, g, in);

    words_load(&e->words, g->word[in], at, bytes);
}

static void load_inputs(struct emit *e)
{
    uint32_t words[MAX_WORDS];

    for (int i = 0; i < e->f->n_in; i++) {
        if (!is_once(e, i))
            continue;
        words_load(&e->words, words, e->addr[i], operand_size(e, i));
        e->once[i] = words_value(&e->words, words, 0, operand_dtype(e, i));
    }
    for (int u = 0; u < e->c->unroll; u++)
        for (int i = 0; i < e->f->n_in; i++)
            if (!is_once(e, i))
                load_group(e, &e->groups[u], i);
}

static void store_results(struct emit *e, const struct group *g)
{
    uint32_t words[MAX_WORDS];

    for (int o = 0; o < e->f->n_out; o++) {
        int operand = e->f->n_in + o;

        words_pack(&e->words, words, g->result[o], e->c->lanes, operand_dtype(e, operand));
        words_store(&e->words, words, address(e, g, operand),
                    operand_size(e, operand) * e->c->lanes);
    }
}

static void store_group(struct emit *e, const struct group *g)
{
    uint32_t then = spv_id(&e->m), after = spv_id(&e->m);

    spv_do(&e->m, SpvOpSelectionMerge, after, SpvSelectionControlMaskNone);
    spv_do(&e->m, SpvOpBranchConditional, g->is_inside, then, after);
    spv_label(&e->m, then);
    store_results(e, g);
    spv_do(&e->m, SpvOpBranch, after);
    spv_label(&e->m, after);
}

/* The number of groups never has its highest bit set. */
static void make_zero(struct emit *e)
{
    uint32_t bits = is_wide(e) ? 63 : 31;

    e->words.zero = spv_op(&e->m, SpvOpShiftRightLogical, e->t_index, e->n_groups, u32(e, bits));
    if (is_wide(e))
        e->words.zero = spv_op(&e->m, SpvOpUConvert, e->t_u32, e->words.zero);
}

static uint32_t write_main(struct emit *e)
{
    uint32_t none = spv_type_void(&e->m);
    uint32_t type = spv_global(&e->m, SpvOpTypeFunction, 0, &none, 1);
    uint32_t id = spv_op(&e->m, SpvOpFunction, none, SpvFunctionControlMaskNone, type);

    spv_label(&e->m, spv_id(&e->m));
    find_args(e);
    for (int o = 0; o < e->f->n_in + e->f->n_out; o++)
        e->addr[o] = load_arg(e, 0, (uint32_t)o, e->t_u64);
    e->n_groups = next_index_arg(e);
    if (e->c->flags & ELEM_NATIVE_HALF || elem_needs_zero(e->f))
        make_zero(e);
    place_groups(e);
    place_operands(e);
    load_inputs(e);
    for (int u = 0; u < e->c->unroll; u++)
        for (uint32_t lane = 0; lane < e->c->lanes; lane++)
            compute_lane(e, &e->groups[u], lane);
    for (int u = 0; u < e->c->unroll; u++)
        store_group(e, &e->groups[u]);
    spv_emit(&e->m, SpvOpReturn, 0, NULL, 0);
    spv_emit(&e->m, SpvOpFunctionEnd, 0, NULL, 0);
    return id;
}

enum err elem_emit(uint32_t **words, size_t *n, const struct elem_program *f,
                   const struct elem_class *c)
{
    struct emit *e = mem_alloc(sizeof *e);
    enum err err = ERR_NO_MEMORY;

    if (!e)
        return err;
    e->f = f;
    e->c = c;
    TRY(elem_resolve(e->calls, f));
    TRY(spv_init(&e->m));
    e->t_u32 = spv_type_int(&e->m, 32, false);
    e->t_u64 = spv_type_int(&e->m, 64, false);
    e->t_index = is_wide(e) ? e->t_u64 : e->t_u32;
    e->words =
        (struct words){ .m = &e->m, .align = c->align, .t_u32 = e->t_u32, .t_u64 = e->t_u64 };
    e->words.native_half = c->flags & ELEM_NATIVE_HALF;
    declare_args(e);
    struct spv_entry entry = { .function = write_main(e), .local_size = c->threads };
    entry.variables = e->variables;
    entry.n_variables = e->n_variables;
    entry.keep_special = entry.round_even = c->flags & ELEM_FLOAT_MODES;
    err = spv_finish(words, n, &e->m, &entry);
    spv_fini(&e->m);
out:
    mem_free(e);
    return err;
}
