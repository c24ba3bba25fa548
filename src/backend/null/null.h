/* A backend that runs nothing: it gives arrays zeroed host memory and writes down what it was asked
 * to do. For tests of the scheduler, the plan and the lifetime of buffers.
 *
 * Work counts as in flight until it is flushed and time passes: a blocking call (sync, event wait,
 * retire with block) lets the stream's work finish, and so does null_finish. One log for the
 * process, in the order of the calls. Thread-safety: safe, except that a stream belongs to one
 * thread. */
#pragma once

#include "backend/backend.h"

enum null_call {
    NULL_STEP, /* an op or an elementwise program */
    NULL_COPY,
    NULL_HOLD,
    NULL_STEP_END,
    NULL_FLUSH,
    NULL_SYNC,
    NULL_EV_RECORD,
    NULL_STRM_WAIT,
};

struct null_record {
    enum null_call call;
    const struct strm *strm;
    uint16_t op;   /* STEP: enum op_id; of a program the last one */
    uint8_t n_ins; /* STEP: instructions of a program, 0 for a plain op */
    uint8_t n_in, n_out;
    uint8_t dtype;               /* STEP, COPY: of the first output */
    bool donated;                /* STEP: an output took over an input's buffer */
    uint32_t group;              /* COPY */
    struct shp shape;            /* STEP, COPY: of the first output, of the copy */
    size_t n_bufs;               /* HOLD */
    uint64_t ticket;             /* EV_RECORD, STRM_WAIT */
    const struct strm *producer; /* STRM_WAIT */
};

/* A stream of this backend for the calling thread; not known to the registry of streams. */
MUST_CHECK enum err null_strm_new(struct strm **out);
void null_strm_free(struct strm **s);

/* Record i of the log, false beyond its end. */
bool null_record_get(struct null_record *out, size_t i);
size_t null_record_count(void);
void null_record_clear(void);

/* Work that was flushed and is not finished: commands, and buffers held for them. */
size_t null_in_flight(const struct strm *s);
size_t null_held(const struct strm *s);
/* Finishes everything that was flushed. */
void null_finish(struct strm *s);

/* The n-th step from now on fails with ERR_DEVICE (1 = the next one); 0 switches that off. */
void null_fail_step(size_t n);
