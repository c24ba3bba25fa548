/* Functions that MLX exported, and what it computes with them: tests/data/mlxfn, written by
 * gen/mlxfn_files.py. Everything fails the running test instead of returning an error. */
#pragma once

#include "io/io.h"
#include "support/arrays.h"

/* The names of the files, without their extensions. */
extern const char *const mlxfn_names[];
extern const size_t mlxfn_count;

/* The path of NAME.mlxfn; valid until the next call. */
const char *mlxfn_path(const char *name);

/* What NAME.npz says of a function. */
struct mlxfn_calls {
    struct io_arrays arrays;
    int n;
};
void mlxfn_calls_init(struct mlxfn_calls *c, const char *name);
void mlxfn_calls_fini(struct mlxfn_calls *c);

/* One of the calls: its inputs, borrowed, and the results that are to come. */
#define MLXFN_ARRAYS 64
struct mlxfn_call {
    struct arr *in[MLXFN_ARRAYS], *out[MLXFN_ARRAYS];
    size_t n_in, n_out;
    struct io_arrays named; /* sorted; with references */
};
void mlxfn_call_init(struct mlxfn_call *c, const struct mlxfn_calls *calls, int which);
void mlxfn_call_fini(struct mlxfn_call *c);

/* The results have dtypes, shapes and values of the call's. */
void mlxfn_compare(const struct mlxfn_call *c, const char *name, struct arr *const *found,
                   size_t n);
