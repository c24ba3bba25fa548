/* Opening what somebody else wrote.
 *
 * A path from outside may lead to a FIFO, a terminal or a device: opening the first waits for a
 * writer, reading the others need not end. Only regular files are opened here, so that a size is
 * known before anything is read. */
#pragma once

#include "base/common.h"
#include "base/err.h"

/* A descriptor for reading, which never waits, and the size. ERR_RUNTIME with errno set and the
 * text "PATH: REASON"; EINVAL stands for what is no regular file. */
MUST_CHECK enum err file_open(int *fd, uint64_t *size, const char *path);

/* All bytes of a file, with a zero behind them that *n does not count, in memory for mem_free.
 * Errors as of file_open; more than `most` bytes are one of them. */
MUST_CHECK enum err file_read(char **out, size_t *n, const char *path, size_t most);
