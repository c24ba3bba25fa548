#include "backend/vulkan/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend/vulkan/device.h"
#include "core/clock.h"
#include "core/gate.h"
#include "core/log.h"

/* Dispatches with timestamps per command buffer. */
#define MAX_DISPATCHES 1024

enum track_kind { TRACK_CPU = 1, TRACK_GPU = 2 }; /* process numbers in the trace */

struct event {
    const char *name;
    enum track_kind kind;
    int track;
    int64_t begin, end; /* ns: CPU clock, or the GPU's own for GPU events */
};

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static VEC(struct event) events;
/* CPU clock minus GPU clock. A dispatch ends before its command buffer is seen to be complete, so
 * the smallest difference observed is the best estimate. */
static int64_t gpu_offset = INT64_MAX;
static bool will_write;

static void write_event(FILE *f, const struct event *e)
{
    int64_t shift = e->kind == TRACK_GPU ? gpu_offset : 0;

    fprintf(f, ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
            e->name, (int)e->kind, e->track, (double)(e->begin + shift) / 1e3,
            (double)(e->end - e->begin) / 1e3);
}

static void write_trace(void)
{
    const char *path = gate_text(GATE_VK_PROFILE);
    FILE *f = path ? fopen(path, "w") : NULL;

    if (!f) {
        log_warn("the trace %s cannot be written", path ? path : "");
        return;
    }
    pthread_mutex_lock(&event_lock);
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", f);
    fprintf(f, "\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"CPU\"}},",
            (int)TRACK_CPU);
    fprintf(f, "\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"GPU\"}}",
            (int)TRACK_GPU);
    for (size_t i = 0; i < events.n; i++)
        write_event(f, &events.v[i]);
    fputs("\n]}\n", f);
    pthread_mutex_unlock(&event_lock);
    fclose(f);
}

/* Called with the lock held. An event that finds no memory is left out of the trace. */
static void add_event(const struct event *e)
{
    if (!will_write) {
        will_write = true;
        atexit(write_trace);
    }
    enum err err = VEC_PUSH(&events, *e);
    (void)err;
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
    if (!begin || !trace_is_on())
        return;
    pthread_mutex_lock(&event_lock);
    add_event(&(struct event){ name, TRACK_CPU, (int)gettid(), begin, clock_ns() });
    pthread_mutex_unlock(&event_lock);
}

/* ---- GPU ---- */

void trace_begin(struct trace_slot *t, VkCommandBuffer cmd, const struct vk_queue *queue)
{
    VkQueryPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                   .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                   .queryCount = 2 * MAX_DISPATCHES };

    t->names.n = 0;
    if (!t->pool &&
        (!queue->timestamp_bits || vk.CreateQueryPool(vk_dev.handle, &info, NULL, &t->pool) < 0))
        return;
    t->mask = queue->timestamp_bits < 64 ? (1ull << queue->timestamp_bits) - 1 : UINT64_MAX;
    vk.CmdResetQueryPool(cmd, t->pool, 0, 2 * MAX_DISPATCHES);
}

static bool has_room(const struct trace_slot *t)
{
    return t->pool && t->names.n < MAX_DISPATCHES;
}

void trace_dispatch_begin(struct trace_slot *t, VkCommandBuffer cmd)
{
    if (has_room(t))
        vk.CmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, t->pool,
                             (uint32_t)t->names.n * 2);
}

void trace_dispatch_end(struct trace_slot *t, VkCommandBuffer cmd, const char *name)
{
    if (has_room(t) && VEC_PUSH(&t->names, name) == ERR_OK)
        vk.CmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, t->pool,
                             (uint32_t)t->names.n * 2 - 1);
}

void trace_collect(struct trace_slot *t, int track)
{
    double period = vk_dev.phys.props.limits.timestampPeriod;
    int64_t now = clock_ns();
    uint64_t ticks[2];

    for (uint32_t i = 0; i < t->names.n; i++) {
        if (vk.GetQueryPoolResults(vk_dev.handle, t->pool, 2 * i, 2, sizeof ticks, ticks,
                                   sizeof *ticks, VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
            continue;
        struct event e = { t->names.v[i], TRACK_GPU, track,
                           (int64_t)((double)(ticks[0] & t->mask) * period),
                           (int64_t)((double)(ticks[1] & t->mask) * period) };
        pthread_mutex_lock(&event_lock);
        gpu_offset = MIN(gpu_offset, now - e.end);
        add_event(&e);
        pthread_mutex_unlock(&event_lock);
    }
    t->names.n = 0;
}
