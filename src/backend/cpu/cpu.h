/* The CPU backend from the inside: the task queue of a stream, the pool that shares one kernel
 * between cores, and the functions behind the backend's table.
 *
 * An op's function runs on the stream's owner thread: it gives the outputs storage and queues a
 * task that carries everything it needs by value. Tasks run in order on the stream's worker. They
 * hold no references on buffers (that would block donation); core's hold does. */
#pragma once

#include "backend/backend.h"

/* ---- tasks ---- */

/* Runs on the worker. A failure becomes the stream's asynchronous error; later tasks still run. */
typedef enum err (*cpu_task_fn)(void *payload);

/* Queues fn with a copy of the payload (aligned to 16 bytes). On failure nothing is in flight on
 * the stream, so that the caller may drop its buffers. */
MUST_CHECK enum err cpu_enqueue(struct strm *s, cpu_task_fn fn, const void *payload, size_t size);

/* be->hold; also for temporaries of an op, after the last task that uses them is queued. */
MUST_CHECK enum err cpu_hold(struct strm *s, struct buf *const *bufs, size_t n);

/* ---- operands of a task ---- */

/* Where an input's first element lies. The bytes are looked up by the worker, because a buffer of
 * another device becomes readable only when the work that fills it is complete. */
struct cpu_src {
    struct buf *buf; /* borrowed from core's hold */
    int64_t offset;  /* bytes */
    struct span span;
};

static inline struct cpu_src cpu_src(const struct arr *a)
{
    return (struct cpu_src){ a->buf, a->offset, arr_span(a) };
}

MUST_CHECK enum err cpu_src_host(const char **out, const struct cpu_src *src);

/* A position on an axis that an index array gives: a negative one of a signed type counts from the
 * end. What lies outside is moved to the nearest end of [0, last]: MLX reads past the end there. */
static inline int64_t cpu_position(int64_t v, enum dtype t, int64_t size, int64_t last)
{
    if (v < 0)
        v = dt_table[t].kind == DT_KIND_I ? v + size : last;
    return MAX(0, MIN(v, last));
}

/* First element of an output, which always lies in this backend's own memory. */
static inline char *cpu_dst(const struct arr *a)
{
    return a->buf ? (char *)a->buf->host + a->offset : NULL;
}

/* ---- the pool ---- */

/* Calls fn(arg, begin, end) over pieces of [0, n) of at least `grain` elements, on several cores
 * when there is more than one piece. Blocks until all are done. Thread-safety: safe. */
typedef void (*cpu_range_fn)(void *arg, size_t begin, size_t end);
void cpu_parallel_for(size_t n, size_t grain, cpu_range_fn fn, void *arg);

/* Threads that work on one kernel, the caller included. */
int cpu_threads(void);

/* Before a task calls OpenBLAS: it gets as many threads. Thread-safety: safe. */
void cpu_use_blas(void);

/* ---- moves ---- */

/* Elements from one place to another: operands BE_COPY_SRC and BE_COPY_DST of a nest of at least
 * one dimension. */
struct cpu_moves {
    uint8_t from, to; /* enum dtype */
    uint16_t combine; /* enum op_id: dst = op(dst, src); OP_NONE: dst = src */
    size_t n;
    struct nest nest;
};
/* Those from range[0] up to range[1]. Neither is empty. */
void cpu_move(const struct cpu_moves *m, char *dst, const char *src, const size_t range[2]);

/* ---- the backend's functions, one file each ---- */

enum err cpu_buf_alloc(struct buf **out, size_t size);
void cpu_buf_free(struct buf *b);
void cpu_cache_clear(void);
size_t cpu_memory_size(void);

enum err cpu_strm_open(struct strm *s);
void cpu_strm_close(struct strm *s);
enum err cpu_step_end(struct strm *s);
enum err cpu_flush(struct strm *s);
bool cpu_retire(struct strm *s, bool block);
enum err cpu_sync(struct strm *s);
enum err cpu_ev_record(struct strm *s, struct ev *e);
enum err cpu_ev_wait(struct ev *e);
enum err cpu_ev_query(bool *done, struct ev *e);
enum err cpu_strm_wait(struct strm *s, struct ev *e);
enum err cpu_ev_notify(struct ev *e, void (*fn)(void));
void cpu_quiesce(void);
void cpu_before_fork(void);

enum err cpu_elementwise(const struct exec *x);
#define OWN(id, word) enum err cpu_##word(const struct exec *x);
#define CPU_ONLY(id, word) enum err cpu_##word(const struct exec *x);
#include "ops/families.def"
enum err cpu_copy(struct strm *s, const struct be_copy *c);
