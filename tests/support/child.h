/* Tests of what a process reads once, or does at its end, run in processes of their own. */
#pragma once

#include "base/common.h"

/* A child process runs fn, with settings (name, value pairs ended by NULL) in its environment. True
 * if it returned without a failed check. The parent must not have opened a device. */
bool test_in_child(void (*fn)(void), const char *const *settings);

/* The same; text gets what the child writes to stderr, as far as it fits. */
bool test_in_child_text(void (*fn)(void), const char *const *settings, char *text, size_t size);

/* How often part occurs in text. */
int test_count(const char *text, const char *part);
