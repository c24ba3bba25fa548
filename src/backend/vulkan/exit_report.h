/* What a process says at its end when asked to: validation messages, hazards, and the backend's
 * part of the statistics. */
#pragma once

#include <stdio.h>

/* Registers the report of the settings VK_VALIDATE and VK_RECORD. Called once. */
void exit_report_register(void);

/* be->stats: kernel variants; pipelines as if they were a family. */
void vk_stats(FILE *out, const char *family);
