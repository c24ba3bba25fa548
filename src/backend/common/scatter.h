/* How a scatter goes over its operands, for all backends. */
#pragma once

#include "backend/backend.h"

/* Positions are what index arrays put somewhere; at each of them lies a slice of consecutive or
 * strided elements. Two slices are either in the same place or have no element in common: what
 * updates have of dimensions along which there are indices counts as positions. */
struct be_scatter {
    enum update_kind kind;
    struct arr *updates;
    struct shp position, slice;
    int64_t update_position[SHP_MAX], update_slice[SHP_MAX]; /* strides of the updates */
    int along[SHP_MAX];   /* axis that a dimension of positions goes along besides; -1: none */
    int axis_of[SHP_MAX]; /* axis that a dimension of slices is */
    int n_index;
    struct arr *const *index;
    int axis[SHP_MAX];     /* of each index array */
    int64_t last[SHP_MAX]; /* likewise: the largest index at which an update fits */
    size_t n, slice_n;     /* positions; elements of a slice */
};

/* x: Scatter or ScatterAxis. */
void be_scatter_plan(struct be_scatter *p, const struct exec *x);
/* Strides of index array k over positions. */
void be_scatter_index_strides(int64_t *strides, const struct be_scatter *p, int k);
