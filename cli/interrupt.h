/* Ctrl-C: who works looks whether it came, who waits for input waits for it, too. */
#pragma once

#include "core/common.h"

/* From now on SIGINT does not end the process. */
void interrupt_catch(void);
bool interrupt_came(void);
void interrupt_forget(void);
/* Readable from Ctrl-C until it is forgotten. */
int interrupt_fd(void);
