/* Subscripts. */
#include "array.h"

const PyType_Slot array_index_slots[] = { { 0, NULL } };
