/* Devices, streams, and the defaults. */
#pragma once

#include "core.h"

struct device_object {
    PyObject_HEAD mlx_device_type type;
    int index;
};

struct stream_object {
    PyObject_HEAD mlx_stream stream; /* owned */
    unsigned long thread;            /* that may use it; 0: every one */
};

extern PyTypeObject *device_type, *stream_type, *thread_stream_type;

/* What a stream argument names: None (the empty handle: the default stream), a stream, of a stream
 * for every thread the calling one's, or a device, whose default stream it is. *owned says whether
 * the caller frees the handle. */
bool stream_from(PyObject *o, mlx_stream *stream, bool *owned);

/* What a device argument names: a device or a kind of devices. False without exception if o is
 * neither. */
bool device_from(PyObject *o, mlx_device_type *type, int *index);

bool device_init(PyObject *m);
