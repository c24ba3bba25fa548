/* Memory of others that becomes arrays, and arrays that others read: buffers and DLPack. */
#pragma once

#include "array.h"
#include "create.h"

enum { FOREIGN_DIMS = 64 }; /* NumPy's limit; the library has its own */

/* Elements somewhere in host memory. */
struct foreign {
    const char *data; /* element [0, ..., 0] */
    int ndim;
    int shape[FOREIGN_DIMS];
    int64_t strides[FOREIGN_DIMS]; /* in bytes */
    mlx_dtype dtype;
    bool wide; /* complex numbers of two doubles; dtype is complex64 */
};

/* Makes *res an array of a copy. Where that takes little more memory, it has the same strides.
 * Doubles become float32 unless want says otherwise. */
bool foreign_import(mlx_array *res, const struct foreign *f, struct want want);

/* Sets one size; the exception if it does not fit. */
bool foreign_size(struct foreign *f, int dim, int64_t size);

/* ---- exchange_dlpack.c ---- */

/* Whether o is a capsule of DLPack, or makes one. */
bool dlpack_can(PyObject *o);
/* Makes *res an array of a copy of its elements. */
bool dlpack_import(mlx_array *res, PyObject *o, struct want want);

/* ---- exchange_buffer.c ---- */

/* Makes *res an array of a copy of the elements of an object with a buffer. */
bool buffer_import(mlx_array *res, PyObject *o, struct want want);
