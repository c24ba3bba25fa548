/* Checks of the infer rules of ops. */
#pragma once

#include "graph/array.h"
#include "graph/op.h"
#include "support/testing.h"

/* Infers the node anew from its op, parameters and inputs. Text of what is wrong, "" if nothing. */
const char *infer_again(const struct node *n);

/* Infers a node that differs from n in some parameters or inputs: whatever they are, the rule gives
 * an error or arrays that can be. Text of what is wrong, "" if nothing. */
const char *infer_changed(const struct node *n, struct rng *r);

/* An op with random parameters and inputs. */
const char *infer_random(enum op_id op, struct rng *r);
