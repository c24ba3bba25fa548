/* Whether programs that test both devices test the GPU. */
#pragma once

#include "eval/stream.h"
#include "support/testing.h"

/* Builds with Vulkan do, and one that finds no device fails. On other processors than x86 software
 * drivers may lack something (Mesa 22.3 on arm64: shaderFloat16): there the CPU is tested alone. */
static inline bool gpu_is_tested(void)
{
    if (!dev_backend(DEV_GPU))
        return false;
#if !defined(__x86_64__)
    if (!dev_is_available((struct dev){ DEV_GPU, 0 })) {
        print_message("left out: the GPU, %s\n", dev_why_not(DEV_GPU));
        return false;
    }
#endif
    return true;
}
