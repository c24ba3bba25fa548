/* The files that tests read. With TEST_DATA they lie below that folder, in made/ and stored/:
 * how a machine has them that did not build the tests. */
#pragma once

#include <stdbool.h>

struct data_path {
    char v[1024];
};

/* What the build wrote. */
struct data_path data_made(const char *name);
/* What lies in tests/data. */
struct data_path data_stored(const char *name);

/* A FIFO without a writer, for what must not wait for one. */
bool data_fifo(const char *path);
