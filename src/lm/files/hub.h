/* Models by the name they have on Hugging Face's hub, where its tools have put them. */
#pragma once

#include "lm/str.h"

/* True for "org/name", which may also be the path of a folder. */
bool hub_is_name(const char *model);

/* Appends the folder of the newest downloaded version of org/name and a zero; nothing if it is not
 * there. */
MUST_CHECK enum err hub_find(struct str *path, const char *name);

/* Appends the folder that the tools download to and a zero; nothing if no setting tells it. */
MUST_CHECK enum err hub_cache(struct str *path);
