/* Devices, streams and events.
 *
 * A stream is an ordered queue of work on one device. Work is given to it only on the thread that
 * made it. A graph may have nodes of other threads' streams, or of threads that have ended: whoever
 * evaluates it runs them on a stream of its own, on the same device (strm_here). When a thread ends
 * its streams finish their work and give back what they hold; the struct, to which arrays and
 * events refer, stays for the next thread that wants a stream on the device. */
#pragma once

#include <pthread.h>

#include "base/common.h"
#include "base/err.h"
#include "base/mem.h"

struct arr;
struct be;
struct buf;
struct plan_cache;
struct recorder;

enum dev_type { DEV_CPU, DEV_GPU, DEV_TYPE_COUNT };

struct dev {
    enum dev_type type;
    int index;
};

/* Work that failed after it was given to a stream. */
struct strm_failure {
    uint64_t ticket; /* events with this ticket or a later one cover it */
    struct err_note note;
};
/* Failures kept for the events that cover them, the newest of which may still be to be told. */
#define STRM_FAILURES 4

struct strm {
    int index; /* from one counter shared by all devices */
    struct dev dev;
    const struct be *be;
    _Atomic(pthread_t) owner;
    struct strm *sibling;      /* another one of the owner's, or another closed one */
    _Atomic bool closed;       /* the owner has ended */
    void *priv;                /* the backend's encoder, made by the first strm_open */
    struct recorder *recorder; /* eval records a run (recording.h); the owner thread's */
    struct plan_cache *plans;  /* plans of the runs evaluated here; the owner thread's */
    /* Asynchronous failures, in a ring guarded by failure_lock. While the newest has not been told
     * none is added: the events that cover a later one cover it, too. */
    pthread_mutex_t failure_lock;
    struct strm_failure failure[STRM_FAILURES];
    _Atomic uint32_t n_failures; /* ever; lets the common case go without the lock */
    _Atomic bool untold;         /* the newest failure waits for somebody to raise it */
    _Atomic uint64_t told;       /* ticket of the newest failure that was raised */
};

/* The backend behind a device type; NULL if the library was built without it. */
const struct be *dev_backend(enum dev_type type);
/* "gpu" or "cpu". */
const char *dev_name(enum dev_type type);
/* True if the device was opened already; never opens it. */
bool dev_is_open(enum dev_type type);
/* Why a device is not available; borrowed for the life of the process. */
const char *dev_why_not(enum dev_type type);
/* True if the backend opens and index is below its device count. Never an error, and the text of
 * one that is on its way stays. */
bool dev_is_available(struct dev d);

/* Devices of a type that can be used, 0 where the backend does not open. */
int dev_count(enum dev_type type);

/* A property of a device; text NULL means the value is a number. Rows live for the process. */
struct be_info_row {
    const char *key;
    const char *text;
    size_t number;
};
/* No rows for a device that is not there, which is no error. */
MUST_CHECK enum err dev_info(const struct be_info_row **rows, size_t *n, struct dev d);

struct dev dev_default(void);
MUST_CHECK enum err dev_set_default(struct dev d);

/* One that an ended thread left, or a new one. */
MUST_CHECK enum err strm_new(struct strm **out, struct dev d);
/* The calling thread's default stream on d, made on first use. ERR_RANGE for an index beyond the
 * devices of the type. */
MUST_CHECK enum err strm_default(struct strm **out, struct dev d);
void strm_set_default(struct strm *s);
/* The stream that makes a, or the default one of the default device. */
MUST_CHECK enum err strm_of(struct strm **out, const struct arr *a);
MUST_CHECK enum err strm_synchronize(struct strm *s);
/* Keeps the buffers until the work encoded so far is complete: as be->hold does, or by waiting. */
void strm_hold(struct strm *s, struct buf *const *bufs, size_t n);
/* While a run is recorded: whether a, which has storage, may be written over by the step. */
bool strm_recorder_donates(const struct strm *s, const struct arr *a);
/* Hands over what the calling thread's streams have encoded. */
void strm_flush_mine(void);
/* True on the thread that made the stream. */
static inline bool strm_is_mine(const struct strm *s)
{
    /* The number of a thread that has ended may be another one's by now. */
    return !atomic_load_explicit(&s->closed, memory_order_acquire) &&
           pthread_equal(atomic_load_explicit(&s->owner, memory_order_relaxed), pthread_self());
}
/* The stream of the calling thread that takes the work of s: s, if it is the thread's own, else its
 * default stream on the device. */
MUST_CHECK enum err strm_here(struct strm **out, struct strm *s);
/* ERR_RUNTIME when called from a thread that did not make the stream. */
MUST_CHECK enum err strm_check_thread(const struct strm *s);

/* Asynchronous failures (docs/runtime.md, Failures). A backend notes that the work with this ticket
 * failed, before anybody can see it complete; of several that nobody was told of the first text
 * wins. The stream's next use raises it, once. Events that cover the failed work stay poisoned:
 * whoever waits for one is told, and a stream that waits for one fails as well. Thread-safety:
 * safe. */
void strm_fail(struct strm *s, uint64_t ticket, const struct err_note *why);
/* The same with the calling thread's last error. */
void strm_note_error(struct strm *s, uint64_t ticket, enum err code);
MUST_CHECK enum err strm_raise_error(struct strm *s);
/* True if it has something to raise. */
static inline bool strm_has_failed(const struct strm *s)
{
    return atomic_load_explicit(&s->untold, memory_order_acquire);
}

/* ---- events: "everything given to this stream so far is complete" ---- */

struct ev {
    refcount rc;
    struct strm *strm; /* producer */
    uint64_t ticket;   /* the producer backend's mark, set by ev_record */
    uint64_t told;     /* failures up to this ticket had been raised when it was recorded */
    _Atomic bool done; /* set by the producer's backend once it has seen completion */
};

/* An event of s, not recorded yet: it is not done and must not be waited for. */
MUST_CHECK enum err ev_new(struct ev **out, struct strm *s);
/* It completes when the work given to its stream so far has. */
MUST_CHECK enum err ev_record(struct ev *e);
struct ev *ev_ref(struct ev *e);
void ev_unref(struct ev **e);
/* Host side: blocks; raises the failure of the work it covers. */
MUST_CHECK enum err ev_wait(struct ev *e);
MUST_CHECK enum err ev_query(bool *done, struct ev *e);
/* Later work of s starts only after the event. No-op when s is the producer. */
MUST_CHECK enum err ev_wait_on(struct strm *s, struct ev *e);

/* For backends. ev_inherit blocks and gives the failure on behalf of a stream that waits: the
 * producer's owner is still to be told. ev_failure copies it from a complete event; false if there
 * is none. */
MUST_CHECK enum err ev_inherit(struct ev *e);
bool ev_failure(struct err_note *out, struct ev *e);
/* fn is called once e is complete, on any thread, or at once. */
MUST_CHECK enum err ev_notify(struct ev *e, void (*fn)(void));
