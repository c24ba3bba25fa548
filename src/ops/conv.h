/* What the constructors and the rules of convolutions share. Private to ops. */
#pragma once

#include <stdint.h>

#define CONV_AXES 3 /* spatial ones, at most */

/* What n elements reach over. */
int64_t conv_dilated(int64_t n, int64_t dilation);
