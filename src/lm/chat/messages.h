/* What is done to messages before a template sees them. */
#pragma once

#include "lm/jinja/value.h"

/* Checks the variable `messages`, takes away members that are null, and gives thoughts the names
 * that templates read, as transformers does: of reasoning_content, thinking and reasoning the first
 * that is there becomes the first two. */
void messages_prepare(struct jin *j, struct jdict *vars);
