#include "eval/wait.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/process.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/tape.h"

/* Guards the event pointer of arrays that several threads wait for. Never held across a wait. */
static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;

struct ev *arr_event(struct arr *a)
{
    pthread_mutex_lock(&event_lock);
    struct ev *e = a->ev ? ev_ref(a->ev) : NULL;
    pthread_mutex_unlock(&event_lock);
    return e;
}

static void complete(struct arr *a)
{
    pthread_mutex_lock(&event_lock);
    struct ev *e = a->ev;
    a->ev = NULL;
    atomic_store(&a->status, ARR_AVAILABLE);
    pthread_mutex_unlock(&event_lock);
    ev_unref(&e);
}

enum err arr_is_available(bool *out, struct arr *a)
{
    enum arr_status status = (enum arr_status)atomic_load(&a->status);
    struct ev *e = NULL;
    enum err err = ERR_OK;

    *out = status == ARR_AVAILABLE;
    if (status != ARR_EVALUATED || tape_is_busy(a))
        return ERR_OK;
    TRY(process_check());
    e = arr_event(a);
    *out = true;
    if (e)
        TRY(ev_query(out, e));
    if (*out)
        complete(a);
out:
    ev_unref(&e);
    return err;
}

enum err arr_wait(struct arr *a)
{
    struct ev *e = NULL;
    enum err err = ERR_OK;

    if (!arr_is_scheduled(a))
        return err_set(ERR_ARG, "[array] The array has not been evaluated.");
    if (atomic_load(&a->status) == ARR_AVAILABLE)
        return ERR_OK;
    TRY(process_check());
    TRY(tape_wait(a));
    e = arr_event(a);
    if (e)
        err = ev_wait(e);
    ev_unref(&e);
    complete(a);
out:
    return err;
}

enum err arr_host(const void **out, struct arr *a)
{
    enum err err = arr_is_scheduled(a) ? arr_wait(a) : eval_arrays(&a, 1, false);
    const void *first = NULL;
    struct span s = { 0, 0 };

    if (!err && a->buf) {
        s = arr_span(a);
        err = buf_host_span(&first, a->buf, s);
    }
    *out = first ? (const char *)first + (a->offset - (int64_t)s.lo) : NULL;
    return err;
}
