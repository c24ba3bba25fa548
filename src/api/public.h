/* The public headers, with their functions exported. Everything else of the library is compiled
 * hidden, so each file of src/api that defines public functions includes this one, before any other
 * header that brings the public headers in. */
#pragma once

#pragma GCC visibility push(default)
#include "mlx/c/ext.h"
#include "mlx/c/mlx.h"
#pragma GCC visibility pop
