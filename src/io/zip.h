/* Zip archives, as far as npz needs them: members stored or deflated, with 64-bit sizes, no
 * encryption, one disk. Private to io. */
#pragma once

#include "base/mem.h"
#include "graph/source.h"
#include "io/sink.h"

struct zip_member {
    char *name;
    uint64_t header;       /* where its local header begins */
    uint64_t packed, size; /* bytes in the archive, bytes of the content */
    uint32_t crc;
    uint16_t method;
};

struct zip_directory {
    VEC(struct zip_member) list;
};

/* Reads the central directory: members lie inside the archive and do not overlap. ERR_RUNTIME. */
MUST_CHECK enum err zip_read_directory(struct zip_directory *out, struct source *src);
void zip_directory_fini(struct zip_directory *d);

/* The content of a member, m->size bytes from mem_alloc_aligned, its checksum compared. */
MUST_CHECK enum err zip_read_member(void **out, struct source *src, const struct zip_member *m);

/* One archive being written: members one after the other, then the directory. */
struct zip_writer {
    struct sink *sink;
    struct zip_directory written;
};

/* A piece of a member's content. */
struct zip_piece {
    const void *bytes;
    size_t n;
};
MUST_CHECK enum err zip_write_member(struct zip_writer *w, const char *name,
                                     const struct zip_piece *pieces, size_t n, bool compressed);
MUST_CHECK enum err zip_write_end(struct zip_writer *w);
void zip_writer_fini(struct zip_writer *w);
