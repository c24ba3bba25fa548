#include "eval/stream.h"

#include <strings.h>

#include "backend/backend.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/process.h"
#include "eval/report.h"
#include "plan/plan.h"

/* ---- devices ---- */

const struct be *dev_backend(enum dev_type type)
{
    static const struct be *const backends[DEV_TYPE_COUNT] = {
        [DEV_CPU] = &be_cpu,
#if MLX_HAVE_VULKAN
        [DEV_GPU] = &be_vulkan,
#endif
    };
    return backends[type];
}

const char *dev_name(enum dev_type type)
{
    return type == DEV_GPU ? "gpu" : "cpu";
}

/* Opening is tried once; the answer and the reason for a no are kept, so that asking again neither
 * costs anything nor disturbs the text of somebody's error. */
enum open_state { OPEN_UNKNOWN, OPEN_YES, OPEN_NO };
static _Atomic int open_states[DEV_TYPE_COUNT];
static struct err_note open_reasons[DEV_TYPE_COUNT];
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/* Those that are open, the GPU first: work of the CPU may wait for the GPU, whose own waits end
 * when it is closed. */
static void for_backends(void (*fn)(const struct be *be))
{
    for (int type = DEV_TYPE_COUNT - 1; type >= 0; type--)
        if (dev_is_open((enum dev_type)type))
            fn(dev_backend((enum dev_type)type));
}

static void quiesce(const struct be *be)
{
    if (be->quiesce)
        be->quiesce();
}

static void quiesce_all(void)
{
    for_backends(quiesce);
}

static void prepare_fork(const struct be *be)
{
    if (be->before_fork)
        be->before_fork();
}

static void prepare_fork_all(void)
{
    for_backends(prepare_fork);
}

static void try_open(enum dev_type type)
{
    static const struct process_hooks hooks = { quiesce_all, prepare_fork_all };
    const struct be *be = dev_backend(type);
    struct err_note before = { .code = ERR_OK };

    err_note_take(&before, ERR_RUNTIME); /* the text of an error that is on its way */
    report_register();
    pthread_mutex_lock(&open_lock);
    process_set_hooks(&hooks);
    if (atomic_load(&open_states[type]) == OPEN_UNKNOWN) {
        enum err err =
            be ? be->open()
               : err_set(ERR_UNSUPPORTED, "this build has no %s backend", dev_name(type));
        if (err)
            err_note_take(&open_reasons[type], err);
        atomic_store(&open_states[type], err ? OPEN_NO : OPEN_YES);
    }
    pthread_mutex_unlock(&open_lock);
    err_note_raise(&before);
}

bool dev_is_open(enum dev_type type)
{
    return atomic_load_explicit(&open_states[type], memory_order_acquire) == OPEN_YES;
}

bool dev_is_available(struct dev d)
{
    if (atomic_load(&open_states[d.type]) == OPEN_UNKNOWN)
        try_open(d.type);
    return dev_is_open(d.type) && d.index >= 0 && d.index < dev_backend(d.type)->device_count();
}

const char *dev_why_not(enum dev_type type)
{
    return open_reasons[type].text[0] ? open_reasons[type].text
                                      : "there is no device of that index";
}

int dev_count(enum dev_type type)
{
    return dev_is_available((struct dev){ type, 0 }) ? dev_backend(type)->device_count() : 0;
}

enum err dev_info(const struct be_info_row **rows, size_t *n, struct dev d)
{
    *rows = NULL;
    *n = 0;
    return dev_is_available(d) ? dev_backend(d.type)->device_info(rows, n, d.index) : ERR_OK;
}

#define DEVICE_UNSET (-1)
static _Atomic int default_type = DEVICE_UNSET;

static enum dev_type initial_default(void)
{
    const char *asked = gate_text(GATE_DEFAULT_DEVICE), *vk = gate_text(GATE_VK_DEVICE);

    gate_warn_unknown();

    if (asked && strcasecmp(asked, "cpu") == 0)
        return DEV_CPU;
    bool has_gpu = dev_is_available((struct dev){ DEV_GPU, 0 });
    if (!has_gpu && vk)
        log_warn("%s=%s: %s", gate_table[GATE_VK_DEVICE].variable, vk, dev_why_not(DEV_GPU));
    if (asked && strcasecmp(asked, "gpu") == 0) {
        if (has_gpu)
            return DEV_GPU;
        log_warn("%s=gpu, but there is no usable GPU: %s", gate_table[GATE_DEFAULT_DEVICE].variable,
                 dev_why_not(DEV_GPU));
        return DEV_CPU;
    }
    if (asked)
        log_warn("%s=%s is neither cpu nor gpu", gate_table[GATE_DEFAULT_DEVICE].variable, asked);
    return has_gpu && dev_backend(DEV_GPU)->is_hardware() ? DEV_GPU : DEV_CPU;
}

struct dev dev_default(void)
{
    int type = atomic_load(&default_type);

    if (type == DEVICE_UNSET) {
        int initial = (int)initial_default();
        if (atomic_compare_exchange_strong(&default_type, &type, initial))
            type = initial;
    }
    return (struct dev){ (enum dev_type)type, 0 };
}

enum err dev_set_default(struct dev d)
{
    if (!dev_is_available(d))
        return err_set(ERR_ARG, "[set_default_device] The %s device is not available: %s",
                       dev_name(d.type), dev_why_not(d.type));
    atomic_store(&default_type, (int)d.type);
    return ERR_OK;
}

/* ---- streams ---- */

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two */
static VEC(struct strm *) registry;                               /* by index */
static struct strm *closed[DEV_TYPE_COUNT];                       /* linked by sibling */

static _Thread_local struct strm *default_streams[DEV_TYPE_COUNT];
/* Where the default is another thread's. */
static _Thread_local struct strm *stand_ins[DEV_TYPE_COUNT];

static enum err registry_add(struct strm *s)
{
    pthread_mutex_lock(&registry_lock);
    s->index = (int)registry.n;
    enum err err = VEC_PUSH(&registry, s);
    pthread_mutex_unlock(&registry_lock);
    return err;
}

/* What refers to a closed stream may go on to do so: its work is complete, its tickets go on, and
 * which thread the next owner is matters to nobody else. */
static void closed_put(struct strm *s)
{
    pthread_mutex_lock(&registry_lock);
    s->sibling = closed[s->dev.type];
    closed[s->dev.type] = s;
    pthread_mutex_unlock(&registry_lock);
}

static struct strm *closed_take(enum dev_type type)
{
    pthread_mutex_lock(&registry_lock);
    struct strm *s = closed[type];
    if (s)
        closed[type] = s->sibling;
    pthread_mutex_unlock(&registry_lock);
    return s;
}

/* ---- streams of a thread that ends ---- */

static _Thread_local struct strm *my_streams;
static pthread_key_t exit_key;
static bool has_exit_key;

void strm_flush_mine(void)
{
    for (struct strm *s = my_streams; s; s = s->sibling) {
        enum err err = s->be->flush(s);
        (void)err; /* readers of the arrays are told */
    }
}

/* Work of one stream may wait for that of another, so all of it is handed over first. */
static void close_my_streams(void *unused)
{
    struct strm *mine = my_streams;

    (void)unused;
    strm_flush_mine();
    my_streams = NULL; /* a later destructor of this thread may still make new ones */
    memset(default_streams, 0, sizeof default_streams);
    memset(stand_ins, 0, sizeof stand_ins);
    while (mine) {
        struct strm *s = mine;
        mine = s->sibling;
        atomic_store(&s->closed, true);
        s->be->strm_close(s);
        plan_cache_clear(s);
        closed_put(s);
    }
}

static void make_exit_key(void)
{
    has_exit_key = pthread_key_create(&exit_key, close_my_streams) == 0;
}

/* Where there are no more keys the streams stay open, which only costs memory and threads. */
static void adopt(struct strm *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_exit_key);
    if (!has_exit_key || pthread_setspecific(exit_key, &exit_key) != 0)
        return;
    s->sibling = my_streams;
    my_streams = s;
}

static struct strm *make(struct dev d)
{
    struct strm *s = mem_alloc(sizeof *s);

    if (!s)
        return NULL;
    s->dev = d;
    s->be = dev_backend(d.type);
    atomic_init(&s->closed, true);
    pthread_mutex_init(&s->failure_lock, NULL);
    if (registry_add(s) == ERR_OK)
        return s;
    mem_free(s);
    return NULL;
}

static void mark_told(struct strm *s);

/* What failed under an earlier owner is not this one's. Events that cover it still tell. */
static void forget_failure(struct strm *s)
{
    pthread_mutex_lock(&s->failure_lock);
    if (s->untold)
        mark_told(s);
    pthread_mutex_unlock(&s->failure_lock);
}

enum err strm_new(struct strm **out, struct dev d)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct strm *s;
    enum err err = process_check();

    if (err)
        return err;
    if (!dev_is_available(d))
        return err_set(ERR_ARG, "[new_stream] The %s device is not available: %s", dev_name(d.type),
                       dev_why_not(d.type));
    pthread_once(&once, process_watch);
    if (!(s = closed_take(d.type)) && !(s = make(d)))
        return ERR_NO_MEMORY;
    if ((err = s->be->strm_open(s)) != ERR_OK) {
        closed_put(s);
        return err;
    }
    forget_failure(s);
    atomic_store(&s->owner, pthread_self());
    atomic_store(&s->closed, false);
    adopt(s);
    *out = s;
    return ERR_OK;
}

enum err strm_default(struct strm **out, struct dev d)
{
    enum err err = ERR_OK;

    if (d.index != 0 && dev_is_available((struct dev){ d.type, 0 }) && !dev_is_available(d))
        return err_set(ERR_RANGE, "[default_stream] There is no %s device with index %d.",
                       dev_name(d.type), d.index);
    if (!default_streams[d.type])
        err = strm_new(&default_streams[d.type], d);
    *out = default_streams[d.type];
    return err;
}

enum err strm_of(struct strm **out, const struct arr *a)
{
    if (!a->node->strm)
        return strm_default(out, dev_default());
    *out = a->node->strm;
    return ERR_OK;
}

void strm_set_default(struct strm *s)
{
    default_streams[s->dev.type] = s;
}

enum err strm_here(struct strm **out, struct strm *s)
{
    enum dev_type type = s->dev.type;
    enum err err = ERR_OK;

    *out = s;
    if (strm_is_mine(s))
        return ERR_OK;
    TRY(strm_default(out, s->dev));
    if (strm_is_mine(*out))
        return ERR_OK;
    if (!stand_ins[type])
        TRY(strm_new(&stand_ins[type], s->dev));
    *out = stand_ins[type];
out:
    return err;
}

enum err strm_check_thread(const struct strm *s)
{
    enum err err = process_check();

    if (err || strm_is_mine(s))
        return err;
    if (atomic_load(&s->closed))
        return err_set(ERR_RUNTIME, "[eval] Stream %d belongs to a thread that has ended.",
                       s->index);
    return err_set(ERR_RUNTIME, "[eval] Stream %d belongs to another thread.", s->index);
}

void strm_hold(struct strm *s, struct buf *const *bufs, size_t n)
{
    if (s->be->hold(s, bufs, n) == ERR_OK)
        return;
    enum err err = s->be->sync(s);
    (void)err; /* whoever waits for the work that failed is told */
}

enum err strm_synchronize(struct strm *s)
{
    enum err err = strm_check_thread(s);

    if (!err)
        err = s->be->sync(s);
    if (!err)
        err = strm_raise_error(s);
    return err;
}

/* ---- failures ---- */

/* The newest failure; called with the lock held, once there is one. */
static struct strm_failure *newest_failure(struct strm *s)
{
    return &s->failure[(s->n_failures - 1) % STRM_FAILURES];
}

/* Called with the lock held. */
static void mark_told(struct strm *s)
{
    atomic_store(&s->told, newest_failure(s)->ticket);
    atomic_store(&s->untold, false);
}

void strm_fail(struct strm *s, uint64_t ticket, const struct err_note *why)
{
    pthread_mutex_lock(&s->failure_lock);
    if (s->untold) {
        struct strm_failure *f = newest_failure(s);
        f->ticket = MIN(f->ticket, ticket);
    } else {
        s->failure[s->n_failures % STRM_FAILURES] = (struct strm_failure){ ticket, *why };
        atomic_fetch_add(&s->n_failures, 1);
        atomic_store(&s->untold, true);
    }
    pthread_mutex_unlock(&s->failure_lock);
}

void strm_note_error(struct strm *s, uint64_t ticket, enum err code)
{
    struct err_note why = { .code = ERR_OK };

    err_note_take(&why, code);
    strm_fail(s, ticket, &why);
}

enum err strm_raise_error(struct strm *s)
{
    if (!atomic_load(&s->untold))
        return ERR_OK;
    struct err_note why = { .code = ERR_OK };
    pthread_mutex_lock(&s->failure_lock);
    if (s->untold) {
        why = newest_failure(s)->note;
        mark_told(s);
    }
    pthread_mutex_unlock(&s->failure_lock);
    return err_note_raise(&why);
}

/* What the event covers failed, and its stream had not told anybody when it was recorded. */
static bool covers(const struct ev *e, const struct strm_failure *f)
{
    return e->told < f->ticket && f->ticket <= e->ticket;
}

/* Copies the failure of what e covers; with tell, the stream's owner need not be told any more. */
static bool find_failure(struct err_note *out, struct ev *e, bool tell)
{
    struct strm *s = e->strm;
    bool found = false;

    if (!atomic_load(&s->n_failures))
        return false;
    pthread_mutex_lock(&s->failure_lock);
    for (uint32_t i = 0; i < MIN(s->n_failures, STRM_FAILURES) && !found; i++)
        if ((found = covers(e, &s->failure[i])))
            *out = s->failure[i].note;
    if (found && tell && s->untold && covers(e, newest_failure(s)))
        mark_told(s);
    pthread_mutex_unlock(&s->failure_lock);
    return found;
}

/* ---- events ---- */

enum err ev_new(struct ev **out, struct strm *s)
{
    struct ev *e = mem_alloc(sizeof *e);

    if (!e)
        return ERR_NO_MEMORY;
    atomic_init(&e->rc, 1);
    e->strm = s;
    *out = e;
    return ERR_OK;
}

enum err ev_record(struct ev *e)
{
    e->told = atomic_load(&e->strm->told);
    return e->strm->be->ev_record(e->strm, e);
}

struct ev *ev_ref(struct ev *e)
{
    ref_inc(&e->rc);
    return e;
}

void ev_unref(struct ev **pe)
{
    struct ev *e = *pe;

    *pe = NULL;
    if (e && ref_dec(&e->rc))
        mem_free(e);
}

static enum err complete(struct ev *e, bool tell)
{
    struct err_note why = { .code = ERR_OK };
    enum err err = atomic_load(&e->done) ? ERR_OK : e->strm->be->ev_wait(e);

    if (!err && find_failure(&why, e, tell))
        err = err_note_raise(&why);
    return err;
}

enum err ev_wait(struct ev *e)
{
    return complete(e, true);
}

enum err ev_inherit(struct ev *e)
{
    return complete(e, false);
}

bool ev_failure(struct err_note *out, struct ev *e)
{
    return find_failure(out, e, false);
}

enum err ev_query(bool *done, struct ev *e)
{
    struct err_note why = { .code = ERR_OK };
    enum err err = ERR_OK;

    *done = atomic_load(&e->done);
    if (!*done)
        err = e->strm->be->ev_query(done, e);
    if (!err && *done && find_failure(&why, e, true))
        err = err_note_raise(&why);
    return err;
}

enum err ev_wait_on(struct strm *s, struct ev *e)
{
    struct err_note why;

    /* What failed is waited for even when it is over: s inherits the failure. */
    if (e->strm == s || (atomic_load(&e->done) && !ev_failure(&why, e)))
        return ERR_OK;
    return s->be->strm_wait(s, e);
}

enum err ev_notify(struct ev *e, void (*fn)(void))
{
    return e->strm->be->ev_notify(e, fn);
}
