/* Where files are written to: a path, or a writer of the caller.
 *
 * A file is written aside and takes its name when it is complete, so that nothing half-written is
 * ever seen under it, and arrays that use an older file of that name in place keep its bytes. What
 * is no regular file (a pipe, a device) is written directly. */
#pragma once

#include "base/common.h"
#include "base/err.h"

struct sink;

/* A new file; extension (".npy") is added to path where it does not end in it. */
MUST_CHECK enum err sink_create(struct sink **out, const char *path, const char *extension);

struct sink_writer {
    void *self;
    enum err (*write)(void *self, const void *bytes, size_t n); /* all n bytes, or fails */
};
/* The writer is borrowed for the life of the sink. */
MUST_CHECK enum err sink_new_writer(struct sink **out, const struct sink_writer *w,
                                    const char *name);

/* ERR_RUNTIME with the name and the reason. */
MUST_CHECK enum err sink_write(struct sink *s, const void *bytes, size_t n);
/* n zero bytes. */
MUST_CHECK enum err sink_pad(struct sink *s, size_t n);
/* Bytes written so far. */
uint64_t sink_at(const struct sink *s);
/* What errors call it; borrowed. */
const char *sink_name(const struct sink *s);

/* Replaces bytes that were written; of a file only. */
MUST_CHECK enum err sink_patch(struct sink *s, const void *bytes, size_t n, uint64_t at);

/* Hands over what is still buffered and gives the file its name; what is written from now on is
 * added to it in its place. */
MUST_CHECK enum err sink_publish(struct sink *s);
/* The same, and nothing can be written any more. */
MUST_CHECK enum err sink_commit(struct sink *s);
/* Removes what was written unless it was committed. */
void sink_destroy(struct sink **s);
