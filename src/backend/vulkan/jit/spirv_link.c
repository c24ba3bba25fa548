#include "backend/vulkan/jit/spirv_link.h"

#include <spirv/unified1/GLSL.std.450.h>
#include <string.h>

#define HEADER_WORDS 5

static SpvOp op_of(const uint32_t *at)
{
    return (SpvOp)(at[0] & SpvOpCodeMask);
}

static uint32_t length_of(const uint32_t *at)
{
    return at[0] >> SpvWordCountShift;
}

static bool is_debug(SpvOp op)
{
    return op == SpvOpSource || op == SpvOpSourceContinued || op == SpvOpSourceExtension ||
           op == SpvOpName || op == SpvOpMemberName || op == SpvOpString || op == SpvOpLine ||
           op == SpvOpNoLine || op == SpvOpModuleProcessed;
}

static bool is_head(SpvOp op)
{
    return op == SpvOpExtension || op == SpvOpExtInstImport || op == SpvOpMemoryModel ||
           op == SpvOpEntryPoint || op == SpvOpExecutionMode || op == SpvOpExecutionModeId;
}

static bool is_decoration(SpvOp op)
{
    return op == SpvOpDecorate || op == SpvOpMemberDecorate || op == SpvOpDecorateId;
}

/* Types of which a module may have only one, and constants; those that have decorations of their
 * own are not among them. Where the result stands, or 0. */
static uint32_t shared_result(SpvOp op)
{
    switch (op) {
    case SpvOpTypeVoid:
    case SpvOpTypeBool:
    case SpvOpTypeInt:
    case SpvOpTypeFloat:
    case SpvOpTypeVector:
    case SpvOpTypePointer:
    case SpvOpTypeFunction:
        return 1;
    case SpvOpConstant:
    case SpvOpConstantTrue:
    case SpvOpConstantFalse:
    case SpvOpConstantComposite:
        return 2;
    default:
        return 0;
    }
}

static void take_head(struct spv *m, uint32_t *main, const uint32_t *at)
{
    if (op_of(at) == SpvOpExtInstImport && strcmp((const char *)(at + 2), "GLSL.std.450") == 0)
        m->glsl_set = at[1];
    if (op_of(at) == SpvOpEntryPoint)
        *main = at[2];
    spv_copy(m, SPV_HEAD, at, length_of(at));
}

static void take_global(struct spv *m, const uint32_t *at)
{
    uint32_t result = shared_result(op_of(at));

    if (result)
        spv_know(m, m->globals.n, at[result]);
    spv_copy(m, SPV_GLOBALS, at, length_of(at));
}

/* The mark that the instruction is, or NULL. */
static struct spv_mark *mark_of(const struct spv *m, const uint32_t *at, struct spv_mark *marks,
                                int n)
{
    if (op_of(at) != SpvOpExtInst || at[3] != m->glsl_set)
        return NULL;
    for (int i = 0; i < n; i++)
        if (marks[i].inst == at[4])
            return &marks[i];
    return NULL;
}

static void take_code(struct spv *m, const uint32_t *at, struct spv_mark *mark)
{
    if (!mark) {
        spv_copy(m, SPV_CODE, at, length_of(at));
        return;
    }
    uint32_t lead[] = { (length_of(at) - 1) << SpvWordCountShift | SpvOpFunctionCall, at[1], at[2],
                        mark->fn };

    spv_copy(m, SPV_CODE, lead, ARRAY_LEN(lead));
    spv_copy(m, SPV_CODE, at + 5, length_of(at) - 5);
    mark->n++;
}

static void take_before_code(struct spv *m, uint32_t *main, const uint32_t *at)
{
    SpvOp op = op_of(at);

    if (op == SpvOpCapability)
        spv_capability(m, (SpvCapability)at[1]);
    else if (is_head(op))
        take_head(m, main, at);
    else if (is_decoration(op))
        spv_copy(m, SPV_DECORATIONS, at, length_of(at));
    else
        take_global(m, at);
}

enum err spv_open(struct spv *m, uint32_t *main, const struct spv_module *kernel,
                  struct spv_mark *marks, int n_marks)
{
    bool in_code = false;
    enum err err = spv_init(m);

    if (err)
        return err;
    m->version = kernel->words[1];
    m->bound = kernel->words[3];
    for (int i = 0; i < n_marks; i++)
        marks[i] = (struct spv_mark){ .inst = marks[i].inst, .fn = spv_id(m) };
    const uint32_t *end = kernel->words + kernel->n;
    for (const uint32_t *at = kernel->words + HEADER_WORDS; at < end; at += length_of(at)) {
        in_code |= op_of(at) == SpvOpFunction;
        if (is_debug(op_of(at)))
            continue;
        if (in_code)
            take_code(m, at, mark_of(m, at, marks, n_marks));
        else
            take_before_code(m, main, at);
    }
    m->own_code = m->code.n;
    err = m->err;
    if (err)
        spv_fini(m);
    return err;
}
