#include "ops/kernel_glsl.h"

#include <inttypes.h>

#include "graph/array.h"

/* What GLSL calls the elements; bfloat16 and bool have no type of theirs in a buffer. */
static const char *const glsl_types[DT_COUNT] = {
    [DT_BOOL] = "uint8_t",      [DT_UINT8] = "uint8_t",   [DT_UINT16] = "uint16_t",
    [DT_UINT32] = "uint32_t",   [DT_UINT64] = "uint64_t", [DT_INT8] = "int8_t",
    [DT_INT16] = "int16_t",     [DT_INT32] = "int32_t",   [DT_INT64] = "int64_t",
    [DT_FLOAT16] = "float16_t", [DT_FLOAT32] = "float",   [DT_FLOAT64] = "double",
    [DT_BFLOAT16] = "uint16_t", [DT_COMPLEX64] = "vec2",
};

static const char head[] = "#version 460\n"
                           "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
                           "#extension GL_EXT_shader_16bit_storage : require\n"
                           "#extension GL_EXT_shader_8bit_storage : require\n"
                           "#extension GL_EXT_scalar_block_layout : require\n"
                           "#extension GL_KHR_shader_subgroup_basic : enable\n"
                           "#extension GL_KHR_shader_subgroup_arithmetic : enable\n"
                           "#extension GL_KHR_shader_subgroup_shuffle : enable\n"
                           "#extension GL_KHR_shader_subgroup_vote : enable\n"
                           "#extension GL_KHR_shader_subgroup_ballot : enable\n"
                           "#extension GL_EXT_shader_atomic_float : enable\n"
                           "#extension GL_EXT_shader_atomic_int64 : enable\n";

/* Names become identifiers of the text. */
static enum err check_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

    if (!name[0] || !strchr(letters, name[0]) || name[strspn(name, others)])
        return err_set(ERR_ARG, "[vulkan_kernel] \"%.64s\" is no name in GLSL.", name);
    return ERR_OK;
}

static enum err add_macro(struct text *t, const struct kernel_macro *m)
{
    enum err err = check_name(m->name);

    if (err)
        return err;
    if (m->kind == MACRO_DTYPE)
        return text_add(t, "#define %s %s\n", m->name, glsl_types[m->value]);
    if (m->kind == MACRO_BOOL)
        return text_add(t, "#define %s %s\n", m->name, m->value ? "true" : "false");
    return text_add(t, "#define %s %" PRId64 "\n", m->name, m->value);
}

struct buffer {
    const char *name, *words;
    enum dtype t;
    size_t binding;
};

static enum err add_buffer(struct text *t, const struct buffer *b)
{
    enum err err;

    TRY(check_name(b->name));
    err = text_add(t, "layout(set = 0, binding = %zu, scalar) %s buffer mlx_%zu { %s %s[]; };\n",
                   b->binding, b->words, b->binding, glsl_types[b->t], b->name);
out:
    return err;
}

enum err kernel_glsl_text(struct text *t, const struct kernel_glsl *g)
{
    const char *written = g->atomic_outputs ? "coherent" : "restrict";
    enum err err;

    TRY(text_add(t, "%s", head));
    for (size_t i = 0; i < g->n_macro; i++)
        TRY(add_macro(t, &g->macro[i]));
    TRY(text_add(t,
                 "layout(local_size_x = %" PRId64 ", local_size_y = %" PRId64
                 ", local_size_z = %" PRId64 ") in;\n",
                 g->local[0], g->local[1], g->local[2]));
    TRY(text_add(t, "layout(push_constant, scalar) uniform mlx_push { uvec3 mlx_grid; };\n"));
    for (size_t i = 0; i < g->in.n; i++)
        TRY(add_buffer(
            t, &(struct buffer){ g->in_names[i], "readonly", (enum dtype)g->in.v[i]->dtype, i }));
    for (size_t i = 0; i < g->n_out; i++)
        TRY(add_buffer(t,
                       &(struct buffer){ g->out_names[i], written, g->out[i].dtype, g->in.n + i }));
    TRY(text_add(t, "%s\nvoid mlx_body()\n{\n#line 1\n%s\n}\n", g->header, g->source));
    err = text_add(t, "void main()\n{\n    if (all(lessThan(gl_GlobalInvocationID, mlx_grid)))\n"
                      "        mlx_body();\n}\n");
out:
    return err;
}
