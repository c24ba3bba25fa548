/* Linear algebra. Conventions: see mlx.h.
 *
 * Matrices are the last two axes, the ones before them a batch. Cross products and norms run on
 * every device, but for the norms that need singular values; the other functions are for CPU
 * streams only, and an error on a stream of a GPU. They take float32 and float64, eigenvalues and
 * singular values complex64 as well.
 *
 * What cannot be computed, such as the inverse of a singular matrix, or eigenvalues and singular
 * values where there is a NaN or an infinity, is known when it is evaluated and reported there. */
#ifndef MLX_LINALG_H
#define MLX_LINALG_H

#include <stdbool.h>
#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/stream.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- factorizations ---- */

/* L with L L^T = a, for a symmetric and positive definite; upper: U with U^T U = a. The result
 * means nothing if a is not positive definite. */
int mlx_linalg_cholesky(mlx_array *res, const mlx_array a, bool upper, const mlx_stream s);

/* Q with orthogonal columns, and R, an upper triangle: Q R = a. Of an m x n matrix Q has min(m, n)
 * columns. */
int mlx_linalg_qr(mlx_array *res_0, mlx_array *res_1, const mlx_array a, const mlx_stream s);

/* A list of three: the order that makes the rows of L U those of a (uint32), L and U. */
int mlx_linalg_lu(mlx_vector_array *res, const mlx_array a, const mlx_stream s);

/* The same as LAPACK has it: U with L below the diagonal, whose ones are left out, and for each row
 * the one that it changed places with (uint32, from 0). */
int mlx_linalg_lu_factor(mlx_array *res_0, mlx_array *res_1, const mlx_array a, const mlx_stream s);

/* A list of U, the singular values in descending order, and V^H: U diag(values) V^H = a. Of an m x
 * n matrix U is m x m and V^H is n x n. Without compute_uv a list of the values only. */
int mlx_linalg_svd(mlx_vector_array *res, const mlx_array a, bool compute_uv, const mlx_stream s);

/* ---- eigenvalues ---- */

/* Eigenvalues, in no order, and as columns eigenvectors of length 1; both complex64. */
int mlx_linalg_eig(mlx_array *res_0, mlx_array *res_1, const mlx_array a, const mlx_stream s);
int mlx_linalg_eigvals(mlx_array *res, const mlx_array a, const mlx_stream s);

/* The same of a symmetric or Hermitian matrix, of which one triangle is read, the lower one if uplo
 * is "L", the upper one if it is "U": real eigenvalues, ascending, and orthogonal vectors. */
int mlx_linalg_eigh(mlx_array *res_0, mlx_array *res_1, const mlx_array a, const char *uplo,
                    const mlx_stream s);
int mlx_linalg_eigvalsh(mlx_array *res, const mlx_array a, const char *uplo, const mlx_stream s);

/* ---- inverses and systems ---- */

int mlx_linalg_inv(mlx_array *res, const mlx_array a, const mlx_stream s);

/* Of the lower triangle of a, or the upper one; the rest of a is not read. */
int mlx_linalg_tri_inv(mlx_array *res, const mlx_array a, bool upper, const mlx_stream s);

/* The inverse of the matrix that has the Cholesky factor a. */
int mlx_linalg_cholesky_inv(mlx_array *res, const mlx_array a, bool upper, const mlx_stream s);

/* The Moore-Penrose inverse. */
int mlx_linalg_pinv(mlx_array *res, const mlx_array a, const mlx_stream s);

/* x with a x = b. b is a vector or has as many dimensions as a. */
int mlx_linalg_solve(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* The same for a triangle of a. */
int mlx_linalg_solve_triangular(mlx_array *res, const mlx_array a, const mlx_array b, bool upper,
                                const mlx_stream s);

/* ---- products and norms ---- */

/* The cross product of vectors of 3 or 2 elements along the axis; a missing element counts as 0. */
int mlx_linalg_cross(mlx_array *res, const mlx_array a, const mlx_array b, int axis,
                     const mlx_stream s);

/* With one axis the norm of vectors: the sum of |x|^ord to the power of 1 / ord, the number of
 * elements that are not 0 (ord 0), the largest or smallest absolute value (an infinity). With two
 * axes that of matrices: the largest or smallest sum of absolute values in a column (1, -1) or in a
 * row (an infinity), the largest or smallest singular value (2, -2). axis may be NULL: all axes of
 * a. */
int mlx_linalg_norm(mlx_array *res, const mlx_array a, double ord, const int *axis, size_t axis_num,
                    bool keepdims, const mlx_stream s);

/* Of matrices: the root of the sum of squares ("fro", "f") or the sum of the singular values
 * ("nuc"). axis may be NULL: all axes of a. */
int mlx_linalg_norm_matrix(mlx_array *res, const mlx_array a, const char *ord, const int *axis,
                           size_t axis_num, bool keepdims, const mlx_stream s);

/* The root of the sum of squares over up to two axes. axis may be NULL: over all elements. */
int mlx_linalg_norm_l2(mlx_array *res, const mlx_array a, const int *axis, size_t axis_num,
                       bool keepdims, const mlx_stream s);

#ifdef __cplusplus
}
#endif

#endif
