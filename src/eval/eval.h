/* From outputs to a tape, from the tape to backend calls (docs/runtime.md, Evaluation). */
#pragma once

#include "base/common.h"
#include "base/err.h"

struct arr;

/* Evaluates the outputs and what they need. Synchronous: returns when the bytes are there.
 * Asynchronous: returns when the work is handed to the devices; arrays carry their stream's event.
 */
MUST_CHECK enum err eval_arrays(struct arr *const *outs, size_t n, bool async);
