/* Tests that want large buffers ask the device first. */
#pragma once

#include "backend/backend.h"

/* True if the device takes buffers of `buffer` bytes and holds `total` bytes; else a message says
 * what was asked of it and what it has. Thread-safety: safe. */
bool room_on(const struct be *device, size_t buffer, size_t total);
