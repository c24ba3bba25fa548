/* What a process says at its end when asked to: counters, validation messages, hazards. */
#pragma once

/* Registers the report of the settings VK_STATS, VK_VALIDATE and VK_RECORD. Called once. */
void exit_report_register(void);
