#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/gate.h"

static log_fn sink;
static void *sink_data;

void log_set_sink(log_fn fn, void *data)
{
    sink = fn;
    sink_data = data;
}

static void emit(enum log_level level, const char *fmt, va_list args)
{
    static const char *const names[] = { "", "warning", "info", "debug", "trace" };
    char line[1024];

    vsnprintf(line, sizeof line, fmt, args);
    if (sink)
        sink(level, line, sink_data);
    else
        fprintf(stderr, "mlx: %s: %s\n", names[level], line);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    va_list args;

    if ((int64_t)level > gate_int(GATE_LOG_LEVEL))
        return;
    va_start(args, fmt);
    emit(level, fmt, args);
    va_end(args);
}

void log_early(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    emit(LOG_WARN, fmt, args);
    va_end(args);
}
