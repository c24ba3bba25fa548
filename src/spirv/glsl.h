/* GLSL becomes SPIR-V by libshaderc, which is opened at run time. */
#pragma once

#include "base/mem.h"

bool glsl_can_compile(void);

/* A compute shader as SPIR-V for Vulkan 1.2; *bytes (n of them) is the caller's, mem_free. ERR_ARG
 * has the compiler's words, ERR_UNSUPPORTED says that there is no compiler and what makes SPIR-V of
 * the text elsewhere. Thread-safety: safe. */
MUST_CHECK enum err glsl_compile(char **bytes, size_t *n, const char *text, const char *name);
