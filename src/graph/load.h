/* What a Load node reads: a part of a source, decoded into the bytes of one array.
 *
 * The node's only input is a leaf that owns this description, so that the source stays open until
 * the node was evaluated or dropped, like any other input. */
#pragma once

#include "graph/array.h"
#include "graph/codec.h"
#include "graph/source.h"

struct load_part {
    struct source *source; /* a reference */
    uint64_t offset;       /* of the first byte in the source */
    enum codec codec;
    const char *name; /* of the tensor, for errors; "" where a source holds one array */
};

/* A leaf that owns a copy of p and its own reference to the source. Its bytes are no array data. */
MUST_CHECK enum err load_leaf_new(struct arr **out, const struct load_part *p);
/* Whether a comes from load_leaf_new. */
bool load_is_leaf(const struct arr *a);
/* The description behind a leaf of load_leaf_new. Borrowed, lives as long as the leaf. */
const struct load_part *load_part_get(const struct arr *leaf);

/* Fails unless the source holds what an array of so many bytes needs. */
MUST_CHECK enum err load_check(const struct load_part *p, size_t nbytes);
/* Writes the array's bytes [offset, offset + n) to dst, front to back; both are whole blocks of the
 * codec. Errors name source and tensor. */
MUST_CHECK enum err load_read(const struct load_part *p, void *dst, size_t offset, size_t n);
/* The array's bytes where they can be used without a copy (source_in_place), else NULL. */
void *load_in_place(const struct load_part *p, size_t nbytes, size_t align);
