/* The validator of SPIRV-Tools, where its library is installed. Its functions are declared here;
 * values are those of its C interface. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "spirv/module.h"

#define ENV_VULKAN_1_3 25

struct diagnostic {
    size_t line, column, index;
    char *error;
    bool is_text;
};

struct binary {
    const uint32_t *words;
    size_t n;
};

static struct {
    void *(*context_create)(int env);
    void (*context_destroy)(void *context);
    void *(*options_create)(void);
    void (*options_destroy)(void *options);
    void (*set_scalar)(void *options, bool on);
    int (*validate)(const void *context, const void *options, const struct binary *b,
                    struct diagnostic **d);
    void (*diagnostic_destroy)(struct diagnostic *d);
} tools;

static const struct {
    const char *name;
    void *place;
} symbols[] = {
    { "spvContextCreate", &tools.context_create },
    { "spvContextDestroy", &tools.context_destroy },
    { "spvValidatorOptionsCreate", &tools.options_create },
    { "spvValidatorOptionsDestroy", &tools.options_destroy },
    { "spvValidatorOptionsSetScalarBlockLayout", &tools.set_scalar },
    { "spvValidateWithOptions", &tools.validate },
    { "spvDiagnosticDestroy", &tools.diagnostic_destroy },
};

static bool is_there;

static void open_library(void)
{
    void *library = dlopen("libSPIRV-Tools-shared.so", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < ARRAY_LEN(symbols); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return;
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
    is_there = library != NULL;
}

bool spirv_can_validate(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_library);
    return is_there;
}

enum err spirv_validate(const uint32_t *words, size_t n)
{
    const struct binary binary = { words, n };
    struct diagnostic *d = NULL;
    enum err err = ERR_NO_MEMORY;

    if (!spirv_can_validate())
        return ERR_OK;
    void *context = tools.context_create(ENV_VULKAN_1_3), *options = tools.options_create();
    if (!context || !options)
        goto out;
    tools.set_scalar(options, true); /* the device can do it */
    err = ERR_OK;
    if (tools.validate(context, options, &binary, &d) != 0)
        err = err_set(ERR_ARG, "[spirv] Not valid: %s", d && d->error ? d->error : "no reason");
out:
    if (d)
        tools.diagnostic_destroy(d);
    if (options)
        tools.options_destroy(options);
    if (context)
        tools.context_destroy(context);
    return err;
}
