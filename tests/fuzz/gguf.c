/* The reader of GGUF files. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_load("fuzz.gguf", data, size);
}
