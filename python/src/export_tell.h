/* Exports that tell a function of Python's what they would write. */
#pragma once

#include "core.h"

struct export_teller {
    PyObject *callback;   /* borrowed */
    mlx_node_namer namer; /* what arrays are called */
};

/* The listener of an exporter, whose payload is a struct export_teller: calls the callback with a
 * dict for each event. */
int export_tell(void *payload, const mlx_export_event *event);
