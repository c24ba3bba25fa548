/* The statistics that a process prints to stderr at its end when asked to: everything with
 * VK_STATS, or parts of it with the settings that filter by family. */
#pragma once

#include "base/common.h"

/* Called when a device is opened; the report is registered once. Thread-safety: safe. */
void report_register(void);

/* True if one of the settings is on. */
bool report_is_asked(void);
