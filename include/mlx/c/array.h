/* Arrays: creation, properties, values. Conventions: see mlx.h.
 *
 * An array is a node of a lazy graph: it knows its shape and dtype at once and its values once it
 * is evaluated. Handles are references; several may name the same array, and nothing but
 * mlx_array_set* and out-parameters changes what a handle names. */
#ifndef MLX_ARRAY_H
#define MLX_ARRAY_H

#include <complex.h>
#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "mlx/c/half.h"
#include "mlx/c/string.h"

/* Two floats, real part first. */
#if defined(_MSC_VER)
typedef _Fcomplex mlx_complex64_t;
#elif defined(__GNUC__)
__extension__ typedef float _Complex mlx_complex64_t;
#else
typedef float _Complex mlx_complex64_t;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A reference to an array. ctx == NULL is the empty handle. */
typedef struct mlx_array_ {
    void *ctx;
} mlx_array;

/* The empty handle as a value, for arguments that may be absent. */
#if defined(__GNUC__)
__attribute__((unused))
#endif
static const mlx_array mlx_array_empty = { 0 };

/* Element types. The values are part of the interface. */
typedef enum mlx_dtype_ {
    MLX_BOOL = 0,
    MLX_UINT8 = 1,
    MLX_UINT16 = 2,
    MLX_UINT32 = 3,
    MLX_UINT64 = 4,
    MLX_INT8 = 5,
    MLX_INT16 = 6,
    MLX_INT32 = 7,
    MLX_INT64 = 8,
    MLX_FLOAT16 = 9,
    MLX_FLOAT32 = 10,
    MLX_FLOAT64 = 11, /* CPU only */
    MLX_BFLOAT16 = 12,
    MLX_COMPLEX64 = 13,
} mlx_dtype;

/* Bytes per element; 0 for a value that is no dtype, which is an error. */
size_t mlx_dtype_size(mlx_dtype dtype);

/* Evaluates the array and writes its values as text, abbreviated where it is large. */
int mlx_array_tostring(mlx_string *str, const mlx_array arr);

/* ---- creation ---- */

/* The empty handle. Cannot fail. */
mlx_array mlx_array_new(void);

/* Drops the reference; the empty handle is allowed. The array itself lives on while a graph, a list
 * or another handle needs it. */
int mlx_array_free(mlx_array arr);

/* Arrays without dimensions that hold one value: bool, int32, float32 (two names), float64 (two
 * names), complex64. The empty handle on failure. */
mlx_array mlx_array_new_bool(bool val);
mlx_array mlx_array_new_int(int val);
mlx_array mlx_array_new_float32(float val);
mlx_array mlx_array_new_float(float val);
mlx_array mlx_array_new_float64(double val);
mlx_array mlx_array_new_double(double val);
mlx_array mlx_array_new_complex(float real_val, float imag_val);

/* An array of dim dimensions with a copy of the row-major elements at data. shape may be NULL if
 * dim is 0, data if the array has no elements. The empty handle on failure. */
mlx_array mlx_array_new_data(const void *data, const int *shape, int dim, mlx_dtype dtype);

/* Like mlx_array_new_data, but takes the buffer over without copying where the device allows:
 * dtor(data) runs once, on any thread, when the buffer is no longer needed, at the latest when the
 * last array that uses it is gone. It runs on failure as well. dtor must not be NULL. */
mlx_array mlx_array_new_data_managed(void *data, const int *shape, int dim, mlx_dtype dtype,
                                     void (*dtor)(void *));

/* The same, with dtor(payload) in place of dtor(data). */
mlx_array mlx_array_new_data_managed_payload(void *data, const int *shape, int dim, mlx_dtype dtype,
                                             void *payload, void (*dtor)(void *));

/* Makes *arr name the same array as src; src stays with the caller. */
int mlx_array_set(mlx_array *arr, const mlx_array src);

/* Make *arr name a new array without dimensions that holds val. On failure *arr is as before. */
int mlx_array_set_bool(mlx_array *arr, bool val);
int mlx_array_set_int(mlx_array *arr, int val);
int mlx_array_set_float32(mlx_array *arr, float val);
int mlx_array_set_float(mlx_array *arr, float val);
int mlx_array_set_float64(mlx_array *arr, double val);
int mlx_array_set_double(mlx_array *arr, double val);
int mlx_array_set_complex(mlx_array *arr, float real_val, float imag_val);

/* Makes *arr name a new array with a copy of data; arguments as for mlx_array_new_data. */
int mlx_array_set_data(mlx_array *arr, const void *data, const int *shape, int dim,
                       mlx_dtype dtype);

/* ---- properties: known without evaluation, except the strides ----
 * On an empty handle each of them reports an error and returns 0 or NULL. */

/* Bytes per element. */
size_t mlx_array_itemsize(const mlx_array arr);

/* Number of elements: the product of the shape, 1 without dimensions. */
size_t mlx_array_size(const mlx_array arr);

/* Bytes of all elements, size times itemsize. */
size_t mlx_array_nbytes(const mlx_array arr);

/* Number of dimensions. */
size_t mlx_array_ndim(const mlx_array arr);

/* Sizes of the dimensions. Borrowed: valid while the handle names this array. */
const int *mlx_array_shape(const mlx_array arr);

/* Steps between neighbours along each dimension, in elements; steps backwards wrap around as
 * unsigned numbers do. Final only once the array is evaluated. Borrowed like the shape. */
const size_t *mlx_array_strides(const mlx_array arr);

/* Size of one dimension; negative numbers count from the end. An error if out of range. */
int mlx_array_dim(const mlx_array arr, int dim);

/* Element type. */
mlx_dtype mlx_array_dtype(const mlx_array arr);

/* ---- values ---- */

/* Computes the array and all that it depends on, and waits for it. */
int mlx_array_eval(mlx_array arr);

/* The only element of an array of size 1, evaluated first if need be. The type must be that of the
 * array: nothing is converted. An error if the size is not 1. */
int mlx_array_item_bool(bool *res, const mlx_array arr);
int mlx_array_item_uint8(uint8_t *res, const mlx_array arr);
int mlx_array_item_uint16(uint16_t *res, const mlx_array arr);
int mlx_array_item_uint32(uint32_t *res, const mlx_array arr);
int mlx_array_item_uint64(uint64_t *res, const mlx_array arr);
int mlx_array_item_int8(int8_t *res, const mlx_array arr);
int mlx_array_item_int16(int16_t *res, const mlx_array arr);
int mlx_array_item_int32(int32_t *res, const mlx_array arr);
int mlx_array_item_int64(int64_t *res, const mlx_array arr);
int mlx_array_item_float32(float *res, const mlx_array arr);
int mlx_array_item_float64(double *res, const mlx_array arr);
int mlx_array_item_complex64(mlx_complex64_t *res, const mlx_array arr);
#ifdef HAS_FLOAT16
int mlx_array_item_float16(float16_t *res, const mlx_array arr);
#endif
#ifdef HAS_BFLOAT16
int mlx_array_item_bfloat16(bfloat16_t *res, const mlx_array arr);
#endif

/* The elements in host memory, laid out by the strides, starting with element [0, ..., 0]. The
 * array must be evaluated, else NULL. The type must be that of the array: nothing is converted.
 * Waits for work that still writes the array. Where the device's memory cannot be read by the host,
 * the first call copies the values. Borrowed: valid while the array lives. */
const bool *mlx_array_data_bool(const mlx_array arr);
const uint8_t *mlx_array_data_uint8(const mlx_array arr);
const uint16_t *mlx_array_data_uint16(const mlx_array arr);
const uint32_t *mlx_array_data_uint32(const mlx_array arr);
const uint64_t *mlx_array_data_uint64(const mlx_array arr);
const int8_t *mlx_array_data_int8(const mlx_array arr);
const int16_t *mlx_array_data_int16(const mlx_array arr);
const int32_t *mlx_array_data_int32(const mlx_array arr);
const int64_t *mlx_array_data_int64(const mlx_array arr);
const float *mlx_array_data_float32(const mlx_array arr);
const double *mlx_array_data_float64(const mlx_array arr);
const mlx_complex64_t *mlx_array_data_complex64(const mlx_array arr);
#ifdef HAS_FLOAT16
const float16_t *mlx_array_data_float16(const mlx_array arr);
#endif
#ifdef HAS_BFLOAT16
const bfloat16_t *mlx_array_data_bfloat16(const mlx_array arr);
#endif

/* ---- for bindings: state of an array, no part of the stable interface ---- */

/* Whether the values are there, so that reading would not wait. */
int _mlx_array_is_available(bool *res, const mlx_array arr);

/* Waits for an array whose evaluation was started with mlx_async_eval. */
int _mlx_array_wait(const mlx_array arr);

/* Whether the elements fill their memory without gaps, in any order, in row-major order or in
 * column-major order. Final only once the array is evaluated. */
int _mlx_array_is_contiguous(bool *res, const mlx_array arr);
int _mlx_array_is_row_contiguous(bool *res, const mlx_array arr);
int _mlx_array_is_col_contiguous(bool *res, const mlx_array arr);

#ifdef __cplusplus
}
#endif

#endif
