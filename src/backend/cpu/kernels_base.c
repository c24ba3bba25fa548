/* The loops for the instruction set that the compiler targets. */
#define KERNELS cpu_kernels_base
#include "backend/cpu/kernels_body.h"
