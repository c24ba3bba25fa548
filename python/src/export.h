/* mx.exporter, and the type of what it makes. */
#pragma once

#include "core.h"

bool export_init(PyObject *m);
