/* What the steps of a run encode, written down once and encoded any number of times, each time with
 * other memory.
 *
 * A recording numbers the memory that its dispatches read and write: places. While a step is
 * recorded, the encoder hands out addresses that name a place and an offset in it; where such an
 * address stands in the push constants or in an argument block is a relocation, and running the
 * recording puts the real address there. Nothing else differs from run to run. Barriers are decided
 * when it runs, because they depend on what was encoded before.
 *
 * Places that only the run needs lie side by side in a few buffers, over each other where a barrier
 * separates their uses. Thread-safety: the owner thread of the stream. */
#pragma once

#include "backend/vulkan/rt/alloc.h"
#include "backend/vulkan/rt/encoder.h"
#include "backend/vulkan/rt/hazard.h"

/* An address while a step is recorded: a place or an argument block, and an offset in it. Devices
 * have no addresses with the highest bit set. */
#define RECORDED_ADDR BUF_PLACE
#define RECORDED_BLOCK ((uint64_t)1 << 62)
#define RECORDED_OFFSET_BITS BUF_PLACE_SHIFT

/* Where an address has to be put: word `at` of 8 bytes. */
struct vk_reloc {
    uint32_t at;
    uint32_t target; /* place, or number of a block */
    uint64_t offset;
    bool is_block;
};

struct vk_access {
    struct hz_range range; /* bytes of the place */
    uint32_t place;
    uint32_t group; /* of a write, from 1 on; 0: none */
    bool is_write;
};

/* A storage buffer: bytes of a place; size 0: there are none. */
struct vk_recorded_bind {
    uint32_t binding, place;
    uint64_t offset, size;
};

/* A dispatch with its relocations, accesses and storage buffers. */
struct vk_recorded {
    struct vk_dispatch d;
    uint32_t first_reloc, n_reloc;
    uint32_t first_access, n_access;
    uint32_t first_bind, n_bind;
};

/* An argument block. It is copied for every run into every command buffer that needs it. */
struct vk_recorded_block {
    uint32_t first_byte, size;
    uint32_t first_reloc, n_reloc;
    bool is_written;     /* by the GPU: never shared */
    uint64_t run, stamp; /* of its newest copy, */
    uint64_t addr;       /* which is here */
};

enum vk_place_kind {
    PLACE_INSIDE,  /* only the run needs it */
    PLACE_KEPT,    /* leaves the run: has a buffer of its own */
    PLACE_OUTSIDE, /* memory that was there before */
};

struct vk_place {
    uint64_t size; /* bytes of what was made in the run */
    enum vk_place_kind kind;
    uint32_t block;      /* PLACE_INSIDE: which of the buffers */
    uint64_t offset;     /* in it */
    uint32_t made, left; /* steps: the first and the last that may use it */
    struct buf *buf;     /* in a run: the buffer behind it, borrowed */
    uint64_t base;       /* and the address of its first byte */
    uint64_t held;       /* stamp of the newest command buffer that keeps it, or 0 */
};

/* The dispatches of a step, and the places that it made, in order. */
struct vk_recorded_step {
    uint32_t first, n;
    uint32_t first_made, n_made;
};

struct be_recording {
    VEC(struct vk_recorded) dispatch;
    VEC(struct vk_reloc) reloc;
    VEC(struct vk_access) access;
    VEC(struct vk_recorded_bind) bind;
    VEC(struct vk_recorded_block) block;
    VEC(char) bytes; /* of blocks */
    VEC(struct vk_place) place;
    VEC(uint32_t) made;
    VEC(uint64_t) memory; /* sizes of the buffers that PLACE_INSIDE share */
    struct vk_recorded_step *step;
    size_t n_step;
    size_t most, most_blocks;        /* before it is better to begin anew: dispatches; blocks */
    uint32_t n_groups, newest_group; /* the latter as the step called it */
    struct vk_wanted *wanted;        /* pipelines that are missing, newest first */
    bool only_looks;                 /* for missing pipelines: it will be recorded again */
    bool is_short;                   /* something found no memory */

    /* Buffers from outside by address, an open-addressing table. */
    struct {
        const struct buf *buf;
        uint32_t place;
    } * bound;
    uint32_t n_bound, cap_bound;

    /* The step that is being recorded. */
    size_t open;
    bool again;            /* it was recorded before and makes the same places */
    bool differs;          /* it does not */
    uint32_t next_made;    /* again: the next of the step's */
    uint32_t first_access; /* of the dispatch that comes next */
    uint32_t first_bind;   /* likewise */
    uint64_t runs;
};

/* The recording of the calling thread, NULL outside of steps that are recorded. */
extern _Thread_local struct be_recording *vk_recording_now;

/* ---- for the encoder and those who allocate, while a step is recorded ---- */

/* Address of offset bytes behind the beginning of the buffer. */
MUST_CHECK enum err vk_record_addr(struct be_recording *r, uint64_t *addr, struct buf *b,
                                   int64_t offset);
/* The next dispatch reads or writes these bytes, from a recorded address on. */
MUST_CHECK enum err vk_record_access(struct be_recording *r, uint64_t addr, size_t size,
                                     bool is_write, uint32_t group);
MUST_CHECK enum err vk_record_args(struct be_recording *r, uint64_t *addr, const struct vk_args *a);
MUST_CHECK enum err vk_record_dispatch(struct be_recording *r, const struct vk_dispatch *d);
/* A storage buffer of the next dispatch, from a recorded address on; size 0: an array without
 * elements. */
MUST_CHECK enum err vk_record_bind(struct be_recording *r, uint32_t binding, uint64_t addr,
                                   uint64_t size);
/* A read for which there may be no memory: then closing the recording fails. */
void vk_record_read(struct be_recording *r, uint64_t addr, size_t size);
void vk_record_drop(struct be_recording *r);
/* A buffer that is a place. */
MUST_CHECK enum err vk_record_buf(struct buf **out, struct be_recording *r, size_t size);
/* A place that no array has. */
MUST_CHECK enum err vk_record_scratch(struct be_recording *r, uint64_t *addr, size_t size);
/* Nobody has the place any more: what comes later may use its memory. */
void vk_record_free(struct buf *b);

/* Notes a pipeline that is not there, to be built with all others that are missing. */
MUST_CHECK enum err vk_record_want(struct be_recording *r, const struct vk_pipe_params *p);
/* True the first time that a recording which only looks comes to this program, given by a hash:
 * only then its module need be emitted. */
bool vk_record_is_new(struct be_recording *r, uint64_t program);

/* ---- for ops whose steps are moved (recording_move of the backend table) ---- */

/* The dispatch of a step that has no other; NULL if it has none or several. */
struct vk_recorded *vk_recorded_only(struct be_recording *r, size_t step);
/* The argument block whose address is that word of 8 bytes of the push constants. */
void *vk_recorded_block(struct be_recording *r, const struct vk_recorded *d, uint32_t word);
/* Makes that word the address of another block, which was recorded now. */
void vk_recorded_set_block(struct be_recording *r, const struct vk_recorded *d, uint32_t word,
                           uint64_t addr);

/* ---- places in memory (recording_pack.c) ---- */

MUST_CHECK enum err vk_recording_pack(struct be_recording *r);

/* ---- entries of the backend table ---- */
enum err vk_recording_new(struct be_recording **out, size_t n_steps);
void vk_recording_free(struct be_recording **r);
enum err vk_recording_bind(struct be_recording *r, uint32_t *place, struct buf *b);
bool vk_recording_rebind(struct be_recording *r, struct buf *const *buf);
enum err vk_recording_place(struct be_recording *r, struct buf **out, uint32_t place);
enum err vk_recording_begin(struct be_recording *r, struct strm *s, size_t step);
bool vk_recording_end(struct be_recording *r, struct strm *s);
enum err vk_recording_close(struct be_recording *r, const struct be_kept *kept, bool *again);
uint32_t vk_recording_places(const struct be_recording *r);
enum err vk_recording_run(struct be_recording *r, struct strm *s, struct buf **buf, bool *begun);
