#include "backend/vulkan/jit/spirv.h"

#include <spirv/unified1/GLSL.std.450.h>
#include <string.h>

#define SPV_VERSION_1_5 0x00010500u

int spv_lib_find(const char *name)
{
    uint32_t lo = 0, hi = spv_lib_n_fns;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int order = strcmp(name, spv_lib_fns[mid].name);

        if (order == 0)
            return (int)mid;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return -1;
}

/* ---- sections ---- */

static void fail(struct spv *m, enum err err)
{
    if (m->err == ERR_OK)
        m->err = err;
}

static void push(struct spv *m, spv_words *section, const uint32_t *words, int n)
{
    if (n == 0)
        return;
    if (VEC_RESERVE(section, (size_t)n) != ERR_OK) {
        fail(m, ERR_NO_MEMORY);
        return;
    }
    memcpy(section->v + section->n, words, (size_t)n * sizeof *words);
    section->n += (size_t)n;
}

/* Opcode word, type and result where there are, operands. */
static void push_op(struct spv *m, spv_words *section, SpvOp op, const uint32_t *lead, int n_lead)
{
    uint32_t word = (uint32_t)(n_lead + 1) << SpvWordCountShift | (uint32_t)op;

    push(m, section, &word, 1);
    push(m, section, lead, n_lead);
}

uint32_t spv_id(struct spv *m)
{
    return m->bound++;
}

enum err spv_init(struct spv *m)
{
    enum err err = ERR_OK;

    *m = (struct spv){ .bound = 1 };
    m->lib_ids = mem_alloc_array(spv_lib_n_globals + spv_lib_n_fns, sizeof *m->lib_ids);
    if (!m->lib_ids)
        return ERR_NO_MEMORY;
    TRY(VEC_RESERVE(&m->decorations, 512));
    TRY(VEC_RESERVE(&m->globals, 512));
    TRY(VEC_RESERVE(&m->code, 4096));
    TRY(VEC_RESERVE(&m->known, 128));
out:
    if (err != ERR_OK)
        spv_fini(m);
    return err;
}

void spv_fini(struct spv *m)
{
    VEC_FINI(&m->head);
    VEC_FINI(&m->decorations);
    VEC_FINI(&m->globals);
    VEC_FINI(&m->code);
    VEC_FINI(&m->known);
    VEC_FINI(&m->pending);
    mem_free(m->lib_ids);
    m->lib_ids = NULL;
}

void spv_capability(struct spv *m, SpvCapability cap)
{
    for (int i = 0; i < m->n_caps; i++)
        if (m->caps[i] == (uint32_t)cap)
            return;
    if (m->n_caps < (int)ARRAY_LEN(m->caps))
        m->caps[m->n_caps++] = (uint32_t)cap;
    else
        fail(m, err_set(ERR_RUNTIME, "[spirv] more than %zu capabilities", ARRAY_LEN(m->caps)));
}

/* ---- types and constants ---- */

/* Arithmetic in a type needs a capability; 8- and 16-bit types are only ever loaded, stored and
 * converted, which the storage capabilities of the loads cover. */
static void type_capability(struct spv *m, SpvOp op, const uint32_t *operands)
{
    if (op == SpvOpTypeInt && operands[0] == 64)
        spv_capability(m, SpvCapabilityInt64);
    if (op == SpvOpTypeFloat && operands[0] == 16)
        spv_capability(m, SpvCapabilityFloat16);
}

uint32_t spv_global_new(struct spv *m, SpvOp op, uint32_t type, const uint32_t *operands, int n)
{
    uint32_t id = spv_id(m);
    uint32_t word = (uint32_t)(n + (type ? 3 : 2)) << SpvWordCountShift | (uint32_t)op;

    push(m, &m->globals, &word, 1);
    if (type)
        push(m, &m->globals, &type, 1);
    push(m, &m->globals, &id, 1);
    push(m, &m->globals, operands, n);
    type_capability(m, op, operands);
    return id;
}

/* Is the instruction at `at` this one? word holds its length. */
static bool is_same(const uint32_t *at, uint32_t word, uint32_t type, const uint32_t *operands)
{
    uint32_t lead = type ? 3 : 2;

    if (at[0] != word || (type && at[1] != type))
        return false;
    for (uint32_t i = lead; i < word >> SpvWordCountShift; i++)
        if (at[i] != operands[i - lead])
            return false;
    return true;
}

uint32_t spv_global(struct spv *m, SpvOp op, uint32_t type, const uint32_t *operands, int n)
{
    uint32_t word = (uint32_t)(n + (type ? 3 : 2)) << SpvWordCountShift | (uint32_t)op;

    for (size_t i = 0; i < m->known.n; i++)
        if (is_same(m->globals.v + m->known.v[i].at, word, type, operands))
            return m->known.v[i].id;
    size_t at = m->globals.n;
    uint32_t id = spv_global_new(m, op, type, operands, n);
    spv_know(m, at, id);
    return id;
}

uint32_t spv_type_void(struct spv *m)
{
    return spv_global(m, SpvOpTypeVoid, 0, NULL, 0);
}

uint32_t spv_type_bool(struct spv *m)
{
    return spv_global(m, SpvOpTypeBool, 0, NULL, 0);
}

uint32_t spv_type_int(struct spv *m, uint32_t bits, bool is_signed)
{
    return spv_global(m, SpvOpTypeInt, 0, SPV_WORDS(bits, is_signed));
}

uint32_t spv_type_float(struct spv *m, uint32_t bits)
{
    return spv_global(m, SpvOpTypeFloat, 0, SPV_WORDS(bits));
}

uint32_t spv_type_vector(struct spv *m, uint32_t component, uint32_t n)
{
    return spv_global(m, SpvOpTypeVector, 0, SPV_WORDS(component, n));
}

uint32_t spv_type_pointer(struct spv *m, SpvStorageClass storage, uint32_t type)
{
    return spv_global(m, SpvOpTypePointer, 0, SPV_WORDS((uint32_t)storage, type));
}

uint32_t spv_const_u32(struct spv *m, uint32_t value)
{
    return spv_global(m, SpvOpConstant, spv_type_int(m, 32, false), SPV_WORDS(value));
}

uint32_t spv_const_u64(struct spv *m, uint64_t value)
{
    return spv_global(m, SpvOpConstant, spv_type_int(m, 64, false),
                      SPV_WORDS((uint32_t)value, (uint32_t)(value >> 32)));
}

/* ---- decorations and code ---- */

void spv_decorate(struct spv *m, const uint32_t *operands, int n)
{
    push_op(m, &m->decorations, SpvOpDecorate, operands, n);
}

void spv_decorate_member(struct spv *m, const uint32_t *operands, int n)
{
    push_op(m, &m->decorations, SpvOpMemberDecorate, operands, n);
}

static uint32_t glsl_set(struct spv *m)
{
    if (!m->glsl_set)
        m->glsl_set = spv_id(m);
    return m->glsl_set;
}

/* Fused and separate kernels must give the same bits, so nothing may be contracted or reordered;
 * an fma that is written as such stays one. */
static bool is_float_arithmetic(const uint32_t *words)
{
    switch ((SpvOp)(words[0] & SpvOpCodeMask)) {
    case SpvOpFNegate:
    case SpvOpFAdd:
    case SpvOpFSub:
    case SpvOpFMul:
    case SpvOpFDiv:
    case SpvOpFRem:
    case SpvOpFMod:
    case SpvOpVectorTimesScalar:
        return true;
    case SpvOpExtInst:
        return words[4] == GLSLstd450Fma;
    default:
        return false;
    }
}

uint32_t spv_emit(struct spv *m, SpvOp op, uint32_t type, const uint32_t *operands, int n)
{
    uint32_t id = type ? spv_id(m) : 0;
    uint32_t word = (uint32_t)(n + (type ? 3 : 1)) << SpvWordCountShift | (uint32_t)op;

    push(m, &m->code, &word, 1);
    if (type) {
        push(m, &m->code, &type, 1);
        push(m, &m->code, &id, 1);
    }
    push(m, &m->code, operands, n);
    return id;
}

void spv_function(struct spv *m, uint32_t id, uint32_t result, uint32_t type)
{
    push_op(m, &m->code, SpvOpFunction, SPV_WORDS(result, id, SpvFunctionControlMaskNone, type));
}

void spv_label(struct spv *m, uint32_t id)
{
    push_op(m, &m->code, SpvOpLabel, &id, 1);
}

void spv_copy(struct spv *m, enum spv_section section, const uint32_t *words, size_t n)
{
    spv_words *const sections[] = { &m->head, &m->decorations, &m->globals, &m->code };

    push(m, sections[section], words, (int)n);
}

void spv_know(struct spv *m, size_t at, uint32_t id)
{
    struct spv_known k = { (uint32_t)at, id };

    if (m->err == ERR_OK)
        fail(m, VEC_PUSH(&m->known, k));
}

/* ---- linking ---- */

static bool is_id(uint32_t at)
{
    return spv_lib_id_mask[at / 32] >> at % 32 & 1;
}

/* Globals only refer to earlier globals, so the recursion is as deep as a type is nested. */
static uint32_t lib_global(struct spv *m, uint32_t number)
{
    const struct spv_lib_global *g = &spv_lib_globals[number];
    const uint32_t *words = spv_lib_words + g->word;
    uint32_t operands[64];
    uint32_t n = g->n_words - 1;

    if (m->lib_ids[number])
        return m->lib_ids[number];
    if ((words[0] & SpvOpCodeMask) == SpvOpExtInstImport)
        return m->lib_ids[number] = glsl_set(m);
    if (n > ARRAY_LEN(operands)) {
        fail(m, err_set(ERR_RUNTIME, "[spirv] a library constant has %u words", n));
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        operands[i] = is_id(g->word + 1 + i) ? lib_global(m, words[1 + i]) : words[1 + i];
    int typed = g->is_typed ? 1 : 0;
    m->lib_ids[number] = spv_global(m, (SpvOp)(words[0] & SpvOpCodeMask), typed ? operands[0] : 0,
                                    operands + typed, (int)n - typed);
    return m->lib_ids[number];
}

uint32_t spv_lib_id(struct spv *m, int fn)
{
    uint32_t *id = &m->lib_ids[spv_lib_n_globals + (uint32_t)fn];

    if (!*id) {
        *id = spv_id(m);
        fail(m, VEC_PUSH(&m->pending, (uint32_t)fn));
    }
    return *id;
}

static uint32_t lib_number(struct spv *m, uint32_t number, uint32_t first_local)
{
    if (number < spv_lib_n_globals)
        return lib_global(m, number);
    if (number < spv_lib_n_globals + spv_lib_n_fns)
        return spv_lib_id(m, (int)(number - spv_lib_n_globals));
    return first_local + (number - spv_lib_n_globals - spv_lib_n_fns);
}

static void link_function(struct spv *m, const struct spv_lib_fn *fn)
{
    uint32_t first_local = m->bound;
    size_t start = m->code.n;

    m->bound += fn->n_locals;
    push(m, &m->code, spv_lib_words + fn->word, (int)fn->n_words);
    if (m->err != ERR_OK)
        return;
    uint32_t *code = m->code.v + start;
    for (uint32_t i = 0; i < fn->n_words; i++)
        if (is_id(fn->word + i))
            code[i] = lib_number(m, code[i], first_local);
}

/* Of everything that was written, calls to the library included. */
static void decorate_arithmetic(struct spv *m)
{
    for (size_t at = m->own_code; at < m->code.n && m->err == ERR_OK;) {
        const uint32_t *words = m->code.v + at;

        if (is_float_arithmetic(words))
            spv_decorate(m, SPV_WORDS(words[2], SpvDecorationNoContraction));
        at += words[0] >> SpvWordCountShift;
    }
}

/* ---- the head ---- */

static void head_op(struct spv *m, SpvOp op, const uint32_t *operands, int n)
{
    push_op(m, &m->head, op, operands, n);
}

/* The modes exist per float width; they are set for the widths that the module has. */
static void float_modes(struct spv *m, const struct spv_entry *entry)
{
    bool has_f16 = false;

    for (int i = 0; i < m->n_caps; i++)
        has_f16 |= m->caps[i] == SpvCapabilityFloat16;
    for (uint32_t bits = has_f16 ? 16 : 32; bits <= 32; bits *= 2) {
        if (entry->keep_special)
            head_op(m, SpvOpExecutionMode,
                    SPV_WORDS(entry->function, SpvExecutionModeSignedZeroInfNanPreserve, bits));
        if (entry->round_even)
            head_op(m, SpvOpExecutionMode,
                    SPV_WORDS(entry->function, SpvExecutionModeRoundingModeRTE, bits));
    }
}

/* Strings of the module are fixed, so they are written as little-endian words. */
#define GLSL_STD_450 0x4c534c47, 0x6474732e, 0x3035342e, 0
#define MAIN 0x6e69616d, 0

static void write_capabilities(struct spv *m, const struct spv_entry *entry)
{
    spv_capability(m, SpvCapabilityShader);
    spv_capability(m, SpvCapabilityPhysicalStorageBufferAddresses);
    if (entry->keep_special)
        spv_capability(m, SpvCapabilitySignedZeroInfNanPreserve);
    if (entry->round_even)
        spv_capability(m, SpvCapabilityRoundingModeRTE);
    for (int i = 0; i < m->n_caps; i++)
        head_op(m, SpvOpCapability, &m->caps[i], 1);
}

static void write_head(struct spv *m, const struct spv_entry *entry)
{
    uint32_t lead[] = { SpvExecutionModelGLCompute, entry->function, MAIN };
    uint32_t word = (uint32_t)(1 + (int)ARRAY_LEN(lead) + entry->n_variables) << SpvWordCountShift;

    push(m, &m->head, SPV_WORDS(SpvMagicNumber, SPV_VERSION_1_5, 0, m->bound, 0));
    write_capabilities(m, entry);
    head_op(m, SpvOpExtInstImport, SPV_WORDS(glsl_set(m), GLSL_STD_450));
    head_op(m, SpvOpMemoryModel,
            SPV_WORDS(SpvAddressingModelPhysicalStorageBuffer64, SpvMemoryModelGLSL450));
    word |= SpvOpEntryPoint;
    push(m, &m->head, &word, 1);
    push(m, &m->head, lead, (int)ARRAY_LEN(lead));
    push(m, &m->head, entry->variables, entry->n_variables);
    head_op(m, SpvOpExecutionMode,
            SPV_WORDS(entry->function, SpvExecutionModeLocalSize, entry->local_size, 1, 1));
}

/* ---- the whole ---- */

static void link_library(struct spv *m)
{
    for (size_t i = 0; i < m->pending.n && m->err == ERR_OK; i++)
        link_function(m, &spv_lib_fns[m->pending.v[i]]);
    if (m->err == ERR_OK)
        decorate_arithmetic(m);
}

/* Joins the sections behind the head. */
static enum err join(uint32_t **words, size_t *n, struct spv *m, const struct spv_entry *entry)
{
    float_modes(m, entry);
    push(m, &m->head, m->decorations.v, (int)m->decorations.n);
    push(m, &m->head, m->globals.v, (int)m->globals.n);
    push(m, &m->head, m->code.v, (int)m->code.n);
    if (m->err != ERR_OK)
        return m->err;
    *words = m->head.v;
    *n = m->head.n;
    m->head.v = NULL;
    m->head.n = m->head.cap = 0;
    return ERR_OK;
}

enum err spv_finish(uint32_t **words, size_t *n, struct spv *m, const struct spv_entry *entry)
{
    link_library(m);
    (void)glsl_set(m);
    write_head(m, entry);
    return join(words, n, m, entry);
}

/* Capabilities come first in a module, and more of them may be known now than when the kernel was
 * read: its head is put behind them. */
enum err spv_finish_linked(uint32_t **words, size_t *n, struct spv *m,
                           const struct spv_entry *entry)
{
    spv_words kernel = m->head;
    uint32_t version = m->version;

    m->head = (spv_words){ 0 };
    link_library(m);
    push(m, &m->head, SPV_WORDS(SpvMagicNumber, version, 0, m->bound, 0));
    write_capabilities(m, entry);
    push(m, &m->head, kernel.v, (int)kernel.n);
    VEC_FINI(&kernel);
    return join(words, n, m, entry);
}
