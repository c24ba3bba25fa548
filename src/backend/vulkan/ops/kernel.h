/* Kernels of callers. */
#pragma once

#include "graph/kernel.h"

/* Whether the device runs the call: ERR_UNSUPPORTED and ERR_ARG name what is wrong. */
enum err vk_kernel_check(const struct kernel_call *k);
