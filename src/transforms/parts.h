/* Rules of ops that are made of others (ops_parts), taken from those. */
#pragma once

#include "graph/op_call.h"

extern const struct by_parts transform_by_parts;
