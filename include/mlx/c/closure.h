/* Functions of arrays as handles, for transformations (transforms.h). Conventions: see mlx.h.
 *
 * A closure is made of a C function. Its callback gets results to fill, whose handles are empty,
 * and inputs that are borrowed for the call, and returns 0, or something else for a failure, which
 * becomes one of the call that ran it ("... returned a non-zero value"). With _new_func_payload the
 * callback also gets the payload, last; dtor, which may be NULL, runs once with it when the last
 * copy of the closure is gone; if the constructor fails the payload stays the caller's.
 *
 * _new(void) gives the empty handle. _set makes *cls share src's function. _apply calls it.
 * Thread-safety: closures may be shared by threads as far as their callbacks allow. */
#ifndef MLX_CLOSURE_H
#define MLX_CLOSURE_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/map.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- from arrays to arrays ---- */

typedef struct mlx_closure_ {
    void *ctx;
} mlx_closure;

mlx_closure mlx_closure_new(void);
int mlx_closure_free(mlx_closure cls);
mlx_closure mlx_closure_new_func(int (*fun)(mlx_vector_array *, const mlx_vector_array));
mlx_closure mlx_closure_new_func_payload(int (*fun)(mlx_vector_array *, const mlx_vector_array,
                                                    void *),
                                         void *payload, void (*dtor)(void *));
int mlx_closure_set(mlx_closure *cls, const mlx_closure src);
int mlx_closure_apply(mlx_vector_array *res, mlx_closure cls, const mlx_vector_array input);
/* Of a function from one array to one. */
mlx_closure mlx_closure_new_unary(int (*fun)(mlx_array *, const mlx_array));

/* ---- with named arguments ---- */

typedef struct mlx_closure_kwargs_ {
    void *ctx;
} mlx_closure_kwargs;

mlx_closure_kwargs mlx_closure_kwargs_new(void);
int mlx_closure_kwargs_free(mlx_closure_kwargs cls);
mlx_closure_kwargs mlx_closure_kwargs_new_func(int (*fun)(mlx_vector_array *,
                                                          const mlx_vector_array,
                                                          const mlx_map_string_to_array));
mlx_closure_kwargs mlx_closure_kwargs_new_func_payload(
    int (*fun)(mlx_vector_array *, const mlx_vector_array, const mlx_map_string_to_array, void *),
    void *payload, void (*dtor)(void *));
int mlx_closure_kwargs_set(mlx_closure_kwargs *cls, const mlx_closure_kwargs src);
int mlx_closure_kwargs_apply(mlx_vector_array *res, mlx_closure_kwargs cls,
                             const mlx_vector_array input_0, const mlx_map_string_to_array input_1);

/* ---- values and gradients: what mlx_value_and_grad makes ---- */

typedef struct mlx_closure_value_and_grad_ {
    void *ctx;
} mlx_closure_value_and_grad;

mlx_closure_value_and_grad mlx_closure_value_and_grad_new(void);
int mlx_closure_value_and_grad_free(mlx_closure_value_and_grad cls);
mlx_closure_value_and_grad mlx_closure_value_and_grad_new_func(int (*fun)(mlx_vector_array *,
                                                                          mlx_vector_array *,
                                                                          const mlx_vector_array));
mlx_closure_value_and_grad mlx_closure_value_and_grad_new_func_payload(
    int (*fun)(mlx_vector_array *, mlx_vector_array *, const mlx_vector_array, void *),
    void *payload, void (*dtor)(void *));
int mlx_closure_value_and_grad_set(mlx_closure_value_and_grad *cls,
                                   const mlx_closure_value_and_grad src);
/* res_0: the values, res_1: the gradients. */
int mlx_closure_value_and_grad_apply(mlx_vector_array *res_0, mlx_vector_array *res_1,
                                     mlx_closure_value_and_grad cls, const mlx_vector_array input);

/* ---- rules of custom functions ---- */

/* From primals, cotangents of the outputs, and outputs to cotangents of all primals. */
typedef struct mlx_closure_custom_ {
    void *ctx;
} mlx_closure_custom;

mlx_closure_custom mlx_closure_custom_new(void);
int mlx_closure_custom_free(mlx_closure_custom cls);
mlx_closure_custom mlx_closure_custom_new_func(int (*fun)(
    mlx_vector_array *, const mlx_vector_array, const mlx_vector_array, const mlx_vector_array));
mlx_closure_custom mlx_closure_custom_new_func_payload(int (*fun)(mlx_vector_array *,
                                                                  const mlx_vector_array,
                                                                  const mlx_vector_array,
                                                                  const mlx_vector_array, void *),
                                                       void *payload, void (*dtor)(void *));
int mlx_closure_custom_set(mlx_closure_custom *cls, const mlx_closure_custom src);
int mlx_closure_custom_apply(mlx_vector_array *res, mlx_closure_custom cls,
                             const mlx_vector_array input_0, const mlx_vector_array input_1,
                             const mlx_vector_array input_2);

/* From primals, tangents of some of them, and which those are, to tangents of all outputs. */
typedef struct mlx_closure_custom_jvp_ {
    void *ctx;
} mlx_closure_custom_jvp;

mlx_closure_custom_jvp mlx_closure_custom_jvp_new(void);
int mlx_closure_custom_jvp_free(mlx_closure_custom_jvp cls);
mlx_closure_custom_jvp mlx_closure_custom_jvp_new_func(int (*fun)(
    mlx_vector_array *, const mlx_vector_array, const mlx_vector_array, const int *, size_t _num));
mlx_closure_custom_jvp mlx_closure_custom_jvp_new_func_payload(
    int (*fun)(mlx_vector_array *, const mlx_vector_array, const mlx_vector_array, const int *,
               size_t _num, void *),
    void *payload, void (*dtor)(void *));
int mlx_closure_custom_jvp_set(mlx_closure_custom_jvp *cls, const mlx_closure_custom_jvp src);
int mlx_closure_custom_jvp_apply(mlx_vector_array *res, mlx_closure_custom_jvp cls,
                                 const mlx_vector_array input_0, const mlx_vector_array input_1,
                                 const int *input_2, size_t input_2_num);

/* From inputs and the axis of the batch in each (-1: it has none) to outputs and theirs. */
typedef struct mlx_closure_custom_vmap_ {
    void *ctx;
} mlx_closure_custom_vmap;

mlx_closure_custom_vmap mlx_closure_custom_vmap_new(void);
int mlx_closure_custom_vmap_free(mlx_closure_custom_vmap cls);
mlx_closure_custom_vmap mlx_closure_custom_vmap_new_func(int (*fun)(
    mlx_vector_array *, mlx_vector_int *, const mlx_vector_array, const int *, size_t _num));
mlx_closure_custom_vmap mlx_closure_custom_vmap_new_func_payload(
    int (*fun)(mlx_vector_array *, mlx_vector_int *, const mlx_vector_array, const int *,
               size_t _num, void *),
    void *payload, void (*dtor)(void *));
int mlx_closure_custom_vmap_set(mlx_closure_custom_vmap *cls, const mlx_closure_custom_vmap src);
int mlx_closure_custom_vmap_apply(mlx_vector_array *res_0, mlx_vector_int *res_1,
                                  mlx_closure_custom_vmap cls, const mlx_vector_array input_0,
                                  const int *input_1, size_t input_1_num);

#ifdef __cplusplus
}
#endif

#endif
