/* Modules of callers: what is not refused says things about itself that can be believed. */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "spirv/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spirv_module *m = NULL;

    if (spirv_new(&m, data, size))
        return 0;
    const struct spirv_info *info = &m->info;
    if (info->binding.n > SPIRV_MAX_BINDINGS || info->spec.n > SPIRV_MAX_SPEC)
        abort();
    for (size_t i = 0; i < info->binding.n; i++)
        if (spirv_find_binding(info, info->binding.v[i].binding) != &info->binding.v[i])
            abort();
    for (int i = 0; i < 3; i++)
        if (!info->local_size[i] || info->local_spec[i] >= (int)info->spec.n)
            abort();
    spirv_unref(&m);
    return 0;
}
