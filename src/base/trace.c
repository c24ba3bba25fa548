#include "base/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"

/* Some 300 MB; what comes later is left out. */
#define MAX_EVENTS ((size_t)6 << 20)

enum track_kind { TRACK_CPU = 1, TRACK_DEVICE = 2 }; /* process numbers in the trace */

struct event {
    const char *name, *detail;
    enum track_kind kind;
    int track;
    int64_t begin, end; /* ns, of the CPU's clock or the device's */
    size_t n;           /* 0: not said */
};

struct thread_name {
    int track;
    const char *what;
    int index;
};

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static VEC(struct event) events;
static VEC(struct thread_name) thread_names;
static size_t left_out;
/* CPU clock minus the device's. A span is over before that is seen, so the smallest difference
 * observed is the best estimate. */
static int64_t device_offset = INT64_MAX;
static bool will_write;

/* ---- the file ---- */

static void write_name(FILE *f, const char *level, enum track_kind kind, int track)
{
    fprintf(f,
            "{\"name\":\"%s_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", level,
            (int)kind, track);
}

static void write_head(FILE *f)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", f);
    write_name(f, "process", TRACK_CPU, 0);
    fputs("\"CPU\"}},\n", f);
    write_name(f, "process", TRACK_DEVICE, 0);
    fputs("\"GPU\"}}", f);
    for (size_t i = 0; i < thread_names.n; i++) {
        const struct thread_name *t = &thread_names.v[i];
        fputs(",\n", f);
        write_name(f, "thread", TRACK_CPU, t->track);
        fprintf(f, "\"%s %d\"}}", t->what, t->index);
    }
}

static void write_event(FILE *f, const struct event *e)
{
    int64_t shift = e->kind == TRACK_DEVICE ? device_offset : 0;

    fprintf(f, ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
            e->name, (int)e->kind, e->track, (double)(e->begin + shift) / 1e3,
            (double)(e->end - e->begin) / 1e3);
    if (e->detail)
        fprintf(f, ",\"args\":{\"variant\":\"%s\"}", e->detail);
    else if (e->n)
        fprintf(f, ",\"args\":{\"n\":%zu}", e->n);
    fputc('}', f);
}

static void write_trace(void)
{
    if (process_is_child()) /* the file is its parent's */
        return;
    const char *path = gate_text(GATE_VK_PROFILE);
    FILE *f = path ? fopen(path, "w") : NULL;

    if (!f) {
        log_warn("the trace %s cannot be written", path ? path : "");
        return;
    }
    pthread_mutex_lock(&event_lock);
    write_head(f);
    for (size_t i = 0; i < events.n; i++)
        write_event(f, &events.v[i]);
    fputs("\n]}\n", f);
    if (left_out)
        log_warn("the trace %s lacks the last %zu spans", path, left_out);
    pthread_mutex_unlock(&event_lock);
    fclose(f);
}

/* ---- recording ---- */

/* Called with the lock held. */
static void add_event(const struct event *e)
{
    if (!will_write) {
        will_write = true;
        atexit(write_trace);
    }
    if (events.n == MAX_EVENTS || VEC_PUSH(&events, *e) != ERR_OK)
        left_out++;
}

bool trace_is_on(void)
{
    return gate_text(GATE_VK_PROFILE) != NULL;
}

int64_t trace_span_begin(void)
{
    return trace_is_on() ? clock_ns() : 0;
}

void trace_span_end(const char *name, int64_t begin)
{
    trace_span_end_n(name, begin, 0);
}

void trace_span_end_n(const char *name, int64_t begin, size_t n)
{
    if (!begin || !trace_is_on())
        return;
    struct event e = { .name = name,
                       .kind = TRACK_CPU,
                       .track = (int)gettid(),
                       .begin = begin,
                       .end = clock_ns(),
                       .n = n };
    pthread_mutex_lock(&event_lock);
    add_event(&e);
    pthread_mutex_unlock(&event_lock);
}

void trace_name_thread(const char *what, int index)
{
    if (!trace_is_on())
        return;
    pthread_mutex_lock(&event_lock);
    enum err err = VEC_PUSH(&thread_names, (struct thread_name){ (int)gettid(), what, index });
    pthread_mutex_unlock(&event_lock);
    (void)err; /* the thread goes without a name */
}

void trace_device_span(const struct trace_device_span *s)
{
    if (!trace_is_on())
        return;
    pthread_mutex_lock(&event_lock);
    device_offset = MIN(device_offset, s->seen - s->end);
    add_event(&(struct event){ .name = s->name,
                               .detail = s->detail,
                               .kind = TRACK_DEVICE,
                               .track = s->track,
                               .begin = s->begin,
                               .end = s->end });
    pthread_mutex_unlock(&event_lock);
}
