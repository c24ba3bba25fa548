#include "spirv/glsl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Values of shaderc's C interface. */
enum { KIND_COMPUTE = 2, TARGET_VULKAN = 0, VULKAN_1_2 = 1 << 22 | 2 << 12, STATUS_SUCCESS = 0 };

static struct {
    void *(*compiler_new)(void);
    void (*compiler_free)(void *compiler);
    void *(*options_new)(void);
    void (*options_free)(void *options);
    void (*set_target)(void *options, int target, uint32_t version);
    void *(*compile)(const void *compiler, const char *text, size_t size, int kind,
                     const char *name, const char *entry, const void *options);
    void (*result_free)(void *result);
    int (*result_status)(const void *result);
    const char *(*result_error)(const void *result);
    size_t (*result_size)(const void *result);
    const char *(*result_bytes)(const void *result);
} shaderc;

static const struct {
    const char *name;
    void *place;
} symbols[] = {
    { "shaderc_compiler_initialize", &shaderc.compiler_new },
    { "shaderc_compiler_release", &shaderc.compiler_free },
    { "shaderc_compile_options_initialize", &shaderc.options_new },
    { "shaderc_compile_options_release", &shaderc.options_free },
    { "shaderc_compile_options_set_target_env", &shaderc.set_target },
    { "shaderc_compile_into_spv", &shaderc.compile },
    { "shaderc_result_release", &shaderc.result_free },
    { "shaderc_result_get_compilation_status", &shaderc.result_status },
    { "shaderc_result_get_error_message", &shaderc.result_error },
    { "shaderc_result_get_length", &shaderc.result_size },
    { "shaderc_result_get_bytes", &shaderc.result_bytes },
};

/* Debian's, and that of the Vulkan SDK. */
static const char *const names[] = { "libshaderc.so.1", "libshaderc_shared.so.1" };

static bool is_there;
static char why_not[160];

static void open_library(void)
{
    void *library = NULL;

    for (size_t i = 0; i < ARRAY_LEN(names) && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library && !why_not[0])
            snprintf(why_not, sizeof why_not, "%s", dlerror());
    }
    for (size_t i = 0; library && i < ARRAY_LEN(symbols); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return;
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
    is_there = library != NULL;
}

bool glsl_can_compile(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_library);
    return is_there;
}

static enum err take_result(char **bytes, size_t *n, const void *result, const char *name)
{
    if (shaderc.result_status(result) != STATUS_SUCCESS)
        return err_set(ERR_ARG, "[vulkan_kernel] %s does not compile: %.380s", name,
                       shaderc.result_error(result));
    *n = shaderc.result_size(result);
    if (!(*bytes = mem_alloc(*n)))
        return ERR_NO_MEMORY;
    memcpy(*bytes, shaderc.result_bytes(result), *n);
    return ERR_OK;
}

enum err glsl_compile(char **bytes, size_t *n, const char *text, const char *name)
{
    void *compiler, *options, *result = NULL;
    enum err err = ERR_NO_MEMORY;

    if (!glsl_can_compile())
        return err_set(ERR_UNSUPPORTED,
                       "[vulkan_kernel] GLSL needs libshaderc, which cannot be opened (%s). SPIR-V "
                       "does without: glslc -fshader-stage=compute --target-env=vulkan1.2 -o "
                       "%.40s.spv %.40s.comp makes it of what verbose prints.",
                       why_not, name, name);
    compiler = shaderc.compiler_new();
    options = shaderc.options_new();
    if (compiler && options) {
        shaderc.set_target(options, TARGET_VULKAN, VULKAN_1_2);
        result = shaderc.compile(compiler, text, strlen(text), KIND_COMPUTE, name, "main", options);
    }
    if (result) {
        err = take_result(bytes, n, result, name);
        shaderc.result_free(result);
    }
    if (options)
        shaderc.options_free(options);
    if (compiler)
        shaderc.compiler_free(compiler);
    return err;
}
