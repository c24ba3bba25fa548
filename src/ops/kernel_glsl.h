/* A compute shader around the body of a kernel in GLSL. */
#pragma once

#include "base/text.h"
#include "ops/ops.h"

/* A name that the text has instead of a value: enum dtype, a number, or 0 and 1. */
enum kernel_macro_kind { MACRO_DTYPE, MACRO_INT, MACRO_BOOL };
struct kernel_macro {
    char *name;
    enum kernel_macro_kind kind;
    int64_t value;
};

struct kernel_glsl {
    const char *const *in_names, *const *out_names;
    struct arrs in;
    const struct out_desc *out;
    size_t n_out;
    const char *source, *header;
    const struct kernel_macro *macro;
    size_t n_macro;
    int64_t local[3];
    bool atomic_outputs; /* coherent */
};

/* The text, which the caller releases in any case. Its push constants are the grid in threads:
 * those beyond it do nothing. */
MUST_CHECK enum err kernel_glsl_text(struct text *out, const struct kernel_glsl *g);
