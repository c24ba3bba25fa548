/* The order in which a strided walk visits its elements. */
#pragma once

#include "backend/vulkan/ops/elementwise.h"

/* Where an operand is consecutive along another axis than the last one, walking row by row touches
 * a new cache line (and page) with every element of it. Writes a nest with the same elements in
 * tiles, so that what is fetched is used while it is near: two more dimensions, and the outputs as
 * operands too. False if the walk has no such operand or does not divide into tiles. */
bool elem_tile(struct nest *out, const struct elem_job *job);
