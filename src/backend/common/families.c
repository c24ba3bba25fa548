#include "backend/common/families.h"

const be_op_fn be_common_families[OP_FAMILY_COUNT] = {
#define FAMILY(id, fn) [OP_FAMILY_##id] = fn,
#include "backend/common/families.def"
#undef FAMILY
};
