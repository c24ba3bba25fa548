/* Targets for fuzzing: each file of this folder but fuzz.c, lm_run.c and driver.c is one. clang's
 * libFuzzer calls them (tools/fuzz.sh); an ordinary build links driver.c instead. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Loads the bytes as a file of that name and reads every element. Always 0. */
int fuzz_load(const char *file, const uint8_t *data, size_t size);
