/* Bytes that arrays are loaded from: a file, memory, or a reader of the caller. Read by position,
 * shared by reference, kept until the last array that waits to be loaded is done.
 *
 * Copies are made with positional reads, never through a mapping, so that a file that shrinks gives
 * an error, and what was read stays. That is the way of all files unless MLX_IO_MAP=1 asks for
 * arrays that use the bytes in place: 400 MB of weights took 0.26 s of the system's time either
 * way. Such a mapping reaches no further than the file did when it was made, and its size is
 * checked again at every use; what remains is that somebody else truncates the file, or the disk
 * fails, while the array is being read: the process then gets SIGBUS. Files of this library are
 * written aside and renamed, so that saving over a loaded file is safe. Files on network and
 * user-space file systems, where that can happen at any time, are never mapped. */
#pragma once

#include "base/common.h"
#include "base/err.h"

struct source;

/* Opens a regular file. ERR_RUNTIME with the path and the reason. */
MUST_CHECK enum err source_open(struct source **out, const char *path);

/* Takes n bytes from mem_alloc or mem_alloc_aligned, on success only. */
MUST_CHECK enum err source_new_memory(struct source **out, void *bytes, size_t n, const char *name);

/* Bytes that a callback fetches. Calls are made one at a time, from any thread; free runs once,
 * when the last reference goes (and not if source_new_reader fails). */
struct source_reader {
    void *self;
    enum err (*read)(void *self, void *dst, size_t n, uint64_t offset); /* all n bytes, or fails */
    void (*free)(void *self);
    uint64_t size;
};
MUST_CHECK enum err source_new_reader(struct source **out, const struct source_reader *r,
                                      const char *name);

struct source *source_ref(struct source *s);
void source_unref(struct source **s);

/* What errors call it; borrowed. */
const char *source_name(const struct source *s);
/* Bytes, as they were when it was opened. */
uint64_t source_size(const struct source *s);

/* True if [offset, offset + n) lies inside. */
bool source_holds(const struct source *s, uint64_t offset, uint64_t n);

/* True if several threads gain by reading at once; calls of a reader come one at a time. */
bool source_is_parallel(const struct source *s);

/* Copies n bytes, all or ERR_RUNTIME. The text begins with the name. Thread-safety: safe. */
MUST_CHECK enum err source_read(struct source *s, void *dst, size_t n, uint64_t offset);

/* The address of n bytes that may be used in place as long as a reference to s is held, or NULL:
 * then they have to be copied. They may be written (nobody else sees that), but should not be.
 * small: fewer bytes are not worth a mapping. Thread-safety: safe. */
void *source_in_place(struct source *s, uint64_t offset, size_t n, size_t small);
