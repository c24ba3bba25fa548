/* mx.custom_function. */
#pragma once

#include "core.h"

bool custom_init(PyObject *m);
