#include "core/stream.h"

#include "backend/backend.h"
#include "core/gate.h"
#include "core/log.h"
#include "core/report.h"

#include <strings.h>

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

static void try_open(enum dev_type type)
{
    const struct be *be = dev_backend(type);
    struct err_note before = { .code = ERR_OK };

    err_note_take(&before, ERR_RUNTIME); /* the text of an error that is on its way */
    report_register();
    pthread_mutex_lock(&open_lock);
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

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct strm *) registry; /* by index */

static _Thread_local struct strm *default_streams[DEV_TYPE_COUNT];

static enum err registry_add(struct strm *s)
{
    pthread_mutex_lock(&registry_lock);
    s->index = (int)registry.n;
    enum err err = VEC_PUSH(&registry, s);
    pthread_mutex_unlock(&registry_lock);
    return err;
}

enum err strm_new(struct strm **out, struct dev d)
{
    struct strm *s = NULL;
    enum err err = ERR_NO_MEMORY;

    if (!dev_is_available(d))
        return err_set(ERR_ARG, "[new_stream] The %s device is not available: %s", dev_name(d.type),
                       dev_why_not(d.type));
    if (!(s = mem_alloc(sizeof *s)))
        goto out;
    s->dev = d;
    s->be = dev_backend(d.type);
    s->owner = pthread_self();
    pthread_mutex_init(&s->note_lock, NULL);
    TRY(s->be->strm_open(s));
    if ((err = registry_add(s)) != ERR_OK) {
        s->be->strm_close(s);
        goto out;
    }
    *out = s;
    s = NULL;
out:
    mem_free(s);
    return err;
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

void strm_set_default(struct strm *s)
{
    default_streams[s->dev.type] = s;
}

enum err strm_check_thread(const struct strm *s)
{
    if (pthread_equal(s->owner, pthread_self()))
        return ERR_OK;
    return err_set(ERR_RUNTIME, "[eval] Stream %d belongs to another thread.", s->index);
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

void strm_note_error(struct strm *s, enum err code)
{
    pthread_mutex_lock(&s->note_lock);
    err_note_take(&s->note, code);
    atomic_store(&s->noted, true);
    pthread_mutex_unlock(&s->note_lock);
}

enum err strm_raise_error(struct strm *s)
{
    if (!atomic_load(&s->noted))
        return ERR_OK;
    pthread_mutex_lock(&s->note_lock);
    enum err err = err_note_raise(&s->note);
    atomic_store(&s->noted, false);
    pthread_mutex_unlock(&s->note_lock);
    return err;
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

/* The producer's failure is raised by whoever collects the event first; the stream that waits for a
 * failed event inherits it, so later readers of dependent work see it too. */
static enum err collect_failure(struct ev *e)
{
    return strm_raise_error(e->strm);
}

enum err ev_wait(struct ev *e)
{
    enum err err = ERR_OK;

    if (!atomic_load(&e->done))
        err = e->strm->be->ev_wait(e);
    return err ? err : collect_failure(e);
}

enum err ev_query(bool *done, struct ev *e)
{
    enum err err = ERR_OK;

    *done = atomic_load(&e->done);
    if (!*done)
        err = e->strm->be->ev_query(done, e);
    return err || !*done ? err : collect_failure(e);
}

enum err ev_wait_on(struct strm *s, struct ev *e)
{
    if (e->strm == s || atomic_load(&e->done))
        return ERR_OK;
    return s->be->strm_wait(s, e);
}
