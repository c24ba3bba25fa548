/* with mx.stream(s): what becomes the default within a block. */
#pragma once

#include "core.h"

bool stream_context_init(PyObject *m);
