/* Log lines to stderr, or to a callback; levels come from the LOG_LEVEL setting. */
#pragma once

#include "base/common.h"

enum log_level { LOG_NONE, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

typedef void (*log_fn)(enum log_level level, const char *line, void *data);

/* Replaces the sink (NULL restores stderr). Thread-safety: set it before other threads log. */
void log_set_sink(log_fn fn, void *data);

void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* For the settings reader, which runs before the level is known: always printed, as a warning. */
void log_early(const char *fmt, ...) PRINTF_LIKE(1, 2);

#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
