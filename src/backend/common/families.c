#include "backend/common/families.h"

const be_op_fn be_common_families[OP_FAMILY_COUNT] = {
    [OP_FAMILY_VIEW] = be_view,
    [OP_FAMILY_CONCATENATE] = be_concatenate,
    [OP_FAMILY_PAD] = be_pad,
    [OP_FAMILY_FULL] = be_full,
};
