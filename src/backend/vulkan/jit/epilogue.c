#include "backend/vulkan/jit/epilogue.h"

#include <spirv/unified1/GLSL.std.450.h>

#include "backend/vulkan/jit/elementwise_code.h"
#include "backend/vulkan/jit/spirv_link.h"

#define PART 4 /* side inputs that one mark loads */

/* The marks of epilogue.glsl. */
enum { LOAD_LO, LOAD_HI, COMPUTE, N_MARKS };

struct emit {
    struct spv m;
    const struct elem_program *f;
    const struct epilogue_class *c;
    struct elem_call calls[ELEM_PROGRAM_MAX_INS];
    struct words words;
    uint32_t t_u32, t_u64, t_f32, t_vec4;
};

static int n_sides(const struct emit *e)
{
    return e->f->n_in - e->c->n_products;
}

static enum dtype side_dtype(const struct emit *e, int i)
{
    return (enum dtype)e->f->in_dtype[e->c->n_products + i];
}

enum err epilogue_check(const struct elem_program *f, int n_products)
{
    struct elem_call calls[ELEM_PROGRAM_MAX_INS];

    if (f->n_in > n_products + EPILOGUE_SIDES || f->n_out != 1)
        return err_set(ERR_UNSUPPORTED, "[epilogue] %d inputs, %d results", f->n_in, f->n_out);
    for (int i = n_products; i < f->n_in; i++)
        if (dt_size((enum dtype)f->in_dtype[i]) > 4)
            return err_set(ERR_UNSUPPORTED, "[epilogue] %s", dt_name((enum dtype)f->in_dtype[i]));
    return elem_resolve(calls, f);
}

/* ---- small pieces of code ---- */

/* Component i of a vec4, which holds the bits of an integer. */
static uint32_t bits_at(struct emit *e, uint32_t vector, uint32_t i)
{
    uint32_t v = spv_op(&e->m, SpvOpCompositeExtract, e->t_f32, vector, i);

    return spv_op(&e->m, SpvOpBitcast, e->t_u32, v);
}

/* Begins a function of n vec4 and returns the first; has_float: a float follows on them. The ids of
 * parameters are consecutive. */
static uint32_t begin_function(struct emit *e, uint32_t id, int n, bool has_float)
{
    uint32_t params[5], first = 0;

    params[0] = e->t_vec4;
    for (int i = 0; i < n; i++)
        params[1 + i] = e->t_vec4;
    params[1 + n] = e->t_f32;
    n += has_float;
    uint32_t type = spv_global(&e->m, SpvOpTypeFunction, 0, params, 1 + n);
    spv_function(&e->m, id, e->t_vec4, type);
    for (int i = 0; i < n; i++) {
        uint32_t p = spv_emit(&e->m, SpvOpFunctionParameter, params[1 + i], NULL, 0);
        first = i ? first : p;
    }
    spv_label(&e->m, spv_id(&e->m));
    return first;
}

static void end_function(struct emit *e, const uint32_t *components)
{
    uint32_t v = spv_emit(&e->m, SpvOpCompositeConstruct, e->t_vec4, components, 4);

    spv_do(&e->m, SpvOpReturnValue, v);
    spv_emit(&e->m, SpvOpFunctionEnd, 0, NULL, 0);
}

/* ---- side inputs ---- */

static uint32_t load_u64(struct emit *e, uint32_t addr, size_t offset)
{
    uint32_t pointer = spv_type_pointer(&e->m, SpvStorageClassPhysicalStorageBuffer, e->t_u64);
    uint32_t at = spv_op(&e->m, SpvOpIAdd, e->t_u64, addr, spv_const_u64(&e->m, offset));

    at = spv_op(&e->m, SpvOpConvertUToPtr, pointer, at);
    return spv_op(&e->m, SpvOpLoad, e->t_u64, at, SpvMemoryAccessAlignedMask, 8);
}

struct place {
    uint32_t args, row, col; /* 64-bit */
};

/* Strides wrap around as the sum does, so that negative ones are right. */
static uint32_t strided(struct emit *e, const struct place *at, int i)
{
    size_t first = offsetof(struct epilogue_args, stride) + (size_t)i * 2 * sizeof(int64_t);
    uint32_t by_row = spv_op(&e->m, SpvOpIMul, e->t_u64, at->row, load_u64(e, at->args, first));
    uint32_t by_col =
        spv_op(&e->m, SpvOpIMul, e->t_u64, at->col, load_u64(e, at->args, first + sizeof(int64_t)));

    return spv_op(&e->m, SpvOpIAdd, e->t_u64, by_row, by_col);
}

static uint32_t side_word(struct emit *e, const struct place *at, int i)
{
    uint32_t size = (uint32_t)dt_size(side_dtype(e, i)), addr, word = 0;

    addr = e->c->is_direct ? at->args : load_u64(e, at->args, (size_t)i * sizeof(uint64_t));
    if (e->c->side[i] != EPILOGUE_ONCE) {
        uint32_t index = e->c->side[i] == EPILOGUE_STRIDED ? strided(e, at, i) : at->col;
        uint32_t bytes = spv_op(&e->m, SpvOpIMul, e->t_u64, index, spv_const_u64(&e->m, size));
        addr = spv_op(&e->m, SpvOpIAdd, e->t_u64, addr, bytes);
    }
    e->words.align = size;
    words_load(&e->words, &word, addr, size);
    return spv_op(&e->m, SpvOpBitcast, e->t_f32, word);
}

/* Sides reflect(vec4 at, at) or refract(vec4 at, at, float): row, column and address of arguments
 * in, up to four side inputs out. */
static void write_load(struct emit *e, uint32_t id, int part)
{
    uint32_t at = begin_function(e, id, 2, part == LOAD_HI), component[PART];
    uint32_t pair = spv_type_vector(&e->m, e->t_u32, 2);
    struct place place = {
        .row = spv_op(&e->m, SpvOpUConvert, e->t_u64, bits_at(e, at, 0)),
        .col = spv_op(&e->m, SpvOpUConvert, e->t_u64, bits_at(e, at, 1)),
    };
    uint32_t args =
        spv_op(&e->m, SpvOpCompositeConstruct, pair, bits_at(e, at, 2), bits_at(e, at, 3));

    place.args = spv_op(&e->m, SpvOpBitcast, e->t_u64, args);
    for (int i = 0; i < PART; i++)
        component[i] = part * PART + i < n_sides(e)
                           ? side_word(e, &place, part * PART + i)
                           : spv_global(&e->m, SpvOpConstant, e->t_f32, SPV_WORDS(0));
    end_function(e, component);
}

/* ---- the program ---- */

/* vec4 faceforward(vec4 products, lo, hi): one or two products and a zero that nobody knows. */
static void write_program(struct emit *e, uint32_t id)
{
    uint32_t products = begin_function(e, id, 3, false),
             value[ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_INS];
    struct elem_code code = { &e->m, e->f, e->calls, &e->words };
    int n = e->c->n_products;

    e->words.zero = bits_at(e, products, 2);
    for (int i = 0; i < n; i++)
        value[i] = spv_op(&e->m, SpvOpCompositeExtract, e->t_f32, products, (uint32_t)i);
    for (int i = 0; i < n_sides(e); i++) {
        uint32_t part = products + 1 + (uint32_t)(i / PART);
        uint32_t word = bits_at(e, part, (uint32_t)i % PART);
        value[n + i] = words_value(&e->words, &word, 0, side_dtype(e, i));
    }
    for (int i = 0; i < e->f->n_ins; i++)
        value[e->f->n_in + i] = elem_instruction(&code, i, value);
    uint32_t v = value[e->f->out[0]];
    end_function(e, (uint32_t[]){ v, v, v, v });
}

static void write_functions(struct emit *e, const struct spv_mark *mark)
{
    e->t_u32 = spv_type_int(&e->m, 32, false);
    e->t_u64 = spv_type_int(&e->m, 64, false);
    e->t_f32 = spv_type_float(&e->m, 32);
    e->t_vec4 = spv_type_vector(&e->m, e->t_f32, 4);
    e->words = (struct words){ .m = &e->m, .t_u32 = e->t_u32, .t_u64 = e->t_u64 };
    write_load(e, mark[LOAD_LO].fn, LOAD_LO);
    write_load(e, mark[LOAD_HI].fn, LOAD_HI);
    write_program(e, mark[COMPUTE].fn);
}

enum err epilogue_link(uint32_t **words, size_t *n, const struct spv_module *kernel,
                       const struct elem_program *f, const struct epilogue_class *c)
{
    struct spv_mark mark[N_MARKS] = { [LOAD_LO] = { .inst = GLSLstd450Reflect },
                                      [LOAD_HI] = { .inst = GLSLstd450Refract },
                                      [COMPUTE] = { .inst = GLSLstd450FaceForward } };
    struct spv_entry entry = { .keep_special = c->float_modes, .round_even = c->float_modes };
    struct emit *e = mem_alloc(sizeof *e);
    enum err err = ERR_NO_MEMORY;

    if (!e)
        return err;
    e->f = f;
    e->c = c;
    TRY(elem_resolve(e->calls, f));
    TRY(spv_open(&e->m, &entry.function, kernel, mark, N_MARKS));
    write_functions(e, mark);
    err = mark[COMPUTE].n ? spv_finish_linked(words, n, &e->m, &entry)
                          : err_set(ERR_RUNTIME, "[epilogue] The kernel has no place for one.");
    spv_fini(&e->m);
out:
    mem_free(e);
    return err;
}
