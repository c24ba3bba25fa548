/* mx.distributed. */
#pragma once

#include "core.h"

bool distributed_init(PyObject *m);
