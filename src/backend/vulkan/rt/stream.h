/* A GPU stream: a queue, command buffers in rotation, and what each of them keeps alive.
 *
 * Every commit has a number, the ticket of events. A commit goes to the queue once the events it
 * waits for allow it: those of the CPU are complete, those of other GPU streams are in a queue
 * themselves. Until then it stays with the stream, and so do the commits behind it; whoever
 * completes or submits what it waits for hands it over (submit.c). So a queue never holds work that
 * needs the host to go on, and nobody who encodes has to block for the CPU.
 *
 * A submission is tracked by a fence; the stream's timeline semaphore is signalled only when a
 * stream of another queue waits, because a signal costs more than the submission. Nothing watches
 * the fences in the background: completed commits are retired at the next commit, wait (for any
 * stream, because some are not used again) or allocation under pressure, by whichever thread comes
 * by (retire.c). */
#pragma once

#include "backend/backend.h"
#include "backend/vulkan/check/record.h"
#include "backend/vulkan/rt/alloc.h"
#include "backend/vulkan/rt/device.h"
#include "backend/vulkan/rt/encoder.h"
#include "backend/vulkan/rt/hazard.h"
#include "backend/vulkan/rt/timing.h"

enum cmdbuf_state {
    SLOT_OPEN,   /* being recorded */
    SLOT_QUEUED, /* committed; waits for its turn */
    SLOT_HANDED, /* given to the queue, or failed on the way */
};

/* Something that a commit waits for. */
struct vk_dep {
    struct ev *ev;       /* owned */
    bool uses_semaphore; /* of a stream with another queue */
};

/* A GPU copy that is filled when the bytes of its source are there. */
struct vk_upload {
    struct buf *dst, *src; /* dst is kept by the command buffer, src is owned here */
};

/* One command buffer, from recording until its references are dropped. */
struct vk_cmdbuf {
    struct vk_cmdbuf *next; /* towards newer commits, or the next free one */
    VkCommandPool pool;
    VkCommandBuffer cmd;
    VkFence fence;
    uint64_t ticket;
    enum cmdbuf_state state;
    bool counted;                  /* a scheduler task, ended at retirement */
    bool failed;                   /* never reached the GPU */
    bool idle;                     /* references dropped; free once nobody waits for the fence */
    int pins;                      /* threads waiting for the fence */
    VEC(struct vk_dep) deps;       /* before the first command */
    VEC(struct vk_upload) uploads; /* likewise, after the deps */
    VEC(struct buf *) held;        /* references dropped at retirement */
    int held_for;                  /* index of the stream whose work holds them */
    struct vk_buf *args;           /* argument blocks, filled from the front */
    size_t args_used;
    VEC(VkDescriptorPool) sets; /* for kernels with storage buffers; emptied when it begins anew */
    size_t set_pool;            /* the one that sets come from */
    struct timing_cmdbuf timing;
};

/* Semaphores that one submission waits for. */
#define VK_MAX_WAITS 32

struct vk_enc {
    struct vk_cmdbuf *cmdbuf; /* open command buffer, NULL if none */
    VkPipeline bound;
    struct hazard hazard;           /* accesses since the last barrier, over command buffers */
    uint64_t dispatches;            /* since the stream was made */
    int ops;                        /* dispatches in the open command buffer */
    size_t bytes;                   /* of the buffers it touches, each counted once */
    uint64_t stamp;                 /* marks the buffers counted */
    struct be_recording *recording; /* of a step that is being recorded, or NULL */
    struct vk_turns *turns;         /* rope.c's, from its first use on */
};

struct vk_strm {
    struct vk_strm *next;        /* all streams ever made; never freed */
    _Atomic(struct strm *) strm; /* NULL while closed */
    struct vk_queue *queue;
    VkSemaphore timeline; /* lives as long as the device: destroying one early hangs llvmpipe */
    struct vk_enc enc;    /* owner thread only */

    pthread_mutex_t lock;              /* guards what follows; atomics are read without it */
    pthread_cond_t moved;              /* a commit was made or handed over */
    struct vk_cmdbuf *oldest, *newest; /* committed, not retired */
    struct vk_cmdbuf *queued;          /* the first that was not handed over */
    struct vk_cmdbuf *free;
    int n_inflight;
    bool handing, again; /* a thread is handing commits over; it is to look once more */
    _Atomic uint64_t committed, submitted, completed; /* newest tickets */
    uint64_t signalled;                               /* highest value the timeline will reach */
};

static inline struct vk_strm *vk_strm_of(const struct strm *s)
{
    return s->priv;
}

/* All streams ever made, linked by next. */
struct vk_strm *vk_streams_first(void);

/* ---- submit.c ---- */

/* Opens a command buffer if none is open. Blocks while too many are in flight. */
MUST_CHECK enum err vk_strm_open_cmdbuf(struct vk_strm *s);

/* Commits the open command buffer. Failures on the way to the queue are noted in the stream and
 * surface at its next wait or use. No-op if nothing was encoded. */
MUST_CHECK enum err vk_strm_commit(struct vk_strm *s, bool counted);

/* True if a commit would hand anything over. */
bool vk_strm_has_work(const struct vk_strm *s);

/* The commit that is open, or is opened now, waits for dep.ev. Takes its own reference. */
MUST_CHECK enum err vk_strm_depend(struct vk_strm *s, struct vk_dep dep);
/* True if the open commit waits for e, or for something that covers it. */
bool vk_strm_depends(const struct vk_strm *s, const struct ev *e);
/* False if what was committed or waited for on s may still wait for the host. */
bool vk_strm_is_ready(struct vk_strm *s);

/* Hands over what became ready, on all streams. Thread-safety: safe. */
void vk_streams_pump(void);
/* The same for one stream; true if a commit was handed over. */
bool vk_strm_pump(struct vk_strm *s);

/* ---- retire.c ---- */

/* Lets go of what completed commits held. Thread-safety: safe. */
void vk_strm_reap(struct vk_strm *s);
/* Ticket of the oldest commit that is not retired, 0 if there is none. */
uint64_t vk_strm_oldest(struct vk_strm *s);
/* Blocks until the commit with this ticket is complete, or the device is lost; then reaps. */
void vk_strm_wait_cmdbuf(struct vk_strm *s, uint64_t ticket);

/* All earlier work of the stream is complete: nothing is left to order. */
void vk_enc_forget(struct vk_enc *e);
/* The next dispatch comes after everything before it in the queue, other streams included. */
void vk_enc_order(struct vk_enc *e);

/* ---- for recordings that run ---- */

/* The buffer that the GPU reads in place of *b: its own copy of one that lives on the host. */
MUST_CHECK enum err vk_enc_resolve(struct vk_enc *e, struct buf **b);
/* The next dispatch uses the buffer, which the open command buffer keeps and counts, once. */
MUST_CHECK enum err vk_enc_use(struct vk_enc *e, struct buf *b);
void vk_enc_declare(struct vk_enc *e, struct hz_range r, bool is_write, uint32_t group);
/* Copies an argument block; its address is good for the open command buffer. */
MUST_CHECK enum err vk_enc_put(struct vk_enc *e, uint64_t *addr, const void *data, size_t size);
/* A number such that it and the n behind it are groups that nobody else uses. */
uint32_t vk_enc_groups(uint32_t n);
/* A storage buffer: bytes of buf from offset on; without buf, zeros. */
struct vk_binding {
    uint32_t binding;
    struct buf *buf;
    uint64_t offset, size;
};
/* The next dispatch, of that pipeline, has these (bindings.c). */
MUST_CHECK enum err vk_cmdbuf_bind(struct vk_cmdbuf *cmdbuf, const struct vk_pipe *pipe,
                                   const struct vk_binding *b, uint32_t n);
/* The command buffer begins anew: no set is in use. */
MUST_CHECK enum err vk_cmdbuf_reset_sets(struct vk_cmdbuf *cmdbuf);

/* The accesses are declared. */
void vk_enc_emit(struct vk_enc *e, const struct vk_dispatch *d);

/* For the hazard checker: what follows comes after ev, in one of the ways WAIT, QUEUED, OVER. */
void vk_enc_note_wait(struct vk_enc *e, const struct ev *ev, enum vk_rec_kind how);

/* Keeps b, whose reference is taken over, until the open command buffer retires. */
MUST_CHECK enum err vk_cmdbuf_keep(struct vk_cmdbuf *cmdbuf, struct buf *b);

/* Makes sure that the commit with this ticket was made: makes it if the stream is the calling
 * thread's own, else waits until the owner has. */
MUST_CHECK enum err vk_strm_make_committed(struct vk_strm *s, uint64_t ticket);
/* Blocks until the commit is complete. ERR_DEVICE if the device is lost before. Thread-safety:
 * safe. */
MUST_CHECK enum err vk_strm_wait_ticket(struct vk_strm *s, uint64_t ticket);

/* Commits what the calling thread's streams hold. */
MUST_CHECK enum err vk_streams_flush_mine(void);
/* Retires what is complete, on all streams. Thread-safety: safe. */
void vk_streams_retire(void);
/* Blocks until everything that is in a queue is complete, and retires it. Thread-safety: safe. */
void vk_streams_drain(void);

/* ---- entries of the backend table ---- */
void vk_quiesce(void);
enum err vk_strm_open(struct strm *s);
void vk_strm_close(struct strm *s);
enum err vk_strm_hold(struct strm *s, struct buf *const *bufs, size_t n);
enum err vk_strm_step_end(struct strm *s);
enum err vk_strm_flush(struct strm *s);
bool vk_strm_retire(struct strm *s, bool block);
enum err vk_strm_sync(struct strm *s);
enum err vk_strm_wait(struct strm *s, struct ev *e);
enum err vk_ev_record(struct strm *s, struct ev *e);
enum err vk_ev_wait(struct ev *e);
enum err vk_ev_query(bool *done, struct ev *e);
