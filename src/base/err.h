/* Status codes and the thread-local text that explains the last failure.
 *
 * A function that can fail returns `enum err`; whoever detects the failure writes the text with
 * err_set, everybody above only passes the code on (TRY). Nothing here prints. */
#pragma once

#include "base/common.h"

/* The codes separate what a binding maps to different exceptions. */
enum err {
    ERR_OK = 0,
    ERR_ARG,         /* invalid argument */
    ERR_RANGE,       /* index or axis out of range */
    ERR_OVERFLOW,    /* a size does not fit its type */
    ERR_RUNTIME,     /* failed while running */
    ERR_UNSUPPORTED, /* no implementation for this op, dtype and device */
    ERR_NO_MEMORY,   /* host or device memory exhausted */
    ERR_DEVICE,      /* device lost or driver failure */
};

#define ERR_TEXT_MAX 512

/* An error that waits for somebody to collect it: in an event, in a stream. Zero is "none". */
struct err_note {
    enum err code;
    char text[ERR_TEXT_MAX];
};

/* Records code and text for this thread and returns code, so that `return err_set(...)` reads well.
 * The text begins with "[op]" where an op is to blame. Thread-safety: safe. */
enum err err_set(enum err code, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Text of the last err_set on this thread, "" if none. Borrowed, valid until the next err_set. */
const char *err_text(void);

/* Copies this thread's last error into note unless note already holds one (the first wins). */
void err_note_take(struct err_note *note, enum err code);

/* Turns a note back into this thread's error: sets the text, returns the code, empties the note. */
enum err err_note_raise(struct err_note *note);

/* Runs expr; on failure keeps its code in the local `err` and jumps to the single exit `out`. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        if ((err = (expr)) != ERR_OK)                                                              \
            goto out;                                                                              \
    } while (0)
