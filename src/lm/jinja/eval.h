/* Expressions and statements are evaluated here. */
#pragma once

#include "lm/jinja/builtin.h"
#include "lm/jinja/parser.h"

struct jval jin_eval(struct jin *j, const struct jnode *n);
/* Runs statements that follow each other; j->flow says how they ended. */
void jin_exec(struct jin *j, const struct jnode *first);
/* The arguments of a call, filter or test. */
void jin_eval_args(struct jin *j, struct jargs *out, const struct jnode *first);
/* A chain of filters applied to a block's text. */
struct jval jin_eval_filters(struct jin *j, const struct jnode *n, struct jval text);

/* ---- names ---- */

/* Where a name is set; the scope at hand is left with scope_leave. */
bool scope_enter(struct jin *j, struct jscope *parent, struct jscope **before);
void scope_leave(struct jin *j, struct jscope *before);
void scope_set(struct jin *j, struct jval name, struct jval v);
struct jval scope_get(struct jin *j, struct jval name);
