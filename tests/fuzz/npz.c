/* The reader of npz archives files. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_load("fuzz.npz", data, size);
}
