/* The functions of filters.def. */
#pragma once

#include "lm/jinja/builtin.h"

#define FILTER(name, params, least, fn) jin_fn filter_##fn;
#include "lm/jinja/filters.def"
#undef FILTER
