/* The loops for the instruction set that the compiler targets. */
#define KERNELS cpu_qmv_base
#include "backend/cpu/qmv_body.h"
