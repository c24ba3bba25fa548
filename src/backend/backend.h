/* The backend contract: what a device must provide, as one table of functions.
 *
 * Core decides order, fusion, lifetime and donation windows; a backend allocates, encodes and
 * completes. All functions are called with arguments that core has checked. Unless noted, a
 * stream's functions are called only on the thread that owns the stream. */
#pragma once

#include <stdio.h>

#include "eval/stream.h"
#include "graph/array.h"
#include "graph/op.h"
#include "plan/elem_program.h"
#include "plan/group.h"

/* One step of a plan, resolved against the arrays of this run.
 * Inputs are evaluated (layout known, work possibly pending on this stream). Outputs have shape and
 * dtype only: the function gives them storage (arr_alloc, arr_share, or an input's buffer when
 * arr_can_donate_to says so) and encodes the work that fills them. Zero-size outputs need no work.
 */
struct exec {
    struct strm *strm;
    const struct node *node; /* the op; for a fused group its last node */
    struct arr *const *in;
    struct arr *const *out;
    int n_in, n_out;
    const struct elem_program *program; /* elementwise steps only */
    const struct group *group; /* steps of several ops only; in and out are those of the whole */
};

typedef enum err (*be_op_fn)(const struct exec *x);
/* Looks at shapes, dtypes, layouts and params, and encodes the group or says why not. One that it
 * leaves runs node by node, and so does one for which it returns ERR_UNSUPPORTED; nothing of these
 * may be encoded. *why is GROUP_TAKEN before the call. */
typedef enum err (*be_group_fn)(const struct exec *x, enum group_reason *why);

/* An offset that only the device knows: the sum over i of position[i] * stride[i] elements. A
 * negative position of a signed type counts from the end of its axis; what lies outside of
 * [0, last[i]] then is moved to the nearest end. */
struct be_start {
    struct arr *position; /* n > 0 integers, of 0 or 1 dimensions */
    int n;
    int64_t stride[SHP_MAX];
    int32_t size[SHP_MAX]; /* of the axis */
    int32_t last[SHP_MAX];
};

/* Strided copy with conversion into storage that exists: dst[dst_offset + i . dst_strides] =
 * src[src_offset + i . src_strides] over shape. Offsets in elements relative to the array's own
 * first element. Copies with the same non-zero group write disjoint parts and need no order among
 * themselves. */
struct be_copy {
    struct arr *src, *dst;
    const struct shp *shape;
    const int64_t *src_strides, *dst_strides;
    int64_t src_offset, dst_offset;
    uint32_t group;
    /* An elementwise op of two arguments: dst = op(dst, src) instead, in dst's dtype. */
    enum op_id combine;
    /* Added to the offsets when the copy runs. A copy that has one neither converts nor combines.
     */
    const struct be_start *src_start, *dst_start;
};

/* What the steps of a run encode, to be encoded again with other memory (eval/recording.h). */
struct be_recording;

struct kernel_call;

/* Places that leave the run with its results. */
struct be_kept {
    const uint32_t *place;
    size_t n;
};

/* Puts bytes [offset, offset + n) of a buffer at dst, front to back. */
typedef enum err (*be_fill_fn)(void *arg, void *dst, size_t offset, size_t n);

struct be {
    const char *name;
    enum dev_type type;

    /* Opens the device once; later calls give the same answer. ERR_UNSUPPORTED with the reason in
     * the text when there is no usable device. Thread-safety: safe. */
    enum err (*open)(void);
    int (*device_count)(void);
    /* False for a software device, which is never the default. */
    bool (*is_hardware)(void);
    /* Rows live for the process. */
    enum err (*device_info)(const struct be_info_row **rows, size_t *n, int index);

    /* ---- memory; thread-safety: safe ---- */
    /* A buffer of at least size > 0 bytes. */
    enum err (*buf_alloc)(struct buf **out, size_t size);
    /* Returns the memory to the cache or the system. Not called while work is in flight. */
    void (*buf_free)(struct buf *b);
    /* A copy of some bytes of src (home: this or the other backend) for the side that lacks them,
     * which sets of: for a GPU-home src a host-readable buffer, complete when the call returns; for
     * a host-home src a GPU buffer of all its bytes. NULL in backends without memory of their own.
     */
    enum err (*buf_mirror)(struct buf **out, struct buf *src, struct span want);
    /* Copies data into a fresh buffer of this backend where the host can do that without a detour
     * through the device. Optional. False: the caller keeps the bytes on the host. */
    bool (*buf_takes_host_writes)(void);
    enum err (*buf_write)(struct buf *b, const void *data, size_t size);
    /* Fills the first size bytes of a fresh buffer with what fn writes, in pieces that follow one
     * another and are multiples of 64 KiB but for the last. Complete when it returns. NULL in
     * backends whose buffers all have a host address. */
    enum err (*buf_fill)(struct buf *b, size_t size, be_fill_fn fn, void *arg);
    /* True if the host reads and writes this backend's memory directly. */
    bool (*is_unified)(void);
    void (*cache_clear)(void);
    /* Bytes the device can hold; the base of the default limits. */
    size_t (*memory_size)(void);

    /* ---- streams ---- */
    /* Makes the encoder, or takes up again that of a stream that was closed. */
    enum err (*strm_open)(struct strm *s);
    /* Finishes the work given to s and lets go of everything but the encoder: events may still be
     * waited for, by any thread. */
    void (*strm_close)(struct strm *s);
    /* Encodes an elementwise program over x->in into x->out. */
    be_op_fn elementwise;
    /* By op family; NULL = unsupported on this device. */
    const be_op_fn *families;
    /* By kind of group; a kind without function is never formed. Optional. */
    const be_group_fn *groups;
    /* Whether the device runs this call of a kernel of the caller's; ERR_UNSUPPORTED and ERR_ARG
     * name what is wrong. NULL in backends without such kernels. Thread-safety: safe. */
    enum err (*kernel_check)(const struct kernel_call *k);
    enum err (*copy)(struct strm *s, const struct be_copy *c);
    /* Keeps the buffers alive until the work encoded so far is complete. Takes its own references.
     */
    enum err (*hold)(struct strm *s, struct buf *const *bufs, size_t n);
    /* Called after every step; commits at the backend's thresholds. */
    enum err (*step_end)(struct strm *s);
    /* Hands everything encoded to the device (MLX: finalize). */
    enum err (*flush)(struct strm *s);
    /* Notices finished work and lets go of what it held; with block, waits for the oldest piece in
     * flight. False if nothing was in flight. */
    bool (*retire)(struct strm *s, bool block);
    /* flush, then block until complete. */
    enum err (*sync)(struct strm *s);
    /* The host is likely to read these bytes of b when the work given to s so far is complete:
     * copies them along with it. *out is a mirror for buf_add_mirror, once that work is; NULL where
     * nothing is gained. Optional. */
    enum err (*eager_read)(struct buf **out, struct strm *s, struct buf *b, struct span want);

    /* ---- events ---- */
    /* Sets e->ticket. The work is committed by the next flush at the latest. */
    enum err (*ev_record)(struct strm *s, struct ev *e);
    /* Blocks. Thread-safety: safe, once the producer flushed. */
    enum err (*ev_wait)(struct ev *e);
    enum err (*ev_query)(bool *done, struct ev *e);
    /* Later work of s waits for e, whose producer may be of any backend, and fails with it. Does
     * not block: e may be far from complete. */
    enum err (*strm_wait)(struct strm *s, struct ev *e);
    /* fn is called once e is complete, on any thread, without locks, or at once. Needed where the
     * streams of another backend cannot wait by themselves. Thread-safety: safe. */
    enum err (*ev_notify)(struct ev *e, void (*fn)(void));

    /* ---- recordings; optional, all or none. Thread-safety: the owner thread of one stream ----
     * The memory that a recording reads and writes are places, which are numbered. Buffers from
     * outside are bound before the first step. While a step is recorded its op is called as always,
     * but nothing is encoded, and buffers that are allocated are places (BUF_PLACE). */
    enum err (*recording_new)(struct be_recording **out, size_t n_steps);
    void (*recording_free)(struct be_recording **r);
    /* The place of a buffer from outside; a new one unless it has one. */
    enum err (*recording_bind)(struct be_recording *r, uint32_t *place, struct buf *b);
    /* The buffers that the places from outside are now, before steps are recorded again. False if
     * two of them are the same: an address would not say which place is meant. */
    bool (*recording_rebind)(struct be_recording *r, struct buf *const *buf);
    /* A buffer that is a place of the recording, for arrays that steps read. */
    enum err (*recording_place)(struct be_recording *r, struct buf **out, uint32_t place);
    /* What is encoded between the two belongs to the step, also if that was recorded before. False:
     * then it does not need the places that it needed before, and the recording is of no use. */
    enum err (*recording_begin)(struct be_recording *r, struct strm *s, size_t step);
    bool (*recording_end)(struct be_recording *r, struct strm *s);
    /* Nothing but positions (op_params.def), and shapes that follow from them, changed in the nodes
     * of a group whose step is recorded: puts them into what it encodes. False: nothing was done,
     * and the step is recorded again. */
    bool (*recording_move)(struct be_recording *r, struct strm *s, size_t step,
                           const struct group *g);
    /* All steps are there. *again: nothing was kept but bindings, and they are to be recorded once
     * more, because what was missing has been made ready. */
    enum err (*recording_close)(struct be_recording *r, const struct be_kept *kept, bool *again);
    uint32_t (*recording_places)(const struct be_recording *r);
    /* Encodes the steps. buf has an entry for each place: those of places from outside, which have
     * the first numbers, are given; those of kept places are made, and the caller's, whatever
     * happens. *begun: the device may do some of it, also after a failure. */
    enum err (*recording_run)(struct be_recording *r, struct strm *s, struct buf **buf,
                              bool *begun);

    /* The process ends: takes no more work, which is an error from here on, and returns when
     * nothing is in flight. Called on any thread, also on one of the backend's own. Optional. */
    void (*quiesce)(void);
    /* The process is about to be forked: returns when nothing is in flight that a fork would
     * disturb. Optional. */
    void (*before_fork)(void);

    /* Text for `mlx info`: device, driver, memory, capabilities, what is missing. */
    void (*describe)(FILE *out);
    /* What the backend has counted beyond stat.def, for the report at exit; only of the kernel
     * families whose name contains family, where it is not NULL. Optional. */
    void (*stats)(FILE *out, const char *family);
};

extern const struct be be_cpu;
extern const struct be be_null;
#if MLX_HAVE_VULKAN
extern const struct be be_vulkan;
#endif
