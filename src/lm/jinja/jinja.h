/* Templates in the part of Jinja that chat templates use, as transformers sets Jinja2 up for them:
 * an immutable sandbox with trim_blocks, lstrip_blocks, loop controls and `generation` blocks.
 *
 * A template is parsed once and rendered with variables that are given as JSON. Values, formats and
 * errors follow Python; what a template may cost is limited, so that one of a stranger ends with an
 * error. Not there: what needs other templates (extends, include, import, block), integers beyond
 * 64 bits, and functions that change lists and dicts, which the sandbox refuses, too.
 *
 * Thread-safety: a parsed template is immutable; different threads may render it. */
#pragma once

#include "lm/str.h"

struct jinja;
struct jin;
struct jdict;

/* What a rendering may cost; zero in any of them stands for the default. */
struct jinja_limits {
    uint64_t steps; /* nodes evaluated, characters and elements looked at */
    size_t memory;  /* bytes of values */
    size_t output;  /* bytes of text, of all that is written meanwhile */
    int depth;      /* of nested statements, expressions, calls and data */
};

struct jinja_request {
    const char *vars; /* a JSON object: the template's variables */
    size_t n_vars;
    /* Called with the variables before the template is run, to check and change them; may be NULL.
     */
    void (*prepare)(struct jin *j, struct jdict *vars);
    int64_t now; /* what strftime_now sees, in seconds since 1970; 0: the clock */
    struct jinja_limits limits;
};

/* Parses a template. ERR_ARG with a line number for what is no template. */
MUST_CHECK enum err jinja_create(struct jinja **out, const char *text, size_t n);
void jinja_destroy(struct jinja **t);

/* Appends what the template makes of the variables. ERR_ARG with a line number where it fails, or
 * with its own message where it raises one; nothing is appended then. */
MUST_CHECK enum err jinja_render(struct str *out, const struct jinja *t,
                                 const struct jinja_request *r);
