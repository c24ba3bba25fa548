/* The reader of npy files. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_load("fuzz.npy", data, size);
}
